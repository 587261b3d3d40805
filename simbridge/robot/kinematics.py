"""Forward kinematics and Jacobians of a robot at many postures, in plain numpy.

The scalars of `chain.py` are columns over the samples here. The results agree bit for bit with the compiled solvers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import get_args

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from simbridge.robot import Task, chain
from simbridge.robot.pose import Array, Flags
from simbridge.robot.robot import Robot

# Columns of this length stay in the processor's cache.
_BLOCK = 2048
# From which a span is found.
POSTURES = 1000


def tool_path(robot: Robot, joints: ArrayLike) -> NDArray[np.float64]:
    """TCP poses (T, 7) in base_link at joint positions (T, n) in rad; the signs of the quaternions are continuous."""
    return tool_poses(robot.placements, robot.prismatic, joints)


def tool_speeds(robot: Robot, setpoints: Array, period: float) -> Array:
    """Speed of the TCP (T - 1,) in m/s between joint positions (T, n) one period apart."""
    points = tool_path(robot, setpoints)[:, :3]
    return np.linalg.norm(np.diff(points, axis=0), axis=1) / period


def tool_poses(placements: Array, prismatic: Flags, joints: ArrayLike) -> Array:
    """As `tool_path`, for a chain: placements (n + 1, 4, 4), the last one the tool's, and which joints slide (n,)."""
    q = np.asarray(joints, dtype=float)
    poses = np.empty((len(q), 7))
    for part, at in _frames(placements, prismatic, q):
        for i in range(3):
            poses[part, i] = at.position[i]
        poses[part, 3:] = _quaternions(
            [entry for row in at.rotation for entry in row], len(poses[part])
        )
    # The sign nearer to that of the sample before; of the first sample the one with positive w.
    turned = (
        np.concatenate([poses[:1, 6], np.einsum("ij,ij->i", poses[1:, 3:], poses[:-1, 3:])]) < 0.0
    )
    poses[:, 3:] *= np.cumprod(np.where(turned, -1.0, 1.0))[:, None]
    return poses


def tool_frame(robot: Robot, q: ArrayLike) -> pin.SE3:
    """The TCP in base_link at one posture q (n,)."""
    ((_, at),) = _frames(robot.placements, robot.prismatic, np.asarray(q, dtype=float)[None])
    return pin.SE3(np.array(at.rotation), np.array(at.position))


def joint_origins(placements: Array, prismatic: Flags, joints: ArrayLike) -> Array:
    """Origins (T, n, 3) in base_link, m, of the joints' frames at joint positions (T, n); placements (n + 1, 4, 4)."""
    q = np.asarray(joints, dtype=float)
    origins = np.empty((*q.shape, 3))
    for part, at in _frames(placements, prismatic, q):
        for j, (origin, axis) in enumerate(zip(at.origins, at.axes, strict=True)):
            for i in range(3):
                # The frame of a prismatic joint moves along with it.
                origins[part, j, i] = origin[i] + (axis[i] * q[part, j] if prismatic[j] else 0.0)
    return origins


def task_jacobians(placements: Array, prismatic: Flags, joints: ArrayLike, task: str) -> Array:
    """The Jacobians (T, m, n) of a task's m rows (see `chain.task_rows`), translation first, as for `tool_poses`."""
    q = np.asarray(joints, dtype=float)
    jacobians = np.empty((len(q), chain.TASK_ROWS[task], q.shape[1]))
    for part, at in _frames(placements, prismatic, q):
        for j, twist in enumerate(chain.jacobian(at, prismatic)):
            for i, entry in enumerate(chain.task_rows(at, twist, task)):
                jacobians[part, i, j] = entry
    return jacobians


def task_jacobian(robot: Robot, q: ArrayLike, task: str) -> Array:
    """The Jacobian (m, n) of a task's rows at one posture q (n,) of a robot: see `task_jacobians`."""
    return task_jacobians(robot.placements, robot.prismatic, np.asarray(q)[None], task)[0]


def movable_directions(placements: Array, prismatic: Flags, task: str) -> int:
    """In how many independent directions of a task some posture moves the tool: 2 of 3 for a planar arm's position."""
    postures = np.random.default_rng(0).uniform(-np.pi, np.pi, (8, len(prismatic)))
    found = task_jacobians(placements, prismatic, postures, task)
    return int(np.linalg.matrix_rank(np.concatenate(list(found), axis=1), tol=1e-9))


def cosines_and_sines(angles: Array) -> tuple[Array, Array]:
    """`chain.cosine_and_sine` of a column of angles (T,), rad."""
    small = np.abs(angles) < 1e5
    if not small.all():
        # Rare enough to be computed one by one.
        both = np.array([chain.cosine_and_sine(angle) for angle in angles.tolist()]).reshape(-1, 2)
        return both[:, 0], both[:, 1]
    quarters = (angles * 0.6366197723675814 + 6755399441055744.0) - 6755399441055744.0
    cosine, sine = chain.cosine_and_sine_of_remainder(angles, quarters)
    quadrant = quarters.astype(np.int64)
    odd = (quadrant & 1).astype(bool)
    a, b = np.where(odd, sine, cosine), np.where(odd, cosine, sine)
    return np.where((quadrant + 1) & 2, np.negative(a), a), np.where(
        quadrant & 2, np.negative(b), b
    )


def _frames(placements: Array, prismatic: Flags, q: Array) -> Iterator[tuple[slice, chain.Frames]]:
    """The frames at joint positions (T, n), block by block: of one sample with floats, of several with columns."""
    fixed = chain.exact_placements(placements).tolist()
    if len(q) == 1:
        yield slice(0, 1), chain.frames(fixed, prismatic, q[0].tolist(), chain.cosine_and_sine)
        return
    for first in range(0, len(q), _BLOCK):
        part = slice(first, first + _BLOCK)
        yield (
            part,
            chain.frames(
                fixed, prismatic, list(np.ascontiguousarray(q[part].T)), cosines_and_sines
            ),
        )


def _quaternions(rotation: list[chain.Scalar], count: int) -> Array:
    """Unit quaternions [x y z w] (T, 4) of rotation matrices given by their nine entries, row by row."""
    m = [np.broadcast_to(entry, count) for entry in rotation]
    # Divided by the largest component, so never by a small number.
    w2 = 1.0 + m[0] + m[4] + m[8]
    x2 = 1.0 + m[0] - m[4] - m[8]
    y2 = 1.0 - m[0] + m[4] - m[8]
    z2 = 1.0 - m[0] - m[4] + m[8]
    largest = [(w2 >= x2) & (w2 >= y2) & (w2 >= z2), (x2 >= y2) & (x2 >= z2), y2 >= z2]
    x, y, z, w = (
        np.select(largest, choices[:3], choices[3])
        for choices in (
            (m[7] - m[5], x2, m[1] + m[3], m[2] + m[6]),
            (m[2] - m[6], m[1] + m[3], y2, m[5] + m[7]),
            (m[3] - m[1], m[2] + m[6], m[5] + m[7], z2),
            (w2, m[7] - m[5], m[2] - m[6], m[3] - m[1]),
        )
    )
    return np.stack([x, y, z, w], axis=1) / np.sqrt(x * x + y * y + z * z + w * w)[:, None]


def restart_postures(robot: Robot, count: int) -> Array:
    """Postures (count, n) to restart a search from: always the same, spread over the joints' ranges.

    For a revolute joint at most one turn is used, around zero if it gets there; for an endless slide two metres.
    """
    limits = zip(robot.position_min, robot.position_max, robot.prismatic, strict=True)
    low, high = np.array([_used_range(*each) for each in limits]).T
    return np.random.default_rng(0).uniform(low, high, (count, robot.n))


def span(robot: Robot) -> float:
    """The largest distance of the flange from the vertical through the base, m, found by sampling; without the tool."""
    flange = tool_path(robot.with_tcp(pin.SE3.Identity()), restart_postures(robot, POSTURES))
    return float(np.hypot(flange[:, 0], flange[:, 1]).max())


def _used_range(least: float, most: float, slides: bool) -> tuple[float, float]:
    if slides:
        low = least if math.isfinite(least) else min(-1.0, most - 2.0)
        return low, most if math.isfinite(most) else max(1.0, low + 2.0)
    low, high = max(least, -math.pi), min(most, math.pi)
    if low <= high:
        return low, high
    # Wholly beyond half a turn.
    return (
        (least, min(most, least + 2.0 * math.pi))
        if least > 0.0
        else (max(least, most - 2.0 * math.pi), most)
    )


def task_directions(robot: Robot, task: str, rows: slice = slice(6)) -> tuple[int, int]:
    """The number of directions of a task (of these rows of it) that the tool can move in, overall and at a time."""
    jacobians = task_jacobians(robot.placements, robot.prismatic, restart_postures(robot, 8), task)[
        :, rows
    ]
    overall = np.linalg.matrix_rank(np.concatenate(list(jacobians), axis=1), tol=1e-9)
    return int(overall), int(np.linalg.matrix_rank(jacobians, tol=1e-9).max())


def controllable_task(robot: Robot) -> Task:
    """The robot's task, or as much of it as its joints control at a time: a whole pose needs six, unless in a plane."""
    tasks = get_args(Task)
    left = tasks[tasks.index(robot.task) :]
    return next((task for task in left if len(set(task_directions(robot, task))) == 1), robot.task)
