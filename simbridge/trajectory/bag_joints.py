"""The joint positions in an open ROS bag: JointState messages, matched by the names of joints."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from simbridge.errors import InputFileError
from simbridge.quoting import quoted, quoted_list
from simbridge.trajectory.bag_poses import MAX_POSES, POSE_TYPES, TF_TYPES, UNSTAMPED
from simbridge.trajectory.bag_samples import NANOSECONDS_PER_SECOND, BagSamples, sort_samples
from simbridge.trajectory.bag_topics import MAX_TOPIC_LENGTH
from simbridge.trajectory.bags import motion_of
from simbridge.trajectory.dropped_rows import DroppedRows, dropped_rows
from simbridge.trajectory.read_options import ReadOptions
from simbridge.trajectory.tables.joint_columns import ArmJoints, find_joint_vectors
from simbridge.trajectory.trajectory import Trajectory, describe_reading

if TYPE_CHECKING:
    from simbridge.trajectory.bag_reader import Bag

JOINT_STATE = "sensor_msgs/msg/JointState"


def joint_topics(bag: Bag) -> list[str]:
    """Return the topics of joint positions, most messages first."""
    counts: dict[str, int] = {}
    for connection in bag.connections:
        if connection.msgtype == JOINT_STATE:
            counts[connection.topic] = counts.get(connection.topic, 0) + connection.msgcount
    return sorted(counts, key=lambda topic: -counts[topic])


def has_joints_to_read(bag: Bag, reading: ReadOptions) -> bool:
    """Return whether joint positions are read: by choice, or as the bag has no poses."""
    if reading.column == "joints":
        return True
    topics = joint_topics(bag)
    if reading.topic is not None:
        return reading.topic in topics
    types = {connection.msgtype for connection in bag.connections}
    has_poses = not types.isdisjoint((*POSE_TYPES, *TF_TYPES))
    return bool(topics) and not has_poses and not reading.frames


def joint_recording(
    bag: Bag, arm: ArmJoints, topic: str | None = None, rate: float | None = None
) -> Trajectory:
    """Return the motion of an arm's joints in a bag.

    Joints are matched by their names, in any order; others are left out with a note, as are
    messages that have none of the arm's.

    Args:
        bag: The bag.
        arm: The arm.
        topic: The topic; the only one of joint positions by default.
        rate: Samples per s of messages without stamps.

    Raises:
        InputFileError: The topic is missing or ambiguous; a message lacks a joint of the arm, or
            has a number that is not finite, or other joints than another one for its instant.
    """
    name = _choose_topic(bag, topic)
    messages = _JointMessages(bag, name, arm)
    for _, number, recorded, message in bag.messages(topic=name):
        messages.add(number, recorded, message)
    samples = messages.samples(rate)

    kept = sort_samples(bag.path, samples)
    kept = replace(kept, notes=(*messages.notes, *kept.notes))
    motion = motion_of(bag, name, kept, arm)
    clock = "" if rate is not None or samples.has_stamps else ", times of recording"
    return describe_reading(motion, f"topic {name}{clock}")


def _choose_topic(bag: Bag, topic: str | None) -> str:
    """Return the topic of joint positions that is read: the chosen one, or the only one."""
    topics = joint_topics(bag)
    if topic is None and len(topics) == 1:
        return topics[0]
    if topic is not None and topic in topics:
        return topic

    fault = f"it has {len(topics) or 'no'} topics of joint positions"
    if topic is not None:
        fault = f"{quoted(topic)} is not a topic of joint positions"
    if topics:
        fault += f"; choose one with --topic: {quoted_list(topics, longest=MAX_TOPIC_LENGTH)}"
    else:
        fault += f", which are messages of {JOINT_STATE}"
    raise InputFileError(bag.path, fault, field="topic")


class _JointMessages:
    """Joint positions in the order of their messages.

    Args:
        bag: The bag.
        name: Name of the topic.
        arm: The arm.
    """

    def __init__(self, bag: Bag, name: str, arm: ArmJoints) -> None:
        self._path = bag.path
        self._name = name
        self._arm = arm
        # The indices of the arm's joints among the names of a message; empty where there are none.
        self._indices: dict[tuple[str, ...], tuple[int, ...]] = {}

        self._stamps = array("q")
        self._recorded = array("q")
        self._values = array("d")
        # The number of the message of each sample.
        self._numbers = array("q")
        # Messages without a joint of the arm, and those without positions.
        self._foreign: list[int] = []
        self._empty: list[int] = []

    def add(self, number: int, recorded: int, message: Any) -> None:
        """Add a message.

        Args:
            number: Number of the message, counted from 1.
            recorded: Time of recording, ns.
            message: Content of the message.
        """
        names = tuple(message.name)
        if names not in self._indices:
            self._indices[names] = self._find_joints(number, names)
        indices = self._indices[names]
        if not indices:
            self._foreign.append(number)
            return
        if not len(message.position):
            self._empty.append(number)
            return
        if len(message.position) != len(names):
            counts = f"{len(names)} names and {len(message.position)} positions"
            self._refuse(number, f"has {counts}")

        stamp = getattr(message, "header", UNSTAMPED).stamp
        self._stamps.append(stamp.sec * NANOSECONDS_PER_SECOND + stamp.nanosec)
        self._recorded.append(recorded)
        self._values.extend(message.position[index] for index in indices)
        self._numbers.append(number)
        if len(self._stamps) > MAX_POSES:
            self._refuse(number, f"is one of more than {MAX_POSES:,}; split the bag")

    @property
    def notes(self) -> list[DroppedRows | str]:
        """Notes about messages that are left out of the samples."""
        notes: list[DroppedRows | str] = [
            *dropped_rows(
                "message", self._foreign, detail="without a joint of the arm", unit="message"
            ),
            *dropped_rows("message", self._empty, detail="without positions", unit="message"),
        ]
        others = self._other_joints()
        if others:
            notes.append(f"{quoted_list(others)} were ignored: {self._arm.arm} does not have them")
        return notes

    def samples(self, rate: float | None) -> BagSamples:
        """Return the samples.

        Args:
            rate: Samples per s of messages without stamps.

        Raises:
            InputFileError: There are no samples, or a rate is given although the messages have
                stamps.
        """
        stamps = np.frombuffer(self._stamps, dtype=np.int64)
        recorded = np.frombuffer(self._recorded, dtype=np.int64)
        if not len(stamps):
            # The names in all messages, each once, in the order in which they came.
            all_names: dict[str, None] = {}
            for names in self._indices:
                all_names.update(dict.fromkeys(names))
            content = f"the joints {quoted_list(all_names)}" if all_names else "no messages"
            reason = (
                f"{self._name} has {content}; positions of the joints of {self._arm} are needed"
            )
            raise InputFileError(self._path, reason, field="topic")

        if rate is not None:
            if stamps.any():
                reason = f"the messages of {self._name} have timestamps; omit --rate"
                raise InputFileError(self._path, reason)
            instants = np.arange(len(stamps)) * NANOSECONDS_PER_SECOND / rate
            stamps = instants.round().astype(np.int64)
            recorded = stamps
        return BagSamples(
            name=self._name,
            noun="joint position",
            stamps=stamps,
            recorded=recorded,
            values=np.frombuffer(self._values).reshape(-1, len(self._arm.names)),
            numbers=np.frombuffer(self._numbers, dtype=np.int64),
        )

    def _find_joints(self, number: int, names: Sequence[str]) -> tuple[int, ...]:
        """Return the indices of the arm's joints among names; empty where none of them is there."""
        arm = self._arm
        if set(arm.names) <= set(names) and len(set(names)) == len(names):
            return tuple(list(names).index(name) for name in arm.names)

        # The names may have a prefix.
        vectors = [v for v in find_joint_vectors(names, arm) if v.names_joints]
        if len(vectors) == 1:
            return vectors[0].columns
        is_repeated = len(set(names)) < len(names)
        if vectors or is_repeated or set(arm.names) & set(names):
            self._refuse(number, f"has the joints {quoted_list(names)}, not those of {arm}")
        return ()

    def _other_joints(self) -> list[str]:
        """Return the names of joints that are not the arm's, of messages that have the arm's."""
        # Each once, in the order in which they came.
        others: dict[str, None] = {}
        for names, indices in self._indices.items():
            if not indices:
                continue
            for index, name in enumerate(names):
                if index not in indices:
                    others[name] = None
        return list(others)

    def _refuse(self, number: int, fault: str) -> NoReturn:
        """Refuse the bag for a message."""
        raise InputFileError(self._path, f"{self._name}, message {number} {fault}", field="name")
