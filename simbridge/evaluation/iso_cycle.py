"""One cycle of a repeated motion: what the ISO 9283-style figures need of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simbridge.evaluation.metrics.iso9283 import Figure
from simbridge.robot.pose import Array


class FigureSet(NamedTuple):
    """Figures of one kind.

    Attributes:
        figures: Figures that could be determined.
        missing: Sentences about those that are missing or incomplete.
    """

    figures: Sequence[Figure]
    missing: list[str]


@dataclass(frozen=True)
class Cycle:
    """The positions that the arm attained in one run of a trajectory.

    Attributes:
        stamp: Stamps (T,) of the run's clock, s.
        plan_time: Instants (T,) of the trajectory that are due at the stamps, s.
        positions: Attained positions (T, 3), m.
        delay: Delay of the arm, s.
    """

    stamp: Array
    plan_time: Array
    positions: Array
    delay: float

    def due(self, times: Array) -> Array:
        """Return when instants (K,) of the trajectory are due, s of the run's clock."""
        return np.interp(times, self.plan_time, self.stamp)

    def attained_at(self, times: Array) -> Array:
        """Return when the arm, with its delay, is where the target is at some instants.

        Args:
            times: Instants (K,) of the trajectory, s.

        Returns:
            Instants (K,) of the run's clock, s.
        """
        return self.due(times) + self.delay


def rest_mask(times: Array, rests: Sequence[tuple[float, float]]) -> NDArray[np.bool_]:
    """Return which instants (K,) fall into a rest, given by its begin and end, s."""
    is_resting = np.zeros(len(times), dtype=bool)
    for begin, end in rests:
        is_resting |= (times >= begin) & (times <= end)
    return is_resting
