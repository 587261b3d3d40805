"""The loops of forward dynamics over iterations and targets, around the generated function `move`.

A virtual twin of the arm, with simple masses, is pulled towards the target by a spring at the tool.
"The paper" is that of docs/paper.md. The loops are compiled together with `move`, for arms of one
kinematic structure and one task.

`move` computes the acceleration of an iteration. It writes its last three arguments: the clamped
error; the error; and the acceleration (n,), followed by the slope of the potential along it. Only
`track` uses that slope.

`memory` (2 n + 8,) is the state that the loops keep between targets. Its parts are the joint
positions (n); their velocity (n), for velocity accumulation only; the ballast, kg m^2; the last
clamped error (6); and 1 if there is one, else 0.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from simbridge.ik.kernels.dense import copy, largest, norm, write_target
from simbridge.ik.kernels.generation import Structure, generate_move
from simbridge.ik.kernels.stand_ins import move
from simbridge.kernels.compile import Kernel, kernel
from simbridge.kernels.program import program_of
from simbridge.robot.pose import Array, Counts

# Ratio of the attained to the predicted decrease of the potential below which a motion is undone.
LEAST_RATIO = 0.1
# Ratio below which the ballast grows.
POOR_RATIO = 0.25
# Ratio above which the ballast shrinks.
GOOD_RATIO = 0.75
# Factor by which the ballast grows.
BALLAST_GROWTH = 4.0
# Factor by which the ballast shrinks.
BALLAST_SHRINKAGE = 0.5
# Largest ballast, in multiples of the smallest one.
MAX_BALLAST = 1e6
# Squared error (1e-7 m and rad) below which only rounding decides whether the error decreases.
ROUNDING_SQUARE = 1e-14
# Smallest decrease of a potential that is used as a divisor.
LEAST_DECREASE = 1e-300

# Fraction of the velocity that is kept in an iteration of velocity accumulation.
VELOCITY_KEPT = 0.9

# Largest number of Gauss-Newton iterations that finish an attempt.
FINISHING_ITERATIONS = 50
# Error up to which an attempt is finished, m and rad added.
FINISHING_ERROR = 1e-3
# Smallest ballast in these iterations, per mass of the tool: with less, rounding would make the
# mass matrix of a redundant arm singular.
FINISHING_BALLAST = 1e-15


class LoopSettings(NamedTuple):
    """Settings of the loops, which take them as a plain tuple.

    Numba takes a microsecond longer per call to recognize the type of a named tuple.

    Attributes:
        dt: Virtual time step, s.
        step_clamp: Largest motion of a joint in an iteration, rad or m; infinite for none.
        error_clamp: Largest error that acts (2,), m and rad; infinite for none.
        twin: Tool mass, tool inertia, link mass and link inertia (4,), kg and kg m^2.
        kp: Stiffness (6,), translation first, N/m and N m/rad.
        kd: Damping (6,), N s/m and N m s/rad.
        kappa: dt^2 kp/m of the stiffest component, with the tool's mass or inertia m.
        first_ballast: The smallest ballast that is not zero, kg m^2.
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
    """Return the potential of the spring at the tool, J.

    It is quadratic in the error up to the clamps, and linear beyond them.

    Args:
        kp: Stiffness (6,), N/m and N m/rad.
        error: The error (6,), m and rad.
        pull: The error shortened to the clamps (6,), m and rad.
    """
    total = 0.0
    for i in range(6):
        total += kp[i] * pull[i] * (error[i] - 0.5 * pull[i])
    return total


def is_attained(error: Array) -> bool:
    """Return whether an error (6,) is so small that rounding decides whether it decreases."""
    total = 0.0
    for i in range(6):
        total += error[i] * error[i]
    return total < ROUNDING_SQUARE


def adapt_ballast(ballast: float, ratio: float, first_ballast: float) -> float:
    """Return the next ballast, kg m^2.

    Args:
        ballast: The current ballast, kg m^2.
        ratio: Ratio of the attained to the predicted decrease of the potential.
        first_ballast: The smallest ballast that is not zero, kg m^2.
    """
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

    With a finite step clamp this is a Levenberg-Marquardt method. A motion is undone unless it
    lowers the potential by at least a tenth of the decrease that the linear model predicts. A
    ballast, an inertia that is added to every joint, grows after poor predictions and shrinks after
    good ones; within reach it is zero. For a target out of reach the arm is stretched, and the twin
    is light in the direction in which the force bends it: there the ballast damps the motion. While
    the target stays the same the potential never rises, so the arm cannot oscillate.

    The loop is one function, in which the compiler knows that the arrays do not overlap. It would
    not know that of the arguments of a second one.

    Args:
        placements: The chain (n + 1, 4, 4); its last frame is the tool's.
        limits: Lowest and highest joint positions; this loop does not use them.
        poses: The targets (T, 7).
        memory: The state that is kept between targets (2 n + 8,), described above; it is updated.
        settings: The settings of the loops, as a plain tuple in the order of `LoopSettings`.
        iterations: The number of iterations per target.
        out: Result: joint positions (T, n), rad or m.
    """
    n = out.shape[1]
    # The parts of the memory that this loop uses.
    q = memory[:n]
    ballast = memory[2 * n]

    dt, step_clamp, error_clamp, twin, kp, kd, kappa, first_ballast = settings
    is_guarded = step_clamp < np.inf
    # Lines 8 and 9 of the algorithm are qd = 0.5 qdd dt and q += 0.5 qd dt, so that a motion is
    # this factor times the acceleration. Velocity does not accumulate.
    step_factor = 0.25 * dt * dt
    # The decrease of a quadratic potential by a motion, as a fraction of slope times motion.
    decrease_fraction = 1.0 - kappa / 8.0

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
        write_target(poses[t], target)
        potential_before = 0.0
        predicted = 0.0
        # Whether there is a motion that may be undone.
        is_moved = False
        # Whether `pull` is the error before the last motion, towards this target.
        has_pull = False

        # The pass after the last motion only checks it.
        for iteration in range(iterations + 1 if is_guarded else iterations):
            if iteration == iterations and not is_moved:
                break

            # A new target has no last error, so there is no derivative yet.
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

            # Undo a motion after a poor prediction, and adapt the ballast.
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

            # Move, with no joint moving further than the clamp.
            scale = step_factor
            farthest = step_factor * largest(motion[:n])
            if farthest > step_clamp:
                scale *= step_clamp / farthest
            predicted = decrease_fraction * scale * float(motion[n])
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
    """Follow a sequence of targets with accumulated velocity, as the authors' controller does.

    Their released controller integrates q += dt qd, within the limits, and qd = 0.9 (qd + dt qdd).
    Both use the velocity before the iteration. The derivative of the error continues across
    targets.

    Args:
        placements: The chain (n + 1, 4, 4); its last frame is the tool's.
        limits: Lowest and highest joint positions (2, n), rad or m.
        poses: The targets (T, 7).
        memory: The state that is kept between targets (2 n + 8,), described above; it is updated.
        settings: The settings of the loops, as a plain tuple in the order of `LoopSettings`.
        iterations: The number of iterations per target.
        out: Result: joint positions (T, n), rad or m.
    """
    n = out.shape[1]
    # The parts of the memory that this loop uses: `pull` is the last clamped error, and the element
    # `pull_flag` is 1 if there is one.
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
        write_target(poses[t], target)
        for _ in range(iterations):
            # The first error has no derivative. The ballast is zero.
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
    """Solve each target to a tolerance, from the previous solution or from fixed postures.

    If the arm is nearly stretched, the light links slow the twin down, and the last micrometre
    would take thousands of iterations. An attempt that ends near its target is therefore finished
    by up to fifty iterations with all mass at the tool and dt^2 kp/m = 4, which are Gauss-Newton
    steps. They have a ballast proportional to the squared error: the Levenberg-Marquardt method of
    Yamashita and Fukushima (2001), which converges fast even where the Jacobian is singular.

    The results are those of the best attempt. The loop is one function, in which the compiler knows
    that the arrays do not overlap; otherwise an iteration takes a fifth longer.

    Args:
        placements: The chain (n + 1, 4, 4); its last frame is the tool's.
        q0: Joint positions from which the first target is solved (n,), rad or m.
        starts: Postures from which a target is tried again, one after another, until one succeeds
            (R, n), rad or m.
        poses: The targets (T, 7).
        settings: The settings of the loops, as a plain tuple in the order of `LoopSettings`.
            Damping, kappa and first ballast are not used.
        iterations: The number of iterations per attempt.
        tolerance: Translation (m) and rotation (rad) below which a target is attained (2,).
        out: Result: joint positions (T, n), rad or m.
        residuals: Result: remaining translation (m) and rotation (rad) (T, 2).
        used: Result: number of iterations (T,).
    """
    n = q0.shape[0]
    dt, step_clamp, error_clamp, twin, kp, _, _, _ = settings
    # The motion of an iteration is this factor times the acceleration: see `track`.
    step_factor = 0.25 * dt * dt
    last = iterations + FINISHING_ITERATIONS

    target = np.zeros(12)
    error = np.zeros(6)
    pull = np.zeros(6)
    no_damping = np.zeros(6)
    # The acceleration (n,), then the slope of the potential along it.
    motion = np.zeros(n + 1)
    q = np.zeros(n)
    previous_solution = np.zeros(n)
    # Tool mass, tool inertia, link mass and link inertia.
    masses = np.zeros(4)
    copy(q0, previous_solution)

    for t in range(poses.shape[0]):
        write_target(poses[t], target)
        # The smallest error of all postures so far, in units of the tolerance.
        best = np.inf
        used[t] = 0

        for attempt in range(starts.shape[0] + 1):
            copy(previous_solution if attempt == 0 else starts[attempt - 1], q)
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

                # Keep the best posture, by its error in units of the tolerance. The first one
                # always counts, so that there is a result even if every residual is NaN.
                distance = norm(error, 0)
                angle = norm(error, 3)
                relative_error = max(distance / tolerance[0], angle / tolerance[1])
                if relative_error < best or (attempt == 0 and iteration == 0):
                    best = min(best, relative_error)
                    copy(q, out[t])
                    residuals[t, 0] = distance
                    residuals[t, 1] = angle

                # End the attempt if the target is attained, or too far away to be finished.
                is_far = iteration == iterations and distance + angle > FINISHING_ERROR
                if relative_error <= 1.0 or iteration == last or is_far:
                    break

                # Finish with all mass at the tool: m = dt^2 kp / 4 makes Gauss-Newton steps, from
                # the next acceleration on.
                if iteration >= iterations:
                    masses[0] = step_factor * kp[0]
                    masses[1] = step_factor * kp[3]
                    masses[2] = 0.0
                    masses[3] = 0.0
                    ballast = max((distance + angle) ** 2, FINISHING_BALLAST) * masses[0]

                # Move, with no joint moving further than the clamp.
                used[t] += 1
                scale = step_factor
                farthest = step_factor * largest(motion[:n])
                if farthest > step_clamp:
                    scale *= step_clamp / farthest
                for i in range(n):
                    q[i] += scale * motion[i]

            if best <= 1.0:
                copy(out[t], previous_solution)
                break
