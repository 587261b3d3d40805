"""The constrained step: the task is strict, and soft rows use the remaining freedom of the joints.

Lecture "Inverse kinematics" (rrlab, University of Kaiserslautern), from "Underdetermined system" to
"Optimization: Algorithm": Lagrange multipliers lead to one linear system for the step and the
multipliers,

    [ 2 A^T W A   J^T ] [  dq    ]   [ 2 A^T W b ]
    [     J        0  ] [ lambda ] = [     e     ]

Rows of J that depend on others ("eliminate redundant parameters", step 3 of the algorithm) are left
out; `Solver.last.dependent_rows` says how many. An arm without redundant joints moves as with its
inverse Jacobian. The lecture has the weights W of the soft rows for joints only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter
from simbridge.ik.callable_solver import CallableSolver
from simbridge.ik.checks import NUMBERS, POSITIVE, Check, are_positive, as_number, as_numbers
from simbridge.ik.iterative import CompiledStep, IterativeSolver
from simbridge.ik.kernels.constraints import constrained_step, strict_rows_step
from simbridge.ik.kernels.records import MAX_STRICT
from simbridge.ik.parameters import IterativeParameters, setting
from simbridge.ik.rows import Rows, SoftRows
from simbridge.ik.solver import Solution
from simbridge.ik.targets import as_pose
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# The settings of the natural posture, which custom soft rows replace.
POSTURE_SETTINGS = ("posture", "weights", "pull")


class StrictSettings(NamedTuple):
    """Settings of `strict_rows_step` before those of the soft rows: the custom strict rows.

    Attributes:
        rows: The rows (m, n).
        values: The values (m,) that the rows times the motion are to attain.
    """

    rows: Array
    values: Array


class SoftSettings(NamedTuple):
    """Settings of `constrained_step`: the soft rows.

    Attributes:
        hessian: 2 A^T W A (n, n).
        gradient: 2 A^T W b (n,), at q = 0.
        pull: Factor by which b falls with A q: b = pull (posture - q) for the natural posture,
            whose A = I; 0 for custom rows, whose b does not fall between evaluations.
        cutoff: Strict rows whose singular value is up to this fraction of the largest count as
            dependent.
    """

    hessian: Array
    gradient: Array
    pull: float
    cutoff: float


@dataclass(frozen=True)
class ConstrainedParameters(IterativeParameters):
    """Settings of the constrained step."""

    posture: tuple[float, ...] = setting((), NUMBERS, "the robot's home", unit="rad")
    """The natural posture, rad."""
    weights: tuple[float, ...] = setting(
        (1.0,), Check(as_numbers, "positive numbers", are_positive)
    )
    """Weights of the joints' distances from the natural posture: one number, or one per joint; positive."""
    pull: float = setting(
        0.05, Check(as_number, "from 0 to 1", lambda pull: 0.0 <= pull <= 1.0), slider=(0.0, 1.0)
    )
    """Fraction of that distance that an iteration covers where no strict row prevents it, 0 to 1."""
    cutoff: float = setting(1e-6, POSITIVE)
    """Rows whose singular value is up to this fraction of the largest count as dependent."""

    def build(self, robot: Robot) -> Constrained:
        """Return the solver with these settings."""
        return Constrained(robot, self)


class Constrained(IterativeSolver):
    """The constrained step. Settings: see `ConstrainedParameters`.

    Args:
        robot: The arm.
        settings: The defaults if left out.
        soft: Custom soft rows, which replace the natural posture.
        strict: Custom strict rows, at most six, in addition to those of the task. Where not all can
            be satisfied, they take precedence, and dependent rows are solved by least squares.
        changes: Single settings by name.

    Raises:
        InvalidParameter: Rows do not fit the arm, or soft rows are given together with settings of
            the natural posture.
    """

    name = "constrained"
    Parameters = ConstrainedParameters
    settings: ConstrainedParameters

    def __init__(
        self,
        robot: Robot,
        settings: ConstrainedParameters | None = None,
        *,
        soft: SoftRows | None = None,
        strict: Rows | None = None,
        **changes: Any,
    ) -> None:
        replaced = [name for name in POSTURE_SETTINGS if changes.get(name) is not None]
        if soft is not None and replaced:
            value = f"given with {' and '.join(replaced)}"
            raise InvalidParameter("solver's soft rows", value, "given without")

        self._soft = soft
        self._strict = strict
        # The settings of the step at the robot's home, which `compiled_step` evaluates.
        self._soft_at_home: SoftSettings
        self._strict_at_home: StrictSettings | None = None
        super().__init__(robot, settings, **changes)
        if soft is not None or strict is not None:
            # settings.toml is not enough to repeat a run with custom rows.
            self.name = "constrained with own rows"

        # Compiled code cannot call rows that are functions. A step with such rows runs in Python,
        # as the function of a custom solver.
        self._varying: CallableSolver | None = None
        if any(rows is not None and rows.vary for rows in (soft, strict)):
            self._varying = CallableSolver(
                robot, self._step_varying, name=self.name, task=self.task
            )

    @property
    def search_settings(self) -> Any:
        if self._soft is not None or self._strict is not None:
            return None
        return super().search_settings

    @property
    def cutoff(self) -> float:
        return self.settings.cutoff

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | {"posture": self._posture.tolist()}

    @property
    def _posture(self) -> Array:
        """The natural posture (n,), rad."""
        if self.settings.posture:
            return self.for_each_joint("posture", self.settings.posture)
        return self.robot.home

    def compiled_step(self) -> CompiledStep:
        """Return the step with the soft rows and any custom strict rows, as at the robot's home.

        These rows are also kept, for a step whose rows vary.
        """
        # Only the ratios of the weights matter. They are scaled so that the strict rows, which are
        # in the same linear system, are not lost in rounding.
        weights = self.for_each_joint("weights", self.settings.weights)
        hessian = np.diag(2.0 * weights / weights.max())
        pull = self.settings.pull
        soft = SoftSettings(
            hessian=np.ascontiguousarray(hessian),
            gradient=hessian @ (pull * self._posture),
            pull=pull,
            cutoff=self.settings.cutoff,
        )
        if self._soft is not None:
            soft = self._evaluate_soft(self._soft, self.robot.home)
        self._soft_at_home = soft

        # The step drifts: it also fills in a motion within the null space of the strict rows, which
        # reduces the cost of the soft rows.
        if self._strict is None:
            return CompiledStep(constrained_step, tuple(soft), drifts=True)

        strict = _evaluate_strict(self._strict, self.robot.home)
        count = len(strict.rows)
        if count > MAX_STRICT:
            needed = f"at most {MAX_STRICT}"
            raise InvalidParameter("number of a solver's strict rows", count, needed)
        self._strict_at_home = strict
        return CompiledStep(strict_rows_step, (*strict, *soft), drifts=True)

    def _evaluate_soft(self, soft: SoftRows, q: Array) -> SoftSettings:
        """Return the settings of custom soft rows at joint positions q (n,)."""
        hessian, gradient = soft.normal_equations(q)
        return SoftSettings(
            hessian=np.ascontiguousarray(hessian),
            gradient=gradient,
            pull=0.0,
            cutoff=self.settings.cutoff,
        )

    def lag(self, period: float) -> float | None:
        """Return a lag of nearly 0 s: an iteration removes the whole error."""
        return self._lag_of(0.0, period)

    def _strict_rows(self) -> Array | None:
        if self._strict is None:
            return None
        matrix, _ = self._strict.at(self._q)
        return matrix

    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        if self._varying is None:
            super()._advance(poses, memory, out)
            return
        for t, pose in enumerate(poses):
            out[t] = self._iterate_varying(memory, pose)
            memory[:] = out[t]

    def _search(self, goal: Array, start: Array, tolerance: tuple[float, float]) -> Solution:
        # A custom solver counts calls instead of iterations: each is a whole step.
        if self._varying is not None:
            return self._varying._search(goal, start, tolerance)
        return super()._search(goal, start, tolerance)

    def _step_varying(self, q: Array, target: pin.SE3) -> Array:
        """Step from joint positions q (n,) towards a target, as `CallableSolver` calls it."""
        return self._iterate_varying(q, as_pose(target))

    def _iterate_varying(self, start: Array, pose: Array) -> Array:
        """Iterate from a start, with the custom rows evaluated anew at each iterate.

        Args:
            start: Joint positions (n,), rad.
            pose: The target (7,).

        Returns:
            Joint positions (n,), rad, after `self.iterations` iterations.
        """
        soft = self._soft_at_home
        strict = self._strict_at_home
        q = np.array(start)
        # `_iterate` moves q, and writes it here as the path (1, n), too, which is not needed.
        path = np.empty((1, self.robot.n))

        for _ in range(self.iterations):
            if self._soft is not None:
                soft = self._evaluate_soft(self._soft, q)
            if self._strict is not None:
                strict = self._evaluate_strict_again(self._strict, q)
            settings = tuple(soft) if strict is None else (*strict, *soft)
            self._iterate(settings, iterations=1, poses=pose[None], q=q, out=path)
        return q

    def _evaluate_strict_again(self, strict: Rows, q: Array) -> StrictSettings:
        """Return the settings of custom strict rows at joint positions q (n,).

        Raises:
            InvalidParameter: Their number is not that at the robot's home.
        """
        assert self._strict_at_home is not None
        settings = _evaluate_strict(strict, q)
        count = len(settings.rows)
        if count != len(self._strict_at_home.rows):
            needed = "the same everywhere"
            raise InvalidParameter("number of a solver's strict rows", count, needed)
        return settings


def _evaluate_strict(strict: Rows, q: Array) -> StrictSettings:
    """Return the settings of custom strict rows at joint positions q (n,)."""
    rows, values = strict.at(q)
    return StrictSettings(rows=np.array(rows), values=np.array(values))
