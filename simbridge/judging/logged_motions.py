"""Cuts a log into motions between rests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.judging.log import ControllerLog
from simbridge.robot.pose import Flags

# Largest speed of a joint target at rest, rad/s.
REST_SPEED = 1e-3
# Largest measured speed of a joint at rest, rad/s: measured velocities are noisy.
MEASURED_REST_SPEED = 5e-3
# Shortest rest between two motions, s: a joint that reverses within a motion stops for less.
MIN_REST_S = 0.045
# Smallest number of still rows between two moving rows that make a rest, however short it is:
# between two moves of a program the arm may rest for only a few cycles. In a still row the speed of
# every joint target is exactly zero; a speed of less than REST_SPEED is not enough.
MIN_STILL_ROWS = 2
# Smallest range of the joint that moves farthest in a motion, rad: a smaller one is noise, or a
# joint that settles.
MIN_TRAVEL = 1e-3


@dataclass(frozen=True)
class Motion:
    """A part of a log in which the arm moves from rest to rest.

    Attributes:
        number: Number of the motion in its log, from 1.
        first: First row of the motion: the last one at rest, or the log's first.
        end: Row after the motion's last one, which is the first row at rest, or the log's last.
        begin_s: Time of the first row, s from the log's beginning.
        end_s: Time of the last row, s from the log's beginning.
        starts_at_rest: Whether the log shows the arm at rest before the motion.
        ends_at_rest: Whether the log shows the arm at rest after the motion.
    """

    number: int
    first: int
    end: int
    begin_s: float
    end_s: float
    starts_at_rest: bool
    ends_at_rest: bool

    @property
    def rows(self) -> slice:
        """The rows of the motion, with the resting ones at its two ends."""
        return slice(self.first, self.end)

    @property
    def duration_s(self) -> float:
        """Time from the first row to the last one, s."""
        return self.end_s - self.begin_s


def find_motions(log: ControllerLog) -> tuple[Motion, ...]:
    """Return the motions of a log, in order; none if the arm rests all the time.

    Two motions are separated by a rest of at least MIN_REST_S or MIN_STILL_ROWS. Motions over less
    than MIN_TRAVEL are left out.
    """
    is_moving = moving_rows(log)
    moving = np.flatnonzero(is_moving)
    if not len(moving):
        return ()

    # Long rests between a moving row and the next. A long time without any row between the two is a
    # gap in the recording, not a rest.
    is_long = np.diff(log.times[moving]) >= MIN_REST_S
    has_rows_between = np.diff(moving) > 1
    is_long_rest = is_long & has_rows_between

    # The number of still rows between each moving row and the next: the difference of the numbers
    # of still rows before the two.
    still_before = np.concatenate([[0], np.cumsum(_still_rows(log))])
    still_between = np.diff(still_before[moving])
    is_still_rest = still_between >= MIN_STILL_ROWS

    # Moving rows that are not separated by a rest belong to one motion.
    is_end = is_long_rest | is_still_rest
    groups = np.split(moving, np.flatnonzero(is_end) + 1)

    # A motion also has the resting row on either side of its moving rows, if the log has it.
    motions: list[Motion] = []
    last_row = len(log.times) - 1
    for group in groups:
        first = max(int(group[0]) - 1, 0)
        last = min(int(group[-1]) + 1, last_row)
        travel = np.ptp(log.q[first : last + 1], axis=0)
        if travel.max() < MIN_TRAVEL:
            continue

        motions.append(
            Motion(
                number=len(motions) + 1,
                first=first,
                end=last + 1,
                begin_s=float(log.times[first]),
                end_s=float(log.times[last]),
                starts_at_rest=not is_moving[first],
                ends_at_rest=not is_moving[last],
            )
        )
    return tuple(motions)


def moving_rows(log: ControllerLog) -> Flags:
    """Return which rows (T,) of a log have a joint that moves faster than at rest."""
    is_target = log.target_q is not None
    threshold = REST_SPEED if is_target else MEASURED_REST_SPEED
    speed = np.abs(log.joint_velocities).max(axis=1)
    return np.asarray(speed > threshold)


def _still_rows(log: ControllerLog) -> Flags:
    """Return which rows (T,) of a log have joint targets that stand exactly still.

    Without recorded targets none has: measured velocities are hardly ever exactly zero.
    """
    if log.target_q is None or log.target_qd is None:
        return np.zeros(len(log.times), dtype=bool)
    return np.asarray((log.joint_velocities == 0.0).all(axis=1))
