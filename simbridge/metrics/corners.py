"""The corners of a sampled path: where it turns at once, between two straight legs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

SHARP = float(np.deg2rad(30.0))
"""A corner turns by more than this, rad."""

STRAIGHT = float(np.deg2rad(1.0))
"""A leg is as long as the path keeps its direction within this, rad."""

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
    where the legs would meet. A path that turns at three samples in a row or more is round.
    """
    t, x = np.asarray(times, dtype=float), np.asarray(points, dtype=float)
    steps = np.diff(x, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    ways = steps / np.where(lengths > STANDING, lengths, np.inf)[:, None]
    standing = lengths <= STANDING
    # Sample k turns between steps k - 1 and k; a stand on either side makes a stop of it.
    turns = ~standing[:-1] & ~standing[1:] & (_cosine(ways[:-1], ways[1:]) < np.cos(STRAIGHT))
    found = []
    for first, last in _in_a_row(np.flatnonzero(turns) + 1):
        arriving, leaving = ways[first - 1], ways[last]
        if last - first > 1 or arriving @ leaving >= np.cos(SHARP):
            continue
        at = x[first] if first == last else _meeting(x[first], arriving, x[last], leaving)
        after = _kept(ways[last:] @ leaving)
        before = _kept(ways[first - 1 :: -1] @ arriving)
        when = 0.5 * (t[first] + t[last])
        begin, end = 0.5 * (when + t[first - before]), 0.5 * (when + t[last + after])
        found.append(Corner(at, arriving, leaving, float(when), float(begin), float(end)))
    return found


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


def _meeting(p: Array, u: Array, q: Array, v: Array) -> Array:
    """The point nearest to two lines, from p along u and from q along v; half-way from p to q on a way back."""
    across = float(u @ v)
    if across <= -np.cos(STRAIGHT):
        return np.asarray(0.5 * (p + q))
    along_u, along_v = (q - p) @ u, (q - p) @ v
    s = (along_u - across * along_v) / (1.0 - across**2)
    r = (across * along_u - along_v) / (1.0 - across**2)
    return np.asarray(0.5 * (p + s * u + q + r * v))
