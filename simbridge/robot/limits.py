"""What a controller says that an arm may do, on top of what its robot file says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of the joints as a controller tells them.

    Attributes:
        position_min, position_max: (n,), rad.
        max_velocity: (n,), rad/s.
        max_acceleration: (n,), rad/s^2.
    """

    position_min: Array
    position_max: Array
    max_velocity: Array
    max_acceleration: Array


def with_limits(robot: Robot, limits: JointLimits) -> Robot:
    """The arm within both its own limits and the controller's: of each limit, the narrower one.

    Raises:
        InvalidParameter: The limits are for another number of joints, leave a joint no range or no speed, or leave
            the robot's home outside; names the joint.
    """
    if len(limits.position_min) != robot.n:
        raise InvalidParameter("limits", f"{len(limits.position_min)} joints", f"for {robot.n} joints")
    joints = []
    for i, joint in enumerate(robot.joints):
        low = max(joint.position_min, float(limits.position_min[i]))
        high = min(joint.position_max, float(limits.position_max[i]))
        velocity = min(joint.max_velocity, float(limits.max_velocity[i]))
        if not low <= robot.home[i] <= high or not low < high:
            said = f"{limits.position_min[i]:.4g} to {limits.position_max[i]:.4g} rad"
            raise InvalidParameter(
                f"controller's range of {joint.name}",
                said,
                f"one that home, {robot.home[i]:.4g} rad, is within; give another (--home), or widen it at the pendant",
            )
        if not velocity > 0.0:
            raise InvalidParameter(f"controller's speed limit of {joint.name}", f"{velocity:g} rad/s", "above 0")
        joints.append(replace(joint, position_min=low, position_max=high, max_velocity=velocity))
    acceleration = float(min(robot.max_acceleration, *limits.max_acceleration))
    if not acceleration > 0.0:
        raise InvalidParameter("controller's acceleration limit", f"{acceleration:g} rad/s^2", "above 0")
    return replace(robot, joints=tuple(joints), max_acceleration=acceleration)
