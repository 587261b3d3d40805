"""The dynamics and the pose error of a serial chain, as formulas over scalars.

A scalar may be a float, a numpy array with a value for each of many postures, or an expression.
With expressions the functions record the straight-line code that `generation` writes. The
kinematics are in `simbridge.robot.chain`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from simbridge.kernels.expression import opaque
from simbridge.robot import chain
from simbridge.robot.chain import (
    Frames,
    Matrix,
    Scalar,
    Vector,
    columns,
    cross,
    dot,
    minus,
    plus,
    scale_vector,
)
from simbridge.robot.pose import Array, Flags

# Sine of an angle up to which the direction of its rotation axis is rounding.
ROUNDING_SINE = 1e-12
# Cosine up to which an angle is near pi.
COSINE_NEAR_PI = -0.99

cosine_and_sine = opaque(outputs=2)(chain.cosine_and_sine)


def mass_matrix(frames: Frames, twists: list[Vector], twin: Sequence[Scalar]) -> Matrix:
    """Return the lower triangle of the virtual twin's mass matrix.

    The twin is an arm with simple masses: one of the tool, and the same for each link, at the
    origin of its joint. The algorithm is the composite-rigid-body algorithm.

    Args:
        frames: Frames of the chain.
        twists: Columns of the Jacobian.
        twin: Tool mass, tool inertia, link mass and link inertia (4,).
    """
    mass, inertia, link_mass, link_inertia = twin

    # The body beyond a joint, the tool at first: its mass, and its first moment and moments of
    # inertia about the tool.
    first_moment: Vector = [0.0, 0.0, 0.0]
    xx = inertia
    yy = inertia
    zz = inertia
    xy: Scalar = 0.0
    xz: Scalar = 0.0
    yz: Scalar = 0.0

    rows: Matrix = []
    for j in reversed(range(len(twists))):
        # Add the link of the joint to the body.
        offset = minus(frames.origins[j], frames.position)
        link_moment = scale_vector(link_mass, offset)
        x, y, z = offset
        mx, my, mz = link_moment
        mass = mass + link_mass
        first_moment = plus(first_moment, link_moment)
        # Steiner's parallel axis theorem: the link's own inertia, and that of its mass.
        xx = xx + (link_inertia + (my * y + mz * z))
        yy = yy + (link_inertia + (mx * x + mz * z))
        zz = zz + (link_inertia + (mx * x + my * y))
        xy = xy - mx * y
        xz = xz - mx * z
        yz = yz - my * z

        # The force and torque that accelerate this body by a unit acceleration of the joint.
        linear = twists[j][:3]
        angular = twists[j][3:]
        force = plus(scale_vector(mass, linear), cross(angular, first_moment))
        inertia_matrix = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        torque = plus([dot(row, angular) for row in inertia_matrix], cross(first_moment, linear))
        # The row of the mass matrix: the power of this force per unit speed of each joint up to
        # this one.
        rows.insert(0, [dot(twists[i], [*force, *torque]) for i in range(j + 1)])
    return rows


def factorise(a: Matrix) -> tuple[Matrix, Vector]:
    """Factorise a symmetric matrix as A = L D L^T.

    Args:
        a: The lower triangle of A.

    Returns:
        L, a lower triangle whose diagonal of ones is not written, and the diagonal of D^-1.
    """
    n = len(a)
    lower: Matrix = [[0.0] * n for _ in range(n)]
    # The product L D, of which each element is computed once.
    product: Matrix = [[0.0] * n for _ in range(n)]
    inverse: Vector = []
    for j in range(n):
        for i in range(j, n):
            product[i][j] = a[i][j] - dot(product[i][:j], lower[j][:j])
            if i == j:
                inverse.append(1.0 / product[j][j])
            else:
                lower[i][j] = product[i][j] * inverse[j]
    return lower, inverse


def substitute_forward(lower: Matrix, b: Vector) -> Vector:
    """Return L^-1 b, with the lower triangle L of `factorise`."""
    y: Vector = []
    for row, value in zip(lower, b, strict=True):
        y.append(value - dot(row[: len(y)], y))
    return y


def solve(a: Matrix, b: Vector) -> Vector:
    """Return the solution x of A x = b.

    Args:
        a: The lower triangle of A, which is symmetric and positive definite.
        b: The right-hand side.
    """
    lower, inverse = factorise(a)
    x = [d * y for d, y in zip(inverse, substitute_forward(lower, b), strict=True)]
    for i in reversed(range(len(x))):
        for k in range(i + 1, len(x)):
            x[i] = x[i] - lower[k][i] * x[k]
    return x


def tool_mobility(twists: list[Vector], a: Matrix) -> Matrix:
    """Return the lower triangle of J A^-1 J^T (6 rows): the tool's acceleration per unit force.

    Args:
        twists: Columns of the Jacobian J.
        a: The lower triangle of the mass matrix A.
    """
    # With A = L D L^T and the halves L^-1 J^T, it is the product of halves, weighted by D^-1.
    lower, inverse = factorise(a)
    halves = [substitute_forward(lower, list(row)) for row in columns(twists)]
    weighted = []
    for half in halves:
        weighted.append([d * y for d, y in zip(inverse, half, strict=True)])
    return [[dot(halves[i], weighted[j]) for j in range(i + 1)] for i in range(6)]


def difference_quotient(frames: Frames, moved_frames: Frames, step: Scalar) -> Vector:
    """Return the tool's motion between two postures, per unit of a joint's step.

    Args:
        frames: Frames of the chain.
        moved_frames: Frames after the step.
        step: The step of the joint, rad or m.

    Returns:
        The translation (3) and the rotation vector (3), divided by the step.
    """
    turn = _turn_between(frames.rotation, moved_frames.rotation)
    translation = minus(moved_frames.position, frames.position)
    motion = [*translation, *rotation_vector(*turn[0], *turn[1], *turn[2])]
    return [component / step for component in motion]


def pose_error(target: Vector, frames: Frames, task: str) -> Vector:
    """Return target minus tool in base axes: the translation, then a rotation vector.

    For "pose" the rotation vector is that of R_target R_tool^T. For "axis" it is the smallest one
    that turns the tool's z axis into the target's, and for "position" it is zero.

    Args:
        target: Position (3) and rotation matrix (9, row by row).
        frames: Frames of the chain, with the tool's.
        task: The part of the target to attain: "pose", "axis" or "position".
    """
    translation = minus(target[:3], frames.position)
    rotation = [target[3:6], target[6:9], target[9:]]
    if task == "position":
        return [*translation, 0.0, 0.0, 0.0]
    if task == "axis":
        tool_x, _, tool_z = columns(frames.rotation)
        target_z = columns(rotation)[2]
        return [*translation, *axis_turn(*tool_z, *target_z, *tool_x)]
    turn = _turn_between(frames.rotation, rotation)
    return [*translation, *rotation_vector(*turn[0], *turn[1], *turn[2])]


def _turn_between(rotation: Matrix, other: Matrix) -> Matrix:
    """Return other rotation^T: the rotation, in base axes, that turns one frame into another."""
    return [[dot(row, column) for column in rotation] for row in other]


def clamp_error(error: Vector, clamps: Sequence[Scalar]) -> Vector:
    """Return an error whose translation and rotation are shortened to clamps (2,), m and rad."""
    x, y, z, rx, ry, rz = error
    return [*shorten(x, y, z, clamps[0]), *shorten(rx, ry, rz, clamps[1])]


@opaque(outputs=3)
def shorten(x: float, y: float, z: float, largest: float) -> tuple[float, float, float]:
    """Return a vector, shortened if it is longer than the largest length."""
    norm = math.sqrt(x * x + y * y + z * z)
    scale = largest / norm if norm > largest else 1.0
    return scale * x, scale * y, scale * z


@opaque(outputs=3)
def axis_turn(  # noqa: PLR0913 (compiled: plain arrays and numbers)
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
    nx: float,
    ny: float,
    nz: float,
) -> tuple[float, float, float]:
    """Return the smallest rotation vector that turns the unit vector a into the unit vector b.

    If they are opposite, it turns about n, a unit vector normal to a.
    """
    x = ay * bz - az * by
    y = az * bx - ax * bz
    z = ax * by - ay * bx
    sine = math.sqrt(x * x + y * y + z * z)
    cosine = ax * bx + ay * by + az * bz
    if sine > ROUNDING_SINE:
        scale = math.atan2(sine, cosine) / sine
        return scale * x, scale * y, scale * z
    if cosine > 0.0:
        return 1.0 * x, 1.0 * y, 1.0 * z
    return math.pi * nx, math.pi * ny, math.pi * nz


@opaque(outputs=3)
def rotation_vector(  # noqa: PLR0913 (compiled: plain arrays and numbers)
    d00: float,
    d01: float,
    d02: float,
    d10: float,
    d11: float,
    d12: float,
    d20: float,
    d21: float,
    d22: float,
) -> tuple[float, float, float]:
    """Return the rotation vector (axis times angle) of a rotation matrix, row by row.

    It is accurate for all angles from zero to pi.
    """
    # Half the skew part is sin(angle) times the axis; half the trace less one is cos(angle).
    x = 0.5 * (d21 - d12)
    y = 0.5 * (d02 - d20)
    z = 0.5 * (d10 - d01)
    sine = math.sqrt(x * x + y * y + z * z)
    cosine = 0.5 * (d00 + d11 + d22 - 1.0)
    angle = math.atan2(sine, cosine)
    if cosine > COSINE_NEAR_PI:
        scale = angle / sine if sine > ROUNDING_SINE else 1.0
        return scale * x, scale * y, scale * z

    # Near pi the sine vanishes, and only the symmetric part determines the axis (up to its sign).
    # The axis's largest component comes from the diagonal, the others from their products with it.
    k = 1.0 / (1.0 - cosine)
    if d00 >= d11 and d00 >= d22:
        ax = math.sqrt(max(0.0, (d00 - cosine) * k))
        ay = 0.5 * (d01 + d10) * k / ax
        az = 0.5 * (d02 + d20) * k / ax
    elif d11 >= d22:
        ay = math.sqrt(max(0.0, (d11 - cosine) * k))
        ax = 0.5 * (d01 + d10) * k / ay
        az = 0.5 * (d12 + d21) * k / ay
    else:
        az = math.sqrt(max(0.0, (d22 - cosine) * k))
        ax = 0.5 * (d02 + d20) * k / az
        ay = 0.5 * (d12 + d21) * k / az

    # The skew part gives the sign of the axis.
    if ax * x + ay * y + az * z < 0.0:
        angle = -angle
    scale = angle / math.sqrt(ax * ax + ay * ay + az * az)
    return scale * ax, scale * ay, scale * az


def mobility(
    placements: Array, prismatic: Flags, configurations: Array, twins: Sequence[Sequence[float]]
) -> list[Array]:
    """Return J J^T, and J H^-1 J^T for each virtual twin, at many joint positions.

    They map a force at the tool to its acceleration: for an arm whose joints have unit inertia, and
    for the twins with their mass matrices H.

    Args:
        placements: The chain (n + 1, 4, 4).
        prismatic: True for each joint (n,) that slides.
        configurations: Joint positions (T, n), rad or m.
        twins: Masses and inertias of each twin, as `Twin.numbers`.

    Returns:
        An array (T, 6, 6) for J J^T and for each twin, in base axes, translation first.
    """
    fixed = chain.exact_placements(placements).tolist()
    # The scalars are arrays (T,), one for each joint.
    q = list(np.ascontiguousarray(configurations.T))
    frames = chain.frames(fixed, prismatic, q, lambda angle: (np.cos(angle), np.sin(angle)))
    twists = chain.jacobian(frames, prismatic)

    rows = columns(twists)
    without_inertia = [[dot(rows[i], rows[j]) for j in range(i + 1)] for i in range(6)]
    triangles = [without_inertia]
    for twin in twins:
        triangles.append(tool_mobility(twists, mass_matrix(frames, twists, twin)))

    matrices = np.empty((len(triangles), len(configurations), 6, 6))
    for matrix, triangle in zip(matrices, triangles, strict=True):
        for i, row in enumerate(triangle):
            for j, entry in enumerate(row):
                matrix[:, i, j] = entry
                matrix[:, j, i] = entry
    return list(matrices)
