"""The loops of forward dynamics over iterations and targets, around the generated function `move`.

They are compiled together with it, for arms of one kinematic structure and one task.

`memory` (2 n + 8,) is the state that is kept between targets: joint positions (n), their velocity
(n, of velocity accumulation only), the ballast (kg m^2), the last error (6) and whether there is
one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from simbridge.ik.kernels.dense import aim, copy, largest, norm
from simbridge.ik.kernels.generation import Structure, generate_move
from simbridge.ik.kernels.stand_ins import move
from simbridge.kernels.compile import Kernel, kernel
from simbridge.kernels.program import program_of
from simbridge.robot.pose import Array, Counts

# The attained decrease of the potential in proportion to the predicted one: below the first a
# motion is undone, below the second the ballast grows, above the third it shrinks.
LEAST_RATIO = 0.1
POOR_RATIO = 0.25
GOOD_RATIO = 0.75
# Factor by which the ballast grows.
BALLAST_GROWTH = 4.0
# Factor by which the ballast shrinks.
BALLAST_SHRINKAGE = 0.5
# The largest ballast, in multiples of the first one.
MAX_BALLAST = 1e6
# The squared error (1e-7 m and rad) below which rounding decides whether it falls.
ROUNDING_SQUARE = 1e-14
# The least decrease of a potential that divides.
LEAST_DECREASE = 1e-300

# Factor kept of the velocity in an iteration of velocity accumulation.
VELOCITY_KEPT = 0.9

# Iterations with all mass at the tool that finish an attempt.
FINISHING_ITERATIONS = 50
# The error, m and rad together, below which an attempt is finished like that.
FINISHING_ERROR = 1e-3
# The least ballast then, in masses of the tool: with less, the mass matrix of a redundant arm is
# singular up to rounding.
FINISHING_BALLAST = 1e-15


class LoopSettings(NamedTuple):
    """Settings of the loops, which take them as a plain tuple.

    With each call numba takes a microsecond to recognize the type of a named one.

    Attributes:
        dt: Virtual time step, s.
        step_clamp: Largest motion of a joint in an iteration, rad or m; infinite for none.
        error_clamp: Largest error that acts (2,), m and rad; infinite for none.
        twin: Tool mass, tool inertia, link mass and link inertia (4,), kg and kg m^2.
        kp: Stiffness (6,), translation first, N/m and N m/rad.
        kd: Damping (6,), N s/m and N m s/rad.
        kappa: dt^2 kp/m of the stiffest component.
        first_ballast: The least ballast but none, kg m^2.
    """

    dt: float
    step_clamp: float
    error_clamp: Array
    twin: Array
    kp: Array
    kd: Array
    kappa: float
    first_ballast: float


class Kernels(NamedTuple):
    """The compiled loops, for arms of one kinematic structure and one task."""

    track: Kernel
    accumulate: Kernel
    solve: Kernel


@lru_cache(maxsize=64)
def kernels(structure: Structure, task: str) -> Kernels:
    """Return the compiled loops for arms of one kinematic structure, and a task."""
    replacements = {"move": generate_move(structure, task)}
    program = program_of(track, accumulate, solve, replacements=replacements)
    purpose = "forward-dynamics solver for this kinematic structure"
    return Kernels(*(kernel(program, name, purpose) for name in Kernels._fields))


def potential(kp: Array, error: Array, pull: Array) -> float:
    """Return the potential of the force.

    It is quadratic in the error (6,), and linear where the clamps shorten that to `pull` (6,).
    """
    total = 0.0
    for i in range(6):
        total += kp[i] * pull[i] * (error[i] - 0.5 * pull[i])
    return total


def is_attained(error: Array) -> bool:
    """Return whether an error (6,) is so small that rounding decides whether it falls."""
    total = 0.0
    for i in range(6):
        total += error[i] * error[i]
    return total < ROUNDING_SQUARE


def adapt_ballast(ballast: float, ratio: float, first_ballast: float) -> float:
    """Return the next ballast, from the ratio of the attained decrease to the predicted one."""
    if ratio < POOR_RATIO:
        return min(max(BALLAST_GROWTH * ballast, first_ballast), MAX_BALLAST * first_ballast)
    if ratio > GOOD_RATIO:
        lighter = BALLAST_SHRINKAGE * ballast
        return lighter if lighter >= first_ballast else 0.0
    return ballast


# complexipy: ignore (its arrays must not be arguments of another, as said below)
def track(
    placements: Array,
    limits: Array,
    poses: Array,
    memory: Array,
    settings: LoopSettings,
    iterations: int,
    out: Array,
) -> None:
    """Follow Algorithm 1 of the paper for a sequence of targets.

    With a finite step clamp this is Levenberg-Marquardt: a motion must lower the potential by at
    least a tenth of the decrease that the linear model predicts, or it is undone. A ballast (an
    inertia added to every joint) grows after poor predictions and shrinks after good ones; within
    reach it is zero. Out of reach the arm is stretched, and the twin is light in the direction in
    which the force bends the path: there the ballast damps it. While a target is held the potential
    never rises, so the arm cannot oscillate.

    All is one function: arrays that are made in it cannot overlap, which the compiler would not
    know of arguments.

    Args:
        placements: The chain (n + 1, 4, 4); its last frame is the tool's.
        limits: Not used by this loop.
        poses: The targets (T, 7).
        memory: The state (2 n + 8,) that is kept between targets, in the order of the module's
            text; updated.
        settings: The settings of the loops, as a plain tuple in the order of `LoopSettings`.
        iterations: The number of iterations per target.
        out: Result: joint positions (T, n), rad or m.
    """
    n = out.shape[1]
    # The parts of the state, as the module's text lists them; the others are of `accumulate`.
    q = memory[:n]
    ballast = memory[2 * n]

    dt, step_clamp, error_clamp, twin, kp, kd, kappa, first_ballast = settings
    is_guarded = step_clamp < np.inf
    # Lines 8 and 9 each halve: qd = 0.5 qdd dt, q += 0.5 qd dt. Velocity does not accumulate.
    quarter = 0.25 * dt * dt
    # The decrease of a quadratic potential in an iteration, as a part of slope times motion.
    model = 1.0 - kappa / 8.0

    target = np.zeros(12)
    error = np.zeros(6)
    pull = np.zeros(6)
    no_damping = np.zeros(6)
    damping = np.zeros(6)
    # The acceleration (n,), then the slope of the potential along it.
    motion = np.zeros(n + 1)
    q_before = np.zeros(n)
    for i in range(6):
        damping[i] = kd[i] / dt

    for t in range(poses.shape[0]):
        aim(poses[t], target)
        potential_before = 0.0
        predicted = 0.0
        # True if the last motion may still be undone, and if `pull` belongs to this target.
        is_moved = False
        has_pull = False

        # One more than there are motions: the last pass only checks the last motion.
        for iteration in range(iterations + 1 if is_guarded else iterations):
            if iteration == iterations and not is_moved:
                break

            # The error before the first is the first: a new target gives no derivative kick.
            active_damping = damping if has_pull else no_damping
            move(
                placements,
                q,
                target,
                kp,
                active_damping,
                twin,
                error_clamp,
                ballast,
                pull,
                error,
                motion,
            )

            if is_guarded:
                attained = potential(kp, error, pull)
                if is_moved and not is_attained(error):
                    ratio = (potential_before - attained) / max(predicted, LEAST_DECREASE)
                    ballast = adapt_ballast(ballast, ratio, first_ballast)
                    if ratio < LEAST_RATIO:
                        copy(q_before, q)
                        is_moved = False
                        has_pull = False
                        continue
                copy(q, q_before)
                potential_before = attained
                if iteration == iterations:
                    break

            # No joint moves further than the clamp.
            scale = quarter
            farthest = quarter * largest(motion[:n])
            if farthest > step_clamp:
                scale *= step_clamp / farthest
            predicted = model * scale * float(motion[n])
            for i in range(n):
                q[i] += scale * motion[i]
            is_moved = True
            has_pull = True
        copy(q, out[t])
    memory[2 * n] = ballast


def accumulate(
    placements: Array,
    limits: Array,
    poses: Array,
    memory: Array,
    settings: LoopSettings,
    iterations: int,
    out: Array,
) -> None:
    """Integrate as the authors' released controller does, for a sequence of targets.

    q += dt qd, kept within the limits; qd = 0.9 (qd + dt qdd). Both use the velocity from before,
    and the error's derivative continues across targets.

    Args:
        placements: The chain (n + 1, 4, 4); its last frame is the tool's.
        limits: Lowest and highest joint positions (2, n), rad or m.
        poses: The targets (T, 7).
        memory: The state (2 n + 8,) that is kept between targets, in the order of the module's
            text; updated.
        settings: The settings of the loops, as a plain tuple in the order of `LoopSettings`.
        iterations: The number of iterations per target.
        out: Result: joint positions (T, n), rad or m.
    """
    n = out.shape[1]
    # The parts of the state, as the module's text lists them: `pull` is the last error, and the
    # entry at `pull_flag` is 1 once there is one.
    q = memory[:n]
    velocity = memory[n : 2 * n]
    pull = memory[2 * n + 1 : 2 * n + 7]
    pull_flag = 2 * n + 7

    dt, _, error_clamp, twin, kp, kd, _, _ = settings
    no_damping = np.zeros(6)
    damping = np.zeros(6)
    for i in range(6):
        damping[i] = kd[i] / dt

    target = np.zeros(12)
    error = np.zeros(6)
    acceleration = np.zeros(n + 1)

    for t in range(poses.shape[0]):
        aim(poses[t], target)
        for _ in range(iterations):
            # The error before the first is the first: it has no derivative. The ballast is zero.
            has_pull = memory[pull_flag] > 0.0
            move(
                placements,
                q,
                target,
                kp,
                damping if has_pull else no_damping,
                twin,
                error_clamp,
                0.0,
                pull,
                error,
                acceleration,
            )
            memory[pull_flag] = 1.0

            for i in range(n):
                q[i] = min(max(q[i] + dt * velocity[i], limits[0, i]), limits[1, i])
                velocity[i] = VELOCITY_KEPT * (velocity[i] + dt * acceleration[i])
        copy(q, out[t])


# complexipy: ignore (its arrays must not be arguments of another, as said below)
def solve(  # noqa: PLR0913 (compiled: plain arrays and numbers)
    placements: Array,
    q0: Array,
    starts: Array,
    poses: Array,
    settings: LoopSettings,
    iterations: int,
    tolerance: Array,
    out: Array,
    residuals: Array,
    used: Counts,
) -> None:
    """Solve each target to a tolerance, from the solution before it, or from fixed postures.

    Where the arm is nearly stretched the light links slow the twin down, and the last micrometre
    would take thousands of iterations. An attempt that ends near its target therefore gets up to
    fifty more with all mass at the tool and kappa = 4, which are Gauss-Newton steps, and a ballast
    proportional to the square of the error: Levenberg-Marquardt as in Yamashita and Fukushima
    (2001), which still converges fast where the Jacobian is singular.

    The results are those of the best attempt. All is one function: arrays that are made in it
    cannot overlap, and where the compiler does not know that an iteration takes a fifth longer.

    Args:
        placements: The chain (n + 1, 4, 4); its last frame is the tool's.
        q0: Joint positions (n,), from which the first target is solved, rad or m.
        starts: Postures (R, n) from which a target is tried again, in turn, until one succeeds.
        poses: The targets (T, 7).
        settings: The settings of the loops, as a plain tuple in the order of `LoopSettings`. The
            damping is not used, and the ballast is another.
        iterations: The number of iterations per attempt.
        tolerance: Translation (m) and rotation (rad) (2,) below which a target is attained.
        out: Result: joint positions (T, n), rad or m.
        residuals: Result: remaining translation (m) and rotation (rad), (T, 2).
        used: Result: iterations (T,).
    """
    n = q0.shape[0]
    dt, step_clamp, error_clamp, twin, kp, _, _, _ = settings
    quarter = 0.25 * dt * dt
    last = iterations + FINISHING_ITERATIONS

    target = np.zeros(12)
    error = np.zeros(6)
    pull = np.zeros(6)
    no_damping = np.zeros(6)
    # The acceleration (n,), then the slope of the potential along it.
    motion = np.zeros(n + 1)
    q = np.zeros(n)
    solution_before = np.zeros(n)
    masses = np.zeros(4)
    copy(q0, solution_before)

    for t in range(poses.shape[0]):
        aim(poses[t], target)
        # The smallest error so far, in tolerances.
        best = np.inf
        used[t] = 0

        for attempt in range(starts.shape[0] + 1):
            copy(solution_before if attempt == 0 else starts[attempt - 1], q)
            copy(twin, masses)
            ballast = 0.0

            for iteration in range(last + 1):
                move(
                    placements,
                    q,
                    target,
                    kp,
                    no_damping,
                    masses,
                    error_clamp,
                    ballast,
                    pull,
                    error,
                    motion,
                )

                # Keep the best posture. The first always counts, so that there is a result even if
                # no residual is a number.
                distance = norm(error, 0)
                angle = norm(error, 3)
                miss = max(distance / tolerance[0], angle / tolerance[1])
                if miss < best or (attempt == 0 and iteration == 0):
                    best = min(best, miss)
                    copy(q, out[t])
                    residuals[t, 0] = distance
                    residuals[t, 1] = angle

                is_far = iteration == iterations and distance + angle > FINISHING_ERROR
                if miss <= 1.0 or iteration == last or is_far:
                    break

                # Finish with all mass at the tool, and kappa = 4.
                if iteration >= iterations:
                    masses[0] = quarter * kp[0]
                    masses[1] = quarter * kp[3]
                    masses[2] = 0.0
                    masses[3] = 0.0
                    ballast = max((distance + angle) ** 2, FINISHING_BALLAST) * masses[0]

                # No joint moves further than the clamp.
                used[t] += 1
                scale = quarter
                farthest = quarter * largest(motion[:n])
                if farthest > step_clamp:
                    scale *= step_clamp / farthest
                for i in range(n):
                    q[i] += scale * motion[i]

            if best <= 1.0:
                copy(out[t], solution_before)
                break
