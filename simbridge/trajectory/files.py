"""Trajectory files of every kind: text, motion capture, Parquet, npz, and ROS bags (ROS 1, ROS 2, MCAP)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InputFileError, InvalidParameter, UnknownName
from simbridge.robot.files import MAX_SAMPLES_TEXT, read_text
from simbridge.trajectory.arrays import read_arrays
from simbridge.trajectory.columns import Choice
from simbridge.trajectory.gaps import Gaps
from simbridge.trajectory.samples import Recording, recording_of
from simbridge.trajectory.text import parse_text
from simbridge.trajectory.trajectory import Trajectory

Frame = Literal["base_link", "base"]
Anchor = Literal["start"]
Column = Literal["actual_TCP_pose", "target_TCP_pose", "actual_q", "target_q"]

# What rosbags reads; a directory is a ROS 2 bag.
BAGS = (".bag", ".db3", ".mcap")
ARRAYS = (".parquet", ".npz")


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read and how its poses are placed.

    Attributes:
        frame: The frame of its poses: base_link, or the pendant's "base", half a turn about z from it.
        transform: From the file's frame to base_link: x y z (m) qx qy qz qw, premultiplied; none by default.
        anchor: "start" moves the whole motion so that its first pose is a given one, such as the arm's home.
        topic: Which topic of a bag; `/tf:child` names the moving frame of a tf topic, `/poses:2` one of a PoseArray.
            Of motion capture the rigid body.
        frames: Parent and child in a bag's tf: the child's poses in the parent, transforms between them chained.
        column: What of a controller's recording (see `rtde_recording.py`); actual_TCP_pose by default.
        columns: Which columns of a table are used and their units: "t[ns]=stamp,x=px" (see `columns.Choice`).
        rate: Samples per s of a file without times.
        gaps: What is done about gaps of more than 10 sample periods (see `gaps.py`); None refuses them.

    Raises:
        UnknownName, InvalidParameter: One of them is not valid, or they contradict each other.
    """

    frame: Frame = "base_link"
    transform: tuple[float, ...] = ()
    anchor: Anchor | None = None
    topic: str | None = None
    column: Column | None = None
    columns: str | None = None
    rate: float | None = None
    frames: tuple[str, ...] = ()
    gaps: Gaps | None = None

    def __post_init__(self) -> None:
        _ = Choice.of(self.columns)
        if self.rate is not None and not 0.0 < self.rate < math.inf:
            raise InvalidParameter("rate", self.rate, "a positive number of samples per second")
        if self.frames and (len(self.frames) != 2 or self.topic is not None):
            raise InvalidParameter("choice of frames", list(self.frames), "PARENT and CHILD of tf, without --topic")
        if self.gaps not in (None, *get_args(Gaps)):
            raise UnknownName("treatment of gaps", str(self.gaps), get_args(Gaps))
        if self.column not in (None, *get_args(Column)):
            raise UnknownName("column", str(self.column), get_args(Column))
        if self.frame not in get_args(Frame):
            raise UnknownName("frame", self.frame, get_args(Frame))
        if self.anchor not in (None, *get_args(Anchor)):
            raise UnknownName("anchor", str(self.anchor), get_args(Anchor))
        if self.transform:
            values = np.asarray(self.transform, dtype=float)
            if values.shape != (7,) or not np.isfinite(values).all() or abs(np.linalg.norm(values[3:]) - 1.0) > 1e-3:
                needed = "seven finite numbers x y z qx qy qz qw, the quaternion of unit length"
                raise InvalidParameter("transform", list(self.transform), needed)
            if self.frame == "base" or self.anchor is not None:
                other = "--frame base" if self.frame == "base" else "--anchor"
                needed = f"left out with {other}, which also places the poses"
                raise InvalidParameter("transform", list(self.transform), needed)

    @property
    def plain(self) -> bool:
        """Whether no option is set that applies to files only."""
        return self == ReadOptions(self.frame)

    def placed(self, recorded: Trajectory, start: ArrayLike = ()) -> Trajectory:
        """The motion in base_link.

        Args:
            recorded: As in the file.
            start: The pose (7,) to which `anchor="start"` moves the first one.
        """
        if self.anchor == "start":
            return recorded.anchored(start)
        if self.transform:
            return recorded.transformed(self.transform)
        return recorded.from_pendant_base() if self.frame == "base" else recorded


def is_bag(path: str | Path) -> bool:
    """Whether a path names a ROS bag, by its suffix or as a directory."""
    file = Path(path)
    return file.suffix.lower() in BAGS or file.is_dir()


def _read_bag(path: Path, reading: ReadOptions) -> Recording:
    from simbridge.trajectory.bags import read_bag  # start-up time: rosbags takes 0.1 s to import

    if reading.columns is not None:
        raise InputFileError(path, "a bag has no columns; omit --columns")
    return Recording(*read_bag(path, reading.topic, frames=reading.frames, rate=reading.rate))


def _read_arrays(path: Path, reading: ReadOptions) -> Recording:
    if reading.topic is not None or reading.frames:
        raise InputFileError(path, "a table has no topics; omit --topic and --frames")
    return recording_of(path, read_arrays(path, Choice.of(reading.columns), reading.rate), reading.rate)


def _read_text(path: Path, reading: ReadOptions) -> Recording:
    if reading.frames:
        raise InputFileError(path, "a text file has no tf; omit --frames")
    text, choice = read_text(path, MAX_SAMPLES_TEXT), Choice.of(reading.columns)
    return recording_of(path, parse_text(path, text, choice, reading.rate, reading.topic), reading.rate)


FORMATS: tuple[tuple[Callable[[Path], bool], Callable[[Path, ReadOptions], Recording]], ...] = (
    (is_bag, _read_bag),
    (lambda path: path.suffix.lower() in ARRAYS, _read_arrays),
    (lambda path: True, _read_text),
)
"""Every format: whether a file has it, and its reader, as `read_recording`. The first format that fits is used."""


def read_recording(path: str | Path, reading: ReadOptions | None = None) -> Recording:
    """Read a file of any format, with its poses in the file's own frame; gaps are left as they are.

    Raises:
        InputFileError: As `read_trajectory`.
    """
    file = Path(path)
    read = next(read for has_format, read in FORMATS if has_format(file))
    return read(file, reading or ReadOptions())


def read_trajectory(
    path: str | Path,
    frame: Frame = "base_link",
    topic: str | None = None,
    *,
    columns: str | None = None,
    rate: float | None = None,
) -> Trajectory:
    """Read a file of poses: TUM, CSV, motion capture, Parquet, npz, or a ROS bag (docs/trajectories.md).

    In a text file each line is a sample: `t x y z qx qy qz qw` or `t x y z rx ry rz`, in s, m and unit quaternions or
    rotation vectors in rad, separated by commas, semicolons or spaces. `#` begins a comment; empty lines are skipped. A
    header line may name the columns: then their order is free, others may be among them, and they may name units
    (`x [mm]`, `t_ns`, `rx (deg)`); for units that nothing names see `samples.py`. A comment that consists of exactly
    those names is a header, too. For bags of ROS 1 and ROS 2 see `simbridge.trajectory.bags.read_bag`. Gaps are left.

    Args:
        path: The file (text in UTF-8), or the directory of a ROS 2 bag.
        frame: The frame of its poses: base_link, or the pendant's "base", half a turn about z from it.
        topic: Which topic of a bag, when there are several.
        columns, rate: As in `ReadOptions`.

    Returns:
        The trajectory in base_link.

    Raises:
        InputFileError: The file cannot be read or is no trajectory; with line and column, or topic and message.
        UnknownName: The frame is neither.
    """
    reading = ReadOptions(frame, topic=topic, columns=columns, rate=rate)
    return reading.placed(read_recording(path, reading).trajectory)


def check_frame(path: str | Path, frame: str, reading: ReadOptions) -> None:
    """Refuse poses in a frame whose placement relative to base_link is unknown.

    Raises:
        InputFileError: Names the frame, and what to do.
    """
    if reading.transform or reading.anchor is not None or frame.lstrip("/") in ("", reading.frame):
        return
    known = "--frame base, if that is the pendant's; else " if frame.lstrip("/") == "base" else ""
    raise InputFileError(
        path,
        f"its poses are in the frame '{frame}', not in {reading.frame}. Place it with {known}--transform x y z qx qy "
        "qz qw (0 0 0 0 0 0 1 if it is base_link by another name), or move the motion to the arm with --anchor start.",
        field="frame_id",
    )
