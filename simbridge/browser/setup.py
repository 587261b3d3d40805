"""What a studio has set: from it follow the arm, the solver, the live session, the run, and the command line."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from simbridge.backends import SIMULATION
from simbridge.errors import UnknownName
from simbridge.ik.settings import SOLVERS, resolved
from simbridge.ik.solver import Solver
from simbridge.planning.options import Options
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.trajectory.trajectory import Sampling

SOLVER = "solver."
"""Names of a solver's settings begin with this, as their flags do."""
TARGET_RATE = 50.0
"""Targets a second while the goal is dragged, where none is chosen, Hz."""
# The options that the page changes, besides how targets are sampled.
_OPTIONS = (
    "period", "hold", "servo_gain", "servo_lookahead", "feedforward", "payload", "unmodelled_payload", "speed_scale",
)  # fmt: skip
_SAMPLING = {"rate": "sample_rate", "noise": "sample_noise"}
# The units of a flag's numbers, in SI.
_UNITS = {"sample_noise": (1e-3, math.radians(1.0))}


@dataclass(frozen=True)
class StudioSetup:
    """The arm, the solver, and the settings that differ from their defaults. In SI units and radians.

    Attributes:
        robot: A name or a file.
        solver: A name in `SOLVERS`.
        values: By the name of their control: "solver.kp", "servo_gain", "sample_rate", "link_lengths".
        base: The options that the page does not change: cell, host, TCP.
        backend: A name in `BACKENDS`.
    """

    robot: str = "ur10"
    solver: str = "forward-dynamics"
    values: Mapping[str, Any] = field(default_factory=dict)
    base: Options = field(default_factory=Options)
    backend: str = SIMULATION

    @staticmethod
    def of(robot: str | None, solver: str, options: Options, backend: str = SIMULATION) -> StudioSetup:
        """With the options of a run: those that the page changes become values of its controls.

        Args:
            robot: A name or a file; None for the cell's, or else ur10.

        Raises:
            UnknownName: There is no such solver.
        """
        if solver not in SOLVERS:
            raise UnknownName("solver", solver, SOLVERS)
        unset = Options(cell=options.cell)
        given = {name: getattr(options, name) for name in _OPTIONS if getattr(options, name) != getattr(unset, name)}
        base = replace(options, **{name: getattr(unset, name) for name in given})
        return StudioSetup(robot or options.robot, solver, given, base, backend)

    @property
    def simulated(self) -> bool:
        """Whether there is no controller."""
        return self.backend == SIMULATION

    def changed(self, name: str, value: Any) -> StudioSetup:
        """With another value; None stands for the default. One that makes no sense is refused."""
        values = {key: old for key, old in self.values.items() if key != name}
        made = replace(self, values=values if value is None else {**values, name: value})
        _ = made.solver_settings, made.options
        if name == "link_lengths":
            _ = made.arm
        return made

    def with_solver(self, solver: str) -> StudioSetup:
        """With another solver, at its defaults."""
        kept = {name: value for name, value in self.values.items() if not name.startswith(SOLVER)}
        made = replace(self, solver=solver, values=kept)
        _ = made.solver_settings
        return made

    @property
    def solver_values(self) -> dict[str, Any]:
        """The solver's settings that differ from their defaults."""
        return {name.removeprefix(SOLVER): v for name, v in self.values.items() if name.startswith(SOLVER)}

    @cached_property
    def solver_settings(self) -> Any:
        """The solver's settings."""
        return resolved(SOLVERS[self.solver], None, self.solver_values)

    @cached_property
    def options(self) -> Options:
        """The options of a run."""
        given = {name: value for name, value in self.values.items() if not name.startswith(SOLVER)}
        given.pop("link_lengths", None)
        sampling = {part: given.pop(name) for part, name in _SAMPLING.items() if name in given}
        if sampling:
            given["sampling"] = Sampling(**sampling)
        return replace(self.base, **given)

    @cached_property
    def bare_arm(self) -> Robot:
        """The arm without its tool and payload."""
        return load_robot(self.robot, lengths=self.values.get("link_lengths"), **self.options.links)

    @cached_property
    def arm(self) -> Robot:
        """The arm, with its tool and payload."""
        return self.options.equipped(self.bare_arm)

    def compiled(self) -> Solver:
        """The solver, made for the arm, after its first step, for which it is compiled.

        Raises:
            SimbridgeError: The settings make no sense for this arm.
        """
        solver: Solver = self.solver_settings.build(self.arm)
        solver.reset(self.arm.home)
        solver.step(tool_frame(self.arm, self.arm.home))
        return solver

    @property
    def shown_values(self) -> dict[str, Any]:
        """Of the solver's settings and of what differs from its default; a preset may set several of the former."""
        settings = self.solver_settings
        return {SOLVER + own.name: getattr(settings, own.name) for own in fields(settings)} | dict(self.values)

    def command(self, scenario: str) -> str:
        """The command line of a run of a scenario with these settings."""
        words = ["simbridge", "run", scenario, "--robot", self.robot, "--solver", self.solver]
        words += [] if self.simulated else ["--backend", self.backend]
        unset = replace(Options(cell=self.base.cell), cell=None)
        for own in fields(Options):
            value: Any = getattr(self.base, own.name)
            if value == getattr(unset, own.name) or own.name == "sampling":
                continue
            if own.name == "cell":
                value = value.source
            elif own.name == "package":
                value = ",".join(value)
            words += _flag(own.name, value)
        for name, value in self.values.items():
            units = _UNITS.get(name, ())
            words += _flag(name, [v / unit for v, unit in zip(value, units, strict=True)] if units else value)
        return shlex.join(words)


def _flag(name: str, value: Any) -> list[str]:
    several = value if isinstance(value, (tuple, list)) else (value,)
    texts = (f"{part:.10g}" if isinstance(part, float) else str(part) for part in several)
    return [f"--{name.replace('_', '-')}", *texts]
