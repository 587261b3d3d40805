"""Counts the failures of a solver's calls by their kind; they never end the suite."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import numpy as np

from simbridge.errors import ForeignSolverError, InvalidParameter
from simbridge.experiments.suite.results import CallFault

# Kind of an answer that has a number which is not finite.
NOT_A_NUMBER = "not a number"
# Kind of any other answer that is not joint positions.
INVALID_ANSWER = "invalid answer"


def name_fault(error: BaseException) -> str:
    """Return the kind of a failure: see `CallFault.kind`.

    Args:
        error: Exception that the call has raised.
    """
    # The error of a user's function wraps the exception that the function has raised.
    if isinstance(error, ForeignSolverError) and error.__cause__ is not None:
        return type(error.__cause__).__name__
    if isinstance(error, InvalidParameter):
        return NOT_A_NUMBER if _has_invalid_number(error.value) else INVALID_ANSWER
    return type(error).__name__


def _has_invalid_number(answer: object) -> bool:
    """Return whether an answer consists of numbers, and at least one of them is not finite."""
    try:
        numbers = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        return False
    return not np.isfinite(numbers).all()


@dataclass
class FaultLog:
    """The failures of one solver in one motion or set of poses.

    Attributes:
        by_kind: Failures of each kind, by the kind.
    """

    by_kind: dict[str, CallFault] = field(default_factory=dict)

    def add(self, call: int, error: BaseException) -> None:
        """Count a failure.

        Args:
            call: Index of the call: the sample of a motion, the pose of a set.
            error: Exception that the call has raised.
        """
        kind = name_fault(error)
        fault = self.by_kind.get(kind)
        if fault is None:
            self.by_kind[kind] = CallFault(kind=kind, count=1, first_call=call, message=str(error))
        else:
            self.by_kind[kind] = msgspec.structs.replace(fault, count=fault.count + 1)

    @property
    def faults(self) -> list[CallFault]:
        """The failures of each kind, the most frequent kind first."""
        return sorted(self.by_kind.values(), key=lambda fault: -fault.count)
