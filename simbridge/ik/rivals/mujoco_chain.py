"""The kinematics of an arm as a model of MuJoCo, with a site at the TCP."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.robot.robot import Robot

# Name of the site at the tool centre point.
TCP = "tcp"


def make_chain(mujoco: Any, robot: Robot) -> Any:
    """Return an arm as a model of MuJoCo: joints with their limits, and the TCP.

    Args:
        mujoco: The module mujoco.
        robot: The arm.
    """
    # Angles are in radians.
    specification = mujoco.MjSpec()
    specification.compiler.degree = False

    # A body for each joint, within that of the joint before. A moving body must have a mass, which
    # does not matter to kinematics.
    body = specification.worldbody
    for joint in robot.joints:
        quaternion = pin.Quaternion(joint.placement.rotation)
        body = body.add_body(
            name=joint.name,
            pos=joint.placement.translation,
            quat=(quaternion.w, quaternion.x, quaternion.y, quaternion.z),
            mass=1.0,
            inertia=(1.0, 1.0, 1.0),
            explicitinertial=True,
        )
        kind = mujoco.mjtJoint.mjJNT_HINGE
        if joint.kind == "prismatic":
            kind = mujoco.mjtJoint.mjJNT_SLIDE
        added_joint = body.add_joint(name=joint.name, type=kind, axis=(0.0, 0.0, 1.0))
        if np.isfinite(joint.position_min) and np.isfinite(joint.position_max):
            added_joint.limited = True
            added_joint.range = (joint.position_min, joint.position_max)

    tool = robot.tool0 * robot.tcp
    quaternion = pin.Quaternion(tool.rotation)
    body.add_site(
        name=TCP,
        pos=tool.translation,
        quat=(quaternion.w, quaternion.x, quaternion.y, quaternion.z),
    )
    return specification.compile()
