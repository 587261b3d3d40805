"""Accuracy AT and repeatability RT of a path, measured in planes across it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simbridge.evaluation.iso_cycle import Cycle, FigureSet
from simbridge.evaluation.metrics import iso9283
from simbridge.robot.pose import Array
from simbridge.trajectory.trajectory import Trajectory

# Number of planes across the path, evenly spaced along it.
PLANES = 100
# Part of the planes that every cycle must cross.
MIN_CROSSED = 0.9


class Planes(NamedTuple):
    """Planes across a path.

    Attributes:
        points: Points at which the path crosses the planes (m, 3), m.
        directions: Unit vectors (m, 3) along the path there, normal to the planes.
        times: Instants (m,) of the trajectory at which the target crosses them, s.
    """

    points: Array
    directions: Array
    times: Array


def path_figures(path: Trajectory, cycles: Sequence[Cycle]) -> FigureSet:
    """Return AT and RT of a path.

    Args:
        path: The commanded trajectory.
        cycles: What the arm attained in each run.
    """
    planes = _evenly_spaced_planes(path)
    if planes is None:
        return FigureSet((), ["No figures of the path: its length is zero."])

    crossings = np.array(
        [
            iso9283.plane_crossings(
                planes.points,
                planes.directions,
                cycle.attained_at(planes.times),
                times=cycle.stamp,
                attained=cycle.positions,
            )
            for cycle in cycles
        ]
    )

    crossed = int(np.isfinite(crossings).all(axis=(0, 2)).sum())
    coverage = (
        f"{crossed} of {PLANES} planes across the path are crossed by every run at about the "
        "expected time"
    )
    if crossed < MIN_CROSSED * PLANES:
        return FigureSet((), [f"No AT or RT: only {coverage}."])

    missing = []
    if crossed < PLANES:
        missing.append(f"AT and RT are incomplete: {coverage}.")
    return FigureSet(iso9283.path_figures(planes.points, crossings), missing)


def _evenly_spaced_planes(path: Trajectory) -> Planes | None:
    """Return planes that are evenly spaced along a path; None for a path without length."""
    steps = np.diff(path.poses[:, :3], axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    # The length of the path up to each sample, m.
    distance = np.concatenate([[0.0], np.cumsum(lengths)])
    if distance[-1] == 0.0:
        return None

    # The segment that each plane crosses, and the fraction of it before the plane.
    plane_distance = (np.arange(PLANES) + 0.5) / PLANES * distance[-1]
    segment = np.searchsorted(distance, plane_distance, side="right") - 1
    fraction = (plane_distance - distance[segment]) / lengths[segment]

    points = path.poses[segment, :3] + fraction[:, None] * steps[segment]
    directions = steps[segment] / lengths[segment, None]
    times = path.elapsed[segment] + fraction * np.diff(path.elapsed)[segment]
    return Planes(points, directions, times)
