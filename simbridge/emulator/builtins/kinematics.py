"""URScript's functions of the arm's geometry and dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import Unreachable, frame_of, pose_of
from simbridge.emulator.builtins.arguments import as_list, as_pose, numbers
from simbridge.emulator.builtins.functions import Functions
from simbridge.emulator.urscript.values import Pose


class KinematicsFunctions(Functions):
    """Forward and inverse kinematics, Jacobian, mass matrix."""

    def do_get_forward_kin(self, _thread: Any, q: Any = None, tcp: Any = None) -> Pose:
        arm = self._controller.arm
        joints = self._state.actual_q if q is None else numbers("q", q, 6)
        if tcp is None:
            return as_pose(arm.pose(joints))
        flange = arm.tool(joints) * frame_of(arm.tcp).inverse()
        return as_pose(pose_of(flange * self._frame("tcp", tcp)))

    def do_get_inverse_kin(
        self, _thread: Any, x: Any, qnear: Any = None, maxPositionError: float = 1e-10,
        maxOrientationError: float = 1e-10, tcp: Any = None,
    ) -> list[float]:  # fmt: skip
        target = self._frame("x", x)
        arm = self._controller.arm
        if tcp is not None:
            target = target * self._frame("tcp", tcp).inverse() * frame_of(arm.tcp)
        near = self._state.actual_q if qnear is None else numbers("qnear", qnear, 6)
        return as_list(arm.any_joints(target, near))

    def do_get_inverse_kin_has_solution(self, _thread: Any, x: Any, *more: Any) -> bool:
        try:
            self.do_get_inverse_kin(_thread, x, *more)
        except Unreachable:
            return False
        return True

    def do_is_within_safety_limits(self, _thread: Any, q: Any) -> bool:
        robot = self._controller.robot
        try:
            joints = self._joints(q)
        except Unreachable:
            return False
        return bool((joints >= robot.position_min).all() and (joints <= robot.position_max).all())

    def do_get_jacobian(self, _thread: Any, q: Any = None, tcp: Any = None) -> list[list[float]]:
        joints = self._state.actual_q if q is None else numbers("q", q, 6)
        arm = self._controller.arm.snapshot()
        if tcp is not None:
            arm.set_tcp(pose_of(self._frame("tcp", tcp)))
        return [as_list(row) for row in arm.jacobian(joints)]

    def do_get_mass_matrix(
        self, _thread: Any, q: Any = None, include_rotors_inertia: bool = False
    ) -> list[list[float]]:
        joints = self._state.actual_q if q is None else numbers("q", q, 6)
        model = self._controller.robot.model
        mass = pin.crba(model, model.createData(), joints)
        return [as_list(row) for row in np.triu(mass) + np.triu(mass, 1).T]

    def do_get_coriolis_and_centrifugal_torques(self, _thread: Any, q: Any = None, qd: Any = None) -> list[float]:
        joints = self._state.actual_q if q is None else numbers("q", q, 6)
        speeds = self._state.actual_qd if qd is None else numbers("qd", qd, 6)
        model = self._controller.robot.model
        data = model.createData()
        return as_list(
            pin.nonLinearEffects(model, data, joints, speeds) - pin.computeGeneralizedGravity(model, data, joints)
        )
