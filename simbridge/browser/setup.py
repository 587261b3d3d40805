"""A studio's settings: arm, solver, session, run and command line follow from them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from simbridge.backends import SIMULATION, check_live_backend, is_simulated
from simbridge.errors import InvalidParameter, UnknownName
from simbridge.ik.callable_solver import build_solver, is_factory, load_function
from simbridge.ik.rivals.rival import installed_rivals
from simbridge.ik.settings import (
    ALL_SOLVERS,
    SOLVERS,
    FunctionParameters,
    change_settings,
    check_solver,
    is_function,
)
from simbridge.ik.solver import Solver
from simbridge.planning.option_field import flag_name
from simbridge.planning.options import Options
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.trajectory.sampling import Sampling

# Names of a solver's settings begin with this, as their flags do.
SOLVER_PREFIX = "solver."

# Targets a second while the goal is dragged, where none is chosen, Hz.
TARGET_RATE = 50.0

# The options that the page changes, besides how targets are sampled.
CHANGEABLE_OPTIONS = (
    "period",
    "hold",
    "servo_gain",
    "servo_lookahead",
    "feedforward",
    "payload",
    "unmodelled_payload",
    "speed_scale",
)
# The values that make the sampling of targets, by its fields.
SAMPLING_VALUES = {"rate": "sample_rate", "noise": "sample_noise"}

# The units of a flag's numbers, in SI: mm and degrees.
FLAG_UNITS = {"sample_noise": (1e-3, math.radians(1.0))}


@dataclass(frozen=True)
class StudioSetup:
    """The arm, the solver, and the settings that differ from their defaults, in SI units and rad.

    Attributes:
        robot: A name or a file.
        solver: A name in `ALL_SOLVERS`, or one of the custom solvers.
        custom_solvers: Solvers of the user's, as module:function, that may be chosen besides those
            in `ALL_SOLVERS`. They are named where the studio is started; a page cannot add any.
        values: The changed settings, by the names of their controls: "solver.kp", "servo_gain",
            "sample_rate", "link_lengths".
        base: The options that the page does not change: cell, host, TCP.
        backend: A name in `LIVE_BACKENDS`.
    """

    robot: str = "ur10"
    solver: str = "forward-dynamics"
    custom_solvers: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    base: Options = field(default_factory=Options)
    backend: str = SIMULATION

    @staticmethod
    def from_options(
        robot: str | None,
        solver: str,
        options: Options,
        backend: str = SIMULATION,
        *,
        second_solver: str = "",
    ) -> StudioSetup:
        """Return a setup with the options of a run.

        Options that have a control on the page become values of the controls.

        Args:
            robot: Name or file of the arm; None for the cell's, or else ur10.
            solver: A name in `ALL_SOLVERS`, or module:function.
            options: Options of a run.
            backend: A name in `LIVE_BACKENDS`.
            second_solver: The solver of the second arm, named in the same way; "" for none.

        Raises:
            UnknownName: There is no such solver or backend.
            InvalidParameter: The backend has no live sessions.
            MissingEngine: The physics engine of the simulation is not installed.
        """
        # Refuse a solver that is not known, or a function that cannot be loaded or called.
        names = [name for name in (solver, second_solver) if name]
        for name in names:
            check_solver(name)
            if is_function(name):
                is_factory(load_function(name), name)
        # The same function may be both solvers.
        custom_solvers = tuple(dict.fromkeys(filter(is_function, names)))
        check_live_backend(backend)
        if second_solver and not is_simulated(backend):
            needed = "left out on a controller, whose one arm follows one solver"
            raise InvalidParameter("second solver", second_solver, needed)

        # Move the values of the controls out of the options.
        defaults = Options(cell=options.cell)
        values = {}
        reset_options = {}
        for name in CHANGEABLE_OPTIONS:
            value = getattr(options, name)
            default = getattr(defaults, name)
            if value != default:
                values[name] = value
                reset_options[name] = default
        base = replace(options, **reset_options)
        return StudioSetup(
            robot or options.robot,
            solver,
            custom_solvers=custom_solvers,
            values=values,
            base=base,
            backend=backend,
        )

    @property
    def solver_names(self) -> tuple[str, ...]:
        """The solvers that may be chosen: simbridge's, those of installed libraries, the user's."""
        return (*SOLVERS, *installed_rivals(), *self.custom_solvers)

    @property
    def simulated(self) -> bool:
        """True if the arm is simulated, without a controller."""
        return is_simulated(self.backend)

    @property
    def engine(self) -> str:
        """The backend that plays scenarios and simulates the studio's arm."""
        return self.backend if self.simulated else SIMULATION

    def with_value(self, name: str, value: Any) -> StudioSetup:
        """Return a setup with another value of a control; None stands for the default.

        Raises:
            SimbridgeError: The value makes no sense.
        """
        values = {key: old for key, old in self.values.items() if key != name}
        if value is not None:
            values[name] = value
        setup = replace(self, values=values)

        setup.check()
        if name == "link_lengths":
            setup.options.equip(setup.bare_arm)
        return setup

    def with_solver(self, solver: str) -> StudioSetup:
        """Return a setup with another solver, at its defaults.

        Raises:
            UnknownName: The solver is not one of those that may be chosen.
            SimbridgeError: The options make no sense with it.
        """
        if solver not in self.solver_names:
            raise UnknownName("solver", solver, self.solver_names)
        values = {
            name: old for name, old in self.values.items() if not name.startswith(SOLVER_PREFIX)
        }
        setup = replace(self, solver=solver, values=values)
        setup.check()
        return setup

    def check(self) -> None:
        """Refuse values that make no sense.

        Raises:
            SimbridgeError: A setting of the solver or an option of the run makes no sense.
        """
        self._build_solver_settings()
        self._build_options()

    @property
    def solver_values(self) -> dict[str, Any]:
        """The solver's settings that differ from their defaults."""
        values = {}
        for name, value in self.values.items():
            if name.startswith(SOLVER_PREFIX):
                values[name.removeprefix(SOLVER_PREFIX)] = value
        return values

    @cached_property
    def solver_settings(self) -> Any:
        """The solver's settings."""
        return self._build_solver_settings()

    @cached_property
    def options(self) -> Options:
        """The options of a run."""
        return self._build_options()

    @cached_property
    def bare_arm(self) -> Robot:
        """The arm without its tool and payload."""
        return load_robot(self.robot, lengths=self.values.get("link_lengths"), **self.options.links)

    @cached_property
    def arm(self) -> Robot:
        """The arm, with its tool and payload."""
        return self.options.equip(self.bare_arm)

    def compile_solver(self) -> Solver:
        """Return the solver, made for the arm, after its first step, for which it is compiled.

        Raises:
            SimbridgeError: The settings make no sense for this arm.
        """
        solver = self.make_solver(self.arm)
        solver.reset(self.arm.home)
        solver.step(tool_frame(self.arm, self.arm.home))
        return solver

    def make_solver(self, arm: Robot) -> Solver:
        """Return the solver with its settings, made for an arm.

        Raises:
            SimbridgeError: The settings make no sense for this arm.
        """
        if is_function(self.solver):
            return build_solver(arm, self.solver)
        solver: Solver = self.solver_settings.build(arm)
        return solver

    @property
    def shown_values(self) -> dict[str, Any]:
        """The solver's settings, and what else differs from its default, by their controls.

        Of the former there may be more than were changed: a preset sets several.
        """
        settings = self.solver_settings
        values = {}
        for item in fields(settings):
            values[SOLVER_PREFIX + item.name] = getattr(settings, item.name)
        return values | dict(self.values)

    def command(self, scenario: str) -> str:
        """Return the command line of a run of a scenario with these settings."""
        arguments = ["simbridge", "run", scenario, "--robot", self.robot, "--solver", self.solver]
        if self.backend != SIMULATION:
            arguments += ["--backend", self.backend]
        arguments += self._base_flags()
        for name, value in self.values.items():
            units = FLAG_UNITS.get(name)
            if units is not None:
                value = [number / unit for number, unit in zip(value, units, strict=True)]
            arguments += _flag_arguments(name.replace("_", "-"), value)
        return shlex.join(arguments)

    def _build_solver_settings(self) -> Any:
        if is_function(self.solver):
            return FunctionParameters()
        return change_settings(ALL_SOLVERS[self.solver], None, self.solver_values)

    def _build_options(self) -> Options:
        """Return the base options with the values of the controls."""
        # The controls of the solver and of the arm belong to other settings.
        options: dict[str, Any] = {}
        for name, value in self.values.items():
            if not name.startswith(SOLVER_PREFIX) and name != "link_lengths":
                options[name] = value

        # The controls of the sampling are one option together.
        sampling = {}
        for part, name in SAMPLING_VALUES.items():
            if name in options:
                sampling[part] = options.pop(name)
        if sampling:
            options["sampling"] = Sampling(**sampling)
        return replace(self.base, **options)

    def _base_flags(self) -> list[str]:
        """Return the flags of the options that the page does not change."""
        defaults = replace(Options(cell=self.base.cell), cell=None)
        arguments = []
        for option in fields(Options):
            value: Any = getattr(self.base, option.name)
            if value == getattr(defaults, option.name) or option.name == "sampling":
                continue
            if option.name == "cell":
                value = value.source
            elif option.name == "package":
                value = ",".join(value)
            occurrences = value if option.metadata.get("repeats") else (value,)
            for occurrence in occurrences:
                arguments += _flag_arguments(flag_name(option), occurrence)
        return arguments


def _flag_arguments(flag: str, value: Any) -> list[str]:
    """Return a flag and its value, or values, as arguments of a command line."""
    arguments = [f"--{flag}"]
    parts = value if isinstance(value, (tuple, list)) else (value,)
    for part in parts:
        arguments.append(f"{part:.10g}" if isinstance(part, float) else str(part))
    return arguments
