"""An inspection: what a trajectory asks for, in numbers.

It measures rate, gaps, speeds and extents, and counts the targets that an arm attains; nothing is
planned, and nothing refused.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.solver import Solver
from simbridge.planning.reach import Reach, measure_reach
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.trajectory.gaps import (
    GAP_PERIODS,
    LARGE_GAP_PERIODS,
    Fault,
    find_gaps,
    find_jumps,
)
from simbridge.trajectory.trajectory import Trajectory


@dataclass(frozen=True)
class Spread:
    """Mean, 95th percentile and maximum."""

    mean: float
    p95: float
    max: float


@dataclass(frozen=True)
class TrajectoryFacts:
    """A trajectory in numbers (SI units).

    Attributes:
        source: File or scenario that it comes from.
        samples: Number of samples.
        duration_s: Time from the first sample to the last.
        rate_hz: One over the median step; None for a single sample.
        step_std_s: Standard deviation of the steps that are not gaps; None without any.
        gaps: Number of steps that are longer than 1.5 times the median.
        longest_gap_s: The longest step; None for a single sample.
        longest_gap_at_s: Time from the start to the beginning of the longest step.
        large_gaps: Gaps that `run` refuses unless --gaps says what to do.
        jumps: Steps of position or rotation that are far larger than the others.
        length_m: Length of the line through the positions.
        speed_m_s: Speed between neighbouring samples, weighted by time; None for a single sample.
        turn_rate_rad_s: Rate of rotation between neighbouring samples, likewise.
        extent_min_m: Lowest corner of the smallest box around the positions, in base_link.
        extent_max_m: Highest corner of this box, in base_link.
        reach: The part that the arm can attain; None without a solver.
        read_as: How the trajectory's file was read, in one line; "" if it is from none.
        unknown_frame: The frame of a file's poses that nothing relates to base_link; extent and
            reach are as if it were base_link. "" if the poses are in base_link.
        frame_flags: Flags of which one may relate that frame to base_link.
        placement: A transform that brings the trajectory in reach (7,), m and quaternion, if the
            arm attains none of a file. It is a guess, which knows nothing of the cell.
    """

    source: str
    samples: int
    duration_s: float
    rate_hz: float | None
    step_std_s: float | None
    gaps: int
    longest_gap_s: float | None
    longest_gap_at_s: float | None
    large_gaps: tuple[Fault, ...]
    jumps: tuple[Fault, ...]
    length_m: float
    speed_m_s: Spread | None
    turn_rate_rad_s: Spread | None
    extent_min_m: tuple[float, float, float]
    extent_max_m: tuple[float, float, float]
    reach: Reach | None
    read_as: str = ""
    unknown_frame: str = ""
    frame_flags: tuple[str, ...] = ()
    placement: tuple[float, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def inspect(
    trajectory: Trajectory, solver: Solver | None = None
) -> tuple[TrajectoryFacts, NDArray[np.bool_] | None]:
    """Measure a trajectory, and what an arm can attain of it.

    Args:
        trajectory: The trajectory, in base_link.
        solver: A solver of the arm; None to leave the reach out.

    Returns:
        The facts; and which samples can be attained (T,). Not all are solved: those between two
        solved ones count as the nearer one.
    """
    # The steps from sample to sample in time; a single sample has none. Steps that are longer than
    # GAP_PERIODS medians are gaps.
    steps = np.diff(trajectory.elapsed)
    median_step = float(np.median(steps)) if len(steps) else None
    even_steps = steps[steps <= GAP_PERIODS * (median_step or 0.0)]
    longest = int(np.argmax(steps)) if len(steps) else None

    # The steps in space, and the box around the samples.
    translations, rotations = pose.error(trajectory.poses[1:], trajectory.poses[:-1])
    distances = np.linalg.norm(translations, axis=1)
    angles = np.linalg.norm(rotations, axis=1)
    low = trajectory.poses[:, :3].min(axis=0)
    high = trajectory.poses[:, :3].max(axis=0)

    reach = None
    attained = None
    if solver is not None:
        reach, attained = measure_reach(trajectory, solver)

    facts = TrajectoryFacts(
        source=trajectory.source,
        samples=len(trajectory.times),
        duration_s=trajectory.duration,
        rate_hz=None if median_step is None else 1.0 / median_step,
        step_std_s=float(even_steps.std()) if len(even_steps) else None,
        gaps=len(steps) - len(even_steps),
        longest_gap_s=None if longest is None else float(steps[longest]),
        longest_gap_at_s=None if longest is None else float(trajectory.elapsed[longest]),
        large_gaps=tuple(find_gaps(trajectory, LARGE_GAP_PERIODS)),
        jumps=tuple(find_jumps(trajectory)),
        length_m=float(distances.sum()),
        speed_m_s=_speed_spread(distances, steps),
        turn_rate_rad_s=_speed_spread(angles, steps),
        extent_min_m=(float(low[0]), float(low[1]), float(low[2])),
        extent_max_m=(float(high[0]), float(high[1]), float(high[2])),
        reach=reach,
        read_as=trajectory.read_as,
    )
    return facts, attained


def _speed_spread(distances: Array, steps: Array) -> Spread | None:
    """Return the spread of a speed, weighted by how long it lasts; None without steps.

    Args:
        distances: m or rad (T - 1,).
        steps: The time that they take (T - 1,), s.
    """
    if not len(steps):
        return None

    speeds = distances / steps
    order = np.argsort(speeds)
    elapsed = np.cumsum(steps[order])
    p95 = speeds[order[np.searchsorted(elapsed, 0.95 * elapsed[-1])]]
    return Spread(float(distances.sum() / steps.sum()), float(p95), float(speeds.max()))
