"""The compiled inner loops: forward dynamics of a serial chain, tool poses and Jacobians.

Chains are described in `simbridge.ik.chain`. Nothing here allocates inside a loop, calls numpy inside a loop, or holds
the interpreter's lock.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.chain import Array, Counts, chain_frames, compiled, pose_error, rotation_of


@compiled
def _mass_matrix(
    prismatic: NDArray[np.bool_],
    origins: Array,
    axes: Array,
    tool: Array,
    twin: Array,
    jacobian: Array,
    mass: Array,
) -> None:
    """The tool's Jacobian (n, 6), a row a joint, and the virtual twin's mass matrix (n, n), lower triangle.

    `twin` is tool mass (kg), tool inertia (kg m^2), link mass, link inertia. Link i's mass sits at the origin of its
    own joint. Composite rigid bodies, all moments about the tool's point.
    """
    n = origins.shape[0]
    px, py, pz = tool[0, 3], tool[1, 3], tool[2, 3]
    for j in range(n):
        zx, zy, zz = axes[j, 0], axes[j, 1], axes[j, 2]
        if prismatic[j]:
            jacobian[j, 0], jacobian[j, 1], jacobian[j, 2] = zx, zy, zz
            jacobian[j, 3], jacobian[j, 4], jacobian[j, 5] = 0.0, 0.0, 0.0
        else:
            rx, ry, rz = px - origins[j, 0], py - origins[j, 1], pz - origins[j, 2]
            jacobian[j, 0] = zy * rz - zz * ry
            jacobian[j, 1] = zz * rx - zx * rz
            jacobian[j, 2] = zx * ry - zy * rx
            jacobian[j, 3], jacobian[j, 4], jacobian[j, 5] = zx, zy, zz
    # The composite body beyond joint j: mass, first moment h and inertia about the tool's point.
    m0, i0 = twin[2], twin[3]
    m = twin[0]
    hx, hy, hz = 0.0, 0.0, 0.0
    ixx = iyy = izz = twin[1]
    ixy = ixz = iyz = 0.0
    for j in range(n - 1, -1, -1):
        rx, ry, rz = origins[j, 0] - px, origins[j, 1] - py, origins[j, 2] - pz
        m += m0
        hx += m0 * rx
        hy += m0 * ry
        hz += m0 * rz
        ixx += i0 + m0 * (ry * ry + rz * rz)
        iyy += i0 + m0 * (rx * rx + rz * rz)
        izz += i0 + m0 * (rx * rx + ry * ry)
        ixy -= m0 * rx * ry
        ixz -= m0 * rx * rz
        iyz -= m0 * ry * rz
        vx, vy, vz = jacobian[j, 0], jacobian[j, 1], jacobian[j, 2]
        wx, wy, wz = jacobian[j, 3], jacobian[j, 4], jacobian[j, 5]
        # Force and torque that accelerate the composite body by joint j's unit motion.
        fx = m * vx + wy * hz - wz * hy
        fy = m * vy + wz * hx - wx * hz
        fz = m * vz + wx * hy - wy * hx
        tx = ixx * wx + ixy * wy + ixz * wz + hy * vz - hz * vy
        ty = ixy * wx + iyy * wy + iyz * wz + hz * vx - hx * vz
        tz = ixz * wx + iyz * wy + izz * wz + hx * vy - hy * vx
        for i in range(j + 1):
            mass[j, i] = (
                jacobian[i, 0] * fx
                + jacobian[i, 1] * fy
                + jacobian[i, 2] * fz
                + jacobian[i, 3] * tx
                + jacobian[i, 4] * ty
                + jacobian[i, 5] * tz
            )


@compiled
def _solve_symmetric(a: Array, b: Array) -> None:
    """Solve a x = b in place of b, by L D L^T in place of a's lower triangle (a positive definite)."""
    n = b.shape[0]
    for j in range(n):
        d = a[j, j]
        for k in range(j):
            d -= a[j, k] * a[j, k] * a[k, k]
        a[j, j] = d
        for i in range(j + 1, n):
            s = a[i, j]
            for k in range(j):
                s -= a[i, k] * a[j, k] * a[k, k]
            a[i, j] = s / d
    for i in range(n):
        for k in range(i):
            b[i] -= a[i, k] * b[k]
    for i in range(n):
        b[i] /= a[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= a[k, i] * b[k]


@compiled
def _clamp_error(e: Array, clamp: Array) -> None:
    """Shorten the translation to clamp[0] m and the rotation to clamp[1] rad, directions kept."""
    for part in range(2):
        o = 3 * part
        norm = math.sqrt(e[o] * e[o] + e[o + 1] * e[o + 1] + e[o + 2] * e[o + 2])
        if norm > clamp[part]:
            scale = clamp[part] / norm
            e[o] *= scale
            e[o + 1] *= scale
            e[o + 2] *= scale


@compiled
def _advance(
    prismatic: NDArray[np.bool_],
    origins: Array,
    axes: Array,
    tool: Array,
    twin: Array,
    force: Array,
    scale: float,
    step_clamp: float,
    jacobian: Array,
    mass: Array,
    q: Array,
) -> None:
    """One iteration's motion: q += scale H^-1 J^T force, no joint further than step_clamp."""
    n = q.shape[0]
    _mass_matrix(prismatic, origins, axes, tool, twin, jacobian, mass)
    motion = mass[n]
    for i in range(n):
        motion[i] = (
            jacobian[i, 0] * force[0]
            + jacobian[i, 1] * force[1]
            + jacobian[i, 2] * force[2]
            + jacobian[i, 3] * force[3]
            + jacobian[i, 4] * force[4]
            + jacobian[i, 5] * force[5]
        )
    _solve_symmetric(mass[:n], motion)
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(scale * motion[i]))
    if largest > step_clamp:
        scale *= step_clamp / largest
    for i in range(n):
        q[i] += scale * motion[i]


@compiled
def forward_dynamics_track(
    placements: Array,
    prismatic: NDArray[np.bool_],
    q0: Array,
    poses: Array,
    dt: float,
    iterations: int,
    kp: Array,
    kd: Array,
    twin: Array,
    error_clamp: Array,
    step_clamp: float,
) -> Array:
    """Algorithm 1 of the paper for a sequence of targets.

    Args:
        placements: Chain (n + 1, 4, 4).
        prismatic: Which joints slide (n,).
        q0: Start (n,), rad.
        poses: Targets (T, 7).
        dt: The virtual time step, s.
        iterations: Iterations per target.
        kp, kd: Diagonals (6,) of the gains, translation first.
        twin: Tool mass, tool inertia, link mass, link inertia.
        error_clamp: Largest translation (m) and rotation (rad) that act (2,); infinite for none.
        step_clamp: Largest joint motion per iteration, rad; infinite for none.

    Returns:
        Joint positions (T, n) after each target's iterations.
    """
    n = q0.shape[0]
    out = np.empty((poses.shape[0], n))
    q = q0.copy()
    origins, axes, tool = np.empty((n, 3)), np.empty((n, 3)), np.empty((3, 4))
    rotation, e, previous, force = np.empty((3, 3)), np.empty(6), np.empty(6), np.empty(6)
    jacobian, mass = np.empty((n, 6)), np.empty((n + 1, n))
    # Lines 8 and 9 each halve: qd = 0.5 qdd dt, q += 0.5 qd dt. Velocity does not accumulate.
    scale = 0.25 * dt * dt
    for t in range(poses.shape[0]):
        rotation_of(poses[t], rotation)
        for iteration in range(iterations):
            chain_frames(placements, prismatic, q, origins, axes, tool)
            pose_error(poses[t], rotation, tool, e)
            _clamp_error(e, error_clamp)
            for i in range(6):
                # The error before the first is the first: a new target gives no derivative kick.
                rate = (e[i] - previous[i]) / dt if iteration > 0 else 0.0
                force[i] = kp[i] * e[i] + kd[i] * rate
                previous[i] = e[i]
            _advance(prismatic, origins, axes, tool, twin, force, scale, step_clamp, jacobian, mass, q)
        out[t] = q
    return out


@compiled
def forward_dynamics_solve(
    placements: Array,
    prismatic: NDArray[np.bool_],
    q0: Array,
    starts: Array,
    poses: Array,
    gain: Array,
    iterations: int,
    twin: Array,
    error_clamp: Array,
    step_clamp: float,
    tolerance: Array,
    warm: bool,
) -> tuple[Array, Array, Counts, Counts]:
    """Solve each target to a tolerance, first from q0 (or from the solution before, if `warm`), then from `starts`.

    Args:
        starts: Joint positions (R, n) tried in turn while none has converged.
        gain: Factor (2,) on the error of translation and rotation in one iteration: a quarter of kappa times the twin's
            tool mass or inertia.
        iterations: The most per try.
        tolerance: Translation (m) and rotation (rad) at which a try has converged (2,).

    Returns:
        Positions (T, n), residuals (T, 2) in m and rad, iterations (T,), tries (T,); residuals and positions are those
        of the best try (smallest residual against the tolerance).
    """
    n, total = q0.shape[0], poses.shape[0]
    out, residuals = np.empty((total, n)), np.empty((total, 2))
    used, tries = np.zeros(total, np.int64), np.zeros(total, np.int64)
    q, first = q0.copy(), q0.copy()
    origins, axes, tool = np.empty((n, 3)), np.empty((n, 3)), np.empty((3, 4))
    rotation, e, force = np.empty((3, 3)), np.empty(6), np.empty(6)
    jacobian, mass = np.empty((n, 6)), np.empty((n + 1, n))
    for t in range(total):
        rotation_of(poses[t], rotation)
        best = np.inf
        for attempt in range(starts.shape[0] + 1):
            q[:] = first if attempt == 0 else starts[attempt - 1]
            tries[t] = attempt + 1
            for iteration in range(iterations + 1):
                chain_frames(placements, prismatic, q, origins, axes, tool)
                pose_error(poses[t], rotation, tool, e)
                distance = math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
                angle = math.sqrt(e[3] * e[3] + e[4] * e[4] + e[5] * e[5])
                miss = max(distance / tolerance[0], angle / tolerance[1])
                if miss < best:
                    best = miss
                    out[t] = q
                    residuals[t, 0], residuals[t, 1] = distance, angle
                if miss <= 1.0 or iteration == iterations:
                    break
                used[t] += 1
                _clamp_error(e, error_clamp)
                for i in range(6):
                    force[i] = gain[i // 3] * e[i]
                _advance(prismatic, origins, axes, tool, twin, force, 1.0, step_clamp, jacobian, mass, q)
            if best <= 1.0:
                break
        if warm and best <= 1.0:
            first[:] = out[t]
    return out, residuals, used, tries


@compiled
def tool_poses(placements: Array, prismatic: NDArray[np.bool_], q: Array) -> Array:
    """TCP poses (T, 7) in base_link at joint positions (T, n); quaternion signs continuous along the sequence."""
    total, n = q.shape
    out = np.empty((total, 7))
    origins, axes, r = np.empty((n, 3)), np.empty((n, 3)), np.empty((3, 4))
    for t in range(total):
        chain_frames(placements, prismatic, q[t], origins, axes, r)
        # The largest component first, so that nothing is divided by a small number.
        w2 = 1.0 + r[0, 0] + r[1, 1] + r[2, 2]
        x2 = 1.0 + r[0, 0] - r[1, 1] - r[2, 2]
        y2 = 1.0 - r[0, 0] + r[1, 1] - r[2, 2]
        z2 = 1.0 - r[0, 0] - r[1, 1] + r[2, 2]
        if w2 >= x2 and w2 >= y2 and w2 >= z2:
            x, y, z, w = r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], w2
        elif x2 >= y2 and x2 >= z2:
            x, y, z, w = x2, r[0, 1] + r[1, 0], r[0, 2] + r[2, 0], r[2, 1] - r[1, 2]
        elif y2 >= z2:
            x, y, z, w = r[0, 1] + r[1, 0], y2, r[1, 2] + r[2, 1], r[0, 2] - r[2, 0]
        else:
            x, y, z, w = r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], z2, r[1, 0] - r[0, 1]
        norm = math.sqrt(x * x + y * y + z * z + w * w)
        if t > 0:
            p = out[t - 1]
            if x * p[3] + y * p[4] + z * p[5] + w * p[6] < 0.0:
                norm = -norm
        elif w < 0.0:
            norm = -norm
        out[t, 0], out[t, 1], out[t, 2] = r[0, 3], r[1, 3], r[2, 3]
        out[t, 3], out[t, 4], out[t, 5], out[t, 6] = x / norm, y / norm, z / norm, w / norm
    return out


@compiled
def tool_jacobian(placements: Array, prismatic: NDArray[np.bool_], q: Array) -> Array:
    """The geometric Jacobian (6, n) of the TCP in base axes, translation first."""
    n = q.shape[0]
    origins, axes, tool = np.empty((n, 3)), np.empty((n, 3)), np.empty((3, 4))
    jacobian, mass = np.empty((n, 6)), np.empty((n, n))
    chain_frames(placements, prismatic, q, origins, axes, tool)
    _mass_matrix(prismatic, origins, axes, tool, np.zeros(4), jacobian, mass)
    return jacobian.T.copy()
