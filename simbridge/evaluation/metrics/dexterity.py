"""How near a motion comes to where an arm cannot move: singular postures, and the ends of its joints' ranges.

Near a singularity a joint must move fast for a slow tool: a tool velocity of length v may need a joint velocity of v
over the Jacobian's smallest singular value. The product of the singular values is the manipulability of T. Yoshikawa,
Manipulability of robotic mechanisms, 1985. Both mix m with rad (a radian at the tool weighs a metre), and so compare
postures of one arm and TCP only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.evaluation.metrics.samples import known_rows, rows
from simbridge.robot.pose import Array

NEAR_SINGULAR = 0.1
"""Smallest singular value, 1/s per m/s or rad/s: below it 0.25 m/s may need 2.5 rad/s, more than most joints of a UR10
have. A UR10's wrist is there within 15 degrees of straight, its elbow within 25."""

NEAR_END = 0.02
"""Part of a joint's range, at either end, that counts as near: 14 degrees of two turns either way."""

NEAR_LIMIT = 0.9
"""Part of a velocity or torque limit from which on it counts as near."""

MAX_COMPARED = 100_000
"""Longer recordings are looked at in evenly spaced samples for their Jacobians: a share is known to 0.001 % then."""

BLOCK = 10_000


def near_singularity(
    joints: ArrayLike,
    jacobians: Callable[[Array], Array],
    *,
    threshold: float = NEAR_SINGULAR,
    motions: int | None = None,
) -> dict[str, float]:
    """Share of samples near a singularity, and how near the nearest is.

    Args:
        joints: Joint positions (T, n), T at least 1.
        jacobians: Joint positions (K, n) to Jacobians (K, m, n) of the m rows that the task has. With fewer joints than
            rows the singular values are those of the n motions that there are.
        threshold: Smallest singular value that is not near.
        motions: In how many independent directions the arm can move at all: 2 for the position of a planar arm, which
            is not singular for never leaving its plane. As many as rows or joints by default.

    Returns:
        `share` (0 to 1), `threshold`, `smallest_singular_value` and `manipulability` (the least of each).

    Raises:
        UnusableSamples: A value is not finite.
    """
    q = np.asarray(joints, dtype=float)
    q = rows("joint positions", q, q.shape[1] if q.ndim == 2 else 1)
    q = q[:: -(-len(q) // MAX_COMPARED)]
    values = np.concatenate(
        [np.linalg.svd(jacobians(q[k : k + BLOCK]), compute_uv=False) for k in range(0, len(q), BLOCK)]
    )
    values = values[:, :motions]
    return {
        "share": float(np.mean(values[:, -1] < threshold)),
        "threshold": threshold,
        "smallest_singular_value": float(values[:, -1].min()),
        "manipulability": float(values.prod(axis=1).min()),
    }


def near_limits(
    position: ArrayLike,
    velocity: ArrayLike,
    torque: ArrayLike | None,
    *,
    position_min: ArrayLike,
    position_max: ArrayLike,
    max_velocity: ArrayLike,
    max_torque: ArrayLike | None,
) -> dict[str, Any]:
    """Share of samples (0 to 1) at which some joint is near the end of its range, its top speed or its largest torque.

    Args:
        position, velocity: (T, n), T at least 1.
        torque: (T, n); samples that are not finite are left out. None where torques were not measured.
        position_min, position_max, max_velocity, max_torque: Limits (n,); an infinite range is never near its end.

    Returns:
        `position`, `velocity`, `torque`: the shares; None without torques.

    Raises:
        UnusableSamples: The arrays do not belong together or a value is not finite.
    """
    low, high = np.asarray(position_min, dtype=float), np.asarray(position_max, dtype=float)
    q = rows("joint positions", position, len(low))
    v = rows("joint velocities", velocity, len(low), len(q))
    margin = NEAR_END * np.where(np.isfinite(high - low), high - low, 0.0)
    shares: dict[str, Any] = {
        "position": _share((q < low + margin) | (q > high - margin)),
        "velocity": _share(np.abs(v) >= NEAR_LIMIT * np.asarray(max_velocity, dtype=float)),
        "torque": None,
    }
    if torque is not None and max_torque is not None:
        known = known_rows("joint torques", torque, len(low), len(q))
        near = np.abs(known) >= NEAR_LIMIT * np.asarray(max_torque, dtype=float)
        shares["torque"] = _share(near) if len(known) else None
    return shares


def _share(near: NDArray[np.bool_]) -> float:
    return float(np.mean(near.any(axis=1)))
