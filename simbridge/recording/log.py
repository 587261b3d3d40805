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
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import IO, Any, cast

import msgspec
import numpy as np
from mcap.records import Channel, Footer, McapRecord, Message, Metadata
from mcap.writer import CompressionType, Writer
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter, LogReadError, LogWriteError
from simbridge.pose import Array
from simbridge.recording import cdr
from simbridge.recording.log_file import LogFile, sound_records

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
    ) -> None:
        if not period > 0.0:
            raise InvalidParameter("period", period, "a positive number of seconds")
        if not joint_names:
            raise InvalidParameter("number of joints", 0, "at least 1")
        self._samples_per_chunk = max(1, int(CHUNK_DURATION / period))
        self._samples_in_chunk = 0
        self._layouts = _layouts(joint_names, frame_id)
        self._closed = False
        self._file = LogFile(Path(path))
        # Chunks are closed by the count of samples, below: a chunk holds whole samples, and a known span of time.
        self._mcap = Writer(cast(IO[bytes], self._file), chunk_size=2**62, compression=CompressionType.LZ4)
        try:
            self._mcap.start(profile="ros2")
            self._mcap.add_metadata(METADATA, dict(metadata or {}))
            names = msgspec.json.encode(list(joint_names)).decode()
            layout = {"version": LAYOUT_VERSION, "joint_names": names, "frame_id": frame_id}
            self._mcap.add_metadata(LAYOUT, layout)
        except BaseException:
            self._file.close()
            raise
        schemas = {
            name: self._mcap.register_schema(name, "ros2msg", definition.encode())
            for name, definition in cdr.DEFINITIONS.items()
        }
        self._channels = [
            self._mcap.register_channel(topic, "cdr", schemas[layout.message_type])
            for topic, layout in self._layouts.items()
        ]

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
        time = round(sample.stamp * 1e9)
        # All are packed before the first goes out: a sample that cannot be packed leaves nothing behind.
        messages = self._pack(sample, divmod(time, 10**9))
        for channel, message in zip(self._channels, messages, strict=True):
            self._mcap.add_message(channel, log_time=time, data=message, publish_time=time)
        self._samples_in_chunk += 1
        if self._samples_in_chunk == self._samples_per_chunk:
            self._samples_in_chunk = 0
            self._mcap.flush()

    def close(self) -> None:
        """Writes the open chunk and the index, and closes the file. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._file.failure is None:
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

    def _pack(self, sample: Sample, time: tuple[int, int]) -> tuple[bytes, ...]:
        joint_states, setpoint, solution, controller_target, target, status = self._layouts.values()
        try:
            return (
                joint_states.pack(time, sample.position.tolist(), sample.velocity.tolist(), sample.effort.tolist()),
                setpoint.pack(time, sample.setpoint.tolist()),
                solution.pack(time, sample.solution.tolist()),
                controller_target.pack(time, sample.controller_target.tolist()),
                target.pack(time, sample.target.tolist()),
                status.pack(
                    time,
                    (
                        sample.index,
                        sample.stamp,
                        sample.plan_time,
                        sample.speed_scaling,
                        sample.host_monotonic,
                        sample.robot_mode,
                        sample.safety_mode,
                        sample.runtime_state,
                        sample.limited,
                    ),
                ),
            )
        except struct.error as error:
            raise ValueError(f"sample {sample.index} does not fit the log {self._file.path}: {error}") from error


def read_log(path: str | Path) -> LogColumns:
    """Reads a log, also one that is still being written or was cut off: all samples before the cut.

    Raises:
        LogReadError: The file is no log, or was cut off before the log began.
        OSError: The file cannot be opened or read.
    """
    path = Path(path)
    with path.open("rb") as file:
        records = sound_records(file)
        metadata, joint_names, frame_id = _read_header(path, records)
        layouts = _layouts(joint_names, frame_id)
        topics: dict[int, str] = {}
        sample: dict[str, bytes] = {}
        rows: dict[str, list[bytes]] = {topic: [] for topic in layouts}
        blocks: list[dict[str, NDArray[Any]]] = []
        complete = False
        try:
            for record in records:
                if isinstance(record, Message) and record.channel_id in topics:
                    sample[topics[record.channel_id]] = record.data
                    # The messages of a sample come in one order. So a sample that lacks some is overwritten by the
                    # next one before it could seem whole.
                    if len(sample) == len(layouts):
                        for topic, message in sample.items():
                            rows[topic].append(message)
                        sample.clear()
                        if len(rows["/status"]) == BLOCK:
                            blocks.append(_unpack(layouts, rows))
                elif isinstance(record, Channel) and record.topic in layouts:
                    topics[record.id] = record.topic
                elif isinstance(record, Footer):
                    complete = True
            blocks.append(_unpack(layouts, rows))
        except ValueError as error:
            raise LogReadError(path, f"its messages are not those of a simbridge log: {error}.") from error
    columns = {field.name: np.concatenate([block[field.name] for block in blocks]) for field in fields(Sample)}
    for column in columns.values():
        column.setflags(write=False)
    return LogColumns(joint_names=joint_names, frame_id=frame_id, metadata=metadata, complete=complete, **columns)


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


def _unpack(layouts: Mapping[str, cdr.Layout], rows: dict[str, list[bytes]]) -> dict[str, NDArray[Any]]:
    """The rows as arrays under the names of `Sample`; empties the rows."""
    columns: dict[str, NDArray[Any]] = {}
    for topic, layout in layouts.items():
        columns |= layout.unpack(rows[topic])
        rows[topic].clear()
    return columns


def _read_header(path: Path, records: Iterator[McapRecord]) -> tuple[dict[str, str], tuple[str, ...], str]:
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
