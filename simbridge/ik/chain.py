"""The compiled kinematics of a serial chain: frames and pose errors, which every solver begins with.

A chain is what `Robot.placements` and `Robot.prismatic` hold. Every joint's axis is the z axis of its own frame, so a
joint costs one planar rotation and the rest of the chain is constant. Nothing here allocates inside a loop, calls
numpy inside a loop, or holds the interpreter's lock.
"""

from __future__ import annotations

import inspect
import math

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.codegen.lazy import compiled
from simbridge.ik.codegen.mathematics import rotation_vector

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_rotation_vector = compiled(inspect.unwrap(rotation_vector))


@compiled
def rotation_of(pose: Array, out: Array) -> None:
    """The rotation matrix (3, 3) of a pose [x y z qx qy qz qw]."""
    x, y, z, w = pose[3], pose[4], pose[5], pose[6]
    out[0, 0] = 1.0 - 2.0 * (y * y + z * z)
    out[0, 1] = 2.0 * (x * y - w * z)
    out[0, 2] = 2.0 * (x * z + w * y)
    out[1, 0] = 2.0 * (x * y + w * z)
    out[1, 1] = 1.0 - 2.0 * (x * x + z * z)
    out[1, 2] = 2.0 * (y * z - w * x)
    out[2, 0] = 2.0 * (x * z - w * y)
    out[2, 1] = 2.0 * (y * z + w * x)
    out[2, 2] = 1.0 - 2.0 * (x * x + y * y)


@compiled
def chain_frames(
    placements: Array, prismatic: NDArray[np.bool_], q: Array, origins: Array, axes: Array, tool: Array
) -> None:
    """Joint origins and axes (n, 3) and the tool (3, 4), all in base_link."""
    n = q.shape[0]
    r00, r01, r02 = 1.0, 0.0, 0.0
    r10, r11, r12 = 0.0, 1.0, 0.0
    r20, r21, r22 = 0.0, 0.0, 1.0
    x, y, z = 0.0, 0.0, 0.0
    for i in range(n + 1):
        # Read once: each reading of an array takes longer to compile than a dozen products.
        a = placements[i]
        a00, a01, a02, ax = a[0, 0], a[0, 1], a[0, 2], a[0, 3]
        a10, a11, a12, ay = a[1, 0], a[1, 1], a[1, 2], a[1, 3]
        a20, a21, a22, az = a[2, 0], a[2, 1], a[2, 2], a[2, 3]
        x += r00 * ax + r01 * ay + r02 * az
        y += r10 * ax + r11 * ay + r12 * az
        z += r20 * ax + r21 * ay + r22 * az
        s00 = r00 * a00 + r01 * a10 + r02 * a20
        s01 = r00 * a01 + r01 * a11 + r02 * a21
        s02 = r00 * a02 + r01 * a12 + r02 * a22
        s10 = r10 * a00 + r11 * a10 + r12 * a20
        s11 = r10 * a01 + r11 * a11 + r12 * a21
        s12 = r10 * a02 + r11 * a12 + r12 * a22
        s20 = r20 * a00 + r21 * a10 + r22 * a20
        s21 = r20 * a01 + r21 * a11 + r22 * a21
        s22 = r20 * a02 + r21 * a12 + r22 * a22
        c, s, slide = 1.0, 0.0, 0.0
        if i < n:
            origins[i, 0], origins[i, 1], origins[i, 2] = x, y, z
            axes[i, 0], axes[i, 1], axes[i, 2] = s02, s12, s22
            if prismatic[i]:
                slide = q[i]
            else:
                c, s = math.cos(q[i]), math.sin(q[i])
        r00, r01, r02 = c * s00 + s * s01, c * s01 - s * s00, s02
        r10, r11, r12 = c * s10 + s * s11, c * s11 - s * s10, s12
        r20, r21, r22 = c * s20 + s * s21, c * s21 - s * s20, s22
        x += slide * s02
        y += slide * s12
        z += slide * s22
    tool[0, 0], tool[0, 1], tool[0, 2], tool[0, 3] = r00, r01, r02, x
    tool[1, 0], tool[1, 1], tool[1, 2], tool[1, 3] = r10, r11, r12, y
    tool[2, 0], tool[2, 1], tool[2, 2], tool[2, 3] = r20, r21, r22, z


@compiled
def pose_error(target: Array, rotation: Array, tool: Array, e: Array) -> None:
    """Target minus tool in base axes: translation, then the Rodrigues vector of R_target R_tool^T.

    The logarithm is exact, with no dead band near zero and a branch of its own near pi.
    """
    e[0] = target[0] - tool[0, 3]
    e[1] = target[1] - tool[1, 3]
    e[2] = target[2] - tool[2, 3]
    t, c = rotation, tool
    t00, t01, t02 = t[0, 0], t[0, 1], t[0, 2]
    t10, t11, t12 = t[1, 0], t[1, 1], t[1, 2]
    t20, t21, t22 = t[2, 0], t[2, 1], t[2, 2]
    c00, c01, c02 = c[0, 0], c[0, 1], c[0, 2]
    c10, c11, c12 = c[1, 0], c[1, 1], c[1, 2]
    c20, c21, c22 = c[2, 0], c[2, 1], c[2, 2]
    d00 = t00 * c00 + t01 * c01 + t02 * c02
    d01 = t00 * c10 + t01 * c11 + t02 * c12
    d02 = t00 * c20 + t01 * c21 + t02 * c22
    d10 = t10 * c00 + t11 * c01 + t12 * c02
    d11 = t10 * c10 + t11 * c11 + t12 * c12
    d12 = t10 * c20 + t11 * c21 + t12 * c22
    d20 = t20 * c00 + t21 * c01 + t22 * c02
    d21 = t20 * c10 + t21 * c11 + t22 * c12
    d22 = t20 * c20 + t21 * c21 + t22 * c22
    e[3], e[4], e[5] = _rotation_vector(d00, d01, d02, d10, d11, d12, d20, d21, d22)
