"""Failures of a solver's calls: counted by their kind, never fatal to the suite."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from simbridge.errors import ForeignSolverError, InvalidParameter
from simbridge.experiments.suite.results import Fault

NOT_A_NUMBER = "not a number"
INVALID_ANSWER = "invalid answer"


def name_fault(error: BaseException) -> str:
    """Return the kind of a failure, as `Fault.kind` has it.

    Args:
        error: What the call has raised.
    """
    if isinstance(error, ForeignSolverError) and error.__cause__ is not None:
        return type(error.__cause__).__name__
    if isinstance(error, InvalidParameter):
        return NOT_A_NUMBER if _has_invalid_number(error.value) else INVALID_ANSWER
    return type(error).__name__


def _has_invalid_number(answer: object) -> bool:
    """Return whether an answer consists of numbers of which at least one is not finite."""
    try:
        numbers = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        return False
    return not np.isfinite(numbers).all()


@dataclass
class FaultLog:
    """The failures of one solver in one motion or set of poses.

    Attributes:
        by_kind: The failures by their kind.
    """

    by_kind: dict[str, Fault] = field(default_factory=dict)

    def add(self, call: int, error: BaseException) -> None:
        """Count a failure.

        Args:
            call: Index of the call: the sample of a motion, the pose of a set.
            error: What the call has raised.
        """
        kind = name_fault(error)
        first = self.by_kind.get(kind)
        if first is None:
            self.by_kind[kind] = Fault(kind=kind, count=1, first_call=call, message=str(error))
        else:
            self.by_kind[kind] = Fault(
                kind=kind, count=first.count + 1, first_call=first.first_call, message=first.message
            )

    @property
    def faults(self) -> list[Fault]:
        """The failures, the most frequent kind first."""
        return sorted(self.by_kind.values(), key=lambda fault: -fault.count)
