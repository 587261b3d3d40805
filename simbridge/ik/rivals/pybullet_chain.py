"""The kinematics of an arm in a PyBullet of its own, without a window."""

from __future__ import annotations

import sys
from typing import Any

from simbridge.robot.kinematic_urdf import kinematic_urdf_file
from simbridge.robot.robot import Robot

# The package on the package index: there are no wheels of pybullet itself since Python 3.12.
PACKAGE = "pybullet" if sys.version_info < (3, 12) else "pybullet-arm64"


def load_chain(bullet: Any, robot: Robot) -> dict[str, int]:
    """Load an arm into a PyBullet of its own, which the caller disconnects.

    Args:
        bullet: The module pybullet.
        robot: The arm.

    Returns:
        The arm as arguments of PyBullet's inverse kinematics: simulation, body and link at the TCP.
    """
    client = bullet.connect(bullet.DIRECT)
    with kinematic_urdf_file(robot) as path:
        body = bullet.loadURDF(path, useFixedBase=True, physicsClientId=client)
    # The TCP is the last link of the URDF.
    tcp = bullet.getNumJoints(body, client) - 1
    return {"physicsClientId": client, "bodyUniqueId": body, "endEffectorLinkIndex": tcp}
