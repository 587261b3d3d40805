"""Forward kinematics and Jacobians of a robot at many postures, in plain numpy.

The scalars of `chain.py` are columns over the samples here. The results agree bit for bit with the
compiled solvers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from simbridge.robot import chain
from simbridge.robot.pose import Array, Flags
from simbridge.robot.robot import Robot

# Number of samples that are computed at once: columns of this length stay in the processor's cache.
BLOCK_LENGTH = 2048


def tool_path(robot: Robot, joints: ArrayLike) -> NDArray[np.float64]:
    """Return the TCP's poses in base_link.

    Args:
        robot: The arm.
        joints: Joint positions (T, n), rad.

    Returns:
        Poses (T, 7); the signs of the quaternions are continuous.
    """
    return tool_poses(robot.placements, robot.prismatic, joints)


def tool_speeds(robot: Robot, setpoints: Array, period: float) -> Array:
    """Return the speed of the TCP between joint positions that are one period apart.

    Args:
        robot: The arm.
        setpoints: Joint positions (T, n), rad.
        period: Control period, s.

    Returns:
        Speeds (T - 1,), m/s.
    """
    points = tool_path(robot, setpoints)[:, :3]
    return np.linalg.norm(np.diff(points, axis=0), axis=1) / period


def tool_poses(placements: Array, prismatic: Flags, joints: ArrayLike) -> Array:
    """Return the tool's poses in base_link, for a chain.

    Args:
        placements: The chain (n + 1, 4, 4), the last one the tool's.
        prismatic: Which joints slide (n,).
        joints: Joint positions (T, n), rad.

    Returns:
        Poses (T, 7); the signs of the quaternions are continuous.
    """
    q = np.asarray(joints, dtype=float)
    poses = np.empty((len(q), 7))
    for block, posture in _frames(placements, prismatic, q):
        for i in range(3):
            poses[block, i] = posture.position[i]
        entries = [entry for row in posture.rotation for entry in row]
        poses[block, 3:] = _quaternions(entries, len(poses[block]))

    # A quaternion and its negative are one rotation. Choose the one nearer to the sample before;
    # for the first sample, the one with a positive w. A sample that is flipped against the one
    # before flips all samples after it, too.
    cosines = np.einsum("ij,ij->i", poses[1:, 3:], poses[:-1, 3:])
    is_flipped = np.concatenate([poses[:1, 6], cosines]) < 0.0
    signs = np.cumprod(np.where(is_flipped, -1.0, 1.0))
    poses[:, 3:] *= signs[:, None]
    return poses


def tool_frame(robot: Robot, q: ArrayLike) -> pin.SE3:
    """Return the TCP in base_link at one posture q (n,)."""
    joints = np.asarray(q, dtype=float)[None]
    _, posture = next(_frames(robot.placements, robot.prismatic, joints))
    return pin.SE3(np.array(posture.rotation), np.array(posture.position))


def joint_origins(placements: Array, prismatic: Flags, joints: ArrayLike) -> Array:
    """Return the origins (T, n, 3) of the joints' frames in base_link, m.

    Args:
        placements: The chain (n + 1, 4, 4).
        prismatic: Which joints slide (n,).
        joints: Joint positions (T, n), rad or m.
    """
    q = np.asarray(joints, dtype=float)
    origins = np.empty((*q.shape, 3))
    for block, posture in _frames(placements, prismatic, q):
        for j, (origin, axis) in enumerate(zip(posture.origins, posture.axes, strict=True)):
            for i in range(3):
                # The frame of a prismatic joint moves along with it.
                slide = axis[i] * q[block, j] if prismatic[j] else 0.0
                origins[block, j, i] = origin[i] + slide
    return origins


def task_jacobians(placements: Array, prismatic: Flags, joints: ArrayLike, task: str) -> Array:
    """Return the Jacobians (T, m, n) of a task's m rows, translation first.

    Args:
        placements: The chain (n + 1, 4, 4), the last one the tool's.
        prismatic: Which joints slide (n,).
        joints: Joint positions (T, n), rad or m.
        task: Name of the task: see `chain.task_rows`.
    """
    q = np.asarray(joints, dtype=float)
    jacobians = np.empty((len(q), chain.TASK_ROWS[task], q.shape[1]))
    for block, posture in _frames(placements, prismatic, q):
        for j, twist in enumerate(chain.jacobian(posture, prismatic)):
            for i, entry in enumerate(chain.task_rows(posture, twist, task)):
                jacobians[block, i, j] = entry
    return jacobians


def task_jacobian(robot: Robot, q: ArrayLike, task: str) -> Array:
    """Return the Jacobian (m, n) of a task's rows at one posture q (n,); see `task_jacobians`."""
    return task_jacobians(robot.placements, robot.prismatic, np.asarray(q)[None], task)[0]


def cosines_and_sines(angles: Array) -> tuple[Array, Array]:
    """Return `chain.cosine_and_sine` of a column of angles (T,), rad."""
    is_reducible = np.abs(angles) < chain.MAX_REDUCED_ANGLE
    if not is_reducible.all():
        # Rare enough to be computed one by one.
        pairs = [chain.cosine_and_sine(angle) for angle in angles.tolist()]
        columns = np.array(pairs).reshape(-1, 2)
        return columns[:, 0], columns[:, 1]

    # These are the operations for a single angle, in the same order.
    shift = chain.WHOLE_NUMBER_SHIFT
    quarters = (angles * chain.QUARTERS_PER_RADIAN + shift) - shift
    cosine: Array
    sine: Array
    cosine, sine = chain.cosine_and_sine_of_remainder(angles, quarters)

    # A quarter turn makes the one the other; signs follow the quadrant.
    quadrant = quarters.astype(np.int64)
    is_odd = (quadrant & 1).astype(bool)
    cosines = np.where(is_odd, sine, cosine)
    sines = np.where(is_odd, cosine, sine)
    cosines = np.where((quadrant + 1) & 2, -cosines, cosines)
    sines = np.where(quadrant & 2, -sines, sines)
    return cosines, sines


def _frames(placements: Array, prismatic: Flags, q: Array) -> Iterator[tuple[slice, chain.Frames]]:
    """Iterate over blocks of samples and their frames.

    The frames of a single sample are of floats, those of several of columns.

    Args:
        placements: The chain (n + 1, 4, 4).
        prismatic: Which joints slide (n,).
        q: Joint positions (T, n), rad or m.
    """
    fixed = chain.exact_placements(placements).tolist()
    if len(q) == 1:
        yield slice(0, 1), chain.frames(fixed, prismatic, q[0].tolist(), chain.cosine_and_sine)
        return
    for first in range(0, len(q), BLOCK_LENGTH):
        block = slice(first, first + BLOCK_LENGTH)
        columns = list(np.ascontiguousarray(q[block].T))
        yield block, chain.frames(fixed, prismatic, columns, cosines_and_sines)


def _quaternions(rotation: list[chain.Scalar], count: int) -> Array:
    """Return the unit quaternions [x y z w] (T, 4) of rotation matrices.

    Args:
        rotation: The nine entries of the matrices, row by row, each a number or (T,).
        count: T.
    """
    m = [np.broadcast_to(entry, count) for entry in rotation]
    # Four times the square of each component.
    w2 = 1.0 + m[0] + m[4] + m[8]
    x2 = 1.0 + m[0] - m[4] - m[8]
    y2 = 1.0 - m[0] + m[4] - m[8]
    z2 = 1.0 - m[0] - m[4] + m[8]

    # Each column is the quaternion times a component; the largest of the components w, x, y and z
    # is chosen, so that it is never scaled by a small number.
    w_is_largest = (w2 >= x2) & (w2 >= y2) & (w2 >= z2)
    x_is_largest = (x2 >= y2) & (x2 >= z2)
    y_is_largest = y2 >= z2
    largest = [w_is_largest, x_is_largest, y_is_largest]
    x = np.select(largest, (m[7] - m[5], x2, m[1] + m[3]), m[2] + m[6])
    y = np.select(largest, (m[2] - m[6], m[1] + m[3], y2), m[5] + m[7])
    z = np.select(largest, (m[3] - m[1], m[2] + m[6], m[5] + m[7]), z2)
    w = np.select(largest, (w2, m[7] - m[5], m[2] - m[6]), m[3] - m[1])
    return np.stack([x, y, z, w], axis=1) / np.sqrt(x * x + y * y + z * z + w * w)[:, None]
