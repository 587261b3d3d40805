"""The controls that change a studio's setup, as plain data that follow from the registries."""

from __future__ import annotations

import math
from dataclasses import Field, dataclass, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from simbridge.browser.field_texts import field_texts
from simbridge.browser.iterate import IterateSettings
from simbridge.browser.setup import SOLVER_PREFIX, TARGET_RATE, StudioSetup
from simbridge.errors import InvalidParameter
from simbridge.ik.settings import ALL_SOLVERS, is_function
from simbridge.planning.options import Options
from simbridge.robot.robot import Robot
from simbridge.trajectory.sampling import Sampling

# Names of the controls of `IterateSettings` begin with this.
ITERATE = "iterate."

# What may be changed of the arm on a controller, and what may not be of the solver.
CONTROLLER_OPTIONS = ("servo_gain", "servo_lookahead")
SIMULATION_SETTINGS = ("solver.stiffness", "solver.bias", "solver.bias_term")

MILLI = 1e-3
DEGREE = math.radians(1.0)

ControlKind = Literal["number", "whole", "numbers", "choice"]


@dataclass(frozen=True)
class PanelControl:
    """A setting that the page shows.

    Attributes:
        name: Name of the setting in `StudioSetup.values`.
        label: Name of the setting's flag, with its unit.
        kind: Kind of its value; several numbers are typed as text.
        default: Value of the setting unless it is changed, in SI units; None if that depends on
            other settings.
        help: Meaning, range and default of the setting, as text.
        choices: The texts among which one is chosen, if the setting is a choice.
        blank: What the empty choice stands for; it is shown so.
        slider: The least and the largest value of a slider, in SI units; None for a field.
        scale: The shown unit in SI; for several numbers a unit each.
        step: Step of the slider, in the shown unit; None for a fine one.
        locked: Why it cannot be changed here; "" if it can.
    """

    name: str
    label: str
    kind: ControlKind
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    blank: str = ""
    slider: tuple[float, float] | None = None
    scale: tuple[float, ...] = (1.0,)
    step: float | None = None
    locked: str = ""

    def to_page(self, value: Any) -> Any:
        """Return a value in the units of the page; several numbers as text."""
        if self.kind == "choice":
            return str(value) or self.blank
        if self.kind == "numbers":
            numbers = tuple(value or ())
            units = self._units(len(numbers))
            texts = [f"{number / unit:.6g}" for number, unit in zip(numbers, units, strict=True)]
            return " ".join(texts)

        number = value[0] if isinstance(value, tuple) else value
        return round(number) if self.kind == "whole" else number / self.scale[0]

    def from_page(self, value: Any) -> Any:
        """Return a value of the page in SI units.

        Raises:
            InvalidParameter: A text holds no numbers.
        """
        if self.kind == "choice":
            return "" if value == self.blank else value
        if self.kind == "whole":
            return int(value)
        if self.kind == "numbers":
            try:
                numbers = [float(part) for part in value.replace(",", " ").split()]
            except ValueError:
                raise InvalidParameter("value", value, "numbers, separated by blanks") from None
            units = self._units(len(numbers))
            return tuple(number * unit for number, unit in zip(numbers, units, strict=True))

        number = float(value) * self.scale[0]
        return (number,) if isinstance(self.default, tuple) else number

    def _units(self, count: int) -> tuple[float, ...]:
        """Return the units of several numbers; where their count is another, the first for all."""
        return self.scale if len(self.scale) == count else self.scale[:1] * count


def controls_of(
    setup: StudioSetup, arm: Robot
) -> tuple[list[PanelControl], list[PanelControl], list[PanelControl]]:
    """Return the controls of a setup's solver, of the arm, and of iterations.

    On a controller some are locked, and there are none for iterations.

    Args:
        setup: The settings that the page shows.
        arm: The arm as it is now.
    """
    solver = solver_controls(setup.solver)
    arm_and_targets = arm_controls(arm, setup.base)
    if setup.simulated:
        return solver, arm_and_targets, settings_controls(IterateSettings, ITERATE)

    solver_locks = [control.name in SIMULATION_SETTINGS for control in solver]
    arm_locks = [control.name not in CONTROLLER_OPTIONS for control in arm_and_targets]
    return _lock(solver, solver_locks), _lock(arm_and_targets, arm_locks), []


def _lock(controls: list[PanelControl], is_locked: list[bool]) -> list[PanelControl]:
    """Return controls, some of which cannot be changed on a controller."""
    reasons = ["In simulation only." if locked else "" for locked in is_locked]
    return [
        replace(control, locked=reason) if reason else control
        for control, reason in zip(controls, reasons, strict=True)
    ]


def solver_controls(solver: str) -> list[PanelControl]:
    """Return the controls of a solver's settings; a user's function has none."""
    if is_function(solver):
        return []
    return settings_controls(ALL_SOLVERS[solver], SOLVER_PREFIX)


def settings_controls(settings_class: type, prefix: str) -> list[PanelControl]:
    """Return the controls of a class of settings.

    Args:
        settings_class: A dataclass whose fields are made by `ik.parameters.setting`.
        prefix: Prefix of the controls' names.
    """
    hints = get_type_hints(settings_class)
    helps = field_texts(settings_class)
    return [
        _setting_control(item, hints[item.name], helps.get(item.name, ""), prefix)
        for item in fields(settings_class)
    ]


def _setting_control(item: Field[Any], hint: Any, meaning: str, prefix: str) -> PanelControl:
    """Return the control of a setting.

    Args:
        item: The setting's field.
        hint: Type of the setting.
        meaning: Meaning of the setting, as text.
        prefix: Prefix of the control's name.
    """
    facts = item.metadata
    default = facts.get("default", item.default)
    slider = facts.get("slider")
    scale = facts.get("scale", 1.0)
    unit = facts.get("unit", "")
    blank = facts.get("unset", "")
    choices = facts.get("choices") or ()
    if not choices and get_origin(hint) is Literal:
        choices = get_args(hint)

    label = item.name.replace("_", " ")
    if unit:
        label += f", {unit}"

    sentences = [meaning]
    check = facts.get("check")
    if check:
        sentences.append(f"Range: {check.needed}.")
    sentences.append(f"Default: {blank or _format(default, scale)}.")

    shown_choices = [choice or blank for choice in choices]
    return PanelControl(
        name=prefix + item.name,
        label=label,
        kind=_setting_kind(default, choices, slider),
        default=default,
        help=" ".join(sentences),
        # Each once: the empty choice may stand for another one.
        choices=tuple(dict.fromkeys(shown_choices)),
        blank=blank,
        slider=slider,
        scale=(scale,),
    )


def _setting_kind(
    default: Any, choices: tuple[str, ...], slider: tuple[float, float] | None
) -> ControlKind:
    """Return the kind of a setting's control, which follows from its default value."""
    if choices:
        return "choice"
    if isinstance(default, tuple):
        # A single number has a slider.
        return "number" if slider and len(default) == 1 else "numbers"
    return "whole" if isinstance(default, int) else "number"


def arm_controls(arm: Robot, base: Options) -> list[PanelControl]:
    """Return the controls of the arm, its servo and its targets.

    Args:
        arm: The arm as it is now.
        base: What gives their defaults.
    """
    plant = base.plant_model
    controls = [_link_lengths_control(arm)] if arm.planar else []
    return [
        *controls,
        _option_control(
            "period",
            "control period, ms",
            arm.period,
            slider=(0.002, 0.02),
            scale=(MILLI,),
            step=1.0,
        ),
        _option_control("sample_rate", "target rate, Hz", TARGET_RATE, slider=(2.0, 125.0)),
        _option_control("hold", "hold", "linear", choices=("linear", "zero-order")),
        _option_control("sample_noise", "noise, mm and degrees", (0.0, 0.0), scale=(MILLI, DEGREE)),
        _option_control("servo_gain", "servo gain", plant.gain, slider=(100.0, 2000.0)),
        _option_control(
            "servo_lookahead",
            "servo lookahead, ms",
            plant.lookahead,
            slider=(0.03, 0.2),
            scale=(MILLI,),
        ),
        _option_control("feedforward", "feedforward", base.feedforward, choices=("off", "on")),
        _option_control("payload", "payload, kg", base.payload or 0.0, slider=(0.0, 10.0)),
        _option_control("unmodelled_payload", "unmodelled payload, kg", 0.0, slider=(0.0, 10.0)),
        _option_control("speed_scale", "speed scale of scenarios", 1.0, slider=(0.1, 2.0)),
    ]


def _link_lengths_control(arm: Robot) -> PanelControl:
    """Return the control of the links of a planar arm."""
    lengths = tuple(float(length) for length in arm.placements[1:, 0, 3])
    meaning = (
        f"Lengths of the links of this planar arm. Range: {len(lengths)} positive numbers. "
        f"Default: {_format(lengths)} m."
    )
    return PanelControl("link_lengths", "link lengths, m", "numbers", lengths, meaning)


def _option_control(
    name: str,
    label: str,
    default: Any,
    *,
    choices: tuple[str, ...] = (),
    slider: tuple[float, float] | None = None,
    scale: tuple[float, ...] = (1.0,),
    step: float | None = None,
) -> PanelControl:
    """Return the control of an option of a run, or of how its targets are sampled.

    Args:
        name: Name of the option, or "sample_" and a field of `Sampling`.
        label: Label of the control, with its unit.
        default: Default of the option, in SI units.
        choices: The texts among which one is chosen: see `PanelControl`.
        slider: Range of the slider: see `PanelControl`; it is widened to contain the default.
        scale: The shown unit in SI: see `PanelControl`.
        step: Step of the slider: see `PanelControl`.
    """
    sentences = [_option_help(name)]
    if slider is not None:
        slider = (min(slider[0], default), max(slider[1], default))
        sentences.append(f"Range: {slider[0] / scale[0]:g} to {slider[1] / scale[0]:g}.")
    sentences.append(f"Default: {_format(default, scale[0])}.")

    kind: ControlKind = "number"
    if choices:
        kind = "choice"
    elif isinstance(default, tuple):
        kind = "numbers"
    return PanelControl(
        name=name,
        label=label,
        kind=kind,
        default=default,
        help=" ".join(sentences),
        choices=choices,
        slider=slider,
        scale=scale,
        step=step,
    )


def _option_help(name: str) -> str:
    """Return the help text of an option of a run, or of how its targets are sampled."""
    for item in fields(Options):
        if item.name == name:
            return str(item.metadata["help"])
    for item in fields(Sampling):
        if f"sample_{item.name}" == name:
            return str(item.metadata["help"])
    raise KeyError(name)


def _format(value: Any, scale: float = 1.0) -> str:
    """Return a default as text, in a unit of `scale` in SI; several numbers with blanks."""
    if isinstance(value, tuple):
        return " ".join(_format(part, scale) for part in value)
    if isinstance(value, float) and not math.isinf(value):
        return f"{value / scale:g}"
    return str(value)
