"""Options that determine how a file of samples is read, and how its poses are placed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidChoice, InvalidParameter
from simbridge.resources import AnyPath
from simbridge.trajectory.gaps import Gaps
from simbridge.trajectory.tables.choice import Choice
from simbridge.trajectory.trajectory import UNIT_TOLERANCE, Trajectory

Frame = Literal["base_link", "base"]
Anchor = Literal["start"]
Column = Literal["actual_TCP_pose", "target_TCP_pose", "actual_q", "target_q", "joints"]


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file of samples and placing its poses.

    Attributes:
        frame: The frame of its poses: base_link, or the pendant's "base", half a turn about z from
            it.
        base_frame: What the file calls the arm's base, the one that `frame` names; None for its
            usual name.
        transform: Transform from the file's frame to base_link: x y z (m) qx qy qz qw,
            premultiplied; none by default.
        anchor: "start" moves the whole motion so that its first pose is a given one, such as the
            arm's home.
        topic: Which topic of a bag; `/tf:child` names the moving frame of a tf topic, `/poses:2`
            one of a PoseArray. Of motion capture the rigid body, of an npz file the array of pose
            matrices.
        frames: Parent and child in a bag's tf: the child's poses in the parent, transforms between
            them chained.
        column: What of a controller's recording (see `rtde_recording.py`), actual_TCP_pose by
            default; or "joints", those of the arm in a table or bag that has poses, too.
        columns: Which columns of a table are used and their units: "t[ns]=stamp,x=px" (see
            `tables/choice.py`).
        rate: Samples per s of a file without times.
        gaps: What is done about gaps of more than 10 sample periods (see `gaps.py`); None refuses
            them.
        reference: File of the true motion, of which the file's poses are noisy samples; it is read
            and placed like them. None measures errors from the file itself.
        reference_offset: Time to add to the stamps of the true motion, s, to bring them to the
            clock of the file; None if both have one clock.

    Raises:
        InvalidChoice, InvalidParameter: One of them is not valid, or they contradict each other.
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
    reference: AnyPath | None = None
    reference_offset: float | None = None
    base_frame: str | None = None

    def __post_init__(self) -> None:
        _ = self.choice
        if self.rate is not None and not 0.0 < self.rate < math.inf:
            raise InvalidParameter("rate", self.rate, "a positive number of samples per second")
        if self.reference_offset is not None:
            self._check_reference_offset(self.reference_offset)
        if self.frames:
            self._check_frames(self.frames)
        for name, value, known in (
            ("--gaps", self.gaps, Gaps),
            ("--from", self.column, Column),
            ("frame", self.frame, Frame),
            ("anchor", self.anchor, Anchor),
        ):
            if value is not None and value not in get_args(known):
                raise InvalidChoice(name, str(value), get_args(known))
        if self.base_frame is not None and (self.transform or self.anchor is not None):
            needed = "left out with --transform and --anchor: these also place the poses"
            raise InvalidParameter("base frame", self.base_frame, needed)
        if self.transform:
            self._check_transform()

    def _check_frames(self, frames: Sequence[str]) -> None:
        """Refuse frames of tf that are not two, or that a topic contradicts."""
        if len(frames) != 2:
            raise InvalidParameter("--frames", list(frames), "two tf frames, PARENT CHILD")
        if self.topic is not None:
            needed = f"left out with --topic {self.topic}: it selects a tf transform instead"
            raise InvalidParameter("--frames", " ".join(frames), needed)

    def _check_reference_offset(self, offset: float) -> None:
        """Refuse an offset that is not a number of seconds, or without a reference."""
        if not math.isfinite(offset):
            raise InvalidParameter("reference offset", offset, "a number of seconds")
        if self.reference is None:
            needed = "used with --reference FILE: it shifts the times of that file"
            raise InvalidParameter("reference offset", offset, needed)

    def _check_transform(self) -> None:
        """Refuse a transform that is not a pose, or that something else contradicts."""
        values = np.asarray(self.transform, dtype=float)
        is_pose = (
            values.shape == (7,)
            and bool(np.isfinite(values).all())
            and abs(np.linalg.norm(values[3:]) - 1.0) <= UNIT_TOLERANCE
        )
        if not is_pose:
            needed = "seven finite numbers x y z qx qy qz qw, the quaternion of unit length"
            raise InvalidParameter("transform", list(self.transform), needed)
        if self.frame == "base" or self.anchor is not None:
            other = "--frame base" if self.frame == "base" else "--anchor"
            needed = f"left out with {other}: that also places the poses"
            raise InvalidParameter("transform", list(self.transform), needed)

    @property
    def choice(self) -> Choice:
        """The choice of columns and units that `columns` describes."""
        return Choice.parse(self.columns)

    @property
    def plain(self) -> bool:
        """True if no option is set that applies to files only."""
        return self == ReadOptions(self.frame)

    @property
    def places(self) -> bool:
        """True if an option relates the poses' frame to the arm."""
        return bool(self.transform) or self.anchor is not None or self.frame != "base_link"

    def place(self, recorded: Trajectory, start: ArrayLike = ()) -> Trajectory:
        """Return the motion in base_link.

        Args:
            recorded: The motion in the file's frame.
            start: The pose (7,) to which `anchor="start"` moves the first one.
        """
        if self.anchor == "start":
            return recorded.anchor_at(start)
        if self.transform:
            return recorded.transform(self.transform)
        return recorded.from_pendant_base() if self.frame == "base" else recorded
