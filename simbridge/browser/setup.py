"""What a studio has set: from it follow the arm, the solver, the live session, the run, and the command line."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from simbridge.errors import InvalidParameter
from simbridge.ik.settings import SOLVERS, resolved
from simbridge.ik.solver import Solver
from simbridge.planning.options import Options
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.trajectory.sampling import Sampling

SOLVER = "solver."
"""Names of a solver's settings begin with this, as their flags do."""
TARGET_RATE = 50.0
"""Targets a second while the goal is dragged, where none is chosen, Hz."""


@dataclass(frozen=True)
class StudioSetup:
    """The arm, the solver, and the settings that differ from their defaults. In SI units and radians.

    Attributes:
        robot: A name or a file.
        solver: A name in `SOLVERS`.
        values: By the name of their control: "solver.kp", "servo_gain", "sample_rate", "link_lengths".
        base: What the command line gave: cell, host, and options that the page does not change.
    """

    robot: str = "ur10"
    solver: str = "forward-dynamics"
    values: Mapping[str, Any] = field(default_factory=dict)
    base: Options = field(default_factory=Options)

    def changed(self, name: str, value: Any) -> StudioSetup:
        """With another value; None stands for the default.

        Raises:
            InvalidParameter, UnknownName: The value makes no sense.
        """
        values = {key: old for key, old in self.values.items() if key != name}
        made = replace(self, values=values if value is None else {**values, name: value})
        _ = made.solver_settings, made.options
        if name == "link_lengths":
            _ = made.arm
        return made

    def with_solver(self, solver: str) -> StudioSetup:
        """With another solver, at its defaults.

        Raises:
            UnknownName: There is no such solver.
        """
        kept = {name: value for name, value in self.values.items() if not name.startswith(SOLVER)}
        made = replace(self, solver=solver, values=kept)
        _ = made.solver_settings
        return made

    @cached_property
    def solver_settings(self) -> Any:
        """The solver's settings.

        Raises:
            InvalidParameter: One of them makes no sense.
        """
        given = {name.removeprefix(SOLVER): value for name, value in self.values.items() if name.startswith(SOLVER)}
        return resolved(SOLVERS[self.solver], None, given)

    @cached_property
    def options(self) -> Options:
        """The options of a run.

        Raises:
            InvalidParameter, UnknownName: One of them makes no sense.
        """
        given = {name: value for name, value in self.values.items() if not name.startswith(SOLVER)}
        given.pop("link_lengths", None)
        sampling = {part: given.pop(name) for part, name in _SAMPLING.items() if name in given}
        if sampling:
            given["sampling"] = Sampling(**sampling)
        return replace(self.base, **given)

    @cached_property
    def arm(self) -> Robot:
        """The arm, with its tool and payload.

        Raises:
            SimbridgeError: It cannot be loaded.
        """
        return self.options.equipped(load_robot(self.robot, lengths=self.values.get("link_lengths")))

    def build_solver(self) -> Solver:
        """The solver, made for the arm; what it needs is compiled at its first step.

        Raises:
            SimbridgeError: The settings make no sense for this arm.
        """
        solver: Solver = self.solver_settings.build(self.arm)
        return solver

    def compiled(self) -> Solver:
        """The solver after its first step, for which it is compiled.

        Raises:
            SimbridgeError: See `build_solver`.
        """
        solver = self.build_solver()
        solver.reset(self.arm.home)
        solver.step(tool_frame(self.arm, self.arm.home))
        return solver

    @property
    def target_rate(self) -> float:
        """How often the goal becomes the session's target, Hz."""
        rate: float = self.values.get("sample_rate", TARGET_RATE)
        return rate

    @property
    def noise(self) -> tuple[float, float]:
        """Standard deviation of the targets along and about each axis, m and rad."""
        noise: tuple[float, float] = self.values.get("sample_noise", (0.0, 0.0))
        return noise

    def command(self, scenario: str) -> str:
        """The command line of a run of a scenario with these settings."""
        words = ["simbridge", "run", scenario, "--robot", self.robot, "--solver", self.solver]
        for name, value in self.values.items():
            several = value if isinstance(value, (tuple, list)) else (value,)
            scales = _SCALES.get(name, ())
            several = [v / scale for v, scale in zip(several, scales, strict=True)] if scales else several
            words += [f"--{name.replace('_', '-')}", *(_text(part) for part in several)]
        return shlex.join(words)


_SAMPLING = {"rate": "sample_rate", "noise": "sample_noise"}
_SCALES = {"sample_noise": (1e-3, math.radians(1.0))}


def _text(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def numbers_of(text: str) -> tuple[float, ...]:
    """Numbers separated by blanks or commas.

    Raises:
        InvalidParameter: It is something else.
    """
    try:
        return tuple(float(part) for part in text.replace(",", " ").split())
    except ValueError:
        raise InvalidParameter("value", text, "numbers, separated by blanks") from None
