"""PyBullet's `calculateInverseKinematics`: damped least squares, from the present joint positions.

It is called as the PyBullet Quickstart Guide (docs/pybullet_quickstartguide.pdf in Bullet's
repository, https://github.com/bulletphysics/bullet3) describes regular, not null-space, IK.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pinocchio as pin

from simbridge.ik.checks import POSITIVE, WHOLE
from simbridge.ik.parameters import setting
from simbridge.ik.rivals.pybullet_chain import PACKAGE, load_chain
from simbridge.ik.rivals.rival import Rival, RivalParameters
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class PybulletIKParameters(RivalParameters):
    """Settings of PyBullet's inverse kinematics; the defaults are PyBullet's."""

    packages = (("pybullet", PACKAGE),)
    extra = ""
    max_iterations: int = setting(20, WHOLE)
    """Largest number of iterations per control period."""
    residual: float = setting(1e-4, POSITIVE, unit="m")
    """Distance to the target at which the iterations end, m, whatever the rotation."""

    def build(self, robot: Robot) -> PybulletIK:
        return PybulletIK(robot, self)


class PybulletIK(Rival):
    """PyBullet's inverse kinematics. Settings: see `PybulletIKParameters`."""

    name = "pybullet-ik"
    Parameters = PybulletIKParameters
    tasks = ("pose", "position")

    def load_arm(self) -> None:
        bullet = self.modules["pybullet"]
        self._ik = partial(
            bullet.calculateInverseKinematics,
            maxNumIterations=self.settings.max_iterations,
            residualThreshold=self.settings.residual,
            **load_chain(bullet, self.robot, self),
        )

    def next_joints(self, q: Array, target: pin.SE3) -> Array:
        # Without a target orientation PyBullet attains the position only.
        pose = pin.SE3ToXYZQUAT(target).tolist()
        goal = {"targetPosition": pose[:3]}
        if self.task == "pose":
            goal["targetOrientation"] = pose[3:]
        return np.array(self._ik(currentPositions=q.tolist(), **goal))
