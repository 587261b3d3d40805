"""The pinocchio model of a robot."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.robot.robot import Robot


def pinocchio_model(robot: Robot) -> pin.Model:
    """Build the rigid-body model joint by joint: no text, no rounding, no parser between the data and the model."""
    model = pin.Model()
    model.name = robot.name
    model.gravity = pin.Motion(robot.gravity, np.zeros(3))
    base = model.addFrame(pin.Frame("base_link", 0, 0, pin.SE3.Identity(), pin.FrameType.BODY))
    parent, frame = 0, base
    for joint, link, inertia in zip(robot.joints, robot.links, robot.link_inertias, strict=True):
        kind = pin.JointModelPZ() if joint.kind == "prismatic" else pin.JointModelRZ()
        parent = model.addJoint(parent, kind, joint.placement, joint.name)
        q, v = model.idx_qs[parent], model.idx_vs[parent]
        model.lowerPositionLimit[q] = joint.position_min
        model.upperPositionLimit[q] = joint.position_max
        model.upperVelocityLimit[v] = joint.max_velocity
        model.lowerVelocityLimit[v] = -joint.max_velocity
        model.upperEffortLimit[v] = joint.max_effort
        model.lowerEffortLimit[v] = -joint.max_effort
        frame = model.addJointFrame(parent, frame)
        model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
        frame = model.addBodyFrame(link.name, parent, link.placement, frame)
    model.addFrame(pin.Frame("tool0", parent, frame, robot.tool0, pin.FrameType.OP_FRAME))
    model.addFrame(pin.Frame("tcp", parent, frame, robot.tool0 * robot.tcp, pin.FrameType.OP_FRAME))
    return model
