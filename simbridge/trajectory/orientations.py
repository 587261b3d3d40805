"""Tool orientations along a path.

Everything here raises InvalidParameter for a parameter out of its range, and InvalidTrajectory for
a quaternion that is not of unit length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.trajectory.parameters import direction, vector

# Below this sine of the angle between two axes, the direction of x is undefined.
MIN_SINE = 1e-6
# Nearer than this to the path, a point to look at has no direction, m.
MIN_DISTANCE = 1e-9


class Orientation(ABC):
    """A tool orientation for every position on a path."""

    @abstractmethod
    def of(self, positions: Array, tangents: Array) -> Array:
        """Return unit quaternions (K, 4), continuous in sign.

        Args:
            positions: Positions (K, 3), m.
            tangents: Unit tangents (K, 3) there.
        """


@dataclass(frozen=True)
class ConstantOrientation(Orientation):
    """One orientation for the whole path: a unit quaternion (4,) in base_link."""

    quaternion: ArrayLike

    def of(self, positions: Array, tangents: Array) -> Array:
        return np.tile(vector("orientation", self.quaternion, 4), (len(positions), 1))


@dataclass(frozen=True)
class PathTangent(Orientation):
    """The tool's x axis along the path, its z axis as close to `approach` as possible.

    `approach` (3,) is in base_link. A path that runs along it is InvalidParameter in use.
    """

    approach: ArrayLike = (0.0, 0.0, -1.0)

    def __post_init__(self) -> None:
        direction("approach", self.approach)

    def of(self, positions: Array, tangents: Array) -> Array:
        approach = direction("approach", self.approach)
        z = approach - (tangents @ approach)[:, None] * tangents

        if _shortest(tangents, z) < MIN_SINE:
            raise InvalidParameter(
                "approach", self.approach, "a direction that is nowhere parallel to the path"
            )
        return _quaternions_of_axes(tangents, z)


@dataclass(frozen=True)
class LookAt(Orientation):
    """The tool's z axis towards a point, its x axis as close to `upright` as possible.

    `point` (3,) is in base_link, m, and `upright` (3,) in its axes. A path through the point, or
    through its line along `upright`, is InvalidParameter in use.
    """

    point: ArrayLike
    upright: ArrayLike = (1.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        vector("point", self.point, 3)
        direction("upright", self.upright)

    def of(self, positions: Array, tangents: Array) -> Array:
        to_point = vector("point", self.point, 3) - positions
        distance = np.linalg.norm(to_point, axis=1, keepdims=True)
        if distance.min() < MIN_DISTANCE:
            raise InvalidParameter("point", self.point, "a point that is not on the path")
        z = to_point / distance

        upright = direction("upright", self.upright)
        x = upright - (z @ upright)[:, None] * z
        if _shortest(x, z) < MIN_SINE:
            needed = "a direction that is nowhere parallel to the line from the path to the point"
            raise InvalidParameter("upright", self.upright, needed)
        return _quaternions_of_axes(x, z)


def _shortest(x: Array, z: Array) -> float:
    """Return the smallest length of two sets of vectors (K, 3)."""
    return float(min(np.linalg.norm(axis, axis=1).min() for axis in (x, z)))


def _quaternions_of_axes(x: Array, z: Array) -> Array:
    """Return quaternions (K, 4) of the frames with these axes.

    Args:
        x: Vectors (K, 3), at right angles to z, of any length but zero.
        z: Vectors (K, 3), likewise.
    """
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    rotations = np.stack([x, np.cross(z, x), z], axis=2)
    return with_continuous_signs(
        np.array([pin.Quaternion(rotation).coeffs() for rotation in rotations])
    )


def with_continuous_signs(quaternions: Array) -> Array:
    """Return the same rotations (K, 4), with signs that make neighbours differ least."""
    sign_changes = np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0.0
    signs = np.where(np.cumsum(sign_changes) % 2, -1.0, 1.0)
    signs = np.concatenate([[1.0], signs])
    return pose.normalize(quaternions * signs[:, None])
