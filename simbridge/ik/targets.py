"""What solvers are given, targets and joint positions: checked, since compiled code does not check them, and compared.

A task is the part of the target that a solver is to attain:

    pose      position and rotation, six rows
    axis      position and the direction of the tool's z axis, five rows: the rotation about that axis is free
    position  position, three rows

An arm with more joints than its task has rows is redundant: it can move in the null space.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter, UnknownName
from simbridge.robot import pose
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.conversion import floats
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

Target: TypeAlias = pin.SE3 | Array | Sequence[float]

# Beyond this, m, squares would overflow.
_FARTHEST = 1e100
MAX_JOINT = 1e6
"""The largest joint position, rad, or m of a slide: beyond it, rounding would exceed the tolerances."""
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
    given = (
        pin.SE3ToXYZQUAT(target)
        if isinstance(target, pin.SE3)
        else numbers("target", target, _TARGET).copy()
    )
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
    given = np.ascontiguousarray(numbers("array of targets", targets, f"of shape {_SHAPE}"))
    if given.ndim != 2 or given.shape[1] != 7:
        raise InvalidParameter("shape of the targets", given.shape, _SHAPE)
    length = np.einsum("ij,ij->i", given[:, 3:], given[:, 3:])
    near = np.einsum("ij,ij->i", given[:, :3], given[:, :3]) <= _FARTHEST**2
    wrong = np.flatnonzero(~(near & (length > _LEAST) & (length < np.inf)))
    if len(wrong):
        raise InvalidParameter(f"target at sample {wrong[0]}", given[wrong[0]].tolist(), _POSE)
    others = np.abs(length - 1.0) > pose.ROUNDING
    if others.any():
        given = given.copy()
        given[others, 3:] = pose.normalized(given[others, 3:])
    return _read_only(given)


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
    return checked_joints("array of joint positions", q, n)


def checked_joints(name: str, q: Any, n: int) -> Array:
    """A copy of joint positions (n,), rad, which a message calls by this name.

    Raises:
        InvalidParameter: They are not n finite numbers, or one is beyond `MAX_JOINT`.
    """
    needed = f"{n} finite numbers, none beyond {MAX_JOINT:g}"
    positions = numbers(name, q, needed).copy()
    if positions.shape != (n,):
        raise InvalidParameter(f"shape of the {name}", positions.shape, f"({n},): {needed}")
    if not all(abs(position) <= MAX_JOINT for position in positions.tolist()):
        raise InvalidParameter(name, positions.tolist(), needed)
    return positions


def numbers(name: str, given: Any, needed: str) -> Array:
    """An array of floats; InvalidParameter, with what is needed, for anything else."""
    try:
        return floats(given)
    except ValueError:
        raise InvalidParameter(name, given, needed) from None


def wrap_into_limits(robot: Robot, near: Array, q: Array) -> bool:
    """Turn joints q (n,) that are out of range by whole turns, in place, to where they are in range and nearest to
    `near`; returns whether all are in range then."""
    low, high = robot.position_min, robot.position_max
    whole = 2.0 * math.pi
    # Floats, since a limit may be infinite.
    first, last = np.ceil((low - q) / whole), np.floor((high - q) / whole)
    turns = np.clip(np.rint((near - q) / whole), first, last)
    wrapped = ~((low <= q) & (q <= high)) & ~robot.prismatic & (first <= last)
    q[wrapped] = np.clip(q + whole * turns, low, high)[wrapped]
    return bool(np.all((low <= q) & (q <= high)))


def task_of(robot: Robot, name: str | None = None) -> str:
    """The task of that name, or the robot's own.

    Raises:
        UnknownName: There is no such task.
    """
    task = name or robot.task
    if task not in TASK_ROWS:
        raise UnknownName("task", task, TASK_ROWS)
    return task


def freed(task: str, poses: ArrayLike, like: ArrayLike) -> Array:
    """Poses (..., 7) in which everything that the task leaves free is taken from the poses `like`: their difference
    from `like` is the task's error."""
    wanted, other = np.asarray(poses, dtype=float), np.asarray(like, dtype=float)
    if task == "pose":
        return wanted
    out = wanted.copy()
    if task == "position":
        out[..., 3:] = other[..., 3:]
        return out
    z = np.array([0.0, 0.0, 1.0])
    # Of the turn from `like` to the pose, in the axes of `like`, that part which is about z is free.
    turn = pose.multiply(pose.conjugate(other[..., 3:]), wanted[..., 3:])
    about_z = turn * np.concatenate([0.0 * z[:2], np.ones(2)])
    size = np.linalg.norm(about_z, axis=-1, keepdims=True)
    about_z = np.where(size > 0.0, about_z / np.where(size > 0.0, size, 1.0), pose.IDENTITY[3:])
    out[..., 3:] = pose.multiply(wanted[..., 3:], pose.conjugate(about_z))
    return out


def residual(task: str, target: ArrayLike, attained: ArrayLike) -> tuple[float, float]:
    """Remaining translation (m) and rotation (rad), in the components that the task constrains."""
    translation, rotation = pose.error(freed(task, target, attained), attained)
    return float(np.linalg.norm(translation)), float(np.linalg.norm(rotation))
