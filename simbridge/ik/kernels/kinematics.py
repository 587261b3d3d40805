"""Poses and Jacobians along a path, around the generated functions `tool_at` and `rows_at`.

Plain functions of arrays: their text goes into generated modules, as that of `loops.py` does.
"""

# ruff: noqa: F821
# mypy: ignore-errors

from __future__ import annotations

import math


def quaternion(m, before, out):
    """The unit quaternion [x y z w] of a rotation matrix (9,), of the sign that is nearer to the one `before`."""
    # The largest component first, so that nothing is divided by a small number.
    w2 = 1.0 + m[0] + m[4] + m[8]
    x2 = 1.0 + m[0] - m[4] - m[8]
    y2 = 1.0 - m[0] + m[4] - m[8]
    z2 = 1.0 - m[0] - m[4] + m[8]
    if w2 >= x2 and w2 >= y2 and w2 >= z2:
        x, y, z, w = m[7] - m[5], m[2] - m[6], m[3] - m[1], w2
    elif x2 >= y2 and x2 >= z2:
        x, y, z, w = x2, m[1] + m[3], m[2] + m[6], m[7] - m[5]
    elif y2 >= z2:
        x, y, z, w = m[1] + m[3], y2, m[5] + m[7], m[2] - m[6]
    else:
        x, y, z, w = m[2] + m[6], m[5] + m[7], z2, m[3] - m[1]
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    if x * before[0] + y * before[1] + z * before[2] + w * before[3] < 0.0:
        norm = -norm
    out[0], out[1], out[2], out[3] = x / norm, y / norm, z / norm, w / norm


def poses(placements, q, work, out):
    """TCP poses (T, 7) in base_link at joint positions (T, n), in q; the signs of the quaternions are continuous.

    `work` (16,) holds a tool frame (12) and a quaternion (4).
    """
    tool, rotation, before = work[:12], work[3:12], work[12:]
    # The first is the one of positive w.
    before[0], before[1], before[2], before[3] = 0.0, 0.0, 0.0, 1.0
    for t in range(q.shape[0]):
        tool_at(placements, q[t], tool)
        quaternion(rotation, before, before)
        for i in range(3):
            out[t, i] = tool[i]
        for i in range(4):
            out[t, 3 + i] = before[i]


def jacobians(placements, q, out):
    """The task's rows of the Jacobian (T, m, n) at joint positions (T, n), in q."""
    for t in range(q.shape[0]):
        rows_at(placements, q[t], out[t])
