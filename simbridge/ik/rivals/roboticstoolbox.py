"""Robotics Toolbox for Python: Levenberg-Marquardt in C++, from the present joint positions.

It is called as its page on inverse kinematics
(https://petercorke.github.io/robotics-toolbox-python/IK/ik.html) describes the fast solver
`ik_LM`, with its defaults: up to 100 searches of 30 iterations, the first from the present joint
positions and the others from random ones; solutions beyond the joint limits are rejected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from simbridge.ik.checks import POSITIVE
from simbridge.ik.parameters import setting
from simbridge.ik.rivals.rival import Rival, RivalParameters
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class RoboticsToolboxParameters(RivalParameters):
    """Settings of the toolbox's solver; the default is the toolbox's."""

    packages = (("roboticstoolbox", "roboticstoolbox-python"),)
    extra = "roboticstoolbox"
    tolerance: float = setting(1e-6, POSITIVE)
    """Half the squared error (m and rad together) at which a pose counts as attained."""

    def build(self, robot: Robot) -> RoboticsToolbox:
        return RoboticsToolbox(robot, self)


class RoboticsToolbox(Rival):
    """The toolbox's fast solver. Settings: see `RoboticsToolboxParameters`."""

    name = "roboticstoolbox"
    Parameters = RoboticsToolboxParameters
    tasks = ("pose",)

    def load_arm(self) -> None:
        toolbox = self.modules["roboticstoolbox"]
        first, *others = self.robot.placements
        chain = toolbox.ET.SE3(first)
        for joint, placement in zip(self.robot.joints, others, strict=True):
            limits = (joint.position_min, joint.position_max)
            axis = toolbox.ET.tz if joint.kind == "prismatic" else toolbox.ET.Rz
            chain = chain * axis(qlim=limits) * toolbox.ET.SE3(placement)
        self._chain = chain

    def next_joints(self, q: Array, target: pin.SE3) -> Array | None:
        solution = self._chain.ik_LM(target.homogeneous, q0=q, tol=self.settings.tolerance)
        return np.array(solution.q) if solution.success else None
