"""Settings of solvers as plain data: what the settings of all of them share.

A solver's settings stand beside its class, in its file. They are the arguments of the class, the
flags of the command line and the keys of settings.toml: `ForwardDynamics(robot, kp=20.0)`,
`--solver.kp 20` and `ForwardDynamicsParameters(kp=20.0)` in a scenario are the same field.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

from simbridge.ik.checks import ERROR_CLAMP, POSITIVE, STEP_CLAMP, WHOLE, Check, choice_of

if TYPE_CHECKING:  # load NumPy and pinocchio; the command line needs only the settings
    from simbridge.ik.solver import Solver
    from simbridge.robot.robot import Robot

Jacobian: TypeAlias = Literal["exact", "difference"]

TASKS = ("", "pose", "axis", "position")


@dataclass(frozen=True)
class SolverParameters(ABC):
    """Settings of a solver, checked when they are made."""

    # Named values for several settings at once, for solvers with a setting `preset`.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def __post_init__(self) -> None:
        for item in fields(self):
            check = item.metadata.get("check")
            if check is not None:
                value = check(item.name, getattr(self, item.name))
                object.__setattr__(self, item.name, value)

    @abstractmethod
    def build(self, robot: Robot) -> Solver:
        """Return the solver with these settings.

        Raises:
            InvalidParameter, UnstableSolver, NoClosedForm: The settings make no sense for this
                robot.
        """


def setting(default: Any, check: Check | None = None, unset: str = "", **more: Any) -> Any:
    """Return the dataclass field of a setting.

    Args:
        default: Default of the setting.
        check: Check of its value, if any.
        unset: What an empty default stands for, as the help shows it.
        more: Facts for a page: `slider`, the least and the largest value of a slider, if that is
            narrower than what the check lets pass; `choices`, the texts among which one is chosen;
            the `unit`, and its `scale` in SI.
    """
    return field(default=default, metadata={"check": check, "unset": unset, **more})


def unless_preset(default: Any, check: Check | None = None, **more: Any) -> Any:
    """Return the field of a setting whose default a preset may replace.

    Until then it is None, which stands for "not given". Arguments are those of `setting`.
    """
    return field(default=None, metadata={"default": default, "check": check, **more})


@dataclass(frozen=True)
class IterativeParameters(SolverParameters):
    """Settings that the iterative solvers share."""

    iterations: int = setting(10, WHOLE, slider=(1, 200))
    """Iterations per control period."""
    error_clamp: tuple[float, ...] = setting((0.2, 0.5), ERROR_CLAMP, unit="m and rad")
    """The error is clamped to this, m and rad; inf inf for no clamp."""
    step_clamp: float = setting(0.1, STEP_CLAMP, slider=(0.005, 1.0), unit="rad")
    """Largest joint motion in an iteration, rad (m if sliding); without a clamp (inf), steps may increase the error."""
    task: str = setting("", unset="the robot's", choices=TASKS)
    """Part of the target to attain: pose, axis (position and the tool's z axis) or position."""
    jacobian: Jacobian = setting("exact", choice_of(*get_args(Jacobian)))
    """exact, or difference: one-sided finite differences of the tool's pose, as tutorials compute it."""
    difference_step: float = setting(0.01, POSITIVE, slider=(1e-4, 0.1))
    """For jacobian difference: the step of each joint, rad (m if sliding)."""
