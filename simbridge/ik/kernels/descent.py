"""The loop of the iterative solvers, around the linearization of a chain and the step of a solver.

A step must reduce the error by a tenth of what it predicts: see `line_search`. Otherwise a target
out of reach makes every solver of this family chatter about the stretched arm, where the Jacobian
predicts more than the arm can do (the jitter that tutorials note, and that a smaller gain only
slows). A motion within the null space may follow: see `null_space`.

A solver's step is a plain function, compiled together with the loop:

    def step(settings, descent)

- `settings`: a tuple of numbers and arrays, from the solver's `compiled_step()`;
- `descent`: a `Descent`. The step reads and fills `descent.iterate`, and uses `descent.scratch`.

Finite input must give finite output, singular or not; the loop clamps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from simbridge.ik.kernels import null_space
from simbridge.ik.kernels.dense import aim, copy, norm
from simbridge.ik.kernels.generation import Structure, generate_linearize
from simbridge.ik.kernels.line_search import (
    adopt_candidate,
    linearize_cost,
    residual_cost,
    search_line,
)
from simbridge.ik.kernels.stand_ins import move_in_null_space, take_step
from simbridge.kernels.compile import Kernel, kernel
from simbridge.kernels.program import Replacement, program_of
from simbridge.robot.pose import Array


@lru_cache(maxsize=64)
def compiled_loop(
    structure: Structure,
    task: str,
    solver: str,
    *,
    step: Callable[..., None],
    drifts: bool,
    differences: bool,
) -> Kernel:
    """Return the function `track` for a solver, arms of one kinematic structure, and a task.

    Args:
        structure: Structure of the arms.
        task: The part of a target to attain: "pose", "axis" or "position".
        solver: Name of the solver in the notice about compiling.
        step: The solver's step.
        drifts: Whether the step has a motion within the null space.
        differences: Whether the Jacobian is one of finite differences.
    """
    replacements: dict[str, Replacement] = {
        "linearize": generate_linearize(structure, task, differences),
        "take_step": step,
        "move_in_null_space": null_space.follow_drift if drifts else null_space.stay,
    }
    program = program_of(track, replacements=replacements)
    return kernel(program, "track", f"{solver} for this kinematic structure")


def track(  # noqa: PLR0913 (compiled: plain arrays and numbers)
    settings: Any,
    descents: Any,
    iterations: int,
    tolerance: tuple[float, float],
    poses: Array,
    q: Array,
    out: Array,
    last: Array,
) -> None:
    """Iterate towards each pose in turn, from where the one before has led.

    One function, not one for each use: numba optimizes a function again with each that calls it.

    Args:
        settings: Settings of the step.
        descents: An array (1,) of a `Descent`.
        iterations: The largest number of iterations per pose.
        tolerance: Translation (m) and rotation (rad) that end the iterations when both are met;
            negative ones never are.
        poses: The targets (T, 7).
        q: Joint positions (n,) to begin with, which become the last ones, rad or m.
        out: Result: joint positions (T, n).
        last: Result (3,): remaining translation (m) and rotation (rad), and iterations, at the last
            pose.
    """
    descent = descents[0]
    copy(q, descent.iterate.q)

    for t in range(poses.shape[0]):
        aim(poses[t], descent.search.target)
        linearize_cost(descent)

        done = 0
        while True:
            distance = norm(descent.search.residual, 0)
            angle = norm(descent.search.residual, 3)
            is_attained = distance <= tolerance[0] and angle <= tolerance[1]
            if done == iterations or is_attained:
                last[0] = distance
                last[1] = angle
                last[2] = done
                break

            done += 1
            cost = residual_cost(descent)
            adopt_candidate(descent)
            take_step(settings, descent)
            attained = search_line(descent, cost)
            move_in_null_space(settings, descent, attained)
        copy(descent.iterate.q, out[t])
    copy(descent.iterate.q, q)
