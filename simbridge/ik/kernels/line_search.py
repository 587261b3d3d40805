"""Shortens a step until it reduces the error as predicted (Armijo's rule)."""

from __future__ import annotations

import math

import numpy as np

from simbridge.ik.kernels.dense import copy, largest, norm
from simbridge.ik.kernels.records import Descent
from simbridge.ik.kernels.stand_ins import linearize
from simbridge.robot.pose import Array

# Fraction of a step below which the steepest descent is tried instead.
SHORT = 2.0**-4
# Fraction of a step below which no step is made.
SHORTEST = 2.0**-12
# Fraction of the predicted reduction of the cost that a step must attain (Armijo).
ARMIJO_FRACTION = 0.1
# Cost (half a squared error, m and rad) of an error of a nanometre, which is rounding.
ROUNDING_COST = 1e-18
# Fraction of the size of its terms up to which a sum is rounding.
CANCELLED = 1e-9
# Smallest squared length that is used as a divisor.
LEAST_SQUARE = 1e-290


def search_line(descent: Descent, cost: float) -> float:
    """Move by the largest fraction of the step that reduces the cost enough, and linearize there.

    The step is replaced by the steepest descent if even a sixteenth of it does not reduce the cost,
    or if the clamp leaves less than a sixteenth of it and the steepest descent promises much more.
    Without a step clamp the whole step is made and nothing is checked: the plain method.

    Args:
        descent: The descent, with the motions of the step, which are shortened to the clamp.
        cost: Cost of the residual before the step.

    Returns:
        The cost of the residual after the step.
    """
    search = descent.search
    q = descent.iterate.q
    dq = descent.iterate.dq
    held = descent.iterate.held
    q_before = search.q_before
    n = q.shape[0]

    # Shorten the held motion to the clamp, and the other one to what it leaves of the clamp.
    clamp = search.step_clamp
    limit_step(held, clamp)
    room = clamp - largest(held)
    remaining_fraction = limit_step(dq, room)
    reduction = predict_reduction(descent, dq)

    # Near a singularity one joint may dominate the step, so that the clamp leaves almost nothing of
    # the others' motion. Use the steepest descent if it promises ten times as much: even the tenth
    # that a step must attain is then more than the whole promise of this one.
    is_steepest = False
    if remaining_fraction < SHORT:
        # The array for the joint positions before the step is still free: no step has been made.
        steepest = q_before
        descend_steepest(descent, steepest)
        limit_step(steepest, room)
        steepest_reduction = predict_reduction(descent, steepest)
        if steepest_reduction > reduction / ARMIJO_FRACTION:
            is_steepest = True
            reduction = steepest_reduction
            copy(steepest, dq)

    # Make the whole step.
    allowed = max(cost - ARMIJO_FRACTION * abs(reduction), ROUNDING_COST)
    for i in range(n):
        q_before[i] = q[i]
        q[i] += dq[i] + held[i]
    attained = linearize_cost(descent)

    # Halve the step until the cost is allowed. A step that becomes too short is replaced by the
    # steepest descent. If that becomes too short as well, only the held motion is made.
    is_guarded = math.isfinite(clamp)
    scale = 1.0
    while is_guarded and attained > allowed:
        scale *= 0.5
        if not is_steepest and scale < SHORT:
            is_steepest = True
            scale = 1.0
            descend_steepest(descent, dq)
            limit_step(dq, room)
            reduction = predict_reduction(descent, dq)
        allowed = max(cost - ARMIJO_FRACTION * scale * reduction, ROUNDING_COST)
        if scale < SHORTEST:
            # Any cost ends the search.
            allowed = np.inf
            scale = 0.0

        for i in range(n):
            q[i] = q_before[i] + scale * dq[i] + held[i]
        attained = linearize_cost(descent)
    return attained


def linearize_cost(descent: Descent) -> float:
    """Compute residual, error and Jacobian at the current joint positions.

    Returns:
        The cost of the residual.
    """
    linearize(descent)
    return residual_cost(descent)


def adopt_candidate(descent: Descent) -> None:
    """Take over error and Jacobian of the last linearization, for the next step."""
    iterate = descent.iterate
    copy(descent.search.candidate_error, iterate.error)
    for j in range(iterate.q.shape[0]):
        copy(descent.search.candidate_jacobian[j], iterate.jacobian[j])


def residual_cost(descent: Descent) -> float:
    """Return the cost of the residual, which steps are to reduce."""
    search = descent.search
    translation = clamped_cost(norm(search.residual, 0), search.translation_clamp)
    rotation = clamped_cost(norm(search.residual, 3), search.rotation_clamp)
    return translation + search.rotation_weight * rotation


def clamped_cost(size: float, clamp: float) -> float:
    """Return the cost of an error whose gradient is the error clamped to a length (Huber's loss).

    Args:
        size: Length of the error, m or rad.
        clamp: Largest length that acts, in the same unit.
    """
    return 0.5 * size * size if size <= clamp else clamp * (size - 0.5 * clamp)


def limit_step(step: Array, clamp: float) -> float:
    """Shorten a step (n,) so that no joint moves further than the clamp.

    A step that is not finite becomes zero.

    Returns:
        The fraction of the step that is left.
    """
    farthest = largest(step)
    total = 0.0
    for i in range(step.shape[0]):
        total += step[i]

    scale = 1.0 if farthest <= clamp else clamp / farthest
    for i in range(step.shape[0]):
        step[i] = scale * step[i] if math.isfinite(total) else 0.0
    return scale


def predict_reduction(descent: Descent, dq: Array) -> float:
    """Return the reduction of the cost by a motion (n,), to first order."""
    iterate = descent.iterate
    reduction = 0.0
    for i in range(iterate.rows):
        motion = 0.0
        for j in range(dq.shape[0]):
            motion += iterate.jacobian[j, i] * dq[j]
        weight = 1.0 if i < 3 else descent.search.rotation_weight
        reduction += motion * iterate.error[i] * weight
    return reduction


def descend_steepest(descent: Descent, dq: Array) -> None:
    """Write the motion of the Jacobian transpose, with the best length, to `dq` (n,).

    A small enough fraction of it always reduces the error.
    """
    jacobian = descent.iterate.jacobian
    error = descent.iterate.error
    rows = descent.iterate.rows
    rotation_weight = descent.search.rotation_weight
    n = dq.shape[0]

    # The gradient J^T W e with the weights W of translation and rotation, its squared length, and
    # the sum of the squares of its terms.
    square = 0.0
    square_of_terms = 0.0
    for j in range(n):
        dq[j] = 0.0
        for i in range(rows):
            term = jacobian[j, i] * error[i] * (1.0 if i < 3 else rotation_weight)
            dq[j] += term
            square_of_terms += term * term
        square += dq[j] * dq[j]

    # For a linear arm, the length of the motion that minimises the weighted error is the component
    # of the error along the tool's motion, divided by the square of that motion.
    along = 0.0
    motion_square = 0.0
    for i in range(rows):
        motion = 0.0
        for j in range(n):
            motion += jacobian[j, i] * dq[j]
        weight = 1.0 if i < 3 else rotation_weight
        along += weight * error[i] * motion
        motion_square += weight * motion * motion

    # A gradient whose terms cancel is rounding, and has no direction.
    is_rounding = square <= CANCELLED * CANCELLED * square_of_terms
    length = 0.0
    if motion_square > LEAST_SQUARE and not is_rounding:
        length = along / motion_square
    for j in range(n):
        dq[j] *= length
