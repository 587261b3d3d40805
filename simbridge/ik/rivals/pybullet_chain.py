"""Loads the kinematics of an arm into a separate PyBullet simulation, without a window."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from simbridge.robot.kinematic_urdf import kinematic_urdf_file
from simbridge.robot.robot import Robot

# Name of the package on the package index, which has no wheels of pybullet since Python 3.12.
PACKAGE = "pybullet" if sys.version_info < (3, 12) else "pybullet-arm64"


def load_chain(bullet: Any, robot: Robot, owner: object) -> dict[str, int]:
    """Load an arm into a new PyBullet simulation.

    Args:
        bullet: The module pybullet.
        robot: The arm.
        owner: The object that uses the simulation, which ends when the object is deleted.

    Returns:
        Simulation, body and link at the TCP, as named arguments of PyBullet's inverse kinematics.
    """
    client = bullet.connect(bullet.DIRECT)
    weakref.finalize(owner, bullet.disconnect, client)
    with kinematic_urdf_file(robot) as path:
        body = bullet.loadURDF(path, useFixedBase=True, physicsClientId=client)
    # The TCP is the last link of the URDF.
    tcp = bullet.getNumJoints(body, client) - 1
    return {"physicsClientId": client, "bodyUniqueId": body, "endEffectorLinkIndex": tcp}
