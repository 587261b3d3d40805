"""Judges a log: what the arm did in each motion, how far it was behind, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simbridge.identification.read_motion import CB3_CYCLE
from simbridge.judging.arm import Arm, LoggedArm, find_arm
from simbridge.judging.complete_rows import keep_complete_rows, with_whole_rows
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
from simbridge.judging.measured_servoj import (
    MeasuredMotion,
    fit_measured_servoj,
    measured_evidence,
)
from simbridge.judging.motions import Motion, find_motions
from simbridge.judging.predictions import Prediction, predict_errors
from simbridge.judging.servoj_evidence import ServojSignals
from simbridge.judging.signal_chain import SIGNALS, Signals, at_instants
from simbridge.judging.tool_tracking import ToolTracking, measure_tool_tracking
from simbridge.judging.tracking_errors import SignalDifference, TrackingErrors, split_error
from simbridge.reading_progress import report_progress
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.plant import JOINT_LAG

# Difference up to which two positions are the same, rad.
SAME_POSITION = 1e-9
# Rest before a motion in which what was sent to it begins, s: longer than any delay.
REST_BEFORE_S = 1.0


@dataclass(frozen=True)
class JudgedMotion:
    """A motion of a log, judged.

    Attributes:
        motion: When it was.
        travel_rad: Largest range of a joint's positions, rad.
        kind: How the controller made it.
        errors: The tracking error and its parts; None if the log has only one signal of the joints.
        predictions: What the servo law predicts for this motion; empty unless servoj made it, or
            may have made it as the joint targets were not recorded, or if it was not asked for.
        peaks: The largest speed and acceleration, with the shares of the arm's limits.
        slowdowns: Spans at less than full speed.
        stop: What ended it, if not the motion itself; None if the log shows nothing of that kind.
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
    """A log, judged.

    Attributes:
        name: The log as the user named it.
        source: What it was read from: "RTDE recording", ...
        samples: Number of rows.
        duration_s: Time from the first row to the last, s.
        arm: The arm.
        signals: Signals of the joints that the log has or reveals, by the names in
            `simbridge.judging.signal_chain`.
        motions: The motions, in order.
        whole: The tracking error over all motions and its parts; None without any.
        tool: The tracking error at the tool over the whole log, as a run's report has it; None if
            the log does not have the poses on the reference and as attained.
        gaps: Spans without rows.
        jumps: Jumps of the joint commands.
        missing: What the log does not have.
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
        robots: Arms that it may be of; the one that `log.robot` names is taken, if it is among
            them.

    Raises:
        UnusableSamples: Fewer than two rows have joint positions.
    """
    return examine(log, robots).judgement


def examine(
    log: ControllerLog, robots: Sequence[Robot], *, predicts_all: bool = True
) -> Examination:
    """Judge a log, and keep the signals; see `judge`.

    Args:
        log: The log.
        robots: Arms that it may be of.
        predicts_all: Whether the servo law predicts every motion that it can; otherwise only the
            one of these with the largest error.

    Raises:
        UnusableSamples: Fewer than two rows have joint positions.
    """
    log = keep_complete_rows(log)
    model = find_arm(with_whole_rows(log), robots)
    judged = _with_predictions(_judge_motions(log, model), model, predicts_all=predicts_all)
    tracked = [(motion, signals) for motion, signals in judged if _is_tracked(motion.kind)]
    commands = log.position_commands
    jumps = () if commands is None else find_jumps(commands, log.joint_names)
    judgement = LogJudgement(
        name=log.name,
        source=log.source.value,
        samples=len(log.times),
        duration_s=log.duration,
        arm=model.arm,
        signals=tuple(
            name for name in SIGNALS if any(name in item.positions for _, item in judged)
        ),
        motions=tuple(motion for motion, _ in judged),
        whole=_whole_error(log, tracked, model),
        tool=measure_tool_tracking(log),
        gaps=find_gaps(log),
        jumps=jumps,
        missing=log.missing,
        notes=log.notes,
    )
    return Examination(log, judgement, tuple(signals for _, signals in judged), model.robot)


def _judge_motions(log: ControllerLog, model: LoggedArm) -> list[tuple[JudgedMotion, Signals]]:
    """Return the motions of a log with their signals, and report how far this has come."""
    motions = find_motions(log)
    judged = []
    for motion in motions:
        judged.append(_judge_motion(log, motion, model))
        report_progress(log.name, len(judged) / len(motions), "Judging")
    return judged


def _judge_motion(
    log: ControllerLog, motion: Motion, model: LoggedArm
) -> tuple[JudgedMotion, Signals]:
    """Return a motion with everything that the log shows of it, and its signals."""
    kind, revealed = find_kind(log, motion, model.robot)
    signals = motion_signals(log, motion, revealed, model.arm.cycle_s)
    if kind.name == "unknown" and "target" not in signals.positions:
        kind = _measured_kind(log, motion, signals, model.arm.cycle_s, kind)
    velocity = log.joint_velocities[motion.rows]

    stop = find_stop(log, motion)
    if kind.name == "movej" and stop is not None and "program" in stop.cause:
        # A movej that came to its end did so before its program.
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


def _measured_kind(
    log: ControllerLog, motion: Motion, signals: Signals, cycle: float | None, kind: MotionKind
) -> MotionKind:
    """Return the kind of a motion by its measured joints, where the targets were not recorded.

    Args:
        log: The log.
        motion: The motion.
        signals: Its signals.
        cycle: The controller's cycle, s; None to take it from the rows.
        kind: The unknown kind by the other evidence, with the reason why it is unknown.
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
    setpoints = _setpoints_at(log, signals.first, instants, cycle)
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


def _setpoints_at(log: ControllerLog, name: str, instants: Array, cycle: float) -> Array | None:
    """Return the first signal of a motion (T, n), rad, at instants, with rest around what is known.

    None if it is not known at two of them.

    Args:
        log: The log.
        name: The signal: "reference" or "command sent".
        instants: The instants (T,), s.
        cycle: The controller's cycle, s.
    """
    positions = _commands(log, instants, cycle) if name == "command sent" else None
    if positions is None:
        positions = _reference(log, instants)
    assert positions is not None, "the log has this signal"
    known = np.isfinite(positions).all(axis=1)
    if np.count_nonzero(known) < 2:
        return None
    return interpolate_rows(instants[known], positions[known], instants)


def _with_predictions(
    judged: Sequence[tuple[JudgedMotion, Signals]], model: LoggedArm, *, predicts_all: bool
) -> list[tuple[JudgedMotion, Signals]]:
    """Return motions with what the servo law predicts for them.

    Args:
        judged: The motions, with their signals.
        model: The arm.
        predicts_all: Whether all of them are predicted that can be; otherwise only the one of these
            with the largest error.
    """
    predicted = list(judged)
    largest_first = sorted(
        range(len(judged)), key=lambda index: judged[index][0].error_rad, reverse=True
    )
    for index in largest_first:
        motion, signals = judged[index]
        predictions = _predictions(motion, signals, model)
        predicted[index] = (replace(motion, predictions=predictions), signals)
        if predictions and not predicts_all:
            break
    return predicted


def _predictions(
    judged: JudgedMotion, signals: Signals, model: LoggedArm
) -> tuple[Prediction, ...]:
    """Return what the servo law predicts for a motion; nothing unless servoj may have made it.

    Args:
        judged: The motion.
        signals: Its signals.
        model: The arm.
    """
    kind = judged.kind
    errors = judged.errors
    cycle = model.arm.cycle_s
    if cycle is None or errors is None:
        return ()
    # Where the targets were not recorded, servoj may have made the motion.
    may_be_servoj = kind.name == "unknown" and "target" not in signals.positions
    if kind.servoj is None and not may_be_servoj:
        return ()
    lags = [part.lag.lag_s for part in errors.parts if part.source == "arm" and part.lag]
    lag = min(max(lags[0], 0.0), cycle) if lags else JOINT_LAG
    if kind.servoj is not None and kind.servoj.is_measured and kind.servoj.delay_s is not None:
        # The delay that the measured joints show is that of the joints, too.
        lag = kind.servoj.delay_s
    return predict_errors(signals, kind.servoj, cycle=cycle, lag=lag, robot=model.robot)


def _is_tracked(kind: MotionKind) -> bool:
    """Return whether an arm followed its targets: in freedrive the targets follow the arm."""
    return kind.name != "freedrive"


def _lookahead_uncertainty(kind: MotionKind) -> float:
    """Return one standard deviation of the lookahead of a motion, s; 0 for other kinds."""
    return 0.0 if kind.servoj is None else kind.servoj.lookahead_uncertainty_s


def motion_signals(
    log: ControllerLog, motion: Motion, revealed: ServojSignals | None, cycle: float | None
) -> Signals:
    """Return the signals of a motion that the log has or reveals.

    Args:
        log: The log.
        motion: The motion.
        revealed: What servoj's targets reveal of the commands; None for other motions.
        cycle: The controller's cycle, s; None if it is not known.
    """
    rows = motion.rows
    times = log.times[rows]
    positions: dict[str, Array] = {}
    reference = _reference(log, times)
    if reference is not None:
        positions["reference"] = reference

    sent = _commands(log, times, cycle or 0.0)
    if sent is not None:
        positions["command sent"] = sent
        # Commands that are the reference are not a signal of their own.
        if reference is not None and np.allclose(
            positions["command sent"], reference, rtol=0.0, atol=SAME_POSITION, equal_nan=True
        ):
            del positions["reference"]
    if revealed is not None:
        if revealed.newest is not None:
            positions["command taken"] = _on_rows(revealed.times, revealed.newest, times)
        positions["setpoint"] = _on_rows(revealed.times, revealed.setpoints, times)
    if log.target_q is not None:
        positions["target"] = log.target_q[rows]
    if log.actual_q is not None:
        positions["actual"] = log.actual_q[rows]

    known = {
        name: positions[name]
        for name in SIGNALS
        if name in positions and np.isfinite(positions[name]).any()
    }
    return Signals(log.joint_names, times, known)


def _commands(log: ControllerLog, instants: Array, cycle: float) -> Array | None:
    """Return the commands (T, n), rad, that are meant for instants (T,); None if not known.

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


def _reference(log: ControllerLog, instants: Array) -> Array | None:
    """Return where the joints should be (T, n), rad, at instants (T,); None if it is not known."""
    if log.setpoints is not None:
        return at_instants(log.setpoints.times, log.setpoints.values, instants)
    if log.reference is not None:
        return at_instants(log.reference.times, log.reference.q, instants)
    if log.goals:
        return goal_positions(log.goals, instants)
    return None


def _on_rows(times: Array, values: Array, instants: Array) -> Array:
    """Return the values (T, n) of rows at instants (T,); NaN for rows without a value.

    Args:
        times: Instants of the rows with values (K,), s: some of the instants.
        values: The values (K, n).
        instants: Instants of all rows (T,), s.
    """
    on_rows = np.full((len(instants), values.shape[1]), np.nan)
    on_rows[np.searchsorted(instants, times)] = values
    return on_rows


def _whole_error(
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
    names = [name for name in SIGNALS if all(name in item.positions for _, item in tracked)]
    positions = {
        name: np.concatenate([signals.positions[name] for _, signals in tracked]) for name in names
    }
    times = np.concatenate([signals.times for _, signals in tracked])
    velocities = log.joint_velocities
    velocity = np.concatenate([velocities[judged.motion.rows] for judged, _ in tracked])

    # Successive motions may share the row between them.
    is_new = np.concatenate([[True], np.diff(times) > 0.0])
    kept = {name: values[is_new] for name, values in positions.items()}
    signals_of_all = Signals(log.joint_names, times[is_new], kept)
    uncertainties = [_lookahead_uncertainty(judged.kind) for judged, _ in tracked]
    whole = split_error(
        signals_of_all, velocity[is_new], model.robot, lookahead_uncertainty=max(uncertainties)
    )
    if whole is None:
        return None
    motions = [judged for judged, _ in tracked]
    return TrackingErrors(
        whole=_with_spread(whole.whole, motions),
        parts=tuple(_with_spread(part, motions) for part in whole.parts),
    )


def _with_spread(part: SignalDifference, motions: Sequence[JudgedMotion]) -> SignalDifference:
    """Return a part whose lag is at least as uncertain as the lags of the motions are spread."""
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
    # The only part of a motion's error is the whole, too, and counts once.
    distinct = list(dict.fromkeys(lags))
    if part.lag is None or len(distinct) < 2:
        return part
    # The standard deviation of their mean.
    spread = float(np.std(distinct, ddof=1)) / math.sqrt(len(distinct))
    lag = replace(part.lag, uncertainty_s=max(part.lag.uncertainty_s, spread))
    return replace(part, lag=lag)
