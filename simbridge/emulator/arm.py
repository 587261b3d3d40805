"""Kinematics as a UR controller speaks of them: poses of the TCP in the pendant's base, rotation vectors."""

from __future__ import annotations

import copy

import numpy as np
import pinocchio as pin

from simbridge.errors import SimbridgeError
from simbridge.ik.forward_dynamics import ForwardDynamics, Twin
from simbridge.robot.kinematics import task_jacobian, tool_frame
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# base_link is the pendant's base turned by half a turn about z.
_TURN = np.diag([-1.0, -1.0, 1.0])
# Next to nothing: on a calibrated arm the joints' frames, and with them these masses, may be hundreds of metres away.
_LIGHT = Twin(link_mass=1e-12, link_inertia=1e-9)
_TOLERANCE = (1e-9, 1e-9)


class Unreachable(SimbridgeError, ValueError):
    """No joint positions put the tool at its target."""


def pose_of(frame: pin.SE3) -> Array:
    """x y z rx ry rz (6,) of a frame."""
    return np.concatenate([frame.translation, pin.log3(frame.rotation)])


def frame_of(pose: Array) -> pin.SE3:
    """The frame of x y z rx ry rz (6,)."""
    return pin.SE3(pin.exp3(np.asarray(pose[3:], dtype=float)), np.asarray(pose[:3], dtype=float))


class Arm:
    """A robot with a TCP that programs may move.

    Args:
        robot: The arm; its own TCP is ignored.
    """

    def __init__(self, robot: Robot) -> None:
        self._bare = robot.with_tcp(pin.SE3.Identity())
        self.set_tcp(np.zeros(6))

    def set_tcp(self, pose: Array) -> None:
        """Put the TCP at x y z rx ry rz (6,) in the flange."""
        self.tcp = np.array(pose, dtype=float)
        self._robot = self._bare.with_tcp(frame_of(self.tcp))
        self._solver = ForwardDynamics(self._robot, twin=_LIGHT)

    def snapshot(self) -> Arm:
        """The arm with the present TCP, whatever TCP this one gets later."""
        return copy.copy(self)

    def tool(self, q: Array) -> pin.SE3:
        """The TCP in the pendant's base at joint positions q (n,), rad."""
        frame = tool_frame(self._robot, q)
        return pin.SE3(_TURN @ frame.rotation, _TURN @ frame.translation)

    def pose(self, q: Array) -> Array:
        """The same as x y z rx ry rz (6,)."""
        return pose_of(self.tool(q))

    def jacobian(self, q: Array) -> Array:
        """Of the TCP in the pendant's base (6, n), translation first."""
        jacobian = task_jacobian(self._robot, q, "pose")
        return np.vstack([_TURN @ jacobian[:3], _TURN @ jacobian[3:]])

    def joints(self, target: pin.SE3, near: Array) -> Array:
        """Joint positions (n,) that put the TCP at a target in the pendant's base, found from nearby ones.

        Raises:
            Unreachable: There are none near.
        """
        frame = pin.SE3(_TURN @ target.rotation, _TURN @ target.translation)
        found = self._solver.solve_near(frame, near, _TOLERANCE)
        if not found.converged:
            away = f"{found.distance * 1e3:.1f} mm and {np.degrees(found.angle):.2f} degrees"
            raise Unreachable(f"the joints stay {away} away from the tool's target")
        return found.q

    def any_joints(self, target: pin.SE3, near: Array) -> Array:
        """Joint positions (n,) for a target anywhere, the first that are found when nothing near fits.

        Raises:
            Unreachable: None were found within the joint limits.
        """
        try:
            found = self.joints(target, near)
            if (found >= self._robot.position_min).all() and (found <= self._robot.position_max).all():
                return found
        except Unreachable:
            pass
        frame = pin.SE3(_TURN @ target.rotation, _TURN @ target.translation)
        solution = self._solver.solve(frame, near)
        if not solution.converged:
            raise Unreachable(
                f"no joint positions put the tool there; the nearest stay {solution.distance * 1e3:.1f} mm away"
            )
        return solution.q
