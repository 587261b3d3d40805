"""The prediction error: how far a simulated run is from the same run measured on a controller."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.delays import delay, sampled
from simbridge.evaluation.metrics.pose_errors import PoseError
from simbridge.robot.pose import Array


class Largest(TypedDict):
    """Root mean square, and the worst."""

    rms: float
    max: float


class Deviations(TypedDict):
    """Of the tool's position, m, its rotation, rad, and of single joints, rad (m where prismatic)."""

    position_m: Largest
    rotation_rad: Largest
    joints_rad: Largest


class PredictionError(Deviations):
    """Simulated minus measured, at the same instants of the trajectory.

    `delay_s` is by how much the measured arm trails the simulated one; None if it cannot be determined. `delay_removed`
    is what is left without it.
    """

    delay_s: float | None
    delay_removed: Deviations


def increasing(times: Array) -> Array:
    """Which of some instants (T,) of the trajectory are later than all before: it waits where a controller does."""
    return np.concatenate([[True], times[1:] > np.maximum.accumulate(times)[:-1]])


def is_simulated(run: Evaluation) -> bool:
    """Whether the arm of a run was simulated."""
    return bool(run.settings["backend"]["simulated_time"])


def prediction_error(simulated: Evaluation, measured: Evaluation) -> PredictionError | None:
    """How far attained poses and joints of a simulated run are from the measured ones.

    None if the runs have no two instants of the trajectory in common.
    """
    path, arm = (run.log.plan_time[increasing(run.log.plan_time)] for run in (simulated, measured))
    common = (arm >= path[0]) & (arm <= path[-1])
    if common.sum() < 2:
        return None
    (poses, joints), (attained, position) = (
        (run.attained[kept], run.log.position[kept])
        for run, kept in ((run, increasing(run.log.plan_time)) for run in (simulated, measured))
    )
    motion, times = sampled(path, poses), arm[common]
    lag = delay(times, motion, attained[common])

    def deviations(shift: float) -> Deviations:
        at = times - shift
        kept = (at >= path[0]) & (at <= path[-1])
        error = PoseError.between(motion(at[kept]), attained[common][kept])
        predicted = np.stack([np.interp(at[kept], path, joint) for joint in joints.T], axis=1)
        return {
            "position_m": _largest(error.distance),
            "rotation_rad": _largest(error.angle),
            "joints_rad": _largest(predicted - position[common][kept]),
        }

    return {**deviations(0.0), "delay_s": lag, "delay_removed": deviations(lag or 0.0)}


def _largest(values: Array) -> Largest:
    return {"rms": float(np.sqrt(np.mean(values**2))), "max": float(np.abs(values).max())}
