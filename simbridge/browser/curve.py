"""Errors and joints against time, as plots show them."""

from __future__ import annotations

import math

import numpy as np

from simbridge.browser.snapshot import SOURCES, Snapshot, limit_use
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# How many points the curve of a whole run has.
MAX_RUN_POINTS = 600
# How long the curve of a live arm is, and how far its points are apart, s.
LIVE_DURATION_S = 10.0
LIVE_INTERVAL_S = 0.04

# Columns of a row: time, the whole distance, that of each source, then what the joints use of their
# ranges and of their velocity limits.
DISTANCE_COLUMN = 1
JOINT_COLUMN = 2 + len(SOURCES)


class Curve:
    """The errors by source and their sum, and the joints against their limits; of bounded size.

    Attributes:
        version: Counts changes.
        span: The first and the last time that a plot shows, s: before now, or of a run.
    """

    def __init__(self) -> None:
        self._rows: list[Array] = []
        self.version = 0
        self.span = (-LIVE_DURATION_S, 0.0)

    @classmethod
    def of_run(cls, rows: Array) -> Curve:
        """Return the curve of a whole run.

        Args:
            rows: An instant each: time, s; the whole distance and that of each source, m; what the
                joints use of their ranges and of their velocity limits, 0 to 1.
        """
        curve = cls()
        stride = max(1, len(rows) // MAX_RUN_POINTS)
        curve._rows = list(rows[::stride])
        curve.span = (0.0, float(rows[-1, 0]))
        return curve

    def add(self, robot: Robot, snapshot: Snapshot) -> None:
        """Add an instant, unless the last one is too near; forget what is too old."""
        if self._rows and snapshot.time - self._rows[-1][0] < LIVE_INTERVAL_S:
            return

        joints = np.concatenate(limit_use(robot, snapshot.q, snapshot.qd))
        self._rows.append(np.array([snapshot.time, snapshot.distance, *snapshot.errors, *joints]))
        self.version += 1
        while self._rows[-1][0] - self._rows[0][0] > LIVE_DURATION_S:
            del self._rows[0]

    def clear(self) -> None:
        """Begin anew."""
        self._rows.clear()
        self.version += 1

    @property
    def largest(self) -> float:
        """A round number above every distance, mm, and 1 at least: a scale that changes rarely."""
        highest = 1.0
        for row in self._rows:
            highest = max(highest, 1e3 * row[DISTANCE_COLUMN:JOINT_COLUMN].max())

        decade = 10.0 ** math.floor(math.log10(highest))
        rounded = [step * decade for step in (1.0, 2.0, 5.0, 10.0)]
        return next(bound for bound in rounded if bound >= highest)

    @property
    def errors(self) -> tuple[Array, ...]:
        """Time, s (see `span`); the whole distance and that of each source, mm."""
        return self._columns(DISTANCE_COLUMN, 1 + len(SOURCES), 1e3)

    def joints(self, n: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Return what n joints use of their ranges, and of their velocity limits.

        Returns:
            Twice: time, s, and for each joint, %.
        """
        ranges = self._columns(JOINT_COLUMN, n, 100.0)
        velocities = self._columns(JOINT_COLUMN + n, n, 100.0)
        return ranges, velocities

    def _columns(self, first: int, count: int, scale: float) -> tuple[Array, ...]:
        """Return times, s, and scaled columns; zeros where there are no rows."""
        if not self._rows:
            return tuple(np.zeros(1) for _ in range(1 + count))
        columns = np.array(self._rows).T
        is_live = self.span[0] < 0.0
        now = columns[0][-1] if is_live else 0.0
        return (columns[0] - now, *(scale * columns[first : first + count]))
