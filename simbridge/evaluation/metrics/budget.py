"""The error budget: where along the pipeline the tracking error comes from.

A sample has one stamp, the instant at which its setpoint is due, and five poses that belong to it:

    reference --sampling--> target --solver--> solution --limiter--> setpoint --plant--> attained

Each arrow is one line of the budget. The lines add up to the tracking error: positions exactly,
`tracking.translation = sampling.translation + ... + plant.translation`, and rotations by composition,
`R_tracking = R_sampling R_solver R_limiter R_plant`. The Rodrigues vectors and the angles do not add.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import UnusableSamples
from simbridge.evaluation.metrics.samples import rows
from simbridge.robot import pose
from simbridge.robot.pose import Array

Statistics = dict[str, float]


def statistics(values: ArrayLike) -> Statistics:
    """Root mean square, mean, 95th percentile (linear between order statistics) and maximum of values (T,).

    Raises:
        UnusableSamples: If there are no values or one is not finite.
    """
    array = rows("values of a statistic", np.asarray(values, dtype=float)[..., None], 1)[:, 0]
    if len(array) == 0:
        raise UnusableSamples("values of a statistic", "there are none. Evaluate at least one sample.")
    return {
        "rms": float(np.sqrt(np.mean(array**2))),
        "mean": float(np.mean(array)),
        "p95": float(np.percentile(array, 95.0)),
        "max": float(np.max(array)),
    }


@dataclass(frozen=True)
class PoseError:
    """Desired minus attained at every sample: one line of the budget.

    Attributes:
        translation: Shape (T, 3), in m, in base axes; read-only.
        rotation: R_desired R_attained^T as Rodrigues vectors (T, 3), in rad, in base axes; read-only.
    """

    translation: Array
    rotation: Array

    def __post_init__(self) -> None:
        translation = rows("translation errors", self.translation, 3).copy()
        rotation = rows("rotation errors", self.rotation, 3, len(translation)).copy()
        for name, array in (("translation", translation), ("rotation", rotation)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @staticmethod
    def between(desired: ArrayLike, attained: ArrayLike) -> PoseError:
        """The error of attained poses (T, 7) against desired ones (T, 7).

        Raises:
            UnusableSamples: If the two differ in length or a value is not finite.
        """
        first = rows("desired poses", desired, 7)
        return PoseError(*pose.error(first, rows("attained poses", attained, 7, len(first))))

    @property
    def distance(self) -> Array:
        """Euclidean distances (T,) in m."""
        return np.asarray(np.linalg.norm(self.translation, axis=1))

    @property
    def angle(self) -> Array:
        """Angles (T,) in rad, from 0 to pi, of the rotations that are missing."""
        return np.asarray(np.linalg.norm(self.rotation, axis=1))

    def statistics(self) -> dict[str, Statistics]:
        """RMS, mean, 95th percentile and maximum of the distances (m) and of the angles (rad).

        Raises:
            UnusableSamples: If there are no samples.
        """
        return {"position_m": statistics(self.distance), "rotation_rad": statistics(self.angle)}


@dataclass(frozen=True)
class ErrorBudget:
    """The tracking error and the four steps that it is made of, over the same samples.

    Attributes:
        sampling: Reference minus target: what holding the last sample of a slow source costs.
        solver: Target minus solution: what the inverse kinematics had not yet reached.
        limiter: Solution minus setpoint: zero unless the limiter acted.
        plant: Setpoint minus attained: the controller and the arm.
        tracking: Reference minus attained: the sum.
    """

    sampling: PoseError
    solver: PoseError
    limiter: PoseError
    plant: PoseError
    tracking: PoseError


def error_budget(
    reference: ArrayLike, target: ArrayLike, solution: ArrayLike, setpoint: ArrayLike, attained: ArrayLike
) -> ErrorBudget:
    """The error budget of poses (T, 7) that belong to the same T stamps.

    Args:
        reference: The continuous path at the stamps.
        target: What the solver was given.
        solution: Where the solver's joints put the tool.
        setpoint: Where the joints that were sent put the tool.
        attained: Where the measured joints put the tool.

    Raises:
        UnusableSamples: If the five differ in length or a value is not finite.
    """
    first = rows("reference poses", reference, 7)
    second = rows("target poses", target, 7, len(first))
    third = rows("solution poses", solution, 7, len(first))
    fourth = rows("setpoint poses", setpoint, 7, len(first))
    last = rows("attained poses", attained, 7, len(first))
    return ErrorBudget(
        sampling=PoseError.between(first, second),
        solver=PoseError.between(second, third),
        limiter=PoseError.between(third, fourth),
        plant=PoseError.between(fourth, last),
        tracking=PoseError.between(first, last),
    )
