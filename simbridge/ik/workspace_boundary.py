"""What two links reach, and what a UR arm reaches at the boundary of its workspace, where rounding decides.

A wrist that is nearly singular turns rounding into an angle of wrist 3, and a shoulder that is nearly singular turns it
into an angle of the pan, by far more than itself; nearly stretched or folded, an arm may so be put out of reach of a
pose that it has. Where the wrist's sine is 1e-5 and it stands 1e-7 m before the pan axis, the last digit of a target is
1e-9 rad of pan, 1e-4 rad of wrist 3 and 1e-5 m of the goal of the two links. Conversely, such angles are
free: turned by that much they move the tool by no more than rounding. The arm can reach with some of them.
"""

from __future__ import annotations

import math

from simbridge.robot.pose import Array

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

ELBOW = 2
"""The bit of a stretched, folded or undetermined elbow."""


def elbow(x: float, y: float, a: float, b: float, near: float, slack: float, out: Array) -> tuple[int, int]:
    """Both postures of two links in a plane: rows of `out` (2, 2) are the two joint angles, rad.

    Args:
        x, y: The goal, m.
        a, b: The links, m.
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
        math.sqrt(max(0.0, a + b - r) * max(0.0, r - a + b)), math.sqrt((a + b + r) * max(0.0, r + a - b))
    )
    direction = near + inner if distance < FREE else math.atan2(y, x)
    out[0, 0], out[0, 1] = direction - inner, bend
    out[1, 0], out[1, 1] = direction + inner, -bend
    one = distance < FREE or bend < FOLD or math.pi - bend < FOLD
    return (1, ELBOW) if one else (2, 0)


def in_plane(goal: Array, pan: float) -> tuple[float, float, float, float, float, float, float, float]:
    """The goal's x and y axes, the component of its z axis along the parallel axes, and the distance ahead of its
    origin.

    In the plane of the arm: x ahead, y up; z is the parallel axes' direction.
    """
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
    """As much of a turn of wrist 3, rad, as moves the tool by no more than rounding, for this sine of wrist 2.

    All of it where the wrist is singular.
    """
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
    """The angle of the pan with which the arm reaches, or gets nearest, of those that rounding leaves open.

    Args:
        ahead: How far the wrist stands before the pan axis, m; negative behind it.
        flip: Of the wrist, 0 or 1.
    """
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
                low, high = centre + 0.5 * min(away, 4.0 * away), centre + 0.5 * max(away, 4.0 * away)
    if least > _NEAR:
        # Reached at one angle only, or nowhere: the least is between its neighbours.
        low, high = max(low, -most), min(high, most)
        for _ in range(_SECTIONS):
            left, right = high - _LARGER_PART * (high - low), low + _LARGER_PART * (high - low)
            if missing_reach(lengths, goal, pan + left, flip) < missing_reach(lengths, goal, pan + right, flip):
                high = right
            else:
                low = left
        middle = 0.5 * (low + high)
        if missing_reach(lengths, goal, pan + middle, flip) < least:
            best = middle
    return pan + best if abs(best) <= most else pan
