"""The commands that plan: run and check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import arg

from simbridge.cli.flags.planned import Planned
from simbridge.cli.flags.reading import given, optional

if TYPE_CHECKING:
    from simbridge.planning.options import Options


@dataclass
class Run(Planned):
    """Run a scenario and measure how well it was tracked."""

    backend: str = "pybullet"
    """What takes the setpoints: pybullet, ursim, or real (a UR arm)."""
    host: Annotated[str | None, given("ADDRESS", "the cell's; 127.0.0.1 for ursim")] = None
    """Address of the controller, for ursim and real."""
    on_scaling: Literal["follow", "stop"] = "follow"
    """When the controller scales the speed: follow it in time, or stop the arm."""
    yes: bool = False
    """Let the cell file answer where a person is asked before a real arm moves; it must match the controller."""
    realtime_priority: int = 0
    """Of the process that sends setpoints to a controller, 1 to 99; 0 for the ordinary scheduler."""
    unmodelled_payload: float = 0.0
    """Mass at the TCP that the controller is not told of, kg (simulation only)."""
    out: Annotated[str | None, given("DIR", "one under runs/")] = None
    """The run directory to make."""
    repeat: Annotated[int, arg(metavar="N")] = 1
    """Run the plan so many times, into DIR/01, DIR/02 and so on, with ISO 9283-style figures of all in DIR."""
    servo: Literal["stiff", "servoj"] = "stiff"
    """How the simulated controller follows setpoints: stiff, or a model of UR's servoj (not validated on a robot)."""
    servo_lookahead: float = 0.03
    """Of servoj: by how much a steady motion is trailed, 0.03 to 0.2 s."""
    servo_gain: float = 2000.0
    """Of servoj: stiffness, 100 to 2000."""
    realtime: bool = False
    """Pace the simulation by the wall clock."""
    gui: bool = False
    """Open the simulator's window (paced by the wall clock)."""
    tolerance: Annotated[tuple[float, float] | None, optional(2), given("MM DEG", "judge nothing")] = None
    """Largest RMS of the tracking error, mm and degrees; beyond it the exit status is 1."""

    def options(self) -> Options:
        import math

        judged = None if self.tolerance is None else (self.tolerance[0] * 1e-3, math.radians(self.tolerance[1]))
        return replace(
            super().options(),
            unmodelled_payload=self.unmodelled_payload,
            servo=self.servo,
            servo_lookahead=self.servo_lookahead,
            servo_gain=self.servo_gain,
            host=self.host,
            on_scaling=self.on_scaling,
            yes=self.yes,
            realtime_priority=self.realtime_priority,
            realtime=self.realtime,
            gui=self.gui,
            tolerance=judged,
        )


@dataclass
class Check(Planned):
    """Plan a scenario and check it; move nothing."""
