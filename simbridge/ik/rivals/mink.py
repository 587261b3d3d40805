"""Mink: Pink's quadratic program on MuJoCo, with the settings of mink's `examples/arm_ur5e.py`.

An arm with more than six joints also has the posture task of `examples/arm_iiwa.py`
(github.com/kevinzakka/mink).
"""

from __future__ import annotations

from dataclasses import dataclass

import pinocchio as pin

from simbridge.ik.checks import NOT_NEGATIVE
from simbridge.ik.parameters import setting
from simbridge.ik.rivals.mujoco_chain import TCP, make_chain
from simbridge.ik.rivals.pink import ORIENTATION_COSTS
from simbridge.ik.rivals.rival import Rival, RivalParameters
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Number of directions of a pose; an arm with more joints is redundant.
TASK_DIRECTIONS = 6


@dataclass(frozen=True)
class MinkParameters(RivalParameters):
    """Settings of mink."""

    packages = (("mink", "mink"), ("mujoco", "mujoco"), ("daqp", "daqp"))
    lm_damping: float = setting(1.0, NOT_NEGATIVE)
    """Levenberg-Marquardt damping of the pose, in proportion to its squared error."""
    joint_damping: float = setting(1e-3, NOT_NEGATIVE)
    """Damping of every joint: the argument damping of mink.solve_ik."""
    posture_cost: float = setting(1e-2, NOT_NEGATIVE)
    """Cost of a radian away from the first joints, on an arm with more than six joints."""

    def build(self, robot: Robot) -> Mink:
        return Mink(robot, self)


class Mink(Rival):
    """Mink, with the QP solver daqp. Settings: see `MinkParameters`."""

    name = "mink"
    Parameters = MinkParameters
    velocity_limits = "enforced"

    def load_arm(self) -> None:
        mink = self.modules["mink"]
        self._mink = mink
        model = make_chain(self.modules["mujoco"], self.robot)
        self._configuration = mink.Configuration(model)

        # The limits of positions, which the model states, and of velocities, rad/s or m/s.
        speeds = dict(zip(self.robot.joint_names, self.robot.max_velocity.tolist(), strict=True))
        self._limits = [mink.ConfigurationLimit(model), mink.VelocityLimit(model, speeds)]

        # The pose of the TCP, with the costs of the example and its whole error to be removed (gain
        # 1). The TCP is a site of MuJoCo's model: a frame fixed to a body.
        self._pose = mink.FrameTask(
            TCP,
            frame_type="site",
            position_cost=1.0,
            orientation_cost=ORIENTATION_COSTS[self.task],
            gain=1.0,
            lm_damping=self.settings.lm_damping,
        )

        # A posture to stay near, for an arm whose pose leaves its joints free.
        self._posture = mink.PostureTask(model, self.settings.posture_cost)
        is_redundant = self.robot.n > TASK_DIRECTIONS
        self._tasks = [self._pose, self._posture] if is_redundant else [self._pose]

    def next_joints(self, q: Array, target: pin.SE3) -> Array:
        # Stay near the posture in which the present motion began.
        self._configuration.update(q)
        self._pose.set_target(self._mink.SE3.from_matrix(target.homogeneous))
        self._posture.set_target(self.start)

        # The joint velocities, rad/s or m/s, for one control period.
        velocity = self._mink.solve_ik(
            self._configuration,
            self._tasks,
            dt=self.period,
            solver="daqp",
            damping=self.settings.joint_damping,
            limits=self._limits,
        )
        return q + self.period * velocity
