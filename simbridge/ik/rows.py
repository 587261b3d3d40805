"""Custom rows for the constrained step: conditions on the motion of one iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.ik.targets import numbers
from simbridge.robot.pose import Array

# Numbers, or a function of the joint positions (n,) that returns them.
Coefficients: TypeAlias = ArrayLike | Callable[[Array], ArrayLike]

# Singular values up to this fraction of the largest count as zero.
ROUNDING = 1e-12
# Largest coefficient that is accepted: the products of larger ones and weights may overflow.
MAX_COEFFICIENT = 1e60
# Smallest diagonal element that a Hessian is scaled by.
LEAST_SCALE = 1e-290


@dataclass(frozen=True, eq=False)
class Rows:
    """Conditions A dq = b on the motion dq (n,) of one iteration, rad (of sliding joints m).

    Attributes:
        matrix: A (k, n), or a function of the joint positions q (n,) that returns it.
        values: b (k,), or such a function: pull * (c - A @ q) goes part of the way to A q = c.
    """

    matrix: Coefficients
    values: Coefficients

    @property
    def vary(self) -> bool:
        """True if A or b depends on the joint positions."""
        return callable(self.matrix) or callable(self.values)

    def at(self, q: Array) -> tuple[Array, Array]:
        """Return A (k, n) and b (k,) at joint positions q (n,).

        Raises:
            InvalidParameter: They are not of these shapes, or a number is not finite or above 1e60.
        """
        matrix = _evaluate(self.matrix, q)
        values = _evaluate(self.values, q)
        if matrix.ndim != 2 or matrix.shape[1] != len(q) or values.shape != matrix.shape[:1]:
            shapes = f"{matrix.shape} and {values.shape}"
            needed = f"(k, {len(q)}) and (k,)"
            raise InvalidParameter("shape of a solver's rows", shapes, needed)

        magnitudes = np.concatenate([np.abs(matrix).ravel(), np.abs(values)])
        largest_magnitude = magnitudes.max(initial=0.0)
        # The comparison is false for NaN, too.
        if not largest_magnitude <= MAX_COEFFICIENT:
            needed = f"finite, and at most {MAX_COEFFICIENT:g}"
            raise InvalidParameter("largest number in a solver's rows", largest_magnitude, needed)
        return matrix, values


def _evaluate(coefficients: Coefficients, q: Array) -> Array:
    """Return coefficients as an array, at joint positions q (n,).

    Raises:
        InvalidParameter: They are not numbers.
    """
    if callable(coefficients):
        return numbers("solver's rows", coefficients(q.copy()), "numbers")
    return numbers("solver's rows", coefficients, "numbers")


@dataclass(frozen=True, eq=False)
class SoftRows(Rows):
    """Conditions that are met as far as the strict ones allow, in weighted least squares.

    Attributes:
        weights: Weights of each row (k,), positive; equal by default.
    """

    weights: ArrayLike = 1.0

    def normal_equations(self, q: Array) -> tuple[Array, Array]:
        """Return 2 A^T W A (n, n) and 2 A^T W b (n,) at joint positions q (n,).

        They are scaled so that the largest diagonal entry of 2 A^T W A is two. For directions of
        motion that the rows leave free a term is added, so that the joints do not move in them.

        Raises:
            InvalidParameter: Shapes do not fit, or a number is not finite, or a weight not
                positive.
        """
        matrix, values = self.at(q)
        weights = numbers("weights of a solver's rows", self.weights, "numbers")
        is_fitting = weights.shape in ((), values.shape)
        is_positive = bool(((weights > 0.0) & (weights <= MAX_COEFFICIENT)).all())
        if not is_fitting or not is_positive:
            needed = f"one positive number, at most {MAX_COEFFICIENT:g}, or {len(values)}"
            raise InvalidParameter("weights of a solver's rows", self.weights, needed)

        root_weights = np.sqrt(weights * np.ones(len(values)))
        weighted_matrix = root_weights[:, None] * matrix
        weighted_values = root_weights * values

        # Motions along the last right singular vectors change none of the rows.
        _, singular_values, directions = np.linalg.svd(weighted_matrix)
        rank = int(np.sum(singular_values > ROUNDING * singular_values.max(initial=0.0)))
        free_directions = directions[rank:]

        hessian = weighted_matrix.T @ weighted_matrix
        scale = max(float(hessian.diagonal().max()), LEAST_SCALE)
        gradient = weighted_matrix.T @ weighted_values
        resting_term = free_directions.T @ free_directions
        return 2.0 * (hessian / scale + resting_term), 2.0 * gradient / scale
