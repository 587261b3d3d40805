"""Turns the pan and wrist 3 of a UR arm within rounding, so that the arm reaches after all.

Near a singularity, rounding in the target becomes a large error of an angle: of wrist 3 if the
wrist is nearly singular, and of the pan if the shoulder is. If the arm is nearly stretched or
folded as well, that error may put a pose that the arm has attained out of reach. For example, if
the sine of wrist 2 is 1e-5 and the wrist is 1e-7 m from the pan axis, the last digit of a target
changes the pan by 1e-9 rad, wrist 3 by 1e-4 rad, and the point that the two links must reach by
1e-5 m.

Conversely, turning these joints by such angles moves the tool by no more than rounding. The
functions here search these turns for one with which the arm reaches.
"""

from __future__ import annotations

import math

from simbridge.ik.kernels.plane import FREE, in_plane, wrist_3_angle
from simbridge.robot.pose import Array

# Largest motion of the tool by a turn that counts as within rounding, m and rad: a thousand times
# the rounding of a target.
ROUNDING = 1e-12
# Distance out of reach that the search counts as within reach, m: far below the slack of a target.
NEAR = 1e-13
# Number of times that the largest turn is halved.
HALVINGS = 40
# Number of steps of the golden-section search.
SECTIONS = 60
# Larger part of a section of length one: the golden ratio's inverse.
LARGER_PART = 0.5 * (math.sqrt(5.0) - 1.0)


def reachable_turn(cx: float, cy: float, vx: float, vy: float, a: float, b: float) -> float:
    """Return the smallest turn of an offset that brings the end of two links within their reach.

    In the plane of the arm, the links end at the point c - v: the wrist's position c minus the
    offset v of wrist 2, which turns with wrist 3.

    Args:
        cx: x component of c, m, from the first link's joint.
        cy: y component of c, m.
        vx: x component of v, m.
        vy: y component of v, m.
        a: Length of the first link, m.
        b: Length of the second link, m.

    Returns:
        The turn of v, rad; 0 if c - v is within reach. If no turn is enough, the one that brings
        c - v nearest to within reach.
    """
    c2 = cx * cx + cy * cy
    v2 = vx * vx + vy * vy
    product = 2.0 * math.sqrt(c2 * v2)
    # Turning an offset of no length, or about its own end, changes nothing.
    if product < FREE:
        return 0.0

    # By the law of cosines |c - v| grows with the angle from c to v: at `folded` it is the shortest
    # reach of the links, and at `stretched` the longest.
    angle = math.atan2(cx * vy - cy * vx, cx * vx + cy * vy)
    folded = math.acos(min(1.0, max(-1.0, (c2 + v2 - (a - b) ** 2) / product)))
    stretched = math.acos(min(1.0, max(-1.0, (c2 + v2 - (a + b) ** 2) / product)))
    reachable_angle = math.copysign(min(max(abs(angle), folded), stretched), angle)
    return reachable_angle - angle


def turn_within_rounding(turn: float, sine: float) -> float:
    """Return a turn of wrist 3, rad, clamped so that it moves the tool by no more than rounding.

    Args:
        turn: The turn, rad.
        sine: Sine of the angle of wrist 2.
    """
    max_turn = math.pi if sine < FREE else ROUNDING / sine
    return min(max(turn, -max_turn), max_turn)


def missing_reach(lengths: Array, goal: Array, pan: float, flip: int) -> float:
    """Return the distance by which the two links miss their end point, m.

    Wrist 3 is turned within rounding so that this distance is as small as possible.

    Args:
        lengths: Lengths of the arm (4,), m: see `ClosedFormArm`.
        goal: Goal of the last joint's frame in the arm's base (3, 4): see `BranchBuffers`.
        pan: Angle of the pan, rad.
        flip: Whether the wrist is flipped (1) or not (0).
    """
    a = lengths[0]
    b = lengths[1]
    d5 = lengths[3]
    # The offset d5 of the wrist, along the axis of wrist 2, which lies in the plane.
    xx, xy, xz, yx, yy, yz, _, wx = in_plane(goal, pan)
    q6 = wrist_3_angle(xz, yz, flip)
    s6 = math.sin(q6)
    c6 = math.cos(q6)
    vx = -d5 * (s6 * xx + c6 * yx)
    vy = -d5 * (s6 * xy + c6 * yy)
    turn = reachable_turn(wx, goal[2, 3], vx, vy, a, b)
    turn = turn_within_rounding(turn, math.sqrt(xz * xz + yz * yz))

    # The end point of the links with the offset turned, and its distance from their reach.
    s = math.sin(turn)
    c = math.cos(turn)
    x = wx - (c * vx - s * vy)
    y = goal[2, 3] - (s * vx + c * vy)
    distance = math.sqrt(x * x + y * y)
    return max(0.0, distance - a - b, abs(a - b) - distance)


def pan_within_rounding(lengths: Array, goal: Array, pan: float, ahead: float, flip: int) -> float:
    """Return the angle of the pan with which the arm reaches its goal, or comes nearest, rad.

    Only angles that differ from the exact one by a turn within rounding are tried. If none of them
    is better, the exact angle is returned.

    Args:
        lengths: Lengths of the arm (4,), m: see `ClosedFormArm`.
        goal: Goal of the last joint's frame in the arm's base (3, 4): see `BranchBuffers`.
        pan: The exact angle, rad.
        ahead: Distance of the wrist ahead of the pan axis, m.
        flip: Whether the wrist is flipped (1) or not (0).
    """
    d4 = abs(lengths[2])
    d5 = abs(lengths[3])
    # The largest turn within rounding: turned by t, the wrist is off by ahead t + d4 t^2 / 2, which
    # is ROUNDING at t = 2 ROUNDING / (ahead + sqrt(ahead^2 + 2 d4 ROUNDING)).
    size = abs(ahead) + math.sqrt(ahead * ahead + 2.0 * d4 * ROUNDING)
    max_turn = min(math.pi, 2.0 * ROUNDING / size) if size > ROUNDING else math.pi

    # Keep the exact angle if the goal is reached anyway, or missed by more than any such turn can
    # move it. A turn moves the wrist by up to d4 times the turn. It also swings the offset d5, the
    # more the smaller the sine of wrist 2 is, since wrist 3 must follow.
    _, _, xz, _, _, yz, zz, _ = in_plane(goal, pan)
    sine = math.sqrt(xz * xz + yz * yz)
    swing = 2.0 * max_turn / sine if sine > max_turn else 2.0
    missing = missing_reach(lengths, goal, pan, flip)
    if missing <= NEAR or missing > d4 * max_turn + d5 * swing:
        return pan

    # The offset swings most at the turn where the tool's z axis has no component ahead.
    ahead_of_z = math.cos(pan) * goal[0, 2] + math.sin(pan) * goal[1, 2]
    swing_turn = -math.atan2(math.copysign(1.0, zz) * ahead_of_z, abs(zz))

    # Try turns of all magnitudes. If the best one does not reach, refine it between the turns `low`
    # and `high` next to it.
    least_missing, best_turn, low, high = halve_turns(
        lengths, goal, pan, flip, max_turn, swing_turn, missing
    )
    if least_missing > NEAR:
        # The goal is reached at a single angle, or nowhere.
        low = max(low, -max_turn)
        high = min(high, max_turn)
        refined_turn = section_turns(lengths, goal, pan, flip, low, high)
        if missing_reach(lengths, goal, pan + refined_turn, flip) < least_missing:
            best_turn = refined_turn
    # The best turn is infinite if no turn is better than none.
    return pan + best_turn if abs(best_turn) <= max_turn else pan


def halve_turns(
    lengths: Array,
    goal: Array,
    pan: float,
    flip: int,
    max_turn: float,
    swing_turn: float,
    missing: float,
) -> tuple[float, float, float, float]:
    """Search for the turn of the pan with which the arm comes nearest to its goal.

    Turns around zero and around `swing_turn` are tried, at offsets that are halved from `max_turn`
    on: the goal may be reached only in a range of turns far narrower than `max_turn`.

    Args:
        lengths: Lengths of the arm (4,), m: see `ClosedFormArm`.
        goal: Goal of the last joint's frame in the arm's base (3, 4): see `BranchBuffers`.
        pan: The exact angle, rad.
        flip: Whether the wrist is flipped (1) or not (0).
        max_turn: The largest turn, rad.
        swing_turn: The turn, rad, at which a little more turn of the pan swings the offset of
            wrist 2 most: see `pan_within_rounding`.
        missing: Distance by which the goal is out of reach without a turn, m.

    Returns:
        The distance by which the goal is missed with the best turn, m (at least `NEAR`); that turn,
        rad (infinite if none is better than no turn; the smallest of those that reach); and the two
        turns, rad, between which a better one may be.
    """
    # Without a better turn, the two turns enclose nothing but zero.
    least_missing = missing
    best_turn = math.inf
    low = 0.0
    high = 0.0
    for halving in range(HALVINGS):
        size = max_turn * 0.5**halving
        # Try a turn on either side of zero, then on either side of `swing_turn`.
        for centre, offset in ((0.0, size), (0.0, -size), (swing_turn, size), (swing_turn, -size)):
            turn = centre + offset
            if abs(turn) > max_turn:
                continue

            # Turns with which the arm reaches are equally good, so the smallest of them is taken.
            turned_missing = max(missing_reach(lengths, goal, pan + turn, flip), NEAR)
            is_smaller = turned_missing == NEAR and abs(turn) < abs(best_turn)
            if turned_missing < least_missing or is_smaller:
                least_missing = turned_missing
                best_turn = turn
                # The offsets tried next to this one are its half and its double.
                low = centre + min(0.5 * offset, 2.0 * offset)
                high = centre + max(0.5 * offset, 2.0 * offset)
    return least_missing, best_turn, low, high


def section_turns(
    lengths: Array, goal: Array, pan: float, flip: int, low: float, high: float
) -> float:
    """Return the turn of the pan with which the goal is missed least, by golden-section search.

    Args:
        lengths: Lengths of the arm (4,), m: see `ClosedFormArm`.
        goal: Goal of the last joint's frame in the arm's base (3, 4): see `BranchBuffers`.
        pan: The exact angle, rad.
        flip: Whether the wrist is flipped (1) or not (0).
        low: The smallest turn, rad.
        high: The largest turn, rad.
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
