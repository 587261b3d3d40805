"""Rate, gaps, speeds, extents and reachable share of a trajectory."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.solver import Solver
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.trajectory.samples import GAP, LARGEST, Fault, jumps
from simbridge.trajectory.samples import gaps as gaps_of
from simbridge.trajectory.trajectory import Trajectory

# Targets that are solved at most: one out of reach takes as long as a hundred others.
MAX_SOLVED = 400


@dataclass(frozen=True)
class Spread:
    """Of a quantity."""

    mean: float
    p95: float
    max: float


@dataclass(frozen=True)
class Reach:
    """The part of a trajectory that an arm can attain."""

    robot: str  # the arm's name
    share: float  # of the samples that were solved, 0 to 1
    solved: int  # number of samples that were solved: all, or at most MAX_SOLVED, evenly spread over the trajectory
    first_missed: int | None  # the first sample of those that cannot be attained; None if all can
    first_missed_s: float | None  # its instant since the start


@dataclass(frozen=True)
class Facts:
    """A trajectory in numbers (SI units).

    Attributes:
        speed_m_s, turn_rate_rad_s: Between neighbouring samples, weighted by time; None for a single sample.
        extent_min_m, extent_max_m: The smallest box around the positions, from base_link.
        placement: Where the arm attains none of a file: the transform that brings it in reach (7,), m and quaternion.
    """

    source: str  # where it comes from
    samples: int  # how many
    duration_s: float  # from the first to the last
    rate_hz: float | None  # one over the median step; None for a single sample
    step_std_s: float | None  # standard deviation of the steps that are not gaps; None without any
    gaps: int  # how many steps are longer than 1.5 times the median
    longest_gap_s: float | None  # the longest step; None for a single sample
    longest_gap_at_s: float | None  # when it begins, since the start
    large_gaps: tuple[Fault, ...]  # those that `run` refuses unless --gaps says what to do
    jumps: tuple[Fault, ...]  # steps of position or rotation that are far larger than the others
    length_m: float  # of the way along the samples
    speed_m_s: Spread | None
    turn_rate_rad_s: Spread | None
    extent_min_m: tuple[float, float, float]
    extent_max_m: tuple[float, float, float]
    reach: Reach | None  # what the arm can attain; None without a solver
    read_as: str = ""  # how its file was read, in one line; "" if it is from none
    placement: tuple[float, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def inspect(trajectory: Trajectory, solver: Solver | None = None) -> tuple[Facts, NDArray[np.bool_] | None]:
    """Measure a trajectory in base_link, and what the solver's arm can attain of it; None to leave that out.

    Returns:
        The facts; and which samples can be attained (T,), those between two that were solved by the nearer one.
    """
    steps = np.diff(trajectory.elapsed)
    ways, turns = pose.error(trajectory.poses[1:], trajectory.poses[:-1])
    way, turn = np.linalg.norm(ways, axis=1), np.linalg.norm(turns, axis=1)
    usual = float(np.median(steps)) if len(steps) else None
    even = steps[steps <= GAP * (usual or 0.0)]
    longest = int(np.argmax(steps)) if len(steps) else None
    low, high = trajectory.poses[:, :3].min(axis=0), trajectory.poses[:, :3].max(axis=0)
    reach, attained = (None, None) if solver is None else _reach(trajectory, solver)
    facts = Facts(
        source=trajectory.source,
        samples=len(trajectory.times),
        duration_s=trajectory.duration,
        rate_hz=None if usual is None else 1.0 / usual,
        step_std_s=float(even.std()) if len(even) else None,
        gaps=len(steps) - len(even),
        longest_gap_s=None if longest is None else float(steps[longest]),
        longest_gap_at_s=None if longest is None else float(trajectory.elapsed[longest]),
        large_gaps=tuple(gaps_of(trajectory, LARGEST)),
        jumps=tuple(jumps(trajectory)),
        length_m=float(way.sum()),
        speed_m_s=_spread(way, steps),
        turn_rate_rad_s=_spread(turn, steps),
        extent_min_m=(float(low[0]), float(low[1]), float(low[2])),
        extent_max_m=(float(high[0]), float(high[1]), float(high[2])),
        reach=reach,
        read_as=trajectory.read_as,
    )
    return facts, attained


def _spread(travelled: Array, steps: Array) -> Spread | None:
    """Of the speed, weighted by how long it lasts."""
    if not len(steps):
        return None
    speeds = travelled / steps
    order = np.argsort(speeds)
    past = np.cumsum(steps[order])
    p95 = speeds[order[np.searchsorted(past, 0.95 * past[-1])]]
    return Spread(float(travelled.sum() / steps.sum()), float(p95), float(speeds.max()))


def _reach(trajectory: Trajectory, solver: Solver) -> tuple[Reach, NDArray[np.bool_]]:
    count = len(trajectory.times)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MAX_SOLVED)).round().astype(int))
    _, _, converged = solver.reaching.solve_each(trajectory.poses[chosen], solver.robot.home)
    missed = chosen[~converged]
    first = int(missed[0]) if len(missed) else None
    nearest = np.searchsorted(0.5 * (chosen[1:] + chosen[:-1]), np.arange(count))
    reach = Reach(
        robot=solver.robot.name,
        share=float(converged.mean()),
        solved=len(chosen),
        first_missed=first,
        first_missed_s=None if first is None else float(trajectory.elapsed[first]),
    )
    return reach, np.asarray(converged[nearest], dtype=bool)
