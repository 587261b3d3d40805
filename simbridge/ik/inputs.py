"""Checks of targets and joint positions, for all solvers: compiled code does not check them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.robot.pose import Array

Target: TypeAlias = pin.SE3 | Array | Sequence[float]

# Beyond these, squares would overflow (m), and rounding would exceed the tolerances (rad, or m of a slide).
_FARTHEST, _FARTHEST_JOINT = 1e100, 1e6
# The squared length from which a quaternion has a direction; below, doubles lose their digits.
_LEAST = 1e-290
_POSE = f"seven finite numbers x y z qx qy qz qw, at most {_FARTHEST:g} m away and the quaternion not zero"
_TARGET = f"a pinocchio.SE3 or {_POSE}"
_SHAPE = "(T, 7): a row x y z qx qy qz qw for each target"


def as_pose(target: Target) -> Array:
    """A target, given as `pinocchio.SE3` or as [x y z qx qy qz qw], as the latter (7,), read-only, of unit length.

    Raises:
        InvalidParameter: It is neither, or not finite, or its quaternion is zero.
    """
    given = pin.SE3ToXYZQUAT(target) if isinstance(target, pin.SE3) else _numbers("target", target, _TARGET).copy()
    if given.shape == (7,):
        # In plain Python: a dozen calls of numpy would take longer than an iteration of a solver.
        px, py, pz, x, y, z, w = given.tolist()
        length = x * x + y * y + z * z + w * w
        if px * px + py * py + pz * pz <= _FARTHEST**2:
            if abs(length - 1.0) <= pose.ROUNDING:
                return _read_only(given)
            if _LEAST < length < np.inf:
                given[3:] = pose.normalized(given[3:])
                return _read_only(given)
        target = given.tolist()
    raise InvalidParameter("target", target, _TARGET)


def as_poses(targets: Any) -> Array:
    """Targets [x y z qx qy qz qw] (T, 7), of unit length, as a read-only array for compiled code; not copied if they
    are one already.

    Raises:
        InvalidParameter: They are of another shape, or one is not finite, or its quaternion is zero.
    """
    given = np.ascontiguousarray(_numbers("array of targets", targets, f"of shape {_SHAPE}"))
    if given.ndim != 2 or given.shape[1] != 7:
        raise InvalidParameter("shape of the targets", given.shape, _SHAPE)
    poses = given
    # In blocks, so that temporary arrays stay small compared with the result.
    for first in range(0, len(given), pose.BLOCK):
        positions, quaternions = np.split(given[first : first + pose.BLOCK], [3], axis=1)
        near = np.einsum("ij,ij->i", positions, positions) <= _FARTHEST**2
        length = np.einsum("ij,ij->i", quaternions, quaternions)
        others = np.flatnonzero(~(near & (np.abs(length - 1.0) <= pose.ROUNDING)))
        if not len(others):
            continue
        wrong = others[~(near & (length > _LEAST) & (length < np.inf))[others]]
        if len(wrong):
            row = first + int(wrong[0])
            raise InvalidParameter(f"target at sample {row}", given[row].tolist(), _POSE)
        if poses is given:
            poses = given.copy()
        poses[first + others, 3:] = pose.normalized(quaternions[others])
    return _read_only(poses)


def _read_only(array: Array) -> Array:
    """The array, or a read-only view of it: a kernel is compiled for one type, and trajectories are read-only."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def as_joints(q: Any, n: int) -> Array:
    """A copy of joint positions (n,), rad.

    Raises:
        InvalidParameter: They are not n numbers, or not finite.
    """
    needed = f"{n} finite numbers, none beyond {_FARTHEST_JOINT:g}"
    positions = _numbers("array of joint positions", q, needed).copy()
    if positions.shape != (n,):
        raise InvalidParameter("shape of the joint positions", positions.shape, f"({n},): {needed}")
    if not all(abs(position) <= _FARTHEST_JOINT for position in positions.tolist()):
        raise InvalidParameter("array of joint positions", positions.tolist(), needed)
    return positions


def _numbers(name: str, given: Any, needed: str) -> Array:
    try:
        return np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(name, given, needed) from None
