"""Measures the tracking error at the tool, in a log with the reference and the attained poses.

The numbers are the same as those of a run's report (`simbridge.evaluation`), over the same samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.evaluation.metrics.delays import delay, motion_through
from simbridge.evaluation.metrics.samples import PoseError
from simbridge.judging.log import ControllerLog
from simbridge.robot import pose

# Smallest number of samples with both poses.
MIN_SAMPLES = 10


@dataclass(frozen=True)
class ToolTracking:
    """The tracking error at the tool, from the reference to the attained pose, over a whole log.

    Attributes:
        rms_m: RMS distance, m.
        max_m: Largest distance, m.
        max_at_s: Time of the largest distance, s from the log's beginning.
        rotation_rms_rad: RMS angle, rad.
        rotation_max_rad: Largest angle, rad.
        delay_s: Delay of the attained position behind the reference, s; None if the motion does
            not determine it.
    """

    rms_m: float
    max_m: float
    max_at_s: float
    rotation_rms_rad: float
    rotation_max_rad: float
    delay_s: float | None


def measure_tool_tracking(log: ControllerLog) -> ToolTracking | None:
    """Return the tracking error at the tool; None if a log does not have both poses."""
    reference = log.reference_poses
    attained = log.attained_poses
    if reference is None or attained is None or len(reference.times) < 2:
        return None

    # The attained poses while the reference lasts.
    is_within = (attained.times >= reference.times[0]) & (attained.times <= reference.times[-1])
    times = attained.times[is_within]
    poses = attained.values[is_within]
    if len(times) < MIN_SAMPLES:
        return None

    desired = pose.interpolate(reference.times, reference.values, times)
    error = PoseError.between(desired, poses)
    worst = int(np.argmax(error.distance))
    leading = motion_through(reference.times, reference.values)
    return ToolTracking(
        rms_m=float(np.sqrt(np.mean(error.distance**2))),
        max_m=float(error.distance[worst]),
        max_at_s=float(times[worst]),
        rotation_rms_rad=float(np.sqrt(np.mean(error.angle**2))),
        rotation_max_rad=float(error.angle.max()),
        delay_s=delay(times, leading, poses, part="position"),
    )
