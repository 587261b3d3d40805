"""Limits of setpoints within which what the servo law makes of them keeps the arm's own limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.planning.guard import allowed_distance
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.feedforward import MAX_LEAD
from simbridge.servo.law import ServojLaw

# After this time nothing is left of what a setpoint did, s.
_MEMORY = 20.0
# With lead: shares of the limits that are used.
_OF_LEAD, _OF_VELOCITY = 0.95, 0.98
# Share of the distance from the measured arm that is used.
_OF_DISTANCE = 0.97


class Margins(NamedTuple):
    """Limits of setpoints.

    Attributes:
        velocity: (n,), rad/s.
        acceleration: rad/s^2.
        tool_speed: m/s.
    """

    velocity: Array
    acceleration: float
    tool_speed: float


def margins(
    robot: Robot, law: ServojLaw | None, tool_speed: float, *, phase: float = 0.0, lead: bool = False
) -> Margins:
    """The limits of setpoints for a robot and its servo law.

    Args:
        robot: Whose limits hold for the arm.
        law: None for an ideal servo.
        tool_speed: Limit of the tool, m/s.
        phase: See `LiveMotion`.
        lead: Whether the inverse of the law is sent.
    """
    velocity, acceleration = robot.max_velocity, robot.max_acceleration
    if law is None:
        return Margins(velocity, acceleration, tool_speed)
    if lead:
        # A command leads by acceleration / gain + lookahead velocity: at most half of it for the first.
        most = _OF_LEAD * MAX_LEAD
        acceleration = min(acceleration, 0.5 * most * law.gain)
        most -= acceleration / law.gain
        return Margins(np.minimum(_OF_VELOCITY * velocity, most / law.lookahead), acceleration, tool_speed)
    # By linearity no setpoints within these limits make the arm exceed its own.
    gain = law.velocity_gain(phase).any
    acceleration /= gain
    return Margins(np.minimum(velocity / gain, _kept_up_with(law, acceleration)), acceleration, tool_speed / gain)


def _kept_up_with(law: ServojLaw, acceleration: float) -> float:
    """The velocity, rad/s, from which setpoints may stop without leaving the arm so far behind that the guard refuses.

    The distance of the arm from its setpoints is their velocity times the lag, which the guard allows for, and a share
    of each acceleration so far. Where the sum of these shares is too large, it is a share of each velocity that counts.
    """
    behind = 1.0 - law.follow(np.ones((1, 1)), previous=np.zeros(1), cycles=round(_MEMORY / law.cycle)).q[:, 0]
    of_acceleration = law.cycle**2 * float(np.abs(behind[::-1].cumsum()).sum())
    allowed = _OF_DISTANCE * float(allowed_distance(np.zeros(1), law.lookahead)[0])
    if acceleration * of_acceleration <= allowed:
        return np.inf
    return allowed / (law.cycle * float(np.abs(behind).sum()))
