"""The plane of a UR arm's links: the goal in it, and how two links reach a point."""

from __future__ import annotations

import math

from simbridge.robot.pose import Array

# The singularity of a stretched or folded arm, as a bit.
ELBOW = 2
# Lengths (m) and sines that are rounding: a joint that they leave undetermined is free.
FREE = 1e-11
# Two solutions nearer than this (rad, or m of the wrist's distance) count as one: rounding
# separates them by up to 1e-7.
FOLD = 1e-6


def in_plane(
    goal: Array, pan: float
) -> tuple[float, float, float, float, float, float, float, float]:
    """Return the goal in the plane of the arm: x ahead, y up, z along the parallel axes.

    Args:
        goal: The goal (3, 4), of `branches`.
        pan: The angle of the pan, rad.

    Returns:
        The goal's x axis (3), its y axis (3), the component of its z axis along the parallel axes,
        and the distance ahead of its origin, m.
    """
    s1 = math.sin(pan)
    c1 = math.cos(pan)
    xx = c1 * goal[0, 0] + s1 * goal[1, 0]
    xy = goal[2, 0]
    xz = s1 * goal[0, 0] - c1 * goal[1, 0]
    yx = c1 * goal[0, 1] + s1 * goal[1, 1]
    yy = goal[2, 1]
    yz = s1 * goal[0, 1] - c1 * goal[1, 1]
    zz = s1 * goal[0, 2] - c1 * goal[1, 2]
    wx = c1 * goal[0, 3] + s1 * goal[1, 3]
    return xx, xy, xz, yx, yy, yz, zz, wx


def wrist_3_angle(xz: float, yz: float, flip: int) -> float:
    """Return the angle of wrist 3, rad.

    Args:
        xz: The component of the goal's x axis along the parallel axes.
        yz: The component of its y axis along them.
        flip: Whether the wrist is flipped (1) or not (0).
    """
    if flip == 0:
        return math.atan2(-yz, xz)
    return math.atan2(yz, -xz)


def elbow(
    x: float, y: float, a: float, b: float, near: float, slack: float, out: Array
) -> tuple[int, int]:
    """Find both postures of two links in a plane.

    Args:
        x: The goal ahead of the first joint, m.
        y: The goal above the first joint, m.
        a: The length of the first link, m.
        b: The length of the second link, m.
        near: The first angle where the goal leaves it free, rad.
        slack: Distance by which the goal may be out of reach, m; the links then point to it.
        out: Result (2, 2): rows of the two joint angles, rad.

    Returns:
        The number of postures, and ELBOW if they coincide or are undetermined.
    """
    distance = math.sqrt(x * x + y * y)
    if distance > a + b + slack or distance < abs(a - b) - slack:
        return 0, 0

    # The law of cosines in its half-angle form, which stays accurate where the arm is stretched or
    # folded.
    r = min(max(distance, abs(a - b)), a + b)
    stretched = (a + b + r) * max(0.0, a + b - r)
    folded = max(0.0, r - a + b) * max(0.0, r + a - b)
    bend = 2.0 * math.atan2(math.sqrt(stretched), math.sqrt(folded))
    inner = 2.0 * math.atan2(
        math.sqrt(max(0.0, a + b - r) * max(0.0, r - a + b)),
        math.sqrt((a + b + r) * max(0.0, r + a - b)),
    )

    direction = near + inner if distance < FREE else math.atan2(y, x)
    out[0, 0] = direction - inner
    out[0, 1] = bend
    out[1, 0] = direction + inner
    out[1, 1] = -bend
    if distance < FREE or bend < FOLD or math.pi - bend < FOLD:
        return 1, ELBOW
    return 2, 0
