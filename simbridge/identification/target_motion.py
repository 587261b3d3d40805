"""The controller's joint targets in a recording, and the setpoints that they reveal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from simbridge.identification.robust import resolution
from simbridge.robot.pose import Array, Counts, Flags
from simbridge.servo.law import JointMotion
from simbridge.servo.observation import observe_setpoints

# Speed of the fastest joint below which a row shows nothing of the servo law, rad/s.
MIN_SPEED = 1e-4


class NotIdentified(Exception):
    """A recording does not show a quantity; the message is the reason, without a full stop."""


class Digits(NamedTuple):
    """The resolution with which joint targets were recorded.

    Attributes:
        position: Resolution of positions, rad.
        velocity: Resolution of velocities, rad/s.
        acceleration: Resolution of accelerations, rad/s^2.
    """

    position: float
    velocity: float
    acceleration: float


@dataclass(frozen=True, eq=False)
class TargetMotion:
    """The controller's joint targets, one row per sample.

    Attributes:
        times: Stamps (T,), s, strictly increasing.
        q: Positions (T, n), rad.
        qd: Velocities (T, n), rad/s.
        qdd: Accelerations (T, n), rad/s^2.
        cycle: The controller's cycle h, s.
    """

    times: Array
    q: Array
    qd: Array
    qdd: Array
    cycle: float

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, rows: Flags | Counts | slice) -> TargetMotion:
        return TargetMotion(
            self.times[rows], self.q[rows], self.qd[rows], self.qdd[rows], self.cycle
        )

    @property
    def qd_before(self) -> Array:
        """Velocities (T, n) one cycle before each row, rad/s."""
        return self.qd - self.cycle * self.qdd

    @property
    def q_before(self) -> Array:
        """Positions (T, n) one cycle before each row, rad."""
        return self.q - self.cycle * self.qd

    @property
    def cycles(self) -> Counts:
        """Number of each row's cycle (T,), counted from that of the first row."""
        return np.round((self.times - self.times[0]) / self.cycle).astype(np.int64)

    @property
    def moving(self) -> Flags:
        """Flags (T,) that are true for rows in which some joint moves."""
        return np.abs(self.qd).max(axis=1) > MIN_SPEED

    @property
    def digits(self) -> Digits:
        """Resolution with which the joint targets were recorded."""
        return Digits(resolution(self.q), resolution(self.qd), resolution(self.qdd))

    def setpoint_resolution(self, x: Any, y: Any) -> Any:
        """Return the resolution of the setpoints that these rows reveal, by their digits, rad.

        Args:
            x: X = 1 / gain, s^2, a number or an array.
            y: Y = lookahead, s, of the same shape.
        """
        return resolution(self.q) + x * resolution(self.qdd) + y * resolution(self.qd)

    def setpoints(self, gain: float, lookahead: float) -> Array:
        """Return the setpoints (T, n), rad, that rows reveal if no call ended inside a cycle.

        Args:
            gain: Gain of servoj's law, 1/s^2.
            lookahead: Lookahead of servoj, s.
        """
        targets = JointMotion(self.q, self.qd, self.qdd)
        whole_cycles = np.full(len(self), self.cycle)
        return observe_setpoints(
            targets, self.cycle, gain=gain, lookahead=lookahead, last_step=whole_cycles
        )[0]
