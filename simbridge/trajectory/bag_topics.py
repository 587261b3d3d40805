"""Chooses the topic of a bag, and lists the topics that could be chosen instead."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from simbridge.errors import InputFileError
from simbridge.quoting import quoted, quoted_list, shell_quoted
from simbridge.trajectory.bag_poses import (
    PATH,
    POSE_ARRAY,
    POSE_TYPES,
    SINGLE_TYPES,
    STAMPLESS_TYPES,
    TF_TYPES,
    Poses,
    StampedPose,
    bare_name,
    stamped_poses,
)
from simbridge.trajectory.bag_reader import Bag
from simbridge.trajectory.bag_tf import BagTransforms

# Characters of a topic's name: one that is to be copied is not shortened.
MAX_TOPIC_LENGTH = 1000


class BagTopics:
    """The topics of a bag that have poses, by how likely they are meant.

    Args:
        bag: The bag.
        transforms: The bag's tf, which is read only if it matters.
    """

    def __init__(self, bag: Bag, transforms: BagTransforms) -> None:
        self._bag = bag
        self._transforms = transforms
        # Number of messages with stamps, by topic.
        self._stamped: dict[str, int] = {}
        # Number of messages without stamps, by topic.
        self._stampless: dict[str, int] = {}
        # Whether a topic with stamps has several poses, and so may be a motion.
        self._has_motion = False

        # A topic may have several connections, one for each publisher.
        for connection in bag.connections:
            if connection.msgtype not in POSE_TYPES:
                continue
            is_stampless = connection.msgtype in STAMPLESS_TYPES
            counts = self._stampless if is_stampless else self._stamped
            count = counts.get(connection.topic, 0) + connection.msgcount
            counts[connection.topic] = count

            # One message of these two types holds many poses.
            has_many_poses = connection.msgtype in (PATH, POSE_ARRAY) or count > 1
            if has_many_poses and not is_stampless:
                self._has_motion = True

    @cached_property
    def _moving(self) -> dict[str, int]:
        """The transforms that may move, with their numbers of poses."""
        recorded = self._transforms.recorded.items()
        return {str(name): len(poses.stamps) for name, poses in recorded if not name.is_static}

    @cached_property
    def _static(self) -> dict[str, int]:
        """The transforms that hold always, with their numbers of poses."""
        recorded = self._transforms.recorded.items()
        return {str(name): len(poses.stamps) for name, poses in recorded if name.is_static}

    @property
    def meant(self) -> list[str]:
        """The topics that may be meant where none is named, most poses first.

        If messages with stamps are a motion, tf is what places it. A pose without a stamp, such
        as a goal, and a transform that holds always are meant only where there is nothing else.
        """
        if self._has_motion:
            return _by_count(self._stamped)
        return _by_count(self._stamped | self._moving or self._stampless or self._static)

    @property
    def choices(self) -> list[str]:
        """All values of `--topic`: the likelier kinds first, of each most poses first."""
        return [
            *_by_count(self._stamped | self._moving),
            *_by_count(self._stampless),
            *_by_count(self._static),
        ]

    def error(self, reason: str) -> InputFileError:
        """Return the error about a choice of topic, with what could be chosen.

        Args:
            reason: What is wrong, as a clause.
        """
        if self.choices:
            names = quoted_list(self.choices, longest=MAX_TOPIC_LENGTH)
            message = f"{reason}; choose one with --topic: {names}"
            if self._moving or self._static:
                message += ". To chain tf frames, use --frames PARENT CHILD"
            return InputFileError(self._bag.path, message, field="topic")

        topics = sorted({f"{c.topic} ({c.msgtype})" for c in self._bag.connections})
        content = f"it has {quoted_list(topics, 8)}" if topics else "it has no topics at all"
        needed = (
            "a topic of Pose, PoseStamped, Odometry, TransformStamped, Path, PoseArray or "
            "tf is needed"
        )
        message = f"{reason}: {needed}, but {content}"
        return InputFileError(self._bag.path, message, field="topic")

    def read_only_topic(self) -> Poses:
        """Read the poses of the only topic that may be meant."""
        meant = self.meant
        if len(meant) != 1:
            reason = f"it has {len(self.choices)} topics of poses" if meant else "it has no poses"
            raise self.error(reason)
        if meant[0] in self._stamped or meant[0] in self._stampless:
            return self._read_topic(meant[0])

        # The transforms were read to find this out.
        recorded = self._transforms.recorded.items()
        return next(poses for name, poses in recorded if str(name) == meant[0])

    def read_chosen_topic(self, topic: str) -> Poses:
        """Read the poses of a topic, or of one child frame or index of it: "topic:child"."""
        types = {connection.topic: connection.msgtype for connection in self._bag.connections}
        name, _, child = topic.partition(":")
        kind = types.get(name)
        has_no_children = kind in (*SINGLE_TYPES, PATH)
        if kind is None or (has_no_children and child) or (kind in TF_TYPES and not child):
            raise self.error(f"there is no topic {quoted(topic)} to read")
        if kind not in (*POSE_TYPES, *TF_TYPES):
            reason = f"{quoted(topic)} has messages of {kind}, not poses"
            raise InputFileError(self._bag.path, reason)
        return self._read_topic(name, child)

    def _read_topic(self, name: str, selection: str = "") -> Poses:
        """Read the poses of a topic.

        Args:
            name: Name of the topic.
            selection: A child frame of tf, "child" or "parent>child"; or an index in a PoseArray.
                "": all poses; of a Path, those of its last message.
        """
        kind = next(c.msgtype for c in self._bag.connections if c.topic == name)
        advice = ""
        if selection:
            advice = f"; choose one with --topic {shell_quoted(f'{name}:parent>child')}"
        poses = Poses(self._bag.path, name, advice)
        most_poses = 0
        message_count = 0
        for _, number, recorded, message in self._bag.messages(topic=name):
            if kind == PATH:
                poses = Poses(self._bag.path, name)
            pose_count = _add_selected(poses, message, selection, number=number, recorded=recorded)
            most_poses = max(most_poses, pose_count)
            message_count += 1

        if not poses.stamps:
            raise self._empty_topic_error(name, kind=kind, selection=selection)
        is_whole_array = kind == POSE_ARRAY and not selection
        if is_whole_array and most_poses > 1 and message_count > 1:
            raise self._several_poses_error(name, message_count)
        poses.one_message = kind == PATH or (is_whole_array and message_count == 1)
        return poses

    def _several_poses_error(self, name: str, message_count: int) -> InputFileError:
        """Return the error about a PoseArray of which no pose is chosen."""
        flag = f"--topic {shell_quoted(f'{name}:0')}"
        reason = (
            f"{name} has {message_count} messages of several poses each; choose one of them: {flag}"
        )
        return InputFileError(self._bag.path, reason, field="topic")

    def _empty_topic_error(self, name: str, *, kind: str, selection: str) -> InputFileError:
        """Return the error about a topic without poses, or without those that were selected."""
        if not selection:
            return InputFileError(self._bag.path, f"{name} has no messages", field="topic")
        part = "pose" if kind == POSE_ARRAY else "transform to the frame"
        return self.error(f"{name} has no {part} {quoted(selection)}")


def _by_count(counts: dict[str, int]) -> list[str]:
    """Return topics with their numbers of poses, the largest first."""
    return sorted(counts, key=lambda name: -counts[name])


def _add_selected(poses: Poses, message: Any, selection: str, *, number: int, recorded: int) -> int:
    """Add the selected poses of a message, and return how many there are.

    Args:
        poses: The poses of the messages before.
        message: The message.
        selection: The choice of poses: see `BagTopics._read_topic`.
        number: Number of the message.
        recorded: Time of recording, ns.
    """
    count = 0
    for stamped in stamped_poses(message):
        if _is_selected(stamped, selection):
            poses.add(number, recorded, stamped)
            count += 1
    return count


def _is_selected(stamped: StampedPose, selection: str) -> bool:
    """Return whether a pose is the selected one of its message; see `BagTopics._read_topic`."""
    if not selection:
        return True
    parent, _, child = selection.rpartition(">")
    if stamped.child != bare_name(child):
        return False
    return not parent or bare_name(stamped.header.frame_id) == bare_name(parent)
