"""What a studio has set (arm, solver, session, run and command line follow from it), and the controls that change it.

Each control is plain data, and follows from the registry that defines its setting.
"""

from __future__ import annotations

import ast
import inspect
import math
import shlex
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin, get_type_hints

from simbridge.backends import SIMULATION
from simbridge.errors import InvalidParameter, UnknownName
from simbridge.ik.checks import POSITIVE, WHOLE, choice_of
from simbridge.ik.parameters import setting
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
Kind = Literal["number", "whole", "numbers", "choice"]
ITERATE = "iterate."
"""Names of the controls of `IterateSettings` begin with this."""
# What may be changed of the arm on a controller, and what may not be of the solver.
_ON_CONTROLLERS = ("servo_gain", "servo_lookahead")
_SIMULATED = ("solver.stiffness", "solver.bias", "solver.bias_term")


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
    def of(
        robot: str | None, solver: str, options: Options, backend: str = SIMULATION
    ) -> StudioSetup:
        """With the options of a run: those that the page changes become values of its controls.

        Args:
            robot: A name or a file; None for the cell's, or else ur10.

        Raises:
            UnknownName: There is no such solver.
        """
        if solver not in SOLVERS:
            raise UnknownName("solver", solver, SOLVERS)
        unset = Options(cell=options.cell)
        given = {
            name: getattr(options, name)
            for name in _OPTIONS
            if getattr(options, name) != getattr(unset, name)
        }
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
        return {
            name.removeprefix(SOLVER): v
            for name, v in self.values.items()
            if name.startswith(SOLVER)
        }

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
        return {SOLVER + own.name: getattr(settings, own.name) for own in fields(settings)} | dict(
            self.values
        )

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
            words += _flag(
                name, [v / unit for v, unit in zip(value, units, strict=True)] if units else value
            )
        return shlex.join(words)


def _flag(name: str, value: Any) -> list[str]:
    several = value if isinstance(value, (tuple, list)) else (value,)
    texts = (f"{part:.10g}" if isinstance(part, float) else str(part) for part in several)
    return [f"--{name.replace('_', '-')}", *texts]


@dataclass(frozen=True)
class IterateSettings:
    """When iterations end, and how they are shown."""

    threshold: float = setting(1e-3, POSITIVE, unit="mm", scale=1e-3)
    """The arm halts within this distance of the goal; a rotation within as many mrad."""
    iteration_limit: int = setting(500, WHOLE)
    """A run that has not come so near ends after so many iterations."""
    frame_time: float = setting(0.06, POSITIVE, slider=(0.01, 1.0), unit="ms", scale=1e-3)
    """How long a posture is shown."""
    slow_in_slow_out: Literal["on", "off"] = setting("on", choice_of("on", "off"))
    """on: the first and the last postures are shown longer, the ones between shorter."""

    def __post_init__(self) -> None:
        for own in fields(self):
            own.metadata["check"](own.name, getattr(self, own.name))


@dataclass(frozen=True)
class Control:
    """A setting that the page shows.

    Attributes:
        name: In `StudioSetup.values`.
        label: As its flag is called, with its unit.
        kind: Of its value; several numbers are typed as text.
        default: What it is unless it is changed, in SI units; None where that depends on the rest.
        help: What it means, its range, and its default.
        choices: For a choice.
        blank: What the empty choice stands for; it is shown so.
        slider: The least and the largest value of a slider, in SI units; None for a field.
        scale: The shown unit in SI; for several numbers one each.
        step: Of the slider, in the shown unit; None for a fine one.
        locked: Why it cannot be changed here; "" if it can.
    """

    name: str
    label: str
    kind: Kind
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    blank: str = ""
    slider: tuple[float, float] | None = None
    scale: tuple[float, ...] = (1.0,)
    step: float | None = None
    locked: str = ""

    def shown(self, value: Any) -> Any:
        """A value in the units of the page; several numbers as text."""
        if self.kind == "choice":
            return str(value) or self.blank
        if self.kind == "numbers":
            several = tuple(value or ())
            return " ".join(
                f"{v / unit:.6g}" for v, unit in zip(several, self._units(several), strict=True)
            )
        value = value[0] if isinstance(value, tuple) else value
        return round(value) if self.kind == "whole" else value / self.scale[0]

    def given(self, value: Any) -> Any:
        """A value of the page in SI units; a text that holds no numbers is an InvalidParameter."""
        if self.kind == "choice":
            return "" if value == self.blank else value
        if self.kind == "whole":
            return int(value)
        if self.kind == "numbers":
            try:
                several = [float(part) for part in value.replace(",", " ").split()]
            except ValueError:
                raise InvalidParameter("value", value, "numbers, separated by blanks") from None
            return tuple(v * unit for v, unit in zip(several, self._units(several), strict=True))
        number = float(value) * self.scale[0]
        return (number,) if isinstance(self.default, tuple) else number

    def _units(self, several: Any) -> tuple[float, ...]:
        return self.scale if len(self.scale) == len(several) else self.scale[:1] * len(several)


def controls_of(
    setup: StudioSetup, arm: Robot
) -> tuple[list[Control], list[Control], list[Control]]:
    """Those of a setup's solver, of the arm as it is now, and, without a controller, of iterations."""
    of_solver, of_arm = solver_controls(setup.solver), arm_controls(arm, setup.base)
    if setup.simulated:
        return of_solver, of_arm, settings_controls(IterateSettings, ITERATE)

    def locked(control: Control) -> Control:
        return replace(control, locked="In simulation only.")

    of_solver = [locked(one) if one.name in _SIMULATED else one for one in of_solver]
    return of_solver, [one if one.name in _ON_CONTROLLERS else locked(one) for one in of_arm], []


def solver_controls(solver: str) -> list[Control]:
    """Those of a solver's settings."""
    return settings_controls(SOLVERS[solver], SOLVER)


def settings_controls(kind: type, prefix: str) -> list[Control]:
    """Those of the fields of a class of settings (see `ik.parameters.setting`), whose names get a prefix."""
    hints, helps = get_type_hints(kind), _help_of(kind)
    found = []
    for own in fields(kind):
        about, scale = own.metadata, own.metadata.get("scale", 1.0)
        default = about.get("default", own.default)
        choices = about.get("choices") or (
            get_args(hints[own.name]) if get_origin(hints[own.name]) is Literal else ()
        )
        slider = about.get("slider")
        if choices:
            form: Kind = "choice"
        elif isinstance(default, tuple) and not (slider and len(default) == 1):
            form = "numbers"
        else:
            form = "whole" if isinstance(default, int) else "number"
        words = [helps.get(own.name, "")]
        if check := about.get("check"):
            words.append(f"Range: {check.needed}.")
        blank, unit = about.get("unset", ""), about.get("unit", "")
        words.append(f"Default: {blank or _plain(default, scale)}.")
        label = own.name.replace("_", " ") + f", {unit}" * bool(unit)
        shown = tuple(dict.fromkeys(choice or blank for choice in choices))
        found.append(
            Control(
                prefix + own.name,
                label,
                form,
                default,
                " ".join(words),
                shown,
                blank,
                slider,
                (scale,),
            )
        )
    return found


@cache
def _help_of(kind: type) -> dict[str, str]:
    """The text under each field of a class of settings; it is read from the source, which takes milliseconds."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for before, after in pairwise(statements):
            if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
                text = after.value if isinstance(after, ast.Expr) else None
                if isinstance(text, ast.Constant):
                    found[before.target.id] = " ".join(str(text.value).split())
    return found


def arm_controls(arm: Robot, base: Options) -> list[Control]:
    """Those of the arm, its servo and its targets; their defaults are what the options give."""
    plant, found = base.plant_model, []
    if arm.planar:
        lengths = tuple(float(v) for v in arm.placements[1:, 0, 3])
        words = f"Lengths of the links of this planar arm. Range: {len(lengths)} positive numbers. "
        words += f"Default: {_plain(lengths)} m."
        found.append(Control("link_lengths", "link lengths, m", "numbers", lengths, words))
    units = (1e-3, math.radians(1.0))
    return [
        *found,
        _option(
            "period",
            "control period, ms",
            arm.period,
            slider=(0.002, 0.02),
            scale=(1e-3,),
            step=1.0,
        ),
        _option("sample_rate", "target rate, Hz", TARGET_RATE, slider=(2.0, 125.0)),
        _option("hold", "hold", "linear", choices=("linear", "zero-order")),
        _option("sample_noise", "noise, mm and degrees", (0.0, 0.0), scale=units),
        _option("servo_gain", "servo gain", plant.gain, slider=(100.0, 2000.0)),
        _option(
            "servo_lookahead",
            "servo lookahead, ms",
            plant.lookahead,
            slider=(0.03, 0.2),
            scale=(1e-3,),
        ),
        _option("feedforward", "feedforward", base.feedforward, choices=("off", "on")),
        _option("payload", "payload, kg", base.payload or 0.0, slider=(0.0, 10.0)),
        _option("unmodelled_payload", "unmodelled payload, kg", 0.0, slider=(0.0, 10.0)),
        _option("speed_scale", "speed scale of scenarios", 1.0, slider=(0.1, 2.0)),
    ]


def _option(name: str, label: str, default: Any, **facts: Any) -> Control:
    """The control of an option of a run, or of how its targets are sampled."""
    known = {own.name: own for own in fields(Options)} | {
        f"sample_{own.name}": own for own in fields(Sampling)
    }
    unit = facts.get("scale", (1.0,))[0]
    words = [str(known[name].metadata["help"])]
    if "slider" in facts:
        low, high = facts["slider"]
        low, high = facts["slider"] = min(low, default), max(high, default)
        words.append(f"Range: {low / unit:g} to {high / unit:g}.")
    words.append(f"Default: {_plain(default, unit)}.")
    kind: Kind = (
        "choice" if "choices" in facts else "numbers" if isinstance(default, tuple) else "number"
    )
    return Control(name, label, kind, default, " ".join(words), **facts)


def _plain(value: Any, scale: float = 1.0) -> str:
    if isinstance(value, tuple):
        return " ".join(_plain(part, scale) for part in value)
    return (
        f"{value / scale:g}" if isinstance(value, float) and not math.isinf(value) else str(value)
    )
