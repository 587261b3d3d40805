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
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter, UnknownName, UnstableSolver
from simbridge.ik.inputs import Target, as_joints, as_pose
from simbridge.ik.joint_wrapping import wind_into_limits
from simbridge.ik.kernels.kernel import ForwardDynamicsKernel, forward_dynamics_kernel
from simbridge.ik.kernels.routine import Call
from simbridge.ik.routine_solver import RoutineSolver
from simbridge.ik.setting_checks import Numbers, error_clamps_of, expand_gain, number, step_clamp_of, whole
from simbridge.ik.settings import PRESETS
from simbridge.ik.solver import Solution
from simbridge.ik.task import task_of
from simbridge.ik.twin import Twin, accumulated_radius, effective_masses, loads
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

__all__ = ["TOLERANCE", "ForwardDynamics", "Twin", "restart_postures"]

Counts = NDArray[np.int64]
Scheme = Literal["paper", "velocity-accumulation"]

# What `solve` and the reach check hold to.
TOLERANCE = (1e-6, 1e-5)  # m, rad
_START_TOLERANCE = (1e-10, 1e-10)
_KAPPA = 2.0
# Far beyond any use, and short of what arithmetic can bear.
_SHORTEST_STEP, _LONGEST_STEP = 1e-9, 1e3
_TRIES = 60
_ITERATIONS = 200
_SOLVE_ERROR_CLAMP, _SOLVE_STEP_CLAMP = (0.5, 1.0), 0.5
_RELEASED_STEP = 0.02  # s
# What is first added to every joint where an iteration failed, in kg m^2 a kg at the tool.
_BALLAST = 1e-3


class ForwardDynamics(RoutineSolver):
    """The paper's solver.

    Args:
        robot: The arm.
        dt: Virtual time step, s.
        iterations: N, per step.
        kp: Stiffness: six numbers (N/m, then N m/rad), or one for the translation, of which the rotation gets a tenth.
        kd: Damping, likewise (N s/m, then N m s/rad).
        twin: The virtual masses.
        error_clamp: The largest translation (m) and rotation (rad) that pull; None for no clamp.
        step_clamp: The largest motion of a joint in an iteration, rad (of a slide m). With it iterations that raise the
            error are taken back and damped, so that a target out of reach is approached as near as can be, and then
            held; None for neither. Without clamps this is the paper's plain algorithm, which oscillates on targets out
            of reach.
        scheme: "paper": q += 0.25 dt^2 qdd. "velocity-accumulation": as the authors' released controller
            (cartesian_controllers) has it: q += dt qd, qd = 0.9 (qd + dt qdd), within the joint limits; dt is 0.02 s,
            there is no step clamp, and the velocity goes on from target to target.
            `preset(robot, "released")` has its other settings, too.
        task: "pose", "axis" or "position": what of a target is to be attained; the robot's own by default.

    Raises:
        UnstableSolver: The settings are at or past the stability bound, kappa + 2 dt kd/m < 8 and dt kd/m < 4, where
            kappa = dt^2 kp/m, for translation and rotation each; with velocity accumulation kappa < 1/9.
        InvalidParameter: A setting makes no sense.
        UnknownName: There is no such task.
    """

    name = "forward-dynamics"

    def __init__(
        self,
        robot: Robot,
        *,
        dt: float = 0.1,
        iterations: int = 50,
        kp: Numbers = 50.0,
        kd: Numbers = 0.0,
        twin: Twin | None = None,
        error_clamp: Sequence[float] | None = (0.2, 0.5),
        step_clamp: float | None = 0.1,
        scheme: Scheme = "paper",
        task: str | None = None,
    ) -> None:
        self.dt = number("dt", dt)
        self._iterations = whole("iterations", iterations)
        self.kp = expand_gain("kp", kp)
        self.kd = expand_gain("kd", kd)
        self.twin = twin or Twin()
        self.error_clamp = None if error_clamp is None else error_clamps_of(error_clamp)
        self.step_clamp = None if step_clamp is None else step_clamp_of(step_clamp)
        self.scheme = scheme
        if not _SHORTEST_STEP <= self.dt <= _LONGEST_STEP:
            raise InvalidParameter("solver's dt", dt, f"from {_SHORTEST_STEP:g} to {_LONGEST_STEP:g} s")
        super().__init__(robot)
        self.task = task_of(robot, task)
        self._masses = effective_masses(self.twin, robot)
        self._check_scheme()
        self._check_stability()
        step = math.inf if self.step_clamp is None else self.step_clamp
        clamped = self.error_clamp or (math.inf, math.inf)
        ballast = _BALLAST * self._masses[0]
        self._settings = np.array(
            [self.dt, step, *clamped, *self.twin.numbers, *self.kp, *self.kd, self.kappa, ballast]
        )
        # Next to the solver, so that a step needs not look them up.
        self._placements = robot.placements
        self._limits = np.array([robot.position_min, robot.position_max])
        self._n = robot.n

    @classmethod
    def preset(cls, robot: Robot, name: str, **settings: Any) -> ForwardDynamics:
        """The solver with the settings of a preset, except for those given.

            accurate        kp 50: follows closely
            smooth          kp 5: a low-pass filter for targets that are noisy or rare
            near-singular   link mass 0.1: calm at singularities, less straight
            one-shot        dt 1, kp 2: most of the way to a far target in one step; `solve` adds restarts
            released        what the authors' released controller does

        Raises:
            UnknownName: There is no such preset.
        """
        from simbridge.ik.settings import ForwardDynamicsParameters

        if name not in PRESETS:
            raise UnknownName("preset", name, PRESETS)
        solver = ForwardDynamicsParameters(**PRESETS[name]).arguments()
        return cls(robot, **{**solver, **settings})

    def _check_scheme(self) -> None:
        if self.scheme not in ("paper", "velocity-accumulation"):
            raise InvalidParameter("solver's scheme", self.scheme, "paper or velocity-accumulation")
        if self.scheme == "paper":
            return
        if self.dt != _RELEASED_STEP:
            raise InvalidParameter("solver's dt", self.dt, f"{_RELEASED_STEP} s for velocity accumulation")
        if self.step_clamp is not None and math.isfinite(self.step_clamp):
            raise InvalidParameter("solver's step_clamp", self.step_clamp, "none (inf) for velocity accumulation")

    def _check_stability(self) -> None:
        kappa, damping = loads(self.dt, self.kp, self.kd, self._masses)
        # What the task does not see does not pull.
        rows = 3 if self.task == "position" else 6
        kappa, damping = kappa[:rows], damping[:rows]
        self.kappa = float(np.max(kappa))
        if self.scheme == "velocity-accumulation":
            radius = [accumulated_radius(k, d) for k, d in zip(kappa, damping, strict=True)]
            worst = int(np.argmax(radius))
            # Without any pull an error just stays.
            if radius[worst] >= 1.0 and (kappa[worst] > 0.0 or radius[worst] > 1.0 + 1e-9):
                raise UnstableSolver(float(kappa[worst]), float(damping[worst]), accumulating=True)
            return
        worst = int(np.argmax(np.maximum((kappa + 2.0 * damping) / 8.0, damping / 4.0)))
        if kappa[worst] + 2.0 * damping[worst] >= 8.0 or damping[worst] >= 4.0:
            bare = 0.0 in (self.twin.tool_mass, self.twin.tool_inertia)
            needed = self._least_masses()
            raise UnstableSolver(float(kappa[worst]), float(damping[worst]), needed=needed, bare=bare)
        if self.kappa > 4.0:
            warnings.warn(
                f"kappa = dt^2 kp/m is {self.kappa:.3g}: above 4 iterations overshoot (8 is the stability bound).",
                stacklevel=4,
            )

    def _least_masses(self) -> tuple[float, float]:
        """Mass (kg) and inertia (kg m^2) at the tool above which the gains are stable."""
        kp, kd = np.reshape(self.kp, (2, 3)).max(axis=1), np.reshape(self.kd, (2, 3)).max(axis=1)
        least = np.maximum((self.dt**2 * kp + 2.0 * self.dt * kd) / 8.0, self.dt * kd / 4.0)
        return float(least[0]), float(least[1])

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
            "scheme": self.scheme,
            "task": self.task,
        }

    def _memory_at(self, q: Array) -> Array:
        """As `codegen/loops.py` says."""
        memory = np.zeros(2 * self._n + 8)
        memory[: self._n] = q
        return memory

    def _bound(self, poses: Array, memory: Array, out: Array) -> Call:
        kernel = self._kernel()
        run = kernel.track if self.scheme == "paper" else kernel.accumulate
        limits, settings, work = self._limits, self._settings, np.empty(44 + 3 * self._n)
        return run.bound(self._placements, limits, poses, memory, settings, self._iterations, work, out)

    def _kernel(self) -> ForwardDynamicsKernel:
        return forward_dynamics_kernel(self.robot, self.task)

    def _solve(self, goal: Array, start: Array) -> Solution:
        """Iterates at kappa = 2, whatever the gains of `step` are: first from the start, then from sixty fixed
        postures, until one leads to the target within the joint limits. A try that stalls near the target, as with a
        nearly stretched arm, is finished with damped Gauss-Newton steps."""
        best: tuple[tuple[bool, bool, float], Array, Array] | None = None
        iterations, restarts = 0, -1
        for begin in [start, *restart_postures(self.robot, _TRIES)]:
            restarts += 1
            found, residuals, used, _ = self._search(goal[None], begin, _START_TOLERANCE, tries=0)
            iterations += int(used[0])
            q = found[0]
            inside = bool(wind_into_limits(self.robot.prismatic, self._limits[0], self._limits[1], start, q))
            miss = float(np.max(residuals[0] / _START_TOLERANCE))
            close = miss <= 1.0
            # What attains the target within the limits comes first, then what attains it at all, then the nearest.
            rank = (not (close and inside), not close, miss)
            if best is None or rank < best[0]:
                best = rank, q, residuals[0]
            if close and inside:
                break
        assert best is not None
        (failed, _, _), q, residual = best
        return Solution(q, not failed, float(residual[0]), float(residual[1]), iterations, restarts)

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        q, residuals, _, _ = self._search(poses, start, TOLERANCE)
        return q, residuals, np.all(residuals <= TOLERANCE, axis=1)

    def solve_near(self, target: Target, q0: Array, tolerance: tuple[float, float]) -> Solution:
        """One try from q0 (n,), without restarts or joint limits: the solution that continues a motion.

        Args:
            target: The pose.
            q0: Where to begin, rad.
            tolerance: Translation (m) and rotation (rad) at which it has converged.

        Raises:
            InvalidParameter: The target is no pose, or the start is not n finite numbers.
        """
        q, residuals, used, _ = self._search(as_pose(target)[None], as_joints(q0, self._n), tolerance, tries=0)
        left, turned = float(residuals[0, 0]), float(residuals[0, 1])
        return Solution(q[0], left <= tolerance[0] and turned <= tolerance[1], left, turned, int(used[0]), 0)

    def _search(
        self, poses: Array, start: Array, tolerance: tuple[float, float], tries: int = _TRIES
    ) -> tuple[Array, Array, Counts, Counts]:
        # In virtual time of 1 s, kappa is kp/m.
        gains = np.repeat(_KAPPA * np.array(self._masses), 3)
        twin = self.twin.numbers
        settings = np.array([1.0, _SOLVE_STEP_CLAMP, *_SOLVE_ERROR_CLAMP, *twin, *gains, *np.zeros(8)])
        starts = restart_postures(self.robot, tries)
        total = len(poses)
        q, residuals, work = np.empty((total, self._n)), np.empty((total, 2)), np.empty(44 + 3 * self._n)
        used, tried = np.empty(total, np.int64), np.empty(total, np.int64)
        self._kernel().solve(
            self._placements,
            start,
            starts,
            poses,
            settings,
            _ITERATIONS,
            np.array(tolerance),
            work,
            q,
            residuals,
            used,
            tried,
        )
        return q, residuals, used, tried

    def lag(self, period: float) -> float | None:
        """T rho/(1 - rho) with rho = (1 - dt^2 kp/4m)^N for the slowest axis of the translation; None where unknown.

        That is with damping, with velocity accumulation, and with no mass at the tool.
        """
        known = self.scheme == "paper" and not any(self.kd) and self.twin.tool_mass > 0.0
        # Without a pull along some axis the target is never followed.
        if not known or min(self.kp[:3]) == 0.0:
            return None
        rho = (1.0 - 0.25 * self.dt**2 * min(self.kp[:3]) / self.twin.tool_mass) ** self._iterations
        return period * rho / (1.0 - rho)


def restart_postures(robot: Robot, count: int) -> Array:
    """Postures (count, n) from which a failed try starts again: always the same, spread over the joints' ranges.

    Of a joint that turns at most one turn is used, around zero if it gets there; of an endless slide two metres.
    """
    ranges = [
        _used_range(*limits) for limits in zip(robot.position_min, robot.position_max, robot.prismatic, strict=True)
    ]
    low, high = np.array(ranges).T
    return np.random.default_rng(0).uniform(low, high, (count, robot.n))


def _used_range(least: float, most: float, slides: bool) -> tuple[float, float]:
    if slides:
        low = least if math.isfinite(least) else min(-1.0, most - 2.0)
        return low, most if math.isfinite(most) else max(1.0, low + 2.0)
    low, high = max(least, -math.pi), min(most, math.pi)
    if low <= high:
        return low, high
    # Wholly beyond half a turn.
    return (least, min(most, least + 2.0 * math.pi)) if least > 0.0 else (max(least, most - 2.0 * math.pi), most)
