"""The two spaces in which targets are given, poses and joint positions: differences, and motions along them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pinocchio as pin

from simbridge.robot.pose import Array


class Space(Protocol):
    """A space of values (m,) with differences (k,) between them."""

    def difference(self, begin: Array, end: Array) -> Array:
        """What leads from one value to another (k,)."""
        ...

    def moved(self, value: Array, by: Array) -> Array:
        """The value to which a difference leads from this one."""
        ...

    def size(self, difference: Array) -> tuple[float, float]:
        """A difference as a distance, m, and an angle, rad."""
        ...


class PoseSpace:
    """Poses (7,); a difference is a translation, m, and a rotation vector, rad (6,), both in base_link's axes."""

    def difference(self, begin: Array, end: Array) -> Array:
        """See `Space`."""
        turn = pin.log3(_rotation(end) @ _rotation(begin).T)
        return np.concatenate([end[:3] - begin[:3], turn])

    def moved(self, value: Array, by: Array) -> Array:
        """See `Space`."""
        turned = pin.Quaternion(pin.exp3(by[3:]) @ _rotation(value)).coeffs()
        return np.concatenate([value[:3] + by[:3], turned])

    def size(self, difference: Array) -> tuple[float, float]:
        """See `Space`."""
        return float(np.linalg.norm(difference[:3])), float(np.linalg.norm(difference[3:]))


class JointSpace:
    """Joint positions (n,), rad."""

    def difference(self, begin: Array, end: Array) -> Array:
        """See `Space`."""
        return np.asarray(end - begin)

    def moved(self, value: Array, by: Array) -> Array:
        """See `Space`."""
        return np.asarray(value + by)

    def size(self, difference: Array) -> tuple[float, float]:
        """See `Space`; the angle is that of the joint that differs most."""
        return 0.0, float(np.abs(difference).max())


POSES, JOINTS = PoseSpace(), JointSpace()


def _rotation(pose: Array) -> Array:
    matrix: Array = pin.Quaternion(pose[3:]).matrix()
    return matrix
