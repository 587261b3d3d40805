"""Trajectories in ROS bags, read without ROS: ROS 1 (.bag), ROS 2 (a directory, .db3) and MCAP."""

from __future__ import annotations

import contextlib
import warnings
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from simbridge.errors import InputFileError, InvalidTrajectory
from simbridge.robot import pose
from simbridge.robot.files import open_file
from simbridge.robot.pose import Array, Counts
from simbridge.text import counted
from simbridge.trajectory.bag_reader import TF, Bag, Connection, open_bag
from simbridge.trajectory.samples import described
from simbridge.trajectory.trajectory import Trajectory

POSE = "geometry_msgs/msg/PoseStamped"
POSE_ARRAY, PATH = "geometry_msgs/msg/PoseArray", "nav_msgs/msg/Path"
# Messages with one stamped pose.
_SINGLE = (
    POSE,
    "geometry_msgs/msg/TransformStamped",
    "geometry_msgs/msg/PoseWithCovarianceStamped",
    "nav_msgs/msg/Odometry",
)
_TFS = (TF, "tf/msg/tfMessage")
_READABLE = (*_SINGLE, POSE_ARRAY, PATH, *_TFS)
_BEGINNINGS = {
    ".bag": ("a bag of ROS 1", b"#ROSBAG V"),
    ".mcap": ("an MCAP file", b"\x89MCAP"),
    ".db3": ("an SQLite file", b"SQLite format 3"),
}
# Two stamps and a pose, 72 bytes each: some 720 MB, and hours at any rate a robot takes.
_MAX_POSES = 10_000_000


def read_bag(
    path: str | Path, topic: str | None = None, *, frames: Sequence[str] = (), rate: float | None = None
) -> tuple[Trajectory, str]:
    """Read PoseStamped, PoseWithCovarianceStamped, Odometry, TransformStamped, Path, PoseArray or tf messages.

    Stamps are the messages' own; if they are all zero, the times of recording. They are kept in whole nanoseconds: the
    trajectory's `epoch_ns` is the first, and its times are the s since then, each the double nearest to its nanoseconds
    (seconds since 1970 as doubles would be rounded to 0.24 us). Messages out of order are sorted and repetitions
    dropped, with a warning that counts them. Poses are taken as they are. Of a Path the last message is the motion, as
    it grows while it is published; a PoseArray is a motion if it is the only message of its topic, and needs the rate.

    Args:
        path: A .bag, .db3 or .mcap file, or the directory of a ROS 2 bag.
        topic: The topic; `/tf:child` (or `/tf:parent>child`) for one transform of a tf topic, `/poses:2` for one pose
            of each PoseArray. None: the only one.
        frames: Parent and child instead of a topic: the transforms of tf between them are chained (see `chain.py`).
        rate: Samples per s of poses that have no stamps of their own.

    Returns:
        The trajectory, and the frame (`frame_id`) of its poses; "" if the messages leave it empty.

    Raises:
        InputFileError: The bag cannot be read, the topic is missing or ambiguous (the candidates are named), or a
            message cannot be used: a value that is not finite, another frame than before, two poses for one instant.
            The message is named by its number on the topic, counted from 1.
    """
    file = Path(path)
    with _opened(file) as reader:
        if frames:
            found = _chained(file, reader, *frames)
            name = f"tf from {frames[0]} to {frames[1]}"
        else:
            name, found = _only(file, reader) if topic is None else _chosen(file, reader, topic)
    stamps = np.frombuffer(found.stamps, dtype=np.int64)
    if rate is not None or (len(stamps) > 1 and found.one_message and (stamps == stamps[0]).all()):
        _set_rate(file, name, found, rate)
    motion = _trajectory(file, name, found)
    return described(motion, name if frames else f"topic {name}", found.frame), found.frame


def _set_rate(path: Path, name: str, found: _Poses, rate: float | None) -> None:
    """Stamps of the poses of one message, which have none."""
    stamps = np.frombuffer(found.stamps, dtype=np.int64)
    if not found.one_message or (stamps != stamps[0]).any():
        raise InputFileError(path, f"the poses of {name} have stamps; omit --rate")
    if rate is None:
        reason = f"the {len(stamps)} poses of the one message of {name} have no stamps: add --rate HZ"
        raise InputFileError(path, reason, field="stamp")
    found.stamps = array("q", (np.arange(len(stamps)) * 1e9 / rate).round().astype(np.int64).tolist())
    found.recorded = found.stamps


def _chained(path: Path, reader: Bag, parent: str, child: str) -> _Poses:
    """The poses of a frame of tf in another."""
    links: dict[tuple[str, str], _Poses] = {}
    for topic, number, when, message in _decoded(path, reader, [c for c in reader.connections if c.msgtype in _TFS]):
        for end, header, translation, rotation in _poses(message):
            key = (_bare(header.frame_id), end)
            links.setdefault(key, _Poses(path, topic)).add(number, when, header, translation, rotation)
    if not links:
        raise _topic_error(path, reader, "it has no tf for --frames")
    edges = {key: found.samples() for key, found in links.items()}
    try:
        stamps, poses = chain(edges, _bare(parent), _bare(child))
    except ValueError as problem:
        raise InputFileError(path, f"{problem}", field="frame_id") from None
    made = _Poses(path, "tf")
    made.frame = _bare(parent)
    made.stamps = made.recorded = array("q", stamps.tolist())
    made.values = array("d", poses.ravel().tolist())
    return made


def pose_topics(path: str | Path) -> list[str]:
    """The possible values of `topic` for this bag, most messages first.

    Raises:
        InputFileError: The bag cannot be read.
    """
    with _opened(Path(path)) as reader:
        return _candidates(Path(path), reader)[0]


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Bag]:
    """The open bag; any error of the reader becomes an InputFileError."""
    if not path.exists():
        raise InputFileError(path, "there is no such file")
    if path.is_dir() and not (path / "metadata.yaml").exists():
        raise InputFileError(path, "this is a directory without the metadata.yaml of a ROS 2 bag; name a file in it")
    if path.suffix.lower() in _BEGINNINGS and not path.is_dir():
        _check_beginning(path)
    try:
        with open_bag(path) as reader:
            yield reader
    except InputFileError:
        raise
    except Exception as problem:
        # A broken bag can fail anywhere in the reader: struct, sqlite, decompression.
        what = str(problem).strip() or type(problem).__name__
        raise InputFileError(path, f"cannot be read as a ROS bag: {what.rstrip('.')}") from problem


def _check_beginning(path: Path) -> None:
    with open_file(path) as file:
        first = file.read(16)
    if not first:
        raise InputFileError(path, "it is empty")
    what, beginning = _BEGINNINGS[path.suffix.lower()]
    if not first.startswith(beginning):
        raise InputFileError(path, f"it does not begin like {what}: another kind of file, or its start is missing")


class _Poses:
    """Poses in the order of their messages: stamps and times of recording in ns, and their common frame.

    Args:
        path: The bag, for messages.
        name: The topic.
        advice: For the error when the frame changes.
    """

    def __init__(self, path: Path, name: str, advice: str = "") -> None:
        self._path, self._name, self._advice = path, name, advice
        self.stamps, self.recorded, self.values = array("q"), array("q"), array("d")
        self.frame = ""
        self.one_message = False

    def samples(self) -> tuple[Counts, Array]:
        """Stamps (T,) in ns in increasing order, each once, and poses (T, 7)."""
        stamps, first = np.unique(np.frombuffer(self.stamps, dtype=np.int64), return_index=True)
        return stamps, np.frombuffer(self.values).reshape(-1, 7)[first]

    def add(self, number: int, recorded: int, header: Any, translation: Any, rotation: Any) -> None:
        """Add the pose of the message with this number."""
        frame = _bare(header.frame_id)
        if not self.stamps:
            self.frame = frame
        elif frame != self.frame:
            reason = f"{self._name}, message {number} is in the frame '{frame}', those before in '{self.frame}'"
            raise InputFileError(self._path, reason + self._advice, field="frame_id")
        self.stamps.append(header.stamp.sec * 1_000_000_000 + header.stamp.nanosec)
        self.recorded.append(recorded)
        self.values.extend(
            (translation.x, translation.y, translation.z, rotation.x, rotation.y, rotation.z, rotation.w)
        )
        if len(self.stamps) > _MAX_POSES:
            raise InputFileError(self._path, f"{self._name} has more than {_MAX_POSES:,} poses; split the bag")


def _candidates(path: Path, reader: Bag) -> tuple[list[str], _Poses | None]:
    """The possible topics, most messages first; and the poses of tf, if they are all of one pair of frames."""
    messages: dict[str, int] = {}
    for connection in reader.connections:
        if connection.msgtype in (*_SINGLE, POSE_ARRAY, PATH):
            messages[connection.topic] = messages.get(connection.topic, 0) + connection.msgcount
    found = None
    # All messages: a frame may appear at any time. Decoded poses are kept as long as there is only one pair of frames.
    for topic, number, when, message in _decoded(path, reader, [c for c in reader.connections if c.msgtype in _TFS]):
        for child, header, translation, rotation in _poses(message):
            name = f"{topic}:{_bare(header.frame_id)}>{child}"
            messages[name] = messages.get(name, 0) + 1
            if len(messages) > 1:
                found = None
                continue
            found = found or _Poses(path, topic)
            found.add(number, when, header, translation, rotation)
    return sorted(messages, key=lambda name: -messages[name]), found


def _only(path: Path, reader: Bag) -> tuple[str, _Poses]:
    """The only topic of poses, and its poses."""
    candidates, found = _candidates(path, reader)
    if len(candidates) != 1:
        found_text = f"it has {len(candidates)} topics of poses" if candidates else "it has no poses"
        raise _topic_error(path, reader, found_text, candidates)
    name = candidates[0].partition(":")[0]
    return name, _collected(path, reader, name) if found is None else found


def _chosen(path: Path, reader: Bag, topic: str) -> tuple[str, _Poses]:
    """The name of the given topic, for tf without the frames, and its poses."""
    types = {c.topic: c.msgtype for c in reader.connections}
    name, _, child = topic.partition(":")
    single = types.get(name) in (*_SINGLE, PATH)
    if name not in types or (single and child) or (types[name] in _TFS and not child):
        raise _topic_error(path, reader, f"there is no '{topic}' to read")
    if types[name] not in _READABLE:
        raise _topic_error(path, reader, f"'{topic}' has messages of {types[name]}, not poses")
    return name, _collected(path, reader, name, child)


def _topic_error(path: Path, reader: Bag, reason: str, candidates: list[str] | None = None) -> InputFileError:
    found = _candidates(path, reader)[0] if candidates is None else candidates
    if found:
        return InputFileError(path, f"{reason}; choose one with --topic: {', '.join(found)}", field="topic")
    types = sorted({f"{c.topic} ({c.msgtype})" for c in reader.connections})
    held = f"it has {', '.join(types[:8])}" if types else "it has no topics at all"
    needed = "PoseStamped, Odometry, TransformStamped, Path, PoseArray or tf are needed"
    return InputFileError(path, f"{reason}: {needed}, and {held}", field="topic")


def _decoded(path: Path, reader: Bag, connections: list[Connection]) -> Iterator[tuple[str, int, int, Any]]:
    """Topic, number on it, time of recording in ns, and message."""
    numbers: dict[str, int] = {}
    for connection, when, raw in reader.messages(connections):
        topic = connection.topic
        number = numbers[topic] = numbers.get(topic, 0) + 1
        try:
            message = reader.deserialize(raw, connection.msgtype)
        except Exception as problem:
            raise InputFileError(path, f"{topic}, message {number} cannot be decoded: {problem}") from problem
        yield topic, number, when, message


def _collected(path: Path, reader: Bag, name: str, wanted: str = "") -> _Poses:
    """The poses of a topic; of tf those of one child frame ("child" or "parent>child"), of PoseArray those of an index.

    Of Path those of its last message."""
    connections = [c for c in reader.connections if c.topic == name]
    kind = connections[0].msgtype
    parent, _, child = wanted.rpartition(">")
    found = _Poses(path, name, f"; choose one with --topic {name}:parent>child" if wanted else "")
    many, messages = 0, 0
    for _, number, when, message in _decoded(path, reader, connections):
        messages += 1
        if kind == PATH:
            found = _Poses(path, name)
        for end, header, translation, rotation in _poses(message):
            many += end == "1" and kind == POSE_ARRAY
            if (end == _bare(child) or not wanted) and (not parent or _bare(header.frame_id) == _bare(parent)):
                found.add(number, when, header, translation, rotation)
    if not found.stamps:
        if wanted:
            raise _topic_error(
                path,
                reader,
                f"{name} has no pose '{wanted}'"
                if kind == POSE_ARRAY
                else f"{name} has no transform to the frame '{wanted}'",
            )
        raise InputFileError(path, f"{name} has no messages", field="topic")
    found.one_message = kind == PATH or (kind == POSE_ARRAY and messages == 1 and not wanted)
    if many and messages > 1 and not wanted:
        reason = f"{name} has {messages} messages of several poses each; choose one of them: --topic {name}:0"
        raise InputFileError(path, reason, field="topic")
    return found


def _poses(message: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Child frame of tf or index of a PoseArray (else ""), header, position and rotation of each pose of a message."""
    if hasattr(message, "transforms"):
        for each in message.transforms:
            yield _bare(each.child_frame_id), each.header, each.transform.translation, each.transform.rotation
    elif hasattr(message, "poses"):
        for index, each in enumerate(message.poses):
            one = getattr(each, "pose", each)
            header = getattr(each, "header", message.header)
            # The poses of a Path may leave their frames to it.
            yield str(index), header if header.frame_id else _with_frame(header, message), one.position, one.orientation
    elif hasattr(message, "transform"):
        yield "", message.header, message.transform.translation, message.transform.rotation
    else:
        # With a covariance, the pose is one level deeper.
        one = getattr(message.pose, "pose", message.pose)
        yield "", message.header, one.position, one.orientation


def _with_frame(header: Any, message: Any) -> Any:
    return SimpleNamespace(stamp=header.stamp, frame_id=message.header.frame_id)


def _bare(frame: str) -> str:
    return frame.lstrip("/")


def _trajectory(path: Path, name: str, found: _Poses) -> Trajectory:
    stamps, recorded = (np.frombuffer(values, dtype=np.int64) for values in (found.stamps, found.recorded))
    poses = np.frombuffer(found.values).reshape(-1, 7)
    bad = np.flatnonzero(~np.isfinite(poses).all(axis=1))
    if len(bad):
        raise InputFileError(path, f"{name}, message {bad[0] + 1} has a number that is not finite", field="pose")
    times = stamps if stamps.any() else recorded
    order = np.argsort(times, kind="stable")
    late = int((times < np.maximum.accumulate(times)).sum())
    times, poses = times[order], poses[order]
    again = np.flatnonzero(np.diff(times) == 0) + 1
    differ = again[(np.abs(poses[again] - poses[again - 1]) > 1e-12).any(axis=1)]
    if len(differ):
        first, second = sorted((int(order[differ[0] - 1]) + 1, int(order[differ[0]]) + 1))
        reason = (
            f"{name}, messages {first} and {second} have two poses for one instant, {float(times[differ[0]]) / 1e9!r} s"
        )
        raise InputFileError(path, reason, field="stamp")
    if late or len(again):
        notes = [f"sorted by their stamps, as {counted(late, 'message')} came after later ones"] if late else []
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


Edges = Mapping[tuple[str, str], tuple[Counts, Array]]
"""Of parent and child: stamps (T,) in ns, increasing, and the child's poses (T, 7) in the parent."""


def chain(edges: Edges, parent: str, child: str) -> tuple[Counts, Array]:
    """The poses of `child` in `parent`.

    A transform with one sample is a constant, as those of /tf_static. The instants are those of the transform on the
    way with the most samples, as far as every other moving one is known; between samples these are interpolated.

    Returns:
        Stamps (K,) in ns, and poses (K, 7).

    Raises:
        ValueError: There is no way between the frames, or no instant at which all of it is known; a sentence.
    """
    path = _path(edges, parent, child)
    moving = [edges[key] for key, _ in path if len(edges[key][0]) > 1]
    stamps = max(moving, key=lambda edge: len(edge[0]), default=edges[path[0][0]])[0]
    begin = max((edge[0][0] for edge in moving), default=stamps[0])
    end = min((edge[0][-1] for edge in moving), default=stamps[-1])
    stamps = stamps[(stamps >= begin) & (stamps <= end)]
    if not len(stamps):
        raise ValueError(f"the transforms between '{parent}' and '{child}' are never known at the same time")
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
        listed = ", ".join(sorted(neighbours))
        raise ValueError(f"tf does not connect the frames '{parent}' and '{child}' (--frames); its frames are {listed}")
    return ways[child]
