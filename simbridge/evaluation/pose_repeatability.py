"""The ISO 9283-style figures of the poses at which a repeated motion rests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simbridge.evaluation.metrics.iso9283 import Figure, pose_figures, settling_figures
from simbridge.evaluation.metrics.stops import Stop, Visit
from simbridge.robot.pose import Array
from simbridge.text import counted

HELD = 0.1
"""Seconds before the target departs again, over which the attained pose is the mean."""

BAND = 1e-4
"""Limit band in m about the attained pose within which the arm is settled: the pose repeatability that UR gives for the
UR10. Three times the scatter at rest where that is more, so that an outside recording's noise is no motion."""


@dataclass(frozen=True)
class Cycle:
    """What the figures need of a run.

    Attributes:
        stamp: The run's clock (T,), s.
        plan_time: Where on the trajectory it is due then (T,), s.
        positions: Attained (T, 3), m.
        delay: By how much the arm is late, s.
    """

    stamp: Array
    plan_time: Array
    positions: Array
    delay: float

    def due(self, times: Array) -> Array:
        """Instants of the run's clock at which it is due at the trajectory's instants."""
        return np.interp(times, self.plan_time, self.stamp)


@dataclass(frozen=True)
class _Stay:
    """One visit in one run: stamps (K,), positions (K, 3), the attained one (3,), its scatter and its drift, in m."""

    stamp: Array
    positions: Array
    attained: Array
    scatter: float
    drift: float

    @staticmethod
    def of(run: Cycle, visit: Visit) -> _Stay:
        begin, _, departure = run.due(np.array([visit.begin, visit.arrival, visit.departure]))
        low, high = np.searchsorted(run.stamp, [begin, departure + 1e-9])
        # At a period longer than the rest one sample has to do.
        low = min(low, high - 1)
        stamp, positions = run.stamp[low:high], run.positions[low:high]
        last = positions[stamp >= stamp[-1] - HELD]
        earlier, later = np.array_split(last, 2)
        drift = float(np.linalg.norm(later.mean(axis=0) - earlier.mean(axis=0))) if len(last) > 1 else 0.0
        around = np.concatenate([half - half.mean(axis=0) for half in (earlier, later) if len(half)])
        scatter = float(np.sqrt(np.mean((around**2).sum(axis=1))))
        return _Stay(stamp, positions, last.mean(axis=0), scatter, drift)


def stop_figures(stops: Sequence[Stop], runs: Sequence[Cycle]) -> tuple[list[Figure], float | None, list[str]]:
    """AP, RP, stabilisation time and OV of every stop; a visit of a run is a cycle.

    Returns:
        The figures, the limit band in m, and, as sentences, which stops have no figures because the arm still moved
        when the target departed.
    """
    stays = [[_Stay.of(run, visit) for run in runs for visit in stop.visits] for stop in stops]
    if not stays:
        return [], None, []
    settled = [stay.scatter for visits in stays for stay in visits if stay.drift <= BAND + stay.scatter]
    band = max([BAND, *(3.0 * scatter for scatter in settled)])
    figures: list[Figure] = []
    unsettled = []
    for number, (stop, visits) in enumerate(zip(stops, stays, strict=True), start=1):
        restless = sum(not _at_rest(stay, band) for stay in visits)
        if restless:
            unsettled.append(
                f"No figures of stop {number}: when its rest was over the arm still moved, in {restless} of "
                f"{counted(len(visits), 'cycle')}. Rest longer."
            )
            continue
        attained = np.array([stay.attained for stay in visits])
        ways = [(stay.stamp, stay.positions) for stay in visits]
        found = (*pose_figures(stop.position, attained), *settling_figures(ways, band, attained))
        figures += [replace(figure, stop=number) for figure in found]
    return figures, band, unsettled


def _at_rest(stay: _Stay, band: float) -> bool:
    """Whether the tool has stopped, and its last sample is in the limit band, as settling is measured up to it."""
    return stay.drift <= band and float(np.linalg.norm(stay.positions[-1] - stay.attained)) <= band
