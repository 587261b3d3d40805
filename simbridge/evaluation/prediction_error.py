"""The prediction error: how far a simulated run is from the same run measured on a controller; and how far the tracking
error of a simulated run is known."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.delays import delay, sampled
from simbridge.evaluation.metrics.samples import PoseError
from simbridge.robot.pose import Array
from simbridge.servo.law import ServojLaw


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
    return {"rms": _rms(values), "max": float(np.abs(values).max())}


class Uncertainty(TypedDict):
    """One standard deviation of the RMS tracking error, m and rad."""

    position_m: float
    rotation_rad: float


def prediction_uncertainty(run: Evaluation) -> Uncertainty | None:
    """How far a simulated tracking error is uncertain because gain and lookahead are, as identified of the arm.

    Each changes by its standard deviation, and the servo law is followed once more; the changes are independent. None
    where the plant has no deviations.
    """
    backend, law = run.settings["backend"], run.servo
    deviations = (backend.get("gain_deviation", 0.0), backend.get("lookahead_deviation", 0.0))
    if not is_simulated(run) or law is None or run.predicted is None or not any(deviations):
        return None
    changed = [_changed(law, name, by) for name, by in zip(("gain", "lookahead"), deviations, strict=True)]
    known = PoseError.between(run.reference, run.predicted)
    others = [PoseError.between(run.reference, run.tool(run.followed(other))) for other in changed]
    position, rotation = (
        float(np.linalg.norm([_rms(getattr(other, kind)) - _rms(getattr(known, kind)) for other in others]))
        for kind in ("distance", "angle")
    )
    return {"position_m": position, "rotation_rad": rotation}


def _changed(law: ServojLaw, name: str, by: float) -> ServojLaw:
    """The law with a smaller value, which is stable, too; at the end of UR's range with a larger one."""
    try:
        return replace(law, **{name: getattr(law, name) - by})
    except InvalidParameter:
        return replace(law, **{name: getattr(law, name) + by})


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))
