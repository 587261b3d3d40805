"""Joint positions that differ by whole turns are one posture: choosing the one within the joint limits."""

from __future__ import annotations

import math

import numpy as np

from simbridge.robot.pose import Array, Flags


def wrap_into_limits(prismatic: Flags, low: Array, high: Array, near: Array, q: Array) -> bool:
    """Turn joints that are out of range by whole turns, to where they are in range and nearest to `near`.

    Args:
        prismatic: Which joints slide (n,): they cannot be turned.
        low, high: Joint limits (n,), rad or m; may be infinite.
        near, q: Joint positions (n,); q is changed in place.

    Returns:
        Whether all are in range then.
    """
    inside = True
    for i in range(q.shape[0]):
        if low[i] <= q[i] <= high[i]:
            continue
        found = False
        if not prismatic[i]:
            # Floats, since a limit may be infinite.
            first = np.ceil((low[i] - q[i]) / (2.0 * math.pi))
            last = np.floor((high[i] - q[i]) / (2.0 * math.pi))
            if first <= last:
                turns = min(max(np.rint((near[i] - q[i]) / (2.0 * math.pi)), first), last)
                q[i] = min(max(q[i] + 2.0 * math.pi * turns, low[i]), high[i])
                found = True
        inside = inside and found
    return inside
