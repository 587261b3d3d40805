"""Closed forms for compiled code: all joint positions of a UR arm, or of a planar arm of two links, for one target.

Joint angles are those of the standard table (Hawkins, Analytic inverse kinematics for the UR-5/UR-10, 2013). The
triangle of upper arm and forearm is solved by the law of cosines in its half-angle form, which stays accurate where the
arm is stretched or folded. Singular configurations are recorded as bits: WRIST, SHOULDER, and ELBOW of
`workspace_boundary.py`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from simbridge.ik.kernels.compile import Kernel, kernel
from simbridge.ik.kernels.dense import aim
from simbridge.ik.kernels.module import module_text
from simbridge.ik.workspace_boundary import (
    FOLD,
    FREE,
    SLACK,
    elbow,
    in_plane,
    pan_within_rounding,
    reachable_turn,
    turn_within_rounding,
)
from simbridge.robot.pose import Array, Counts, Flags

WRIST, SHOULDER = 1, 4
MAX_BRANCHES = 8

_TURN = 2.0 * math.pi


class Kernels(NamedTuple):
    """The compiled functions `branches` and `follow`."""

    branches: Kernel
    follow: Kernel


@lru_cache(maxsize=1)
def kernels() -> Kernels:
    """The compiled functions, the same for every arm."""
    text = module_text(branches, follow)
    return Kernels(kernel(text, "branches", "closed-form solver"), kernel(text, "follow", "closed-form solver"))


class Buffers(NamedTuple):
    """Arrays of the search for branches.

    Attributes:
        out: Solutions (8, n), nearest first.
        notes: The singularities of each (8,).
        goal: The target without base and tool (3, 4).
        q: The current solution (n,).
        bends: Both postures of two links (2, 2).
        wanted: The target: position (3) and rotation matrix (9).
        turned: Its rotation without the tool (3, 3).
        unit: The target, of unit length (7,).
        shift: (3,), m.
    """

    out: Array
    notes: Counts
    goal: Array
    q: Array
    bends: Array
    wanted: Array
    turned: Array
    unit: Array
    shift: Array


def allocate_buffers(out: Array, notes: Counts) -> Buffers:
    """Buffers around the arrays for solutions and their singularities."""
    return Buffers(
        out,
        notes,
        np.zeros((3, 4)),
        np.zeros(out.shape[1]),
        np.zeros((2, 2)),
        np.zeros(12),
        np.zeros((3, 3)),
        np.zeros(7),
        np.zeros(3),
    )


def accept(flags: int, joints: Array, near: Array, k: int, buffers: Buffers) -> int:
    """Insert the table angles `buffers.q` among the k nearest rows of `buffers.out`, unless they are beyond joint
    limits.

    Args:
        joints: Of a `Structure`.
        near: Joint positions (n,), rad: each joint is turned by whole turns to where it is nearest.
    """
    q, out, notes = buffers.q, buffers.out, buffers.notes
    n = near.shape[0]
    cost = 0.0
    for i in range(n):
        angle = q[i] - joints[0, i]
        angle += _TURN * np.rint((near[i] - angle) / _TURN)
        low, high = joints[1, i], joints[2, i]
        if angle > high + SLACK:
            angle -= _TURN * math.ceil((angle - high - SLACK) / _TURN)
        elif angle < low - SLACK:
            angle += _TURN * math.ceil((low - SLACK - angle) / _TURN)
        if not low - SLACK <= angle <= high + SLACK:
            return k
        q[i] = min(max(angle, low), high)
        cost += (q[i] - near[i]) ** 2
    place = k
    while place > 0:
        other = 0.0
        for i in range(n):
            other += (out[place - 1, i] - near[i]) ** 2
        if other <= cost:
            break
        for i in range(n):
            out[place, i] = out[place - 1, i]
        notes[place] = notes[place - 1]
        place -= 1
    for i in range(n):
        out[place, i] = q[i]
    notes[place] = flags
    return k + 1


def ur_branches(lengths: Array, joints: Array, near: Array, slack: float, at_boundary: bool, buffers: Buffers) -> int:
    """The number of solutions for `buffers.goal`: the last joint's frame, turned by its angle.

    Args:
        at_boundary: Turn the pan and wrist 3 within rounding, so that the arm reaches.
    """
    goal, q, bends = buffers.goal, buffers.q, buffers.bends
    a2, a3, d4, d5 = lengths[0], lengths[1], lengths[2], lengths[3]
    px, py, pz = goal[0, 3], goal[1, 3], goal[2, 3]
    k = 0
    # The wrist's distance from the pan axis is the hypotenuse over d4.
    r = math.sqrt(px * px + py * py)
    if r < abs(d4) - slack:
        return 0
    ahead = math.sqrt(max(0.0, (r - abs(d4)) * (r + abs(d4))))
    pan_folds = ahead < FOLD
    for side in range(2):
        # Rounding may put a stretched arm out of reach on one of the two coinciding sides.
        if pan_folds and k > 0:
            break
        forward = ahead if side == 0 else -ahead
        exact = near[0] + joints[0, 0] if r < FREE else math.atan2(py, px) + math.atan2(d4, forward)
        flips = 2
        for flip in range(2):
            if flip == flips:
                break
            pan = pan_within_rounding(lengths, goal, exact, forward, flip) if at_boundary else exact
            xx, xy, xz, yx, yy, yz, zz, wx = in_plane(goal, pan)
            sine = math.sqrt(xz * xz + yz * yz)
            wrist_2 = math.atan2(sine if flip == 0 else -sine, zz)
            flags = SHOULDER if pan_folds else 0
            if sine < FREE:
                flips = 1
                flags |= WRIST
                wrist_2 = 0.0 if zz > 0.0 else math.pi
                wrist_3 = near[5] + joints[0, 5]
            elif flip == 0:
                wrist_3 = math.atan2(-yz, xz)
            else:
                wrist_3 = math.atan2(yz, -xz)
            if sine < FREE or at_boundary:
                s6, c6 = math.sin(wrist_3), math.cos(wrist_3)
                turn = reachable_turn(wx, pz, -d5 * (s6 * xx + c6 * yx), -d5 * (s6 * xy + c6 * yy), a2, a3)
                wrist_3 -= math.copysign(1.0, zz) * turn_within_rounding(turn, sine)
            # The axis of wrist 2 lies in the plane whatever the flip, so that it gives the arm's lean accurately.
            s6, c6 = math.sin(wrist_3), math.cos(wrist_3)
            vx, vy = -(s6 * xx + c6 * yx), -(s6 * xy + c6 * yy)
            lean = math.atan2(vx, -vy)
            found, stretched = elbow(wx - d5 * vx, pz - d5 * vy, a2, a3, near[1] + joints[0, 1], slack, bends)
            for bend in range(found):
                q[0], q[1], q[2] = pan, bends[bend, 0], bends[bend, 1]
                q[3], q[4], q[5] = lean - q[1] - q[2], wrist_2, wrist_3
                k = accept(flags | stretched, joints, near, k, buffers)
    return k


def planar_branches(lengths: Array, joints: Array, near: Array, slack: float, buffers: Buffers) -> int:
    """The number of solutions for `buffers.goal`: the target from the structure's base; its position is read."""
    goal = buffers.goal
    if abs(goal[2, 3] - lengths[2]) > slack:
        return 0
    first = near[0] + joints[0, 0]
    found, flags = elbow(goal[0, 3], goal[1, 3], lengths[0], lengths[1], first, slack, buffers.bends)
    k = 0
    for bend in range(found):
        buffers.q[0], buffers.q[1] = buffers.bends[bend, 0], buffers.bends[bend, 1]
        k = accept(flags, joints, near, k, buffers)
    return k


def find_goal(frames: Array, target: Array, buffers: Buffers) -> bool:
    """Base^-1 target tool^-1 into `buffers.goal`; False for a target (7,) that is no pose."""
    base, tool = frames[0], frames[1]
    wanted, turned, unit, shift, goal = buffers.wanted, buffers.turned, buffers.unit, buffers.shift, buffers.goal
    norm = 0.0
    for i in range(3, 7):
        norm += target[i] * target[i]
    if not 0.0 < norm < np.inf:
        return False
    for i in range(3):
        unit[i] = target[i]
    for i in range(3, 7):
        unit[i] = target[i] / math.sqrt(norm)
    aim(unit, wanted)
    for i in range(3):
        for j in range(3):
            k = 3 + 3 * i
            turned[i, j] = wanted[k] * tool[j, 0] + wanted[k + 1] * tool[j, 1] + wanted[k + 2] * tool[j, 2]
    for i in range(3):
        moved = turned[i, 0] * tool[0, 3] + turned[i, 1] * tool[1, 3] + turned[i, 2] * tool[2, 3]
        shift[i] = target[i] - moved - base[i, 3]
        if not abs(shift[i]) < np.inf:
            return False
    for i in range(3):
        for j in range(3):
            goal[i, j] = base[0, i] * turned[0, j] + base[1, i] * turned[1, j] + base[2, i] * turned[2, j]
        goal[i, 3] = base[0, i] * shift[0] + base[1, i] * shift[1] + base[2, i] * shift[2]
    return True


def find_branches(
    lengths: Array, joints: Array, frames: Array, target: Array, near: Array, slack: float, buffers: Buffers
) -> int:
    """The number of solutions; -1 if the target or `near` is not finite, or the quaternion is zero."""
    n = near.shape[0]
    finite = find_goal(frames, target, buffers)
    for i in range(n):
        finite = finite and abs(near[i]) < np.inf
    if not finite:
        return -1
    buffers.notes[0] = 0
    if n == 2:
        return planar_branches(lengths, joints, near, slack, buffers)
    k = ur_branches(lengths, joints, near, slack, False, buffers)
    if k == 0 and slack < np.inf:
        # Only the nearest of several within rounding: two of them may be the same solution.
        k = min(1, ur_branches(lengths, joints, near, slack, True, buffers))
    return k


def branches(
    lengths: Array, joints: Array, frames: Array, target: Array, near: Array, slack: float, out: Array, notes: Counts
) -> int:
    """All solutions, nearest first.

    Args:
        lengths, joints, frames: See `Structure`.
        target: Pose (7,); its quaternion need not be of unit length.
        near: Joint positions (n,), rad.
        slack: How far out of reach the target may be, m.
        out: Result: solutions (8, n).
        notes: Result: the singularities of each (8,).

    Returns:
        The number of solutions; -1 if the target or `near` is not finite, or the quaternion is zero.
    """
    return find_branches(lengths, joints, frames, target, near, slack, allocate_buffers(out, notes))


def follow(
    lengths: Array, joints: Array, frames: Array, targets: Array, q: Array, path: Array, attained: Flags, met: Counts
) -> None:
    """For each target (T, 7) the solution nearest to the one before; where there is none, the nearest of those that
    point to it, or else the one before.

    Args:
        lengths, joints, frames: See `Structure`.
        q: Joint positions (n,) to begin with, rad, which are updated.
        path: Result: joint positions (T, n), rad.
        attained: Result: whether they attain the targets (T,).
        met: Result: their singularities (T,).
    """
    n = q.shape[0]
    buffers = allocate_buffers(np.zeros((MAX_BRANCHES, n)), np.zeros(MAX_BRANCHES, np.int64))
    for t in range(targets.shape[0]):
        k = find_branches(lengths, joints, frames, targets[t], q, SLACK, buffers)
        attained[t] = k > 0
        if not attained[t]:
            k = find_branches(lengths, joints, frames, targets[t], q, np.inf, buffers)
        met[t] = buffers.notes[0] if k > 0 else 0
        for i in range(n):
            if k > 0:
                q[i] = buffers.out[0, i]
            path[t, i] = q[i]
