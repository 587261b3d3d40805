"""Inverse kinematics by simulated forward dynamics (Scherzinger, Roennau and Dillmann).

The pose error acts as a force at the tool of a virtual twin of the arm. The twin's mass is almost
entirely at the tool, so that it accelerates nearly alike in every direction and every posture:

    qdd = H^-1 J^T (Kp e + Kd de/dt)                  (equation 12)
    q  += 0.25 dt^2 qdd                               (lines 8 and 9 of Algorithm 1)

H is the twin's mass matrix. With mass at the tool only this is damped least squares, damped by the
light links.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter
from simbridge.ik.checks import (
    ERROR_CLAMP,
    GAINS,
    NOT_NEGATIVE,
    POSITIVE,
    STEP_CLAMP,
    WHOLE,
    choice_of,
    expand_gain,
)
from simbridge.ik.kernels import forward_dynamics as loops
from simbridge.ik.kernels.generation import structure_of
from simbridge.ik.parameters import TASKS, SolverParameters, setting, unless_preset
from simbridge.ik.settings import change_settings, preset_values, without_clamps
from simbridge.ik.solver import TOLERANCE, Attempt, Solver
from simbridge.ik.stability import Gains, check_accumulation, check_stability
from simbridge.ik.targets import task_of
from simbridge.ik.twin import Twin, effective_masses
from simbridge.robot.pose import Array, Counts
from simbridge.robot.robot import Robot

# Shortest and longest virtual time step that is accepted, s: far beyond any use, and within what
# arithmetic can represent.
SHORTEST_STEP_S = 1e-9
LONGEST_STEP_S = 1e3
# Virtual time step of the authors' released controller, s.
RELEASED_STEP_S = 0.02
# First ballast after a poor prediction, kg m^2 for each joint and kg of mass at the tool.
FIRST_BALLAST = 1e-3

# The settings of `solve`, which do not depend on those of `step`.
# kappa = dt^2 kp/m of the stiffest component.
SOLVE_KAPPA = 2.0
# Number of iterations in each attempt.
SOLVE_ITERATIONS = 200
# Largest error that acts, m and rad.
SOLVE_ERROR_CLAMP = (0.5, 1.0)
# Largest motion of a joint in an iteration, rad.
SOLVE_STEP_CLAMP = 0.5

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
"""Settings for a purpose; see `ForwardDynamics.preset`."""


@dataclass(frozen=True)
class ForwardDynamicsParameters(SolverParameters):
    """Settings of the forward-dynamics solver (Scherzinger, Roennau and Dillmann)."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS

    dt: float = unless_preset(0.1, POSITIVE, slider=(0.01, 1.0), unit="s")
    """Virtual time step, s."""
    iterations: int = unless_preset(50, WHOLE, slider=(1, 200))
    """Iterations per control period (N in the paper)."""
    kp: tuple[float, ...] = unless_preset((50.0,), GAINS, slider=(0.5, 200.0), unit="N/m")
    """Stiffness: one number for translation, N/m (rotation gets a tenth, N m/rad), or six."""
    kd: tuple[float, ...] = unless_preset((0.0,), GAINS, slider=(0.0, 10.0), unit="N s/m")
    """Damping, specified in the same way, N s/m and N m s/rad."""
    tool_mass: float = unless_preset(1.0, NOT_NEGATIVE, unit="kg")
    """Virtual mass at the tool, kg."""
    tool_inertia: float = unless_preset(1.0, NOT_NEGATIVE, unit="kg m²")
    """Virtual inertia at the tool, kg m^2."""
    link_mass: float = unless_preset(1e-3, POSITIVE, slider=(1e-3, 0.5), unit="kg")
    """Virtual mass of each link, kg; 0.1 is smooth near singularities."""
    link_inertia: float = unless_preset(1e-6, POSITIVE, unit="kg m²")
    """Virtual inertia of each link, kg m^2."""
    error_clamp: tuple[float, ...] = unless_preset((0.2, 0.5), ERROR_CLAMP, unit="m and rad")
    """The error is clamped to this, m and rad; inf inf is the paper's plain algorithm."""
    step_clamp: float = unless_preset(0.1, STEP_CLAMP, slider=(0.005, 1.0), unit="rad")
    """Largest joint motion in an iteration, rad (m if sliding); without a clamp (inf), steps may increase the error."""
    scheme: Literal["paper", "velocity-accumulation"] = unless_preset(
        "paper", choice_of("paper", "velocity-accumulation")
    )
    """Integration scheme: as printed in the paper, or as in the released controller (dt 0.02, no step clamp)."""
    task: str = setting("", unset="the robot's", choices=TASKS)
    """Part of the target to attain: pose, axis (position and the tool's z axis) or position."""
    preset: str = setting("", unset="none", choices=("", *PRESETS))
    """Preset for the settings that are not given: accurate, smooth, near-singular, one-shot or released."""

    def __post_init__(self) -> None:
        preset = preset_values(type(self), self.preset)
        for item in fields(self):
            if getattr(self, item.name) is None:
                value = preset.get(item.name, item.metadata["default"])
                object.__setattr__(self, item.name, value)
        super().__post_init__()

    def build(self, robot: Robot) -> ForwardDynamics:
        """Return the solver with these settings."""
        return ForwardDynamics(robot, self)


class ForwardDynamics(Solver):
    """The paper's solver.

    With a step clamp, iterations that raise the error are undone and damped, so that a target out
    of reach is approached as closely as possible, and then held. Without clamps this is the paper's
    plain algorithm, which oscillates on targets out of reach.

    With the scheme "velocity-accumulation" it integrates as the authors' released controller
    (cartesian_controllers): q += dt qd, qd = 0.9 (qd + dt qdd), within the joint limits; dt is
    0.02 s, there is no step clamp, and the velocity is kept from target to target.
    `preset(robot, "released")` has its other settings, too.

    Args:
        robot: The arm.
        settings: The defaults if left out.
        twin: The four virtual masses at once.
        changes: Single settings by name. A clamp of None is infinite; other settings of None are
            not given.

    Attributes:
        kappa: dt^2 kp/m of the stiffest component of the task.

    Raises:
        UnstableSolver: The settings are at or past the stability bound, kappa + 2 dt kd/m < 8 and
            dt kd/m < 4, for translation and rotation each; with velocity accumulation kappa < 1/9.
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
            changes = {**asdict(twin), **changes}
        chosen = change_settings(ForwardDynamicsParameters, settings, without_clamps(changes))

        self.dt = chosen.dt
        self._iterations = chosen.iterations
        self.scheme = chosen.scheme
        self.kp = expand_gain("kp", chosen.kp)
        self.kd = expand_gain("kd", chosen.kd)
        self.twin = Twin(
            tool_mass=chosen.tool_mass,
            tool_inertia=chosen.tool_inertia,
            link_mass=chosen.link_mass,
            link_inertia=chosen.link_inertia,
        )
        self.error_clamp = chosen.error_clamp
        self.step_clamp = chosen.step_clamp
        if not SHORTEST_STEP_S <= self.dt <= LONGEST_STEP_S:
            needed = f"from {SHORTEST_STEP_S:g} to {LONGEST_STEP_S:g} s"
            raise InvalidParameter("solver's dt", chosen.dt, needed)

        super().__init__(robot)
        self.task = task_of(robot, chosen.task or None)
        self._masses = effective_masses(self.twin, robot)

        # Only the components that the task constrains bound the gains.
        rows = 3 if self.task == "position" else 6
        gains = Gains(self.dt, self.kp, self.kd, masses=self._masses, rows=rows)
        if self.scheme == "paper":
            self.kappa = check_stability(gains, self.twin)
        else:
            self._check_released_controller()
            self.kappa = check_accumulation(gains)

        settings_of_loops = loops.LoopSettings(
            dt=self.dt,
            step_clamp=self.step_clamp,
            error_clamp=np.array(self.error_clamp),
            twin=np.array(self.twin.numbers),
            kp=np.array(self.kp),
            kd=np.array(self.kd),
            kappa=self.kappa,
            first_ballast=FIRST_BALLAST * self._masses[0],
        )
        self._settings = tuple(settings_of_loops)
        self._placements = np.array(robot.placements)
        self._limits = np.array([robot.position_min, robot.position_max])
        structure = structure_of(robot.placements, robot.prismatic)
        self._kernels = loops.kernels(structure, self.task)

    @classmethod
    def preset(cls, robot: Robot, name: str, **settings: Any) -> ForwardDynamics:
        """Return the solver with the settings of a preset, except for those given.

            accurate        kp 50: follows closely
            smooth          kp 5: a low-pass filter for targets that are noisy or sparse
            near-singular   link mass 0.1: calm at singularities, less straight
            one-shot        dt 1, kp 2: most of the way in one step; `solve` adds restarts
            released        what the authors' released controller does

        Raises:
            UnknownName: There is no such preset, or no such setting.
        """
        return cls(robot, preset=name, **settings)

    def _check_released_controller(self) -> None:
        """Refuse settings that the authors' released controller does not have."""
        if self.dt != RELEASED_STEP_S:
            needed = f"{RELEASED_STEP_S} s for velocity accumulation"
            raise InvalidParameter("solver's dt", self.dt, needed)
        if math.isfinite(self.step_clamp):
            needed = "none (inf) for velocity accumulation"
            raise InvalidParameter("solver's step_clamp", self.step_clamp, needed)

    @property
    def iterations(self) -> int:
        return self._iterations

    @property
    def search_settings(self) -> Any:
        # Its gains, time step and clamps are SOLVE_KAPPA and what follows there.
        return self.name, self.task, self.twin

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

    def lag(self, period: float) -> float | None:
        """Return T rho/(1 - rho), s, with rho = (1 - dt^2 kp/4m)^N, of the slowest translation.

        None if it is not known: with damping, with velocity accumulation, and without mass at
        the tool.
        """
        is_known = self.scheme == "paper" and not any(self.kd) and self.twin.tool_mass > 0.0
        lowest_kp = min(self.kp[:3])
        # Without stiffness along some axis the target is never followed.
        if not is_known or lowest_kp == 0.0:
            return None
        rho = (1.0 - 0.25 * self.dt**2 * lowest_kp / self.twin.tool_mass) ** self._iterations
        return period * rho / (1.0 - rho)

    def _memory_at(self, q: Array) -> Array:
        """Return a new memory as `kernels/forward_dynamics.py` describes it."""
        return np.concatenate([q, np.zeros(self.robot.n + 8)])

    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        loop = self._kernels.track if self.scheme == "paper" else self._kernels.accumulate
        loop(self._placements, self._limits, poses, memory, self._settings, self._iterations, out)

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        q, residuals, _ = self._solve_compiled(poses, start, TOLERANCE, self._restarts)
        return q, residuals, np.all(residuals <= TOLERANCE, axis=1)

    def _try(self, goal: Array, q: Array, tolerance: tuple[float, float]) -> Attempt:
        no_restarts = self._restarts[:0]
        path, residuals, iterations = self._solve_compiled(goal[None], q, tolerance, no_restarts)
        distance, angle = residuals[0]
        return Attempt(path[0], float(distance), angle=float(angle), iterations=int(iterations[0]))

    def _solve_compiled(
        self, poses: Array, start: Array, tolerance: tuple[float, float], restarts: Array
    ) -> tuple[Array, Array, Counts]:
        """Solve targets one after another, each from the solution of the one before.

        An attempt that stalls near the target, as with a nearly stretched arm, is finished by
        damped Gauss-Newton steps.

        Args:
            poses: The target poses (T, 7).
            start: Joint positions (n,), rad, from which the first target is solved.
            tolerance: Largest error of a solution: translation, m, and rotation, rad.
            restarts: Postures (R, n), rad, from which a failed attempt begins again.

        Returns:
            Joint positions (T, n), residuals (T, 2) in m and rad, and iterations (T,).
        """
        settings = loops.LoopSettings(
            # With a time step of 1 s, kappa = dt^2 kp/m is kp/m: the stiffness follows from it.
            dt=1.0,
            step_clamp=SOLVE_STEP_CLAMP,
            error_clamp=np.array(SOLVE_ERROR_CLAMP),
            twin=np.array(self.twin.numbers),
            kp=np.repeat(SOLVE_KAPPA * np.array(self._masses), 3),
            kd=np.zeros(6),
            kappa=0.0,
            first_ballast=0.0,
        )

        q = np.empty((len(poses), self.robot.n))
        residuals = np.empty((len(poses), 2))
        iterations = np.empty(len(poses), np.int64)
        self._kernels.solve(
            self._placements,
            start,
            restarts,
            poses,
            tuple(settings),
            SOLVE_ITERATIONS,
            np.array(tolerance),
            q,
            residuals,
            iterations,
        )
        return q, residuals, iterations
