"""Reads the controller's joint targets and its cycle from the columns of a recording."""

from __future__ import annotations

import numpy as np

from simbridge.identification.data import Samples
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Cycle of e-Series controllers, s.
E_SERIES_CYCLE = 0.002
# Cycle of CB3 controllers, s.
CB3_CYCLE = 0.008
# Smallest span between successive rows that a CB3 can have, s.
MIN_CB3_SPAN = 0.0079
# Largest difference between a span and a CB3's cycle in rows that show the cycle, s.
MAX_SPAN_DIFFERENCE = 1e-4
# Smallest change of acceleration in rows that show the cycle, rad/s^2.
MIN_CHANGE = 1e-6
# The same limit as a fraction of the acceleration; the larger one counts.
MIN_RELATIVE_CHANGE = 1e-2
# Smallest number of rows that show the cycle.
MIN_CYCLE_ROWS = 11
# Largest fraction of the change of velocity that a CB3's cycle leaves unexplained.
MAX_CB3_MISFIT = 1e-4
# Smallest fraction of the change of velocity that is left unexplained if the cycle is not a CB3's.
MIN_OTHER_MISFIT = 1e-2
# Smallest change of velocity that is used as a divisor, rad/s.
LEAST_VELOCITY_CHANGE = 1e-12

# Smallest number of rows in which the arm moves.
MIN_MOVING_ROWS = 10
# Largest span, in units of the usual one, between rows that count as successive.
MAX_SPAN = 1.5
# Largest median span between rows, in cycles, if every cycle was recorded.
MAX_CYCLE_SPAN = 1.01
# Largest difference between target_qd and the rate of target_q, relative to that rate.
MAX_INCONSISTENCY = 0.3


class NotProgrammedMotion(NotIdentified):
    """The joint targets are not those of a program: the arm was moved by hand, or they are noise.

    Their motor currents do not match torque and friction either.
    """


def read_motion(samples: Samples, robot: Robot | None) -> TargetMotion:
    """Return the joint targets of a recording, after checking that servoj can have made them.

    Args:
        samples: The recording.
        robot: The arm, if it is known.

    Raises:
        NotProgrammedMotion: The joint targets cannot be those of a program.
        NotIdentified: The joint targets were not recorded, or do not move.
    """
    times = samples.times
    (q,) = samples.need("target_q")
    velocity = samples.columns.get("target_qd")
    acceleration = samples.columns.get("target_qdd")
    default_cycle = E_SERIES_CYCLE if robot is None else robot.period
    cycle = samples.cycle or find_cycle(times, velocity, acceleration) or default_cycle

    if velocity is not None and acceleration is not None:
        motion = TargetMotion(times, q, velocity, acceleration, cycle)
    else:
        # If every cycle was recorded, differences equal what the controller would have reported.
        if np.median(np.diff(times)) > MAX_CYCLE_SPAN * cycle:
            samples.need("target_qd", "target_qdd")
        motion = _differentiate(times, q, cycle)

    _check_motion(motion)
    return motion


def find_cycle(times: Array, velocity: Array | None, acceleration: Array | None) -> float | None:
    """Return the controller's cycle, s; None if a recording does not show it.

    Rows less than 8 ms apart cannot come from a CB3. If they are 8 ms apart, a CB3's velocity
    changes by 8 ms times the acceleration from row to row. An e-Series controller, whose cycle is
    2 ms, has made four changes in between, of which only the last acceleration is recorded.

    Args:
        times: Stamps (T,), s.
        velocity: target_qd (T, n), rad/s; None if it was not recorded.
        acceleration: target_qdd (T, n), rad/s^2; None if it was not recorded.
    """
    spans = np.diff(times)
    if spans.min() < MIN_CB3_SPAN:
        return E_SERIES_CYCLE
    if velocity is None or acceleration is None:
        return None

    # Only rows where the acceleration changes show the cycle: with a constant acceleration the
    # velocity changes in the same way for any cycle. Where a trapezoid of speed bends, movej may
    # report either acceleration: the acceleration must change in the row before as well.
    acceleration_step = np.abs(np.diff(acceleration, axis=0)).max(axis=1)
    magnitude = np.abs(acceleration[1:]).max(axis=1)
    is_large_step = acceleration_step > MIN_RELATIVE_CHANGE * magnitude
    is_changing = is_large_step & (acceleration_step > MIN_CHANGE)
    was_changing = np.concatenate([[False], is_changing[:-1]])
    is_cb3_span = np.abs(spans - CB3_CYCLE) < MAX_SPAN_DIFFERENCE
    shows_cycle = is_cb3_span & is_changing & was_changing
    if shows_cycle.sum() < MIN_CYCLE_ROWS:
        return None

    # The fraction of the change of velocity that a CB3's cycle does not explain. In between the two
    # limits it may come from noise as well as from another cycle.
    velocity_change = np.diff(velocity, axis=0)[shows_cycle]
    unexplained = velocity_change - CB3_CYCLE * acceleration[1:][shows_cycle]
    usual_change = float(np.median(np.linalg.norm(velocity_change, axis=1)))
    usual_unexplained = float(np.median(np.linalg.norm(unexplained, axis=1)))
    misfit = usual_unexplained / max(usual_change, LEAST_VELOCITY_CHANGE)
    if misfit < MAX_CB3_MISFIT:
        return CB3_CYCLE
    if misfit > MIN_OTHER_MISFIT:
        return E_SERIES_CYCLE
    return None


def _differentiate(times: Array, q: Array, cycle: float) -> TargetMotion:
    """Differentiate joint positions (T, n), rad; the first two rows are lost."""
    span = np.diff(times)[:, None]
    rates = np.diff(q, axis=0) / span
    velocity = np.concatenate([rates[:1], rates])
    changes = np.diff(velocity, axis=0) / span
    acceleration = np.concatenate([np.zeros_like(q[:1]), changes])
    return TargetMotion(times[2:], q[2:], velocity[2:], acceleration[2:], cycle)


def _check_motion(motion: TargetMotion) -> None:
    """Refuse joint targets that do not move, or that servoj cannot have made."""
    moving = motion.moving
    if moving.sum() < MIN_MOVING_ROWS:
        raise NotIdentified("the arm does not move")
    if not motion.qdd[moving].any():
        raise NotProgrammedMotion(
            "target_qdd is zero while the arm moves: it was moved by hand (freedrive), "
            "not by servoj"
        )

    # The velocity must be the rate of the position.
    span = np.diff(motion.times)
    used = moving[1:] & moving[:-1] & (span < MAX_SPAN * np.median(span))
    step = np.diff(motion.q, axis=0)[used]
    mean_velocity = 0.5 * (motion.qd[1:] + motion.qd[:-1])
    difference = step - (mean_velocity * span[:, None])[used]
    median_difference = np.median(np.linalg.norm(difference, axis=1))
    if median_difference > MAX_INCONSISTENCY * np.median(np.linalg.norm(step, axis=1)):
        raise NotProgrammedMotion(
            "target_qd is not the rate of target_q: the recording is noise, or in other units"
        )
