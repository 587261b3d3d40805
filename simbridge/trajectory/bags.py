"""The poses in an open ROS bag: of messages, and of frames of tf chained.

`bag_reader.py` reads its bytes.
"""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simbridge.errors import InputFileError, InvalidTrajectory
from simbridge.quoting import quoted, quoted_list, shell_quoted
from simbridge.text import counted
from simbridge.trajectory.tf_chain import chain
from simbridge.trajectory.trajectory import Trajectory, describe_reading

if TYPE_CHECKING:
    from simbridge.trajectory.bag_reader import Bag

POSE_ARRAY = "geometry_msgs/msg/PoseArray"
PATH = "nav_msgs/msg/Path"
TF_TYPES = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")
# Messages with one pose; those without a stamp are at the times when they were recorded.
STAMPLESS_TYPES = (
    "geometry_msgs/msg/Pose",
    "geometry_msgs/msg/PoseWithCovariance",
    "geometry_msgs/msg/Transform",
)
SINGLE_TYPES = (
    *STAMPLESS_TYPES,
    "geometry_msgs/msg/PoseStamped",
    "geometry_msgs/msg/TransformStamped",
    "geometry_msgs/msg/PoseWithCovarianceStamped",
    "nav_msgs/msg/Odometry",
)
POSE_TYPES = (*SINGLE_TYPES, POSE_ARRAY, PATH)
# Stands for the header of a message that has none.
UNSTAMPED = SimpleNamespace(stamp=SimpleNamespace(sec=0, nanosec=0), frame_id="")

# Two stamps and a pose, 72 bytes each: some 720 MB, and hours at any rate a robot takes.
MAX_POSES = 10_000_000
# Characters of a topic's name: one that is to be copied is not shortened.
MAX_TOPIC_LENGTH = 1000
# Poses at one instant that differ less are repetitions.
SAME_POSE = 1e-12


def bag_recording(
    bag: Bag, topic: str | None, frames: Sequence[str], rate: float | None
) -> tuple[Trajectory, str]:
    """Return the motion in a bag, and the frame of its poses.

    See `simbridge.trajectory.files.read_bag` for the arguments.
    """
    if frames:
        parent, child = frames
        poses = _chain_frames(bag, parent, child)
        name = f"tf from {parent} to {child}"
        source = name
    else:
        poses = _read_only_topic(bag) if topic is None else _read_chosen_topic(bag, topic)
        name = poses.name
        source = f"topic {name}"

    # Times: of the stamps, or at a rate where there are none.
    stamps = np.frombuffer(poses.stamps, dtype=np.int64)
    is_stampless = poses.one_message and bool((stamps == stamps[0]).all())
    if rate is not None and not is_stampless and stamps.any():
        raise InputFileError(bag.path, f"the poses of {name} have stamps; omit --rate")
    if rate is None and is_stampless and len(stamps) > 1:
        poses_text = f"the {len(stamps)} poses of the one message of {name}"
        reason = f"{poses_text} have no stamps: add --rate HZ"
        raise InputFileError(bag.path, reason, field="stamp")
    if rate is not None:
        even = (np.arange(len(stamps)) * 1e9 / rate).round().astype(np.int64)
        poses.stamps = array("q", even.tolist())
        poses.recorded = poses.stamps

    motion = _trajectory(bag.path, name, poses)
    if not frames and rate is None and not any(poses.stamps):
        source += ", times of recording"
    return describe_reading(motion, source, poses.frame), poses.frame


class _StampedPose(NamedTuple):
    """A pose of a message.

    Attributes:
        child: Its child frame, of tf; its index, of a PoseArray or Path; else "".
        header: Its header, with stamp and frame.
        translation: An object with x, y, z.
        rotation: An object with x, y, z, w.
    """

    child: str
    header: Any
    translation: Any
    rotation: Any


class _Poses:
    """Poses in the order of their messages.

    Args:
        bag: The bag.
        name: Name of the topic.
        advice: What follows the error when the frame changes.

    Attributes:
        name: Name of the topic.
        stamps: Stamps of the poses, ns.
        recorded: Times of recording, ns.
        values: x, y, z, qx, qy, qz, qw of each pose.
        frame: The frame of all of them.
        one_message: Whether all of them are of one message.
    """

    def __init__(self, bag: Bag, name: str, advice: str = "") -> None:
        self._path = bag.path
        self._advice = advice
        self.name = name
        self.stamps = array("q")
        self.recorded = array("q")
        self.values = array("d")
        self.frame = ""
        self.one_message = False

    def add(self, number: int, recorded: int, stamped: _StampedPose) -> None:
        """Add a pose.

        Args:
            number: Number of its message.
            recorded: Time of recording, ns.
            stamped: The pose.
        """
        frame = _bare(stamped.header.frame_id)
        if not self.stamps:
            self.frame = frame
        elif frame != self.frame:
            reason = (
                f"{self.name}, message {number} is in the frame {quoted(frame)}, those before in "
                f"{quoted(self.frame)}"
            )
            raise InputFileError(self._path, reason + self._advice, field="frame_id")

        stamp = stamped.header.stamp
        translation = stamped.translation
        rotation = stamped.rotation
        self.stamps.append(stamp.sec * 1_000_000_000 + stamp.nanosec)
        self.recorded.append(recorded)
        self.values.extend((translation.x, translation.y, translation.z))
        self.values.extend((rotation.x, rotation.y, rotation.z, rotation.w))
        if len(self.stamps) > MAX_POSES:
            reason = f"{self.name} has more than {MAX_POSES:,} poses; split the bag"
            raise InputFileError(self._path, reason)


def candidate_topics(bag: Bag) -> tuple[list[str], _Poses | None]:
    """Return the topics that may be meant.

    Returns:
        The possible topics, most messages first; and the poses of tf, if they are all of one pair
        of frames.
    """
    counts: dict[str, int] = {}
    # Such as a goal: possible only where there is no other.
    stampless_counts: dict[str, int] = {}
    for connection in bag.connections:
        if connection.msgtype in POSE_TYPES:
            is_stampless = connection.msgtype in STAMPLESS_TYPES
            topic_counts = stampless_counts if is_stampless else counts
            topic_count = topic_counts.get(connection.topic, 0) + connection.msgcount
            topic_counts[connection.topic] = topic_count

    # All messages of tf: a frame may appear at any time. Decoded poses are kept as long as there is
    # only one pair of frames.
    poses = None
    for topic, number, recorded, message in bag.messages(kinds=TF_TYPES):
        for stamped in _stamped_poses(message):
            name = f"{topic}:{_bare(stamped.header.frame_id)}>{stamped.child}"
            counts[name] = counts.get(name, 0) + 1
            if len(counts) > 1:
                poses = None
                continue
            poses = poses or _Poses(bag, topic)
            poses.add(number, recorded, stamped)

    candidates = counts or stampless_counts
    return sorted(candidates, key=lambda name: -candidates[name]), poses


def _read_only_topic(bag: Bag) -> _Poses:
    """Read the poses of the only topic of poses."""
    candidates, poses = candidate_topics(bag)
    if len(candidates) != 1:
        reason = "it has no poses"
        if candidates:
            reason = f"it has {len(candidates)} topics of poses"
        raise _topic_error(bag, reason, candidates)
    if poses is not None:
        return poses
    topic, _, _ = candidates[0].partition(":")
    return _read_topic(bag, topic)


def _read_chosen_topic(bag: Bag, topic: str) -> _Poses:
    """Read the poses of a topic, or of one child frame or index of it: "topic:child"."""
    types = {connection.topic: connection.msgtype for connection in bag.connections}
    name, _, child = topic.partition(":")
    kind = types.get(name)
    has_no_children = kind in (*SINGLE_TYPES, PATH)
    if kind is None or (has_no_children and child) or (kind in TF_TYPES and not child):
        raise _topic_error(bag, f"there is no {quoted(topic)} to read")
    if kind not in (*POSE_TYPES, *TF_TYPES):
        raise _topic_error(bag, f"{quoted(topic)} has messages of {kind}, not poses")
    return _read_topic(bag, name, child)


def _topic_error(bag: Bag, reason: str, candidates: list[str] | None = None) -> InputFileError:
    """Return the error about a choice of topic, with what could be chosen.

    Args:
        bag: The bag.
        reason: What is wrong, as a clause.
        candidates: The possible topics; None: they are looked for.
    """
    if candidates is None:
        candidates, _ = candidate_topics(bag)
    if candidates:
        names = quoted_list(candidates, longest=MAX_TOPIC_LENGTH)
        message = f"{reason}; choose one with --topic: {names}"
        if any(">" in name for name in candidates):
            message += ". Frames of tf are chained by --frames PARENT CHILD"
        return InputFileError(bag.path, message, field="topic")

    topics = sorted({f"{c.topic} ({c.msgtype})" for c in bag.connections})
    content = f"it has {quoted_list(topics, 8)}" if topics else "it has no topics at all"
    needed = "Pose, PoseStamped, Odometry, TransformStamped, Path, PoseArray or tf are needed"
    return InputFileError(bag.path, f"{reason}: {needed}, and {content}", field="topic")


def _read_topic(bag: Bag, name: str, selection: str = "") -> _Poses:
    """Read the poses of a topic.

    Args:
        bag: The bag.
        name: Name of the topic.
        selection: For tf a child frame, "child" or "parent>child"; for PoseArray an index. "": all
            poses; of a Path, those of its last message.
    """
    kind = _message_type(bag, name)
    advice = ""
    if selection:
        advice = f"; choose one with --topic {shell_quoted(f'{name}:parent>child')}"
    poses = _Poses(bag, name, advice)
    has_several = False
    message_count = 0
    for _, number, recorded, message in bag.messages(topic=name):
        message_count += 1
        if kind == PATH:
            poses = _Poses(bag, name)
        for stamped in _stamped_poses(message):
            # The poses of an array are numbered from "0" on.
            has_several |= stamped.child == "1"
            if _is_selected(stamped, selection):
                poses.add(number, recorded, stamped)

    if not poses.stamps:
        raise _empty_topic_error(bag, name, kind=kind, selection=selection)
    poses.one_message = kind == PATH
    if selection or kind != POSE_ARRAY:
        return poses

    poses.one_message = message_count == 1
    if has_several and message_count > 1:
        flag = f"--topic {shell_quoted(f'{name}:0')}"
        reason = (
            f"{name} has {message_count} messages of several poses each; choose one of them: {flag}"
        )
        raise InputFileError(bag.path, reason, field="topic")
    return poses


def _message_type(bag: Bag, topic: str) -> str:
    """Return the type of a topic's messages."""
    return next(c.msgtype for c in bag.connections if c.topic == topic)


def _empty_topic_error(bag: Bag, name: str, *, kind: str, selection: str) -> InputFileError:
    """Return the error about a topic that has no poses, or none of those that were selected."""
    if not selection:
        return InputFileError(bag.path, f"{name} has no messages", field="topic")
    part = "pose" if kind == POSE_ARRAY else "transform to the frame"
    return _topic_error(bag, f"{name} has no {part} {quoted(selection)}")


def _is_selected(stamped: _StampedPose, selection: str) -> bool:
    """Return whether a pose is the selected one of its message; see `_read_topic`."""
    if not selection:
        return True
    parent, _, child = selection.rpartition(">")
    if stamped.child != _bare(child):
        return False
    return not parent or _bare(stamped.header.frame_id) == _bare(parent)


def _stamped_poses(message: Any) -> Iterator[_StampedPose]:
    """Iterate over the poses of a message."""
    if hasattr(message, "transforms"):
        for transform in message.transforms:
            values = transform.transform
            child = _bare(transform.child_frame_id)
            yield _StampedPose(child, transform.header, values.translation, values.rotation)
    elif hasattr(message, "poses"):
        for index, element in enumerate(message.poses):
            element_pose = getattr(element, "pose", element)
            header = getattr(element, "header", message.header)
            if not header.frame_id:
                # The poses of a Path may leave their frames to it.
                header = SimpleNamespace(stamp=header.stamp, frame_id=message.header.frame_id)
            yield _StampedPose(str(index), header, element_pose.position, element_pose.orientation)
    else:
        # With a covariance, the pose is one level deeper.
        values = getattr(message, "transform", getattr(message, "pose", message))
        values = getattr(values, "pose", values)
        header = getattr(message, "header", UNSTAMPED)
        if hasattr(values, "translation"):
            yield _StampedPose("", header, values.translation, values.rotation)
        else:
            yield _StampedPose("", header, values.position, values.orientation)


def _bare(frame: str) -> str:
    """Return the name of a frame without the slash that tf of ROS 1 put before it."""
    return frame.lstrip("/")


def _chain_frames(bag: Bag, parent: str, child: str) -> _Poses:
    """Return the poses of a frame of tf in another."""
    transforms: dict[tuple[str, str], _Poses] = {}
    for topic, number, recorded, message in bag.messages(kinds=TF_TYPES):
        for stamped in _stamped_poses(message):
            key = (_bare(stamped.header.frame_id), stamped.child)
            transform = transforms.setdefault(key, _Poses(bag, topic))
            transform.add(number, recorded, stamped)
    if not transforms:
        raise _topic_error(bag, "it has no tf for --frames")

    # Of several poses at one instant, the first.
    edges = {}
    for key, transform in transforms.items():
        all_stamps = np.frombuffer(transform.stamps, dtype=np.int64)
        edge_stamps, first = np.unique(all_stamps, return_index=True)
        edges[key] = (edge_stamps, np.frombuffer(transform.values).reshape(-1, 7)[first])
    try:
        stamps, values = chain(edges, _bare(parent), _bare(child))
    except ValueError as problem:
        raise InputFileError(bag.path, f"{problem}", field="frame_id") from None

    poses = _Poses(bag, "tf")
    poses.frame = _bare(parent)
    poses.stamps = array("q", stamps.tolist())
    poses.recorded = poses.stamps
    poses.values = array("d", values.ravel().tolist())
    return poses


def _trajectory(path: Path, name: str, poses: _Poses) -> Trajectory:
    """Return poses as a trajectory, sorted and without repetitions.

    Args:
        path: The bag, for messages.
        name: Name of the topic, for messages.
        poses: In the order of their messages.
    """
    stamps = np.frombuffer(poses.stamps, dtype=np.int64)
    recorded = np.frombuffer(poses.recorded, dtype=np.int64)
    values = np.frombuffer(poses.values).reshape(-1, 7)
    not_finite = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(not_finite):
        reason = f"{name}, message {not_finite[0] + 1} has a number that is not finite"
        raise InputFileError(path, reason, field="pose")

    # In the order of their times.
    has_stamps = bool(stamps.any())
    times = stamps if has_stamps else recorded
    order = np.argsort(times, kind="stable")
    late_count = int((times < np.maximum.accumulate(times)).sum())
    times = times[order]
    values = values[order]

    # Two poses for one instant must be equal.
    repeated = np.flatnonzero(np.diff(times) == 0) + 1
    differs = (np.abs(values[repeated] - values[repeated - 1]) > SAME_POSE).any(axis=1)
    contradicting = repeated[differs]
    if len(contradicting):
        index = contradicting[0]
        first, second = sorted((int(order[index - 1]) + 1, int(order[index]) + 1))
        instant = float(times[index]) / 1e9
        reason = (
            f"{name}, messages {first} and {second} have two poses for one instant, {instant!r} s"
        )
        if not has_stamps:
            reason += "; they have no stamps: with --rate HZ they are evenly spaced"
        raise InputFileError(path, reason, field="stamp")

    notes = []
    if late_count:
        messages = counted(late_count, "message")
        notes.append(f"sorted by their stamps, as {messages} came after later ones")
    if len(repeated):
        notes.append(f"{counted(len(repeated), 'repetition')} dropped")
    if notes:
        warnings.warn(f"{path}, {name}: {'; '.join(notes)}.", stacklevel=4)
        is_kept = np.ones(len(times), dtype=bool)
        is_kept[repeated] = False
        times = times[is_kept]
        values = values[is_kept]
        order = order[is_kept]

    seconds = (times - times[0]) / 1e9
    try:
        return Trajectory(seconds, values, source=str(path), epoch_ns=int(times[0]))
    except InvalidTrajectory as fault:
        position = "" if fault.sample is None else f", message {int(order[fault.sample]) + 1}"
        reason = f"{name}{position}: {fault.reason}"
        raise InputFileError(path, reason, field=fault.field) from fault
