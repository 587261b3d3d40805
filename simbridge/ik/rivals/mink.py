"""Mink, as `examples/arm_ur5e.py` and `arm_iiwa.py` of github.com/kevinzakka/mink call it."""

from __future__ import annotations

from dataclasses import dataclass

import pinocchio as pin

from simbridge.ik.checks import NOT_NEGATIVE
from simbridge.ik.parameters import setting
from simbridge.ik.rivals.frame_task import FrameTaskParameters
from simbridge.ik.rivals.mujoco_chain import TCP, make_chain
from simbridge.ik.rivals.rival import Rival
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class MinkParameters(FrameTaskParameters):
    """Settings of mink."""

    packages = (("mink", "mink"), ("mujoco", "mujoco"), ("daqp", "daqp"))
    joint_damping: float = setting(1e-3, NOT_NEGATIVE)
    """Damping of every joint: the argument damping of mink.solve_ik."""
    posture_cost: float = setting(1e-2, NOT_NEGATIVE)
    """Cost of a radian away from the first joints, on an arm with more than six joints."""

    def build(self, robot: Robot) -> Mink:
        return Mink(robot, self)


class Mink(Rival):
    """Pink's quadratic program on MuJoCo, with the QP solver daqp. Settings: `MinkParameters`."""

    name = "mink"
    Parameters = MinkParameters
    velocity_limits = "enforced"

    def load_arm(self) -> None:
        self._mink = self.modules["mink"]
        model = make_chain(self.modules["mujoco"], self.robot)
        self._configuration = self._mink.Configuration(model)
        speeds = dict(zip(self.robot.joint_names, self.robot.max_velocity.tolist(), strict=True))
        limits = [self._mink.ConfigurationLimit(model), self._mink.VelocityLimit(model, speeds)]
        self._options = {"damping": self.settings.joint_damping, "limits": limits}

        self._pose = self._mink.FrameTask(TCP, frame_type="site", **self.settings.costs)
        self._posture = self._mink.PostureTask(model, self.settings.posture_cost)
        is_redundant = self.robot.n > TASK_ROWS["pose"]
        self._tasks = [self._pose, self._posture] if is_redundant else [self._pose]

    def next_joints(self, q: Array, target: pin.SE3) -> Array:
        self._configuration.update(q)
        self._pose.set_target(self._mink.SE3.from_matrix(target.homogeneous))
        self._posture.set_target(self.start)
        velocity = self._mink.solve_ik(
            self._configuration, self._tasks, dt=self.period, solver="daqp", **self._options
        )
        return q + self.period * velocity
