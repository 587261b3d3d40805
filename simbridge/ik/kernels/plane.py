"""The vertical plane in which a UR arm's links move: the goal in it, and how the links reach it.

The axes of shoulder, elbow and wrist 1 are parallel, and normal to this plane: "the parallel axes".
"""

from __future__ import annotations

import math

from simbridge.robot.pose import Array

# Bit of the singularity of a stretched or folded arm.
ELBOW = 2
# Length (m) or sine up to which a direction is rounding, so that it leaves a joint free.
FREE = 1e-11
# Distance of two solutions up to which they count as one, rad, or m for the wrist's distance from
# the pan axis: rounding separates equal ones by up to 1e-7.
FOLD = 1e-6


def in_plane(
    goal: Array, pan: float
) -> tuple[float, float, float, float, float, float, float, float]:
    """Express the goal in the plane of the arm: x ahead, y up, z along the parallel axes.

    Args:
        goal: Goal of the last joint's frame in the arm's base (3, 4): see `BranchBuffers`.
        pan: Angle of the pan, the first joint, rad.

    Returns:
        The components of the goal's x axis (3) and y axis (3), the z component of its z axis, and
        the x component of its origin, m.
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
    """Return the angle of wrist 3 with which the axis of wrist 2 lies in the plane, rad.

    Args:
        xz: Component of the goal's x axis along the parallel axes.
        yz: Component of the goal's y axis along the parallel axes.
        flip: Whether the wrist is flipped (1) or not (0).
    """
    if flip == 0:
        return math.atan2(-yz, xz)
    return math.atan2(yz, -xz)


def elbow(
    x: float, y: float, a: float, b: float, near: float, slack: float, out: Array
) -> tuple[int, int]:
    """Find both postures in which two links in a plane reach a point.

    Args:
        x: Distance of the point ahead of the first joint, m.
        y: Height of the point above the first joint, m.
        a: Length of the first link, m.
        b: Length of the second link, m.
        near: First joint angle to choose if the point, at the first joint, leaves it free, rad.
        slack: Distance by which the point may be out of reach, m; the links then point to it.
        out: Result (2, 2): the two joint angles of each posture, rad.

    Returns:
        The number of postures, 0 to 2; and the bit ELBOW if two postures coincide, or if the point
        leaves the first angle free, else 0.
    """
    distance = math.sqrt(x * x + y * y)
    if distance > a + b + slack or distance < abs(a - b) - slack:
        return 0, 0

    # The angles of the triangle with the sides a, b and r, by the law of cosines in its half-angle
    # form, which stays accurate if the arm is stretched or folded. `bend` is the second joint
    # angle, and `inner` the angle between the first link and the direction of the point.
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
