"""The emulated arm: kinematics as a UR controller speaks of them.

Poses are of the TCP in the pendant's base, as rotation vectors. The kinematics are pinocchio's:
what the solvers of `simbridge.ik` compile would take most of the emulator's start.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.errors import SimbridgeError
from simbridge.ik.targets import wrap_into_limits
from simbridge.robot.pose import Array
from simbridge.robot.postures import restart_postures
from simbridge.robot.robot import Robot

# base_link is the pendant's base turned by half a turn about z.
BASE_TURN = pin.SE3(np.diag([-1.0, -1.0, 1.0]), np.zeros(3))

# Inverse kinematics by damped least squares (Levenberg-Marquardt, damped by the error as Sugihara
# proposes).
# Largest remaining error of a solution, m and rad together.
TOLERANCE = 1e-9
DAMPING = 1e-9
# Damping for each unit of the squared error.
DAMPING_BY_ERROR = 0.05
# Largest step of a joint, rad.
LARGEST_STEP = 0.5
MAX_ITERATIONS = 60
# Iterations in which the squared error must at least halve.
PROGRESS_ITERATIONS = 10
# Number of further postures from which a target is searched for.
RESTARTS = 60

# Damping of the joint speeds for a twist: they are finite at singularities.
TWIST_DAMPING = 1e-8


class Unreachable(SimbridgeError, ValueError):
    """No joint positions put the tool at its target."""


class Placement(NamedTuple):
    """The present candidate of a search for joint positions.

    Attributes:
        q: Joint positions (n,), rad.
        distance: Distance from the flange to its target, m.
        angle: Angle between the flange and its target, rad.
    """

    q: Array
    distance: float
    angle: float

    @property
    def is_at_target(self) -> bool:
        """True if the flange is at its target, within the tolerances."""
        return self.distance <= TOLERANCE and self.angle <= TOLERANCE


def pose_of(frame: pin.SE3) -> Array:
    """Return x y z rx ry rz (6,) of a frame, m and rad."""
    return np.concatenate([frame.translation, pin.log3(frame.rotation)])


def frame_of(pose: Array) -> pin.SE3:
    """Return the frame of x y z rx ry rz (6,), m and rad."""
    rotation = pin.exp3(np.asarray(pose[3:], dtype=float))
    return pin.SE3(rotation, np.asarray(pose[:3], dtype=float))


class EmulatedArm:
    """A robot with a TCP that programs may move; the robot's own is ignored.

    Args:
        robot: The robot, of which the model and the joints' limits are used.

    Attributes:
        tcp: x y z rx ry rz (6,) of the TCP in the flange, m and rad.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._model = robot.model
        self._data = self._model.createData()
        # Id of the flange's frame.
        self._flange = self._model.getFrameId("tool0")
        self.set_tcp(np.zeros(6))

    def set_tcp(self, pose: Array) -> None:
        """Put the TCP at x y z rx ry rz (6,) in the flange, m and rad."""
        self.tcp = np.array(pose, dtype=float)
        self._tcp = frame_of(self.tcp)

    def snapshot(self) -> EmulatedArm:
        """Return the arm with the present TCP, whatever TCP this one gets later."""
        return copy.copy(self)

    def tool(self, q: Array) -> pin.SE3:
        """Return the TCP in the pendant's base at joint positions q (n,), rad."""
        pin.forwardKinematics(self._model, self._data, q)
        flange = pin.updateFramePlacement(self._model, self._data, self._flange)
        return BASE_TURN * flange * self._tcp

    def pose(self, q: Array) -> Array:
        """Return x y z rx ry rz (6,) of the TCP in the pendant's base, m and rad.

        Args:
            q: Joint positions (n,), rad.
        """
        return pose_of(self.tool(q))

    def jacobian(self, q: Array) -> Array:
        """Return the Jacobian (6, n) of the TCP in the pendant's base, translation first.

        Args:
            q: Joint positions (n,), rad.
        """
        flange_jacobian = self._flange_jacobian(q)
        at_tcp = self._tcp.toActionMatrixInverse() @ flange_jacobian

        tool = BASE_TURN * self._data.oMf[self._flange] * self._tcp
        rotation = tool.rotation
        return np.vstack([rotation @ at_tcp[:3], rotation @ at_tcp[3:]])

    def joint_speeds(self, q: Array, twist: Array, damping: float = TWIST_DAMPING) -> Array:
        """Return the joint speeds (n,), rad/s, that move the tool by a twist.

        Args:
            q: Joint positions (n,), rad.
            twist: Twist of the TCP in the pendant's base (6,), m/s and rad/s.
            damping: Keeps the speeds finite at singularities.
        """
        jacobian = self.jacobian(q)
        damped = jacobian @ jacobian.T + damping * np.eye(6)
        speeds: Array = jacobian.T @ np.linalg.solve(damped, twist)
        return speeds

    def _flange_jacobian(self, q: Array) -> Array:
        """Return the Jacobian (6, n) of the flange in its own frame, and update its placement."""
        pin.computeJointJacobians(self._model, self._data, q)
        pin.updateFramePlacement(self._model, self._data, self._flange)
        jacobian: Array = pin.getFrameJacobian(self._model, self._data, self._flange, pin.LOCAL)
        return jacobian

    def joints(self, target: pin.SE3, near: Array) -> Array:
        """Return joint positions (n,), rad, that put the TCP at a target.

        Args:
            target: Pose of the TCP in the pendant's base.
            near: Joint positions (n,), rad, from which the search begins.

        Raises:
            Unreachable: The search does not attain the target.
        """
        placement = self._search(target, near)
        if not placement.is_at_target:
            distance = f"{placement.distance * 1e3:.1f} mm"
            angle = f"{np.degrees(placement.angle):.2f} degrees"
            raise Unreachable(f"the joints stay {distance} and {angle} away from the tool's target")
        return placement.q

    def _search(self, target: pin.SE3, near: Array) -> Placement:
        """Search for joint positions that attain a target, by damped least squares.

        Args:
            target: Pose of the TCP in the pendant's base.
            near: Joint positions (n,), rad, from which the search begins.

        Returns:
            The last joint positions, and the distance and angle that remain.
        """
        flange_target = BASE_TURN.actInv(target) * self._tcp.inverse()
        q = np.array(near, dtype=float)

        square_before = np.inf
        for i in range(MAX_ITERATIONS + 1):
            jacobian = self._flange_jacobian(q)
            error = pin.log6(self._data.oMf[self._flange].actInv(flange_target)).vector
            square = float(error @ error)
            if square < TOLERANCE**2 or i == MAX_ITERATIONS:
                break

            # Give up if some iterations have not halved the square of the error.
            if i % PROGRESS_ITERATIONS == 0:
                if square > 0.5 * square_before:
                    break
                square_before = square

            # The damping shrinks with the error, as in the method of Levenberg and Marquardt; the
            # step is shortened to the largest one.
            damping = DAMPING + DAMPING_BY_ERROR * square
            damped = jacobian @ jacobian.T + damping * np.eye(6)
            step = jacobian.T @ np.linalg.solve(damped, error)
            q += step * (LARGEST_STEP / max(LARGEST_STEP, float(np.abs(step).max())))

        distance = float(np.linalg.norm(error[:3]))
        angle = float(np.linalg.norm(error[3:]))
        return Placement(q, distance, angle)

    def any_joints(self, target: pin.SE3, near: Array) -> Iterator[Array | None]:
        """Search for joint positions that attain a target, starting from several postures.

        Args:
            target: Pose of the TCP in the pendant's base.
            near: Joint positions (n,), rad, from which the search begins.

        Yields:
            None after each failed attempt, which takes about half a millisecond; finally the joint
            positions (n,), rad, of the first success.

        Raises:
            Unreachable: No joint positions were found within the joint limits.
        """
        nearest_distance = np.inf
        for start in (near, *restart_postures(self._robot, RESTARTS)):
            placement = self._search(target, start)
            nearest_distance = min(nearest_distance, placement.distance)
            q = placement.q
            if placement.is_at_target and wrap_into_limits(self._robot, near, q):
                yield q
                return
            yield None

        raise Unreachable(
            "no joint positions put the tool there; the closest are "
            f"{nearest_distance * 1e3:.1f} mm away"
        )
