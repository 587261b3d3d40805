"""The dynamics and the error of a serial chain, over scalars, and the functions that are generated from them.

With floats or numpy columns the mathematics computes; with expressions it leaves straight-line code. The kinematics are
in `simbridge.robot.chain`.

Of a chain's fixed transforms only the structure goes into the code: which entries are 0, 1 and -1. The other numbers
stay arguments, and so does the whole tool frame. Arms of one kinematic structure (all of UR's, with any TCP) thus share
their compiled code, and so do all calibrated ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from simbridge.kernels.expression import Generated, Trace, generated, opaque, statements
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
    scaled,
)
from simbridge.robot.pose import Array, Flags

cosine_and_sine = opaque(outputs=2)(chain.cosine_and_sine)


def mass_matrix(at: Frames, twists: list[Vector], twin: Sequence[Scalar]) -> Matrix:
    """The virtual twin's mass matrix, lower triangle, by the composite-rigid-body algorithm.

    Args:
        at: The frames.
        twists: The Jacobian's columns.
        twin: Tool mass and inertia, then each link's, at the origin of its own joint.
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
        torque = plus(
            [dot(row, w) for row in ([xx, xy, xz], [xy, yy, yz], [xz, yz, zz])], cross(h, v)
        )
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
    """J A^-1 J^T, lower triangle (6 rows): the tool's acceleration per force, where A is a mass matrix."""
    lower, inverse = factorised(a)
    halves = [forward_substituted(lower, list(row)) for row in columns(twists)]
    others = [[d * y for d, y in zip(inverse, half, strict=True)] for half in halves]
    return [[dot(halves[i], others[j]) for j in range(i + 1)] for i in range(6)]


def difference_quotient(at: Frames, there: Frames, step: Scalar) -> Vector:
    """The tool's way from one posture to another, translation and Rodrigues vector, per unit of a step."""
    turn = [[dot(row, other) for other in at.rotation] for row in there.rotation]
    way = [*minus(there.position, at.position), *rotation_vector(*turn[0], *turn[1], *turn[2])]
    return [component / step for component in way]


def pose_error(target: Vector, at: Frames, task: str) -> Vector:
    """Target minus tool in the components that the task constrains: translation, then the Rodrigues vector of
    R_target R_tool^T (for "axis" the smallest that turns the tool's z axis to the target's, for "position" zero).

    Args:
        target: Position (3) and rotation matrix (9, row by row).
    """
    position, wanted = target[:3], [target[3:6], target[6:9], target[9:]]
    if task == "position":
        return [*minus(position, at.position), 0.0, 0.0, 0.0]
    if task == "axis":
        x, _, z = columns(at.rotation)
        return [*minus(position, at.position), *axis_turn(*z, *columns(wanted)[2], *x)]
    turn = [[dot(row, other) for other in at.rotation] for row in wanted]
    return [*minus(position, at.position), *rotation_vector(*turn[0], *turn[1], *turn[2])]


def clamped(error: Vector, largest: Sequence[Scalar]) -> Vector:
    """Translation and rotation shortened to largest[0] m and largest[1] rad, directions kept."""
    x, y, z, rx, ry, rz = error
    return [*shortened(x, y, z, largest[0]), *shortened(rx, ry, rz, largest[1])]


@opaque(outputs=3)
def shortened(x: float, y: float, z: float, largest: float) -> tuple[float, float, float]:
    """A vector shortened to a largest length, direction kept."""
    norm = math.sqrt(x * x + y * y + z * z)
    scale = largest / norm if norm > largest else 1.0
    return scale * x, scale * y, scale * z


@opaque(outputs=3)
def axis_turn(
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
    """The smallest Rodrigues vector that turns the unit vector a into b; if they oppose about n, perpendicular to a."""
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
    """The Rodrigues vector of a rotation matrix: exact, without a dead band near zero, with a branch near pi."""
    # Half the skew part is sin(angle) times the axis; half the trace less one is cos(angle).
    x, y, z = 0.5 * (d21 - d12), 0.5 * (d02 - d20), 0.5 * (d10 - d01)
    sine = math.sqrt(x * x + y * y + z * z)
    cosine = 0.5 * (d00 + d11 + d22 - 1.0)
    angle = math.atan2(sine, cosine)
    if cosine > -0.99:
        scale = angle / sine if sine > 1e-12 else 1.0
        return scale * x, scale * y, scale * z
    # Near pi the sine vanishes, and only the symmetric part determines the axis (up to its sign).
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


def mobility(
    placements: Array, prismatic: Flags, configurations: Array, twins: Sequence[Sequence[float]]
) -> list[Array]:
    """J J^T and, for each twin, J H^-1 J^T at joint positions (T, n): arrays (T, 6, 6), base axes, translation first.

    They map a force at the tool to its acceleration: of an arm without inertia, and of the virtual twins, each given by
    its `Twin.numbers`.
    """
    fixed = chain.exact_placements(placements).tolist()
    q = list(np.ascontiguousarray(configurations.T))
    at = chain.frames(fixed, prismatic, q, lambda angle: (np.cos(angle), np.sin(angle)))
    twists = chain.jacobian(at, prismatic)
    rows = columns(twists)
    plain = [[dot(rows[i], rows[j]) for j in range(i + 1)] for i in range(6)]
    lower = [plain, *(weighted(twists, mass_matrix(at, twists, twin)) for twin in twins)]
    matrices = np.empty((len(lower), len(configurations), 6, 6))
    for matrix, triangle in zip(matrices, lower, strict=True):
        for i, row in enumerate(triangle):
            for j, entry in enumerate(row):
                matrix[:, i, j] = matrix[:, j, i] = entry
    return list(matrices)


class Structure(NamedTuple):
    """What arms of one kinematic structure share: their frames as rows of four (n + 1, 3, 4) with 0, 1 and -1, and nan
    for any other number; and which joints slide."""

    frames: bytes
    prismatic: tuple[bool, ...]

    def frames_at(self, trace: Trace, moved: int | None = None) -> chain.Frames:
        """The frames at the joint positions `q`; with one joint moved on by `difference_step` if given."""
        entries = np.frombuffer(self.frames).reshape(-1, 3, 4).tolist()
        placements = [
            [
                [
                    trace.name(f"placements[{i}, {r}, {c}]") if value != value else value
                    for c, value in enumerate(row)
                ]
                for r, row in enumerate(rows)
            ]
            for i, rows in enumerate(entries)
        ]
        angles = _names(trace, "q", len(self.prismatic))
        if moved is not None:
            angles[moved] = angles[moved] + trace.name("difference_step")
        return chain.frames(placements, self.prismatic, angles, cosine_and_sine)


def structure_of(placements: Array, prismatic: Flags) -> Structure:
    """The kinematic structure of a chain: placements (n + 1, 4, 4), and which joints slide (n,)."""
    rows = chain.exact_placements(placements)[:, :3]
    plain = np.isin(rows, (0.0, 1.0, -1.0))
    # Any tool.
    plain[-1] = False
    return Structure(np.where(plain, rows, np.nan).tobytes(), tuple(map(bool, prismatic)))


def generate_move(structure: Structure, task: str) -> Generated:
    """The function `move` of forward dynamics.

    Its results: the error at q, its clamped part `pull`, and the acceleration H^-1 J^T (Kp pull + damping (pull - last
    pull)) of equation 12 with a ballast on H's diagonal, followed by the slope of the potential along it.
    """
    trace = Trace()
    kp, damping, last, twin, clamp, target = (
        _names(trace, name, count)
        for name, count in (
            ("kp", 6),
            ("damping", 6),
            ("pull", 6),
            ("twin", 4),
            ("clamp", 2),
            ("target", 12),
        )
    )
    at = structure.frames_at(trace)
    error = pose_error(target, at, task)
    pull = clamped(error, clamp)
    force = [
        k * e + d * (e - before) for k, d, e, before in zip(kp, damping, pull, last, strict=True)
    ]
    # A tool whose rotation is free has no rotational inertia.
    if task == "position":
        twin[1] = 0.0
    twists = chain.jacobian(at, structure.prismatic)
    torque = [dot(twist, force) for twist in twists]
    mass = mass_matrix(at, twists, twin)
    for j, row in enumerate(mass):
        row[j] = row[j] + trace.name("ballast")
    motion = solved(mass, torque)
    slope = dot(motion, torque)
    results = [
        *_into("error[{}]", error),
        *_into("pull[{}]", pull),
        *_into("motion[{}]", [*motion, slope]),
    ]
    arguments = "placements, q, target, kp, damping, twin, clamp, ballast, pull, error, motion"
    return generated(f"move({arguments})", statements(trace, results), trace)


def generate_linearize(structure: Structure, task: str, differences: bool = False) -> Generated:
    """The function `linearize` of the iterative solvers: see `step.linearize`.

    Args:
        differences: Whether its Jacobian is one of finite differences; else the exact one.
    """
    trace = Trace()
    target = _names(trace, "target", 12)
    clamp = [trace.name("translation_clamp"), trace.name("rotation_clamp")]
    at = structure.frames_at(trace)
    residual = pose_error(target, at, task)
    error = chain.task_rows(at, clamped(residual, clamp), task)
    if differences:
        moved = [structure.frames_at(trace, moved=j) for j in range(len(structure.prismatic))]
        twists = [difference_quotient(at, there, trace.name("difference_step")) for there in moved]
    else:
        twists = chain.jacobian(at, structure.prismatic)
    results = [*_into("residual[{}]", residual), *_into("candidate_error[{}]", error)]
    for j, twist in enumerate(twists):
        results += _into(f"candidate_jacobian[{j}, {{}}]", chain.task_rows(at, twist, task))

    arrays = ("placements", "target", "residual", "candidate_error", "candidate_jacobian")
    numbers = ("translation_clamp", "rotation_clamp", "difference_step")
    read = ["q = descent.iterate.q"]
    read += [f"{name} = descent.search.{name}" for name in (*arrays, *numbers)]
    return generated("linearize(descent)", [*read, *statements(trace, results)], trace)


def _names(trace: Trace, array: str, count: int) -> list[Scalar]:
    return [trace.name(f"{array}[{i}]") for i in range(count)]


def _into(places: str, values: Iterable[Scalar]) -> list[tuple[str, Scalar]]:
    return [(places.format(i), value) for i, value in enumerate(values)]
