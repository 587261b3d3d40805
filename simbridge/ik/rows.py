"""Custom linear conditions on the motion of one iteration, for the constrained step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

Given: TypeAlias = ArrayLike | Callable[[Array], ArrayLike]

# Singular values up to this share of the largest count as zero.
_FREE = 1e-12
# Beyond it squares, and products of them and weights, may overflow.
_LARGEST = 1e60


@dataclass(frozen=True, eq=False)
class Rows:
    """Conditions A dq = b on the motion dq (n,) of one iteration, rad (of sliding joints m).

    Attributes:
        matrix: A (k, n), or a function of the joint positions q (n,) that returns it.
        values: b (k,), or such a function: pull * (wanted - A @ q) goes part of the way to A q = wanted.
    """

    matrix: Given
    values: Given

    @property
    def vary(self) -> bool:
        """Whether they depend on the joint positions."""
        return callable(self.matrix) or callable(self.values)

    def at(self, q: Array) -> tuple[Array, Array]:
        """A (k, n) and b (k,) at joint positions q (n,).

        Raises:
            InvalidParameter: They are not of these shapes, or not finite.
        """
        matrix, values = (
            _numbers("solver's rows", given(q.copy()) if callable(given) else given)
            for given in (self.matrix, self.values)
        )
        if matrix.ndim != 2 or matrix.shape[1] != len(q) or values.shape != matrix.shape[:1]:
            shapes = f"{matrix.shape} and {values.shape}"
            raise InvalidParameter("shape of a solver's rows", shapes, f"(k, {len(q)}) and (k,)")
        largest = np.concatenate([np.abs(matrix).ravel(), np.abs(values)]).max(initial=0.0)
        if not largest <= _LARGEST:
            raise InvalidParameter("largest number in a solver's rows", largest, f"finite, and at most {_LARGEST:g}")
        return matrix, values


@dataclass(frozen=True, eq=False)
class SoftRows(Rows):
    """Conditions that are met as far as the strict ones allow, in weighted least squares.

    Attributes:
        weights: Of each row (k,), positive; equal by default.
    """

    weights: ArrayLike = 1.0

    def normal_equations(self, q: Array) -> tuple[Array, Array]:
        """2 A^T W A (n, n) and 2 A^T W b (n,) at joint positions q (n,), scaled so that the largest diagonal entry is
        two.

        The joints rest in directions that the rows leave free.

        Raises:
            InvalidParameter: Shapes do not fit, or a number is not finite, or a weight not positive.
        """
        matrix, values = self.at(q)
        weights = _numbers("weights of a solver's rows", self.weights)
        if weights.shape not in ((), values.shape) or not ((weights > 0.0) & (weights <= _LARGEST)).all():
            needed = f"one positive number, at most {_LARGEST:g}, or {len(values)}"
            raise InvalidParameter("weights of a solver's rows", self.weights, needed)
        root = np.sqrt(weights * np.ones(len(values)))
        rows, wanted = root[:, None] * matrix, root * values
        _, singular, directions = np.linalg.svd(rows)
        free = directions[int(np.sum(singular > _FREE * singular.max(initial=0.0))) :]
        hessian = rows.T @ rows
        scale = max(float(hessian.diagonal().max()), 1e-290)
        return 2.0 * (hessian / scale + free.T @ free), 2.0 * (rows.T @ wanted) / scale


def _numbers(name: str, given: ArrayLike) -> Array:
    try:
        return np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(name, given, "numbers") from None
