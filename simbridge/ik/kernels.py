"""Tool poses, Jacobians and frames of any chain, without compiling for it.

Chains are described in `simbridge.ik.chain`; code made for one kind of arm is in `simbridge.ik.codegen`. Nothing here
allocates inside a loop, calls numpy inside a loop, or holds the interpreter's lock.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.chain import Array, chain_frames
from simbridge.ik.codegen.lazy import compiled
from simbridge.ik.codegen.routine import Routine, own_source


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
    jacobian = np.zeros((6, n))
    chain_frames(placements, prismatic, q, origins, axes, tool)
    for j in range(n):
        x, y, z = axes[j, 0], axes[j, 1], axes[j, 2]
        if prismatic[j]:
            jacobian[0, j], jacobian[1, j], jacobian[2, j] = x, y, z
        else:
            rx, ry, rz = tool[0, 3] - origins[j, 0], tool[1, 3] - origins[j, 1], tool[2, 3] - origins[j, 2]
            jacobian[0, j], jacobian[1, j], jacobian[2, j] = y * rz - z * ry, z * rx - x * rz, x * ry - y * rx
            jacobian[3, j], jacobian[4, j], jacobian[5, j] = x, y, z
    return jacobian


def sampled(
    placements: Array, prismatic: NDArray[np.bool_], q: Array, origins: Array, axes: Array, points: Array, tool: Array
) -> None:
    """Joint origins and axes (T, n, 3) and tool points (T, 3) in base_link at joint positions (T, n)."""
    for t in range(q.shape[0]):
        chain_frames(placements, prismatic, q[t], origins[t], axes[t], tool)
        for i in range(3):
            points[t, i] = tool[i, 3]


def chain_sample(placements: Array, prismatic: NDArray[np.bool_], q: Array) -> tuple[Array, Array, Array]:
    """Joint origins and axes (T, n, 3) and tool points (T, 3) in base_link at joint positions (T, n)."""
    total, n = q.shape
    origins, axes, points = np.empty((total, n, 3)), np.empty((total, n, 3)), np.empty((total, 3))
    _sampled()(placements, prismatic, q, origins, axes, points, np.empty((3, 4)))
    return origins, axes, points


@lru_cache(maxsize=1)
def _sampled() -> Routine:
    return Routine("sampled", "sample of an arm's frames", own_source(), lambda: sampled)
