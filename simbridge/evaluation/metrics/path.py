"""Contour error, the distance from the path, and lag along the path.

The contour error of a sample is the distance from the attained position to the nearest point of the reference path (Y.
Koren, Cross-coupled biaxial computer control for manufacturing systems, 1980). The lag is the distance along the path
from that point to the due one. A late motion has lag and no contour error; a cut corner has contour error and no lag.

The path is the polyline through the reference's samples, and distances to it are exact: nothing is resampled. The
nearest point is searched around the expected one, along the path as far as REACH times the sample's distance from it.
That finds it at corners down to 30 degrees, and stays on the right branch where a path crosses or retraces itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.evaluation.metrics.samples import (
    PositionStatistics,
    column,
    rms,
    rows,
    stamps,
    statistics,
)
from simbridge.kernels.compile import kernel_of
from simbridge.robot.pose import Array

Point = tuple[float, float, float]

# Within a distance e of a corner of angle a the path is at most 2 e / sin(a / 2) long: 7.7 e at 30 degrees.
REACH = 8.0
# A point must be closer by this, m, to replace the expected one: it decides where a path retraces itself.
TIE = 1e-9
# Below this part of the path's mean speed a lag in seconds is meaningless: the reference is nearly at rest.
SLOWEST = 0.1


class SignedStatistics(TypedDict):
    rms: float
    mean: float
    min: float
    max: float


class AlongPathLag(TypedDict):
    """Lag along the path in m and s, positive behind; the time is None where the reference never moves."""

    length_m: SignedStatistics
    time_s: SignedStatistics | None


class PathSummary(TypedDict):
    contour_error: PositionStatistics
    along_path_lag: AlongPathLag


@dataclass(frozen=True)
class ContourError:
    """Contour error of each sample and its place on the path. All arrays (T,)."""

    distance: Array  # distance from the nearest point of the path, m
    place: Array  # length of the path up to that point, m
    lag: Array  # length of the path from that point to the due one, m; negative if the sample is ahead
    lag_time: Array  # the same in s; NaN where the reference is nearly at rest, at the due instant or on the way to it


def path_summary(contour: ContourError) -> PathSummary:
    """Statistics of at least one sample."""
    times = contour.lag_time[np.isfinite(contour.lag_time)]
    return {
        "contour_error": {"position_m": statistics(contour.distance)},
        "along_path_lag": {
            "length_m": _signed(contour.lag),
            "time_s": _signed(times) if len(times) else None,
        },
    }


def _signed(values: Array) -> SignedStatistics:
    return {
        "rms": rms(values),
        "mean": float(values.mean()),
        "min": float(values.min()),
        "max": float(values.max()),
    }


def contour_error(
    path_times: ArrayLike,
    path: ArrayLike,
    due: ArrayLike,
    attained: ArrayLike,
    *,
    expected: ArrayLike | None = None,
) -> ContourError:
    """Distance of attained positions from the reference path, and their lag along it.

    Args:
        path_times, path: Vertices (M, 3) of the path, straight in between, m, and their increasing instants (M,), s.
        due, attained: Positions (T, 3), m, and their instants (T,) on the same clock, s.
        expected: Instants (T,) around which the search begins: `due` minus a known delay. By default `due`, with the
            same result unless the path retraces itself within the delay.
    """
    times = stamps("times of the path", path_times)
    # Copies: a read-only array, as a trajectory's, would be another type to the compiled search.
    corners = np.array(rows("path", path, 3, len(times)), order="C")
    points = np.array(rows("attained positions", attained, 3), order="C")
    at = column("due instants", due, len(points))
    near = at if expected is None else column("expected instants", expected, len(points))
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
    distance, place = np.empty(len(points)), np.empty(len(points))
    search = kernel_of(_nearest_places, "contour error")
    search(
        corners,
        length,
        _bound_blocks(corners),
        points,
        np.interp(near, times, length),
        distance,
        place,
    )
    lag = np.interp(at, times, length) - place
    return ContourError(distance, place, lag, _lag_time(times, length, at, near, place, lag))


def _lag_time(
    times: Array, length: Array, due: Array, near: Array, place: Array, lag: Array
) -> Array:
    """Time from the instant at which the reference was at a place to the due one; NaN where it hardly moves."""
    steps, periods = np.diff(length), np.diff(times)
    moving = float(periods[steps > 0.0].sum())
    if moving == 0.0:
        return np.full(len(due), np.nan)
    slowest = SLOWEST * length[-1] / moving
    arrived = np.searchsorted(length, place, side="left")
    left = np.searchsorted(length, place, side="right") - 1
    # Where the reference rests at a vertex, any instant of the rest is valid; elsewhere there is only one.
    resting = np.clip(near, times[np.minimum(arrived, len(times) - 1)], times[np.maximum(left, 0)])
    lag_time = due - np.where(arrived <= left, resting, np.interp(place, length, times))
    piece = np.clip(np.searchsorted(times, due, side="right") - 1, 0, len(steps) - 1)
    clear = (steps[piece] >= slowest * periods[piece]) & (np.abs(lag) >= slowest * np.abs(lag_time))
    return np.where(clear, lag_time, np.nan)


class BlockBounds(NamedTuple):
    """Boxes around blocks of the path's pieces, by which a search passes over what is too far away.

    A block of level k, from 1, has 2**k pieces, the first of which is a multiple of 2**k; the last may have fewer.

    Attributes:
        low, high: The corners of the boxes (B, 3), m, of all levels, one after the other.
        first: The index of each level's first box (K + 1,); that of level 0, which has none, counts as 0.
    """

    low: Array
    high: Array
    first: NDArray[np.int64]


def _bound_blocks(corners: Array) -> BlockBounds:
    """The boxes around the blocks of the pieces between corners (M, 3), m."""
    low = np.minimum(corners[:-1], corners[1:])
    high = np.maximum(corners[:-1], corners[1:])
    lows, highs, first = [np.empty((0, 3))], [np.empty((0, 3))], [0, 0]
    while len(low) > 1:
        # An odd number of blocks: the last one is a pair by itself.
        pairs = np.arange(0, len(low), 2)
        partners = np.minimum(pairs + 1, len(low) - 1)
        low = np.minimum(low[pairs], low[partners])
        high = np.maximum(high[pairs], high[partners])
        lows.append(low)
        highs.append(high)
        first.append(first[-1] + len(low))
    return BlockBounds(np.concatenate(lows), np.concatenate(highs), np.array(first[:-1]))


def _nearest_places(
    corners: Array,
    length: Array,
    blocks: BlockBounds,
    points: Array,
    expected: Array,
    distances: Array,
    places: Array,
) -> None:
    """Find the nearest place on the polyline to each point, around where it is expected.

    Args:
        corners: Of the polyline (M, 3), m.
        length: Of the polyline up to each corner (M,), m.
        blocks: Boxes around its pieces.
        points: (T, 3), m.
        expected: Where the search for each point begins (T,), m along the polyline.
        distances: Filled with the distances of the points from the polyline (T,), m.
        places: Filled with the places of the nearest points on it (T,), m along it.
    """
    pieces = corners.shape[0] - 1
    for k in range(points.shape[0]):
        point = _row(points, k)

        # Begin at the expected place. A path of one corner is a piece of no length.
        place = expected[k]
        home = max(0, min(_corner_before(length, place), pieces - 1))
        end = min(home + 1, pieces)
        step = length[end] - length[home]
        part = (place - length[home]) / step if step > 0.0 else 0.0
        best = _distance(point, _between(_row(corners, home), _row(corners, end), part))
        low = place - REACH * best
        high = place + REACH * best

        # Forwards as far as the search reaches, then backwards.
        j = home
        while j < pieces and length[j] <= high:
            skipped = _count_far_pieces(blocks, point, j, 1, best - TIE)
            if skipped == 0:
                near, where = _on_piece(corners, length, point, j, low, high)
                if near < best - TIE:
                    best, place = near, where
            j += max(skipped, 1)
        j = home - 1
        while j >= 0 and length[j + 1] >= low:
            skipped = _count_far_pieces(blocks, point, j, -1, best - TIE)
            if skipped == 0:
                near, where = _on_piece(corners, length, point, j, low, high)
                if near < best - TIE:
                    best, place = near, where
            j -= max(skipped, 1)

        distances[k] = best
        places[k] = place


def _count_far_pieces(
    blocks: BlockBounds, point: Point, piece: int, way: int, distance: float
) -> int:
    """Count the pieces from this one on, forwards (way 1) or backwards (-1), that are no nearer than a distance.

    They are those of the largest block that begins, or ends, at the piece and whose box is as far away.
    """
    # Blocks that end at a piece begin before it.
    begin = piece if way > 0 else piece + 1
    count = 0
    size = 2
    for level in range(1, blocks.first.shape[0]):
        if begin % size != 0:
            break
        block = begin // size if way > 0 else begin // size - 1
        if _distance_to_box(blocks, point, blocks.first[level] + block) < distance:
            break
        count = size
        size *= 2
    return count


def _distance_to_box(blocks: BlockBounds, point: Point, box: int) -> float:
    x = max(blocks.low[box, 0] - point[0], point[0] - blocks.high[box, 0], 0.0)
    y = max(blocks.low[box, 1] - point[1], point[1] - blocks.high[box, 1], 0.0)
    z = max(blocks.low[box, 2] - point[2], point[2] - blocks.high[box, 2], 0.0)
    return math.sqrt(x * x + y * y + z * z)


def _on_piece(
    corners: Array, length: Array, point: Point, piece: int, low: float, high: float
) -> tuple[float, float]:
    """Distance of a point to a piece of the polyline, and the nearest place on it, as far as it is from low to high."""
    start, stop = length[piece], length[piece + 1]
    a, b = _row(corners, piece), _row(corners, piece + 1)
    step = stop - start
    if step <= 0.0:
        return _distance(point, a), start

    # The projection on the piece, within its ends and the reach of the search.
    dot = (
        (point[0] - a[0]) * (b[0] - a[0])
        + (point[1] - a[1]) * (b[1] - a[1])
        + (point[2] - a[2]) * (b[2] - a[2])
    )
    along = max(min(dot / step, min(step, high - start)), max(0.0, low - start))

    # The corner itself, not the sum that rounds: instants are looked up by it.
    place = stop if along >= step else start + along
    return _distance(point, _between(a, b, along / step)), place


def _corner_before(length: Array, place: float) -> int:
    """The last corner at or before a place; -1 if there is none."""
    low, high = 0, length.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if length[middle] <= place:
            low = middle + 1
        else:
            high = middle
    return low - 1


def _between(a: Point, b: Point, part: float) -> Point:
    return a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1]), a[2] + part * (b[2] - a[2])


def _distance(p: Point, q: Point) -> float:
    x, y, z = p[0] - q[0], p[1] - q[1], p[2] - q[2]
    return math.sqrt(x * x + y * y + z * z)


def _row(points: Array, k: int) -> Point:
    return points[k, 0], points[k, 1], points[k, 2]
