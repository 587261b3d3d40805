"""The corners of a sampled path: where it turns at once, between two straight legs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.robot.pose import Array

SHARP = float(np.deg2rad(30.0)) + 1e-9
"""A corner turns by more than this, rad; so much more than 30 degrees that rounding makes none."""

STRAIGHT = float(np.deg2rad(1.0))
"""A leg is as long as the path keeps its direction within this, rad."""

COARSE, MIN_LEG = float(np.deg2rad(50.0)), 0.09
"""Turns at neighbouring samples of less than this, rad, may be an arc with few samples: an octagon's are 45 degrees.
Those with fewer seconds in between may be noise."""

SLACK = 0.02
"""By so much, relatively, the way round a cut corner may be longer than its speed allows; an arc's is by 0.035 or more.
"""

PARALLEL = 1e-10
"""Legs with a squared sine below this do not meet."""

STANDING = 1e-7
"""Between samples nearer than this, m, the path has no direction."""


@dataclass(frozen=True)
class Corner:
    """A corner.

    Attributes:
        position: (3,) in m, where the two legs meet.
        arriving, leaving: Directions (3,) of the legs, of unit length.
        time: When the path is there, s.
        begin, end: When it is half-way along the leg before and the leg after, s: between them is this corner only.
    """

    position: Array
    arriving: Array
    leaving: Array
    time: float
    begin: float
    end: float


def corners(times: ArrayLike, points: ArrayLike) -> list[Corner]:
    """The corners of a path (T, 3) at instants (T,), in order.

    A corner that falls between two samples is cut by the polyline through them, which turns twice: there the corner is
    where the legs would meet, if the way round it is no longer than the path is fast. Else a turn beside others is a
    corner of its own where it can be neither an arc's nor noise.
    """
    return _told(times, points)[0]


def unclear_turns(times: ArrayLike, points: ArrayLike) -> int:
    """How many sharp turns of a path (T, 3) at instants (T,) may be corners, or an arc with few samples, or noise."""
    return _told(times, points)[1]


def _told(times: ArrayLike, points: ArrayLike) -> tuple[list[Corner], int]:
    t, x = np.asarray(times, dtype=float), np.asarray(points, dtype=float)
    steps = np.diff(x, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    ways = steps / np.where(lengths > STANDING, lengths, np.inf)[:, None]
    speeds = lengths / np.diff(t)
    standing = lengths <= STANDING
    # Sample k turns between steps k - 1 and k; a stand on either side makes a stop of it.
    cosines = _cosine(ways[:-1], ways[1:])
    turns = ~standing[:-1] & ~standing[1:] & (cosines < np.cos(STRAIGHT))
    found: list[Corner] = []
    unclear = 0
    for first, last in _in_a_row(np.flatnonzero(turns) + 1):
        k = first
        while k <= last:
            at = None if k == last else _cut(t, x, ways, speeds, k)
            clear = first == last or (
                cosines[k - 1] < np.cos(COARSE)
                and (k == first or t[k] - t[k - 1] >= MIN_LEG)
                and (k == last or t[k + 1] - t[k] >= MIN_LEG)
            )
            if at is not None:
                found.append(_corner(t, ways, at, k, k + 1))
                k += 1
            elif cosines[k - 1] < np.cos(SHARP):
                if clear:
                    found.append(_corner(t, ways, x[k], k, k))
                else:
                    unclear += 1
            k += 1
    return found, unclear


def _corner(t: Array, ways: Array, at: Array, first: int, last: int) -> Corner:
    """The corner between the step before one sample and the step after another."""
    when = 0.5 * (t[first] + t[last])
    arriving, leaving = ways[first - 1], ways[last]
    before, after = _kept(ways[first - 1 :: -1] @ arriving), _kept(ways[last:] @ leaving)
    begin, end = 0.5 * (when + t[first - before]), 0.5 * (when + t[last + after])
    return Corner(np.array(at), arriving, leaving, float(when), float(begin), float(end))


def _cut(t: Array, x: Array, ways: Array, speeds: Array, k: int) -> Array | None:
    """The corner (3,) that samples k and k + 1 cut; None where they cut none.

    The way to it and on takes the time between the two samples: at no higher speed than before or after.
    """
    arriving, leaving = ways[k - 1], ways[k + 1]
    across = float(arriving @ leaving)
    if across >= np.cos(SHARP) or 1.0 - across**2 < PARALLEL:
        return None
    # Legs of one step each are between waypoints: nothing says that the path goes on straight beyond those.
    if _kept(ways[max(k - 2, 0) : k] @ arriving) < 2 and _kept(ways[k + 1 : k + 3] @ leaving) < 2:
        return None
    chord = x[k + 1] - x[k]
    along_arriving, along_leaving = chord @ arriving, chord @ leaving
    until = (along_arriving - across * along_leaving) / (1.0 - across**2)
    since = (along_leaving - across * along_arriving) / (1.0 - across**2)
    apart = float(np.linalg.norm(chord - until * arriving - since * leaving))
    most = (1.0 + SLACK) * max(speeds[k - 1], speeds[k + 1]) * (t[k + 1] - t[k])
    if min(until, since) < 0.0 or until + since > most or apart > SLACK * most:
        return None
    return np.asarray(0.5 * (x[k] + until * arriving + x[k + 1] - since * leaving))


def _cosine(one: Array, other: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", one, other))


def _in_a_row(samples: NDArray[np.intp]) -> list[tuple[int, int]]:
    """First and last of every row of neighbours."""
    if len(samples) == 0:
        return []
    rows = np.split(samples, np.flatnonzero(np.diff(samples) > 1) + 1)
    return [(int(row[0]), int(row[-1])) for row in rows]


def _kept(cosines: Array) -> int:
    """For how many steps a direction is kept."""
    other = np.flatnonzero(cosines < np.cos(STRAIGHT))
    return int(other[0]) if len(other) else len(cosines)
