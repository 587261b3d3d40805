"""Stops and corners of a commanded path: the places at which the ISO 9283-style figures are measured.

Pose accuracy, repeatability and settling are measured where the target rests. Where it still moves, the distance to the
arm is mostly delay and no error of its pose. A corner is a sharp turn between two straight legs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.trajectory.trajectory import Hold, Trajectory

# Shortest rest of the target, s.
MIN_REST = 0.2
# A rest may be shorter by this, s: the resolution of stamps since 1970 is a quarter of it.
ROUNDING = 1e-6
# A linearly interpolated target is at rest below both speeds, m/s and rad/s.
SLOWEST, SLOWEST_TURN = 1e-4, 1e-3
# A visit of a stop begins this long before the target arrives, s, for an arm that is ahead of it.
APPROACH = 0.5
SAME, SAME_TURN, SAME_SIDE = 1e-5, 1e-4, float(np.cos(np.deg2rad(5.0)))
"""Two stops are visits of one if they are closer than this, m and rad, and the cosine between their approaches is at
least this."""

# A corner turns by more than this, rad: 30 degrees plus a margin for rounding.
SHARP = float(np.deg2rad(30.0)) + 1e-9
# A leg is straight as long as its direction stays within this, rad.
STRAIGHT = float(np.deg2rad(1.0))
COARSE, MIN_LEG = float(np.deg2rad(50.0)), 0.09
"""Turns at consecutive samples of less than this, rad, may be a coarsely sampled arc: an octagon's are 45 degrees.
Turns with less time in between, s, may be noise."""

# The way past a cut corner may be longer than the speed allows by this part; that of an arc is so by 0.035 or more.
SLACK = 0.02
# Legs with a squared sine below this do not intersect.
PARALLEL = 1e-10
# Between samples closer than this, m, the path has no direction.
STANDING = 1e-7


@dataclass(frozen=True)
class Visit:
    """One visit of a stop, in s since the trajectory's first sample."""

    begin: float  # the arm's samples belong to the visit from here on: before the arrival, after the previous rest
    arrival: float  # begin of the target's rest
    departure: float  # its end


@dataclass(frozen=True)
class Stop:
    """A pose at which the target rests, always approached from the same side."""

    position: Array  # (3,) in m
    visits: tuple[Visit, ...]  # all visits, in order


def rests(path: Trajectory, hold: Hold) -> list[tuple[float, float]]:
    """Begin and end of the target's rests of MIN_REST or longer, in s since the first sample.

    With zero-order hold the target rests between any two samples.
    """
    elapsed, held = path.elapsed, hold == "zero-order"
    moved = np.linalg.norm(np.diff(path.poses[:, :3], axis=0), axis=1)
    turned = _angle(path.poses[:-1, 3:], path.poses[1:, 3:])
    periods = np.diff(elapsed)
    still = (moved <= SLOWEST * periods) & (turned <= SLOWEST_TURN * periods)
    found: list[tuple[float, float]] = []
    for k in np.flatnonzero(still | held):
        begin, end = float(elapsed[k]), float(elapsed[k + 1])
        # With zero-order hold two segments are one rest if the sample between them is no jump.
        if found and found[-1][1] == begin and (not held or still[k - 1]):
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return [(begin, end) for begin, end in found if end - begin >= MIN_REST - ROUNDING]


def jumps(path: Trajectory, hold: Hold) -> bool:
    """Whether the target rests for MIN_REST or longer and then jumps: there is no path in between."""
    elsewhere = (path.poses[1:, :3] != path.poses[:-1, :3]).any(axis=1)
    return hold == "zero-order" and bool(
        (elsewhere & (np.diff(path.elapsed) >= MIN_REST - ROUNDING)).any()
    )


def stops(path: Trajectory, hold: Hold) -> list[Stop]:
    """The stops of the target, in order of the first arrival.

    A rest at the very start is no stop: the arm arrives there by its approach, not along the path.
    """
    found: list[tuple[Array, Array, list[Visit]]] = []
    end_of_last = 0.0
    for arrival, departure in rests(path, hold):
        visit = Visit(max(end_of_last, arrival - APPROACH), arrival, departure)
        end_of_last = departure
        if arrival == 0.0:
            continue
        at = path.target(np.array([0.5 * (arrival + departure)]), hold)[0]
        direction = at[:3] - path.target(np.array([arrival - MIN_REST]), hold)[0, :3]
        for other, other_direction, visits in found:
            if _same(at, other) and _same_side(direction, other_direction):
                visits.append(visit)
                break
        else:
            found.append((at, direction, [visit]))
    return [Stop(np.array(at[:3]), tuple(visits)) for at, _, visits in found]


def _same(one: Array, other: Array) -> bool:
    distance = float(np.linalg.norm(one[:3] - other[:3]))
    return distance <= SAME and float(_angle(one[None, 3:], other[None, 3:])[0]) <= SAME_TURN


def _same_side(one: Array, other: Array) -> bool:
    """Whether two approaches (3,) have the same direction, or both only rotate in place."""
    lengths = np.linalg.norm([one, other], axis=1)
    if lengths.min() <= SAME:
        return bool(lengths.max() <= SAME)
    return float(one @ other) >= SAME_SIDE * float(lengths[0]) * float(lengths[1])


def _angle(one: Array, other: Array) -> Array:
    """Angles (K,) in rad between rotations (K, 4), exact also for small ones."""
    between = pose.rotation_vectors(pose.multiply(other, pose.conjugate(one)))
    return np.asarray(np.linalg.norm(between, axis=1))


@dataclass(frozen=True)
class Corner:
    """A corner."""

    position: Array  # intersection (3,) of the two legs, m
    arriving: Array  # unit vector (3,) along the leg before
    leaving: Array  # and along the leg after
    time: float  # instant of the corner, s
    begin: float  # instant at the middle of the leg before, s: no other corner is in between
    end: float  # and of the leg after


def corners(times: ArrayLike, points: ArrayLike) -> tuple[list[Corner], int]:
    """The corners of a path (T, 3) at instants (T,), in order, and the number of ambiguous sharp turns.

    A corner that falls between two samples is cut by the polyline through them, which then turns twice: the corner is
    the intersection of the legs, if the path is fast enough for the way past it. Any other sharp turn next to another
    one is a corner only if it can be neither part of an arc nor noise; else it is ambiguous.
    """
    t, x = np.asarray(times, dtype=float), np.asarray(points, dtype=float)
    steps = np.diff(x, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    directions = steps / np.where(lengths > STANDING, lengths, np.inf)[:, None]
    speeds = lengths / np.diff(t)
    standing = lengths <= STANDING
    # The path turns at sample k between steps k - 1 and k; with a rest on either side it is a stop.
    cosines = np.einsum("ij,ij->i", directions[:-1], directions[1:])
    turns = ~standing[:-1] & ~standing[1:] & (cosines < np.cos(STRAIGHT))
    found: list[Corner] = []
    ambiguous = 0
    for first, last in _consecutive(np.flatnonzero(turns) + 1):
        k = first
        while k <= last:
            at = None if k == last else _cut(t, x, directions, speeds, k)
            clear = first == last or (
                cosines[k - 1] < np.cos(COARSE)
                and (k == first or t[k] - t[k - 1] >= MIN_LEG)
                and (k == last or t[k + 1] - t[k] >= MIN_LEG)
            )
            if at is not None:
                found.append(_corner(t, directions, at, k, k + 1))
                k += 1
            elif cosines[k - 1] < np.cos(SHARP):
                if clear:
                    found.append(_corner(t, directions, x[k], k, k))
                else:
                    ambiguous += 1
            k += 1
    return found, ambiguous


def _corner(t: Array, directions: Array, at: Array, first: int, last: int) -> Corner:
    """The corner between the step before one sample and the step after another one."""
    when = 0.5 * (t[first] + t[last])
    arriving, leaving = directions[first - 1], directions[last]
    before, after = (
        _kept(directions[first - 1 :: -1] @ arriving),
        _kept(directions[last:] @ leaving),
    )
    begin, end = 0.5 * (when + t[first - before]), 0.5 * (when + t[last + after])
    return Corner(np.array(at), arriving, leaving, float(when), float(begin), float(end))


def _cut(t: Array, x: Array, directions: Array, speeds: Array, k: int) -> Array | None:
    """The corner (3,) that is cut between samples k and k + 1; None if there is none.

    The way past the corner takes the time between the two samples, at no higher speed than before or after.
    """
    arriving, leaving = directions[k - 1], directions[k + 1]
    cosine = float(arriving @ leaving)
    if cosine >= np.cos(SHARP) or 1.0 - cosine**2 < PARALLEL:
        return None
    # Legs of a single step are between waypoints: nothing shows that the path continues straight beyond them.
    if (
        _kept(directions[max(k - 2, 0) : k] @ arriving) < 2
        and _kept(directions[k + 1 : k + 3] @ leaving) < 2
    ):
        return None
    chord = x[k + 1] - x[k]
    along_arriving, along_leaving = chord @ arriving, chord @ leaving
    until = (along_arriving - cosine * along_leaving) / (1.0 - cosine**2)
    since = (along_leaving - cosine * along_arriving) / (1.0 - cosine**2)
    miss = float(np.linalg.norm(chord - until * arriving - since * leaving))
    longest = (1.0 + SLACK) * max(speeds[k - 1], speeds[k + 1]) * (t[k + 1] - t[k])
    if min(until, since) < 0.0 or until + since > longest or miss > SLACK * longest:
        return None
    return np.asarray(0.5 * (x[k] + until * arriving + x[k + 1] - since * leaving))


def _consecutive(samples: NDArray[np.intp]) -> list[tuple[int, int]]:
    """First and last of every run of consecutive samples."""
    if len(samples) == 0:
        return []
    rows = np.split(samples, np.flatnonzero(np.diff(samples) > 1) + 1)
    return [(int(row[0]), int(row[-1])) for row in rows]


def _kept(cosines: Array) -> int:
    """Number of steps for which a direction is kept."""
    other = np.flatnonzero(cosines < np.cos(STRAIGHT))
    return int(other[0]) if len(other) else len(cosines)
