"""The loops of forward dynamics over iterations and targets, around the generated function `move`.

They are compiled together with it, for arms of one kinematic structure and one task.

`memory` (2 n + 8,) is the state that is kept between targets: joint positions (n), their velocity
(n, of velocity accumulation only), the ballast (kg m^2), the last error (6) and whether there is
one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from simbridge.ik.kernels.dense import aim, copy, largest, norm
from simbridge.ik.kernels.mathematics import Structure, generate_move
from simbridge.kernels.compile import Kernel, kernel, module_text
from simbridge.robot.pose import Array, Counts

# The attained decrease of the potential in proportion to the predicted one: below the first a
# motion is undone, below the second the ballast grows, above the third it shrinks.
LEAST_RATIO = 0.1
POOR_RATIO = 0.25
GOOD_RATIO = 0.75
# The factors by which it grows and shrinks, and the largest ballast in first ballasts.
BALLAST_GROWTH = 4.0
BALLAST_SHRINKAGE = 0.5
MAX_BALLAST = 1e6
# The squared error (1e-7 m and rad) below which rounding decides whether it falls.
ROUNDING_SQUARE = 1e-14
# The least decrease of a potential that divides.
LEAST_DECREASE = 1e-300

# Factor kept of the velocity in an iteration of velocity accumulation.
VELOCITY_KEPT = 0.9

# Iterations with all mass at the tool that finish a try, and the error (m and rad together) from
# which they do.
FINISHING_ITERATIONS = 50
FINISHING_ERROR = 1e-3
# The least ballast then, in masses of the tool: with less, the mass matrix of a redundant arm is
# singular up to rounding.
FINISHING_BALLAST = 1e-15


class Settings(NamedTuple):
    """Settings of the loops.

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
    text = module_text(track, accumulate, solve, given={"move": generate_move(structure, task)})
    purpose = "forward-dynamics solver for this kinematic structure"
    return Kernels(*(kernel(text, name, purpose) for name in Kernels._fields))


def move(*arguments: Any) -> None:
    """Stand for the generated function: see `mathematics.generate_move`."""
    raise NotImplementedError


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


def clamped_scale(scale: float, motion: Array, step_clamp: float) -> float:
    """Return the factor of a motion (n,), lowered until no joint moves further than the clamp."""
    farthest = scale * largest(motion)
    if farthest > step_clamp:
        scale *= step_clamp / farthest
    return scale


def track(
    placements: Array,
    limits: Array,
    poses: Array,
    memory: Array,
    settings: Settings,
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

    Args:
        placements: The chain (n + 1, 4, 4); its last frame is the tool's.
        limits: Not used by this loop.
        poses: The targets (T, 7).
        memory: The state before, then after.
        settings: See `Settings`.
        iterations: Per target.
        out: Result: joint positions (T, n), rad or m.
    """
    n = out.shape[1]
    q = memory[:n]
    ballast = memory[2 * n]

    step_clamp = settings.step_clamp
    is_guarded = step_clamp < np.inf
    # Lines 8 and 9 each halve: qd = 0.5 qdd dt, q += 0.5 qd dt. Velocity does not accumulate.
    quarter = 0.25 * settings.dt * settings.dt
    # The decrease of a quadratic potential in an iteration, as a part of slope times motion.
    model = 1.0 - settings.kappa / 8.0
    no_damping = np.zeros(6)
    damping = np.zeros(6)
    for i in range(6):
        damping[i] = settings.kd[i] / settings.dt

    target = np.zeros(12)
    error = np.zeros(6)
    pull = np.zeros(6)
    # The acceleration (n,), then the slope of the potential along it.
    motion = np.zeros(n + 1)
    q_before = np.zeros(n)

    for t in range(poses.shape[0]):
        aim(poses[t], target)
        potential_before = 0.0
        predicted = 0.0
        # Whether the last motion may still be undone, and whether `pull` is that of this target.
        is_moved = False
        has_pull = False

        # One more than there are motions: the last pass only checks the last motion.
        for iteration in range(iterations + 1 if is_guarded else iterations):
            if iteration == iterations and not is_moved:
                break

            # The error before the first is the first: a new target gives no derivative kick.
            move(
                placements,
                q,
                target,
                settings.kp,
                damping if has_pull else no_damping,
                settings.twin,
                settings.error_clamp,
                ballast,
                pull,
                error,
                motion,
            )

            if is_guarded:
                attained = potential(settings.kp, error, pull)
                if is_moved and not is_attained(error):
                    ratio = (potential_before - attained) / max(predicted, LEAST_DECREASE)
                    ballast = adapt_ballast(ballast, ratio, settings.first_ballast)
                    if ratio < LEAST_RATIO:
                        copy(q_before, q)
                        is_moved = False
                        has_pull = False
                        continue
                copy(q, q_before)
                potential_before = attained
                if iteration == iterations:
                    break

            scale = clamped_scale(quarter, motion[:n], step_clamp)
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
    settings: Settings,
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
        memory: The state before, then after.
        settings: See `Settings`.
        iterations: Per target.
        out: Result: joint positions (T, n), rad or m.
    """
    n = out.shape[1]
    q = memory[:n]
    velocity = memory[n : 2 * n]
    pull = memory[2 * n + 1 : 2 * n + 7]

    dt = settings.dt
    no_damping = np.zeros(6)
    damping = np.zeros(6)
    for i in range(6):
        damping[i] = settings.kd[i] / dt

    target = np.zeros(12)
    error = np.zeros(6)
    acceleration = np.zeros(n + 1)

    for t in range(poses.shape[0]):
        aim(poses[t], target)
        for _ in range(iterations):
            has_pull = memory[2 * n + 7] > 0.0
            move(
                placements,
                q,
                target,
                settings.kp,
                damping if has_pull else no_damping,
                settings.twin,
                settings.error_clamp,
                0.0,
                pull,
                error,
                acceleration,
            )
            memory[2 * n + 7] = 1.0

            for i in range(n):
                q[i] = min(max(q[i] + dt * velocity[i], limits[0, i]), limits[1, i])
                velocity[i] = VELOCITY_KEPT * (velocity[i] + dt * acceleration[i])
        copy(q, out[t])


class Attempt(NamedTuple):
    """Arrays of an attempt to solve a target.

    Attributes:
        target: Position (3) and rotation matrix (9, row by row).
        q: Joint positions (n,), rad or m.
        masses: The twin's (4,), which change where an attempt is finished.
        error: Target minus tool (6,), m and rad.
        pull: The same, clamped.
        no_damping: Zeros (6,).
        motion: The acceleration (n,), then the slope of the potential along it.
    """

    target: Array
    q: Array
    masses: Array
    error: Array
    pull: Array
    no_damping: Array
    motion: Array


def solve(
    placements: Array,
    q0: Array,
    starts: Array,
    poses: Array,
    settings: Settings,
    iterations: int,
    tolerance: Array,
    out: Array,
    residuals: Array,
    used: Counts,
) -> None:
    """Solve each target to a tolerance, from the solution of the one before, or from fixed postures.

    The results are those of the best attempt.

    Args:
        placements: The chain (n + 1, 4, 4); its last frame is the tool's.
        q0: Joint positions (n,), from which the first target is solved, rad or m.
        starts: Postures (R, n) from which a target is tried again, in turn, until one succeeds.
        poses: The targets (T, 7).
        settings: See `Settings`; there is no damping, and the ballast is that of `try_start`.
        iterations: Per attempt.
        tolerance: Translation (m) and rotation (rad).
        out: Result: joint positions (T, n), rad or m.
        residuals: Result: remaining translation (m) and rotation (rad), (T, 2).
        used: Result: iterations (T,).
    """
    n = q0.shape[0]
    attempt = Attempt(
        np.zeros(12),
        np.zeros(n),
        np.zeros(4),
        np.zeros(6),
        np.zeros(6),
        np.zeros(6),
        np.zeros(n + 1),
    )
    solution_before = np.zeros(n)
    copy(q0, solution_before)

    for t in range(poses.shape[0]):
        aim(poses[t], attempt.target)
        # The error of the best attempt in tolerances.
        best = np.inf
        used[t] = 0
        for index in range(starts.shape[0] + 1):
            copy(solution_before if index == 0 else starts[index - 1], attempt.q)
            # The first always counts, so that there is a result even if no residual is a number.
            best, count = try_start(
                placements,
                settings,
                iterations,
                tolerance,
                best,
                index == 0,
                attempt,
                out[t],
                residuals[t],
            )
            used[t] += count
            if best <= 1.0:
                copy(out[t], solution_before)
                break


def try_start(
    placements: Array,
    settings: Settings,
    iterations: int,
    tolerance: Array,
    best: float,
    counts_always: bool,
    attempt: Attempt,
    out: Array,
    residual: Array,
) -> tuple[float, int]:
    """Iterate from `attempt.q` towards a target, until its error is within the tolerance.

    Where the arm is nearly stretched the light links slow the twin down, and the last micrometre
    would take thousands of iterations. An attempt that ends near its target therefore gets up to
    fifty more with all mass at the tool and kappa = 4, which are Gauss-Newton steps, and a ballast
    proportional to the square of the error: Levenberg-Marquardt as in Yamashita and Fukushima
    (2001), which still converges fast where the Jacobian is singular.

    Args:
        placements, settings, iterations, tolerance: See `solve`.
        best: The smallest error so far, in tolerances.
        counts_always: Whether the start counts, whatever its error.
        attempt: Its arrays, with target and start.
        out: Joint positions (n,) with the smallest error; they change where it is undercut.
        residual: Their remaining translation (m) and rotation (rad), (2,).

    Returns:
        The smallest error, and the number of iterations.
    """
    q = attempt.q
    masses = attempt.masses
    motion = attempt.motion
    n = q.shape[0]
    dt = settings.dt
    kp = settings.kp
    last = iterations + FINISHING_ITERATIONS

    copy(settings.twin, masses)
    ballast = 0.0
    for iteration in range(last + 1):
        move(
            placements,
            q,
            attempt.target,
            kp,
            attempt.no_damping,
            masses,
            settings.error_clamp,
            ballast,
            attempt.pull,
            attempt.error,
            motion,
        )

        distance = norm(attempt.error, 0)
        angle = norm(attempt.error, 3)
        miss = max(distance / tolerance[0], angle / tolerance[1])
        if miss < best or (counts_always and iteration == 0):
            best = min(best, miss)
            copy(q, out)
            residual[0] = distance
            residual[1] = angle
        if miss <= 1.0:
            return best, iteration
        if iteration == iterations and distance + angle > FINISHING_ERROR:
            return best, iteration
        if iteration == last:
            return best, iteration

        if iteration >= iterations:
            # kappa = 4, with all mass at the tool.
            masses[0] = 0.25 * dt * dt * kp[0]
            masses[1] = 0.25 * dt * dt * kp[3]
            masses[2] = 0.0
            masses[3] = 0.0
            ballast = max((distance + angle) ** 2, FINISHING_BALLAST) * masses[0]

        scale = clamped_scale(0.25 * dt * dt, motion[:n], settings.step_clamp)
        for i in range(n):
            q[i] += scale * motion[i]
    return best, last
