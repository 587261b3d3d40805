"""The log of a run: `log.mcap`, one sample a control period, written while the run goes on.

The file is MCAP (profile "ros2", messages in CDR, schemas as ros2msg), so Foxglove and PlotJuggler plot it as it is:

    /joint_states       sensor_msgs/JointState      measured position, velocity, effort
    /setpoint           sensor_msgs/JointState      position: what was really sent
    /solution           sensor_msgs/JointState      position: what the solver said
    /controller_target  sensor_msgs/JointState      position: where the controller says it is going
    /target             geometry_msgs/PoseStamped   the pose given to the solver
    /status             simbridge_msgs/Status       all the other numbers

Every sample writes all six, also where /solution equals /setpoint: a line drawn through the rare samples at which they
differ would be a wrong picture, and compression makes the copy nearly free. All six carry the sample's stamp in ns, as
log time and in their header; /status repeats it as a float64, so that what is read is what was written to the last bit.

Samples go to the file in chunks of at most 0.25 s. A chunk that was written is in the system's hands and survives
`kill -9` (not a power cut), so a killed run loses less than its last half second. What is kept in memory is the open
chunk, and MCAP's index of the chunks before it: about 14 MB an hour.

A sample of six joints takes about 300 bytes, where its numbers are as noisy as an arm's, and 96 more for MCAP's index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import numpy as np
from mcap.records import Channel, Footer, McapRecord, Message, Metadata, Schema
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter, LogReadError, LogWriteError
from simbridge.recording import cdr
from simbridge.recording.log_file import LogFile, sound_records
from simbridge.recording.mcap_file import McapFile
from simbridge.recording.whole_samples import WholeSamples
from simbridge.robot.pose import Array

CHUNK_DURATION = 0.25
# The two metadata records at the start of a log: the user's own facts, and what a reader needs to know.
METADATA = "simbridge"
LAYOUT = "simbridge/layout"
LAYOUT_VERSION = "1"
# int32 seconds: the reach of a ROS 2 stamp.
LAST_STAMP = 2.0**31
# How many samples are gathered before they become arrays: bounds the memory of reading.
BLOCK = 2048


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """All that is known about one control period, for an arm of n joints.

    Attributes:
        index: The control period's counter k.
        stamp: The due instant t_k in s, by the controller's clock since the start of the run; not negative.
        plan_time: Time on the trajectory in s.
        target: The pose (7,) given to the solver, base_link to TCP.
        solution: The solver's joints (n,) in rad.
        setpoint: The joints (n,) really sent, in rad.
        position: Measured joints (n,) in rad.
        velocity: Measured joint velocities (n,) in rad/s.
        effort: Joint torques (n,) in N m, or currents in A where the controller gives only those.
        controller_target: The controller's own target joints (n,) in rad.
        speed_scaling: The controller's speed scaling, 0 to 1.
        robot_mode: The controller's robot mode.
        safety_mode: The controller's safety mode.
        runtime_state: The state of the controller's program.
        limited: Whether the limiter changed this setpoint.
        host_monotonic: The host's monotonic clock in s: the only field that depends on the host.
    """

    index: int
    stamp: float
    plan_time: float
    target: Array
    solution: Array
    setpoint: Array
    position: Array
    velocity: Array
    effort: Array
    controller_target: Array
    speed_scaling: float
    robot_mode: int
    safety_mode: int
    runtime_state: int
    limited: bool
    host_monotonic: float


@dataclass(frozen=True, eq=False)
class LogColumns:
    """A log as read-only arrays: each field of `Sample` over all T samples.

    Attributes:
        joint_names: Names of the n joints.
        frame_id: The frame in which the targets are given.
        metadata: What was given to the writer.
        complete: Whether the log was closed; False when the run was killed, still goes on, or its disk was full.
    """

    joint_names: tuple[str, ...]
    frame_id: str
    metadata: Mapping[str, str]
    complete: bool
    index: NDArray[np.int64]
    stamp: Array
    plan_time: Array
    target: Array
    solution: Array
    setpoint: Array
    position: Array
    velocity: Array
    effort: Array
    controller_target: Array
    speed_scaling: Array
    robot_mode: NDArray[np.int32]
    safety_mode: NDArray[np.int32]
    runtime_state: NDArray[np.int32]
    limited: NDArray[np.bool_]
    host_monotonic: Array


class LogWriter:
    """Writes the log of one run; a context manager.

    Args:
        path: The file; one that exists is replaced.
        joint_names: Names of the n joints, in the order of the samples' arrays.
        period: The control period in s, which decides how many samples make a chunk.
        frame_id: The frame in which the targets are given.
        metadata: Facts about the run, written first, so that also a killed run has them.
        indexed: Whether other tools may jump to an instant; without it they read the file from its beginning, and a
            sample takes 96 bytes less.

    Raises:
        LogWriteError: From every method: the file cannot be opened or written. Then no more samples are taken, and
            `close` is silent.
        InvalidParameter: The period is not positive, or there are no joints.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        joint_names: Sequence[str],
        period: float,
        frame_id: str = "base_link",
        metadata: Mapping[str, str] | None = None,
        indexed: bool = True,
    ) -> None:
        if not period > 0.0:
            raise InvalidParameter("period", period, "a positive number of seconds")
        if not joint_names:
            raise InvalidParameter("number of joints", 0, "at least 1")
        layouts = _layouts(joint_names, frame_id)
        names = msgspec.json.encode(list(joint_names)).decode()
        layout = {"version": LAYOUT_VERSION, "joint_names": names, "frame_id": frame_id}
        numbers = {name: number for number, name in enumerate(cdr.DEFINITIONS, start=1)}
        self._closed = False
        self._file = LogFile(Path(path))
        try:
            self._mcap = McapFile(
                self._file,
                profile="ros2",
                metadata={METADATA: dict(metadata or {}), LAYOUT: layout},
                schemas=[
                    Schema(numbers[name], definition.encode(), "ros2msg", name)
                    for name, definition in cdr.DEFINITIONS.items()
                ],
                channels=[
                    Channel(number, topic, "cdr", {}, numbers[layout.message_type])
                    for number, (topic, layout) in enumerate(layouts.items(), start=1)
                ],
                indexed=indexed,
            )
        except BaseException:
            self._file.close()
            raise
        self._whole = WholeSamples(dict(enumerate(layouts.values(), start=1)))
        # A chunk holds whole samples, and a known span of time.
        per_chunk = max(1, int(CHUNK_DURATION / period))
        self._content, self._columns = self._whole.blank(per_chunk)
        self._times = np.empty(per_chunk, np.uint64)
        self._count = 0

    def write(self, sample: Sample) -> None:
        """Takes one sample; every 0.25 s they are handed to the system.

        Raises:
            InvalidParameter: The stamp is negative or not finite.
            ValueError: An array has not one number a joint, or the log is closed.
        """
        if self._closed:
            raise ValueError(f"the log {self._file.path} is closed")
        if self._file.failure is not None:
            raise self._file.failure
        if not 0.0 <= sample.stamp < LAST_STAMP:
            raise InvalidParameter(f"stamp of sample {sample.index}", sample.stamp, "from 0 to 2^31 s")
        k = self._count
        try:
            for name, column in self._columns.items():
                value = getattr(sample, name)
                if column.ndim == 2 and np.shape(value) != column.shape[1:]:
                    raise ValueError(f"{name} has the shape {np.shape(value)}, not {column.shape[1]} items")
                column[k] = value
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"sample {sample.index} does not fit the log {self._file.path}: {error}") from error
        self._times[k] = round(sample.stamp * 1e9)
        # Only now does it count: a sample that cannot be packed leaves nothing behind.
        self._count += 1
        if self._count == len(self._times):
            self._write_chunk()

    def _write_chunk(self) -> None:
        count, self._count = self._count, 0
        content, times = self._content[:count], self._times[:count]
        self._whole.set_times(content, times)
        begins = np.arange(count, dtype=np.uint64) * np.uint64(self._whole.size)
        places = {channel: begins + np.uint64(place) for channel, place in self._whole.places.items()}
        self._mcap.write_chunk(content.tobytes(), times, places)

    def close(self) -> None:
        """Writes the open chunk and the index, and closes the file. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._file.failure is None:
                if self._count:
                    self._write_chunk()
                self._mcap.finish()
        finally:
            self._file.close()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except LogWriteError:
            # What ended the run says more than the log that could not be closed after it.
            if error is None:
                raise


def read_log(path: str | Path) -> LogColumns:
    """Reads a log, also one that is still being written or was cut off: all samples before the cut.

    Raises:
        LogReadError: The file is no log, or was cut off before the log began.
        OSError: The file cannot be opened or read.
    """
    path = Path(path)
    with path.open("rb") as file:
        decoder = _Decoder()
        records = sound_records(file, decoder.whole_chunk)
        metadata, joint_names, frame_id = _read_header(path, records)
        decoder.layouts = _layouts(joint_names, frame_id)
        try:
            for record in records:
                decoder.take(record)
            decoder.end_block()
        except ValueError as error:
            raise LogReadError(path, f"its messages are not those of a simbridge log: {error}.") from error
    # Column by column, each letting go of its pieces: the log is not held twice.
    columns = {
        field.name: np.concatenate([block.pop(field.name) for block in decoder.blocks]) for field in fields(Sample)
    }
    for column in columns.values():
        column.setflags(write=False)
    return LogColumns(
        joint_names=joint_names, frame_id=frame_id, metadata=metadata, complete=decoder.complete, **columns
    )


Block = dict[str, NDArray[Any]]


class _Decoder:
    """From records to arrays: a chunk at once where it can be, else message by message.

    Attributes:
        layouts: See `_layouts`; known once the log's beginning has been read.
        blocks: The samples so far, in order.
        complete: Whether the log's end has been seen.
    """

    def __init__(self) -> None:
        self.layouts: dict[str, cdr.Layout] = {}
        self.blocks: list[Block] = []
        self.complete = False
        self._topics: dict[int, str] = {}
        self._sample: dict[str, bytes] = {}
        self._rows: dict[str, list[bytes]] = {}
        self._whole: WholeSamples | None = None

    def whole_chunk(self, content: bytes) -> Block | None:
        """The samples of a chunk that holds whole ones and nothing else."""
        return None if self._whole is None or self._sample else self._whole.decode(content)

    def take(self, record: McapRecord | Block) -> None:
        """The next record, or the samples of the next chunk.

        Raises:
            ValueError: The messages are others than the log's beginning says.
        """
        if isinstance(record, dict):
            self.end_block()
            self.blocks.append(record)
        elif isinstance(record, Message):
            if record.channel_id in self._topics:
                self._take_message(self._topics[record.channel_id], record.data)
        elif isinstance(record, Channel):
            if record.topic in self.layouts:
                self._topics[record.id] = record.topic
                channels = {topic: number for number, topic in self._topics.items()}
                if channels.keys() == self.layouts.keys():
                    self._whole = WholeSamples({channels[topic]: layout for topic, layout in self.layouts.items()})
        elif isinstance(record, Footer):
            self.complete = True

    def _take_message(self, topic: str, message: bytes) -> None:
        self._sample[topic] = message
        # The messages of a sample come in one order. So a sample that lacks some is overwritten by the next one before
        # it could seem whole.
        if len(self._sample) == len(self.layouts):
            for name, data in self._sample.items():
                self._rows.setdefault(name, []).append(data)
            self._sample.clear()
            if len(self._rows["/status"]) == BLOCK:
                self.end_block()

    def end_block(self) -> None:
        """Make arrays of the messages so far.

        Raises:
            ValueError: One is of another size or kind than it should be.
        """
        if self._rows or not self.blocks:
            columns: Block = {}
            for topic, layout in self.layouts.items():
                columns |= layout.unpack(self._rows.pop(topic, []))
            self.blocks.append(columns)


def _layouts(joint_names: Sequence[str], frame_id: str) -> dict[str, cdr.Layout]:
    """Topic -> its messages, in the order in which a sample writes them; their numbers are named as in `Sample`."""
    return {
        "/joint_states": cdr.joint_state(frame_id, joint_names, "position", "velocity", "effort"),
        "/setpoint": cdr.joint_state(frame_id, joint_names, "setpoint"),
        "/solution": cdr.joint_state(frame_id, joint_names, "solution"),
        "/controller_target": cdr.joint_state(frame_id, joint_names, "controller_target"),
        "/target": cdr.pose_stamped(frame_id, "target"),
        "/status": cdr.status(frame_id),
    }


def _read_header(path: Path, records: Iterator[McapRecord | Block]) -> tuple[dict[str, str], tuple[str, ...], str]:
    """Metadata, joint names and frame from the metadata records at the start of a log."""
    header: dict[str, dict[str, str]] = {}
    for record in records:
        if isinstance(record, Metadata):
            header[record.name] = record.metadata
            if record.name == LAYOUT:
                break
    if METADATA not in header or LAYOUT not in header:
        raise LogReadError(path, "it is another kind of file, or the run was killed as it began.")
    layout = header[LAYOUT]
    if layout.get("version") != LAYOUT_VERSION:
        found = layout.get("version")
        raise LogReadError(path, f"it has layout {found}, and this simbridge reads layout {LAYOUT_VERSION}.")
    try:
        names = msgspec.json.decode(layout["joint_names"], type=tuple[str, ...])
        return header[METADATA], names, layout["frame_id"]
    except (KeyError, msgspec.MsgspecError) as error:
        raise LogReadError(path, f"what it says about its layout is damaged: {error}.") from error
