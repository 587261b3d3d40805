"""Random poses, and poses that are turned by Rodrigues vectors."""

from __future__ import annotations

import numpy as np
import pinocchio
from numpy.typing import NDArray

from simbridge.robot import pose

Array = NDArray[np.float64]


def random_poses(seed: int, count: int) -> Array:
    """Return poses (count, 7) within 1 m of the base, in any orientation."""
    rng = np.random.default_rng(seed)
    return np.hstack(
        [rng.uniform(-1.0, 1.0, (count, 3)), pose.normalize(rng.standard_normal((count, 4)))]
    )


def rotation_matrices(vectors: Array) -> Array:
    """Return the rotation matrices (count, 3, 3) of Rodrigues vectors, by pinocchio."""
    return np.array([pinocchio.exp3(v) for v in vectors])


def turned(poses: Array, vectors: Array) -> Array:
    """The poses, each turned in base axes by its Rodrigues vector."""
    return np.hstack([poses[:, :3], pose.multiply(pose.quaternions(vectors), poses[:, 3:])])
