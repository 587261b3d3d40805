"""The compiled closed forms: all joint positions of a UR arm, or of a planar arm of two links, for one target.

Joint angles are those of the standard table (Hawkins, Analytic inverse kinematics for the UR-5/UR-10, 2013), the
triangle of upper arm and forearm is solved by the law of cosines in its half-angle form, which stays accurate where the
arm is stretched or folded. Singular configurations are noted as bits: WRIST, ELBOW, SHOULDER.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.chain import Array, Counts, chain_frames, compiled, rotation_of
from simbridge.ik.task import task_error

WRIST, ELBOW, SHOULDER = 1, 2, 4
MOST = 8

# Lengths (m) and sines that are rounding: a joint that they leave undetermined is free.
FREE = 1e-11
# How far past its reach an arm is stretched all the same, m, and past a limit a joint is set on it, rad.
SLACK = 1e-11
# Two solutions nearer than this (rad, or m of the wrist's distance) are told as one: rounding parts them by up to 1e-7.
_FOLD = 1e-6
_TURN = 2.0 * math.pi


@compiled
def elbow(x: float, y: float, a: float, b: float, near: float, slack: float, out: Array) -> tuple[int, int]:
    """Both postures of two links in a plane: rows of `out` (2, 2) are the two joint angles, rad.

    Args:
        x, y: The goal, m.
        a, b: The links, m.
        near: What the first angle is where the goal leaves it free.
        slack: How far out of reach the goal may be, m; the links then point to it.

    Returns:
        How many there are, and ELBOW if they are one or undetermined.
    """
    distance = math.sqrt(x * x + y * y)
    if distance > a + b + slack or distance < abs(a - b) - slack:
        return 0, 0
    r = min(max(distance, abs(a - b)), a + b)
    stretched, folded = (a + b + r) * max(0.0, a + b - r), max(0.0, r - a + b) * max(0.0, r + a - b)
    bend = 2.0 * math.atan2(math.sqrt(stretched), math.sqrt(folded))
    inner = 2.0 * math.atan2(
        math.sqrt(max(0.0, a + b - r) * max(0.0, r - a + b)), math.sqrt((a + b + r) * max(0.0, r + a - b))
    )
    direction = near + inner if distance < FREE else math.atan2(y, x)
    out[0, 0], out[0, 1] = direction - inner, bend
    out[1, 0], out[1, 1] = direction + inner, -bend
    one = distance < FREE or bend < _FOLD or math.pi - bend < _FOLD
    return (1, ELBOW) if one else (2, 0)


@compiled
def _accept(q: Array, flags: int, joints: Array, near: Array, k: int, out: Array, notes: Counts) -> int:
    """Put table angles q in their place among the k nearest rows of `out`, unless a joint cannot get there.

    Args:
        joints: Of a `Structure`.
        near: Joint positions (n,), rad: each joint is turned by whole turns to where it is nearest.
    """
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


@compiled
def _reachable_turn(cx: float, cy: float, vx: float, vy: float, a: float, b: float) -> float:
    """The smallest turn of v, rad, that brings c - v within reach of the links a and b (or as near as it gets)."""
    c2, v2 = cx * cx + cy * cy, vx * vx + vy * vy
    product = 2.0 * math.sqrt(c2 * v2)
    if product < FREE:
        return 0.0
    between = math.atan2(cx * vy - cy * vx, cx * vx + cy * vy)
    least = math.acos(min(1.0, max(-1.0, (c2 + v2 - (a - b) ** 2) / product)))
    most = math.acos(min(1.0, max(-1.0, (c2 + v2 - (a + b) ** 2) / product)))
    wanted = math.copysign(min(max(abs(between), least), most), between)
    return wanted - between


@compiled
def _ur(lengths: Array, joints: Array, goal: Array, near: Array, slack: float, out: Array, notes: Counts) -> int:
    """`goal` (3, 4): the last joint's frame, turned by its angle, in the base frame of the structure."""
    a2, a3, d4, d5 = lengths[0], lengths[1], lengths[2], lengths[3]
    px, py, pz = goal[0, 3], goal[1, 3], goal[2, 3]
    q, arm = np.empty(6), np.empty((2, 2))
    k = 0
    # The wrist's distance from the pan axis is the hypotenuse over d4.
    r = math.sqrt(px * px + py * py)
    if r < abs(d4) - slack:
        return 0
    ahead = math.sqrt(max(0.0, (r - abs(d4)) * (r + abs(d4))))
    pan_folds = ahead < _FOLD
    for side in range(2):
        # Rounding may put a stretched arm out of reach on one of the two sides that are one.
        if pan_folds and k > 0:
            break
        forward = ahead if side == 0 else -ahead
        if r < FREE:
            q[0] = near[0] + joints[0, 0]
        else:
            q[0] = math.atan2(py, px) + math.atan2(d4, forward)
        s1, c1 = math.sin(q[0]), math.cos(q[0])
        # In the plane of the arm: x ahead, y up; z is the parallel axes' direction.
        xx, xy, xz = c1 * goal[0, 0] + s1 * goal[1, 0], goal[2, 0], s1 * goal[0, 0] - c1 * goal[1, 0]
        yx, yy, yz = c1 * goal[0, 1] + s1 * goal[1, 1], goal[2, 1], s1 * goal[0, 1] - c1 * goal[1, 1]
        zz = s1 * goal[0, 2] - c1 * goal[1, 2]
        wx = c1 * px + s1 * py
        sine = math.sqrt(xz * xz + yz * yz)
        wrist_free = sine < FREE
        for flip in range(1 if wrist_free else 2):
            q[4] = math.atan2(sine if flip == 0 else -sine, zz)
            flags = (SHOULDER if pan_folds else 0) | (WRIST if wrist_free else 0)
            if wrist_free:
                q[4] = 0.0 if zz > 0.0 else math.pi
                q[5] = near[5] + joints[0, 5]
                s6, c6 = math.sin(q[5]), math.cos(q[5])
                turn = _reachable_turn(wx, pz, -d5 * (s6 * xx + c6 * yx), -d5 * (s6 * xy + c6 * yy), a2, a3)
                q[5] -= math.copysign(1.0, zz) * turn
            elif flip == 0:
                q[5] = math.atan2(-yz, xz)
            else:
                q[5] = math.atan2(yz, -xz)
            # The axis of wrist 2 lies in the plane whatever the flip, so that it gives the arm's lean accurately.
            s6, c6 = math.sin(q[5]), math.cos(q[5])
            vx, vy = -(s6 * xx + c6 * yx), -(s6 * xy + c6 * yy)
            lean = math.atan2(vx, -vy)
            bends, stretched = elbow(wx - d5 * vx, pz - d5 * vy, a2, a3, near[1] + joints[0, 1], slack, arm)
            pan, wrist_2, wrist_3 = q[0], q[4], q[5]
            for bend in range(bends):
                q[0], q[1], q[2] = pan, arm[bend, 0], arm[bend, 1]
                q[3], q[4], q[5] = lean - q[1] - q[2], wrist_2, wrist_3
                k = _accept(q, flags | stretched, joints, near, k, out, notes)
            q[0] = pan
    return k


@compiled
def _planar(lengths: Array, joints: Array, goal: Array, near: Array, slack: float, out: Array, notes: Counts) -> int:
    """`goal` (3, 4): the target in the base frame of the structure, of which the position is read."""
    if abs(goal[2, 3] - lengths[2]) > slack:
        return 0
    q, arm = np.empty(2), np.empty((2, 2))
    bends, flags = elbow(goal[0, 3], goal[1, 3], lengths[0], lengths[1], near[0] + joints[0, 0], slack, arm)
    k = 0
    for bend in range(bends):
        q[0], q[1] = arm[bend, 0], arm[bend, 1]
        k = _accept(q, flags, joints, near, k, out, notes)
    return k


@compiled
def _goal(base: Array, tool: Array, target: Array, goal: Array) -> bool:
    """base^-1 target tool^-1 (3, 4); False for a target (7,) that is no pose."""
    norm = 0.0
    for i in range(3, 7):
        norm += target[i] * target[i]
    if not 0.0 < norm < np.inf:
        return False
    wanted, turned, unit, shift = np.empty((3, 3)), np.empty((3, 3)), np.empty(7), np.empty(3)
    for i in range(3):
        unit[i] = target[i]
    for i in range(3, 7):
        unit[i] = target[i] / math.sqrt(norm)
    rotation_of(unit, wanted)
    for i in range(3):
        for j in range(3):
            turned[i, j] = wanted[i, 0] * tool[j, 0] + wanted[i, 1] * tool[j, 1] + wanted[i, 2] * tool[j, 2]
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


@compiled
def branches(
    lengths: Array, joints: Array, frames: Array, target: Array, near: Array, slack: float
) -> tuple[Array, int]:
    """All solutions, nearest first.

    Args:
        lengths, joints, frames: Of a `Structure`.
        target: Pose (7,); its quaternion need not be of unit length.
        near: Joint positions (n,), rad.
        slack: How far out of reach the target may be, m.

    Returns:
        Joint positions (k, n), rad, and what is singular in the nearest; -1 if the target or `near` is not finite or
        the quaternion is zero.
    """
    n = near.shape[0]
    out, notes, goal = np.empty((MOST, n)), np.zeros(MOST, np.int64), np.empty((3, 4))
    finite = _goal(frames[0], frames[1], target, goal)
    for i in range(n):
        finite = finite and abs(near[i]) < np.inf
    if not finite:
        return out[:0], -1
    if n == 2:
        k = _planar(lengths, joints, goal, near, slack, out, notes)
    else:
        k = _ur(lengths, joints, goal, near, slack, out, notes)
    return out[:k], notes[0]


@compiled
def follow(
    lengths: Array, joints: Array, frames: Array, targets: Array, start: Array
) -> tuple[Array, NDArray[np.bool_], Counts]:
    """For each target (T, 7) the solution nearest to that of the one before; where there is none, the nearest of those
    that point to it, or else the one before.

    Returns:
        Joint positions (T, n), whether they attain the targets (T,), and what is singular in them (T,).
    """
    total, n = targets.shape[0], start.shape[0]
    path, attained, notes = np.empty((total, n)), np.zeros(total, np.bool_), np.zeros(total, np.int64)
    present = start.copy()
    for t in range(total):
        found, note = branches(lengths, joints, frames, targets[t], present, SLACK)
        attained[t] = len(found) > 0
        if not attained[t]:
            found, note = branches(lengths, joints, frames, targets[t], present, np.inf)
        if len(found) > 0:
            present[:] = found[0]
            notes[t] = note
        path[t] = present
    return path, attained, notes


@compiled
def residuals(placements: Array, rows: int, targets: Array, path: Array) -> Array:
    """What is left of translation (m) and rotation (rad) of targets (T, 7) at joint positions (T, n): (T, 2).

    Args:
        placements: The chain of revolute joints.
        rows: Of the task.
    """
    total, n = path.shape
    out, still = np.empty((total, 2)), np.zeros(n, np.bool_)
    origins, axes, frame = np.empty((n, 3)), np.empty((n, 3)), np.empty((3, 4))
    rotation, e = np.empty((3, 3)), np.empty(6)
    for t in range(total):
        rotation_of(targets[t], rotation)
        chain_frames(placements, still, path[t], origins, axes, frame)
        task_error(rows, targets[t], rotation, frame, e)
        out[t, 0] = math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
        out[t, 1] = math.sqrt(e[3] * e[3] + e[4] * e[4] + e[5] * e[5])
    return out
