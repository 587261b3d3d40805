"""Compute a metric of your own: how long the tool was within 0.1 mm of its path."""

import numpy as np

import simbridge
from simbridge.evaluation import Evaluation


def time_within(evaluation: Evaluation, distance: float) -> float:
    """Return how long the tool was within a distance, m, of its path, s."""
    return float(np.sum(evaluation.contour.distance <= distance)) * evaluation.plan.period


run = simbridge.run("pick_and_place")
evaluation = run.evaluation()
duration = len(evaluation.attained) * evaluation.plan.period
print(f"within 0.1 mm of the path for {time_within(evaluation, 1e-4):.2f} of {duration:.2f} s")
