"""URScript's built-in functions of kinematics and dynamics: poses of joints, joints of poses.

Angles in rad, lengths in m. `FunctionGroup` says where names, parameters and defaults come from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import Unreachable, frame_of, pose_of
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.urscript.arguments import as_list, as_pose, numbers
from simbridge.emulator.urscript.functions import FunctionGroup, Wait, script_function
from simbridge.emulator.urscript.values import Pose
from simbridge.robot.pose import Array

# Cost of an attempt of inverse kinematics, in units of a tick's budget.
ATTEMPT_COST = 4000
# Half of the time between the two Jacobians of a derivative, s.
DERIVATIVE_STEP_S = 1e-5

# Values of a parameter `tcp` that stand for the present TCP.
_ACTIVE_TCP = (None, "active_tcp")


class KinematicsFunctions(FunctionGroup):
    """Functions of the arm's kinematics and dynamics.

    Args:
        controller: The controller of the arm.
    """

    def __init__(self, controller: EmulatedController) -> None:
        self._controller = controller
        self._state = controller.state
        self._drive = controller.drive

    # Arguments

    def _joints(self, thread: Any, target: Any, near: Array) -> Wait:
        """Return joint positions (6,), rad, of a target.

        Args:
            thread: The calling thread, which is charged for the search.
            target: Joint positions; or a pose, for which those that are found first are returned.
            near: Joint positions (6,), rad, from which the search begins.
        """
        if isinstance(target, Pose):
            return (yield from self._inverse(thread, self._frame("pose", target), near))
        return numbers("joint positions", target, 6)

    def _inverse(self, thread: Any, target: pin.SE3, near: Array) -> Wait:
        """Return joint positions (6,), rad, at which the tool is at a frame; see `_joints`."""
        for joints in self._controller.arm.any_joints(target, near):
            yield from thread.work(ATTEMPT_COST)
            if joints is not None:
                return joints

    def _frame(self, name: str, target: Any) -> pin.SE3:
        """Return the frame of a pose, or of the tool at joint positions."""
        if not isinstance(target, Pose):
            return self._controller.arm.tool(numbers(name, target, 6))
        return frame_of(numbers(name, target, 6))

    def _q_or_actual(self, q: Any, name: str = "q") -> Array:
        """Return joint positions (6,), rad; by default the actual ones."""
        return self._state.actual_q if q is None else numbers(name, q, 6)

    def _qd_or_actual(self, qd: Any) -> Array:
        """Return joint velocities (6,), rad/s; by default the actual ones."""
        return self._state.actual_qd if qd is None else numbers("qd", qd, 6)

    # Forward and inverse kinematics

    @script_function
    def get_forward_kin(self, _thread: Any, q: Any = None, tcp: Any = None) -> Pose:
        arm = self._controller.arm
        joints = self._q_or_actual(q)
        if tcp in _ACTIVE_TCP:
            return as_pose(arm.pose(joints))
        flange = arm.tool(joints) * frame_of(arm.tcp).inverse()
        return as_pose(pose_of(flange * self._frame("tcp", tcp)))

    @script_function
    def get_inverse_kin(
        self,
        thread: Any,
        x: Any,
        qnear: Any = None,
        maxPositionError: float = 1e-10,
        maxOrientationError: float = 1e-10,
        tcp: Any = None,
    ) -> Wait:
        arm = self._controller.arm
        target = self._frame("x", x)
        if tcp not in _ACTIVE_TCP:
            target = target * self._frame("tcp", tcp).inverse() * frame_of(arm.tcp)
        joints = yield from self._inverse(thread, target, self._q_or_actual(qnear, "qnear"))
        return as_list(joints)

    @script_function
    def get_inverse_kin_has_solution(
        self,
        thread: Any,
        pose: Any,
        qnear: Any = None,
        maxPositionError: float = 1e-10,
        maxOrientationError: float = 1e-10,
        tcp: Any = None,
    ) -> Wait:
        try:
            yield from self.get_inverse_kin(
                thread, pose, qnear, maxPositionError, maxOrientationError, tcp
            )
        except Unreachable:
            return False
        return True

    @script_function
    def is_within_safety_limits(self, thread: Any, position: Any, qNear: Any = None) -> Wait:
        robot = self._controller.robot
        try:
            joints = yield from self._joints(thread, position, self._q_or_actual(qNear, "qNear"))
        except Unreachable:
            return False
        is_above = (joints >= robot.position_min).all()
        is_below = (joints <= robot.position_max).all()
        return bool(is_above and is_below)

    # Jacobian and dynamics

    @script_function
    def get_jacobian(self, _thread: Any, q: Any = None, tcp: Any = None) -> list[list[float]]:
        arm = self._controller.arm.snapshot()
        if tcp not in _ACTIVE_TCP:
            arm.set_tcp(pose_of(self._frame("tcp", tcp)))
        return [as_list(row) for row in arm.jacobian(self._q_or_actual(q))]

    @script_function
    def get_jacobian_time_derivative(
        self, thread: Any, q: Any = None, qd: Any = None, tcp: Any = None
    ) -> list[list[float]]:
        joints = self._q_or_actual(q)
        step = DERIVATIVE_STEP_S * self._qd_or_actual(qd)
        after = np.array(self.get_jacobian(thread, as_list(joints + step), tcp))
        before = np.array(self.get_jacobian(thread, as_list(joints - step), tcp))
        return [as_list(row) for row in (after - before) / (2.0 * DERIVATIVE_STEP_S)]

    @script_function
    def get_mass_matrix(
        self, _thread: Any, q: Any = None, include_rotors_inertia: bool = False
    ) -> list[list[float]]:
        model = self._controller.robot.model
        # pinocchio fills the upper triangle only.
        mass = pin.crba(model, model.createData(), self._q_or_actual(q))
        symmetric = np.triu(mass) + np.triu(mass, 1).T
        return [as_list(row) for row in symmetric]

    @script_function
    def get_coriolis_and_centrifugal_torques(
        self, _thread: Any, q: Any = None, qd: Any = None
    ) -> list[float]:
        joints = self._q_or_actual(q)
        velocities = self._qd_or_actual(qd)
        model = self._controller.robot.model
        data = model.createData()
        nonlinear = pin.nonLinearEffects(model, data, joints, velocities)
        return as_list(nonlinear - pin.computeGeneralizedGravity(model, data, joints))
