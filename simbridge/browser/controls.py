"""What the page lets change, as data: each control follows from the registry that defines its setting."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin, get_type_hints

from simbridge.browser.iterate import ITERATE, IterateSettings
from simbridge.browser.setup import SOLVER, TARGET_RATE, StudioSetup
from simbridge.errors import InvalidParameter
from simbridge.ik.settings import SOLVERS
from simbridge.planning.options import Options
from simbridge.robot.robot import Robot
from simbridge.trajectory.trajectory import Sampling

Kind = Literal["number", "whole", "numbers", "choice"]
# What may be changed of the arm on a controller, and what may not be of the solver.
_ON_CONTROLLERS = ("servo_gain", "servo_lookahead")
_SIMULATED = ("solver.stiffness", "solver.bias", "solver.bias_term")


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
            return " ".join(f"{v / unit:.6g}" for v, unit in zip(several, self._units(several), strict=True))
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


def controls_of(setup: StudioSetup, arm: Robot) -> tuple[list[Control], list[Control], list[Control]]:
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
    """Those of the fields of a class of settings (see `ik.settings.setting`), whose names get a prefix."""
    hints, helps = get_type_hints(kind), _help_of(kind)
    found = []
    for own in fields(kind):
        about, scale = own.metadata, own.metadata.get("scale", 1.0)
        default = about.get("default", own.default)
        choices = about.get("choices") or (get_args(hints[own.name]) if get_origin(hints[own.name]) is Literal else ())
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
        found.append(Control(prefix + own.name, label, form, default, " ".join(words), shown, blank, slider, (scale,)))
    return found


def _help_of(kind: type) -> dict[str, str]:
    """The text under each field of a class of settings."""
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
        _option("period", "control period, ms", arm.period, slider=(0.002, 0.02), scale=(1e-3,), step=1.0),
        _option("sample_rate", "target rate, Hz", TARGET_RATE, slider=(2.0, 125.0)),
        _option("hold", "hold", "linear", choices=("linear", "zero-order")),
        _option("sample_noise", "noise, mm and degrees", (0.0, 0.0), scale=units),
        _option("servo_gain", "servo gain", plant.gain, slider=(100.0, 2000.0)),
        _option("servo_lookahead", "servo lookahead, ms", plant.lookahead, slider=(0.03, 0.2), scale=(1e-3,)),
        _option("feedforward", "feedforward", base.feedforward, choices=("off", "on")),
        _option("payload", "payload, kg", base.payload or 0.0, slider=(0.0, 10.0)),
        _option("unmodelled_payload", "unmodelled payload, kg", 0.0, slider=(0.0, 10.0)),
        _option("speed_scale", "speed scale of scenarios", 1.0, slider=(0.1, 2.0)),
    ]


def _option(name: str, label: str, default: Any, **facts: Any) -> Control:
    """The control of an option of a run, or of how its targets are sampled."""
    known = {own.name: own for own in fields(Options)} | {f"sample_{own.name}": own for own in fields(Sampling)}
    unit = facts.get("scale", (1.0,))[0]
    words = [str(known[name].metadata["help"])]
    if "slider" in facts:
        low, high = facts["slider"]
        low, high = facts["slider"] = min(low, default), max(high, default)
        words.append(f"Range: {low / unit:g} to {high / unit:g}.")
    words.append(f"Default: {_plain(default, unit)}.")
    kind: Kind = "choice" if "choices" in facts else "numbers" if isinstance(default, tuple) else "number"
    return Control(name, label, kind, default, " ".join(words), **facts)


def _plain(value: Any, scale: float = 1.0) -> str:
    if isinstance(value, tuple):
        return " ".join(_plain(part, scale) for part in value)
    return f"{value / scale:g}" if isinstance(value, float) and not math.isinf(value) else str(value)
