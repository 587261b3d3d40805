"""The poses in an open ROS bag: of messages, and of frames of tf chained. `bag_reader.py` reads its bytes."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from simbridge.errors import InputFileError, InvalidTrajectory
from simbridge.quoting import quoted, quoted_list, shell_quoted
from simbridge.robot import pose
from simbridge.robot.pose import Array, Counts
from simbridge.text import counted
from simbridge.trajectory.trajectory import Trajectory, described

if TYPE_CHECKING:
    from simbridge.trajectory.bag_reader import Bag

POSE_ARRAY, PATH = "geometry_msgs/msg/PoseArray", "nav_msgs/msg/Path"
# Messages with one pose; those without a stamp are at the times when they were recorded.
_STAMPLESS = (
    "geometry_msgs/msg/Pose",
    "geometry_msgs/msg/PoseWithCovariance",
    "geometry_msgs/msg/Transform",
)
_SINGLE = (
    *_STAMPLESS,
    "geometry_msgs/msg/PoseStamped",
    "geometry_msgs/msg/TransformStamped",
    "geometry_msgs/msg/PoseWithCovarianceStamped",
    "nav_msgs/msg/Odometry",
)
_POSES = (*_SINGLE, POSE_ARRAY, PATH)
_UNSTAMPED = SimpleNamespace(stamp=SimpleNamespace(sec=0, nanosec=0), frame_id="")
_TFS = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")
# Two stamps and a pose, 72 bytes each: some 720 MB, and hours at any rate a robot takes.
_MAX_POSES = 10_000_000


def bag_recording(
    bag: Bag, topic: str | None, frames: Sequence[str], rate: float | None
) -> tuple[Trajectory, str]:
    """The motion in a bag, and the frame of its poses; see `simbridge.trajectory.files.read_bag`."""
    if frames:
        found, name = _chained(bag, *frames), f"tf from {frames[0]} to {frames[1]}"
    else:
        found = _only(bag) if topic is None else _chosen(bag, topic)
        name = found.name
    stamps = np.frombuffer(found.stamps, dtype=np.int64)
    stampless = found.one_message and bool((stamps == stamps[0]).all())
    if rate is not None and not stampless and stamps.any():
        raise InputFileError(bag.path, f"the poses of {name} have stamps; omit --rate")
    if rate is None and stampless and len(stamps) > 1:
        reason = (
            f"the {len(stamps)} poses of the one message of {name} have no stamps: add --rate HZ"
        )
        raise InputFileError(bag.path, reason, field="stamp")
    if rate is not None:
        found.stamps = array(
            "q", (np.arange(len(stamps)) * 1e9 / rate).round().astype(np.int64).tolist()
        )
        found.recorded = found.stamps
    motion = _trajectory(bag.path, name, found)
    clock = "" if rate is not None or any(found.stamps) else ", times of recording"
    understood = name if frames else f"topic {name}{clock}"
    return described(motion, understood, found.frame), found.frame


class _Poses:
    """Poses in the order of their messages: stamps and times of recording in ns, and their common frame.

    `name` is that of the topic; `advice` is for the error when the frame changes.
    """

    def __init__(self, bag: Bag, name: str, advice: str = "") -> None:
        self._path, self.name, self._advice = bag.path, name, advice
        self.stamps, self.recorded, self.values = array("q"), array("q"), array("d")
        self.frame = ""
        self.one_message = False

    def add(self, number: int, recorded: int, header: Any, translation: Any, rotation: Any) -> None:
        """Add the pose of the message with this number."""
        frame = _bare(header.frame_id)
        if not self.stamps:
            self.frame = frame
        elif frame != self.frame:
            reason = (
                f"{self.name}, message {number} is in the frame {quoted(frame)}, those before in "
                f"{quoted(self.frame)}"
            )
            raise InputFileError(self._path, reason + self._advice, field="frame_id")
        self.stamps.append(header.stamp.sec * 1_000_000_000 + header.stamp.nanosec)
        self.recorded.append(recorded)
        self.values.extend((translation.x, translation.y, translation.z))
        self.values.extend((rotation.x, rotation.y, rotation.z, rotation.w))
        if len(self.stamps) > _MAX_POSES:
            raise InputFileError(
                self._path, f"{self.name} has more than {_MAX_POSES:,} poses; split the bag"
            )


def candidate_topics(bag: Bag) -> tuple[list[str], _Poses | None]:
    """The possible topics, most messages first; and the poses of tf, if they are all of one pair of frames."""
    messages: dict[str, int] = {}
    # Such as a goal: possible only where there is no other.
    stampless: dict[str, int] = {}
    for connection in bag.connections:
        if connection.msgtype in _POSES:
            counts = stampless if connection.msgtype in _STAMPLESS else messages
            counts[connection.topic] = counts.get(connection.topic, 0) + connection.msgcount
    found = None
    # All messages: a frame may appear at any time. Decoded poses are kept as long as there is only one pair of frames.
    for topic, number, when, message in bag.messages(kinds=_TFS):
        for child, header, translation, rotation in _poses(message):
            name = f"{topic}:{_bare(header.frame_id)}>{child}"
            messages[name] = messages.get(name, 0) + 1
            if len(messages) > 1:
                found = None
                continue
            found = found or _Poses(bag, topic)
            found.add(number, when, header, translation, rotation)
    messages = messages or stampless
    return sorted(messages, key=lambda name: -messages[name]), found


def _only(bag: Bag) -> _Poses:
    """The poses of the only topic of poses."""
    candidates, found = candidate_topics(bag)
    if len(candidates) != 1:
        found_text = (
            f"it has {len(candidates)} topics of poses" if candidates else "it has no poses"
        )
        raise _topic_error(bag, found_text, candidates)
    return _collected(bag, candidates[0].partition(":")[0]) if found is None else found


def _chosen(bag: Bag, topic: str) -> _Poses:
    """The poses of the given topic."""
    types = {c.topic: c.msgtype for c in bag.connections}
    name, _, child = topic.partition(":")
    single = types.get(name) in (*_SINGLE, PATH)
    if name not in types or (single and child) or (types[name] in _TFS and not child):
        raise _topic_error(bag, f"there is no {quoted(topic)} to read")
    if types[name] not in (*_POSES, *_TFS):
        raise _topic_error(bag, f"{quoted(topic)} has messages of {types[name]}, not poses")
    return _collected(bag, name, child)


# Characters of a topic's name: one that is to be copied is not shortened.
MAX_TOPIC = 1000


def _topic_error(bag: Bag, reason: str, candidates: list[str] | None = None) -> InputFileError:
    found = candidate_topics(bag)[0] if candidates is None else candidates
    if found:
        chained = (
            ". Frames of tf are chained by --frames PARENT CHILD"
            if any(">" in name for name in found)
            else ""
        )
        listed = (
            f"{reason}; choose one with --topic: {quoted_list(found, longest=MAX_TOPIC)}{chained}"
        )
        return InputFileError(bag.path, listed, field="topic")
    types = sorted({f"{c.topic} ({c.msgtype})" for c in bag.connections})
    held = f"it has {quoted_list(types, 8)}" if types else "it has no topics at all"
    needed = "Pose, PoseStamped, Odometry, TransformStamped, Path, PoseArray or tf are needed"
    return InputFileError(bag.path, f"{reason}: {needed}, and {held}", field="topic")


def _collected(bag: Bag, name: str, wanted: str = "") -> _Poses:
    """The poses of a topic: of tf those of one child frame ("child" or "parent>child"), of PoseArray those of an index,
    of Path those of its last message."""
    kind = next(c.msgtype for c in bag.connections if c.topic == name)
    parent, _, child = wanted.rpartition(">")
    found = _Poses(
        bag,
        name,
        f"; choose one with --topic {shell_quoted(f'{name}:parent>child')}" if wanted else "",
    )
    several, messages = False, 0
    for _, number, when, message in bag.messages(topic=name):
        messages += 1
        if kind == PATH:
            found = _Poses(bag, name)
        for end, header, translation, rotation in _poses(message):
            several |= end == "1" and kind == POSE_ARRAY
            if (end == _bare(child) or not wanted) and (
                not parent or _bare(header.frame_id) == _bare(parent)
            ):
                found.add(number, when, header, translation, rotation)
    if not found.stamps and wanted:
        what = "pose" if kind == POSE_ARRAY else "transform to the frame"
        raise _topic_error(bag, f"{name} has no {what} {quoted(wanted)}")
    if not found.stamps:
        raise InputFileError(bag.path, f"{name} has no messages", field="topic")
    found.one_message = kind == PATH or (kind == POSE_ARRAY and messages == 1 and not wanted)
    if several and messages > 1 and not wanted:
        flag = f"--topic {shell_quoted(f'{name}:0')}"
        reason = f"{name} has {messages} messages of several poses each; choose one of them: {flag}"
        raise InputFileError(bag.path, reason, field="topic")
    return found


def _poses(message: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Child frame of tf or index of a PoseArray (else ""), header, position and rotation of each pose of a message."""
    if hasattr(message, "transforms"):
        for each in message.transforms:
            yield (
                _bare(each.child_frame_id),
                each.header,
                each.transform.translation,
                each.transform.rotation,
            )
    elif hasattr(message, "poses"):
        for index, each in enumerate(message.poses):
            one, header = getattr(each, "pose", each), getattr(each, "header", message.header)
            if not header.frame_id:
                # The poses of a Path may leave their frames to it.
                header = SimpleNamespace(stamp=header.stamp, frame_id=message.header.frame_id)
            yield str(index), header, one.position, one.orientation
    else:
        # With a covariance, the pose is one level deeper.
        one = getattr(message, "transform", getattr(message, "pose", message))
        one = getattr(one, "pose", one)
        place, turn = (
            ("translation", "rotation")
            if hasattr(one, "translation")
            else ("position", "orientation")
        )
        yield "", getattr(message, "header", _UNSTAMPED), getattr(one, place), getattr(one, turn)


def _bare(frame: str) -> str:
    return frame.lstrip("/")


def _chained(bag: Bag, parent: str, child: str) -> _Poses:
    """The poses of a frame of tf in another."""
    links: dict[tuple[str, str], _Poses] = {}
    for topic, number, when, message in bag.messages(kinds=_TFS):
        for end, header, translation, rotation in _poses(message):
            key = (_bare(header.frame_id), end)
            links.setdefault(key, _Poses(bag, topic)).add(
                number, when, header, translation, rotation
            )
    if not links:
        raise _topic_error(bag, "it has no tf for --frames")
    edges = {}
    for key, found in links.items():
        stamps, first = np.unique(np.frombuffer(found.stamps, dtype=np.int64), return_index=True)
        edges[key] = stamps, np.frombuffer(found.values).reshape(-1, 7)[first]
    try:
        stamps, poses = chain(edges, _bare(parent), _bare(child))
    except ValueError as problem:
        raise InputFileError(bag.path, f"{problem}", field="frame_id") from None
    made = _Poses(bag, "tf")
    made.frame = _bare(parent)
    made.stamps = made.recorded = array("q", stamps.tolist())
    made.values = array("d", poses.ravel().tolist())
    return made


def _trajectory(path: Path, name: str, found: _Poses) -> Trajectory:
    stamps, recorded = (
        np.frombuffer(values, dtype=np.int64) for values in (found.stamps, found.recorded)
    )
    poses = np.frombuffer(found.values).reshape(-1, 7)
    bad = np.flatnonzero(~np.isfinite(poses).all(axis=1))
    if len(bad):
        raise InputFileError(
            path, f"{name}, message {bad[0] + 1} has a number that is not finite", field="pose"
        )
    times = stamps if stamps.any() else recorded
    order = np.argsort(times, kind="stable")
    late = int((times < np.maximum.accumulate(times)).sum())
    times, poses = times[order], poses[order]
    again = np.flatnonzero(np.diff(times) == 0) + 1
    differ = again[(np.abs(poses[again] - poses[again - 1]) > 1e-12).any(axis=1)]
    if len(differ):
        first, second = sorted((int(order[differ[0] - 1]) + 1, int(order[differ[0]]) + 1))
        at = float(times[differ[0]]) / 1e9
        advice = (
            "" if stamps.any() else "; they have no stamps: with --rate HZ they are evenly spaced"
        )
        reason = f"{name}, messages {first} and {second} have two poses for one instant, {at!r} s{advice}"
        raise InputFileError(path, reason, field="stamp")
    if late or len(again):
        notes = (
            [f"sorted by their stamps, as {counted(late, 'message')} came after later ones"]
            if late
            else []
        )
        notes += [f"{counted(len(again), 'repetition')} dropped"] if len(again) else []
        warnings.warn(f"{path}, {name}: {'; '.join(notes)}.", stacklevel=4)
        kept = np.ones(len(times), dtype=bool)
        kept[again] = False
        times, poses, order = times[kept], poses[kept], order[kept]
    try:
        return Trajectory((times - times[0]) / 1e9, poses, source=str(path), epoch_ns=int(times[0]))
    except InvalidTrajectory as fault:
        where = "" if fault.sample is None else f", message {int(order[fault.sample]) + 1}"
        raise InputFileError(path, f"{name}{where}: {fault.reason}", field=fault.field) from fault


# Of parent and child: stamps (T,) in ns, increasing, and the child's poses (T, 7) in the parent.
Edges = Mapping[tuple[str, str], tuple[Counts, Array]]


def chain(edges: Edges, parent: str, child: str) -> tuple[Counts, Array]:
    """The poses of `child` in `parent`.

    A transform with one sample is a constant, as those of /tf_static. The instants are those of the transform on the
    way with the most samples, as far as every other moving one is known; between samples these are interpolated.
    Stamps (K,) are in ns, poses (K, 7). ValueError, a sentence: the frames are not connected, or never all known.
    """
    path = _path(edges, parent, child)
    moving = [edges[key] for key, _ in path if len(edges[key][0]) > 1]
    stamps = max(moving, key=lambda edge: len(edge[0]), default=edges[path[0][0]])[0]
    begin = max((edge[0][0] for edge in moving), default=stamps[0])
    end = min((edge[0][-1] for edge in moving), default=stamps[-1])
    stamps = stamps[(stamps >= begin) & (stamps <= end)]
    if not len(stamps):
        raise ValueError(
            f"the transforms between {quoted(parent)} and {quoted(child)} are never known at the same time"
        )
    made = np.tile(pose.IDENTITY, (len(stamps), 1))
    for key, forward in path:
        own, poses = edges[key]
        # Differences in s: stamps in ns since 1970 are longer than a double.
        step = pose.interpolate((own - stamps[0]) / 1e9, poses, (stamps - stamps[0]) / 1e9)
        made = pose.compose(made, step if forward else pose.inverse(step))
    return stamps, made


def _path(edges: Edges, parent: str, child: str) -> list[tuple[tuple[str, str], bool]]:
    """The transforms on the way from one frame to another, each with whether it is used from parent to child."""
    neighbours: dict[str, list[tuple[str, tuple[str, str], bool]]] = {}
    for key in edges:
        neighbours.setdefault(key[0], []).append((key[1], key, True))
        neighbours.setdefault(key[1], []).append((key[0], key, False))
    ways: dict[str, list[tuple[tuple[str, str], bool]]] = {parent: []}
    waiting = [parent]
    for frame in waiting:
        for other, key, forward in neighbours.get(frame, ()):
            if other not in ways:
                ways[other] = [*ways[frame], (key, forward)]
                waiting.append(other)
    if child == parent or child not in ways:
        listed = quoted_list(sorted(neighbours))
        raise ValueError(
            f"tf does not connect the frames {quoted(parent)} and {quoted(child)} (--frames); its frames are {listed}"
        )
    return ways[child]
