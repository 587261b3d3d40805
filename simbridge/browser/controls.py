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
from simbridge.ik.setting_checks import requirement
from simbridge.ik.settings import SOLVERS
from simbridge.planning.options import Options
from simbridge.robot.robot import Robot
from simbridge.trajectory.sampling import Sampling

Kind = Literal["number", "whole", "numbers", "choice"]


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
            scales = self.scale if len(self.scale) == len(several) else self.scale[:1] * len(several)
            return " ".join(f"{v / scale:.6g}" for v, scale in zip(several, scales, strict=True))
        value = value[0] if isinstance(value, tuple) else value
        return round(value) if self.kind == "whole" else value / self.scale[0]

    def given(self, value: Any) -> Any:
        """A value of the page in SI units; a tuple for several numbers."""
        if self.kind == "choice":
            return "" if value == self.blank else value
        if self.kind == "numbers":
            scales = self.scale if len(self.scale) == len(value) else self.scale[:1] * len(value)
            return tuple(v * scale for v, scale in zip(value, scales, strict=True))
        return int(value) if self.kind == "whole" else float(value) * self.scale[0]


# What may be changed of the arm on a controller, and what may not be of the solver.
_ON_CONTROLLERS = ("servo_gain", "servo_lookahead")
_SIMULATED = ("solver.stiffness", "solver.bias", "solver.bias_term")


def controls_of(setup: StudioSetup, arm: Robot) -> tuple[list[Control], list[Control], list[Control]]:
    """Those of a setup's solver, of the arm as it is now, and, without a controller, of iterations."""
    lengths = tuple(float(v) for v in arm.placements[1:, 0, 3]) if arm.planar else None
    found = solver_controls(setup.solver), arm_controls(arm, lengths, setup.base)
    if setup.simulated:
        return *found, settings_controls(IterateSettings, ITERATE)
    fixed = {one.name for one in found[1]}.difference(_ON_CONTROLLERS).union(_SIMULATED)
    locked = dict.fromkeys(fixed, "In simulation only.")
    of_solver, of_arm = ([replace(one, locked=locked.get(one.name, "")) for one in some] for some in found)
    return of_solver, of_arm, []


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
        if needed := requirement(about.get("check")):
            words.append(f"Range: {needed}.")
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


def _plain(value: Any, scale: float = 1.0) -> str:
    if isinstance(value, tuple):
        return " ".join(_plain(part, scale) for part in value)
    return f"{value / scale:g}" if isinstance(value, float) and not math.isinf(value) else str(value)


def arm_controls(arm: Robot, lengths: tuple[float, ...] | None, base: Options) -> list[Control]:
    """Those of the arm, its servo and its targets; their defaults are what the options give."""
    plant, found = base.plant_model, []
    if arm.planar and lengths:
        found.append(
            Control(
                "link_lengths", "link lengths, m", "numbers", lengths,
                f"Lengths of the links of this planar arm. Range: {len(lengths)} positive numbers. "
                f"Default: {_plain(lengths)} m.",
            )
        )  # fmt: skip
    found += [
        _of_option("period", "control period, ms", arm.period, slider=(0.002, 0.02), scale=(1e-3,), step=1.0),
        _of_sampling("rate", "target rate, Hz", TARGET_RATE, slider=(2.0, 125.0)),
        _of_option("hold", "hold", "linear", choices=("linear", "zero-order")),
        _of_sampling("noise", "noise, mm and degrees", (0.0, 0.0), scale=(1e-3, math.radians(1.0))),
        _of_option("servo_gain", "servo gain", plant.gain, slider=(100.0, 2000.0)),
        _of_option("servo_lookahead", "servo lookahead, ms", plant.lookahead, slider=(0.03, 0.2), scale=(1e-3,)),
        _of_option("feedforward", "feedforward", base.feedforward, choices=("off", "on")),
        _of_option("payload", "payload, kg", base.payload or 0.0, slider=(0.0, 10.0)),
        _of_option("unmodelled_payload", "unmodelled payload, kg", 0.0, slider=(0.0, 10.0)),
        _of_option("speed_scale", "speed scale of scenarios", 1.0, slider=(0.1, 2.0)),
    ]
    return found


def _of_option(name: str, label: str, default: Any, **facts: Any) -> Control:
    own = next(own for own in fields(Options) if own.name == name)
    return _described(name, label, default, str(own.metadata["help"]), facts)


def _of_sampling(name: str, label: str, default: Any, **facts: Any) -> Control:
    own = next(own for own in fields(Sampling) if own.name == name)
    return _described(f"sample_{name}", label, default, str(own.metadata["help"]), facts)


def _described(name: str, label: str, default: Any, help: str, facts: dict[str, Any]) -> Control:
    scale = facts.get("scale", (1.0,))
    words = [help]
    if "slider" in facts:
        low, high = facts["slider"]
        facts["slider"] = min(low, default), max(high, default)
    if slider := facts.get("slider"):
        words.append(f"Range: {slider[0] / scale[0]:g} to {slider[1] / scale[0]:g}.")
    words.append(f"Default: {_plain(default, scale[0])}.")
    kind: Kind = "choice" if "choices" in facts else "numbers" if isinstance(default, tuple) else "number"
    return Control(name, label, kind, default, " ".join(words), **facts)
