"""Pink: a quadratic program for the joint velocity, within limits of position and velocity.

Tasks, costs, damping and QP solver are those of `examples/arm_ur5.py` in Pink's repository
(https://github.com/stephane-caron/pink), which moves a UR5 along a path; limits are those that
`pink.solve_ik` has by default: positions and velocities.
"""

from __future__ import annotations

from dataclasses import dataclass

import pinocchio as pin

from simbridge.ik.checks import NOT_NEGATIVE
from simbridge.ik.parameters import setting
from simbridge.ik.rivals.frame_task import FrameTaskParameters
from simbridge.ik.rivals.rival import Rival
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class PinkParameters(FrameTaskParameters):
    """Settings of Pink."""

    packages = (("pink", "pin-pink"), ("daqp", "daqp"))
    posture_cost: float = setting(1e-3, NOT_NEGATIVE)
    """Cost of a radian away from the first joints, where a metre or radian at the tool costs 1."""

    def build(self, robot: Robot) -> Pink:
        return Pink(robot, self)


class Pink(Rival):
    """Pink, with the QP solver daqp. Settings: see `PinkParameters`."""

    name = "pink"
    Parameters = PinkParameters
    velocity_limits = "enforced"

    def load_arm(self) -> None:
        self._pink = self.modules["pink"]
        # Pink adds attributes to the model that it is given.
        model = self.robot.model.copy()
        self._configuration = self._pink.Configuration(model, model.createData(), self.robot.home)
        self._pose = self._pink.FrameTask("tcp", **self.settings.costs)
        self._posture = self._pink.PostureTask(cost=self.settings.posture_cost)

    def next_joints(self, q: Array, target: pin.SE3) -> Array:
        self._configuration.update(q)
        self._pose.set_target(target)
        self._posture.set_target(self.start)
        tasks = (self._pose, self._posture)
        velocity = self._pink.solve_ik(self._configuration, tasks, self.period, solver="daqp")
        return q + velocity * self.period
