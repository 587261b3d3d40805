"""The settings of every solver: plain data, quick to import.

A solver's settings are the arguments of its class: `ForwardDynamics(robot, kp=20.0)`, the flag `--solver.kp 20` and
`ForwardDynamicsParameters(kp=20.0)` in a scenario are the same field. A new solver is a file with its class, a class of
settings here, and its entry in `SOLVERS`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar, get_args

from simbridge.errors import InvalidParameter, UnknownName
from simbridge.text import listed

if TYPE_CHECKING:  # load NumPy, pinocchio and numba; the command line needs only the settings
    from numpy.typing import NDArray

    from simbridge.ik.solver import Solver
    from simbridge.robot.robot import Robot

_Settings = TypeVar("_Settings", bound="SolverParameters")

Numbers: TypeAlias = "float | Sequence[float] | NDArray[Any]"
Jacobian: TypeAlias = Literal["exact", "difference"]
TASKS = ("", "pose", "axis", "position")
PRESETS: dict[str, dict[str, Any]] = {
    "none": {},
    "accurate": {"kp": (50.0,)},
    "smooth": {"kp": (5.0,)},
    "near-singular": {"link_mass": 0.1},
    "one-shot": {
        "dt": 1.0,
        "kp": (2.0,) * 6,
        "iterations": 200,
        "error_clamp": (0.5, 1.0),
        "step_clamp": 0.5,
    },
    "released": {
        "scheme": "velocity-accumulation",
        "dt": 0.02,
        "link_mass": 0.1,
        "error_clamp": (1.0, 1.0),
        "step_clamp": math.inf,
    },
}
"""Settings of forward dynamics for a purpose; see `ForwardDynamics.preset`."""


def _preset(name: str) -> dict[str, Any]:
    if name and name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    return PRESETS.get(name, {})


# More would take minutes.
_MOST_ITERATIONS = 100_000
# Beyond it a force would overflow.
_LARGEST_GAIN = 1e100


@dataclass(frozen=True)
class Check:
    """A check of a setting, called with its name and value: returns the value as plain data, or refuses it.

    `needed` says in words what a setting must be: what can be converted to plain data, and of which `holds` is true.
    """

    convert: Callable[[str, Any], Any]
    needed: str
    holds: Callable[[Any], bool] = lambda value: True

    def __call__(self, name: str, value: Any) -> Any:
        result = self.convert(name, value)
        if not self.holds(result):
            raise InvalidParameter(f"solver's {name}", result, self.needed)
        return result


def as_number(name: str, value: Any) -> float:
    """Refuses what is no number."""
    try:
        if not isinstance(value, str):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidParameter(f"solver's {name}", value, "a number")


def as_numbers(name: str, value: Any) -> tuple[float, ...]:
    """One number, or those of a sequence or an array."""
    several = (
        isinstance(value, Iterable) and not isinstance(value, str) and getattr(value, "ndim", 1) > 0
    )
    try:
        return tuple(as_number(name, part) for part in (value if several else (value,)))
    except InvalidParameter as error:
        raise InvalidParameter(error.name, value, "one number, or several") from None


def expand_gain(name: str, value: Numbers) -> tuple[float, ...]:
    """Six gains, translation first, from six numbers or from one, of which the rotation gets a tenth (equation 18)."""
    gains = as_numbers(name, value)
    if len(gains) == 1:
        gains = (gains[0],) * 3 + (0.1 * gains[0],) * 3
    if len(gains) != 6 or not all(0.0 <= gain <= _LARGEST_GAIN for gain in gains):
        needed = f"one number, or six, none of them negative nor above {_LARGEST_GAIN:g}"
        raise InvalidParameter(f"solver's {name}", value, needed)
    return gains


def _as_gains(name: str, value: Numbers) -> tuple[float, ...]:
    expand_gain(name, value)
    return as_numbers(name, value)


def _as_whole(name: str, value: Any) -> int:
    checked = as_number(name, value)
    if not (1.0 <= checked <= _MOST_ITERATIONS and checked.is_integer()):
        raise InvalidParameter(f"solver's {name}", value, whole.needed)
    return int(checked)


def one_of(*choices: str) -> Check:
    """Refuses every other text."""
    return Check(lambda _, value: value, " or ".join(choices), choices.__contains__)


def _not_negative(value: float) -> bool:
    return math.isfinite(value) and value >= 0.0


def _positive(values: tuple[float, ...]) -> bool:
    return bool(values) and all(math.isfinite(value) and value > 0.0 for value in values)


_CLAMP = "positive, or infinite for none"
whole = Check(_as_whole, f"from 1 to {_MOST_ITERATIONS}, a whole number")
positive = Check(as_number, "a positive number", lambda value: math.isfinite(value) and value > 0.0)
_not_negative_number = Check(as_number, "not negative", _not_negative)
_numbers = Check(as_numbers, "one number, or several")
_gains = Check(_as_gains, "one number, or six, none of them negative")
_step_clamp = Check(as_number, _CLAMP, lambda clamp: clamp > 0.0)
_below_one = Check(
    as_numbers,
    "from 0 to below 1, where joints swing",
    lambda v: len(v) > 0 and all(0.0 <= beta < 1.0 for beta in v),
)
_below_two = Check(
    as_number, "above 0 and below 2, where steps diverge", lambda alpha: 0.0 < alpha < 2.0
)
_one_or_six = Check(
    as_numbers, "one positive number, or six", lambda v: len(v) in (1, 6) and _positive(v)
)
_two = Check(as_numbers, "two numbers: m and rad", lambda clamps: len(clamps) == 2)
_error_clamp = Check(_two, _CLAMP, lambda clamps: all(clamp > 0.0 for clamp in clamps))


@dataclass(frozen=True)
class SolverParameters:
    """What the settings of all solvers share: the solver's module and class."""

    solver_class: ClassVar[tuple[str, str]]

    def __post_init__(self) -> None:
        for own in fields(self):
            if check := own.metadata.get("check"):
                object.__setattr__(self, own.name, check(own.name, getattr(self, own.name)))

    def build(self, robot: Robot) -> Solver:
        """The solver with these settings.

        Raises:
            InvalidParameter, UnstableSolver, NoClosedForm: They make no sense for this robot.
        """
        module, name = self.solver_class
        solver: Solver = getattr(importlib.import_module(module), name)(robot, self)
        return solver


def setting(default: Any, check: Check | None = None, unset: str = "", **more: Any) -> Any:
    """A setting; unset: what an empty default stands for, as the help shows it.

    And for a page: `slider`, the least and the largest value of a slider, where that is narrower than what the check
    lets pass; `choices`, the texts among which one is chosen; the `unit`, and its `scale` in SI.
    """
    return field(default=default, metadata={"check": check, "unset": unset, **more})


def unless_preset(default: Any, check: Check | None = None, **more: Any) -> Any:
    """A setting with a default that a preset may replace; None stands for "not given"."""
    return field(default=None, metadata={"default": default, "check": check, **more})


@dataclass(frozen=True)
class ForwardDynamicsParameters(SolverParameters):
    """Settings of the forward-dynamics solver (Scherzinger, Roennau and Dillmann)."""

    solver_class: ClassVar[tuple[str, str]] = ("simbridge.ik.forward_dynamics", "ForwardDynamics")

    dt: float = unless_preset(0.1, positive, slider=(0.01, 1.0), unit="s")
    """Virtual time step, s."""
    iterations: int = unless_preset(50, whole, slider=(1, 200))
    """Iterations per control period (N in the paper)."""
    kp: tuple[float, ...] = unless_preset((50.0,), _gains, slider=(0.5, 200.0), unit="N/m")
    """Stiffness: one number for translation, N/m (rotation gets a tenth, N m/rad), or six."""
    kd: tuple[float, ...] = unless_preset((0.0,), _gains, slider=(0.0, 10.0), unit="N s/m")
    """Damping, likewise, N s/m and N m s/rad."""
    tool_mass: float = unless_preset(1.0, _not_negative_number, unit="kg")
    """Virtual mass at the tool, kg."""
    tool_inertia: float = unless_preset(1.0, _not_negative_number, unit="kg m²")
    """Virtual inertia at the tool, kg m^2."""
    link_mass: float = unless_preset(1e-3, positive, slider=(1e-3, 0.5), unit="kg")
    """Virtual mass of each link, kg; 0.1 is smooth near singularities."""
    link_inertia: float = unless_preset(1e-6, positive, unit="kg m²")
    """Virtual inertia of each link, kg m^2."""
    error_clamp: tuple[float, ...] = unless_preset((0.2, 0.5), _error_clamp, unit="m and rad")
    """The error is clamped to this, m and rad; inf inf is the paper's plain algorithm."""
    step_clamp: float = unless_preset(0.1, _step_clamp, slider=(0.005, 1.0), unit="rad")
    """Largest joint motion in an iteration, rad (m if sliding); without (inf) steps may increase the error."""
    scheme: Literal["paper", "velocity-accumulation"] = unless_preset(
        "paper", one_of("paper", "velocity-accumulation")
    )
    """Integration scheme: as printed in the paper, or as in the released controller (dt 0.02, no step clamp)."""
    task: str = setting("", unset="the robot's", choices=TASKS)
    """Part of the target to attain: pose, axis (position and the tool's z axis) or position."""
    preset: str = setting("", unset="none", choices=("", *PRESETS))
    """Values for the settings that are not given: accurate, smooth, near-singular, one-shot or released."""

    def __post_init__(self) -> None:
        preset = _preset(self.preset)
        for own in fields(self):
            if getattr(self, own.name) is None:
                object.__setattr__(self, own.name, preset.get(own.name, own.metadata["default"]))
        super().__post_init__()


@dataclass(frozen=True)
class IterativeParameters(SolverParameters):
    """Settings that the iterative solvers share."""

    iterations: int = setting(10, whole, slider=(1, 200))
    """Iterations per control period."""
    error_clamp: tuple[float, ...] = setting((0.2, 0.5), _error_clamp, unit="m and rad")
    """The error is clamped to this, m and rad; inf inf for no clamp."""
    step_clamp: float = setting(0.1, _step_clamp, slider=(0.005, 1.0), unit="rad")
    """Largest joint motion in an iteration, rad (m if sliding); without (inf) steps may increase the error."""
    task: str = setting("", unset="the robot's", choices=TASKS)
    """Part of the target to attain: pose, axis (position and the tool's z axis) or position."""
    jacobian: Jacobian = setting("exact", one_of(*get_args(Jacobian)))
    """exact, or difference: one-sided finite differences of the tool's pose, as tutorials compute it."""
    difference_step: float = setting(0.01, positive, slider=(1e-4, 0.1))
    """For jacobian difference: the step of each joint, rad (m if sliding)."""


@dataclass(frozen=True)
class JacobianTransposeParameters(IterativeParameters):
    """Settings of the Jacobian transpose."""

    solver_class: ClassVar[tuple[str, str]] = ("simbridge.ik.forward_dynamics", "JacobianTranspose")

    iterations: int = setting(50, whole, slider=(1, 200))
    step_length: Literal["paper", "buss-kim"] = setting("paper", one_of("paper", "buss-kim"))
    """paper: a constant gain, comparable to forward dynamics; buss-kim: the length that reduces the error most."""
    alpha: float = setting(
        0.0, Check(as_number, "a positive number, or 0 to compute it", _not_negative)
    )
    """For step length paper: the constant that replaces the twin's inverse mass matrix; 0 computes it."""
    dt: float = setting(0.1, positive, unit="s")
    """For step length paper: virtual time step, s."""
    kp: tuple[float, ...] = setting((50.0,), _gains, slider=(0.5, 200.0), unit="N/m")
    """For step length paper: stiffness, one number (N/m; rotation gets a tenth, N m/rad) or six."""


@dataclass(frozen=True)
class PseudoinverseParameters(IterativeParameters):
    """Settings of the pseudoinverse."""

    solver_class: ClassVar[tuple[str, str]] = ("simbridge.ik.least_squares", "Pseudoinverse")

    alpha: float = setting(0.5, _below_two, slider=(0.01, 1.99))
    """Step gain, above 0 and below 2: the fraction of the error that an iteration should remove."""
    cutoff: float = setting(1e-6, positive)
    """Singular values of the Jacobian up to this fraction of the largest count as zero."""


@dataclass(frozen=True)
class DampedLeastSquaresParameters(IterativeParameters):
    """Settings of damped least squares."""

    solver_class: ClassVar[tuple[str, str]] = ("simbridge.ik.least_squares", "DampedLeastSquares")

    damping: float = setting(0.05, positive, slider=(0.001, 1.0), unit="m/rad")
    """lambda, in m per rad (translation) and rad per rad (rotation)."""
    stiffness: tuple[float, ...] = setting((0.0,), _below_one)
    """Joint stiffness beta: one number, or one per joint, below 1; with a step clamp it acts in the null space only."""
    bias: tuple[float, ...] = setting((), _numbers, "the robot's home", unit="rad")
    """Bias angles, rad."""
    bias_term: Literal["gradient", "printed"] = setting("gradient", one_of("gradient", "printed"))
    """Stiffness term: 2 beta (q - bias), or beta (q - bias)^2 as printed in the source, which ignores the sign."""
    step_clamp: float = setting(0.15, _step_clamp, slider=(0.005, 1.0), unit="rad")


@dataclass(frozen=True)
class SelectivelyDampedParameters(IterativeParameters):
    """Settings of selectively damped least squares."""

    solver_class: ClassVar[tuple[str, str]] = ("simbridge.ik.least_squares", "SelectivelyDamped")

    largest_angle: float = setting(0.785, positive, slider=(0.01, 1.57), unit="rad")
    """gamma_max, the largest joint motion along one singular vector, rad."""


@dataclass(frozen=True)
class FeedbackParameters(IterativeParameters):
    """Settings of feedback inverse kinematics."""

    solver_class: ClassVar[tuple[str, str]] = ("simbridge.ik.least_squares", "FeedbackIK")

    gain: tuple[float, ...] = setting((400.0,), _one_or_six, unit="1/m²")
    """Q, the loop's gain, 1/m^2 (rotation: 1): one number, which is 1 / damping^2, or six, translation first."""


@dataclass(frozen=True)
class ConstrainedParameters(IterativeParameters):
    """Settings of the constrained step."""

    solver_class: ClassVar[tuple[str, str]] = ("simbridge.ik.constrained", "Constrained")

    posture: tuple[float, ...] = setting((), _numbers, "the robot's home", unit="rad")
    """The natural posture, rad."""
    weights: tuple[float, ...] = setting((1.0,), Check(as_numbers, "positive numbers", _positive))
    """Weights of the joints' distances from the natural posture: one number, or one per joint; positive."""
    pull: float = setting(
        0.05, Check(as_number, "from 0 to 1", lambda pull: 0.0 <= pull <= 1.0), slider=(0.0, 1.0)
    )
    """Fraction of that distance that an iteration covers where no strict row prevents it, 0 to 1."""
    cutoff: float = setting(1e-6, positive)
    """Rows whose singular value is up to this fraction of the largest count as dependent."""


@dataclass(frozen=True)
class ClosedFormParameters(SolverParameters):
    """The closed form has no settings."""

    solver_class: ClassVar[tuple[str, str]] = ("simbridge.ik.closed_form", "ClosedForm")


@dataclass(frozen=True)
class FunctionParameters:
    """A custom solver function has no settings."""


SOLVERS: dict[str, type[SolverParameters]] = {
    "forward-dynamics": ForwardDynamicsParameters,
    "jacobian-transpose": JacobianTransposeParameters,
    "pseudoinverse": PseudoinverseParameters,
    "damped-least-squares": DampedLeastSquaresParameters,
    "selectively-damped": SelectivelyDampedParameters,
    "feedback": FeedbackParameters,
    "constrained": ConstrainedParameters,
    "closed-form": ClosedFormParameters,
}
"""Every solver by its name at the command line."""


def resolved(
    kind: type[_Settings], settings: _Settings | None, changes: Mapping[str, Any]
) -> _Settings:
    """Settings (None: the defaults) with changes by name: a value of None is not given, and a preset among them applies
    to what is not among them.

    Raises:
        UnknownName: There is no such setting, or no such preset.
        InvalidParameter: A setting makes no sense.
    """
    known = {own.name for own in fields(kind)}
    for name in changes:
        if name not in known:
            raise unknown_setting(
                next(solver for solver, other in SOLVERS.items() if other is kind), name
            )
    given = {name: value for name, value in changes.items() if value is not None}
    if preset := given.get("preset"):
        given = {**_preset(preset), **given, "preset": ""}
    if settings is None:
        return kind(**given)
    # Another preset takes back what the former one had set.
    former = PRESETS.get(getattr(settings, "preset", ""), {}) if changes.get("preset") else {}
    default = {name: None for name, value in former.items() if getattr(settings, name) == value}
    return replace(settings, **(default | given))


def without_clamps(changes: dict[str, Any]) -> dict[str, Any]:
    """Changes of settings in which a clamp that is None is infinite."""
    none = {"error_clamp": (math.inf, math.inf), "step_clamp": math.inf}
    return {name: none.get(name) if value is None else value for name, value in changes.items()}


def is_function(name: str) -> bool:
    """Whether a solver's name is that of a custom function, `module:function`."""
    return all(name.rpartition(":"))


def check_solver(name: str) -> None:
    """Raises UnknownName for a name that is neither a solver's nor a function's."""
    if name not in SOLVERS and not is_function(name):
        raise UnknownName("solver", name, SOLVERS, "A custom function is given as module:function.")


def unknown_setting(solver: str, setting: str) -> UnknownName:
    """The error that a solver has no such setting, with the solvers that have it."""
    known = [own.name for own in fields(SOLVERS[solver])]
    others = [
        name for name, kind in SOLVERS.items() if setting in {own.name for own in fields(kind)}
    ]
    hint = f"{setting} is a setting of {listed(others)}: choose it with --solver." if others else ""
    return UnknownName("setting", setting, known, hint, where=f"of {solver}")
