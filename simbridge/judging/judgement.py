"""Judges a log: what the arm did in each motion, how far it was behind, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simbridge.identification.read_motion import CB3_CYCLE
from simbridge.judging.arm import Arm, LoggedArm, find_arm
from simbridge.judging.complete_rows import keep_complete_rows, select_whole_rows
from simbridge.judging.events import (
    Gap,
    Jump,
    MotionStop,
    Slowdown,
    find_gaps,
    find_jumps,
    find_slowdowns,
    find_stop,
)
from simbridge.judging.goal_path import goal_positions
from simbridge.judging.interpolation import interpolate_rows
from simbridge.judging.kinds import MIN_ROWS, MotionKind, find_kind
from simbridge.judging.limits import MotionPeaks, find_peaks
from simbridge.judging.log import ControllerLog, Missing
from simbridge.judging.logged_motions import Motion, find_motions
from simbridge.judging.measured_servoj import (
    MeasuredMotion,
    fit_measured_servoj,
    measured_evidence,
)
from simbridge.judging.predictions import Prediction, predict_errors
from simbridge.judging.servoj_evidence import ServojSignals
from simbridge.judging.signal_chain import SIGNALS, Signals, at_instants
from simbridge.judging.tool_tracking import ToolTracking, measure_tool_tracking
from simbridge.judging.tracking_errors import SignalDifference, TrackingErrors, split_error
from simbridge.reading_progress import report_progress
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.plant import JOINT_LAG

# Largest difference between two positions that count as the same, rad.
SAME_POSITION = 1e-9
# Time before a motion from which its setpoints are taken, s: longer than any delay.
REST_BEFORE_S = 1.0


@dataclass(frozen=True)
class JudgedMotion:
    """The judgement of one motion of a log.

    Attributes:
        motion: Rows and times of the motion.
        travel_rad: Largest range of a joint's positions, rad.
        kind: Kind of the motion, by how the controller made it.
        errors: The tracking error and its parts; None if the log has only one signal of the joints.
        predictions: What the servo law predicts for this motion. Empty if no prediction was wanted,
            or if servoj did not make the motion; without joint targets servoj may have made it.
        peaks: The largest speed and acceleration, also as fractions of the arm's limits.
        slowdowns: Spans at less than full speed.
        stop: The stop that ended the motion; None if the log shows none.
    """

    motion: Motion
    travel_rad: float
    kind: MotionKind
    errors: TrackingErrors | None
    predictions: tuple[Prediction, ...]
    peaks: MotionPeaks
    slowdowns: tuple[Slowdown, ...]
    stop: MotionStop | None

    @property
    def error_rad(self) -> float:
        """RMS tracking error of the joints, rad; 0 if it is not known."""
        return 0.0 if self.errors is None else self.errors.whole.size.rms_rad


@dataclass(frozen=True)
class LogJudgement:
    """The judgement of a log.

    Attributes:
        name: The log as the user named it.
        source: Kind of the log: "RTDE recording", ...
        samples: Number of rows.
        duration_s: Time from the first row to the last, s.
        arm: The arm.
        signals: Signals of the joints that the log has or reveals, by the names in
            `simbridge.judging.signal_chain`.
        motions: The motions, in order.
        whole: The tracking error over all motions and its parts; None if no error is known.
        tool: The tracking error at the tool over the whole log, as a run's report has it; None
            unless the log has both the reference poses and the attained poses.
        gaps: Spans in which rows are missing, or came late.
        jumps: Jumps of the joint commands.
        missing: Quantities that the log does not have.
        notes: Sentences about what was left out or assumed.
    """

    name: str
    source: str
    samples: int
    duration_s: float
    arm: Arm
    signals: tuple[str, ...]
    motions: tuple[JudgedMotion, ...]
    whole: TrackingErrors | None
    tool: ToolTracking | None
    gaps: tuple[Gap, ...]
    jumps: tuple[Jump, ...]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Examination:
    """A judged log with the signals that its figures were computed from, for plots.

    Attributes:
        log: The log.
        judgement: The judgement.
        signals: The signals of each motion, in order.
        robot: The arm; None if it is not known.
    """

    log: ControllerLog
    judgement: LogJudgement
    signals: tuple[Signals, ...]
    robot: Robot | None


def judge(log: ControllerLog, robots: Sequence[Robot]) -> LogJudgement:
    """Judge a log.

    Args:
        log: The log.
        robots: Arms that the log may be of. If the arm that `log.robot` names is among them, it is
            that arm.

    Raises:
        UnusableSamples: Fewer than two rows have joint positions.
    """
    return examine(log, robots).judgement


def examine(
    log: ControllerLog, robots: Sequence[Robot], *, predicts_all: bool = True
) -> Examination:
    """Judge a log, and keep the signals from which its figures are computed; see `judge`.

    Args:
        log: The log.
        robots: Arms that the log may be of.
        predicts_all: Whether the servo law predicts every motion that it can; otherwise it predicts
            only the one of them with the largest error.

    Raises:
        UnusableSamples: Fewer than two rows have joint positions.
    """
    log = keep_complete_rows(log)
    model = find_arm(select_whole_rows(log), robots)
    judged = _judge_motions(log, model)
    judged = _add_predictions(judged, model, predicts_all=predicts_all)

    tracked = [(motion, signals) for motion, signals in judged if _is_tracked(motion.kind)]
    known_signals = {name for _, signals in judged for name in signals.positions}
    commands = log.position_commands
    jumps = () if commands is None else find_jumps(commands, log.joint_names)
    judgement = LogJudgement(
        name=log.name,
        source=log.source.value,
        samples=len(log.times),
        duration_s=log.duration,
        arm=model.arm,
        signals=tuple(name for name in SIGNALS if name in known_signals),
        motions=tuple(motion for motion, _ in judged),
        whole=_measure_whole_error(log, tracked, model),
        tool=measure_tool_tracking(log),
        gaps=find_gaps(log),
        jumps=jumps,
        missing=log.missing,
        notes=log.notes,
    )
    return Examination(log, judgement, tuple(signals for _, signals in judged), model.robot)


def _judge_motions(log: ControllerLog, model: LoggedArm) -> list[tuple[JudgedMotion, Signals]]:
    """Judge the motions of a log one by one, and report the progress.

    Returns:
        Each motion with its signals, without predictions.
    """
    motions = find_motions(log)
    judged = []
    for motion in motions:
        judged.append(_judge_motion(log, motion, model))
        report_progress(log.name, len(judged) / len(motions), "Judging")
    return judged


def _judge_motion(
    log: ControllerLog, motion: Motion, model: LoggedArm
) -> tuple[JudgedMotion, Signals]:
    """Return the judgement of a motion, without predictions, and the signals of the motion."""
    kind, revealed = find_kind(log, motion, model.robot)
    signals = collect_signals(log, motion, revealed, model.arm.cycle_s)
    if kind.name == "unknown" and "target" not in signals.positions:
        kind = _find_measured_kind(log, motion, signals, model.arm.cycle_s, kind)
    velocity = log.joint_velocities[motion.rows]

    stop = find_stop(log, motion)
    if kind.name == "movej" and stop is not None and "program" in stop.cause:
        # A motion is recognized as a movej only if it is complete: the program ended after it.
        stop = None

    errors = None
    if _is_tracked(kind):
        errors = split_error(
            signals,
            velocity,
            model.robot,
            lookahead_uncertainty=_lookahead_uncertainty(kind),
        )

    judged = JudgedMotion(
        motion=motion,
        travel_rad=float(np.ptp(log.q[motion.rows], axis=0).max()),
        kind=kind,
        errors=errors,
        predictions=(),
        peaks=find_peaks(log, motion, model.robot),
        slowdowns=find_slowdowns(log, motion),
        stop=stop,
    )
    return judged, signals


def _find_measured_kind(
    log: ControllerLog, motion: Motion, signals: Signals, cycle: float | None, kind: MotionKind
) -> MotionKind:
    """Return the kind of a motion by its measured joints, in a log without joint targets.

    Args:
        log: The log.
        motion: The motion.
        signals: Signals of the motion.
        cycle: The controller's cycle, s; None to take it from the rows.
        kind: The unknown kind by the other evidence, with the reason why it is unknown. It is
            returned if the measured joints do not show the kind either.
    """
    actual = signals.positions.get("actual")
    has_setpoints = signals.first in ("reference", "command sent")
    if actual is None or not has_setpoints or not motion.starts_at_rest:
        return kind
    known = np.isfinite(actual).all(axis=1)
    if np.count_nonzero(known) < MIN_ROWS:
        return kind

    # A driver records every cycle, or only some of them: a cycle is no longer than the time
    # between two rows, and never longer than that of a CB3.
    cycle = cycle or min(float(np.median(np.diff(log.times))), CB3_CYCLE)
    instants = np.arange(motion.begin_s - REST_BEFORE_S, motion.end_s + cycle, cycle)
    setpoints = _sample_setpoints(log, signals.first, instants, cycle)
    if setpoints is None:
        return kind

    measured = MeasuredMotion(
        instants=instants,
        setpoints=setpoints,
        times=signals.times[known],
        measured=actual[known],
    )
    fit, reason = fit_measured_servoj(measured)
    if fit is None:
        return replace(kind, reason=f"{kind.reason}; {reason}")
    return MotionKind("servoj", servoj=measured_evidence(fit))


def _sample_setpoints(log: ControllerLog, name: str, instants: Array, cycle: float) -> Array | None:
    """Return the setpoints of a motion (T, n), rad, at instants.

    Before the first known setpoint and after the last one the joints are assumed to rest there. The
    setpoints are None if fewer than two of them are known.

    Args:
        log: The log.
        name: Signal that has the setpoints: "reference" or "command sent".
        instants: The instants (T,), s.
        cycle: The controller's cycle, s.
    """
    positions = _sample_commands(log, instants, cycle) if name == "command sent" else None
    if positions is None:
        positions = _sample_reference(log, instants)
    assert positions is not None, "the log has this signal"

    known = np.isfinite(positions).all(axis=1)
    if np.count_nonzero(known) < 2:
        return None
    return interpolate_rows(instants[known], positions[known], instants)


def _add_predictions(
    judged: Sequence[tuple[JudgedMotion, Signals]], model: LoggedArm, *, predicts_all: bool
) -> list[tuple[JudgedMotion, Signals]]:
    """Return motions with what the servo law predicts for them.

    Args:
        judged: The motions, with their signals.
        model: The arm.
        predicts_all: Whether every motion is predicted for which that is possible; otherwise only
            the one of them with the largest error.
    """
    predicted = list(judged)
    largest_first = sorted(
        range(len(judged)), key=lambda index: judged[index][0].error_rad, reverse=True
    )
    for index in largest_first:
        motion, signals = judged[index]
        predictions = _predict_motion(motion, signals, model)
        predicted[index] = (replace(motion, predictions=predictions), signals)
        if predictions and not predicts_all:
            break
    return predicted


def _predict_motion(
    judged: JudgedMotion, signals: Signals, model: LoggedArm
) -> tuple[Prediction, ...]:
    """Return what the servo law predicts for a motion; nothing unless servoj may have made it.

    Args:
        judged: Judgement of the motion.
        signals: Signals of the motion.
        model: The arm.
    """
    kind = judged.kind
    errors = judged.errors
    cycle = model.arm.cycle_s
    if cycle is None or errors is None:
        return ()

    # If the targets were not recorded, servoj may have made a motion of unknown kind.
    may_be_servoj = kind.name == "unknown" and "target" not in signals.positions
    if kind.servoj is None and not may_be_servoj:
        return ()

    # How long the joints trail their targets: as measured, else as in a simulation. Tuning that
    # comes from the measured joints includes their delay.
    lags = [part.lag.lag_s for part in errors.parts if part.source == "arm" and part.lag]
    joint_lag = min(max(lags[0], 0.0), cycle) if lags else JOINT_LAG
    if kind.servoj is not None and kind.servoj.is_measured and kind.servoj.delay_s is not None:
        joint_lag = kind.servoj.delay_s
    return predict_errors(signals, kind.servoj, cycle=cycle, lag=joint_lag, robot=model.robot)


def _is_tracked(kind: MotionKind) -> bool:
    """Return whether the arm followed its targets; in freedrive the targets follow the arm."""
    return kind.name != "freedrive"


def _lookahead_uncertainty(kind: MotionKind) -> float:
    """Return one standard deviation of the lookahead of a motion, s; 0 for other kinds."""
    return 0.0 if kind.servoj is None else kind.servoj.lookahead_uncertainty_s


def collect_signals(
    log: ControllerLog, motion: Motion, revealed: ServojSignals | None, cycle: float | None
) -> Signals:
    """Return the signals of a motion that the log has or reveals, at the motion's rows.

    Args:
        log: The log.
        motion: The motion.
        revealed: What servoj's targets reveal of the commands; None for other motions.
        cycle: The controller's cycle, s; None if it is not known.
    """
    rows = motion.rows
    times = log.times[rows]
    positions: dict[str, Array] = {}

    # What was planned and sent. If the commands repeat the reference, only they are a signal.
    reference = _sample_reference(log, times)
    commands = _sample_commands(log, times, cycle or 0.0)
    if commands is not None:
        positions["command sent"] = commands
    if reference is not None:
        commands_repeat_it = commands is not None and np.allclose(
            commands, reference, rtol=0.0, atol=SAME_POSITION, equal_nan=True
        )
        if not commands_repeat_it:
            positions["reference"] = reference

    # What the controller made of the commands, and where the joints were.
    if revealed is not None:
        if revealed.newest is not None:
            positions["command taken"] = _spread_over_rows(revealed.times, revealed.newest, times)
        positions["setpoint"] = _spread_over_rows(revealed.times, revealed.setpoints, times)
    if log.target_q is not None:
        positions["target"] = log.target_q[rows]
    if log.actual_q is not None:
        positions["actual"] = log.actual_q[rows]

    # Only signals that are known in some row, in the order of the chain.
    known = {
        name: positions[name]
        for name in SIGNALS
        if name in positions and np.isfinite(positions[name]).any()
    }
    return Signals(log.joint_names, times, known)


def _sample_commands(log: ControllerLog, instants: Array, cycle: float) -> Array | None:
    """Return the commands (T, n), rad, that are meant for instants (T,); None without commands.

    A command is meant for the end of the cycle that begins when it is sent.

    Args:
        log: The log.
        instants: The instants, s.
        cycle: The controller's cycle, s.
    """
    commands = log.position_commands
    if commands is None or commands.times is None:
        return None
    return at_instants(commands.times + cycle, commands.values, instants)


def _sample_reference(log: ControllerLog, instants: Array) -> Array | None:
    """Return where the joints should be (T, n), rad, at instants (T,), s; None if not known."""
    if log.setpoints is not None:
        return at_instants(log.setpoints.times, log.setpoints.values, instants)
    if log.reference is not None:
        return at_instants(log.reference.times, log.reference.q, instants)
    if log.goals:
        return goal_positions(log.goals, instants)
    return None


def _spread_over_rows(times: Array, values: Array, row_times: Array) -> Array:
    """Return values (T, n) with a row for each row of a motion; NaN for rows without a value.

    Args:
        times: Instants of the rows with values (K,), s, each of which is one of `row_times`.
        values: The values (K, n).
        row_times: Instants of all rows (T,), s.
    """
    spread = np.full((len(row_times), values.shape[1]), np.nan)
    spread[np.searchsorted(row_times, times)] = values
    return spread


def _measure_whole_error(
    log: ControllerLog, tracked: Sequence[tuple[JudgedMotion, Signals]], model: LoggedArm
) -> TrackingErrors | None:
    """Return the tracking error over all motions that were tracked; None without any.

    Only signals that every motion has are compared.

    Args:
        log: The log.
        tracked: The motions, with their signals.
        model: The arm.
    """
    if not tracked:
        return None

    # The rows of all motions one after the other.
    names = [name for name in SIGNALS if all(name in item.positions for _, item in tracked)]
    positions = {
        name: np.concatenate([signals.positions[name] for _, signals in tracked]) for name in names
    }
    times = np.concatenate([signals.times for _, signals in tracked])
    velocities = log.joint_velocities
    velocity = np.concatenate([velocities[judged.motion.rows] for judged, _ in tracked])

    # Successive motions may share the row between them.
    is_new = np.concatenate([[True], np.diff(times) > 0.0])
    new_positions = {name: values[is_new] for name, values in positions.items()}
    signals_of_all = Signals(log.joint_names, times[is_new], new_positions)

    uncertainties = [_lookahead_uncertainty(judged.kind) for judged, _ in tracked]
    errors = split_error(
        signals_of_all, velocity[is_new], model.robot, lookahead_uncertainty=max(uncertainties)
    )
    if errors is None:
        return None
    motions = [judged for judged, _ in tracked]
    return TrackingErrors(
        whole=_widen_uncertainty(errors.whole, motions),
        parts=tuple(_widen_uncertainty(part, motions) for part in errors.parts),
    )


def _widen_uncertainty(part: SignalDifference, motions: Sequence[JudgedMotion]) -> SignalDifference:
    """Return a part of the error whose lag is at least as uncertain as the motions' lags differ.

    Args:
        part: A part of the error over all motions, or the whole error.
        motions: The motions, with their own errors.
    """
    if part.lag is None:
        return part

    differences = [
        difference
        for judged in motions
        if judged.errors is not None
        for difference in (judged.errors.whole, *judged.errors.parts)
    ]
    lags = [
        difference.lag.lag_s
        for difference in differences
        if difference.lag is not None
        and (difference.leading, difference.trailing) == (part.leading, part.trailing)
    ]
    # A motion whose error has only one part lists that part twice, also as the whole.
    distinct_lags = list(dict.fromkeys(lags))
    if len(distinct_lags) < 2:
        return part

    # The standard error of the mean lag.
    standard_error = float(np.std(distinct_lags, ddof=1)) / math.sqrt(len(distinct_lags))
    lag = replace(part.lag, uncertainty_s=max(part.lag.uncertainty_s, standard_error))
    return replace(part, lag=lag)
