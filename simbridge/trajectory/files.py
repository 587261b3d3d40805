"""Trajectory files of every kind: text (TUM, CSV) and ROS bags (ROS 1, ROS 2, MCAP)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InputFileError, InvalidParameter, UnknownName
from simbridge.trajectory.text import read_text
from simbridge.trajectory.trajectory import Trajectory

Frame = Literal["base_link", "base"]
Anchor = Literal["start"]

# What rosbags reads; a directory is a ROS 2 bag.
BAGS = (".bag", ".db3", ".mcap")


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read and where its poses belong.

    Attributes:
        frame: Where its poses are given: in base_link, or in the pendant's "base", half a turn about z from it.
        transform: From the file's frame to base_link: x y z (m) qx qy qz qw, premultiplied; none by default.
        anchor: "start" moves the whole motion so that its first pose is a given one, the arm's at home.
        topic: Which topic of a bag; `/tf:child` names the moving frame of a tf topic.

    Raises:
        UnknownName, InvalidParameter: One of them makes no sense, or they contradict each other.
    """

    frame: Frame = "base_link"
    transform: tuple[float, ...] = ()
    anchor: Anchor | None = None
    topic: str | None = None

    def __post_init__(self) -> None:
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
                needed = f"left out with {other}, which says already where the poses belong"
                raise InvalidParameter("transform", list(self.transform), needed)

    @property
    def plain(self) -> bool:
        """Whether nothing is asked for that only a file can have."""
        return not self.transform and self.anchor is None and self.topic is None

    def placed(self, recorded: Trajectory, start: ArrayLike) -> Trajectory:
        """The motion in base_link.

        Args:
            recorded: As the file gives it.
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
    return file.exists() and (file.suffix.lower() in BAGS or file.is_dir())


def read_recording(path: str | Path, topic: str | None = None) -> tuple[Trajectory, str]:
    """Read a file of any kind, its poses as they stand there.

    Returns:
        The trajectory, and the frame in which the file says that its poses are; "" where it does not say.

    Raises:
        InputFileError: As `read_trajectory`.
    """
    file = Path(path)
    if file.suffix.lower() in BAGS or file.is_dir():
        from simbridge.trajectory.bags import read_bag

        return read_bag(file, topic)
    if topic is not None:
        raise InputFileError(path, f"a text file has no topic '{topic}'; leave --topic out")
    return read_text(path), ""


def read_trajectory(path: str | Path, frame: Frame = "base_link", topic: str | None = None) -> Trajectory:
    """Read a file of poses: TUM, CSV, or a ROS bag.

    In a text file a line is one sample: `t x y z qx qy qz qw` or `t x y z rx ry rz`, in s, m and unit quaternions or
    rotation vectors in rad, separated by commas, semicolons or blanks. `#` begins a comment, empty lines do not count.
    A header line with the names of the columns may come first: then they may be in another order and among others, and
    may name units (`x [mm]`, `t_ns`, `rx (deg)`). A comment that consists of exactly those names counts as a header as
    well. ROS 1 bags, ROS 2 bags (a directory, .db3 or .mcap) are described at `simbridge.trajectory.bags.read_bag`.

    Args:
        path: The file (text in UTF-8), or the directory of a ROS 2 bag.
        frame: Where its poses are given: in base_link, or in the pendant's "base", half a turn about z from it.
        topic: Which topic of a bag, when there are several.

    Returns:
        The trajectory in base_link.

    Raises:
        InputFileError: The file cannot be read or is no trajectory; with line and column, or topic and message.
        UnknownName: The frame is neither.
    """
    if frame not in get_args(Frame):
        raise UnknownName("frame", frame, get_args(Frame))
    trajectory, _ = read_recording(path, topic)
    return trajectory.from_pendant_base() if frame == "base" else trajectory


def check_frame(path: str | Path, said: str, reading: ReadOptions) -> None:
    """Refuse poses that the file says are in a frame which nothing relates to base_link.

    Raises:
        InputFileError: Names the frame, and what to do.
    """
    if reading.transform or reading.anchor is not None or said.lstrip("/") in ("", reading.frame):
        return
    known = "--frame base, if that is the pendant's; else " if said.lstrip("/") == "base" else ""
    raise InputFileError(
        path,
        f"its poses are in the frame '{said}', not in {reading.frame}. Say where that is with {known}--transform x y z "
        "qx qy qz qw (0 0 0 0 0 0 1 if it is base_link by another name), or move the motion to the arm with --anchor "
        "start.",
        field="frame_id",
    )
