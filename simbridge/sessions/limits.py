"""The limits of a live motion's setpoints, within which the arm keeps its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.planning.guard import allowed_distance
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.feedforward import MAX_LEAD
from simbridge.servo.law import ServojLaw

# How long a setpoint has an effect on the arm, s.
MEMORY_S = 20.0
# With lead: the fraction that is used of the largest distance between a command and the arm.
LEAD_FRACTION = 0.95
# With lead: the fraction of that distance that is kept for the acceleration; the velocity gets the
# remainder.
ACCELERATION_FRACTION = 0.5
# With lead: the fraction that is used of the joints' limits of velocity.
VELOCITY_FRACTION = 0.98
# Without lead: the fraction that is used of the largest distance from the measured arm that the
# guard allows.
DISTANCE_FRACTION = 0.97


class ServoModel(NamedTuple):
    """The servo law by which an arm follows setpoints, and when its commands arrive.

    Attributes:
        law: The servo law, for whose overshoot the limits leave room.
        phase: Time from the beginning of a controller's cycle to the arrival of its command, s.
    """

    law: ServojLaw
    phase: float = 0.0


class SetpointLimits(NamedTuple):
    """Limits of setpoints.

    Attributes:
        velocity: Largest velocities of the joints (n,), rad/s.
        acceleration: Largest acceleration of each joint, rad/s^2.
        tool_speed: Largest speed of the TCP, m/s.
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
        servo: How the arm follows setpoints; None for an ideal servo.
        tool_speed: Limit of the tool's speed, m/s.
        lead: Whether commands come from the inverse of the law, and lead the setpoints.
    """
    if servo is None:
        return SetpointLimits(robot.max_velocity, robot.max_acceleration, tool_speed)
    if lead:
        return _limits_with_lead(robot, servo.law, tool_speed)
    return _limits_without_lead(robot, servo, tool_speed)


def _limits_with_lead(robot: Robot, law: ServojLaw, tool_speed: float) -> SetpointLimits:
    """Return the limits of setpoints for which the inverse of the law is sent.

    The arm is then where the setpoints are, so that its own limits hold for them. But a command
    leads the arm by acceleration / law.gain + law.lookahead * velocity, and may lead it by no more
    than `MAX_LEAD`: part of that is kept for the acceleration, and the velocity gets the remainder.
    """
    max_lead = LEAD_FRACTION * MAX_LEAD
    affordable_acceleration = ACCELERATION_FRACTION * max_lead * law.gain
    acceleration = min(robot.max_acceleration, affordable_acceleration)

    remaining_lead = max_lead - acceleration / law.gain
    velocity = np.minimum(VELOCITY_FRACTION * robot.max_velocity, remaining_lead / law.lookahead)
    return SetpointLimits(velocity, acceleration, tool_speed)


def _limits_without_lead(robot: Robot, servo: ServoModel, tool_speed: float) -> SetpointLimits:
    """Return the limits of setpoints that are sent as they are.

    The law may make the arm's velocity larger than the setpoints' by a factor, whatever they do. As
    it is linear, this factor also holds for the acceleration and for the speed of the tool. So the
    arm keeps its limits if the setpoints keep these limits divided by the factor.
    """
    velocity_gain = servo.law.velocity_gain(servo.phase).of_any_motion
    acceleration = robot.max_acceleration / velocity_gain
    stoppable_velocity = _stoppable_velocity(servo.law, acceleration)
    velocity = np.minimum(robot.max_velocity / velocity_gain, stoppable_velocity)
    return SetpointLimits(velocity, acceleration, tool_speed / velocity_gain)


def _stoppable_velocity(law: ServojLaw, acceleration: float) -> float:
    """Return the velocity, rad/s, from which setpoints may stop without the guard refusing any.

    The servo law is linear, so the distance of the arm from its setpoints is a sum over the cycles
    before: h sum_k b_k v_k, with the cycle h. Here v_k is the velocity of the setpoints k cycles
    ago, and b_k is how far the arm is still behind a command that stepped by 1 rad k cycles ago.

    Summation by parts makes it lag v_0 - h^2 sum_k B_k a_k, with the accelerations a_k and with
    B_k, the sum of b over k and all later cycles. The guard allows for the first term. So the
    largest acceleration bounds what remains, by h^2 a sum_k |B_k|. If the guard allows this much,
    setpoints may stop from any velocity; otherwise the largest velocity must keep the first sum
    small enough, which is at most h v sum_k |b_k|.

    Args:
        law: The servo law.
        acceleration: Largest acceleration of the setpoints, rad/s^2.
    """
    # b_k, for as long as a command has an effect (N,), rad.
    step = np.ones((1, 1))
    response = law.follow(step, previous=np.zeros(1), cycles=round(MEMORY_S / law.cycle))
    behind = 1.0 - response.q[:, 0]

    # The guard's distance at rest: near the stop the velocity no longer adds to it.
    allowed = DISTANCE_FRACTION * float(allowed_distance(np.zeros(1), law.lookahead)[0])

    # The largest distance per unit of acceleration, s^2.
    later_sums = behind[::-1].cumsum()
    distance_per_acceleration = law.cycle**2 * float(np.abs(later_sums).sum())
    if acceleration * distance_per_acceleration <= allowed:
        return np.inf

    # The largest distance per unit of velocity, s.
    distance_per_velocity = law.cycle * float(np.abs(behind).sum())
    return allowed / distance_per_velocity
