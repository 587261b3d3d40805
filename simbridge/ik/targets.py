"""Checks and compares the inputs of solvers: targets and joint positions.

They are checked because compiled code does not check them. A task is the part of the target that a
solver is to attain:

    pose      position and rotation, six rows
    axis      position and the direction of the tool's z axis, five rows: the rotation about that
              axis is free
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

from simbridge.errors import InvalidChoice, InvalidParameter
from simbridge.robot import pose
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.conversion import floats
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

Target: TypeAlias = pin.SE3 | Array | Sequence[float]

MAX_JOINT = 1e6
"""The largest joint position, rad or m: beyond it, rounding would exceed the tolerances."""

# Largest distance of a target that is accepted, m: squares of larger ones would overflow.
MAX_DISTANCE = 1e100
# Smallest squared length of a quaternion that has a direction: below it, doubles lose their digits.
MIN_SQUARED_LENGTH = 1e-290
# One turn of a joint, rad.
TURN = 2.0 * math.pi

_POSE_NEEDS = (
    f"seven finite numbers x y z qx qy qz qw, at most {MAX_DISTANCE:g} m away and the quaternion "
    "not zero"
)
_TARGET_NEEDS = f"a pinocchio.SE3 or {_POSE_NEEDS}"
_SHAPE_NEEDS = "(T, 7): a row x y z qx qy qz qw for each target"


def as_pose(target: Target) -> Array:
    """Return a target as [x y z qx qy qz qw] (7,), read-only, its quaternion of unit length.

    Args:
        target: `pinocchio.SE3`, or [x y z qx qy qz qw].

    Raises:
        InvalidParameter: It is neither, or not finite, or farther away than 1e100 m, or its
            quaternion is zero.
    """
    if isinstance(target, pin.SE3):
        values = pin.SE3ToXYZQUAT(target)
    else:
        values = numbers("target", target, _TARGET_NEEDS).copy()
    if values.shape != (7,):
        raise InvalidParameter("target", target, _TARGET_NEEDS)

    # In plain Python: a dozen calls of numpy would take longer than an iteration of a solver.
    px, py, pz, x, y, z, w = values.tolist()
    square = x * x + y * y + z * z + w * w
    if px * px + py * py + pz * pz <= MAX_DISTANCE**2:
        if abs(square - 1.0) <= pose.ROUNDING:
            return _as_read_only(values)
        if MIN_SQUARED_LENGTH < square < np.inf:
            values[3:] = pose.normalize(values[3:])
            return _as_read_only(values)
    raise InvalidParameter("target", values.tolist(), _TARGET_NEEDS)


def as_poses(targets: Any) -> Array:
    """Return targets as a read-only array (T, 7) for compiled code.

    Their quaternions are of unit length. An array of floats that is contiguous and has such
    quaternions already is not copied: the result is a view of it.

    Args:
        targets: Rows [x y z qx qy qz qw].

    Raises:
        InvalidParameter: They are of another shape; or a target is not finite, or farther away than
            1e100 m, or its quaternion is zero.
    """
    values = numbers("array of targets", targets, f"of shape {_SHAPE_NEEDS}")
    values = np.ascontiguousarray(values)
    if values.ndim != 2 or values.shape[1] != 7:
        raise InvalidParameter("shape of the targets", values.shape, _SHAPE_NEEDS)

    # The squared lengths of the quaternions and of the positions.
    squares = np.einsum("ij,ij->i", values[:, 3:], values[:, 3:])
    square_distances = np.einsum("ij,ij->i", values[:, :3], values[:, :3])
    is_near = square_distances <= MAX_DISTANCE**2
    is_pose = is_near & (squares > MIN_SQUARED_LENGTH) & (squares < np.inf)
    wrong = np.flatnonzero(~is_pose)
    if len(wrong):
        sample = wrong[0]
        raise InvalidParameter(f"target at sample {sample}", values[sample].tolist(), _POSE_NEEDS)

    is_scaled = np.abs(squares - 1.0) > pose.ROUNDING
    if is_scaled.any():
        values = values.copy()
        values[is_scaled, 3:] = pose.normalize(values[is_scaled, 3:])
    return _as_read_only(values)


def _as_read_only(array: Array) -> Array:
    """Return the array, or a read-only view of it.

    A kernel is compiled for one type, and trajectories are read-only.
    """
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def as_joints(q: Any, n: int) -> Array:
    """Return a copy of joint positions (n,), rad.

    Raises:
        InvalidParameter: They are not n numbers, or not finite.
    """
    return check_joints("array of joint positions", q, n)


def check_joints(name: str, q: Any, n: int) -> Array:
    """Return a copy of joint positions (n,), rad.

    Args:
        name: Name of the joint positions in a message.
        q: The joint positions.
        n: The number of joints.

    Raises:
        InvalidParameter: They are not n finite numbers, or one is beyond `MAX_JOINT`.
    """
    needed = f"{n} finite numbers, none larger than {MAX_JOINT:g}"
    positions = numbers(name, q, needed).copy()
    if positions.shape != (n,):
        raise InvalidParameter(f"shape of the {name}", positions.shape, f"({n},): {needed}")
    if not all(abs(position) <= MAX_JOINT for position in positions.tolist()):
        raise InvalidParameter(name, positions.tolist(), needed)
    return positions


def numbers(name: str, values: Any, needed: str) -> Array:
    """Return an array of floats.

    Args:
        name: The name of the values in a message.
        values: Numbers, or nested sequences of them.
        needed: Description of valid values, for a message.

    Raises:
        InvalidParameter: The values are something else.
    """
    try:
        return floats(values)
    except ValueError:
        raise InvalidParameter(name, values, needed) from None


def wrap_into_limits(robot: Robot, near: Array, q: Array) -> bool:
    """Turn joints that are out of range by whole turns, to where they are in range.

    Args:
        robot: The arm, with the limits.
        near: Joint positions (n,), rad. Of the turns that bring a joint into its range, the one
            nearest to these is taken.
        q: Joint positions (n,), rad, which are changed.

    Returns:
        True if all joints are in range then.
    """
    low = robot.position_min
    high = robot.position_max

    # Floats, since a limit may be infinite.
    fewest_turns = np.ceil((low - q) / TURN)
    most_turns = np.floor((high - q) / TURN)
    turns = np.clip(np.rint((near - q) / TURN), fewest_turns, most_turns)

    is_inside = (low <= q) & (q <= high)
    is_turned = ~is_inside & ~robot.prismatic & (fewest_turns <= most_turns)
    q[is_turned] = np.clip(q + TURN * turns, low, high)[is_turned]
    return bool(np.all((low <= q) & (q <= high)))


def task_of(robot: Robot, name: str | None = None) -> str:
    """Return the task that a name stands for: the robot's own where the name is empty.

    Raises:
        InvalidChoice: No task has this name.
    """
    task = name or robot.task
    if task not in TASK_ROWS:
        raise InvalidChoice("task", task, list(TASK_ROWS))
    return task


def adopt_free_components(task: str, poses: ArrayLike, like: ArrayLike) -> Array:
    """Return poses in which everything that the task leaves free is taken from other poses.

    Their difference from those is the task's error.

    Args:
        task: "pose", "axis" or "position".
        poses: The targets (..., 7).
        like: The poses (..., 7) from which the free components are taken.
    """
    targets = np.asarray(poses, dtype=float)
    if task == "pose":
        return targets

    attained = np.asarray(like, dtype=float)
    out = targets.copy()
    if task == "position":
        out[..., 3:] = attained[..., 3:]
        return out

    # The turn from `like` to the pose, in the axes of `like`. Its part about z is free.
    turn = pose.multiply(pose.conjugate(attained[..., 3:]), targets[..., 3:])
    about_z = turn * np.array([0.0, 0.0, 1.0, 1.0])
    size = np.linalg.norm(about_z, axis=-1, keepdims=True)
    has_turn = size > 0.0
    about_z = np.where(has_turn, about_z / np.where(has_turn, size, 1.0), pose.IDENTITY[3:])
    out[..., 3:] = pose.multiply(targets[..., 3:], pose.conjugate(about_z))
    return out


def adopt_free_rotation(task: str, target: pin.SE3, like: pin.SE3) -> pin.SE3:
    """Return a target in which the rotation that the task leaves free is taken from another pose.

    The same as `adopt_free_components`, which takes far longer for a single pose.

    Args:
        task: "pose", "axis" or "position".
        target: The target.
        like: The pose from which the free rotation is taken.
    """
    if task == "pose":
        return target
    if task == "position":
        return pin.SE3(like.rotation, target.translation)

    # The shortest turn of `like` that brings its z axis onto that of the target turns nothing about
    # that axis.
    turn = pin.Quaternion.FromTwoVectors(like.rotation[:, 2], target.rotation[:, 2])
    return pin.SE3(turn.matrix() @ like.rotation, target.translation)


def residual(task: str, target: ArrayLike, attained: ArrayLike) -> tuple[float, float]:
    """Return remaining translation (m) and rotation (rad).

    They are those of the components that the task constrains.
    """
    translation, rotation = pose.error(adopt_free_components(task, target, attained), attained)
    return float(np.linalg.norm(translation)), float(np.linalg.norm(rotation))
