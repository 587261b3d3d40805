"""The solvers' settings as the command line and a scenario give them: plain data, quick to import."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from simbridge.errors import UnknownName
from simbridge.ik.iterative_settings import (
    ConstrainedParameters,
    DampedLeastSquaresParameters,
    FeedbackParameters,
    IterativeParameters,
    JacobianTransposeParameters,
    PseudoinverseParameters,
    SelectivelyDampedParameters,
)
from simbridge.ik.setting_checks import error_clamps_of, keep, numbers

if TYPE_CHECKING:
    from simbridge.ik.solver import Solver
    from simbridge.robot.robot import Robot

PRESETS: dict[str, dict[str, Any]] = {
    "accurate": {"kp": (50.0,)},
    "smooth": {"kp": (5.0,)},
    "near-singular": {"link_mass": 0.1},
    "one-shot": {"dt": 1.0, "kp": (2.0,) * 6, "iterations": 200, "error_clamp": (0.5, 1.0), "step_clamp": 0.5},
    "released": {
        "scheme": "velocity-accumulation",
        "dt": 0.02,
        "link_mass": 0.1,
        "error_clamp": (1.0, 1.0),
        "step_clamp": math.inf,
    },
}
"""Settings of forward dynamics for a purpose; see `ForwardDynamics.preset`."""


def with_preset(changes: dict[str, Any]) -> dict[str, Any]:
    """Changed settings with a preset among them spelt out; those given beside it hold.

    Raises:
        UnknownName: There is no such preset.
    """
    name = changes.get("preset")
    if not name:
        return changes
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    return {**PRESETS[name], **changes, "preset": ""}


@dataclass(frozen=True)
class ForwardDynamicsParameters:
    """Settings of the forward-dynamics solver (Scherzinger, Roennau and Dillmann)."""

    dt: float = 0.1
    """Virtual time step, s."""
    iterations: int = 50
    """Iterations per control period (N in the paper)."""
    kp: tuple[float, ...] = (50.0,)
    """Stiffness: one number for translation, N/m (rotation gets a tenth, N m/rad), or six."""
    kd: tuple[float, ...] = (0.0,)
    """Damping, likewise, N s/m and N m s/rad."""
    tool_mass: float = 1.0
    """Virtual mass at the tool, kg."""
    tool_inertia: float = 1.0
    """Virtual inertia at the tool, kg m^2."""
    link_mass: float = 1e-3
    """Virtual mass of each link, kg; 0.1 is smooth near singularities."""
    link_inertia: float = 1e-6
    """Virtual inertia of each link, kg m^2."""
    error_clamp: tuple[float, ...] = (0.2, 0.5)
    """Largest error that pulls, m and rad; inf inf is the paper's plain algorithm."""
    step_clamp: float = 0.1
    """Largest joint motion in an iteration, rad (of slides m); inf for none, and then steps may raise the error."""
    scheme: Literal["paper", "velocity-accumulation"] = "paper"
    """How it integrates: as the paper prints it, or as the released controller does (dt 0.02, no step clamp)."""
    task: str = ""
    """What is to be attained: pose, axis (position and tool z) or position; the robot's own if left out."""
    preset: str = ""
    """Settings for a purpose, where they are not given: accurate, smooth, near-singular, one-shot or released."""

    def __post_init__(self) -> None:
        if self.preset and self.preset not in PRESETS:
            raise UnknownName("preset", self.preset, PRESETS)
        clamps = error_clamps_of(self.error_clamp)
        keep(self, kp=numbers("kp", self.kp), kd=numbers("kd", self.kd), error_clamp=clamps)

    def arguments(self) -> dict[str, Any]:
        """What `ForwardDynamics` is to be made with; a setting at its default gives way to the preset's.

        Raises:
            InvalidParameter: A setting makes no sense.
        """
        from simbridge.ik.twin import Twin

        settings = {own.name: getattr(self, own.name) for own in fields(self)}
        for name, value in PRESETS.get(settings.pop("preset"), {}).items():
            if getattr(self, name) == getattr(type(self), name):
                settings[name] = value
        masses = {own.name: settings.pop(own.name) for own in fields(Twin)}
        return {**settings, "twin": Twin(**masses), "task": self.task or None}

    def build(self, robot: Robot) -> Solver:
        """The solver with these settings.

        Raises:
            UnstableSolver: At or past the stability bound.
            InvalidParameter: A setting makes no sense.
        """
        from simbridge.ik.forward_dynamics import ForwardDynamics

        return ForwardDynamics(robot, **self.arguments())


@dataclass(frozen=True)
class ClosedFormParameters:
    """The closed form has no settings."""

    def build(self, robot: Robot) -> Solver:
        """The solver.

        Raises:
            NoClosedForm: The arm is neither a UR arm with nominal kinematics nor a planar arm of two links.
        """
        from simbridge.ik.closed_form import ClosedForm

        return ClosedForm(robot)


@dataclass(frozen=True)
class FunctionParameters:
    """A function of one's own has no settings."""


SolverParameters: TypeAlias = ForwardDynamicsParameters | IterativeParameters | ClosedFormParameters

SOLVERS: dict[str, type[ForwardDynamicsParameters] | type[IterativeParameters] | type[ClosedFormParameters]] = {
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


def is_function(name: str) -> bool:
    """Whether a solver's name is that of a function of one's own, `module:function`."""
    place, _, function = name.rpartition(":")
    return bool(place and function)


def check_solver(name: str) -> None:
    """Refuses a name that is neither a solver's nor a function's.

    Raises:
        UnknownName: There is no such solver.
    """
    if name not in SOLVERS and not is_function(name):
        raise UnknownName("solver", name, SOLVERS, "A function of your own is given as module:function.")


def unknown_setting(solver: str, setting: str) -> UnknownName:
    """The error that a solver has no such setting, and which solvers have it."""
    known = [field.name for field in fields(SOLVERS[solver])]
    others = [name for name, kind in SOLVERS.items() if setting in {field.name for field in fields(kind)}]
    hint = f"{setting} is a setting of {' and '.join(others)}: choose it with --solver." if others else ""
    return UnknownName(f"setting of {solver}", setting, known, hint)
