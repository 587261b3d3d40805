"""The interface between the loops of the iterative solvers and one solver's step.

A solver's step is a plain function, compiled together with the loops:

    def step(settings, buffers)

- `settings`: a tuple of numbers and arrays, from the solver's `compiled_step()`;
- `buffers`: a record with the arrays that the step reads, those that it fills, and scratch: see `allocate_buffers`.

A step may remove from `buffers.jacobian` what its own rows leave no freedom for; the steepest descent, which may
replace the step, then keeps to these rows, too. Finite input must give finite output, singular or not; the loops clamp.

One record instead of its arrays, because each array is seven arguments of every function that it passes through.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Buffers: TypeAlias = Any
"""The record, as compiled code sees it: `buffers.dq[0]`."""

MAX_STRICT = 6
"""Strict rows that a solver may add to the six of the task."""


def allocate_buffers(n: int) -> Any:
    """A record for n joints, all zero, as an array (1,). The shapes are those of its fields."""
    m = 6 + MAX_STRICT
    # The shape of an array in a record is part of its type: these two are chosen between.
    side = max(n, m)
    shapes: dict[str, tuple[int, ...]] = {
        # For the step to read: joint positions; the Jacobian, a row per joint and a column per component of the task,
        # SI units; the clamped error in the order of the columns, m and rad.
        "q": (n,),
        "jacobian": (n, 6),
        "error": (6,),
        # For the step to fill: the motion that is to reduce the error. The others may be left zero: a motion within the
        # null space; and one that is made in any case, which only the step clamp shortens, and which leaves the rest of
        # the clamp to the others.
        "dq": (n,),
        "drift": (n,),
        "held": (n,),
        # Scratch of the step, which keeps nothing between calls. The system to solve, its right-hand side and solution,
        # the same for three right-hand sides, and its pivots.
        "matrix": (n + m, n + m),
        "vector": (n + m,),
        "sides": (3, n + m),
        "order": (n + m,),
        # A motion of the joints, and one of the tool.
        "motion": (n,),
        "task": (6,),
        # Singular vectors in joint space and in task space, one per row, and singular values.
        "joints": (side, side),
        "tool": (side, side),
        "singular": (m,),
        # Strict rows, transposed, and what they are to attain, in two parts.
        "strict": (n, m),
        "wanted": (2, m),
        # Of the loops. The target: position (3) and rotation matrix (9, row by row).
        "target": (12,),
        # Target minus tool in base axes: translation, then the Rodrigues vector. Components that the task does not
        # constrain are zero.
        "residual": (6,),
        # Clamped error and Jacobian where the step leads.
        "error_there": (6,),
        "jacobian_there": (n, 6),
        # Joint positions before the step and before the drift, and the drift as the step gave it.
        "before": (n,),
        "base": (n,),
        "way": (n,),
        # What the loops comply with, whatever the solver. The chain; its last frame is the tool's.
        "placements": (n + 1, 4, 4),
        # The number of joints, and of components that the task has; those come first.
        "n": (),
        "rows": (),
        # The largest error that acts, m and rad, and the largest motion of a joint in an iteration, rad or m; infinite
        # for none.
        "translation_clamp": (),
        "rotation_clamp": (),
        "step_clamp": (),
        # Weight of a radian against a metre in the cost.
        "rotation_weight": (),
        # The step of each joint for a Jacobian by differences, rad or m.
        "difference_step": (),
    }
    integers = ("order", "n", "rows")
    fields = [(name, np.int64 if name in integers else np.float64, shape) for name, shape in shapes.items()]
    record = np.zeros(1, np.dtype(fields, align=True))
    record["n"] = n
    return record


def linearize(buffers: Buffers) -> None:
    """Residual, clamped error and Jacobian at `buffers.q`. Stands for the generated function: see `generate.py`."""
    raise NotImplementedError


def take_step(settings: Any, buffers: Buffers) -> None:
    """Stands for a solver's step."""
    raise NotImplementedError
