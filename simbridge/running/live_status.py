"""What a live session shows of itself, and how it records what was given to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from simbridge.errors import SimbridgeError


class NotEngaged(SimbridgeError, RuntimeError):
    """A live arm cannot be moved now; reason: why, such as "the session has ended"."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The arm is not engaged: {reason}.")


@dataclass(frozen=True)
class LiveStatus:
    """How a session is.

    Attributes:
        state: "idle", "engaged", "tracking", "braking", "holding", "paused" or "ended".
        causes: What slows the arm down or holds it, such as "joint_velocity wrist_3 0.90" or "stale 0.31 s".
        speed_factor: Share of the controller's full speed, 0 to 1.
        latency: Median time from the newest inputs to their commands, s; None before the first.
        input_age: How long ago the newest input was given, s; None before the first.
        error: What stopped the arm last; None once it is engaged again.
    """

    state: str
    causes: tuple[str, ...] = ()
    speed_factor: float = 1.0
    latency: float | None = None
    input_age: float | None = None
    error: SimbridgeError | None = None


def plain_numbers(given: Any) -> Any:
    """What was given, as plain numbers for the record; None where it is none."""
    try:
        numbers = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        return None
    finite = numbers.ndim in (1, 2) and numbers.size <= 4096
    return [None if not math.isfinite(v) else v for v in numbers.ravel().tolist()] if finite else None
