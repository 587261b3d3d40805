"""Orocos KDL's inverse kinematics by Levenberg-Marquardt, from the present joint positions.

It is ChainIkSolverPos_LMA (https://github.com/orocos/orocos_kinematics_dynamics) with its default
settings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from simbridge.ik.rivals.kdl_chain import make_chain, make_frame
from simbridge.ik.rivals.rival import Rival, RivalParameters
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class PyKDLParameters(RivalParameters):
    """KDL's solver has no settings but its task."""

    packages = (("PyKDL", "python3-pykdl"),)
    extra = ""
    command = "sudo apt install python3-pykdl, and python3 -m venv --system-site-packages"

    def build(self, robot: Robot) -> PyKDL:
        return PyKDL(robot, self)


class PyKDL(Rival):
    """KDL's solver."""

    name = "pykdl"
    Parameters = PyKDLParameters
    tasks = ("pose",)

    def load_arm(self) -> None:
        self._kdl = self.modules["PyKDL"]
        # The solver only refers to the chain, so the chain must be kept.
        self._chain = make_chain(self._kdl, self.robot)
        self._ik = self._kdl.ChainIkSolverPos_LMA(self._chain)

    def next_joints(self, q: Array, target: pin.SE3) -> Array | None:
        n = self.robot.n
        start = self._kdl.JntArray(n)
        for index, position in enumerate(q.tolist()):
            start[index] = position

        goal = make_frame(self._kdl, target.homogeneous)
        # KDL writes the solution into its argument, and returns 0 if it has found one.
        solution = self._kdl.JntArray(n)
        error_code = self._ik.CartToJnt(start, goal, solution)
        if error_code != 0:
            return None
        return np.array([solution[index] for index in range(n)])
