"""The loop of the iterative solvers, around the linearization of a chain and the step of a solver.

A step must reduce the error by at least a tenth of what it predicts: see `line_search`. Without
that check, a target out of reach makes every solver of this family jitter around the stretched arm,
where the Jacobian predicts more motion than the arm can make; a smaller gain only slows the jitter.
A motion within the null space may follow the step: see `null_space`.

A solver's step is a plain function, compiled together with the loop:

    def step(settings, descent)

- `settings`: a tuple of numbers and arrays, from the solver's `compiled_step()`;
- `descent`: a `Descent`. The step reads `descent.iterate`, fills in its motions, and uses
  `descent.scratch`.

For finite input the motions must be finite, even if the Jacobian is singular. The loop clamps them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from simbridge.ik.kernels import null_space
from simbridge.ik.kernels.dense import copy, norm, write_target
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
    """Return `track` compiled for a solver, arms of one kinematic structure, and a task.

    Args:
        structure: Kinematic structure of the arms.
        task: The part of a target to attain: "pose", "axis" or "position".
        solver: Name of the solver in the notice about compiling.
        step: The solver's step.
        drifts: Whether the step fills in a motion within the null space.
        differences: Whether the Jacobian is computed by finite differences.
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
    """Iterate towards each target in turn, from the joint positions attained for the previous one.

    All uses share this function, since numba would optimize a second one again with all it calls.

    Args:
        settings: Settings of the step.
        descents: An array (1,) with a `Descent`.
        iterations: Largest number of iterations per target.
        tolerance: Remaining translation (m) and rotation (rad) up to which a target is attained,
            which ends its iterations; negative for never.
        poses: The targets (T, 7).
        q: Joint positions to start from (n,), rad or m; they become the last ones.
        out: Result: joint positions after each target (T, n), rad or m.
        last: Result (3,): remaining translation (m) and rotation (rad) at the last target, and the
            number of its iterations.
    """
    descent = descents[0]
    copy(q, descent.iterate.q)

    for t in range(poses.shape[0]):
        write_target(poses[t], descent.search.target)
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
