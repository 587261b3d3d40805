"""Angles that rounding leaves open: what a UR arm may turn so that it reaches after all.

At the boundary of the workspace rounding decides. A wrist that is nearly singular turns rounding
into an angle of wrist 3, and a shoulder that is nearly singular turns it into an angle of the pan,
by far more than itself; nearly stretched or folded, an arm may so be put out of reach of a pose
that it has. Where the wrist's sine is 1e-5 and it stands 1e-7 m before the pan axis, the last digit
of a target is 1e-9 rad of pan, 1e-4 rad of wrist 3 and 1e-5 m of the goal of the two links.
Conversely, such angles are free: turned by that much they move the tool by no more than rounding.
The arm can reach with some of them.
"""

from __future__ import annotations

import math

from simbridge.ik.kernels.plane import FREE, in_plane, wrist_3_angle
from simbridge.robot.pose import Array

# Largest motion of the tool by a turn within rounding, m and rad: a thousand times the rounding of
# a target.
ROUNDING = 1e-12
# Distance out of reach, m, that the search below counts as in reach: well within the slack.
NEAR = 1e-13
# Halvings of the largest turn that are tried.
HALVINGS = 40
# Steps of the golden-section search, and its larger part.
SECTIONS = 60
LARGER_PART = 0.5 * (math.sqrt(5.0) - 1.0)


def reachable_turn(cx: float, cy: float, vx: float, vy: float, a: float, b: float) -> float:
    """Return the smallest turn of v, rad, that brings c - v within reach of two links.

    Where none does, it brings it as near as it gets.

    Args:
        cx: c along x, m.
        cy: c along y, m.
        vx: v along x, m.
        vy: v along y, m.
        a: The length of the first link, m.
        b: The length of the second, m.
    """
    c2 = cx * cx + cy * cy
    v2 = vx * vx + vy * vy
    product = 2.0 * math.sqrt(c2 * v2)
    if product < FREE:
        return 0.0

    # The law of cosines: the angles between c and v with which the links are folded and stretched.
    between = math.atan2(cx * vy - cy * vx, cx * vx + cy * vy)
    least = math.acos(min(1.0, max(-1.0, (c2 + v2 - (a - b) ** 2) / product)))
    most = math.acos(min(1.0, max(-1.0, (c2 + v2 - (a + b) ** 2) / product)))
    reachable = math.copysign(min(max(abs(between), least), most), between)
    return reachable - between


def turn_within_rounding(turn: float, sine: float) -> float:
    """Return as much of a turn of wrist 3, rad, as moves the tool by no more than rounding.

    Args:
        turn: The angle, rad.
        sine: Sine of the angle of wrist 2.
    """
    most = math.pi if sine < FREE else ROUNDING / sine
    return min(max(turn, -most), most)


def missing_reach(lengths: Array, goal: Array, pan: float, flip: int) -> float:
    """Return the distance, m, by which the two links miss their goal.

    Wrist 3 is turned within rounding so that it is smallest.

    Args:
        lengths: Lengths of the arm (4,), m: see `ClosedFormArm`.
        goal: The target without base and tool (3, 4): see `BranchBuffers`.
        pan: The angle of the pan, rad.
        flip: Whether the wrist is flipped (1) or not (0).
    """
    a = lengths[0]
    b = lengths[1]
    d5 = lengths[3]
    xx, xy, xz, yx, yy, yz, _, wx = in_plane(goal, pan)
    q6 = wrist_3_angle(xz, yz, flip)
    s6 = math.sin(q6)
    c6 = math.cos(q6)
    vx = -d5 * (s6 * xx + c6 * yx)
    vy = -d5 * (s6 * xy + c6 * yy)
    turn = reachable_turn(wx, goal[2, 3], vx, vy, a, b)
    turn = turn_within_rounding(turn, math.sqrt(xz * xz + yz * yz))

    s = math.sin(turn)
    c = math.cos(turn)
    x = wx - (c * vx - s * vy)
    y = goal[2, 3] - (s * vx + c * vy)
    distance = math.sqrt(x * x + y * y)
    return max(0.0, distance - a - b, abs(a - b) - distance)


def pan_within_rounding(lengths: Array, goal: Array, pan: float, ahead: float, flip: int) -> float:
    """Return the angle of the pan, rad, with which the arm reaches its goal, or gets nearest.

    The search is among the angles that rounding leaves open. Without a better one the pan stays.

    Args:
        lengths: Lengths of the arm (4,), m: see `ClosedFormArm`.
        goal: The target without base and tool (3, 4): see `BranchBuffers`.
        pan: The angle without rounding, rad.
        ahead: Distance of the wrist ahead of the pan axis, m.
        flip: Whether the wrist is flipped (1) or not (0).
    """
    d4 = abs(lengths[2])
    d5 = abs(lengths[3])
    # The largest turn within rounding: turned by t, the wrist is off by ahead t + d4 t^2 / 2, which
    # is ROUNDING at t = 2 ROUNDING / (ahead + sqrt(ahead^2 + 2 d4 ROUNDING)).
    size = abs(ahead) + math.sqrt(ahead * ahead + 2.0 * d4 * ROUNDING)
    most = min(math.pi, 2.0 * ROUNDING / size) if size > ROUNDING else math.pi

    # Nothing is to be done where the goal is reached anyway, or missed by more than any such turn
    # moves it. A turn moves the wrist by up to d4 times itself, and swings the offset d5 with wrist
    # 3, by the more the smaller the sine of wrist 2 is.
    _, _, xz, _, _, yz, zz, _ = in_plane(goal, pan)
    sine = math.sqrt(xz * xz + yz * yz)
    swing = 2.0 * most / sine if sine > most else 2.0
    missing = missing_reach(lengths, goal, pan, flip)
    if missing <= NEAR or missing > d4 * most + d5 * swing:
        return pan

    # The offset swings most at the turn where the tool's z axis has no component ahead.
    ahead_of_z = math.cos(pan) * goal[0, 2] + math.sin(pan) * goal[1, 2]
    swing_turn = -math.atan2(math.copysign(1.0, zz) * ahead_of_z, abs(zz))

    # The best of some turns, and, unless it reaches, the best between its neighbours low and high.
    least, best, low, high = halve_turns(lengths, goal, pan, flip, most, swing_turn, missing)
    if least > NEAR:
        # The goal is reached at one angle only, or nowhere.
        low = max(low, -most)
        high = min(high, most)
        middle = section_turns(lengths, goal, pan, flip, low, high)
        if missing_reach(lengths, goal, pan + middle, flip) < least:
            best = middle
    # `best` is infinite where no turn is better than none.
    return pan + best if abs(best) <= most else pan


def halve_turns(
    lengths: Array,
    goal: Array,
    pan: float,
    flip: int,
    most: float,
    swing_turn: float,
    missing: float,
) -> tuple[float, float, float, float]:
    """Try turns of the pan that halve their distance from zero, and from `swing_turn`.

    Args:
        lengths: Lengths of the arm (4,), m: see `ClosedFormArm`.
        goal: The target without base and tool (3, 4): see `BranchBuffers`.
        pan: The angle without rounding, rad.
        flip: Whether the wrist is flipped (1) or not (0).
        most: The largest turn, rad.
        swing_turn: The turn where the offset swings most, rad.
        missing: Distance by which the goal is out of reach without a turn, m.

    Returns:
        The distance by which the goal is missed with the best turn, m (at least `NEAR`); that turn,
        rad (infinite if none is better than no turn; the smallest of those that reach); and the two
        turns, rad, between which a better one may be.
    """
    least = missing
    best = math.inf
    low = 0.0
    high = 0.0
    for halving in range(HALVINGS):
        # To either side of zero, then to either side of `swing_turn`.
        for attempt in range(4):
            centre = 0.0 if attempt < 2 else swing_turn
            away = (most if attempt % 2 == 0 else -most) * 0.5**halving
            turn = centre + away
            if abs(turn) > most:
                continue
            candidate = missing_reach(lengths, goal, pan + turn, flip)
            is_smaller = candidate <= NEAR and abs(turn) < abs(best)
            if max(candidate, NEAR) < least or is_smaller:
                least = max(candidate, NEAR)
                best = turn
                low = centre + 0.5 * min(away, 4.0 * away)
                high = centre + 0.5 * max(away, 4.0 * away)
    return least, best, low, high


def section_turns(
    lengths: Array, goal: Array, pan: float, flip: int, low: float, high: float
) -> float:
    """Return the turn of the pan, rad, between two, with which the goal is missed least.

    It is located by a golden-section search.
    """
    for _ in range(SECTIONS):
        left = high - LARGER_PART * (high - low)
        right = low + LARGER_PART * (high - low)
        missing_left = missing_reach(lengths, goal, pan + left, flip)
        if missing_left < missing_reach(lengths, goal, pan + right, flip):
            high = right
        else:
            low = left
    return 0.5 * (low + high)
