"""The setpoints that joint targets reveal: the servo law, solved for its input."""

from __future__ import annotations

import numpy as np

from simbridge.robot.pose import Array
from simbridge.servo.law import JointMotion

# Relative difference of a step from the cycle below which the cycle counts as not split.
SPLIT_TOLERANCE = 1e-6


def observe_setpoints(
    motion: JointMotion, cycle: float, *, gain: float, lookahead: float, last_step: Array
) -> tuple[Array, Array]:
    """Return the setpoints that joint targets reveal.

    A whole cycle reveals s = q' + qdd / gain + lookahead qd', with q' and qd' one cycle before. Of
    the two setpoints of a split cycle, only their weighted mean is revealed.

    Args:
        motion: Joint targets of N cycles.
        cycle: Cycle of the controller, s.
        gain: Gain of servoj, 1/s^2.
        lookahead: Lookahead of servoj, s.
        last_step: How long the last step of each cycle (N,) lasts, s: the whole cycle where it is
            not split.

    Returns:
        Setpoints (N, n), rad, and the weight (N,) of the last step's setpoint in them: 1 where the
        cycle is not split.
    """
    # A whole cycle. The velocity one cycle before follows from the mean acceleration.
    velocity_before = motion.qd - cycle * motion.qdd
    position_before = motion.q - cycle * motion.qd
    setpoints = position_before + motion.qdd / gain + lookahead * velocity_before
    weights = np.ones(len(motion.q))

    # A split cycle, whose two steps last `first` and `second`.
    is_split = last_step < cycle * (1.0 - SPLIT_TOLERANCE)
    second = last_step[is_split, np.newaxis]
    first = cycle - second

    # Undo the second step, whose setpoint s2 is not known: the position p between the steps, and
    # the velocity there as velocity + slope s2.
    second_damping = 1.0 - second * gain * lookahead
    position = motion.q[is_split] - second * motion.qd[is_split]
    velocity = (motion.qd[is_split] + second * gain * position) / second_damping
    slope = -second * gain / second_damping

    # Solve the first step for its setpoint s1, which becomes offset + factor s2.
    first_damping = 1.0 - first * gain * lookahead
    factor = slope * (1.0 / (first * gain) - first)
    offset = position - first * velocity
    offset += (velocity - velocity_before[is_split] * first_damping) / (first * gain)

    # So the weighted mean (s1 - factor s2) / (1 - factor) of the two setpoints is known.
    setpoints[is_split] = offset / (1.0 - factor)
    weights[is_split] = (-factor / (1.0 - factor))[:, 0]
    return setpoints, weights
