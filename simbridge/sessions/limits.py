"""The limits of a live motion's setpoints, within which the arm keeps its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.planning.guard import allowed_distance
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.feedforward import MAX_LEAD
from simbridge.servo.law import ServojLaw

# After this time nothing is left of what a setpoint did, s.
MEMORY_S = 20.0
# With lead: fractions of the limits of lead and velocity that are used.
LEAD_FRACTION = 0.95
VELOCITY_FRACTION = 0.98
# Fraction of the distance from the measured arm that is used.
DISTANCE_FRACTION = 0.97


class ServoModel(NamedTuple):
    """The servo law by which an arm follows setpoints, and when its commands arrive.

    Attributes:
        law: The servo law, for whose overshoot the limits leave room.
        phase: How long after a controller's cycle begins commands arrive, s.
    """

    law: ServojLaw
    phase: float = 0.0


class SetpointLimits(NamedTuple):
    """Limits of setpoints.

    Attributes:
        velocity: (n,), rad/s.
        acceleration: rad/s^2.
        tool_speed: m/s.
    """

    velocity: Array
    acceleration: float
    tool_speed: float


def setpoint_limits(
    robot: Robot, servo: ServoModel | None, tool_speed: float, *, lead: bool
) -> SetpointLimits:
    """Return the limits of setpoints within which the servo law keeps the arm within its own.

    Args:
        robot: The arm.
        servo: How it follows setpoints; None for an ideal servo.
        tool_speed: Limit of the tool's speed, m/s.
        lead: Whether the inverse of the law is sent.
    """
    velocity = robot.max_velocity
    acceleration = robot.max_acceleration
    if servo is None:
        return SetpointLimits(velocity, acceleration, tool_speed)

    law = servo.law
    if lead:
        # A command leads by acceleration / gain + lookahead velocity: at most half of it for the
        # first.
        max_lead = LEAD_FRACTION * MAX_LEAD
        acceleration = min(acceleration, 0.5 * max_lead * law.gain)
        max_lead -= acceleration / law.gain
        velocity = np.minimum(VELOCITY_FRACTION * velocity, max_lead / law.lookahead)
        return SetpointLimits(velocity, acceleration, tool_speed)

    # By linearity no setpoints within these limits make the arm exceed its own.
    gain = law.velocity_gain(servo.phase).any
    acceleration /= gain
    velocity = np.minimum(velocity / gain, _stoppable_velocity(law, acceleration))
    return SetpointLimits(velocity, acceleration, tool_speed / gain)


def _stoppable_velocity(law: ServojLaw, acceleration: float) -> float:
    """Return the velocity, rad/s, from which setpoints may stop without the guard refusing any.

    The distance of the arm from its setpoints is their velocity times the lag, which the guard
    allows for, and a fraction of each acceleration so far. Where the sum of these fractions is too
    large, it is a fraction of each velocity that counts.
    """
    step = np.ones((1, 1))
    response = law.follow(step, previous=np.zeros(1), cycles=round(MEMORY_S / law.cycle))
    behind = 1.0 - response.q[:, 0]

    allowed = DISTANCE_FRACTION * float(allowed_distance(np.zeros(1), law.lookahead)[0])
    distance_per_acceleration = law.cycle**2 * float(np.abs(behind[::-1].cumsum()).sum())
    if acceleration * distance_per_acceleration <= allowed:
        return np.inf
    return allowed / (law.cycle * float(np.abs(behind).sum()))
