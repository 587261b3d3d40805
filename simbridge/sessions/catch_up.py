"""Follows a source slowly after a stall, until the arm has caught up with it.

While a source is silent it may have gone on. A twist or a jog has no place that the arm could be
behind: it is followed slowly until its source has been back for a while, and not only for a moment.
"""

from __future__ import annotations

import math

from simbridge.sessions.inputs import Input

# How long twists and jogs are followed slowly after a stall, s.
VELOCITY_CATCH_UP_S = 0.1
# The arm has caught up with a pose at this distance, m, and this angle, rad.
CAUGHT_UP_DISTANCE = 0.01
CAUGHT_UP_ANGLE = math.radians(3.0)
# The arm has caught up with joint positions when no joint is farther from them than this, rad.
CAUGHT_UP_JOINT = math.radians(0.5)
# A filter has settled after this many times its delay.
SETTLING_DELAYS = 5.0


class CatchUp:
    """Decides when a source is followed slowly.

    Args:
        fraction: Fraction of the limits of velocity and tool speed that may then be used.
        filter_delay: Delay of the filter of poses and joint positions, s.
    """

    def __init__(self, fraction: float, filter_delay: float) -> None:
        self._fraction = fraction
        self._settling = SETTLING_DELAYS * filter_delay
        self.reset()

    def reset(self) -> None:
        """Forget that inputs have stalled."""
        # Whether inputs have stalled since the arm was last up with their source.
        self._is_due = False
        # Whether the present source is followed slowly.
        self._is_slow = False
        # The earliest time at which the arm may count as up with it, s.
        self._earliest_end = 0.0

    @property
    def fraction(self) -> float:
        """Fraction of the limits of velocity and tool speed that may be used, up to 1."""
        return self._fraction if self._is_slow else 1.0

    def note_stall(self) -> None:
        """Take note that inputs have stalled: the next one is followed slowly."""
        self._is_due = True

    def begin(
        self, now: float, item: Input, *, distance: float, angle: float, is_other_kind: bool
    ) -> None:
        """Decide whether a source that the arm begins to follow is followed slowly.

        Args:
            now: The loop's clock, s.
            item: The first input of the source.
            distance: Distance of the input from the setpoint, m; 0 for joints and velocities.
            angle: Angle between both, rad; for joint positions that of the joint that differs most.
            is_other_kind: Whether inputs of another kind came before it in this engagement.
        """
        if item.is_velocity:
            self._is_slow = self._is_due
            self._earliest_end = now + VELOCITY_CATCH_UP_S
            return

        # The arm is not up with its source before a chunk's first row is due, nor before the filter
        # has settled: until then the target is still on its way from the setpoint.
        first_row = float(item.values[0, 0]) if item.is_chunk else 0.0
        self._earliest_end = now + first_row + self._settling

        is_behind = not _is_caught_up(item, distance, angle)
        self._is_slow = is_behind and (self._is_due or is_other_kind)
        self._is_due = self._is_slow

    def update(
        self, now: float, item: Input, *, limited: bool, distance: float, angle: float
    ) -> None:
        """Take note of a period: the arm may have caught up in it.

        Args:
            now: The loop's clock, s.
            item: The input in force.
            limited: Whether a limit keeps the setpoint from the wanted joint positions.
            distance: Distance of the setpoint from the target, m.
            angle: Angle between both, rad.
        """
        if not self._is_slow or now < self._earliest_end:
            return
        if item.is_velocity or (not limited and _is_caught_up(item, distance, angle)):
            self.reset()


def _is_caught_up(item: Input, distance: float, angle: float) -> bool:
    """Return whether the arm counts as up with a source at a distance, m, and an angle, rad."""
    max_angle = CAUGHT_UP_JOINT if item.in_joints else CAUGHT_UP_ANGLE
    return distance <= CAUGHT_UP_DISTANCE and angle <= max_angle
