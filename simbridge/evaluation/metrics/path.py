"""Contour error, the distance from the path, and lag along the path.

The contour error of a sample is the distance from the attained position to the nearest point of the
reference path (Y. Koren, Cross-coupled biaxial computer control for manufacturing systems, 1980).
The lag is the distance along the path from that point to the due one. A late motion has lag and no
contour error; a cut corner has contour error and no lag.

The path is the polyline through the reference's samples, and distances to it are exact: nothing is
resampled. The nearest point is searched around the expected one, along the path as far as REACH
times the sample's distance from it. That finds it at corners down to 30 degrees, and stays on the
right branch where a path crosses or retraces itself.
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

# Distance along the path that is searched either way, as a multiple of the sample's distance from
# the path: within a distance e of a corner of angle a, the path is at most 2 e / sin(a / 2) long,
# which is 7.7 e for 30 degrees.
REACH = 8.0
# Distance by which a point must be closer to replace the expected one, m: it decides where a path
# retraces itself.
TIE = 1e-9
# Fraction of the path's mean speed below which the reference is nearly at rest, so that a lag in
# seconds is meaningless.
MIN_SPEED_RATIO = 0.1


class SignedStatistics(TypedDict):
    """Root mean square, mean, minimum and maximum of numbers with a sign."""

    rms: float
    mean: float
    min: float
    max: float


class AlongPathLag(TypedDict):
    """Lag along the path in m and s, positive behind.

    The time is None if the reference never moves.
    """

    length_m: SignedStatistics
    time_s: SignedStatistics | None


class PathSummary(TypedDict):
    """Contour error and lag along the path of a run, as summary.json holds them."""

    contour_error: PositionStatistics
    along_path_lag: AlongPathLag


@dataclass(frozen=True)
class ContourError:
    """Contour error and lag of each of T samples; all arrays are (T,).

    Attributes:
        distance: Distance from the nearest point of the path, m.
        arc_length: Length of the path up to that nearest point, m.
        lag: Length of the path from that point to the due one, m; negative if the sample is ahead.
        lag_time: The lag in s; NaN where the reference is nearly at rest, at the due instant or
            between the two points.
    """

    distance: Array
    arc_length: Array
    lag: Array
    lag_time: Array


def path_summary(contour: ContourError) -> PathSummary:
    """Return statistics of contour error and lag, of at least one sample."""
    known_times = contour.lag_time[np.isfinite(contour.lag_time)]
    return {
        "contour_error": {"position_m": statistics(contour.distance)},
        "along_path_lag": {
            "length_m": _signed_statistics(contour.lag),
            "time_s": _signed_statistics(known_times) if len(known_times) else None,
        },
    }


def _signed_statistics(values: Array) -> SignedStatistics:
    """Return statistics of values (T,)."""
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
    """Return the distance of attained positions from the reference path, and their lag along it.

    Args:
        path_times: Strictly increasing instants (M,) of the path's vertices, s.
        path: Vertices (M, 3) of the path, straight in between, m.
        due: Instants (T,) at which the positions are due, on the same clock, s.
        attained: Positions (T, 3), m.
        expected: Instants (T,) around which the search begins: `due` minus a known delay. By
            default `due`, with the same result unless the path retraces itself within the delay.
    """
    times = stamps("times of the path", path_times)
    # Copies: a read-only array, as a trajectory's, would be another type to the compiled search.
    corners = np.array(rows("path", path, 3, len(times)), order="C")
    points = np.array(rows("attained positions", attained, 3), order="C")
    due_times = column("due instants", due, len(points))
    expected_times = due_times
    if expected is not None:
        expected_times = column("expected instants", expected, len(points))

    # The length of the path up to each vertex, m.
    steps = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    length = np.concatenate([[0.0], np.cumsum(steps)])

    distance = np.empty(len(points))
    arc_length = np.empty(len(points))
    search = kernel_of(_nearest_points, "contour error")
    search(
        corners,
        length,
        _bound_blocks(corners),
        points,
        np.interp(expected_times, times, length),
        distance,
        arc_length,
    )

    lag = np.interp(due_times, times, length) - arc_length
    lag_time = _lag_time(times, length, arc_length, due=due_times, expected=expected_times, lag=lag)
    return ContourError(distance=distance, arc_length=arc_length, lag=lag, lag_time=lag_time)


def _lag_time(
    times: Array, length: Array, arc_length: Array, *, due: Array, expected: Array, lag: Array
) -> Array:
    """Return the time since the reference was at each sample's nearest point.

    Args:
        times: Instants of the path's vertices (M,), s.
        length: Length of the path up to each vertex (M,), m.
        arc_length: Length of the path up to each sample's nearest point (T,), m.
        due: Instant at which each sample is due (T,), s.
        expected: Instant around which each sample is searched for (T,), s.
        lag: Length of the path from the nearest point to the due one (T,), m.

    Returns:
        The lag of each sample (T,), s; NaN if the reference hardly moves.
    """
    steps = np.diff(length)
    periods = np.diff(times)
    moving_time = float(periods[steps > 0.0].sum())
    if moving_time == 0.0:
        return np.full(len(due), np.nan)
    min_speed = MIN_SPEED_RATIO * length[-1] / moving_time

    # The instant at which the reference was at the nearest point. If it rested there, from the
    # first to the last vertex with this length, the instant of the rest nearest to the expected one
    # is taken.
    first = np.searchsorted(length, arc_length, side="left")
    last = np.searchsorted(length, arc_length, side="right") - 1
    begin = times[np.minimum(first, len(times) - 1)]
    end = times[np.maximum(last, 0)]
    rest_time = np.clip(expected, begin, end)
    reference_time = np.where(first <= last, rest_time, np.interp(arc_length, length, times))
    lag_time = due - reference_time

    # The reference must be faster than the minimum at the due instant, and on average between the
    # nearest point and the due one.
    piece = np.clip(np.searchsorted(times, due, side="right") - 1, 0, len(steps) - 1)
    moves_when_due = steps[piece] >= min_speed * periods[piece]
    moves_between = np.abs(lag) >= min_speed * np.abs(lag_time)
    return np.where(moves_when_due & moves_between, lag_time, np.nan)


class BlockBounds(NamedTuple):
    """Boxes around blocks of successive pieces of the path, with which a search skips far pieces.

    Block b of level k, from 1, contains the pieces b 2^k to (b + 1) 2^k - 1; the last block of a
    level may have fewer.

    Attributes:
        low: Lower corners of the boxes of all levels, level by level (B, 3), m.
        high: Upper corners of the boxes (B, 3), m.
        first: Index of the first box of each level (K + 1,); level 0 has no boxes, and a 0 here.
    """

    low: Array
    high: Array
    first: NDArray[np.int64]


def _bound_blocks(corners: Array) -> BlockBounds:
    """Return the boxes around the blocks of the pieces between corners (M, 3), m."""
    low = np.minimum(corners[:-1], corners[1:])
    high = np.maximum(corners[:-1], corners[1:])

    # Level by level: two neighbouring boxes of a level make a box of the next level.
    lows = [np.empty((0, 3))]
    highs = [np.empty((0, 3))]
    first = [0]
    box_count = 0
    while len(low) > 1:
        # If the number of boxes is odd, the last box is paired with itself.
        evens = np.arange(0, len(low), 2)
        neighbours = np.minimum(evens + 1, len(low) - 1)
        low = np.minimum(low[evens], low[neighbours])
        high = np.maximum(high[evens], high[neighbours])
        lows.append(low)
        highs.append(high)
        first.append(box_count)
        box_count += len(low)

    return BlockBounds(np.concatenate(lows), np.concatenate(highs), np.array(first))


# complexipy: ignore (a function for each point takes a third longer)
def _nearest_points(
    corners: Array,
    length: Array,
    blocks: BlockBounds,
    points: Array,
    expected: Array,
    distances: Array,
    arc_lengths: Array,
) -> None:
    """Find the nearest point of the polyline to each point, near to where it is expected.

    Args:
        corners: Corners of the polyline (M, 3), m.
        length: Length of the polyline up to each corner (M,), m.
        blocks: Boxes around blocks of the polyline's pieces.
        points: Points (T, 3), m.
        expected: Length of the polyline up to where each search starts (T,), m.
        distances: Result: distance of each point from the polyline (T,), m.
        arc_lengths: Result: length of the polyline up to each nearest point (T,), m.
    """
    pieces = corners.shape[0] - 1
    for k in range(points.shape[0]):
        point = _row(points, k)

        # The piece with the expected point. A path of one corner is a piece of no length.
        arc_length = expected[k]
        home = max(0, min(_corner_before(length, arc_length), pieces - 1))
        end = min(home + 1, pieces)

        # The distance from the expected point, and the range of the search along the polyline.
        step = length[end] - length[home]
        fraction = (arc_length - length[home]) / step if step > 0.0 else 0.0
        best = _distance(point, _between(_row(corners, home), _row(corners, end), fraction))
        low = arc_length - REACH * best
        high = arc_length + REACH * best

        # Search forwards, skipping blocks that cannot contain a nearer point.
        j = home
        while j < pieces and length[j] <= high:
            skipped = _count_far_pieces(blocks, point, j, 1, best - TIE)
            if skipped == 0:
                distance, nearest = _nearest_on_piece(corners, length, point, j, low, high)
                if distance < best - TIE:
                    best = distance
                    arc_length = nearest
            j += max(skipped, 1)

        # Search backwards in the same way.
        j = home - 1
        while j >= 0 and length[j + 1] >= low:
            skipped = _count_far_pieces(blocks, point, j, -1, best - TIE)
            if skipped == 0:
                distance, nearest = _nearest_on_piece(corners, length, point, j, low, high)
                if distance < best - TIE:
                    best = distance
                    arc_length = nearest
            j -= max(skipped, 1)

        distances[k] = best
        arc_lengths[k] = arc_length


def _count_far_pieces(
    blocks: BlockBounds, point: Point, piece: int, direction: int, distance: float
) -> int:
    """Return how many pieces a search can skip because their box is far from a point.

    They are the pieces of the largest block that begins (searching forwards) or ends (searching
    backwards) with a piece, and whose box is no nearer to the point than a distance.

    Args:
        blocks: Boxes around blocks of pieces.
        point: The point, m.
        piece: Index of the piece that the search has come to.
        direction: 1 for a search forwards, -1 for one backwards.
        distance: The distance from which on a box is far, m.

    Returns:
        The number of pieces in the block; 0 if even the smallest one is near.
    """
    # The number of the first piece of a block that begins here, or of the piece after a block that
    # ends here.
    edge = piece if direction > 0 else piece + 1
    count = 0
    size = 2
    for level in range(1, blocks.first.shape[0]):
        # No block of this level or of a higher one begins or ends here.
        if edge % size != 0:
            break
        # The block of this level that begins here, or the one that ends here.
        block = edge // size if direction > 0 else edge // size - 1
        if _distance_to_box(blocks, point, blocks.first[level] + block) < distance:
            break
        count = size
        size *= 2
    return count


def _distance_to_box(blocks: BlockBounds, point: Point, box: int) -> float:
    """Return the distance of a point from a box, m; 0 inside."""
    x = max(blocks.low[box, 0] - point[0], point[0] - blocks.high[box, 0], 0.0)
    y = max(blocks.low[box, 1] - point[1], point[1] - blocks.high[box, 1], 0.0)
    z = max(blocks.low[box, 2] - point[2], point[2] - blocks.high[box, 2], 0.0)
    return math.sqrt(x * x + y * y + z * z)


def _nearest_on_piece(
    corners: Array, length: Array, point: Point, piece: int, low: float, high: float
) -> tuple[float, float]:
    """Return the distance of a point from a piece, m, and the length up to the nearest point, m.

    Args:
        corners: Corners of the polyline (M, 3), m.
        length: Length of the polyline up to each corner (M,), m.
        point: The point (3,), m.
        piece: Index of the piece.
        low: Smallest length of the polyline that the search reaches, m.
        high: Largest length of the polyline that the search reaches, m.
    """
    start = length[piece]
    stop = length[piece + 1]
    a = _row(corners, piece)
    b = _row(corners, piece + 1)
    step = stop - start
    if step <= 0.0:
        return _distance(point, a), start

    # The projection onto the piece, clipped to its ends and to the range of the search.
    dot = (
        (point[0] - a[0]) * (b[0] - a[0])
        + (point[1] - a[1]) * (b[1] - a[1])
        + (point[2] - a[2]) * (b[2] - a[2])
    )
    along = max(min(dot / step, min(step, high - start)), max(0.0, low - start))

    # At the end of the piece, return the length of the corner itself and not a rounded sum, since
    # instants are looked up by it.
    arc_length = stop if along >= step else start + along
    return _distance(point, _between(a, b, along / step)), arc_length


def _corner_before(length: Array, arc_length: float) -> int:
    """Return the index of the last corner up to a length of the polyline; -1 if there is none.

    Args:
        length: Length of the polyline up to each corner (M,), m.
        arc_length: A length of the polyline, m.
    """
    low = 0
    high = length.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if length[middle] <= arc_length:
            low = middle + 1
        else:
            high = middle
    return low - 1


def _between(a: Point, b: Point, fraction: float) -> Point:
    """Return the point at a fraction of the line from a to b."""
    x = a[0] + fraction * (b[0] - a[0])
    y = a[1] + fraction * (b[1] - a[1])
    z = a[2] + fraction * (b[2] - a[2])
    return x, y, z


def _distance(p: Point, q: Point) -> float:
    """Return the distance between two points, m."""
    x = p[0] - q[0]
    y = p[1] - q[1]
    z = p[2] - q[2]
    return math.sqrt(x * x + y * y + z * z)


def _row(points: Array, k: int) -> Point:
    """Return a point of an array (T, 3) as three numbers."""
    return points[k, 0], points[k, 1], points[k, 2]
