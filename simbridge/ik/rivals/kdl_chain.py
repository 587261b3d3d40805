"""The kinematics of an arm, and poses, as objects of KDL."""

from __future__ import annotations

from typing import Any

from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


def make_chain(kdl: Any, robot: Robot) -> Any:
    """Return an arm as a chain of KDL, from base_link to the TCP.

    A segment of KDL is a joint, followed by the placement of the next one.

    Args:
        kdl: The module PyKDL.
        robot: The arm.
    """
    first, *others = robot.placements
    chain = kdl.Chain()
    chain.addSegment(kdl.Segment(kdl.Joint(kdl.Joint.Fixed), make_frame(kdl, first)))
    for joint, placement in zip(robot.joints, others, strict=True):
        axis = kdl.Joint.TransZ if joint.kind == "prismatic" else kdl.Joint.RotZ
        chain.addSegment(kdl.Segment(kdl.Joint(axis), make_frame(kdl, placement)))
    return chain


def make_frame(kdl: Any, matrix: Array) -> Any:
    """Return a homogeneous matrix (4, 4) as a frame of KDL, which is the module PyKDL."""
    rotation = kdl.Rotation(*matrix[:3, :3].ravel().tolist())
    return kdl.Frame(rotation, kdl.Vector(*matrix[:3, 3].tolist()))
