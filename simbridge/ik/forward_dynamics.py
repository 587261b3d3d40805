"""Inverse kinematics by simulated forward dynamics (Scherzinger, Roennau and Dillmann), and the Jacobian transpose.

The pose error acts as a force at the tool of a virtual twin of the arm. The twin's mass is almost entirely at the tool,
so that it accelerates nearly alike in every direction and every posture:

    qdd = H^-1 J^T (Kp e + Kd de/dt)                  (equation 12)
    q  += 0.25 dt^2 qdd                               (lines 8 and 9 of Algorithm 1)

H is the twin's mass matrix. With mass at the tool only this is damped least squares, damped by the light links.

The Jacobian transpose is the same without inertia: the error acts on the arm as a force.

    q += 0.25 dt^2 alpha J^T Kp e             (step_length "paper")
    q += alpha J^T e                          (step_length "buss-kim")

The first is what the paper compares its solver to (equation 6): Algorithm 1 with the constant alpha instead of the
inverse mass matrix, chosen so that both accelerate the tool alike on average,

    alpha = mean diag(J H^-1 J^T) / mean diag(J J^T)

The second takes the step that would reduce the error most, if the arm were linear (Buss and Kim, Selectively damped
least squares for inverse kinematics, 2005): alpha = <e, J J^T e> / <J J^T e, J J^T e>.

Wolovich and Elliott, 1984; Balestrino, De Maria and Sciavicco, 1984.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter, UnstableSolver
from simbridge.ik.iterative import CompiledStep, IterativeSolver
from simbridge.ik.kernels import forward_dynamics as loops
from simbridge.ik.kernels.dense import to_joints, to_task
from simbridge.ik.kernels.descent import Buffers
from simbridge.ik.kernels.mathematics import mobility, structure_of
from simbridge.ik.settings import (
    ForwardDynamicsParameters,
    JacobianTransposeParameters,
    expand_gain,
    resolved,
    without_clamps,
)
from simbridge.ik.solver import TOLERANCE, Solver
from simbridge.ik.targets import task_of
from simbridge.robot.pose import Array, Counts
from simbridge.robot.robot import Robot

# Far beyond any use, and within what arithmetic can represent.
_SHORTEST_STEP, _LONGEST_STEP = 1e-9, 1e3
# Of `solve`: kappa, iterations, error clamps (m, rad) and step clamp (rad).
_KAPPA, _ITERATIONS, _SOLVE_ERROR_CLAMP, _SOLVE_STEP_CLAMP = 2.0, 200, (0.5, 1.0), 0.5
_RELEASED_STEP = 0.02  # s
# The first ballast after an iteration that failed: kg m^2 per joint, for a kg at the tool.
_BALLAST = 1e-3
# Postures over which alpha is averaged.
_SAMPLES = 20_000
_MASSES = ("tool_mass", "tool_inertia", "link_mass", "link_inertia")


@dataclass(frozen=True)
class Twin:
    """The masses of the virtual twin (section III-B of the paper; the defaults are its equation 17, conditioned).

    Attributes:
        tool_mass: At the tool's point, kg; may be zero, as the inertia.
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
            light = name.startswith("tool") and value == 0.0
            if not (math.isfinite(value) and (value > 0.0 or light)):
                raise InvalidParameter(
                    f"twin's {name}", value, "a positive number (of the tool also 0)"
                )

    @classmethod
    def naive(cls, n: int) -> Twin:
        """1 kg and 1 kg m^2 spread evenly over the n joints, nothing at the tool: the naive twin of experiment A."""
        return cls(tool_mass=0.0, tool_inertia=0.0, link_mass=1.0 / n, link_inertia=1.0 / n)

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """Tool mass, tool inertia, link mass, link inertia, for the kernels."""
        return self.tool_mass, self.tool_inertia, self.link_mass, self.link_inertia


class ForwardDynamics(Solver):
    """The paper's solver.

    With a step clamp, iterations that raise the error are undone and damped, so that a target out of reach is
    approached as closely as possible, and then held. Without clamps this is the paper's plain algorithm, which
    oscillates on targets out of reach. With the scheme "velocity-accumulation" it integrates as the authors' released
    controller (cartesian_controllers): q += dt qd, qd = 0.9 (qd + dt qdd), within the joint limits; dt is 0.02 s, there
    is no step clamp, and the velocity is kept from target to target. `preset(robot, "released")` has its other
    settings, too.

    Args:
        robot: The arm.
        settings: The defaults if left out.
        twin: The four virtual masses at once.
        changes: Single settings by name. A clamp that is None is no clamp; elsewhere None is "not given".

    Raises:
        UnstableSolver: The settings are at or past the stability bound, kappa + 2 dt kd/m < 8 and dt kd/m < 4, where
            kappa = dt^2 kp/m, for translation and rotation each; with velocity accumulation kappa < 1/9.
        InvalidParameter: A setting makes no sense.
        UnknownName: There is no such setting, preset or task.
    """

    name = "forward-dynamics"
    tries = 60

    def __init__(
        self,
        robot: Robot,
        settings: ForwardDynamicsParameters | None = None,
        *,
        twin: Twin | None = None,
        **changes: Any,
    ) -> None:
        if twin is not None:
            changes = {**dict(zip(_MASSES, twin.numbers, strict=True)), **changes}
        given = resolved(ForwardDynamicsParameters, settings, without_clamps(changes))
        self.dt, self._iterations, self.scheme = given.dt, given.iterations, given.scheme
        self.kp, self.kd = expand_gain("kp", given.kp), expand_gain("kd", given.kd)
        self.twin = Twin(*(getattr(given, name) for name in _MASSES))
        self.error_clamp, self.step_clamp = given.error_clamp, given.step_clamp
        if not _SHORTEST_STEP <= self.dt <= _LONGEST_STEP:
            raise InvalidParameter(
                "solver's dt", given.dt, f"from {_SHORTEST_STEP:g} to {_LONGEST_STEP:g} s"
            )
        super().__init__(robot)
        self.task = task_of(robot, given.task or None)
        self._masses = effective_masses(self.twin, robot)
        if self.scheme != "paper":
            if self.dt != _RELEASED_STEP:
                raise InvalidParameter(
                    "solver's dt", self.dt, f"{_RELEASED_STEP} s for velocity accumulation"
                )
            if math.isfinite(self.step_clamp):
                raise InvalidParameter(
                    "solver's step_clamp", self.step_clamp, "none (inf) for velocity accumulation"
                )
        self._check_stability()
        clamp, masses, kp, kd = map(
            np.array, (self.error_clamp, self.twin.numbers, self.kp, self.kd)
        )
        self._settings = (
            self.dt,
            self.step_clamp,
            clamp,
            masses,
            kp,
            kd,
            self.kappa,
            _BALLAST * self._masses[0],
        )
        self._placements = np.array(robot.placements)
        self._limits = np.array([robot.position_min, robot.position_max])
        self._kernels = loops.kernels(structure_of(robot.placements, robot.prismatic), self.task)

    @classmethod
    def preset(cls, robot: Robot, name: str, **settings: Any) -> ForwardDynamics:
        """The solver with the settings of a preset, except for those given.

            accurate        kp 50: follows closely
            smooth          kp 5: a low-pass filter for targets that are noisy or sparse
            near-singular   link mass 0.1: calm at singularities, less straight
            one-shot        dt 1, kp 2: most of the way to a far target in one step; `solve` adds restarts
            released        what the authors' released controller does

        Raises:
            UnknownName: There is no such preset, or no such setting.
        """
        return cls(robot, preset=name, **settings)

    def _check_stability(self) -> None:
        kappa, damping = loads(self.dt, self.kp, self.kd, self._masses)
        # Only the components that the task constrains.
        rows = 3 if self.task == "position" else 6
        kappa, damping = kappa[:rows], damping[:rows]
        self.kappa = float(np.max(kappa))
        if self.scheme == "velocity-accumulation":
            radius = [accumulated_radius(k, d) for k, d in zip(kappa, damping, strict=True)]
            worst = int(np.argmax(radius))
            # Without stiffness an error is constant.
            if radius[worst] >= 1.0 and (kappa[worst] > 0.0 or radius[worst] > 1.0 + 1e-9):
                raise UnstableSolver(float(kappa[worst]), float(damping[worst]), accumulating=True)
            return
        worst = int(np.argmax(np.maximum((kappa + 2.0 * damping) / 8.0, damping / 4.0)))
        if kappa[worst] + 2.0 * damping[worst] >= 8.0 or damping[worst] >= 4.0:
            # Mass (kg) and inertia (kg m^2) at the tool above which the gains are stable.
            kp, kd = (
                np.reshape(self.kp, (2, 3)).max(axis=1),
                np.reshape(self.kd, (2, 3)).max(axis=1),
            )
            least = np.maximum((self.dt**2 * kp + 2.0 * self.dt * kd) / 8.0, self.dt * kd / 4.0)
            bare = 0.0 in (self.twin.tool_mass, self.twin.tool_inertia)
            needed = (float(least[0]), float(least[1]))
            raise UnstableSolver(
                float(kappa[worst]), float(damping[worst]), needed=needed, bare=bare
            )
        if self.kappa > 4.0:
            warnings.warn(
                f"kappa = dt^2 kp/m is {self.kappa:.3g}: above 4 iterations overshoot (8 is the stability bound).",
                stacklevel=4,
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
            "error_clamp": list(self.error_clamp),
            "step_clamp": self.step_clamp,
            "scheme": self.scheme,
            "task": self.task,
        }

    def _memory_at(self, q: Array) -> Array:
        """As `kernels/forward_dynamics.py` describes it."""
        return np.concatenate([q, np.zeros(self.robot.n + 8)])

    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        run = self._kernels.track if self.scheme == "paper" else self._kernels.accumulate
        run(self._placements, self._limits, poses, memory, self._settings, self._iterations, out)

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        q, residuals, _ = self._solve_compiled(poses, start, TOLERANCE, self._restarts)
        return q, residuals, np.all(residuals <= TOLERANCE, axis=1)

    def _try(
        self, goal: Array, q: Array, tolerance: tuple[float, float]
    ) -> tuple[Array, float, float, int]:
        found, residuals, used = self._solve_compiled(goal[None], q, tolerance, self._restarts[:0])
        return found[0], float(residuals[0, 0]), float(residuals[0, 1]), int(used[0])

    def _solve_compiled(
        self, poses: Array, start: Array, tolerance: tuple[float, float], restarts: Array
    ) -> tuple[Array, Array, Counts]:
        """Iterates at kappa = 2, whatever the gains of `step` are. A try that stalls near the target, as with a nearly
        stretched arm, is finished by damped Gauss-Newton steps.

        Returns:
            Joint positions (T, n), residuals (T, 2) in m and rad, and iterations (T,).
        """
        # In virtual time of 1 s, kappa is kp/m.
        gains, none = np.repeat(_KAPPA * np.array(self._masses), 3), np.zeros(6)
        twin = np.array(self.twin.numbers)
        settings = (
            1.0,
            _SOLVE_STEP_CLAMP,
            np.array(_SOLVE_ERROR_CLAMP),
            twin,
            gains,
            none,
            0.0,
            0.0,
        )
        total = len(poses)
        q, residuals, used = (
            np.empty((total, self.robot.n)),
            np.empty((total, 2)),
            np.empty(total, np.int64),
        )
        self._kernels.solve(
            self._placements,
            start,
            restarts,
            poses,
            settings,
            _ITERATIONS,
            np.array(tolerance),
            q,
            residuals,
            used,
        )
        return q, residuals, used

    def lag(self, period: float) -> float | None:
        """T rho/(1 - rho) with rho = (1 - dt^2 kp/4m)^N for the slowest axis of the translation; None, where unknown,
        with damping, with velocity accumulation, and without mass at the tool."""
        known = self.scheme == "paper" and not any(self.kd) and self.twin.tool_mass > 0.0
        # Without stiffness along some axis the target is never followed.
        if not known or min(self.kp[:3]) == 0.0:
            return None
        rho = (1.0 - 0.25 * self.dt**2 * min(self.kp[:3]) / self.twin.tool_mass) ** self._iterations
        return period * rho / (1.0 - rho)


def effective_masses(twin: Twin, robot: Robot) -> tuple[float, float]:
    """Mass (kg) and inertia (kg m^2) that the tool has at least in every posture: they bound the gains.

    With mass and inertia at the tool, these. Otherwise those of the last link, as effective at the tool at a distance
    r: one over the largest eigenvalue of its compliance. The other links only make the tool heavier.
    """
    if twin.tool_mass > 0.0 and twin.tool_inertia > 0.0:
        return twin.tool_mass, twin.tool_inertia
    mass, inertia = twin.link_mass, twin.link_inertia
    distance = float(np.linalg.norm(robot.placements[-1, :3, 3]))
    if robot.prismatic[-1]:
        distance += max(abs(robot.position_min[-1]), abs(robot.position_max[-1]))
    if not math.isfinite(distance):
        return 0.0, 0.0
    # Perpendicular to r the compliance is [[1/m + r^2/I, r/I], [r/I, 1/I]].
    compliance = [
        [1.0 / mass + distance**2 / inertia, distance / inertia],
        [distance / inertia, 1.0 / inertia],
    ]
    least = 1.0 / float(np.linalg.eigvalsh(compliance)[-1])
    return max(least, twin.tool_mass), max(least, twin.tool_inertia)


def loads(
    dt: float, kp: Sequence[float], kd: Sequence[float], masses: tuple[float, float]
) -> tuple[Array, Array]:
    """kappa = dt^2 kp/m (6,), and dt kd/m (6,), translation first."""
    six = np.maximum(np.repeat(masses, 3), np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        return dt**2 * np.array(kp) / six, dt * np.array(kd) / six


def accumulated_radius(kappa: float, damping: float) -> float:
    """The factor by which an error finally grows in an iteration of velocity accumulation; stable below 1.

    Of (e, dt v, dt v before): e+ = e - dt v; v+ = 0.9 (v + (kappa e - damping dt v before)/dt). Without damping it is
    stable for kappa below 1/9.
    """
    step = [[1.0, -1.0, 0.0], [0.9 * kappa, 0.9, -0.9 * damping], [0.0, 1.0, 0.0]]
    return (
        float(np.abs(np.linalg.eigvals(step)).max()) if math.isfinite(kappa + damping) else math.inf
    )


class JacobianTranspose(IterativeSolver):
    """The Jacobian transpose. Settings: see `JacobianTransposeParameters`.

    Attributes:
        alpha: The constant that is in use; of no effect with the length of Buss and Kim.
    """

    name = "jacobian-transpose"
    Parameters = JacobianTransposeParameters
    settings: JacobianTransposeParameters
    reliable = False
    max_start_iterations = 3000

    @property
    def alpha(self) -> float:
        return self.settings.alpha or paper_alpha(self.robot)

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | (
            {"alpha": self.alpha} if self.settings.step_length == "paper" else {}
        )

    def compiled_step(self) -> CompiledStep:
        if self.settings.step_length == "buss-kim":
            return CompiledStep(best_length_step, (0.0,))
        gain = np.array(expand_gain("kp", self.settings.kp))
        return CompiledStep(given_length_step, (0.25 * self.settings.dt**2 * self.alpha, gain))

    def rotation_weight(self) -> float:
        kp = np.array(expand_gain("kp", self.settings.kp))
        # Without stiffness in translation there is nothing to weigh against.
        paper = self.settings.step_length == "paper" and kp[:3].any()
        return float(kp[3:].mean() / kp[:3].mean()) if paper else 1.0


def paper_alpha(robot: Robot) -> float:
    """mean diag(J H^-1 J^T) / mean diag(J J^T) over joint positions uniform in [-pi, pi), always the same ones.

    H is the mass matrix of the paper's conditioned twin. UR10: 0.7881; over many such draws 0.7874 (the paper: 0.7885).
    """
    return _alpha(robot.placements.tobytes(), tuple(robot.prismatic))


@lru_cache(maxsize=64)
def _alpha(placements: bytes, prismatic: tuple[bool, ...]) -> float:
    chain, slides = np.frombuffer(placements).reshape(-1, 4, 4), np.array(prismatic)
    q = np.random.default_rng(0).uniform(-math.pi, math.pi, (_SAMPLES, len(slides)))
    # Contiguous along the samples: that fixes the order in which they are summed.
    plain, conditioned = (
        np.ascontiguousarray(np.moveaxis(m, 0, -1))
        for m in mobility(chain, slides, q, [Twin().numbers])
    )
    return float(np.trace(conditioned).mean() / np.trace(plain).mean())


def given_length_step(settings: tuple[float, Array], buffers: Buffers) -> None:
    """The motion alpha J^T K e. Settings: alpha, and the diagonal of K (6,), not negative."""
    alpha, gain = settings
    for k in range(buffers.rows):
        buffers.task[k] = alpha * gain[k] * buffers.error[k]
    to_joints(buffers.jacobian, buffers.task, buffers.n, buffers.rows, buffers.dq)


def best_length_step(settings: tuple[float], buffers: Buffers) -> None:
    """The motion alpha J^T e with the alpha that leaves, to first order, the smallest error. Settings: unused."""
    jacobian, error, rows, dq = buffers.jacobian, buffers.error, buffers.rows, buffers.dq
    to_joints(jacobian, error, buffers.n, rows, dq)
    to_task(jacobian, dq, buffers.n, rows, buffers.task)
    pull, reach = 0.0, 0.0
    for k in range(rows):
        pull += error[k] * buffers.task[k]
        reach += buffers.task[k] * buffers.task[k]
    # With a reach whose square is rounding there is no direction to search.
    alpha = pull / reach if reach > 1e-290 else 0.0
    for j in range(buffers.n):
        dq[j] *= alpha
