"""Orocos KDL's inverse kinematics by Levenberg-Marquardt, from the present joint positions.

It is ChainIkSolverPos_LMA (https://github.com/orocos/orocos_kinematics_dynamics) as it comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

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
        self._kdl = kdl = self.modules["PyKDL"]
        # The solver refers to the chain, and does not keep it.
        self._chain = chain = kdl.Chain()
        # A segment of KDL is a joint, then the placement of the next one.
        first, *others = self.robot.placements
        chain.addSegment(kdl.Segment(kdl.Joint(kdl.Joint.Fixed), self._frame(first)))
        for joint, placement in zip(self.robot.joints, others, strict=True):
            axis = kdl.Joint.TransZ if joint.kind == "prismatic" else kdl.Joint.RotZ
            chain.addSegment(kdl.Segment(kdl.Joint(axis), self._frame(placement)))
        self._ik = kdl.ChainIkSolverPos_LMA(chain)

    def _frame(self, matrix: Array) -> Any:
        rotation = self._kdl.Rotation(*matrix[:3, :3].ravel().tolist())
        return self._kdl.Frame(rotation, self._kdl.Vector(*matrix[:3, 3].tolist()))

    def next_joints(self, q: Array, target: pin.SE3) -> Array | None:
        start = self._kdl.JntArray(self.robot.n)
        solution = self._kdl.JntArray(self.robot.n)
        for index, position in enumerate(q.tolist()):
            start[index] = position
        error = self._ik.CartToJnt(start, self._frame(target.homogeneous), solution)
        return np.array([solution[index] for index in range(self.robot.n)]) if error == 0 else None
