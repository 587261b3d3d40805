"""Closed forms for compiled code: all joint positions of a UR arm, or of a planar arm of two links, for one target.

Joint angles are those of the standard table (Hawkins, Analytic inverse kinematics for the UR-5/UR-10, 2013). The
triangle of upper arm and forearm is solved by the law of cosines in its half-angle form, which stays accurate where the
arm is stretched or folded. Singular configurations are recorded as bits: WRIST, ELBOW and SHOULDER.

At the boundary of the workspace rounding decides. A wrist that is nearly singular turns rounding into an angle of
wrist 3, and a shoulder that is nearly singular turns it into an angle of the pan, by far more than itself; nearly
stretched or folded, an arm may so be put out of reach of a pose that it has. Where the wrist's sine is 1e-5 and it
stands 1e-7 m before the pan axis, the last digit of a target is 1e-9 rad of pan, 1e-4 rad of wrist 3 and 1e-5 m of the
goal of the two links. Conversely, such angles are free: turned by that much they move the tool by no more than
rounding. The arm can reach with some of them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from simbridge.ik.kernels.dense import aim
from simbridge.kernels.compile import Kernel, kernel
from simbridge.kernels.program import program_of
from simbridge.robot.pose import Array, Counts, Flags

WRIST, ELBOW, SHOULDER = 1, 2, 4
MAX_BRANCHES = 8

_TURN = 2.0 * math.pi
# Lengths (m) and sines that are rounding: a joint that they leave undetermined is free.
FREE = 1e-11
# How far out of reach a target still counts as reached, m, and a joint beyond a limit is set to it, rad.
SLACK = 1e-11
# Two solutions nearer than this (rad, or m of the wrist's distance) count as one: rounding separates them by up to
# 1e-7.
FOLD = 1e-6
# How far a turn within rounding may take the tool, m and rad: a thousand times the rounding of a target.
_ROUNDING = 1e-12
# What counts as in reach for the search below: well within the slack.
_NEAR = 1e-13
# Halvings of the largest turn that are tried, and steps of the golden-section search with its larger part.
_HALVINGS, _SECTIONS = 40, 60
_LARGER_PART = 0.5 * (math.sqrt(5.0) - 1.0)


@lru_cache(maxsize=2)
def compiled_search(name: str) -> Kernel:
    """The function `branches` or `follow`, compiled; the same for every arm."""
    return kernel(program_of(branches, follow), name, "closed-form solver")


class Buffers(NamedTuple):
    """Arrays of the search for branches."""

    out: Array  # solutions (8, n), nearest first
    notes: Counts  # the singularities of each (8,)
    q: Array  # the current solution (n,)
    goal: Array  # the target without base and tool (3, 4)
    bends: Array  # both postures of two links (2, 2)
    wanted: Array  # the target: position (3) and rotation matrix (9)
    turned: Array  # its rotation without the tool (3, 3)
    unit: Array  # the target, of unit length (7,)
    shift: Array  # (3,), m


def allocate_buffers(out: Array, notes: Counts) -> Buffers:
    """Buffers around the arrays for solutions and their singularities."""
    goal, bends, wanted, turned = np.zeros((3, 4)), np.zeros((2, 2)), np.zeros(12), np.zeros((3, 3))
    return Buffers(
        out, notes, np.zeros(out.shape[1]), goal, bends, wanted, turned, np.zeros(7), np.zeros(3)
    )


def accept(flags: int, joints: Array, near: Array, k: int, buffers: Buffers) -> int:
    """Insert the table angles `buffers.q` among the k nearest rows of `buffers.out`, unless they are beyond joint
    limits; each joint is turned by whole turns to where it is nearest to `near` (n,), rad. Returns the new k."""
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


def ur_branches(
    lengths: Array, joints: Array, near: Array, slack: float, at_boundary: bool, buffers: Buffers
) -> int:
    """The number of solutions for `buffers.goal`, the last joint's frame, turned by its angle; with the pan and wrist 3
    turned within rounding, so that the arm reaches, if `at_boundary`."""
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
                turn = reachable_turn(
                    wx, pz, -d5 * (s6 * xx + c6 * yx), -d5 * (s6 * xy + c6 * yy), a2, a3
                )
                wrist_3 -= math.copysign(1.0, zz) * turn_within_rounding(turn, sine)
            # The axis of wrist 2 lies in the plane whatever the flip, so that it gives the arm's lean accurately.
            s6, c6 = math.sin(wrist_3), math.cos(wrist_3)
            vx, vy = -(s6 * xx + c6 * yx), -(s6 * xy + c6 * yy)
            lean = math.atan2(vx, -vy)
            found, stretched = elbow(
                wx - d5 * vx, pz - d5 * vy, a2, a3, near[1] + joints[0, 1], slack, bends
            )
            for bend in range(found):
                q[0], q[1], q[2] = pan, bends[bend, 0], bends[bend, 1]
                q[3], q[4], q[5] = lean - q[1] - q[2], wrist_2, wrist_3
                k = accept(flags | stretched, joints, near, k, buffers)
    return k


def planar_branches(
    lengths: Array, joints: Array, near: Array, slack: float, buffers: Buffers
) -> int:
    """The number of solutions for `buffers.goal`: the target from the structure's base; its position is read."""
    goal = buffers.goal
    if abs(goal[2, 3] - lengths[2]) > slack:
        return 0
    first = near[0] + joints[0, 0]
    found, flags = elbow(
        goal[0, 3], goal[1, 3], lengths[0], lengths[1], first, slack, buffers.bends
    )
    k = 0
    for bend in range(found):
        buffers.q[0], buffers.q[1] = buffers.bends[bend, 0], buffers.bends[bend, 1]
        k = accept(flags, joints, near, k, buffers)
    return k


def elbow(
    x: float, y: float, a: float, b: float, near: float, slack: float, out: Array
) -> tuple[int, int]:
    """Both postures of two links a and b in a plane for the goal x, y: rows of `out` (2, 2) are the two joint angles.

    Args:
        near: The first angle where the goal leaves it free.
        slack: How far out of reach the goal may be, m; the links then point to it.

    Returns:
        Their number, and ELBOW if they coincide or are undetermined.
    """
    distance = math.sqrt(x * x + y * y)
    if distance > a + b + slack or distance < abs(a - b) - slack:
        return 0, 0
    r = min(max(distance, abs(a - b)), a + b)
    stretched, folded = (a + b + r) * max(0.0, a + b - r), max(0.0, r - a + b) * max(0.0, r + a - b)
    bend = 2.0 * math.atan2(math.sqrt(stretched), math.sqrt(folded))
    inner = 2.0 * math.atan2(
        math.sqrt(max(0.0, a + b - r) * max(0.0, r - a + b)),
        math.sqrt((a + b + r) * max(0.0, r + a - b)),
    )
    direction = near + inner if distance < FREE else math.atan2(y, x)
    out[0, 0], out[0, 1] = direction - inner, bend
    out[1, 0], out[1, 1] = direction + inner, -bend
    one = distance < FREE or bend < FOLD or math.pi - bend < FOLD
    return (1, ELBOW) if one else (2, 0)


def in_plane(
    goal: Array, pan: float
) -> tuple[float, float, float, float, float, float, float, float]:
    """The goal's x and y axes, the component of its z axis along the parallel axes, and the distance ahead of its
    origin, in the plane of the arm: x ahead, y up, z along the parallel axes."""
    s1, c1 = math.sin(pan), math.cos(pan)
    xx, xy, xz = c1 * goal[0, 0] + s1 * goal[1, 0], goal[2, 0], s1 * goal[0, 0] - c1 * goal[1, 0]
    yx, yy, yz = c1 * goal[0, 1] + s1 * goal[1, 1], goal[2, 1], s1 * goal[0, 1] - c1 * goal[1, 1]
    zz = s1 * goal[0, 2] - c1 * goal[1, 2]
    wx = c1 * goal[0, 3] + s1 * goal[1, 3]
    return xx, xy, xz, yx, yy, yz, zz, wx


def reachable_turn(cx: float, cy: float, vx: float, vy: float, a: float, b: float) -> float:
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


def turn_within_rounding(turn: float, sine: float) -> float:
    """As much of a turn of wrist 3, rad, as moves the tool by no more than rounding, for this sine of wrist 2."""
    most = math.pi if sine < FREE else _ROUNDING / sine
    return min(max(turn, -most), most)


def missing_reach(lengths: Array, goal: Array, pan: float, flip: int) -> float:
    """How far out of reach the two links' goal is, m, with wrist 3 turned within rounding."""
    a, b, d5 = lengths[0], lengths[1], lengths[3]
    xx, xy, xz, yx, yy, yz, _, wx = in_plane(goal, pan)
    q6 = math.atan2(-yz, xz) if flip == 0 else math.atan2(yz, -xz)
    s6, c6 = math.sin(q6), math.cos(q6)
    vx, vy = -d5 * (s6 * xx + c6 * yx), -d5 * (s6 * xy + c6 * yy)
    turn = reachable_turn(wx, goal[2, 3], vx, vy, a, b)
    turn = turn_within_rounding(turn, math.sqrt(xz * xz + yz * yz))
    s, c = math.sin(turn), math.cos(turn)
    x, y = wx - (c * vx - s * vy), goal[2, 3] - (s * vx + c * vy)
    distance = math.sqrt(x * x + y * y)
    return max(0.0, distance - a - b, abs(a - b) - distance)


def pan_within_rounding(lengths: Array, goal: Array, pan: float, ahead: float, flip: int) -> float:
    """The angle of the pan with which the arm reaches, or gets nearest, of those that rounding leaves open; with the
    wrist standing that far ahead of the pan axis, m, and flipped (1) or not (0)."""
    d4, d5 = abs(lengths[2]), abs(lengths[3])
    # Turned by t, the wrist is off by ahead t + d4 t^2 / 2.
    size = abs(ahead) + math.sqrt(ahead * ahead + 2.0 * d4 * _ROUNDING)
    most = min(math.pi, 2.0 * _ROUNDING / size) if size > _ROUNDING else math.pi
    _, _, xz, _, _, yz, zz, _ = in_plane(goal, pan)
    sine = math.sqrt(xz * xz + yz * yz)
    least = missing_reach(lengths, goal, pan, flip)
    # A turn moves the goal of the links, and swings the offset d5 by the more the smaller the sine.
    swing = 2.0 * most / sine if sine > most else 2.0
    if least <= _NEAR or least > d4 * most + d5 * swing:
        return pan
    # The offset swings most where the tool's z axis has nothing ahead: angles ever nearer to that and to the given one.
    z_ahead = math.copysign(1.0, zz) * (math.cos(pan) * goal[0, 2] + math.sin(pan) * goal[1, 2])
    swings_at = -math.atan2(z_ahead, abs(zz))
    low, high, best = 0.0, 0.0, math.inf
    for halving in range(_HALVINGS):
        for way in range(4):
            centre = 0.0 if way < 2 else swings_at
            away = (most if way % 2 == 0 else -most) * 0.5**halving
            turn = centre + away
            if abs(turn) > most:
                continue
            missing = missing_reach(lengths, goal, pan + turn, flip)
            # The smallest of those that reach.
            if max(missing, _NEAR) < least or (missing <= _NEAR and abs(turn) < abs(best)):
                least, best = max(missing, _NEAR), turn
                low, high = (
                    centre + 0.5 * min(away, 4.0 * away),
                    centre + 0.5 * max(away, 4.0 * away),
                )
    if least > _NEAR:
        # Reached at one angle only, or nowhere: the least is between its neighbours.
        low, high = max(low, -most), min(high, most)
        for _ in range(_SECTIONS):
            left, right = high - _LARGER_PART * (high - low), low + _LARGER_PART * (high - low)
            if missing_reach(lengths, goal, pan + left, flip) < missing_reach(
                lengths, goal, pan + right, flip
            ):
                high = right
            else:
                low = left
        middle = 0.5 * (low + high)
        if missing_reach(lengths, goal, pan + middle, flip) < least:
            best = middle
    return pan + best if abs(best) <= most else pan


def find_goal(frames: Array, target: Array, buffers: Buffers) -> bool:
    """Base^-1 target tool^-1 into `buffers.goal`; False for a target (7,) that is no pose."""
    base, tool = frames[0], frames[1]
    wanted, turned, unit, shift, goal = (
        buffers.wanted,
        buffers.turned,
        buffers.unit,
        buffers.shift,
        buffers.goal,
    )
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
            turned[i, j] = (
                wanted[k] * tool[j, 0] + wanted[k + 1] * tool[j, 1] + wanted[k + 2] * tool[j, 2]
            )
    for i in range(3):
        moved = turned[i, 0] * tool[0, 3] + turned[i, 1] * tool[1, 3] + turned[i, 2] * tool[2, 3]
        shift[i] = target[i] - moved - base[i, 3]
        if not abs(shift[i]) < np.inf:
            return False
    for i in range(3):
        for j in range(3):
            goal[i, j] = (
                base[0, i] * turned[0, j] + base[1, i] * turned[1, j] + base[2, i] * turned[2, j]
            )
        goal[i, 3] = base[0, i] * shift[0] + base[1, i] * shift[1] + base[2, i] * shift[2]
    return True


def find_branches(
    lengths: Array,
    joints: Array,
    frames: Array,
    target: Array,
    near: Array,
    slack: float,
    buffers: Buffers,
) -> int:
    """As `branches`."""
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
    lengths: Array,
    joints: Array,
    frames: Array,
    target: Array,
    near: Array,
    slack: float,
    out: Array,
    notes: Counts,
) -> int:
    """All solutions, nearest first, into `out` (8, n), and the singularities of each into `notes` (8,).

    Args:
        lengths, joints, frames: See `Structure`.
        target: Pose (7,); its quaternion need not be of unit length.
        near: Joint positions (n,), rad.
        slack: How far out of reach the target may be, m.

    Returns:
        The number of solutions; -1 if the target or `near` is not finite, or the quaternion is zero.
    """
    return find_branches(lengths, joints, frames, target, near, slack, allocate_buffers(out, notes))


def follow(
    lengths: Array,
    joints: Array,
    frames: Array,
    targets: Array,
    q: Array,
    path: Array,
    attained: Flags,
    met: Counts,
) -> None:
    """For each target (T, 7) the solution nearest to the one before, at first to q (n,), which is updated; where there
    is none, the nearest of those that point to it, or else the one before.

    The results are the joint positions `path` (T, n), whether they attain the targets (T,), and their singularities
    (T,).
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
