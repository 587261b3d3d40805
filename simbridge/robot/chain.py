"""The kinematics of a serial chain, over scalars: frames, Jacobian, and the rows of a task.

A scalar may be a float, a numpy column (one value per sample), or an expression of
`simbridge.kernels.expression`, from which the compiled solvers are generated. The operations and
their order are the same for all three, so the results agree bit for bit.

A vector is a list of three scalars, a matrix a list of rows, a twist [translation, rotation] a list
of six. Each joint moves about or along the z axis of its own frame; everything is in base axes, and
moments are about the tool's point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Scalar: TypeAlias = Any
"""A float, a numpy column, or an expression."""

Vector: TypeAlias = list[Scalar]
Matrix: TypeAlias = list[list[Scalar]]

TASK_ROWS = {"pose": 6, "axis": 5, "position": 3}
"""Every task by name, with its number of rows: see `task_rows`."""

# A double cannot represent the angles pi/2 and pi exactly: entries this close to 0, 1 or -1 are
# meant to be that.
ENTRY_ROUNDING = 1e-14

# Angles beyond this are not reduced to a quarter turn here, rad: digits would be lost.
MAX_REDUCED_ANGLE = 1e5
# 2 / pi.
QUARTERS_PER_RADIAN = 0.6366197723675814
# 1.5 * 2^52: adding and subtracting it rounds a double to the nearest whole number.
WHOLE_NUMBER_SHIFT = 6755399441055744.0
# Cody and Waite's parts of a quarter turn, pi / 2, from the largest to the smallest: a small
# multiple of each but the last is exact.
QUARTER_TURN_HIGH = 1.5707963267341256
QUARTER_TURN_MIDDLE = 6.077100506303966e-11
QUARTER_TURN_LOW = 2.0222662487959506e-21
# fdlibm's minimax coefficients, named by the power of the angle.
SINE_3 = -1.66666666666666324348e-01
SINE_5 = 8.33333333332248946124e-03
SINE_7 = -1.98412698298579493134e-04
SINE_9 = 2.75573137070700676789e-06
SINE_11 = -2.50507602534068634195e-08
SINE_13 = 1.58969099521155010221e-10
COSINE_4 = 4.16666666666666019037e-02
COSINE_6 = -1.38888888888741095749e-03
COSINE_8 = 2.48015872894767294178e-05
COSINE_10 = -2.75573143513906633035e-07
COSINE_12 = 2.08757232129817482790e-09
COSINE_14 = -1.13596475577881948265e-11


@dataclass(frozen=True)
class Frames:
    """The frames of a chain at one posture.

    Attributes:
        origins: Origin of each joint's frame, before the joint moves.
        axes: The z axis of each joint's frame.
        rotation: Rotation of the tool.
        position: Position of the tool.
    """

    origins: list[Vector]
    axes: list[Vector]
    rotation: Matrix
    position: Vector


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """Return the scalar product of two vectors."""
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def cross(a: Vector, b: Vector) -> Vector:
    """Return the vector product of two vectors."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def plus(a: Vector, b: Vector) -> Vector:
    """Return a + b."""
    return [x + y for x, y in zip(a, b, strict=True)]


def minus(a: Vector, b: Vector) -> Vector:
    """Return a - b."""
    return [x - y for x, y in zip(a, b, strict=True)]


def scale_vector(factor: Scalar, a: Vector) -> Vector:
    """Return the product of a number and a vector."""
    return [factor * x for x in a]


def columns(a: Matrix) -> list[Vector]:
    """Return the transpose."""
    return [list(column) for column in zip(*a, strict=True)]


def frames(
    placements: Sequence[Matrix],
    prismatic: Sequence[bool] | NDArray[np.bool_],
    q: Sequence[Scalar],
    cosine_and_sine: Callable[[Scalar], tuple[Scalar, Scalar]],
) -> Frames:
    """Return joint frames and tool frame of a chain at one posture.

    Args:
        placements: Each joint's frame in the one before it, then the tool in the last: [R | p] rows
            of four.
        prismatic: Which joints slide (n).
        q: Joint positions (n), rad or m.
        cosine_and_sine: Returns both of an angle, for the kind of scalar that q holds.
    """
    # The frame reached so far: the columns x, y, z of its rotation and its position p, written out.
    # This also runs uncompiled, once per period of the emulated controller.
    x0, x1, x2 = 1.0, 0.0, 0.0
    y0, y1, y2 = 0.0, 1.0, 0.0
    z0, z1, z2 = 0.0, 0.0, 1.0
    px, py, pz = 0.0, 0.0, 0.0
    origins = []
    axes = []
    for i, (row_0, row_1, row_2, *_) in enumerate(placements):
        # The next frame in this one: its columns a, b, c and its origin t.
        a0, b0, c0, t0 = row_0
        a1, b1, c1, t1 = row_1
        a2, b2, c2, t2 = row_2

        px = px + (x0 * t0 + y0 * t1 + z0 * t2)
        py = py + (x1 * t0 + y1 * t1 + z1 * t2)
        pz = pz + (x2 * t0 + y2 * t1 + z2 * t2)

        # Its columns in base axes, before the joint turns: u, v and w.
        u0 = x0 * a0 + y0 * a1 + z0 * a2
        u1 = x1 * a0 + y1 * a1 + z1 * a2
        u2 = x2 * a0 + y2 * a1 + z2 * a2
        v0 = x0 * b0 + y0 * b1 + z0 * b2
        v1 = x1 * b0 + y1 * b1 + z1 * b2
        v2 = x2 * b0 + y2 * b1 + z2 * b2
        w0 = x0 * c0 + y0 * c1 + z0 * c2
        w1 = x1 * c0 + y1 * c1 + z1 * c2
        w2 = x2 * c0 + y2 * c1 + z2 * c2
        x0, x1, x2 = u0, u1, u2
        y0, y1, y2 = v0, v1, v2
        z0, z1, z2 = w0, w1, w2

        # Behind the last joint there is only the tool.
        if i == len(q):
            break
        origins.append([px, py, pz])
        axes.append([z0, z1, z2])

        if prismatic[i]:
            px = px + q[i] * z0
            py = py + q[i] * z1
            pz = pz + q[i] * z2
        else:
            c, s = cosine_and_sine(q[i])
            x0 = c * u0 + s * v0
            x1 = c * u1 + s * v1
            x2 = c * u2 + s * v2
            y0 = c * v0 - s * u0
            y1 = c * v1 - s * u1
            y2 = c * v2 - s * u2
    return Frames(origins, axes, [[x0, y0, z0], [x1, y1, z1], [x2, y2, z2]], [px, py, pz])


def jacobian(posture: Frames, prismatic: Sequence[bool] | NDArray[np.bool_]) -> list[Vector]:
    """Return the tool's twist for a unit velocity of each joint.

    These are the columns of the geometric Jacobian.

    Args:
        posture: The frames of the chain.
        prismatic: Which joints slide (n).
    """
    twists = []
    for origin, axis, slides in zip(posture.origins, posture.axes, prismatic, strict=True):
        if slides:
            twists.append([*axis, 0.0, 0.0, 0.0])
        else:
            twists.append([*cross(axis, minus(posture.position, origin)), *axis])
    return twists


def task_rows(posture: Frames, motion: Vector, task: str = "pose") -> Vector:
    """Return the components of a twist or an error that a task constrains.

    "pose": all six. "position": the translation. "axis": the translation, and the rotation about
    the tool's own x and y axes, which is the part that tilts its z axis.

    Args:
        posture: The frames of the chain.
        motion: The twist or error.
        task: "pose", "axis" or "position".
    """
    if task == "position":
        return motion[:3]
    if task == "axis":
        x, y, _ = columns(posture.rotation)
        return [*motion[:3], dot(x, motion[3:]), dot(y, motion[3:])]
    return motion


def exact_placements(placements: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return placements (n + 1, 4, 4) with entries that are 0, 1 or -1 up to rounding set to that.

    The tool's are kept.
    """
    nearest = np.round(placements)
    is_exact = (np.abs(placements - nearest) < ENTRY_ROUNDING) & (np.abs(nearest) <= 1.0)
    is_exact[-1] = False
    # Without negative zeros, so that equal structures have equal bytes.
    return np.where(is_exact, nearest + 0.0, placements)


def cosine_and_sine(angle: float) -> tuple[float, float]:
    """Return cosine and sine, both within 2 units in the last place.

    It takes less than half the time of two calls of the C library: Cody and Waite's reduction to a
    quarter turn (pi/2 in three parts), then fdlibm's minimax polynomials, whose terms are paired
    (Estrin) so that they can be computed in parallel.
    """
    # NaN also ends here.
    if not abs(angle) < MAX_REDUCED_ANGLE:
        return math.cos(angle), math.sin(angle)

    # The nearest whole number of quarter turns.
    quarters = (angle * QUARTERS_PER_RADIAN + WHOLE_NUMBER_SHIFT) - WHOLE_NUMBER_SHIFT
    cosine, sine = cosine_and_sine_of_remainder(angle, quarters)

    # A quarter turn makes the one the other; signs follow the quadrant.
    quadrant = int(quarters)
    if quadrant & 1:
        cosine, sine = sine, cosine
    if (quadrant + 1) & 2:
        cosine = -cosine
    if quadrant & 2:
        sine = -sine
    return cosine, sine


def cosine_and_sine_of_remainder(angle: Scalar, quarters: Scalar) -> tuple[Scalar, Scalar]:
    """Return cosine and sine of an angle less some quarter turns.

    Args:
        angle: The angle, rad.
        quarters: How many; what remains is at most an eighth of a turn.
    """
    x = (
        (angle - quarters * QUARTER_TURN_HIGH) - quarters * QUARTER_TURN_MIDDLE
    ) - quarters * QUARTER_TURN_LOW

    x2 = x * x
    x4 = x2 * x2
    sine = x + (x * x2) * (
        (SINE_3 + x2 * SINE_5) + x4 * ((SINE_7 + x2 * SINE_9) + x4 * (SINE_11 + x2 * SINE_13))
    )
    cosine = (1.0 - 0.5 * x2) + x4 * (
        (COSINE_4 + x2 * COSINE_6)
        + x4 * ((COSINE_8 + x2 * COSINE_10) + x4 * (COSINE_12 + x2 * COSINE_14))
    )
    return cosine, sine
