"""The record of a controller's latest ticks: its joints, and RTDE's inputs."""

from __future__ import annotations

from collections import deque

import numpy as np

from simbridge.emulator.record_file import InputPackage
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

# Ticks, and packages of RTDE inputs, that are kept.
RECORD_LENGTH = 200_000


class TickRecord:
    """A record of the arm's joints and inputs; only the latest ticks and packages are kept.

    Args:
        n: Number of joints of the arm.

    Attributes:
        inputs: Every RTDE input package on arrival: tick, names, values.
    """

    def __init__(self, n: int) -> None:
        self.inputs: deque[InputPackage] = deque(maxlen=RECORD_LENGTH)
        self._n = n
        # Ticks so far, including those whose samples have been dropped.
        self._count = 0
        # A ring of ticks: number, setpoint, target and actual joints.
        self._rows = np.zeros((RECORD_LENGTH, 1 + 3 * n))

    def add(self, tick: int, setpoint: Array | None, *, target_q: Array, actual_q: Array) -> None:
        """Record a tick.

        Args:
            tick: The number of the tick.
            setpoint: servoj's setpoint in force (n,), rad; None without servoj.
            target_q: Joint targets (n,), rad.
            actual_q: Joint positions (n,), rad.
        """
        n = self._n
        row = self._rows[self._count % RECORD_LENGTH]
        row[0] = tick
        row[1 : n + 1] = np.nan if setpoint is None else setpoint
        row[n + 1 : 2 * n + 1] = target_q
        row[2 * n + 1 :] = actual_q
        self._count += 1

    def past_q(self, steps: int) -> Array:
        """Return the actual joints (n,), rad, of an earlier tick.

        Args:
            steps: Number of ticks before the latest; 0 is the latest.

        Raises:
            InvalidParameter: That tick is not recorded.
        """
        most = min(self._count, RECORD_LENGTH) - 1
        if not 0 <= steps <= most:
            needed = f"from 0 to {most}: that is how many are recorded"
            raise InvalidParameter("number of steps back", steps, needed)

        row = self._rows[(self._count - 1 - steps) % RECORD_LENGTH]
        past: Array = row[2 * self._n + 1 :]
        return past

    def ticks(self, after: int = -1) -> dict[str, Array]:
        """Return the ticks after one.

        Args:
            after: Number of the tick; all that are kept by default.

        Returns:
            tick (K,); setpoint (nan without servoj), target_q and actual_q (K, n), rad.
        """
        newest = -1
        if self._count:
            newest = int(self._rows[(self._count - 1) % RECORD_LENGTH, 0])

        count = min(self._count, RECORD_LENGTH, max(newest - after, 0))
        rows = self._rows[np.arange(self._count - count, self._count) % RECORD_LENGTH]
        setpoint, target_q, actual_q = np.split(rows[:, 1:], 3, axis=1)
        return {
            "tick": rows[:, 0].astype(np.int64),
            "setpoint": setpoint,
            "target_q": target_q,
            "actual_q": actual_q,
        }
