"""AP, RP, stabilisation time and OV of the stops of a motion: poses at which its target rests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simbridge.evaluation.iso_cycle import Cycle
from simbridge.evaluation.metrics import iso9283
from simbridge.evaluation.metrics.path_features import Stop, Visit
from simbridge.robot.pose import Array
from simbridge.text import counted

# The attained pose is the mean over this time before the target departs, s.
HELD_S = 0.1
# Radius in m about the attained pose within which the arm is settled: the pose repeatability that
# UR specifies for the UR10.
LIMIT_BAND = 1e-4
# The band is at least so many times the scatter at rest: noise of an external recording is no
# motion.
SCATTERS = 3.0
# Rounding of a departure, s: the sample at it still belongs to the visit.
ROUNDING_S = 1e-9


class StopFigures(NamedTuple):
    """Figures of the stops of a motion.

    Attributes:
        figures: Stop by stop.
        limit_band: Radius within which the arm counts as settled, m; None without stops.
        missing: Sentences about stops without figures.
    """

    figures: list[iso9283.Figure]
    limit_band: float | None
    missing: list[str]


@dataclass(frozen=True)
class Stay:
    """The arm at one visit of a stop in one run.

    Attributes:
        stamp: Stamps (K,) of the run's clock, s.
        positions: Attained positions (K, 3) at the stamps, m.
        attained: The attained position (3,), m: a mean over the end of the visit.
        scatter: RMS distance of the positions from their mean there, m.
        drift: Distance between the means of the two halves of this end, m.
    """

    stamp: Array
    positions: Array
    attained: Array
    scatter: float
    drift: float

    def ends_at_rest(self, band: float) -> bool:
        """Check that the tool has stopped, with its last sample in the limit band.

        Settling is measured up to that sample.

        Args:
            band: Radius of the limit band, m.
        """
        last_distance = float(np.linalg.norm(self.positions[-1] - self.attained))
        return self.drift <= band and last_distance <= band


def stop_figures(stops: Sequence[Stop], cycles: Sequence[Cycle]) -> StopFigures:
    """Return AP, RP, stabilisation time and OV of every stop.

    Each visit in each run counts as a cycle. A stop where the arm still moved when the target
    departed has no figures.

    Args:
        stops: Stops of the target.
        cycles: What the arm attained in each run.
    """
    stays_by_stop = [_stays(stop, cycles) for stop in stops]
    if not stays_by_stop:
        return StopFigures([], None, [])
    band = _limit_band([stay for stays in stays_by_stop for stay in stays])

    figures: list[iso9283.Figure] = []
    missing = []
    for number, stays in enumerate(stays_by_stop, start=1):
        moving = sum(not stay.ends_at_rest(band) for stay in stays)
        if moving:
            missing.append(
                f"No figures of stop {number}: the arm still moved at the end of the rest in "
                f"{moving} of {counted(len(stays), 'cycle')}. Use a longer rest."
            )
        else:
            position = stops[number - 1].position
            figures += [{**figure, "stop": number} for figure in _figures(position, stays, band)]
    return StopFigures(figures, band, missing)


def _figures(position: Array, stays: Sequence[Stay], band: float) -> list[iso9283.Figure]:
    """Return the figures of one stop.

    Args:
        position: Commanded position (3,), m.
        stays: Visits of the arm at the stop.
        band: Radius of the limit band, m.
    """
    attained = np.array([stay.attained for stay in stays])
    approaches = [(stay.stamp, stay.positions) for stay in stays]
    return [
        *iso9283.pose_figures(position, attained),
        *iso9283.stabilisation_figures(approaches, band, attained),
    ]


def _limit_band(stays: Sequence[Stay]) -> float:
    """Return the radius within which the arm counts as settled, m.

    Visits at whose end the arm still drifts do not widen it.
    """
    settled = [stay.scatter for stay in stays if stay.drift <= LIMIT_BAND + stay.scatter]
    return max([LIMIT_BAND, *(SCATTERS * scatter for scatter in settled)])


def _stays(stop: Stop, cycles: Sequence[Cycle]) -> list[Stay]:
    """Return the arm at each visit of a stop, run by run."""
    return [_stay(cycle, visit) for cycle in cycles for visit in stop.visits]


def _stay(cycle: Cycle, visit: Visit) -> Stay:
    """Cut a visit of a stop out of a run."""
    begin, departure = cycle.due(np.array([visit.begin, visit.departure]))
    low, high = np.searchsorted(cycle.stamp, [begin, departure + ROUNDING_S])
    # If the period is longer than the rest there is one sample.
    low = min(low, high - 1)
    stamp = cycle.stamp[low:high]
    positions = cycle.positions[low:high]

    # The arm drifts if its mean position differs between the two halves of the visit's end.
    end = positions[stamp >= stamp[-1] - HELD_S]
    first_half, second_half = np.array_split(end, 2)
    drift = 0.0
    if len(end) > 1:
        drift = float(np.linalg.norm(second_half.mean(axis=0) - first_half.mean(axis=0)))

    # The scatter about the means of the halves: a slow drift is not counted.
    deviations = np.concatenate(
        [half - half.mean(axis=0) for half in (first_half, second_half) if len(half)]
    )
    scatter = float(np.sqrt(np.mean((deviations**2).sum(axis=1))))
    return Stay(
        stamp=stamp,
        positions=positions,
        attained=end.mean(axis=0),
        scatter=scatter,
        drift=drift,
    )
