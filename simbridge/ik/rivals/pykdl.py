"""Orocos KDL's inverse kinematics by Levenberg-Marquardt, from the present joint positions.

It is ChainIkSolverPos_LMA (https://github.com/orocos/orocos_kinematics_dynamics) with its default
settings.
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
        kdl = self.modules["PyKDL"]
        self._kdl = kdl
        # The solver only refers to the chain, so the chain must be kept.
        chain = kdl.Chain()
        self._chain = chain

        # A segment of KDL is a joint, followed by the placement of the next one.
        first, *others = self.robot.placements
        chain.addSegment(kdl.Segment(kdl.Joint(kdl.Joint.Fixed), self._frame(first)))
        for joint, placement in zip(self.robot.joints, others, strict=True):
            axis = kdl.Joint.TransZ if joint.kind == "prismatic" else kdl.Joint.RotZ
            chain.addSegment(kdl.Segment(kdl.Joint(axis), self._frame(placement)))
        self._ik = kdl.ChainIkSolverPos_LMA(chain)

    def _frame(self, matrix: Array) -> Any:
        """Return a homogeneous matrix (4, 4) as a frame of KDL."""
        rotation = self._kdl.Rotation(*matrix[:3, :3].ravel().tolist())
        return self._kdl.Frame(rotation, self._kdl.Vector(*matrix[:3, 3].tolist()))

    def next_joints(self, q: Array, target: pin.SE3) -> Array | None:
        n = self.robot.n
        start = self._kdl.JntArray(n)
        for index, position in enumerate(q.tolist()):
            start[index] = position

        # KDL writes the solution into its argument, and returns 0 if it has found one.
        solution = self._kdl.JntArray(n)
        error_code = self._ik.CartToJnt(start, self._frame(target.homogeneous), solution)
        if error_code != 0:
            return None
        return np.array([solution[index] for index in range(n)])
