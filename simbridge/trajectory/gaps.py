"""Gaps and jumps in the samples of a recording.

A gap is a step of more than GAP_PERIODS median steps. Up to LARGE_GAP_PERIODS it is interpolated; a
larger one is refused, unless a treatment is chosen (docs/trajectories.md). Below 1 s of data or
five samples no gap is judged. A jump is a step of more than 20 mm or 10 degrees, without a gap,
that is also ten times the 95th percentile of all steps.
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

# Sample periods from which on a step is a gap, and a large one.
GAP_PERIODS = 1.5
LARGE_GAP_PERIODS = 10.0
# Steps that differ from a number of periods by rounding alone are not gaps.
ROUNDING = 1e-9
# With less data, s, or fewer samples, no gap is judged.
MIN_DURATION = 1.0
MIN_SAMPLES = 5
# The smallest jumps, m and rad, and how many times the 95th percentile of all steps they are.
MIN_JUMP_DISTANCE = 0.02
MIN_JUMP_ANGLE = math.radians(10.0)
JUMP_FACTOR = 10.0
# Faults that are named one by one, at most.
MAX_NAMED_FAULTS = 3


@dataclass(frozen=True)
class Fault:
    """A gap or a jump.

    Attributes:
        sample: Index of the sample before it.
        at: The instant of that sample, s since the first one.
        size: Size of the gap or jump, in `unit`.
        unit: "s", "m" or "rad".
    """

    sample: int
    at: float
    size: float
    unit: str

    def __str__(self) -> str:
        """Return size and place: "0.3 s after 1.2 s"."""
        number = significant(self.size, 3)
        unit = "s"
        if self.unit != "s":
            number, unit = displayed(self.size, self.unit)
        return f"{number} {unit}".replace(" °", "°") + f" after {significant(self.at, 4)} s"


def find_gaps(trajectory: Trajectory, periods: float = GAP_PERIODS) -> list[Fault]:
    """Find the steps longer than a multiple of the median step; none in too little data."""
    steps = np.diff(trajectory.elapsed)
    if trajectory.duration < MIN_DURATION or len(trajectory.times) < MIN_SAMPLES:
        return []
    longest = periods * np.median(steps) * (1.0 + ROUNDING)
    return _faults(trajectory, steps, np.flatnonzero(steps > longest), "s")


def find_jumps(trajectory: Trajectory) -> list[Fault]:
    """Find the steps of position and rotation, without a gap, that are far larger than others."""
    if len(trajectory.times) < MIN_SAMPLES:
        return []

    steps = np.diff(trajectory.elapsed)
    is_even = steps <= GAP_PERIODS * np.median(steps)
    translations, rotations = pose.error(trajectory.poses[1:], trajectory.poses[:-1])
    jumps = []
    for differences, smallest, unit in (
        (translations, MIN_JUMP_DISTANCE, "m"),
        (rotations, MIN_JUMP_ANGLE, "rad"),
    ):
        sizes = np.linalg.norm(differences, axis=1)
        threshold = max(smallest, JUMP_FACTOR * float(np.percentile(sizes, 95)))
        is_jump = is_even & (sizes > threshold)
        jumps += _faults(trajectory, sizes, np.flatnonzero(is_jump), unit)
    return sorted(jumps, key=lambda fault: fault.sample)


def _faults(
    trajectory: Trajectory, sizes: Array, samples: NDArray[np.intp], unit: str
) -> list[Fault]:
    """Return a fault behind each of some samples, with its place and size."""
    return [
        Fault(int(sample), float(trajectory.elapsed[sample]), float(sizes[sample]), unit)
        for sample in samples
    ]


def treat_gaps(trajectory: Trajectory, treatment: Gaps | None) -> Trajectory:
    """Return the trajectory with its gaps treated; a warning names gaps and jumps.

    Args:
        trajectory: The trajectory as it was recorded.
        treatment: How large gaps are treated, and with "hold" all gaps; None refuses large ones.

    Raises:
        InputFileError: The trajectory has a large gap, and no treatment is chosen.
    """
    jumps = find_jumps(trajectory)
    if jumps:
        warnings.warn(f"{trajectory.source}: {named(jumps, 'jump')}.", stacklevel=2)

    large_gaps = find_gaps(trajectory, LARGE_GAP_PERIODS)
    if large_gaps and treatment in (None, "refuse"):
        _refuse_gaps(trajectory, large_gaps)

    # The gaps that the treatment concerns. The others are interpolated, as any step is.
    treated_gaps = find_gaps(trajectory) if treatment == "hold" else large_gaps
    other_gaps = [gap for gap in find_gaps(trajectory) if gap not in treated_gaps]
    if other_gaps:
        text = named(other_gaps, "gap")
        warnings.warn(f"{trajectory.source}: {text}, interpolated.", stacklevel=2)
    if not treated_gaps:
        return trajectory

    result = trajectory
    remark = "interpolated"
    if treatment == "hold":
        result = _hold(trajectory, treated_gaps)
        remark = "held"
    elif treatment == "split":
        result = _longest_piece(trajectory, treated_gaps)
        start = significant(float(result.times[0] - trajectory.times[0]), 4)
        duration = significant(result.duration, 4)
        remark = f"the longest piece is used, {duration} s from {start} s on"
    warnings.warn(f"{trajectory.source}: {named(treated_gaps, 'gap')}, {remark}.", stacklevel=2)
    return result


def _period(trajectory: Trajectory) -> float:
    """Return the median time between samples, s; 0 for a single one."""
    if len(trajectory.times) < 2:
        return 0.0
    return float(np.median(np.diff(trajectory.elapsed)))


def _refuse_gaps(trajectory: Trajectory, gaps: Sequence[Fault]) -> None:
    """Refuse a file for its large gaps, with the treatments that can be chosen."""
    period = significant(_period(trajectory) * 1e3)
    raise InputFileError(
        trajectory.source,
        f"{named(gaps, 'gap')}, of more than 10 sample periods of {period} ms: how the tool moved "
        "in between is unknown. Choose what the target does: --gaps interpolate (move on evenly), "
        "hold (wait, then step), or split (use only the longest piece without such a gap)",
        field="time",
    )


def _hold(trajectory: Trajectory, gaps: Sequence[Fault]) -> Trajectory:
    """Return the trajectory that waits in its gaps.

    The pose before each is repeated one sample period before the pose after it is due.
    """
    after = np.array([gap.sample for gap in gaps]) + 1
    hold_times = trajectory.times[after] - _period(trajectory)
    samples = np.arange(len(trajectory.times))
    return _pick(
        trajectory,
        times=np.insert(trajectory.times, after, hold_times),
        samples=np.insert(samples, after, after - 1),
    )


def _longest_piece(trajectory: Trajectory, gaps: Sequence[Fault]) -> Trajectory:
    """Return the piece between gaps that lasts longest."""
    bounds = [0, *(gap.sample + 1 for gap in gaps), len(trajectory.times)]
    pieces = itertools.pairwise(bounds)
    begin, end = max(pieces, key=lambda piece: np.ptp(trajectory.elapsed[slice(*piece)]))
    return _pick(trajectory, times=trajectory.times[begin:end], samples=np.arange(begin, end))


def _pick(trajectory: Trajectory, *, times: Array, samples: NDArray[np.intp]) -> Trajectory:
    """Return samples (K,) of a trajectory, by index, at other times (K,), s."""
    joints = None if trajectory.joints is None else trajectory.joints[samples]
    return replace(trajectory, times=times, poses=trajectory.poses[samples], joints=joints)


def named(faults: Sequence[Fault], noun: str) -> str:
    """Return the number of faults, and the largest three with place and size."""
    largest = sorted(faults, key=lambda fault: -fault.size)[:MAX_NAMED_FAULTS]
    shown = sorted(largest, key=lambda fault: fault.at)
    introduction = "; the largest: " if len(faults) > MAX_NAMED_FAULTS else ": "
    return f"{counted(len(faults), noun)}{introduction}{', '.join(map(str, shown))}"
