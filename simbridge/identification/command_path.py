"""The path of the commands in joint space, and the search for its segments nearest to setpoints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.identification.robust import spread_rows
from simbridge.identification.target_motion import NotIdentified
from simbridge.robot.pose import Array, Counts

# Squared length above which a segment counts, rad^2: shorter ones join equal commands.
MIN_SQUARED_LENGTH = 1e-20
# Number of segments that are searched to either side of the last nearest one.
SEARCH_REACH = 12
# Number of segments, approximately, up to which every segment is searched.
COARSE_SEGMENTS = 3000
# Largest number of pairs of a point and a segment that are compared at once (memory).
MAX_COMPARED_PAIRS = 500_000
# Number of points whose nearby segments are searched at once (memory).
BATCH_POINTS = 2000

# Largest number of pairs of a point and a segment up to which a path is followed as a whole.
MAX_FOLLOWED_PAIRS = 4_000_000
# Number of points that are followed along any path.
MIN_FOLLOWED_POINTS = 50
# Number of successive points in each part of a recording that is too long to follow as a whole.
PART_POINTS = 250
# Number of segments that are included before and after those expected for such a part.
PART_MARGIN = 120
# Rounding that is added to the scale of distances, so that it is not zero, rad.
DISTANCE_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class CommandPath:
    """The polyline through the commands in joint space, without segments between equal commands.

    Attributes:
        start: Start of each segment (S, n), rad.
        step: Displacement from the start of each segment to its end (S, n), rad.
        squared_length: Squared length of each segment (S,), rad^2.
        index: Index of the command at which each segment starts (S,).
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
        """Return the index (R,) of the segment nearest to each point.

        Args:
            points: Points (R, n), rad.
        """
        # A long path is searched in two passes. With a stride of two, the second pass would cost
        # more than the first one saves.
        stride = 1 + len(self.squared_length) // COARSE_SEGMENTS
        if stride > 2:
            return self._nearest_in_two_passes(points, stride)

        size = max(1, MAX_COMPARED_PAIRS // len(self.squared_length))
        blocks = (points[first : first + size] for first in range(0, len(points), size))
        return np.concatenate([self._squared_distances(block).argmin(axis=1) for block in blocks])

    def _nearest_in_two_passes(self, points: Array, stride: int) -> Counts:
        """Find the nearest segments on a coarse path, and then among the segments around those.

        Args:
            points: Points (R, n), rad.
            stride: Number of segments that one segment of the coarse path replaces.

        Returns:
            The index (R,) of the segment nearest to each point.
        """
        coarse = CommandPath.of_commands(self.start[::stride])
        coarse_segment = coarse.index[coarse.nearest(points)]

        # Start in the middle of the replaced segments, and include those of the coarse segments
        # before and after, to which a point near a corner may belong.
        guess = coarse_segment * stride + stride // 2
        reach = 2 * stride

        segments = []
        for first in range(0, len(points), BATCH_POINTS):
            batch = slice(first, first + BATCH_POINTS)
            segments.append(self.nearest_around(points[batch], guess[batch], reach))
        return np.concatenate(segments)

    def nearest_around(self, points: Array, around: Counts, reach: int = SEARCH_REACH) -> Counts:
        """Return the index (R,) of the segment nearest to each point, among those near a guess.

        Args:
            points: Points (R, n), rad.
            around: Index of the guessed segment for each point (R,).
            reach: Number of segments to either side of the guess that are searched.
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
        """Return the index (R,) of each point's segment, for points that advance on the path.

        Unlike `nearest` it stays on the right branch where the path crosses itself.

        Args:
            points: Points (R, n), rad, in their order in time.
        """
        limit = max(MIN_FOLLOWED_POINTS, MAX_FOLLOWED_PAIRS // len(self.squared_length))
        rows = spread_rows(len(points), limit)
        segments = self._match_in_order(points[rows])
        if len(rows) == len(points):
            return segments

        # Some points have been followed. Follow all of them, in parts around the segments expected
        # from those.
        guess = np.interp(np.arange(len(points)), rows, segments).astype(np.int64)
        parts = []
        for first in range(0, len(points), PART_POINTS):
            part = slice(first, first + PART_POINTS)
            low = max(int(guess[part][0]) - PART_MARGIN, 0)
            high = int(guess[part][-1]) + PART_MARGIN
            parts.append(low + self._section(low, high)._match_in_order(points[part]))
        return np.concatenate(parts)

    def project(self, points: Array, segments: Counts) -> tuple[Array, Array]:
        """Project each point onto its segment.

        Args:
            points: Points (R, n), rad.
            segments: Index of the segment of each point (R,).

        Returns:
            The nearest point on each segment (R, n), rad, and its position along the segment (R,),
            from 0 at the start to 1 at the end.
        """
        step = self.step[segments]
        offset = points - self.start[segments]
        fraction = (offset * step).sum(axis=1) / self.squared_length[segments]
        fraction = np.clip(fraction, 0.0, 1.0)
        return self.start[segments] + fraction[:, None] * step, fraction

    def _section(self, low: int, high: int) -> CommandPath:
        """Return the path of the segments `low` to `high` - 1."""
        rows = slice(low, high)
        return CommandPath(
            self.start[rows], self.step[rows], self.squared_length[rows], self.index[rows]
        )

    def _match_in_order(self, points: Array) -> Counts:
        """Return the index (R,) of each point's segment, in a sequence that never goes back.

        Dynamic programming finds the cheapest such sequence. Its cost is the sum over the points of
        log(1 + (distance / scale)^2), in which a few outliers hardly count.

        Args:
            points: Points (R, n), rad, in their order in time.
        """
        # Rounding may make the square of a distance negative.
        distances = np.sqrt(np.maximum(self._squared_distances(points), 0.0))
        scale = float(np.median(distances.min(axis=1))) + DISTANCE_ROUNDING
        indices = np.arange(distances.shape[1])

        # Cost of the cheapest sequence that ends with each segment.
        cost = np.zeros(distances.shape[1])
        # The previous point's segment in the cheapest sequence to each segment.
        previous_segment = np.empty(distances.shape, dtype=np.int32)
        for row, distance in enumerate(distances):
            # The sequence to a segment comes from the cheapest of the segments up to this one. A
            # segment is the cheapest so far where its cost equals the running minimum.
            least_cost = np.minimum.accumulate(cost)
            cheapest_so_far = np.where(cost <= least_cost, indices, 0)
            previous_segment[row] = np.maximum.accumulate(cheapest_so_far)
            cost = least_cost + np.log1p((distance / scale) ** 2)

        # Trace the cheapest sequence back from the last point.
        segments = np.empty(len(points), dtype=np.int64)
        segment = int(np.argmin(cost))
        for row in range(len(points) - 1, -1, -1):
            segments[row] = segment
            segment = int(previous_segment[row, segment])
        return segments

    def _squared_distances(self, points: Array) -> Array:
        """Return the squared distance of each point (R, n) from each segment (R, S), rad^2.

        For a point p and a segment with start s, step d and the nearest point s + f d, it is
        |p - s - f d|^2, multiplied out.
        """
        start_along = (self.start * self.step).sum(axis=1)
        start_squared = (self.start * self.start).sum(axis=1)

        # einsum instead of matrix products: for those BLAS starts threads, which wait for one
        # another on a busy machine.
        along = np.einsum("rj,sj->rs", points, self.step) - start_along
        fraction = np.clip(along / self.squared_length, 0.0, 1.0)
        squared = (
            start_squared
            - 2.0 * np.einsum("rj,sj->rs", points, self.start)
            + fraction * (fraction * self.squared_length - 2.0 * along)
        )
        return np.asarray(squared + (points * points).sum(axis=1)[:, None])
