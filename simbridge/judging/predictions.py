"""What the servo law predicts for the same motion: as it was sent, otherwise tuned, fed forward.

A prediction takes the path that the commands describe, sends it through the law as a simulation
does, and lets the joints trail their targets by the lag that the log shows. The first prediction
repeats what was sent: its difference from the measured motion shows how far the others can be
trusted. The law was compared with real arms at a gain of 300 and of 100 only (docs/validation.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.judging.interpolation import interpolate_rows
from simbridge.judging.servoj_evidence import ServojEvidence
from simbridge.judging.signal_chain import Signals
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.extrapolation import is_extrapolated
from simbridge.servo.feedforward import advance_setpoints, can_keep_limits, smooth_motion
from simbridge.servo.integration import round_to_single
from simbridge.servo.law import GAIN, GAIN_RANGE, LOOKAHEAD, LOOKAHEAD_RANGE, ServojLaw

# Relative difference up to which an identified tuning is that of UR's own ROS driver.
TUNING_TOLERANCE = 0.05
# Longest motion that is predicted, cycles: the rest of a longer one would show the same.
MAX_CYCLES = 100_000
# Distance from the range of a value that is rounding, as a fraction of the value.
RANGE_ROUNDING = 1e-5
# Rest before the motion, in which feedforward begins, s.
REST_S = 0.2


@dataclass(frozen=True)
class Prediction:
    """The tracking error that the servo law predicts for a motion.

    Attributes:
        variant: What is predicted: "as sent", "other tuning", "feedforward", or "driver's tuning"
            where the log does not show the tuning: that of UR's ROS driver.
        gain: Gain of servoj, 1/s^2.
        lookahead_s: Lookahead of servoj, s.
        rms_rad: RMS of the predicted tracking error over all rows and joints, rad.
        max_rad: Largest predicted tracking error of a joint, rad.
        tool_rms_m: RMS of the predicted tracking error at the tool, m; None if the arm is not
            known.
        is_extrapolated: Whether the law has never been compared with a real arm at this gain.
        keeps_limits: Whether feedforward keeps the limits of acceleration and of the lead of the
            commands; True for the others.
        off_rms_rad: RMS difference of the predicted motion from the measured one, rad, if it was
            or may have been sent like this; None for the others.
    """

    variant: str
    gain: float
    lookahead_s: float
    rms_rad: float
    max_rad: float
    tool_rms_m: float | None
    is_extrapolated: bool
    keeps_limits: bool
    off_rms_rad: float | None


@dataclass(frozen=True, eq=False)
class DesiredPath:
    """The path that commands describe, one position a cycle.

    Attributes:
        times: Instants (N,), s from the log's beginning.
        q: Positions (N, n), rad.
        cycle: The controller's cycle, s.
        lag: How long the joints trail their targets, s.
    """

    times: Array
    q: Array
    cycle: float
    lag: float

    def measured(self, targets: Array) -> Array:
        """Return where the joints are (N, n), rad, that follow targets (N, n), rad."""
        return interpolate_rows(self.times, targets, self.times - self.lag)


def predict_errors(
    signals: Signals,
    servoj: ServojEvidence | None,
    *,
    cycle: float,
    lag: float,
    robot: Robot | None,
) -> tuple[Prediction, ...]:
    """Predict the tracking error of a motion of servoj, as it was sent and otherwise.

    Args:
        signals: The signals of the motion.
        servoj: Tuning of servoj; None for that of UR's own ROS driver, as an assumption.
        cycle: The controller's cycle, s.
        lag: How long the joints trail their targets, s.
        robot: The arm, for the error at the tool; None if it is not known.
    """
    path = _desired_path(signals, cycle, lag)
    if path is None:
        return ()

    # The law as it was or may have been, and with the tuning of UR's own ROS driver.
    if servoj is None:
        tunings = [("driver's tuning", GAIN, LOOKAHEAD)]
    else:
        tunings = [("as sent", servoj.gain, servoj.lookahead_s)]
        if not is_tuning_of_driver(servoj):
            tunings.append(("other tuning", GAIN, LOOKAHEAD))
    call = cycle if servoj is None or servoj.call_s is None else servoj.call_s

    predictions = []
    for variant, gain, lookahead in tunings:
        law = _law(cycle, gain, lookahead)
        if law is not None:
            targets = _follow(path, law, call)
            prediction = _compare(path, targets, law, variant=variant, robot=robot)
            if variant != "other tuning":
                off = _distance_from_measured(path, targets, signals)
                prediction = replace(prediction, off_rms_rad=off)
            predictions.append(prediction)

    _, gain, lookahead = tunings[0]
    law = _law(cycle, gain, lookahead)
    if law is not None:
        predictions.append(_predict_feedforward(path, law, robot))
    return tuple(predictions)


def _predict_feedforward(path: DesiredPath, law: ServojLaw, robot: Robot | None) -> Prediction:
    """Return what feedforward would leave; without smoothing where that cannot keep the limits."""
    targets = advance_setpoints(path.q, path.cycle, path.lag)
    keeps_limits = can_keep_limits(law, targets)
    if keeps_limits:
        targets, excess = smooth_motion(law, targets)
        keeps_limits = excess is None
    return _compare(
        path, targets, law, variant="feedforward", robot=robot, keeps_limits=keeps_limits
    )


def is_tuning_of_driver(servoj: ServojEvidence) -> bool:
    """Return whether servoj has the tuning that UR's own ROS driver sends by default."""
    is_same_gain = abs(servoj.gain / GAIN - 1.0) < TUNING_TOLERANCE
    return is_same_gain and abs(servoj.lookahead_s / LOOKAHEAD - 1.0) < TUNING_TOLERANCE


def _desired_path(signals: Signals, cycle: float, lag: float) -> DesiredPath | None:
    """Return the path that the first known signal describes; None if it has too few rows."""
    positions = signals.positions[signals.first]
    known = np.isfinite(positions).all(axis=1)
    if known.sum() < 2 or signals.first in ("target", "actual"):
        return None
    known_times = signals.times[known]
    begin = known_times[0] - REST_S
    count = min(int((known_times[-1] - begin) / cycle) + 1, MAX_CYCLES)
    times = begin + cycle * np.arange(count)
    q = interpolate_rows(known_times, positions[known], times)
    return DesiredPath(times, round_to_single(q), cycle, lag)


def _law(cycle: float, gain: float, lookahead: float) -> ServojLaw | None:
    """Return the servo law of a tuning; None if servoj does not accept it."""
    try:
        # By rounding, an identified value may lie just beyond the range that servoj accepts.
        near_gain = _near_range(gain, GAIN_RANGE)
        return ServojLaw(cycle, near_gain, _near_range(lookahead, LOOKAHEAD_RANGE))
    except InvalidParameter:
        return None


def _follow(path: DesiredPath, law: ServojLaw, call: float) -> Array:
    """Return the joint targets (N, n), rad, that calls of one duration make of a path.

    Args:
        path: The path.
        law: The servo law.
        call: Duration of a call, s.
    """
    duration = path.times[-1] - path.times[0]
    begins = path.times[0] + call * np.arange(int(duration / call) + 1)
    commands = interpolate_rows(path.times, path.q, begins)
    return law.follow(commands, call=call, cycles=len(path.times)).q


def _near_range(value: float, accepted: tuple[float, float]) -> float:
    """Return a value, or the end of its range if it is beyond that by rounding."""
    nearest = min(max(value, accepted[0]), accepted[1])
    return nearest if abs(value - nearest) < RANGE_ROUNDING * nearest else value


def _compare(
    path: DesiredPath,
    targets: Array,
    law: ServojLaw,
    *,
    variant: str,
    robot: Robot | None,
    keeps_limits: bool = True,
) -> Prediction:
    """Return the tracking error of predicted joint targets.

    Args:
        path: Where the joints should be.
        targets: Predicted joint targets (N, n), rad.
        law: The servo law.
        variant: What is predicted.
        robot: The arm; None if it is not known.
        keeps_limits: Whether feedforward keeps its limits.
    """
    is_motion = path.times >= path.times[0] + REST_S
    desired = path.q[is_motion]
    measured = path.measured(targets)[is_motion]
    error = np.abs(desired - measured)

    tool_rms: float | None = None
    if robot is not None and robot.n == desired.shape[1]:
        difference = tool_path(robot, desired)[:, :3] - tool_path(robot, measured)[:, :3]
        tool_rms = float(np.sqrt(np.mean(np.sum(difference**2, axis=1))))
    return Prediction(
        variant=variant,
        gain=law.gain,
        lookahead_s=law.lookahead,
        rms_rad=float(np.sqrt(np.mean(error**2))),
        max_rad=float(error.max()),
        tool_rms_m=tool_rms,
        is_extrapolated=is_extrapolated(law.gain),
        keeps_limits=keeps_limits,
        off_rms_rad=None,
    )


def _distance_from_measured(path: DesiredPath, targets: Array, signals: Signals) -> float | None:
    """Return the RMS difference of predicted joints from the last known signal, rad."""
    actual = signals.positions[signals.last]
    known = np.isfinite(actual).all(axis=1)
    known &= (signals.times >= path.times[0]) & (signals.times <= path.times[-1])
    if not known.any():
        return None
    predicted = interpolate_rows(path.times, path.measured(targets), signals.times[known])
    difference = predicted - actual[known]
    return float(np.sqrt(np.mean(difference**2)))
