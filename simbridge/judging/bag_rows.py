"""Collects the joint vectors of the messages on a topic, and puts them in the order of time."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simbridge.errors import InputFileError
from simbridge.robot.pose import Array, Counts, Flags
from simbridge.trajectory.bag_poses import MAX_POSES
from simbridge.trajectory.bag_samples import NANOSECONDS_PER_SECOND
from simbridge.trajectory.dropped_rows import dropped_rows, late_rows


@dataclass(frozen=True, eq=False)
class TopicSamples:
    """Joint vectors of a topic in the order of their times, each instant once.

    Attributes:
        topic: Name of the topic.
        stamps: Times (T,), ns, strictly increasing.
        vectors: The vectors by name, each (T, n), in the order of the arm's joints. A vector that
            is missing, or not finite, in any of the messages is left out.
        notes: Sentences about what was left out.
    """

    topic: str
    stamps: Counts
    vectors: Mapping[str, Array]
    notes: tuple[str, ...]


class JointRows:
    """Joint vectors of the messages on a topic that name the same joints.

    Args:
        path: Path of the bag, for error messages.
        topic: Name of the topic.
        joint_names: Names of the joints, in the order of the messages.
        vectors: Names of the vectors of a message; a message without the first is of no use.

    Attributes:
        topic: Name of the topic.
        joint_names: Names of the joints, in the order of the messages.
    """

    def __init__(
        self, path: str, topic: str, joint_names: tuple[str, ...], vectors: Sequence[str]
    ) -> None:
        self.topic = topic
        self.joint_names = joint_names
        self._path = path
        # Stamp of each message, ns; 0 for none. The type "q" holds 64-bit integers.
        self._stamps = array("q")
        # Time of recording of each message, ns.
        self._recorded = array("q")
        # Number of each message on the topic, from 1.
        self._numbers = array("q")
        # Values of each vector, one message after another; nan where a message has none.
        self._values = {name: array("d") for name in vectors}

    def __len__(self) -> int:
        return len(self._stamps)

    def add(
        self, number: int, *, stamp: int, recorded: int, vectors: Mapping[str, Sequence[float]]
    ) -> None:
        """Add the vectors of a message.

        Args:
            number: Number of the message on the topic, from 1.
            stamp: Stamp of the message, ns; 0 for none.
            recorded: Time of recording, ns.
            vectors: Vectors of the message by name, each with a number per joint, or empty.

        Raises:
            InputFileError: A vector has another length, or there are too many messages.
        """
        joint_count = len(self.joint_names)
        for name, collected in self._values.items():
            values = vectors.get(name, ())
            if len(values) not in (0, joint_count):
                reason = (
                    f"{self.topic}, message {number} has {joint_count} joints, but {len(values)} "
                    f"values of {name}"
                )
                raise InputFileError(self._path, reason)
            collected.extend(values if len(values) else [np.nan] * joint_count)

        self._stamps.append(stamp)
        self._recorded.append(recorded)
        self._numbers.append(number)
        if len(self) > MAX_POSES:
            reason = f"{self.topic} has more than {MAX_POSES:,} messages; split the bag"
            raise InputFileError(self._path, reason)

    @property
    def recording_delay(self) -> int:
        """Median time from the stamp of a message to its recording, ns; 0 without stamps."""
        stamps = np.frombuffer(self._stamps, dtype=np.int64)
        recorded = np.frombuffer(self._recorded, dtype=np.int64)
        return int(np.median(recorded - stamps)) if stamps.any() else 0

    def samples(self, joints: Sequence[str]) -> TopicSamples:
        """Return the vectors of some joints in the order of their times.

        Messages without the first vector are left out, and of messages with the same stamp all but
        the first.

        Args:
            joints: Names of the joints, all of which the messages have.
        """
        # Without any stamp the times of recording stand for them.
        stamps = np.frombuffer(self._stamps, dtype=np.int64)
        if not stamps.any():
            stamps = np.frombuffer(self._recorded, dtype=np.int64)
        numbers = np.frombuffer(self._numbers, dtype=np.int64)
        columns = [self.joint_names.index(joint) for joint in joints]
        vectors = {
            name: np.frombuffer(values).reshape(len(self), -1)[:, columns]
            for name, values in self._values.items()
        }

        # Indices of the messages that are kept, in the order of time.
        first_name, first_vector = next(iter(vectors.items()))
        is_usable: Flags = np.asarray(np.isfinite(first_vector).all(axis=1))
        in_order = np.argsort(stamps, kind="stable")
        usable = in_order[is_usable[in_order]]
        is_new = np.ones(len(usable), dtype=bool)
        is_new[1:] = np.diff(stamps[usable]) > 0
        kept = usable[is_new]

        # A message is late if an earlier message has a larger stamp.
        is_late = stamps < np.maximum.accumulate(stamps)
        notes = [
            *dropped_rows(
                "message",
                numbers[~is_usable],
                detail=f"without numbers for {first_name}",
                unit="message",
            ),
            *late_rows("message", numbers[is_late]),
            *dropped_rows(
                "message",
                np.sort(numbers[usable[~is_new]]),
                detail="with the timestamp of another one",
                unit="message",
            ),
        ]
        return TopicSamples(
            topic=self.topic,
            stamps=stamps[kept],
            vectors={
                name: values[kept]
                for name, values in vectors.items()
                if np.isfinite(values[kept]).all()
            },
            notes=tuple(f"{self.topic}: {note}" for note in notes),
        )


def stamp_of(time: Any) -> int:
    """Return a time of ROS in ns."""
    return int(time.sec) * NANOSECONDS_PER_SECOND + int(time.nanosec)
