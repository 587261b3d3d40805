"""Inverse kinematics by simulated forward dynamics (Scherzinger, Roennau and Dillmann).

The pose error pulls as a force at the tool of a virtual twin of the arm whose mass sits almost wholly in the tool, so
that the twin accelerates nearly alike in every direction and every posture:

    qdd = H^-1 J^T (Kp e + Kd de/dt)                  (equation 12)
    q  += 0.25 dt^2 qdd                               (lines 8 and 9 of Algorithm 1)

H is the twin's mass matrix. With mass at the tool only this is damped least squares, damped by the light links.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter, UnstableSolver
from simbridge.ik.parameters import expand_gain
from simbridge.ik.solver import Array, Solution, Solver, Target, as_pose
from simbridge.robot import Robot

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Twin:
    """Where the virtual twin's mass is (section III-B of the paper; the defaults are its equation 17).

    Attributes:
        tool_mass: At the tool's point, kg.
        tool_inertia: Isotropic, at the tool's point, kg m^2.
        link_mass: At the origin of each joint, kg. 0.1 is smooth near singularities, at the cost of straightness.
        link_inertia: Isotropic, at the origin of each joint, kg m^2.
    """

    tool_mass: float = 1.0
    tool_inertia: float = 1.0
    link_mass: float = 1e-3
    link_inertia: float = 1e-6

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not (math.isfinite(value) and value > 0.0):
                raise InvalidParameter(f"twin's {name}", value, "a positive number")


# What `solve` and the reach check hold to.
TOLERANCE = (1e-6, 1e-5)  # m, rad
_START_TOLERANCE = (1e-10, 1e-10)
_KAPPA = 2.0
# Far beyond any use, and short of what arithmetic or patience can bear.
_LONGEST_STEP = 1e3
_MOST_ITERATIONS = 100_000
_TRIES = 20
_ITERATIONS = 200
_SOLVE_CLAMPS = (np.array([0.5, 1.0]), 0.5)


class ForwardDynamics(Solver):
    """The paper's solver.

    Args:
        robot: The arm.
        dt: Virtual time step, s.
        iterations: N, per step.
        kp: Stiffness: six numbers (N/m, then N m/rad), or one for the translation, of which the rotation gets a tenth.
        kd: Damping, likewise (N s/m, N m s/rad).
        twin: The virtual masses.
        error_clamp: The largest translation (m) and rotation (rad) that pull; None for no clamp.
        step_clamp: The largest motion of a joint in an iteration, rad; None for no clamp.
            Without clamps this is the paper's plain algorithm, which oscillates on targets out of reach.

    Raises:
        UnstableSolver: The settings are at or past the stability bound, kappa + 2 dt kd/m < 8 and dt kd/m < 4, where
            kappa = dt^2 kp/m, for translation and rotation each.
    """

    name = "forward-dynamics"

    def __init__(
        self,
        robot: Robot,
        *,
        dt: float = 0.1,
        iterations: int = 50,
        kp: float | Sequence[float] = 50.0,
        kd: float | Sequence[float] = 0.0,
        twin: Twin | None = None,
        error_clamp: Sequence[float] | None = (0.2, 0.5),
        step_clamp: float | None = 0.1,
    ) -> None:
        super().__init__(robot)
        self.dt = float(dt)
        self._iterations = int(iterations)
        self.kp = expand_gain("kp", kp)
        self.kd = expand_gain("kd", kd)
        self.twin = twin or Twin()
        self.error_clamp = None if error_clamp is None else (float(error_clamp[0]), float(error_clamp[1]))
        self.step_clamp = None if step_clamp is None else float(step_clamp)
        if not 0.0 < self.dt <= _LONGEST_STEP:
            raise InvalidParameter("solver's dt", dt, f"above 0 and at most {_LONGEST_STEP:g} s")
        if not 1 <= self._iterations <= _MOST_ITERATIONS:
            raise InvalidParameter("solver's iterations", iterations, f"from 1 to {_MOST_ITERATIONS}")
        clamps = [*(self.error_clamp or ()), *(() if self.step_clamp is None else (self.step_clamp,))]
        if not all(clamp > 0.0 for clamp in clamps):
            raise InvalidParameter("solver's clamp", (error_clamp, step_clamp), "positive, or infinite for none")
        self._check_stability()

    def _check_stability(self) -> None:
        masses = np.repeat([self.twin.tool_mass, self.twin.tool_inertia], 3)
        kappa = self.dt**2 * np.array(self.kp) / masses
        damping = self.dt * np.array(self.kd) / masses
        worst = int(np.argmax(np.maximum((kappa + 2.0 * damping) / 8.0, damping / 4.0)))
        if kappa[worst] + 2.0 * damping[worst] >= 8.0 or damping[worst] >= 4.0:
            raise UnstableSolver(float(kappa[worst]), float(damping[worst]))
        self.kappa = float(np.max(kappa))
        if self.kappa > 4.0:
            warnings.warn(
                f"kappa = dt^2 kp/m is {self.kappa:.3g}: above 4 iterations overshoot (8 is the stability bound).",
                stacklevel=3,
            )

    @property
    def iterations(self) -> int:
        return self._iterations

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "dt": self.dt,
            "iterations": self._iterations,
            "kp": list(self.kp),
            "kd": list(self.kd),
            **asdict(self.twin),
            "error_clamp": [] if self.error_clamp is None else list(self.error_clamp),
            "step_clamp": math.inf if self.step_clamp is None else self.step_clamp,
        }

    @property
    def _twin(self) -> Array:
        return np.array([self.twin.tool_mass, self.twin.tool_inertia, self.twin.link_mass, self.twin.link_inertia])

    def track(self, poses: Array, q0: Array) -> Array:
        from simbridge.ik.kernels import forward_dynamics_track

        return forward_dynamics_track(
            self.robot.placements,
            self.robot.prismatic,
            np.ascontiguousarray(q0, dtype=float),
            np.ascontiguousarray(poses, dtype=float),
            self.dt,
            self._iterations,
            np.array(self.kp),
            np.array(self.kd),
            self._twin,
            np.array(self.error_clamp or (np.inf, np.inf)),
            np.inf if self.step_clamp is None else self.step_clamp,
        )

    def solve(self, target: Target, q0: Array | None = None) -> Solution:
        """Iterates at kappa = 2, whatever the gains of `step` are: first from q0, then from twenty fixed postures."""
        start = self.robot.home if q0 is None else np.asarray(q0, dtype=float)
        q, residuals, used, tries = self._solve(as_pose(target)[None], start, _START_TOLERANCE)
        close = bool(np.all(residuals[0] <= _START_TOLERANCE))
        q[0] = _unwound(q[0], start, self.robot)
        inside = bool(np.all((q[0] >= self.robot.position_min) & (q[0] <= self.robot.position_max)))
        return Solution(
            q[0], close and inside, float(residuals[0, 0]), float(residuals[0, 1]), int(used[0]), int(tries[0]) - 1
        )

    def solve_each(self, poses: Array, q0: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        q, residuals, _, _ = self._solve(np.ascontiguousarray(poses, dtype=float), q0, TOLERANCE)
        return q, residuals, np.all(residuals <= TOLERANCE, axis=1)

    def _solve(self, poses: Array, q0: Array, tolerance: tuple[float, float]) -> tuple[Array, Array, Counts, Counts]:
        from simbridge.ik.kernels import forward_dynamics_solve

        twin = self._twin
        error_clamp, step_clamp = _SOLVE_CLAMPS
        return forward_dynamics_solve(
            self.robot.placements,
            self.robot.prismatic,
            np.ascontiguousarray(q0, dtype=float),
            restart_postures(self.robot, _TRIES),
            poses,
            0.25 * _KAPPA * twin[:2],
            _ITERATIONS,
            twin,
            error_clamp,
            step_clamp,
            np.array(tolerance),
            True,
        )

    def lag(self, period: float) -> float | None:
        """T rho/(1 - rho) with rho = (1 - dt^2 kp/4m)^N for the slowest axis of the translation; None with damping."""
        # Without a pull along some axis the target is never followed.
        if any(self.kd) or min(self.kp[:3]) == 0.0:
            return None
        rho = (1.0 - 0.25 * self.dt**2 * min(self.kp[:3]) / self.twin.tool_mass) ** self._iterations
        return period * rho / (1.0 - rho)


def restart_postures(robot: Robot, count: int) -> Array:
    """Postures (count, n) from which a failed try starts again: always the same, spread over the joints' ranges."""
    low = np.maximum(robot.position_min, -math.pi)
    high = np.minimum(robot.position_max, math.pi)
    return np.random.default_rng(0).uniform(low, high, (count, robot.n))


def _unwound(q: Array, near: Array, robot: Robot) -> Array:
    """The same posture, joints that are out of range turned by whole turns to where they are nearest to `near`."""
    out = q.copy()
    for i in range(robot.n):
        if robot.prismatic[i]:
            continue
        turns = q[i] + 2.0 * math.pi * np.arange(-3, 4)
        inside = turns[(turns >= robot.position_min[i]) & (turns <= robot.position_max[i])]
        if len(inside) and not robot.position_min[i] <= q[i] <= robot.position_max[i]:
            out[i] = inside[np.argmin(np.abs(inside - near[i]))]
    return out
