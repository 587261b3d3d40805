"""Gaps and jumps in a recording: where they are, how large, and what is done about them.

A gap is a step of more than GAP median steps. Up to LARGEST median steps it is interpolated; a larger one is refused,
unless a treatment is chosen:

- `interpolate`: the target moves from the pose before to the pose after, in the time of the gap.
- `hold`: the target stays at the pose before, and steps to the pose after when that comes, as with a live source.
- `split`: the longest piece between two such gaps is the trajectory; the others are left out.

Below 1 s of data or five samples no gap is judged. A jump is a step of more than 20 mm or 10 degrees between two
samples without a gap that is also ten times as large as the 95th percentile of all steps.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InputFileError
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.text import counted, displayed, significant
from simbridge.trajectory.trajectory import Trajectory

Gaps = Literal["refuse", "hold", "interpolate", "split"]

GAP, LARGEST = 1.5, 10.0
_SHORTEST, _FEWEST = 1.0, 5
_JUMPS = (0.02, math.radians(10.0))


@dataclass(frozen=True)
class Fault:
    """A gap or a jump: the sample before it, its instant, s since the start, and its size in "s", "m" or "rad"."""

    sample: int
    at: float
    size: float
    unit: str

    def __str__(self) -> str:
        number, unit = (significant(self.size, 3), "s") if self.unit == "s" else displayed(self.size, self.unit)
        return f"{number} {unit}".replace(" °", "°") + f" after {significant(self.at, 4)} s"


def gaps(trajectory: Trajectory, periods: float = GAP) -> list[Fault]:
    """The steps of more than so many median steps; none where there is too little to judge by."""
    steps = np.diff(trajectory.elapsed)
    if trajectory.duration < _SHORTEST or len(trajectory.times) < _FEWEST:
        return []
    return _faults(trajectory, steps, np.flatnonzero(steps > periods * np.median(steps) * (1.0 + 1e-9)), "s")


def jumps(trajectory: Trajectory) -> list[Fault]:
    """The steps of position and rotation, without a gap, that are far larger than the others."""
    if len(trajectory.times) < _FEWEST:
        return []
    steps = np.diff(trajectory.elapsed)
    even = steps <= GAP * np.median(steps)
    found = []
    differences = pose.error(trajectory.poses[1:], trajectory.poses[:-1])
    for difference, least, unit in zip(differences, _JUMPS, ("m", "rad"), strict=True):
        size = np.linalg.norm(difference, axis=1)
        large = even & (size > max(least, 10.0 * float(np.percentile(size, 95))))
        found += _faults(trajectory, size, np.flatnonzero(large), unit)
    return sorted(found, key=lambda fault: fault.sample)


def _faults(trajectory: Trajectory, sizes: Array, at: NDArray[np.intp], unit: str) -> list[Fault]:
    return [Fault(int(k), float(trajectory.elapsed[k]), float(sizes[k]), unit) for k in at]


def without_gaps(trajectory: Trajectory, treatment: Gaps | None) -> Trajectory:
    """The trajectory with its large gaps treated, or refused if none is chosen; a warning names gaps and jumps."""
    if found := jumps(trajectory):
        warnings.warn(f"{trajectory.source}: {named(found, 'jump')}.", stacklevel=2)
    large = gaps(trajectory, LARGEST)
    small = [gap for gap in gaps(trajectory) if gap not in large]
    period = float(np.median(np.diff(trajectory.elapsed))) if len(trajectory.times) > 1 else 0.0
    if large and treatment in (None, "refuse"):
        raise InputFileError(
            trajectory.source,
            f"{named(large, 'gap')}, of more than 10 sample periods of {significant(period * 1e3)} ms: how the tool "
            "moved there is not known. Choose what the target does: --gaps interpolate (move on evenly), hold (wait, "
            "then step), or split (only the longest piece without such a gap)",
            field="time",
        )
    if small:
        warnings.warn(f"{trajectory.source}: {named(small, 'gap')}, interpolated.", stacklevel=2)
    if not large:
        return trajectory
    treated, done = trajectory, "interpolated"
    if treatment == "hold":
        # The pose before each gap repeated one sample period before the pose after it.
        after = np.array([gap.sample for gap in large]) + 1
        times = np.insert(trajectory.times, after, trajectory.times[after] - period)
        poses = np.insert(trajectory.poses, after, trajectory.poses[after - 1], axis=0)
        treated, done = replace(trajectory, times=times, poses=poses), "held"
    elif treatment == "split":
        bounds = [0, *(gap.sample + 1 for gap in large), len(trajectory.times)]
        begin, end = max(itertools.pairwise(bounds), key=lambda piece: np.ptp(trajectory.elapsed[slice(*piece)]))
        treated = replace(trajectory, times=trajectory.times[begin:end], poses=trajectory.poses[begin:end])
        start = float(treated.times[0] - trajectory.times[0])
        done = f"the longest piece is used, {significant(treated.duration, 4)} s from {significant(start, 4)} s on"
    warnings.warn(f"{trajectory.source}: {named(large, 'gap')}, {done}.", stacklevel=2)
    return treated


def named(faults: Sequence[Fault], noun: str) -> str:
    """The number of faults, and the largest three with place and size."""
    shown = sorted(sorted(faults, key=lambda fault: -fault.size)[:3], key=lambda fault: fault.at)
    more = "; the largest: " if len(faults) > 3 else ": "
    return f"{counted(len(faults), noun)}{more}{', '.join(map(str, shown))}"
