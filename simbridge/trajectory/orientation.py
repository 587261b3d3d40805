"""Tool orientations along a path: constant, along the path, or towards a point."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.trajectory.checks import direction, vector

# The tool's z axis points along -z of base_link.
TOOL_DOWN = np.array([math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0])
TOOL_DOWN.setflags(write=False)

# With a smaller angle (its sine) between two axes the direction of x is undefined.
_PARALLEL = 1e-6


class Orientation(ABC):
    """A tool orientation for every position on a path."""

    @abstractmethod
    def of(self, positions: Array, tangents: Array) -> Array:
        """Unit quaternions (K, 4), continuous in sign, at positions (K, 3) in m with unit tangents (K, 3)."""


@dataclass(frozen=True)
class ConstantOrientation(Orientation):
    """One orientation for the whole path.

    Attributes:
        quaternion: (4,), of unit length, in base_link.
    """

    quaternion: ArrayLike

    def of(self, positions: Array, tangents: Array) -> Array:
        one = vector("orientation", self.quaternion, 4)
        return np.tile(one, (len(positions), 1))


@dataclass(frozen=True)
class PathTangent(Orientation):
    """The tool's x axis along the path, its z axis as close to `approach` as possible.

    Attributes:
        approach: (3,) in base_link, of any length; straight down by default.

    Raises:
        InvalidParameter: `approach` is not a direction; or, in use, the path runs along it.
    """

    approach: ArrayLike = (0.0, 0.0, -1.0)

    def __post_init__(self) -> None:
        direction("approach", self.approach)

    def of(self, positions: Array, tangents: Array) -> Array:
        approach = direction("approach", self.approach)
        z = approach - (tangents @ approach)[:, None] * tangents
        return _frames(tangents, z, "approach", self.approach, "nowhere along the path")


@dataclass(frozen=True)
class LookAt(Orientation):
    """The tool's z axis towards a point, its x axis as close to `upright` as possible.

    Attributes:
        point: (3,) in m, from base_link.
        upright: (3,) in base_link, of any length.

    Raises:
        InvalidParameter: One of them is not three finite numbers; or, in use, the path passes through the point or
            through its line along `upright`.
    """

    point: ArrayLike
    upright: ArrayLike = (1.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        vector("point", self.point, 3)
        direction("upright", self.upright)

    def of(self, positions: Array, tangents: Array) -> Array:
        away = vector("point", self.point, 3) - positions
        distance = np.linalg.norm(away, axis=1, keepdims=True)
        if distance.min() < 1e-9:
            raise InvalidParameter("point", self.point, "a point that is not on the path")
        z = away / distance
        upright = direction("upright", self.upright)
        x = upright - (z @ upright)[:, None] * z
        return _frames(x, z, "upright", self.upright, "nowhere along the line from the path to the point")


def _frames(x: Array, z: Array, name: str, given: ArrayLike, needed: str) -> Array:
    """Quaternions of the frames with these x and z axes, which are perpendicular and of any length."""
    lengths = [np.linalg.norm(axis, axis=1, keepdims=True) for axis in (x, z)]
    if min(length.min() for length in lengths) < _PARALLEL:
        raise InvalidParameter(name, given, needed)
    x, z = x / lengths[0], z / lengths[1]
    rotations = np.stack([x, np.cross(z, x), z], axis=2)
    return continuous(np.array([pin.Quaternion(rotation).coeffs() for rotation in rotations]))


def continuous(quaternions: Array) -> Array:
    """The same rotations (K, 4) with continuous signs."""
    turns = np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0.0
    signs = np.concatenate([[1.0], np.where(np.cumsum(turns) % 2, -1.0, 1.0)])
    return pose.normalized(quaternions * signs[:, None])
