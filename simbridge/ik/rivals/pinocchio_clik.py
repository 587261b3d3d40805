"""CLIK, as `examples/inverse-kinematics.py` of github.com/stack-of-tasks/pinocchio shows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from simbridge.ik.checks import POSITIVE, WHOLE
from simbridge.ik.parameters import setting
from simbridge.ik.rivals.rival import Rival, RivalParameters
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class PinocchioClikParameters(RivalParameters):
    """Settings of Pinocchio's CLIK; the defaults are those of the example."""

    max_iterations: int = setting(1000, WHOLE)
    """Largest number of iterations per control period."""
    step: float = setting(0.1, POSITIVE)
    """Part of the error that an iteration removes."""
    tolerance: float = setting(1e-4, POSITIVE)
    """Error at which the iterations end: the norm of its metres and radians together."""

    def build(self, robot: Robot) -> PinocchioClik:
        return PinocchioClik(robot, self)


class PinocchioClik(Rival):
    """Closed-loop inverse kinematics of the TCP. Settings: see `PinocchioClikParameters`."""

    name = "pinocchio-clik"
    Parameters = PinocchioClikParameters
    tasks = ("pose",)

    def load_arm(self) -> None:
        self._model = self.robot.model
        self._data = self._model.createData()
        self._tcp = self._model.getFrameId("tcp")

    def next_joints(self, q: Array, target: pin.SE3) -> Array | None:
        for _ in range(self.settings.max_iterations):
            # The error is the twist (6,) that takes the tool to the target, in the tool's frame.
            pin.framesForwardKinematics(self._model, self._data, q)
            offset = self._data.oMf[self._tcp].actInv(target)
            error = pin.log(offset).vector
            if np.linalg.norm(error) < self.settings.tolerance:
                return q

            # Minus the derivative of the error with respect to the joints (6, n).
            tool_jacobian = pin.computeFrameJacobian(self._model, self._data, q, self._tcp)
            jacobian = pin.Jlog6(offset.inverse()) @ tool_jacobian
            # The damped least-squares step, of which only a part is taken.
            damped_gram = jacobian @ jacobian.T + 1e-12 * np.eye(6)
            full_step = jacobian.T @ np.linalg.solve(damped_gram, error)
            q = pin.integrate(self._model, q, full_step * self.settings.step)
        return None
