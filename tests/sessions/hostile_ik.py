"""Solvers that work while a session begins; all but `keeps` then fail, each in its own way."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

# Steps until the fault: the first ones are those in which the loop's process warms up.
STEPS_BEFORE = 100
_steps = 0


def is_due() -> bool:
    """Count a step, and return whether the fault is due."""
    global _steps
    _steps += 1
    return _steps > STEPS_BEFORE


def answer(wrong: Any) -> Any:
    """Return a solver that keeps the joints, and then answers with something else."""

    def step(q: Any, target: Any) -> Any:
        return wrong(q) if is_due() else q

    return step


class LocalError(Exception):
    """An error that has no text and cannot be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot be pickled")

    def __str__(self) -> str:
        raise ValueError("no text")


def failing(q: Any) -> Any:
    raise LocalError


def interrupting(q: Any) -> Any:
    raise KeyboardInterrupt


class Cancelled(BaseException):
    """Not an Exception, like asyncio.CancelledError."""


def cancelling(q: Any) -> Any:
    raise Cancelled


def hanging(q: Any) -> Any:
    while True:
        time.sleep(0.01)


keeps = answer(lambda q: q)
nan = answer(lambda q: q * np.nan)
infinite = answer(lambda q: q + np.inf)
short = answer(lambda q: q[:3])
huge = answer(lambda q: q + 1e300)
imaginary = answer(lambda q: q + 1j)
text = answer(lambda q: "hello")
nothing = answer(lambda q: None)
many = answer(lambda q: np.zeros(10**6))
raises = answer(failing)
interrupts = answer(interrupting)
cancels = answer(cancelling)
leaves = answer(lambda q: sys.exit(5))
dies = answer(lambda q: os._exit(7))
hangs = answer(hanging)
