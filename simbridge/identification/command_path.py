"""The path of the commands in joint space, and the search for its segments nearest to setpoints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.identification.robust import spread_rows
from simbridge.identification.target_motion import NotIdentified
from simbridge.robot.pose import Array, Counts

# Segments shorter than this are none: squared length, rad^2.
MIN_SQUARED_LENGTH = 1e-20
# How many segments around the last nearest one are searched again.
SEARCH_REACH = 12
# Segments of a path that is searched whole, about, at most.
COARSE_SEGMENTS = 3000
# Pairs of points and segments that are compared at once when all are searched, at most.
MAX_COMPARED_PAIRS = 500_000
# Points whose surroundings are searched at once.
BATCH_POINTS = 2000

# Pairs of points and segments of a path that is followed whole, at most; and points, at least.
MAX_FOLLOWED_PAIRS = 4_000_000
MIN_FOLLOWED_POINTS = 50
# Points of a long recording that are followed along the path together.
PART_POINTS = 250
# How many segments beyond them are included.
PART_MARGIN = 120
# Rounding that is added to the scale of distances, rad.
DISTANCE_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class CommandPath:
    """The polyline of commands, without the segments between equal ones.

    Attributes:
        start: Begin of each segment (S, n), rad.
        step: The displacement to its end (S, n), rad.
        squared_length: Squared length of each segment (S,), rad^2.
        index: The command at which each segment begins (S,).
    """

    start: Array
    step: Array
    squared_length: Array
    index: Counts

    @staticmethod
    def of_commands(commands: Array) -> CommandPath:
        """Return the path of commands (K, n), rad.

        Raises:
            NotIdentified: All commands are equal.
        """
        step = np.diff(commands, axis=0)
        squared_length = (step * step).sum(axis=1)
        kept = np.flatnonzero(squared_length > MIN_SQUARED_LENGTH)
        if not len(kept):
            raise NotIdentified("all commands are equal")
        return CommandPath(commands[:-1][kept], step[kept], squared_length[kept], kept)

    def nearest(self, points: Array) -> Counts:
        """Return the segment (R,) nearest to each point (R, n), rad."""
        stride = 1 + len(self.squared_length) // COARSE_SEGMENTS
        if stride > 2:
            # First along every so many commands, then nearby.
            coarse = CommandPath.of_commands(self.start[::stride])
            guess = coarse.index[coarse.nearest(points)] * stride + stride // 2
            batches = (
                slice(first, first + BATCH_POINTS) for first in range(0, len(points), BATCH_POINTS)
            )
            segments = [
                self.nearest_around(points[rows], guess[rows], 2 * stride) for rows in batches
            ]
            return np.concatenate(segments)

        size = max(1, MAX_COMPARED_PAIRS // len(self.squared_length))
        blocks = (points[first : first + size] for first in range(0, len(points), size))
        return np.concatenate([self._squared_distances(block).argmin(axis=1) for block in blocks])

    def nearest_around(self, points: Array, around: Counts, reach: int = SEARCH_REACH) -> Counts:
        """Return the segment (R,) nearest to each point, among those around a guess.

        Args:
            points: Points (R, n), rad.
            around: A segment for each point (R,).
            reach: How many segments to both sides of it are searched.
        """
        last = len(self.squared_length) - 1
        candidates = np.clip(around[:, None] + np.arange(-reach, reach + 1), 0, last)

        offset = points[:, None] - self.start[candidates]
        step = self.step[candidates]
        projection = np.einsum("ijk,ijk->ij", offset, step) / self.squared_length[candidates]
        fraction = np.clip(projection, 0.0, 1.0)
        squared_distance = ((offset - fraction[..., None] * step) ** 2).sum(axis=2)

        best = squared_distance.argmin(axis=1)[:, None]
        return np.take_along_axis(candidates, best, axis=1)[:, 0]

    def follow(self, points: Array) -> Counts:
        """Return the segment (R,) of each of points that advance along the path.

        The path may cross itself.

        Args:
            points: Points (R, n), rad, in their order in time.
        """
        limit = max(MIN_FOLLOWED_POINTS, MAX_FOLLOWED_PAIRS // len(self.squared_length))
        rows = spread_rows(len(points), limit)
        segments = self._advance(points[rows])
        if len(rows) == len(points):
            return segments

        # The points between those, in parts of the path.
        guess = np.interp(np.arange(len(points)), rows, segments).astype(np.int64)
        parts = []
        for first in range(0, len(points), PART_POINTS):
            part = slice(first, first + PART_POINTS)
            low = max(int(guess[part][0]) - PART_MARGIN, 0)
            high = int(guess[part][-1]) + PART_MARGIN
            parts.append(low + self._section(low, high)._advance(points[part]))
        return np.concatenate(parts)

    def project(self, points: Array, segments: Counts) -> tuple[Array, Array]:
        """Project points on segments.

        Args:
            points: Points (R, n), rad.
            segments: A segment for each point (R,).

        Returns:
            The nearest points on them (R, n), rad, and where these are along them (R,), 0 to 1.
        """
        step = self.step[segments]
        offset = points - self.start[segments]
        fraction = (offset * step).sum(axis=1) / self.squared_length[segments]
        fraction = np.clip(fraction, 0.0, 1.0)
        return self.start[segments] + fraction[:, None] * step, fraction

    def _section(self, low: int, high: int) -> CommandPath:
        """Return the segments from one up to, and without, another."""
        rows = slice(low, high)
        return CommandPath(
            self.start[rows], self.step[rows], self.squared_length[rows], self.index[rows]
        )

    def _advance(self, points: Array) -> Counts:
        """Return segments (R,) that never go back, and are as near to points (R, n) as that allows.

        Dynamic programming over the points finds the sequence of the least cost: the sum of
        log(1 + (distance / scale)^2), in which a few points far off hardly count.
        """
        distances = np.sqrt(np.maximum(self._squared_distances(points), 0.0))
        scale = float(np.median(distances.min(axis=1))) + DISTANCE_ROUNDING
        numbers = np.arange(distances.shape[1])

        # The cost of the best sequence that ends with each segment, and the segment before in it.
        cost = np.zeros(distances.shape[1])
        origin = np.empty(distances.shape, dtype=np.int32)
        for row, distance in enumerate(distances):
            least = np.minimum.accumulate(cost)
            # The segment of the least cost so far is the last one that lowered it.
            origin[row] = np.maximum.accumulate(np.where(cost <= least, numbers, 0))
            cost = least + np.log1p((distance / scale) ** 2)

        # Back along the cheapest sequence.
        segments = np.empty(len(points), dtype=np.int64)
        segment = int(np.argmin(cost))
        for row in range(len(points) - 1, -1, -1):
            segments[row] = segment
            segment = int(origin[row, segment])
        return segments

    def _squared_distances(self, points: Array) -> Array:
        """Return the squared distance of each point (R, n) from each segment (R, S), rad^2.

        With p from the start s of a segment of step d, and the fraction f of it that is nearest to
        the point, it is |p - s - f d|^2, multiplied out.
        """
        start_along = (self.start * self.step).sum(axis=1)
        start_squared = (self.start * self.start).sum(axis=1)

        # Not by matrix products: BLAS starts threads for them, which wait for one another on a busy
        # machine.
        along = np.einsum("rj,sj->rs", points, self.step) - start_along
        fraction = np.clip(along / self.squared_length, 0.0, 1.0)
        squared = (
            start_squared
            - 2.0 * np.einsum("rj,sj->rs", points, self.start)
            + fraction * (fraction * self.squared_length - 2.0 * along)
        )
        return np.asarray(squared + (points * points).sum(axis=1)[:, None])
