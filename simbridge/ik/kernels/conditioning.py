"""How evenly a virtual twin accelerates, over many configurations: what experiment A of the paper computes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.robot.pose import Array


@dataclass(frozen=True)
class Conditioning:
    """Statistics over configurations of J J^T, J H^-1 J^T of the conditioned twin and of the naive twin, in this order.

    Attributes:
        mean, variance: Of every entry (3, 6, 6), base axes, translation first.
    """

    mean: Array
    variance: Array

    @property
    def std(self) -> Array:
        """Standard deviations (3, 6, 6)."""
        return np.sqrt(self.variance)


def accumulated(placements, configurations, conditioned, naive, mean, variance, matrices):  # type: ignore[no-untyped-def]
    """Welford's running mean and variance of the lower triangles of the three matrices; all (3, 6, 6), zeros at first.

    `matrices` holds those of one configuration.
    """
    total = configurations.shape[0]
    for t in range(total):
        mobility(  # type: ignore[name-defined]  # noqa: F821
            placements, configurations[t], conditioned, naive, matrices[0], matrices[1], matrices[2]
        )
        share = 1.0 / (t + 1.0)
        for m in range(3):
            for i in range(6):
                for j in range(i + 1):
                    off = matrices[m, i, j] - mean[m, i, j]
                    mean[m, i, j] += share * off
                    variance[m, i, j] += off * (matrices[m, i, j] - mean[m, i, j])
    for m in range(3):
        for i in range(6):
            for j in range(i + 1):
                mean[m, j, i] = mean[m, i, j]
                variance[m, i, j] /= total
                variance[m, j, i] = variance[m, i, j]
