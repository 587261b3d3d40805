"""The prediction error: how far a simulated run is from a measured one of the same motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.delays import delay, motion_through
from simbridge.evaluation.metrics.samples import PoseError, rms
from simbridge.robot.pose import Array


class DeviationSize(TypedDict):
    """RMS and largest magnitude of a difference."""

    rms: float
    max: float


class Deviations(TypedDict):
    """Differences of two motions of an arm.

    Attributes:
        position_m: Differences of the tool's position, m.
        rotation_rad: Differences of the tool's rotation, rad.
        joints_rad: Differences of single joints, rad (m where prismatic).
    """

    position_m: DeviationSize
    rotation_rad: DeviationSize
    joints_rad: DeviationSize


class PredictionError(Deviations):
    """Simulated minus measured, at the same instants of the trajectory.

    Attributes:
        delay_s: Time by which the measured arm trails the simulated one, s; None if it cannot be
            determined.
        delay_removed: What remains without it.
    """

    delay_s: float | None
    delay_removed: Deviations


@dataclass(frozen=True, eq=False)
class MotionByPlan:
    """The motion that an arm attained, by instants of the trajectory.

    Attributes:
        times: Strictly increasing instants (K,) of the trajectory, s.
        poses: Attained tool poses (K, 7).
        joints: Attained joint positions (K, n), rad (m where prismatic).
    """

    times: Array
    poses: Array
    joints: Array


def prediction_error(simulated: Evaluation, measured: Evaluation) -> PredictionError | None:
    """Return how far attained poses and joints of a simulated run are from the measured ones.

    None if the runs have fewer than two instants of the trajectory in common, or if their arms have
    different numbers of joints.
    """
    prediction = _motion_by_plan(simulated)
    measurement = _motion_by_plan(measured)
    if prediction.joints.shape[1] != measurement.joints.shape[1]:
        return None

    begin = prediction.times[0]
    end = prediction.times[-1]

    is_common = (measurement.times >= begin) & (measurement.times <= end)
    if is_common.sum() < 2:
        return None
    times = measurement.times[is_common]
    poses = measurement.poses[is_common]
    joints = measurement.joints[is_common]

    predicted_motion = motion_through(prediction.times, prediction.poses)
    lag = delay(times, predicted_motion, poses)

    def deviations(delay_s: float) -> Deviations:
        """Return the deviations of the measurement from the prediction, delayed by a time, s."""
        delayed = times - delay_s
        is_inside = (delayed >= begin) & (delayed <= end)
        instants = delayed[is_inside]

        error = PoseError.between(predicted_motion(instants), poses[is_inside])
        columns = [np.interp(instants, prediction.times, joint) for joint in prediction.joints.T]
        predicted_joints = np.stack(columns, axis=1)
        return {
            "position_m": _deviation(error.distance),
            "rotation_rad": _deviation(error.angle),
            "joints_rad": _deviation(predicted_joints - joints[is_inside]),
        }

    return {**deviations(0.0), "delay_s": lag, "delay_removed": deviations(lag or 0.0)}


def _motion_by_plan(run: Evaluation) -> MotionByPlan:
    """Return what the arm of a run attained, without the samples at which the trajectory waits."""
    times = run.log.plan_time
    is_later = increasing_mask(times)
    return MotionByPlan(times[is_later], run.attained[is_later], run.log.position[is_later])


def _deviation(values: Array) -> DeviationSize:
    """Return RMS and largest magnitude of differences."""
    return {"rms": rms(values), "max": float(np.abs(values).max())}


def increasing_mask(times: Array) -> NDArray[np.bool_]:
    """Return which instants (T,) of the trajectory are later than all before.

    The trajectory waits where a controller does.
    """
    is_later = times[1:] > np.maximum.accumulate(times)[:-1]
    return np.concatenate([[True], is_later])
