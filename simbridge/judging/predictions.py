"""Predicts the error of the same motion by the servo law: as sent, otherwise tuned, fed forward.

A prediction takes the path that the commands describe, sends it through the law as a simulation
does, and lets the joints trail their targets by the lag that the log shows. The first prediction
repeats the motion as it was sent: its difference from the measured motion shows how far the other
predictions can be trusted. The law was compared with real arms at gains of 300 and 100 only
(docs/validation.md).
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

# Largest relative difference of an identified tuning from that of UR's own ROS driver if both count
# as the same.
TUNING_TOLERANCE = 0.05
# Largest number of cycles that are predicted: the rest of a longer motion would show the same.
MAX_CYCLES = 100_000
# Largest relative distance of a value from its range that counts as rounding.
RANGE_ROUNDING = 1e-5
# Duration of the rest before a predicted motion, in which feedforward begins, s.
REST_S = 0.2


@dataclass(frozen=True)
class Prediction:
    """The tracking error that the servo law predicts for a motion.

    Attributes:
        variant: What is predicted: "as sent", "other tuning" or "feedforward". If the log does not
            show the tuning, "driver's tuning" takes that of UR's ROS driver.
        gain: Gain of servoj, 1/s^2.
        lookahead_s: Lookahead of servoj, s.
        rms_rad: RMS of the predicted tracking error over all rows and joints, rad.
        max_rad: Largest predicted tracking error of a joint, rad.
        tool_rms_m: RMS of the predicted tracking error at the tool, m; None if the arm is not
            known.
        is_extrapolated: Whether the law has never been compared with a real arm at this gain.
        keeps_limits: Whether feedforward keeps the limits of acceleration and of the lead of the
            commands; True for the other variants.
        off_rms_rad: RMS difference of the predicted motion from the measured one, rad, for "as
            sent" and "driver's tuning"; None for the other variants.
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
    """The path that commands describe, with one position for each cycle, after a short rest.

    Attributes:
        times: Instants (N,), s from the log's beginning.
        q: Joint positions (N, n), rad.
        cycle: The controller's cycle, s.
        lag: How long the joints trail their targets, s.
    """

    times: Array
    q: Array
    cycle: float
    lag: float

    def measured(self, targets: Array) -> Array:
        """Return where joints are (N, n), rad, that trail targets (N, n), rad, by the lag."""
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
    path = _find_desired_path(signals, cycle, lag)
    if path is None:
        return ()

    # Name, gain and lookahead of the tunings: the one that was or may have been used, and that of
    # UR's own ROS driver. GAIN and LOOKAHEAD are the driver's.
    if servoj is None:
        tunings = [("driver's tuning", GAIN, LOOKAHEAD)]
    else:
        tunings = [("as sent", servoj.gain, servoj.lookahead_s)]
        if not is_tuning_of_driver(servoj):
            tunings.append(("other tuning", GAIN, LOOKAHEAD))
    call = cycle if servoj is None or servoj.call_s is None else servoj.call_s

    predictions = []
    for variant, gain, lookahead in tunings:
        law = _make_law(cycle, gain, lookahead)
        if law is None:
            continue
        targets = _follow_path(path, law, call)
        prediction = _measure_prediction(path, targets, law, variant=variant, robot=robot)
        if variant != "other tuning":
            off_rms_rad = _distance_from_measured(path, targets, signals)
            prediction = replace(prediction, off_rms_rad=off_rms_rad)
        predictions.append(prediction)

    # Feedforward with the tuning that was used.
    _, gain, lookahead = tunings[0]
    law = _make_law(cycle, gain, lookahead)
    if law is not None:
        predictions.append(_predict_feedforward(path, law, robot))
    return tuple(predictions)


def _predict_feedforward(path: DesiredPath, law: ServojLaw, robot: Robot | None) -> Prediction:
    """Return the error that feedforward would leave.

    With feedforward the targets are the setpoints, taken ahead by the joints' lag. Targets that
    exceed the limits are smoothed, unless no smoothing could bring them within.

    Args:
        path: Where the joints should be.
        law: The servo law.
        robot: The arm; None if it is not known.
    """
    targets = advance_setpoints(path.q, path.cycle, path.lag)
    keeps_limits = can_keep_limits(law, targets)
    if keeps_limits:
        targets, excess = smooth_motion(law, targets)
        keeps_limits = excess is None
    return _measure_prediction(
        path, targets, law, variant="feedforward", robot=robot, keeps_limits=keeps_limits
    )


def is_tuning_of_driver(servoj: ServojEvidence) -> bool:
    """Return whether servoj has the tuning that UR's own ROS driver sends by default."""
    is_same_gain = abs(servoj.gain / GAIN - 1.0) < TUNING_TOLERANCE
    is_same_lookahead = abs(servoj.lookahead_s / LOOKAHEAD - 1.0) < TUNING_TOLERANCE
    return is_same_gain and is_same_lookahead


def _find_desired_path(signals: Signals, cycle: float, lag: float) -> DesiredPath | None:
    """Return the path that the first known signal describes; None if the log does not show it.

    Args:
        signals: The signals of the motion.
        cycle: The controller's cycle, s.
        lag: How long the joints trail their targets, s.
    """
    if signals.first in ("target", "actual"):
        return None
    positions = signals.positions[signals.first]
    known = np.isfinite(positions).all(axis=1)
    if known.sum() < 2:
        return None

    known_times = signals.times[known]
    begin = known_times[0] - REST_S
    cycle_count = min(int((known_times[-1] - begin) / cycle) + 1, MAX_CYCLES)
    times = begin + cycle * np.arange(cycle_count)
    q = interpolate_rows(known_times, positions[known], times)
    # A controller receives its commands in single precision.
    return DesiredPath(times, round_to_single(q), cycle, lag)


def _make_law(cycle: float, gain: float, lookahead: float) -> ServojLaw | None:
    """Return the servo law of a tuning; None if servoj does not accept it."""
    # By rounding, an identified value may lie just outside the range that servoj accepts.
    gain_in_range = _clip_rounding(gain, GAIN_RANGE)
    lookahead_in_range = _clip_rounding(lookahead, LOOKAHEAD_RANGE)
    try:
        return ServojLaw(cycle, gain_in_range, lookahead_in_range)
    except InvalidParameter:
        return None


def _follow_path(path: DesiredPath, law: ServojLaw, call: float) -> Array:
    """Return the joint targets (N, n), rad, if the calls of servoj command positions on a path.

    Args:
        path: The path.
        law: The servo law.
        call: Duration of each call, s.
    """
    duration = path.times[-1] - path.times[0]
    call_begins = path.times[0] + call * np.arange(int(duration / call) + 1)
    commands = interpolate_rows(path.times, path.q, call_begins)
    return law.follow(commands, call=call, cycles=len(path.times)).q


def _clip_rounding(value: float, accepted: tuple[float, float]) -> float:
    """Return a value, or the end of the accepted range if only rounding puts it outside."""
    low, high = accepted
    nearest = min(max(value, low), high)
    return nearest if abs(value - nearest) < RANGE_ROUNDING * nearest else value


def _measure_prediction(
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
        variant: Name of the prediction: see `Prediction`.
        robot: The arm; None if it is not known.
        keeps_limits: Whether feedforward keeps its limits; True without feedforward.
    """
    # The rest before the motion does not count.
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
    """Return the RMS difference of predicted joints from the last known signal, rad.

    It is None if the log does not have that signal while the path lasts.

    Args:
        path: Where the joints should be.
        targets: Predicted joint targets (N, n), rad.
        signals: The signals of the motion.
    """
    actual = signals.positions[signals.last]
    is_compared = np.isfinite(actual).all(axis=1)
    is_compared &= (signals.times >= path.times[0]) & (signals.times <= path.times[-1])
    if not is_compared.any():
        return None
    predicted = interpolate_rows(path.times, path.measured(targets), signals.times[is_compared])
    difference = predicted - actual[is_compared]
    return float(np.sqrt(np.mean(difference**2)))
