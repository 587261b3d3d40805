"""How a scenario is run: every choice that is not the scenario's, the robot's or the solver's own."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from simbridge import servoj
from simbridge.errors import InvalidParameter, UnknownName
from simbridge.scenario import OnLimits
from simbridge.trajectory import Hold
from simbridge.trajectory.files import Frame

Servo = Literal["stiff", "servoj"]

# A TCP farther away than this, in m, or turned by more than a full turn is in other units.
_FARTHEST_TCP = 10.0


@dataclass(frozen=True)
class Options:
    """How a scenario is run; every field is a flag of `simbridge run`.

    Attributes:
        tcp: Tool centre point in tool0: x y z (m) rx ry rz (rotation vector, rad).
        payload: Mass at the TCP that the controller is told of, kg.
        unmodelled_payload: Mass at the TCP that it is not told of, kg; simulation only.
        frame: "base_link", or "base" for poses as the pendant gives them.
        period: Control period, s; the robot's by default.
        hold: In place of the scenario's.
        on_limits: In place of the scenario's.
        speed_scale: 0.2 plays the trajectory at a fifth of its speed.
        max_tool_speed: m/s; the robot's by default.
        floor: Height of the floor in base_link, m; None for no floor.
        realtime: Pace simulated time by the wall clock.
        gui: Open the simulator's window.
        tolerance: Largest RMS of the tracking error: m and rad; None to judge nothing.
        plan: A run whose plan is replayed instead of solving anew.
        servo: How the simulated controller follows setpoints: "stiff", or "servoj", the model in `simbridge.servoj`.
        servo_lookahead: Of servoj, s.
        servo_gain: Of servoj, 1/s^2.

    Raises:
        InvalidParameter, UnknownName: One of them makes no sense.
    """

    tcp: Sequence[float] = ()
    payload: float = 0.0
    unmodelled_payload: float = 0.0
    frame: str = "base_link"
    period: float | None = None
    hold: Hold | None = None
    on_limits: OnLimits | None = None
    speed_scale: float = 1.0
    max_tool_speed: float | None = None
    floor: float | None = 0.0
    realtime: bool = False
    gui: bool = False
    tolerance: tuple[float, float] | None = None
    plan: str | os.PathLike[str] | None = None
    servo: Servo = "stiff"
    servo_lookahead: float = servoj.LOOKAHEAD
    servo_gain: float = servoj.GAIN

    def __post_init__(self) -> None:
        for kind, value, known in (
            ("frame", self.frame, get_args(Frame)),
            ("hold", self.hold, (None, *get_args(Hold))),
            ("servo", self.servo, get_args(Servo)),
            ("way with limits", self.on_limits, (None, *get_args(OnLimits))),
        ):
            if value not in known:
                raise UnknownName(kind, str(value), [name for name in known if name])
        self._check_numbers()

    def _check_numbers(self) -> None:
        if self.tcp and not (len(self.tcp) == 6 and all(map(math.isfinite, self.tcp))):
            raise InvalidParameter("TCP", list(self.tcp), "six finite numbers: x y z in m, rx ry rz in rad")
        if self.tcp and (math.hypot(*self.tcp[:3]) > _FARTHEST_TCP or math.hypot(*self.tcp[3:]) > 2.0 * math.pi + 1e-3):
            raise InvalidParameter(
                "TCP",
                list(self.tcp),
                f"within {_FARTHEST_TCP:g} m and a full turn of tool0, in m and rad (not mm, degrees)",
            )
        if self.period is not None and not 1e-4 <= self.period <= 1.0:
            raise InvalidParameter("period", f"{self.period} s", "from 0.0001 to 1 s")
        for name, value, needed in (
            ("speed scale", self.speed_scale, "a positive number"),
            ("largest tool speed", self.max_tool_speed, "a positive number of m/s"),
        ):
            if value is not None and not 0.0 < value < math.inf:
                raise InvalidParameter(name, value, needed)
        for name, value, needed in (
            ("payload", self.payload, "a mass in kg, not negative"),
            ("unmodelled payload", self.unmodelled_payload, "a mass in kg, not negative"),
            *(("tolerance", part, "two numbers, none of them negative") for part in self.tolerance or ()),
        ):
            if not 0.0 <= value < math.inf:
                raise InvalidParameter(name, value, needed)
        servoj.check_tuning(self.servo_lookahead, self.servo_gain)
        if self.floor is not None and not math.isfinite(self.floor):
            raise InvalidParameter("floor", self.floor, "a height in m, or none")
