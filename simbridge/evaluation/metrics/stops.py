"""Where a commanded motion comes to rest: the poses at which pose accuracy, repeatability and settling are measured.

Where the target still moves, the arm is elsewhere because it is late, and that is no error of its pose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.trajectory.trajectory import Hold, Trajectory

MIN_REST = 0.2
"""Seconds for which the target must be at rest."""

ROUNDING = 1e-6
"""Seconds by which a rest may be shorter: stamps since 1970 are told apart to a quarter of that."""

SLOWEST, SLOWEST_TURN = 1e-4, 1e-3
"""A linear target below both, m/s and rad/s, is at rest."""

APPROACH = 0.5
"""Seconds before the target arrives that belong to its stop, for an arm that is earlier."""

SAME, SAME_TURN, SAME_WAY = 1e-5, 1e-4, float(np.cos(np.deg2rad(5.0)))
"""Within so many m and rad, and arrived at from directions with this cosine, two stops are one, visited twice."""


@dataclass(frozen=True)
class Visit:
    """One stay at a stop, in s since the trajectory's first sample.

    Attributes:
        begin: From when on the arm's samples belong to it: before the target's arrival, after the rest before.
        arrival, departure: From when to when the target is at rest.
    """

    begin: float
    arrival: float
    departure: float


@dataclass(frozen=True)
class Stop:
    """A pose at which the target rests, always arrived at from the same side.

    Attributes:
        position: (3,) in m; read-only.
        visits: Every stay there, in order.
    """

    position: Array
    visits: tuple[Visit, ...]

    def __post_init__(self) -> None:
        self.position.setflags(write=False)


def rests(path: Trajectory, hold: Hold) -> list[tuple[float, float]]:
    """When the target is at rest for LEAST_REST or longer: from and to, in s since the first sample.

    Args:
        path: The trajectory (T samples).
        hold: What the target is between two samples; held, it rests between any two, which counts if that is long.
    """
    elapsed, held = path.elapsed, hold == "zero-order"
    moved = np.linalg.norm(np.diff(path.poses[:, :3], axis=0), axis=1)
    turned = _angle(path.poses[:-1, 3:], path.poses[1:, 3:])
    periods = np.diff(elapsed)
    still = (moved <= SLOWEST * periods) & (turned <= SLOWEST_TURN * periods)
    found: list[tuple[float, float]] = []
    for piece in np.flatnonzero(still | held):
        begin, end = float(elapsed[piece]), float(elapsed[piece + 1])
        # Held, two pieces are one rest if the sample between them is no jump.
        if found and found[-1][1] == begin and (not held or still[piece - 1]):
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return [(begin, end) for begin, end in found if end - begin >= MIN_REST - ROUNDING]


def jumps(path: Trajectory, hold: Hold) -> bool:
    """Whether the target stands for LEAST_REST or longer and then is elsewhere: there is no path in between."""
    elsewhere = (path.poses[1:, :3] != path.poses[:-1, :3]).any(axis=1)
    return hold == "zero-order" and bool((elsewhere & (np.diff(path.elapsed) >= MIN_REST - ROUNDING)).any())


def stops(path: Trajectory, hold: Hold) -> list[Stop]:
    """The stops that the target comes to, in order of the first arrival.

    A rest at the very start is none: the arm comes there by its approach, not along the path.
    """
    found: list[tuple[Array, Array, list[Visit]]] = []
    before = 0.0
    for arrival, departure in rests(path, hold):
        visit = Visit(max(before, arrival - APPROACH), arrival, departure)
        before = departure
        if arrival == 0.0:
            continue
        at = path.target(np.array([0.5 * (arrival + departure)]), hold)[0]
        way = at[:3] - path.target(np.array([arrival - MIN_REST]), hold)[0, :3]
        for other, other_way, visits in found:
            if _same(at, other) and _same_side(way, other_way):
                visits.append(visit)
                break
        else:
            found.append((at, way, [visit]))
    return [Stop(np.array(at[:3]), tuple(visits)) for at, _, visits in found]


def _same(one: Array, other: Array) -> bool:
    apart = float(np.linalg.norm(one[:3] - other[:3]))
    return apart <= SAME and float(_angle(one[None, 3:], other[None, 3:])[0]) <= SAME_TURN


def _same_side(one: Array, other: Array) -> bool:
    """Whether two ways (3,) to a stop are along one direction, or both only turn on the spot."""
    lengths = float(np.linalg.norm(one)), float(np.linalg.norm(other))
    if min(lengths) <= SAME:
        return max(lengths) <= SAME
    return float(one @ other) >= SAME_WAY * lengths[0] * lengths[1]


def _angle(one: Array, other: Array) -> Array:
    """Angles (K,) in rad between rotations (K, 4); exact for small ones too."""
    between = pose.rotation_vectors(pose.multiply(other, pose.conjugate(one)))
    return np.asarray(np.linalg.norm(between, axis=1))
