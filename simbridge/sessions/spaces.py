"""Differences of targets: of poses, along straight lines and shortest turns, and of joints."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.robot.pose import Array


class PoseSpace:
    """Poses (7,).

    A difference is a translation, m, and a rotation vector, rad (6,), both in base_link's axes.
    """

    def difference(self, begin: Array, end: Array) -> Array:
        """Return what leads from one value to another."""
        turn = pin.log3(_rotation(end) @ _rotation(begin).T)
        return np.concatenate([end[:3] - begin[:3], turn])

    def add(self, value: Array, difference: Array) -> Array:
        """Return the value to which a difference leads from this one."""
        turned = pin.Quaternion(pin.exp3(difference[3:]) @ _rotation(value)).coeffs()
        return np.concatenate([value[:3] + difference[:3], turned])

    def size(self, difference: Array) -> tuple[float, float]:
        """Return a difference as a distance, m, and an angle, rad."""
        return float(np.linalg.norm(difference[:3])), float(np.linalg.norm(difference[3:]))


class JointSpace:
    """Joint positions (n,), rad."""

    def difference(self, begin: Array, end: Array) -> Array:
        """Return what leads from one value to another (n,), rad."""
        return np.asarray(end - begin)

    def add(self, value: Array, difference: Array) -> Array:
        """Return the value to which a difference leads from this one."""
        return np.asarray(value + difference)

    def size(self, difference: Array) -> tuple[float, float]:
        """Return no distance, and the angle of the joint that differs most, rad."""
        return 0.0, float(np.abs(difference).max())


POSES = PoseSpace()
JOINTS = JointSpace()


def _rotation(pose: Array) -> Array:
    """Return the rotation matrix (3, 3) of a pose (7,)."""
    matrix: Array = pin.Quaternion(pose[3:]).matrix()
    return matrix
