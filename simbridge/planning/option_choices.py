"""The options as typed keyword arguments, for editors and type checkers.

`simbridge.run(..., feedforward="on")` and `simbridge.live(..., host="192.168.1.10")` take the
fields of `Options` by name. A type checker needs them written out: a test compares them with the
fields, whose help texts `help(simbridge.Options)` shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from simbridge.planning.link_choices import LinkName, RegisterRange
from simbridge.planning.options import OnPause, OnScaling, Servo, StartChoice, Switch
from simbridge.planning.plan import OnLimits
from simbridge.resources import AnyPath
from simbridge.robot.cell import Cell
from simbridge.robot.obstacles import Floor
from simbridge.trajectory.gaps import Gaps
from simbridge.trajectory.read_options import Anchor, Column, Frame
from simbridge.trajectory.sampling import Sampling
from simbridge.trajectory.trajectory import Hold


class SharedChoices(TypedDict, total=False):
    """The fields of `Options` that runs and live sessions have."""

    cell: Cell | AnyPath | None
    host: str | None
    rest_port: int | None
    tcp: Sequence[float]
    payload: float | None
    unmodelled_payload: float
    period: float | None
    max_tool_speed: float | None
    floor: Floor | None
    gui: bool
    kinematics: AnyPath | None
    servo: Servo | None
    servo_gain: float | None
    servo_lookahead: float | None
    plant: AnyPath | None
    base: str | None
    tip: str | None
    package: tuple[str, ...]
    xacro_arg: tuple[str, ...]
    feedforward: Switch | bool | None
    on_scaling: OnScaling
    on_pause: OnPause
    realtime_priority: int
    link: LinkName | None
    registers: RegisterRange
    label: str
    yes: bool


class OptionChoices(SharedChoices, total=False):
    """All fields of `Options`."""

    frame: Frame
    base_frame: str | None
    transform: tuple[float, ...]
    anchor: Anchor | None
    topic: str | None
    frames: tuple[str, ...]
    columns: str | None
    rate: float | None
    gaps: Gaps | None
    reference: AnyPath | None
    reference_offset: float | None
    column: Column | None
    sampling: Sampling | None
    hold: Hold | None
    on_limits: OnLimits | None
    start: StartChoice | None
    speed_scale: float
    realtime: bool
    tolerance: tuple[float, float] | None
    plan: AnyPath | None
    corner_tolerance: float | None
