"""The compiled closed forms: all joint positions of a UR arm, or of a planar arm of two links, for one target.

Joint angles are those of the standard table (Hawkins, Analytic inverse kinematics for the UR-5/UR-10, 2013), the
triangle of upper arm and forearm is solved by the law of cosines in its half-angle form, which stays accurate where the
arm is stretched or folded. Singular configurations are noted as bits: WRIST, SHOULDER, and ELBOW of `edge_of_reach.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from simbridge.ik.kernels.lazy import compiled
from simbridge.ik.kernels.routine import Routine, own_source
from simbridge.ik.linearization import Chain, Linearization, aim, look
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
MOST = 8

_TURN = 2.0 * math.pi


class Arm(NamedTuple):
    """What the closed form knows of the arm: see `Structure`."""

    lengths: Array
    joints: Array
    frames: Array


class Room(NamedTuple):
    """Arrays that are made before the loops.

    Attributes:
        out: Solutions (8, n), nearest first: the first `total`.
        notes: What is singular in each (8,).
        total: (1,); -1 if the target or the present positions are not finite, or the quaternion is zero.
        goal: The target without base and tool (3, 4).
        q: The solution in work (n,).
        bends: Both postures of two links (2, 2).
        wanted: The target: position (3) and rotation matrix (9).
        turned: Its rotation without the tool (3, 3).
        unit: The target, of unit length (7,).
        shift: (3,), m.
    """

    out: Array
    notes: Counts
    total: Counts
    goal: Array
    q: Array
    bends: Array
    wanted: Array
    turned: Array
    unit: Array
    shift: Array


def room_for(n: int) -> Room:
    """Room for the branches of an arm of n joints."""
    return Room(
        np.zeros((MOST, n)),
        np.zeros(MOST, np.int64),
        np.zeros(1, np.int64),
        np.zeros((3, 4)),
        np.zeros(n),
        np.zeros((2, 2)),
        np.zeros(12),
        np.zeros((3, 3)),
        np.zeros(7),
        np.zeros(3),
    )


@compiled
def _accept(flags: int, joints: Array, near: Array, k: int, room: Room) -> int:
    """Put table angles `room.q` in their place among the k nearest rows of `room.out`, unless a joint cannot get there.

    Args:
        joints: Of a `Structure`.
        near: Joint positions (n,), rad: each joint is turned by whole turns to where it is nearest.
    """
    q, out, notes = room.q, room.out, room.notes
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
def _ur(arm: Arm, near: Array, slack: float, at_the_edge: bool, room: Room) -> int:
    """How many solutions there are for `room.goal`: the last joint's frame, turned by its angle.

    Args:
        at_the_edge: Turn the pan and wrist 3 within rounding, so that the arm reaches.
    """
    joints, goal, q, bends = arm.joints, room.goal, room.q, room.bends
    a2, a3, d4, d5 = arm.lengths[0], arm.lengths[1], arm.lengths[2], arm.lengths[3]
    px, py, pz = goal[0, 3], goal[1, 3], goal[2, 3]
    k = 0
    # The wrist's distance from the pan axis is the hypotenuse over d4.
    r = math.sqrt(px * px + py * py)
    if r < abs(d4) - slack:
        return 0
    ahead = math.sqrt(max(0.0, (r - abs(d4)) * (r + abs(d4))))
    pan_folds = ahead < FOLD
    for side in range(2):
        # Rounding may put a stretched arm out of reach on one of the two sides that are one.
        if pan_folds and k > 0:
            break
        forward = ahead if side == 0 else -ahead
        exact = near[0] + joints[0, 0] if r < FREE else math.atan2(py, px) + math.atan2(d4, forward)
        flips = 2
        for flip in range(2):
            if flip == flips:
                break
            pan = pan_within_rounding(arm.lengths, goal, exact, forward, flip) if at_the_edge else exact
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
            if sine < FREE or at_the_edge:
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
                k = _accept(flags | stretched, joints, near, k, room)
    return k


@compiled
def _planar(arm: Arm, near: Array, slack: float, room: Room) -> int:
    """How many solutions there are for `room.goal`: the target from the structure's base; its position is read."""
    lengths, goal = arm.lengths, room.goal
    if abs(goal[2, 3] - lengths[2]) > slack:
        return 0
    first = near[0] + arm.joints[0, 0]
    found, flags = elbow(goal[0, 3], goal[1, 3], lengths[0], lengths[1], first, slack, room.bends)
    k = 0
    for bend in range(found):
        room.q[0], room.q[1] = room.bends[bend, 0], room.bends[bend, 1]
        k = _accept(flags, arm.joints, near, k, room)
    return k


@compiled
def _goal(frames: Array, target: Array, room: Room) -> bool:
    """Base^-1 target tool^-1 into `room.goal`; False for a target (7,) that is no pose."""
    base, tool = frames[0], frames[1]
    wanted, turned, unit, shift, goal = room.wanted, room.turned, room.unit, room.shift, room.goal
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


@compiled
def _branches(arm: Arm, target: Array, near: Array, slack: float, room: Room) -> int:
    """How many solutions there are; -1 see `Room.total`."""
    n = near.shape[0]
    finite = _goal(arm.frames, target, room)
    for i in range(n):
        finite = finite and abs(near[i]) < np.inf
    if not finite:
        return -1
    room.notes[0] = 0
    if n == 2:
        return _planar(arm, near, slack, room)
    k = _ur(arm, near, slack, False, room)
    if k == 0 and slack < np.inf:
        # Of several that rounding leaves open only the nearest: there may be two of one and the same.
        k = min(1, _ur(arm, near, slack, True, room))
    return k


def branches(arm: Arm, target: Array, near: Array, slack: float, room: Room) -> None:
    """All solutions, nearest first, into `room`: its `out`, `notes` and `total`.

    Args:
        target: Pose (7,); its quaternion need not be of unit length.
        near: Joint positions (n,), rad.
        slack: How far out of reach the target may be, m.
    """
    room.total[0] = _branches(arm, target, near, slack, room)


def follow(
    arm: Arm,
    targets: Array,
    q: Array,
    room: Room,
    path: Array,
    attained: Flags,
    notes: Counts,
) -> None:
    """For each target (T, 7) the solution nearest to that of the one before; where there is none, the nearest of those
    that point to it, or else the one before.

    Args:
        q: Joint positions (n,) to begin with, rad, which go along.
        path: What comes out: joint positions (T, n), rad.
        attained: Whether they attain the targets (T,).
        notes: What is singular in them (T,).
    """
    for t in range(targets.shape[0]):
        k = _branches(arm, targets[t], q, SLACK, room)
        attained[t] = k > 0
        if not attained[t]:
            k = _branches(arm, targets[t], q, np.inf, room)
        notes[t] = room.notes[0] if k > 0 else 0
        for i in range(q.shape[0]):
            if k > 0:
                q[i] = room.out[0, i]
            path[t, i] = q[i]


def residuals(chain: Chain, targets: Array, path: Array, sight: Linearization, out: Array) -> None:
    """What is left of translation (m) and rotation (rad) of targets (T, 7) at joint positions (T, n); out (T, 2)."""
    e = sight.error
    for t in range(path.shape[0]):
        aim(targets[t], sight.target)
        look(chain, path[t], sight.target, np.inf, np.inf, e, sight.pull, sight.jacobian)
        out[t, 0] = math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
        out[t, 1] = math.sqrt(e[3] * e[3] + e[4] * e[4] + e[5] * e[5])


@lru_cache(maxsize=64)
def routine(loop: Callable[..., None], looks: str = "") -> Routine:
    """`branches`, `follow`, or `residuals` of a chain with such a look, compiled."""
    return Routine(loop.__name__, "closed-form solver", own_source() + looks, lambda: loop)
