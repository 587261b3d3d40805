"""The log of a run: `log.mcap`, one sample a control period, written while the run goes on.

The file is MCAP (profile "ros2", messages in CDR, schemas as ros2msg), so Foxglove and PlotJuggler open it directly:

    /joint_states       sensor_msgs/JointState      measured position, velocity, effort
    /setpoint           sensor_msgs/JointState      position: where the joints should be
    /command            sensor_msgs/JointState      position: what was sent; the setpoint, except with feedforward
    /solution           sensor_msgs/JointState      position: the solver's joints
    /controller_target  sensor_msgs/JointState      the controller's own target: position, velocity
    /controller_target_acceleration  simbridge_msgs/JointAcceleration
    /target             geometry_msgs/PoseStamped   the pose given to the solver
    /status             simbridge_msgs/Status       all other numbers
    /live               simbridge_msgs/Live         of a live session: phase, input, causes

Every sample writes all of them, also where /solution equals /setpoint: a line through only those samples where they
differ would be misleading, and compression makes the copy nearly free. All have the sample's stamp in ns, as log time
and in their header; /status repeats it as a float64, so that it reads back to the last bit.

Samples go to the file in chunks of at most 0.25 s. A chunk that was written is in the system's hands and survives
`kill -9` (not a power cut), so a killed run loses less than its last half second. In memory are the open chunk and
MCAP's index of the earlier chunks: about 14 MB an hour.

A sample of six joints takes about 430 bytes, as its numbers are as noisy as an arm's, and 128 more for MCAP's index.

Read back, the samples are `LogColumns`; with their poses and errors `RunSamples`, the table that is exported.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from mcap.writer import IndexType, Writer
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter, LogWriteError
from simbridge.files.mapped_arrays import MappedArrays
from simbridge.recording import cdr
from simbridge.robot.pose import Array

CHUNK_DURATION = 0.25
# The two metadata records at the start of a log: the caller's own facts, and what a reader needs to know.
METADATA = "simbridge"
LAYOUT = "simbridge/layout"
LAYOUT_VERSION = "2"
# int32 seconds: the range of a ROS 2 stamp.
MAX_STAMP = 2.0**31
# zstd compresses an arm's noisy numbers by 1 % more in chunks of up to 128 KiB than in larger ones.
MAX_CHUNK = 2**17
# Bytes of an MCAP message before its data.
_MESSAGE_HEAD = 31
# Parts of the names of a table's columns.
_POSE = ("x_m", "y_m", "z_m", "qx", "qy", "qz", "qw")
_VECTOR = ("x", "y", "z")


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One control period of an arm of n joints."""

    index: int  # the control period's counter k
    stamp: float  # the due instant t_k in s, by the controller's clock since the start of the run; not negative
    plan_time: float  # time on the trajectory in s
    target: Array  # the pose (7,) given to the solver, base_link to TCP
    solution: Array  # the solver's joints (n,) in rad
    setpoint: Array  # where the joints (n,) should be, in rad
    command: Array  # the joints (n,) actually sent, in rad: the setpoint, except with feedforward
    position: Array  # measured joints (n,) in rad
    velocity: Array  # measured joint velocities (n,) in rad/s
    effort: (
        Array  # joint torques (n,) in N m, or currents in A where the controller gives only those
    )
    controller_target: Array  # the controller's own target joints (n,) in rad
    controller_target_velocity: (
        Array  # their velocities (n,) in rad/s; nan if it does not report them
    )
    controller_target_acceleration: (
        Array  # their accelerations (n,) in rad/s^2; nan if it does not report them
    )
    speed_scaling: float  # the controller's speed scaling, 0 to 1
    robot_mode: int  # the controller's robot mode
    safety_mode: int  # the controller's safety mode
    runtime_state: int  # the state of the controller's program
    limited: bool  # whether the limiter changed this setpoint
    host_monotonic: (
        float  # the host's monotonic clock in s: the only field that depends on the host
    )


@dataclass(frozen=True, slots=True, eq=False)
class LiveSample(Sample):
    """One control period of a live session; the fields are those of simbridge_msgs/Live (`cdr.LIVE`)."""

    period: int
    input: int
    now: float
    rate: float
    speed: float
    solver: float
    engagement: int
    order: int
    fate: int
    phase: int
    causes: Array


LIVE_FIELDS = tuple(
    name for name in LiveSample.__annotations__ if name not in Sample.__annotations__
)


@dataclass(frozen=True, eq=False)
class LogColumns:
    """A log as read-only arrays: each field of `Sample` over all T samples.

    Attributes:
        joint_names: Names of the n joints.
        frame_id: The frame in which the targets are given.
        metadata: What was given to the writer.
        complete: Whether the log was closed; False when the run was killed, still goes on, or its disk was full.
        live: Of a live session the fields of `LiveSample` by name, each (T,) or (T, 9); else empty.
        arrays: What holds the columns; its memory is given back where a part of a long log has been used.
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
    command: Array
    position: Array
    velocity: Array
    effort: Array
    controller_target: Array
    controller_target_velocity: Array
    controller_target_acceleration: Array
    speed_scaling: Array
    robot_mode: NDArray[np.int32]
    safety_mode: NDArray[np.int32]
    runtime_state: NDArray[np.int32]
    limited: NDArray[np.bool_]
    host_monotonic: Array
    live: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    arrays: MappedArrays = field(default_factory=MappedArrays, repr=False)

    def part(self, rows: slice) -> LogColumns:
        """The log of these samples."""
        live = {name: column[rows] for name, column in self.live.items()}
        return replace(
            self,
            live=live,
            **{each.name: getattr(self, each.name)[rows] for each in fields(Sample)},
        )


@dataclass(frozen=True, eq=False)
class RunSamples:
    """What is exported of a run with T samples of n joints.

    Attributes:
        errors: Translation (T, 3), m, and rotation vector (T, 3), rad, of the tracking error and its parts.
    """

    log: LogColumns
    poses: Mapping[
        str, Array
    ]  # reference, target, solution, setpoint and attained (T, 7) in base_link
    errors: Mapping[str, tuple[Array, Array]]
    origins: Array  # of the joints' frames (T, n, 3) in base_link, m
    prismatic: NDArray[np.bool_]  # which joints are prismatic (n,)
    effort_unit: str = (
        "N m"  # of revolute joints: "N m", or "A" where the controller reports currents
    )

    def unit(self, quantity: str, prismatic: bool) -> str:
        """The unit of a joint's position, velocity or effort, as at the end of a column's name."""
        if quantity == "effort":
            return "a" if self.effort_unit == "A" else "n" if prismatic else "n_m"
        return ("m" if prismatic else "rad") + ("_per_s" if quantity == "velocity" else "")

    def units(self, quantity: str) -> str:
        """That of all joints: "rad", or "rad_or_m" where there are joints of both kinds."""
        return "_or_".join(
            sorted({self.unit(quantity, each) for each in self.prismatic.tolist()}, reverse=True)
        )

    def table(self) -> dict[str, Array]:
        """Columns (T,) by name. Each name ends in its unit; components of quaternions, shares and flags have none.

        Stamps, poses, the tracking error and its parts, the joints, and the origin of each joint's frame in base_link.
        A link goes from one origin to the next, the last one to `attained`.
        """
        log = self.log
        columns: dict[str, Array] = {"stamp_s": log.stamp, "plan_time_s": log.plan_time}
        for name, values in self.poses.items():
            columns |= {f"{name}_{axis}": values[:, i] for i, axis in enumerate(_POSE)}
        for name, (translation, rotation) in self.errors.items():
            columns |= {
                f"{name}_error_{axis}_m": translation[:, i] for i, axis in enumerate(_VECTOR)
            }
            columns |= {
                f"{name}_error_r{axis}_rad": rotation[:, i] for i, axis in enumerate(_VECTOR)
            }
        joints = [*enumerate(zip(log.joint_names, self.prismatic.tolist(), strict=True))]
        for name in ("solution", "setpoint", "position", "velocity", "effort"):
            values = getattr(log, name)
            columns |= {
                f"{joint}_{name}_{self.unit(name, slides)}": values[:, i]
                for i, (joint, slides) in joints
            }
        for i, joint in enumerate(log.joint_names):
            columns |= {
                f"{joint}_origin_{axis}_m": self.origins[:, i, k] for k, axis in enumerate(_VECTOR)
            }
        columns["limited"] = log.limited.astype(float)
        columns["speed_scaling"] = log.speed_scaling
        columns["host_monotonic_s"] = log.host_monotonic
        return columns


Samples = Callable[[slice], RunSamples]
"""Reads these samples of a run, as far as there are any."""

ALL = slice(None)


class _LogFile:
    """The stream that MCAP's writer writes to: an unbuffered file that counts its bytes.

    Attributes:
        failure: The first failure; after it the file is not written any more.

    Raises:
        LogWriteError: The file cannot be opened, written or closed. After a failure `close` is silent.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: LogWriteError | None = None
        self._stored = 0
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise self._failed(error) from error

    def write(self, data: bytes) -> int:
        # A nearly full disk takes a part, and reports an error only for the rest.
        rest = memoryview(data)
        while rest:
            try:
                count = self._file.write(rest)
            except OSError as error:
                raise self._failed(error) from error
            self._stored += count
            rest = rest[count:]
        return len(data)

    def tell(self) -> int:
        return self._stored

    def flush(self) -> None:
        """Nothing to do: nothing is buffered."""

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            if self.failure is None:
                raise self._failed(error) from error

    def _failed(self, error: OSError) -> LogWriteError:
        self.failure = LogWriteError(self.path, self._stored, error.errno or errno.EIO)
        return self.failure


class LogWriter:
    """Writes the log of one run; a context manager.

    Args:
        path: The file; an existing one is replaced.
        joint_names: Names of the n joints, in the order of the samples' arrays.
        period: The control period in s, from which follows how many samples make a chunk.
        frame_id: The frame in which the targets are given.
        metadata: Facts about the run, written first, so that a killed run has them, too.
        live: Whether samples are `LiveSample`s.
        indexed: Whether other tools can jump to an instant; without it they read the file from its beginning, and a
            sample takes 128 bytes less.

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
        live: bool = False,
        indexed: bool = True,
    ) -> None:
        if not period > 0.0:
            raise InvalidParameter("period", period, "a positive number of seconds")
        if not joint_names:
            raise InvalidParameter("number of joints", 0, "at least 1")
        self._layouts = layouts(joint_names, frame_id, live=live)
        names = msgspec.json.encode(list(joint_names)).decode()
        self._closed = False
        self._file = _LogFile(Path(path))
        # The writer only needs `write`, `tell` and `flush` of a file.
        self._mcap = Writer(
            self._file,  # type: ignore[arg-type]
            # Chunks are ended by `flush`, between two samples.
            chunk_size=2 * MAX_CHUNK,
            index_types=IndexType.ALL if indexed else IndexType.METADATA,
        )
        try:
            self._mcap.start(profile="ros2", library="simbridge")
            self._mcap.add_metadata(METADATA, dict(metadata or {}))
            layout = {"version": LAYOUT_VERSION, "joint_names": names, "frame_id": frame_id}
            if live:
                layout["live"] = "true"
            self._mcap.add_metadata(LAYOUT, layout)
        except BaseException:
            self._file.close()
            raise
        schemas: dict[str, int] = {}
        for name in dict.fromkeys(layout.message_type for layout in self._layouts.values()):
            schemas[name] = self._mcap.register_schema(
                name, "ros2msg", cdr.DEFINITIONS[name].encode()
            )
        self._channels = [
            self._mcap.register_channel(topic, "cdr", schemas[layout.message_type])
            for topic, layout in self._layouts.items()
        ]
        size = sum(_MESSAGE_HEAD + len(layout.template) for layout in self._layouts.values())
        self._per_chunk = max(1, min(int(CHUNK_DURATION / period), MAX_CHUNK // size))
        self._count = 0

    def write(self, sample: Sample) -> None:
        """Take one sample; at least every 0.25 s they are handed to the system.

        Raises:
            InvalidParameter: The stamp is negative or not finite.
            ValueError: An array has not one number per joint, or the log is closed.
        """
        if self._closed:
            raise ValueError(f"the log {self._file.path} is closed")
        if self._file.failure is not None:
            raise self._file.failure
        if not 0.0 <= sample.stamp < MAX_STAMP:
            raise InvalidParameter(
                f"stamp of sample {sample.index}", sample.stamp, "from 0 to 2^31 s"
            )
        time = round(sample.stamp * 1e9)
        try:
            # All of them before the first is added: a sample that does not fit leaves nothing behind.
            messages = [
                layout.pack_record(divmod(time, 10**9), sample) for layout in self._layouts.values()
            ]
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"sample {sample.index} does not fit the log {self._file.path}: {error}"
            ) from error
        for channel, message in zip(self._channels, messages, strict=True):
            self._mcap.add_message(channel, time, message, time)
        self._count += 1
        if self._count % self._per_chunk == 0:
            self._mcap.flush()

    def close(self) -> None:
        """Write the open chunk and the index, and close the file. A second call does nothing."""
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

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except LogWriteError:
            # The error that ended the run matters more than the log that could not be closed after it.
            if error is None:
                raise


def layouts(
    joint_names: Sequence[str], frame_id: str, *, live: bool = False
) -> dict[str, cdr.Layout]:
    """The layout of each topic's messages, in the order in which a sample writes them, named as in `Sample`."""
    joints = partial(cdr.joint_state, frame_id, joint_names)
    topics = {
        "/joint_states": joints("position", "velocity", "effort"),
        "/setpoint": joints("setpoint"),
        "/command": joints("command"),
        "/solution": joints("solution"),
        "/controller_target": joints("controller_target", "controller_target_velocity"),
        "/controller_target_acceleration": cdr.joint_acceleration(
            frame_id, joint_names, "controller_target_acceleration"
        ),
        "/target": cdr.pose_stamped(frame_id, "target"),
        "/status": cdr.status(frame_id),
    }
    if live:
        topics["/live"] = cdr.live(frame_id)
    return topics
