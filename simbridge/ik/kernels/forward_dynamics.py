"""The loops of forward dynamics over iterations and targets, compiled around the generated function `move`.

`memory` (2 n + 8,) is the state that is kept between targets: joint positions (n), their velocity (n, of velocity
accumulation only), the ballast (kg m^2), the last error (6) and whether there is one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from simbridge.ik.kernels.dense import aim, copy, largest, norm
from simbridge.ik.kernels.mathematics import Structure, generate_move
from simbridge.kernels.compile import Kernel, kernel, module_text
from simbridge.robot.pose import Array, Counts

Settings: TypeAlias = tuple[float, float, Array, Array, Array, Array, float, float]
"""dt, step clamp (rad), error clamps (m, rad), the twin (tool mass, tool inertia, link mass, link inertia), kp (6),
kd (6), kappa, and the least ballast (kg m^2)."""


class Kernels(NamedTuple):
    """The compiled loops, for arms of one kinematic structure and one task."""

    track: Kernel
    accumulate: Kernel
    solve: Kernel


@lru_cache(maxsize=64)
def kernels(structure: Structure, task: str) -> Kernels:
    """The compiled loops for arms of one kinematic structure, and a task."""
    text = module_text(track, accumulate, solve, given={"move": generate_move(structure, task)})
    purpose = "forward-dynamics solver for this kinematic structure"
    return Kernels(*(kernel(text, name, purpose) for name in Kernels._fields))


def move(*arguments: Any) -> None:
    """Stands for the generated function: see `mathematics.generate_move`."""
    raise NotImplementedError


def potential(kp: Array, error: Array, pull: Array) -> float:
    """The potential of the force: quadratic in the error, linear where the clamps shorten it to `pull`."""
    total = 0.0
    for i in range(6):
        total += kp[i] * pull[i] * (error[i] - 0.5 * pull[i])
    return total


def attained(error: Array) -> bool:
    """Whether the error is so small (1e-7 m or rad) that rounding decides whether it falls."""
    total = 0.0
    for i in range(6):
        total += error[i] * error[i]
    return total < 1e-14


def adapted(ballast: float, ratio: float, least: float) -> float:
    """The next ballast, from the ratio of the attained decrease to the predicted one."""
    if ratio < 0.25:
        return min(max(4.0 * ballast, least), 1e6 * least)
    if ratio > 0.75:
        return 0.5 * ballast if 0.5 * ballast >= least else 0.0
    return ballast


def track(
    placements: Array,
    limits: Array,
    poses: Array,
    memory: Array,
    settings: Settings,
    iterations: int,
    out: Array,
) -> None:
    """Algorithm 1 of the paper for a sequence of targets (T, 7); out (T, n).

    With a finite step clamp this is Levenberg-Marquardt: a motion must lower the potential by at least a tenth of the
    decrease that the linear model predicts, or it is undone. A ballast (an inertia added to every joint) grows after
    poor predictions and shrinks after good ones; within reach it is zero. Out of reach the arm is stretched, and the
    twin is light in the direction in which the force bends the path: there the ballast damps it. While a target is held
    the potential never rises, so the arm cannot oscillate.
    """
    n = out.shape[1]
    dt, step_clamp, clamp, twin, kp, kd, kappa, least_ballast = settings
    target, error, pull, undamped, damping = (
        np.zeros(12),
        np.zeros(6),
        np.zeros(6),
        np.zeros(6),
        np.zeros(6),
    )
    motion, kept = np.zeros(n + 1), np.zeros(n)
    for i in range(6):
        damping[i] = kd[i] / dt
    q, ballast = memory[:n], memory[2 * n]
    guarded = step_clamp < np.inf
    # Lines 8 and 9 each halve: qd = 0.5 qdd dt, q += 0.5 qd dt. Velocity does not accumulate.
    quarter = 0.25 * dt * dt
    # The decrease of a quadratic potential in an iteration, as a part of slope times motion.
    model = 1.0 - kappa / 8.0
    for t in range(poses.shape[0]):
        aim(poses[t], target)
        lowest, predicted, moved, steady = 0.0, 0.0, False, False
        # One more than there are motions: the last pass only checks the last motion.
        for iteration in range(iterations + 1 if guarded else iterations):
            if iteration == iterations and not moved:
                break
            # The error before the first is the first: a new target gives no derivative kick.
            pulled = damping if steady else undamped
            move(placements, q, target, kp, pulled, twin, clamp, ballast, pull, error, motion)
            if guarded:
                level = potential(kp, error, pull)
                if moved and not attained(error):
                    ratio = (lowest - level) / max(predicted, 1e-300)
                    ballast = adapted(ballast, ratio, least_ballast)
                    if ratio < 0.1:
                        copy(kept, q)
                        moved, steady = False, False
                        continue
                copy(q, kept)
                lowest = level
                if iteration == iterations:
                    break
            scale, way = quarter, quarter * largest(motion[:n])
            if way > step_clamp:
                scale *= step_clamp / way
            predicted = model * scale * float(motion[n])
            for i in range(n):
                q[i] += scale * motion[i]
            moved = steady = True
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
    """The released controller's integration for a sequence of targets (T, 7); out (T, n).

    q += dt qd, kept within limits (2, n); qd = 0.9 (qd + dt qdd). Both use the velocity from before, and the error's
    derivative continues across targets.
    """
    n = out.shape[1]
    dt, _, clamp, twin, kp, kd = settings[:6]
    target, error, undamped, damping = np.zeros(12), np.zeros(6), np.zeros(6), np.zeros(6)
    acceleration = np.zeros(n + 1)
    for i in range(6):
        damping[i] = kd[i] / dt
    q, velocity, last = memory[:n], memory[n : 2 * n], memory[2 * n + 1 : 2 * n + 7]
    for t in range(poses.shape[0]):
        aim(poses[t], target)
        for _ in range(iterations):
            known = memory[2 * n + 7] > 0.0
            move(
                placements,
                q,
                target,
                kp,
                damping if known else undamped,
                twin,
                clamp,
                0.0,
                last,
                error,
                acceleration,
            )
            memory[2 * n + 7] = 1.0
            for i in range(n):
                q[i] = min(max(q[i] + dt * velocity[i], limits[0, i]), limits[1, i])
                velocity[i] = 0.9 * (velocity[i] + dt * acceleration[i])
        copy(q, out[t])


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
    """Solve each target (T, 7) to a tolerance (m, rad), from the solution of the one before (the first from q0), then
    from each of `starts` (R, n) until one succeeds.

    Where the arm is nearly stretched the light links slow the twin down, and the last micrometre would take thousands
    of iterations. A try that ends near its target therefore gets up to fifty more with all mass at the tool and
    kappa = 4, which are Gauss-Newton steps, and a ballast proportional to the square of the error: Levenberg-Marquardt
    as in Yamashita and Fukushima (2001), which still converges fast where the Jacobian is singular.

    The results are those of the best try: joint positions (T, n), residuals (T, 2) in m and rad, and iterations (T).
    """
    n, total = q0.shape[0], poses.shape[0]
    dt, step_clamp, clamp, twin, kp = settings[:5]
    target, error, pull, undamped = np.zeros(12), np.zeros(6), np.zeros(6), np.zeros(6)
    motion, q, first, masses = np.zeros(n + 1), np.zeros(n), np.zeros(n), np.zeros(4)
    last = iterations + 50
    copy(q0, first)
    for t in range(total):
        aim(poses[t], target)
        best, used[t] = np.inf, 0
        for attempt in range(starts.shape[0] + 1):
            copy(first if attempt == 0 else starts[attempt - 1], q)
            copy(twin, masses)
            ballast = 0.0
            for iteration in range(last + 1):
                move(
                    placements, q, target, kp, undamped, masses, clamp, ballast, pull, error, motion
                )
                distance, angle = norm(error, 0), norm(error, 3)
                miss = max(distance / tolerance[0], angle / tolerance[1])
                # The start always counts, so that there is a result even if no residual is a number.
                if miss < best or (attempt == 0 and iteration == 0):
                    best = min(best, miss)
                    copy(q, out[t])
                    residuals[t, 0], residuals[t, 1] = distance, angle
                if (
                    miss <= 1.0
                    or iteration == last
                    or (iteration == iterations and distance + angle > 1e-3)
                ):
                    break
                if iteration >= iterations:
                    masses[0], masses[1] = 0.25 * dt * dt * kp[0], 0.25 * dt * dt * kp[3]
                    masses[2] = masses[3] = 0.0
                    # With less, the mass matrix of a redundant arm is singular up to rounding.
                    ballast = max((distance + angle) ** 2, 1e-15) * masses[0]
                used[t] += 1
                scale = 0.25 * dt * dt
                way = scale * largest(motion[:n])
                if way > step_clamp:
                    scale *= step_clamp / way
                for i in range(n):
                    q[i] += scale * motion[i]
            if best <= 1.0:
                break
        if best <= 1.0:
            copy(out[t], first)
