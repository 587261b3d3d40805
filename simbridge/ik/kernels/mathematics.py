"""The mathematics of a serial chain, once, over scalars.

With floats these functions are the reference; with expressions they leave straight-line code. A vector is a list of
three scalars, a matrix a list of rows, a twist [translation, rotation] a list of six. Every joint's axis is the z axis
of its own frame; everything is in base axes, and moments are about the tool's point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from simbridge.ik.kernels.expression import Scalar, opaque

Vector = list[Scalar]
Matrix = list[list[Scalar]]


@dataclass(frozen=True)
class Frames:
    """Where everything is.

    Attributes:
        origins, axes: Of each joint (before it moves).
        rotation, position: Of the tool.
    """

    origins: list[Vector]
    axes: list[Vector]
    rotation: Matrix
    position: Vector


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """a . b"""
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def cross(a: Vector, b: Vector) -> Vector:
    """a x b"""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def plus(a: Vector, b: Vector) -> Vector:
    """a + b"""
    return [x + y for x, y in zip(a, b, strict=True)]


def minus(a: Vector, b: Vector) -> Vector:
    """a - b"""
    return [x - y for x, y in zip(a, b, strict=True)]


def scaled(factor: Scalar, a: Vector) -> Vector:
    """factor a"""
    return [factor * x for x in a]


def columns(a: Matrix) -> list[Vector]:
    """The transpose."""
    return [list(column) for column in zip(*a, strict=True)]


def product(a: Matrix, b: Matrix) -> Matrix:
    """A B"""
    return [[dot(row, column) for column in columns(b)] for row in a]


def frames(placements: Sequence[Matrix], slides: Sequence[bool], q: Sequence[Scalar]) -> Frames:
    """Joint frames and tool frame of a chain.

    Args:
        placements: Each joint's frame in the one before it, then the tool in the last: [R | p] rows of four.
        slides: Which joints are prismatic.
        q: Joint positions.
    """
    rotation: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    position: Vector = [0.0, 0.0, 0.0]
    origins, axes = [], []
    for i, placement in enumerate(placements):
        position = plus(position, [dot(row, [entry[3] for entry in placement]) for row in rotation])
        rotation = product(rotation, [row[:3] for row in placement])
        if i == len(q):
            break
        x, y, z = columns(rotation)
        origins.append(position)
        axes.append(z)
        if slides[i]:
            position = plus(position, scaled(q[i], z))
        else:
            c, s = cosine_and_sine(q[i])
            rotation = columns([plus(scaled(c, x), scaled(s, y)), minus(scaled(c, y), scaled(s, x)), z])
    return Frames(origins, axes, rotation, position)


def jacobian(at: Frames, slides: Sequence[bool]) -> list[Vector]:
    """The tool's twist for a unit velocity of each joint: the columns of the geometric Jacobian."""
    return [
        [*axis, 0.0, 0.0, 0.0] if slide else [*cross(axis, minus(at.position, origin)), *axis]
        for origin, axis, slide in zip(at.origins, at.axes, slides, strict=True)
    ]


def task_rows(at: Frames, motion: Vector, task: str = "pose") -> Vector:
    """What a task sees of a twist or an error: all; or translation alone; or, of an axis, the turns that tilt it.

    Those are the turns about the tool's own x and y axes, which is all of a turn that moves its z axis.
    """
    if task == "position":
        return motion[:3]
    if task == "axis":
        x, y, _ = columns(at.rotation)
        return [*motion[:3], dot(x, motion[3:]), dot(y, motion[3:])]
    return motion


def mass_matrix(at: Frames, twists: list[Vector], twin: Sequence[Scalar]) -> Matrix:
    """The virtual twin's mass matrix, lower triangle, by composite rigid bodies.

    Args:
        at: The frames.
        twists: The Jacobian's columns.
        twin: Tool mass and inertia, then each link's, which sit at the origin of the link's own joint.
    """
    mass, inertia, link_mass, link_inertia = twin
    # The body beyond joint j: its mass, first moment h, and moments of inertia.
    h: Vector = [0.0, 0.0, 0.0]
    xx, yy, zz = inertia, inertia, inertia
    xy: Scalar = 0.0
    xz: Scalar = 0.0
    yz: Scalar = 0.0
    rows: Matrix = []
    for j in reversed(range(len(twists))):
        x, y, z = r = minus(at.origins[j], at.position)
        mx, my, mz = m_r = scaled(link_mass, r)
        mass = mass + link_mass
        h = plus(h, m_r)
        xx = xx + (link_inertia + (my * y + mz * z))
        yy = yy + (link_inertia + (mx * x + mz * z))
        zz = zz + (link_inertia + (mx * x + my * y))
        xy, xz, yz = xy - mx * y, xz - mx * z, yz - my * z
        # Force and torque that give that body joint j's unit acceleration.
        v, w = twists[j][:3], twists[j][3:]
        force = plus(scaled(mass, v), cross(w, h))
        torque = plus([dot(row, w) for row in ([xx, xy, xz], [xy, yy, yz], [xz, yz, zz])], cross(h, v))
        rows.insert(0, [dot(twists[i], [*force, *torque]) for i in range(j + 1)])
    return rows


def factorised(a: Matrix) -> tuple[Matrix, Vector]:
    """L (unit lower triangular, below its diagonal) and 1/D of A = L D L^T, from A's lower triangle."""
    n = len(a)
    lower: Matrix = [[0.0] * n for _ in range(n)]
    # u = L D, so that each product is formed once.
    upper: Matrix = [[0.0] * n for _ in range(n)]
    inverse: Vector = []
    for j in range(n):
        for i in range(j, n):
            upper[i][j] = a[i][j] - dot(upper[i][:j], lower[j][:j])
            if i == j:
                inverse.append(1.0 / upper[j][j])
            else:
                lower[i][j] = upper[i][j] * inverse[j]
    return lower, inverse


def forward_substituted(lower: Matrix, b: Vector) -> Vector:
    """L^-1 b"""
    y: Vector = []
    for row, value in zip(lower, b, strict=True):
        y.append(value - dot(row[: len(y)], y))
    return y


def solved(a: Matrix, b: Vector) -> Vector:
    """x of A x = b, A symmetric and positive definite, given by its lower triangle."""
    lower, inverse = factorised(a)
    x = [d * y for d, y in zip(inverse, forward_substituted(lower, b), strict=True)]
    for i in reversed(range(len(x))):
        for k in range(i + 1, len(x)):
            x[i] = x[i] - lower[k][i] * x[k]
    return x


def weighted(twists: list[Vector], a: Matrix) -> Matrix:
    """J A^-1 J^T, lower triangle (6 rows): how readily the tool accelerates, when A is a mass matrix."""
    lower, inverse = factorised(a)
    halves = [forward_substituted(lower, list(row)) for row in columns(twists)]
    others = [[d * y for d, y in zip(inverse, half, strict=True)] for half in halves]
    return [[dot(halves[i], others[j]) for j in range(i + 1)] for i in range(6)]


def pose_error(target: Vector, wanted: Matrix, at: Frames, task: str = "pose") -> Vector:
    """Target minus tool, as far as the task sees it: translation, then the Rodrigues vector of R_target R_tool^T.

    For an axis the Rodrigues vector is the smallest that brings the tool's z axis to the target's; for a position zero.
    """
    if task == "position":
        return [*minus(target, at.position), 0.0, 0.0, 0.0]
    if task == "axis":
        x, _, z = columns(at.rotation)
        return [*minus(target, at.position), *axis_turn(*z, *columns(wanted)[2], *x)]
    turn = [[dot(row, other) for other in at.rotation] for row in wanted]
    return [*minus(target, at.position), *rotation_vector(*turn[0], *turn[1], *turn[2])]


def clamped(error: Vector, largest: Sequence[Scalar]) -> Vector:
    """Translation and rotation shortened to largest[0] m and largest[1] rad, directions kept."""
    x, y, z, rx, ry, rz = error
    return [*shortened(x, y, z, largest[0]), *shortened(rx, ry, rz, largest[1])]


@opaque(outputs=2)
def cosine_and_sine(angle: float) -> tuple[float, float]:
    """Both within 2 units in the last place, in less than half the time of two calls of the C library.

    Cody and Waite's reduction to a quarter turn (pi/2 in three parts), then fdlibm's minimax polynomials, whose terms
    are paired (Estrin) so that they can be computed side by side.
    """
    # Beyond, the reduction would lose digits; not a number ends here, too.
    if not abs(angle) < 1e5:
        return math.cos(angle), math.sin(angle)
    # Adding and taking away 1.5 * 2^52 rounds to the nearest whole number.
    quarters = (angle * 0.6366197723675814 + 6755399441055744.0) - 6755399441055744.0
    x = ((angle - quarters * 1.5707963267341256) - quarters * 6.077100506303966e-11) - quarters * 2.0222662487959506e-21
    x2 = x * x
    x4 = x2 * x2
    sine = x + (x * x2) * (
        (-1.66666666666666324348e-01 + x2 * 8.33333333332248946124e-03)
        + x4
        * (
            (-1.98412698298579493134e-04 + x2 * 2.75573137070700676789e-06)
            + x4 * (-2.50507602534068634195e-08 + x2 * 1.58969099521155010221e-10)
        )
    )
    cosine = (1.0 - 0.5 * x2) + x4 * (
        (4.16666666666666019037e-02 + x2 * -1.38888888888741095749e-03)
        + x4
        * (
            (2.48015872894767294178e-05 + x2 * -2.75573143513906633035e-07)
            + x4 * (2.08757232129817482790e-09 + x2 * -1.13596475577881948265e-11)
        )
    )
    quadrant = int(quarters)
    a, b = (sine, cosine) if quadrant & 1 else (cosine, sine)
    return (-a if (quadrant + 1) & 2 else a), (-b if quadrant & 2 else b)


@opaque(outputs=3)
def shortened(x: float, y: float, z: float, largest: float) -> tuple[float, float, float]:
    """A vector in its own direction, at most so long."""
    norm = math.sqrt(x * x + y * y + z * z)
    scale = largest / norm if norm > largest else 1.0
    return scale * x, scale * y, scale * z


@opaque(outputs=3)
def axis_turn(
    ax: float, ay: float, az: float, bx: float, by: float, bz: float, nx: float, ny: float, nz: float
) -> tuple[float, float, float]:
    """The smallest Rodrigues vector that turns the unit vector a into b; about n, which is across a, if they oppose."""
    x, y, z = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    sine = math.sqrt(x * x + y * y + z * z)
    cosine = ax * bx + ay * by + az * bz
    if sine > 1e-12:
        scale = math.atan2(sine, cosine) / sine
    elif cosine > 0.0:
        scale = 1.0
    else:
        x, y, z, scale = nx, ny, nz, math.pi
    return scale * x, scale * y, scale * z


@opaque(outputs=3)
def rotation_vector(
    d00: float, d01: float, d02: float, d10: float, d11: float, d12: float, d20: float, d21: float, d22: float
) -> tuple[float, float, float]:
    """The Rodrigues vector of a rotation matrix: exact, no dead band near zero, a branch of its own near pi."""
    # Half the skew part is sin(angle) times the axis; half the trace less one is cos(angle).
    x, y, z = 0.5 * (d21 - d12), 0.5 * (d02 - d20), 0.5 * (d10 - d01)
    sine = math.sqrt(x * x + y * y + z * z)
    cosine = 0.5 * (d00 + d11 + d22 - 1.0)
    angle = math.atan2(sine, cosine)
    if cosine > -0.99:
        scale = angle / sine if sine > 1e-12 else 1.0
        return scale * x, scale * y, scale * z
    # Near pi the sine vanishes and only the symmetric part still knows the axis (up to its sign).
    k = 1.0 / (1.0 - cosine)
    if d00 >= d11 and d00 >= d22:
        ax = math.sqrt(max(0.0, (d00 - cosine) * k))
        ay, az = 0.5 * (d01 + d10) * k / ax, 0.5 * (d02 + d20) * k / ax
    elif d11 >= d22:
        ay = math.sqrt(max(0.0, (d11 - cosine) * k))
        ax, az = 0.5 * (d01 + d10) * k / ay, 0.5 * (d12 + d21) * k / ay
    else:
        az = math.sqrt(max(0.0, (d22 - cosine) * k))
        ax, ay = 0.5 * (d02 + d20) * k / az, 0.5 * (d12 + d21) * k / az
    if ax * x + ay * y + az * z < 0.0:
        angle = -angle
    scale = angle / math.sqrt(ax * ax + ay * ay + az * az)
    return scale * ax, scale * ay, scale * az
