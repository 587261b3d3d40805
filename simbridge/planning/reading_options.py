"""Options of a run that say how a file of poses is read and where its poses are."""

from __future__ import annotations

from dataclasses import dataclass, fields

from simbridge.planning.option_field import option
from simbridge.trajectory.files import Anchor, Column, Frame, ReadOptions
from simbridge.trajectory.gaps import Gaps

PLANNED = ("run", "check", "inspect")
"""The commands that read a trajectory."""


@dataclass(frozen=True)
class ReadingOptions:
    """The fields of `ReadOptions` as flags; the help text of each describes it."""

    frame: Frame = option(
        "base_link",
        "Frame of the poses: base_link (x forward, as in ROS) or base (as on the pendant).",
        commands=PLANNED,
        table="scenario",
    )
    transform: tuple[float, ...] = option(
        (),
        "Transform from the frame of a file's poses to base_link: x y z in m, and a quaternion.",
        "X Y Z QX QY QZ QW",
        "none",
        commands=PLANNED,
        table="scenario",
    )
    anchor: Anchor | None = option(
        None,
        "start: move the motion of a file so that it begins at the tool's pose at home.",
        commands=PLANNED,
        unset="none",
        table="scenario",
    )
    topic: str | None = option(
        None,
        "Topic of a ROS bag (/tf:child for a frame of tf, /poses:2 for one of a PoseArray), or rigid body of motion "
        "capture.",
        "NAME",
        "the only one",
        commands=PLANNED,
        table="scenario",
    )
    frames: tuple[str, ...] = option(
        (),
        "Two frames of tf in a bag: the poses of CHILD in PARENT, transforms between them chained.",
        "PARENT CHILD",
        "none",
        commands=PLANNED,
        table="scenario",
    )
    columns: str | None = option(
        None,
        "Columns and units of a table: t[ns]=stamp,x=px,qw=q_0 or x[mm]; by name, or by number from 1.",
        "ROLE[UNIT]=NAME,...",
        "by their names",
        commands=PLANNED,
        table="scenario",
    )
    rate: float | None = option(
        None, "Samples per second of a file without times.", "HZ", "none", commands=PLANNED, table="scenario"
    )
    gaps: Gaps | None = option(
        None,
        "Gaps of more than 10 sample periods in a file: refuse, hold the last pose, interpolate, or split (only the "
        "longest piece).",
        unset="refuse",
        commands=PLANNED,
        table="scenario",
    )
    column: Column | None = option(
        None,
        "What of a controller's recording is the trajectory (CSV with UR's field names).",
        unset="actual_TCP_pose",
        commands=PLANNED,
        flag="from",
        table="scenario",
    )

    @property
    def reading(self) -> ReadOptions:
        """How a file of poses is read, and in which frame its poses are."""
        return ReadOptions(**{own.name: getattr(self, own.name) for own in fields(ReadOptions)})
