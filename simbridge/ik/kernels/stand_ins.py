"""Functions that the loops call by name, and that others replace when the loops are compiled."""

from __future__ import annotations

from typing import Any

from simbridge.ik.kernels.records import Descent


def move(*arguments: Any) -> None:
    """Stand for an iteration of forward dynamics: see `generation.generate_move`."""
    raise NotImplementedError


def linearize(descent: Descent) -> None:
    """Stand for the generated function: see `generation.generate_linearize`.

    From joint positions and target it computes the residual, the clamped error and the Jacobian.
    """
    raise NotImplementedError


def take_step(settings: Any, descent: Descent) -> None:
    """Stand for a solver's step: see `descent`."""
    raise NotImplementedError


def move_in_null_space(settings: Any, descent: Descent, cost: float) -> None:
    """Stand for `null_space.follow_drift`, or `null_space.stay` for solvers without a drift."""
    raise NotImplementedError
