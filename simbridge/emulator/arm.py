"""Kinematics as a UR controller speaks of them: poses of the TCP in the pendant's base, rotation vectors.

It is pinocchio's: what the solvers of `simbridge.ik` compile would take most of the emulator's start.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import pinocchio as pin

from simbridge.errors import SimbridgeError
from simbridge.ik.targets import wrap_into_limits
from simbridge.robot.kinematics import restart_postures
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# base_link is the pendant's base turned by half a turn about z.
_TURN = pin.SE3(np.diag([-1.0, -1.0, 1.0]), np.zeros(3))
# Inverse kinematics by damped least squares (Levenberg and Marquardt, damped by the error as Sugihara has it).
_TOLERANCE = 1e-9  # m and rad, together
_DAMPING, _DAMPING_BY_ERROR = 1e-9, 0.05
_LARGEST_STEP = 0.5  # rad
_ITERATIONS, _CHECKED = 60, 10  # at most; and after how many the squared error must have halved
_RESTARTS = 60
_UNIT = np.eye(6)


class Unreachable(SimbridgeError, ValueError):
    """No joint positions put the tool at its target."""


def pose_of(frame: pin.SE3) -> Array:
    """x y z rx ry rz (6,) of a frame."""
    return np.concatenate([frame.translation, pin.log3(frame.rotation)])


def frame_of(pose: Array) -> pin.SE3:
    """The frame of x y z rx ry rz (6,)."""
    return pin.SE3(pin.exp3(np.asarray(pose[3:], dtype=float)), np.asarray(pose[:3], dtype=float))


class Arm:
    """A robot with a TCP that programs may move; the robot's own is ignored."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._model = robot.model
        self._data = self._model.createData()
        self._flange = self._model.getFrameId("tool0")
        self.set_tcp(np.zeros(6))

    def set_tcp(self, pose: Array) -> None:
        """Put the TCP at x y z rx ry rz (6,) in the flange."""
        self.tcp = np.array(pose, dtype=float)
        self._tcp = frame_of(self.tcp)

    def snapshot(self) -> Arm:
        """The arm with the present TCP, whatever TCP this one gets later."""
        return copy.copy(self)

    def tool(self, q: Array) -> pin.SE3:
        """The TCP in the pendant's base at joint positions q (n,), rad."""
        pin.forwardKinematics(self._model, self._data, q)
        return _TURN * pin.updateFramePlacement(self._model, self._data, self._flange) * self._tcp

    def pose(self, q: Array) -> Array:
        """The same as x y z rx ry rz (6,)."""
        return pose_of(self.tool(q))

    def jacobian(self, q: Array) -> Array:
        """Of the TCP in the pendant's base (6, n), translation first."""
        flange = self._flange_jacobian(q)
        turned = (_TURN * self._data.oMf[self._flange] * self._tcp).rotation
        at_tcp = self._tcp.toActionMatrixInverse() @ flange
        return np.vstack([turned @ at_tcp[:3], turned @ at_tcp[3:]])

    def _flange_jacobian(self, q: Array) -> Array:
        """Of the flange in its own frame (6, n); the flange's placement is up to date then."""
        pin.computeJointJacobians(self._model, self._data, q)
        pin.updateFramePlacement(self._model, self._data, self._flange)
        jacobian: Array = pin.getFrameJacobian(self._model, self._data, self._flange, pin.LOCAL)
        return jacobian

    def joints(self, target: pin.SE3, near: Array) -> Array:
        """Joint positions (n,) that put the TCP at a target in the pendant's base, near others; else Unreachable."""
        q, distance, angle, found = self._search(target, near)
        if not found:
            away = f"{distance * 1e3:.1f} mm and {np.degrees(angle):.2f} degrees"
            raise Unreachable(f"the joints stay {away} away from the tool's target")
        return q

    def _search(self, target: pin.SE3, near: Array) -> tuple[Array, float, float, bool]:
        """Joint positions (n,), how far they leave the flange from its target, m and rad, and whether it is there."""
        flange, q = _TURN.actInv(target) * self._tcp.inverse(), np.array(near, dtype=float)
        before = np.inf
        for i in range(_ITERATIONS + 1):
            jacobian = self._flange_jacobian(q)
            error = pin.log6(self._data.oMf[self._flange].actInv(flange)).vector
            square = float(error @ error)
            if square < _TOLERANCE**2 or i == _ITERATIONS:
                break
            if i % _CHECKED == 0:
                if square > 0.5 * before:
                    break
                before = square
            damped = jacobian @ jacobian.T + (_DAMPING + _DAMPING_BY_ERROR * square) * _UNIT
            step = jacobian.T @ np.linalg.solve(damped, error)
            q += step * (_LARGEST_STEP / max(_LARGEST_STEP, float(np.abs(step).max())))
        distance, angle = float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))
        return q, distance, angle, distance <= _TOLERANCE and angle <= _TOLERANCE

    def any_joints(self, target: pin.SE3, near: Array) -> Iterator[Array | None]:
        """Search joint positions (n,) for a target anywhere, the first that are found when nothing near fits.

        Yields:
            None after each attempt that finds none, which takes about half a millisecond; at last the joints.

        Raises:
            Unreachable: None were found within the joint limits.
        """
        robot, nearest = self._robot, np.inf
        for start in (near, *restart_postures(robot, _RESTARTS)):
            q, distance, _, found = self._search(target, start)
            nearest = min(nearest, distance)
            if found and wrap_into_limits(robot, near, q):
                yield q
                return
            yield None
        raise Unreachable(f"no joint positions put the tool there; the nearest stay {nearest * 1e3:.1f} mm away")
