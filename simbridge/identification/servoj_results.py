"""Identifies servoj from a recording: its tuning, the timing of its calls, and a prediction."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, replace

import numpy as np

from simbridge.identification.call_timing import find_calls
from simbridge.identification.calls import Calls
from simbridge.identification.data import PredictionResult, ServojResult
from simbridge.identification.held import (
    CreepingSetpoint,
    NoHeldCommand,
    fit_to_held_commands,
)
from simbridge.identification.movej import describe_moves, find_moves
from simbridge.identification.prediction import predict
from simbridge.identification.servoj import fit_to_path, locate_setpoints
from simbridge.identification.settling import fit_to_settling
from simbridge.identification.single_cycles import fit_to_single_cycles
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.identification.tuning import Tuning
from simbridge.robot.pose import Array
from simbridge.servo.integration import round_to_single

# RMS error of a prediction up to which it is reported although rows are farther apart than calls,
# rad.
MIN_UNSEEN_ERROR = 1e-5
# The same limit as a multiple of the tuning's 99th percentile residual; the larger one counts.
UNSEEN_RATIO = 10.0
# Ratio of the span between rows to the duration of a call above which there are calls without rows.
ROWS_APART_RATIO = 1.01

# Largest relative standard deviation of a tuning from single cycles, or from an arm that settles.
MAX_ROUGH_DEVIATION = 0.05

# Number of successive moving rows that are judged together: did servoj make this stretch?
STRETCH_ROWS = 25
# Fraction of the rows of such a stretch that may be off the path of the commands.
MAX_OFF_PATH = 0.2
# Distance of a setpoint from the path above which it is off the path, rad.
MIN_OFF_PATH_DISTANCE = 1e-4
# The same limit as a multiple of the tuning's median residual; the larger one counts.
OFF_PATH_RATIO = 50.0

# Calls that begin this close before the beginning of a cycle, as a fraction of it, begin with it.
BEGIN_ROUNDING = 1e-6
# Two tunings agree if they differ by no more than this many standard deviations, ...
AGREEING_DEVIATIONS = 10.0
# ... plus this fraction of their values.
AGREEING_FRACTION = 1e-4


@dataclass(frozen=True, eq=False)
class CommandFit:
    """The tuning and the calls of servoj, as fitted to a recording and its commands.

    Attributes:
        motion: Joint targets of the T rows in which servoj ran.
        calls: The calls of servoj in these rows.
        tuning: The tuning of servoj.
        errors: Predicted minus recorded joint targets (T, n), rad.
        restarts: Number of times that the prediction restarted from a row.
    """

    motion: TargetMotion
    calls: Calls
    tuning: Tuning
    errors: Array
    restarts: int

    @property
    def phase(self) -> float:
        """The time from the beginning of a cycle to that of a call, s."""
        # The remainder of the calls' beginning after whole cycles, up to rounding.
        begin_cycles = self.calls.law.begin / self.motion.cycle
        whole_cycles = np.floor(begin_cycles + BEGIN_ROUNDING)
        return max(float(self.motion.cycle * (begin_cycles - whole_cycles)), 0.0)


@dataclass(frozen=True, eq=False)
class ServojFit:
    """What a recording shows of servoj.

    Attributes:
        held: The tuning found without the commands; None if none was found. It comes from moments
            in which a command was held. If these give none, and the commands do not either, it
            comes from single cycles in which the setpoint stood still, or from how the arm comes to
            rest.
        from_commands: The tuning and calls from the commands; None if they are not known, or do
            not explain the motion.
        failures: Why a tuning was not found, as clauses.
        missing: Why the calls are not known, as a clause.
        single_cycles: Number of single cycles that `held` comes from; 0 if it comes from anything
            else.
    """

    held: Tuning | None
    from_commands: CommandFit | None
    failures: list[str]
    missing: str
    single_cycles: int = 0


def fit_servoj(motion: TargetMotion, commands: Array | None) -> ServojFit:
    """Fit the tuning of servoj to a recording, and its calls if the commands are known.

    Args:
        motion: The controller's joint targets.
        commands: Commands (K, n), rad; None if they were not recorded.
    """
    held: Tuning | None = None
    fit: CommandFit | None = None
    failures: list[str] = []
    is_rough_fit_possible = False
    missing = "it needs the commands (--commands)"

    # Without the commands: from moments in which a command was held.
    try:
        held = fit_to_held_commands(motion).round_and_check()
    except NoHeldCommand as reason:
        # Single cycles, or how the arm comes to rest, may still show the tuning roughly.
        is_rough_fit_possible = True
        is_only_way = commands is None
        need = ", which is required if the commands are not recorded" if is_only_way else ""
        failures.append(f"{reason}{need}")
    except NotIdentified as reason:
        # So they may if the arm settled towards a setpoint that may have crept. Otherwise commands
        # were held, but do not give a valid and certain tuning, or the arm does not move.
        is_rough_fit_possible = isinstance(reason, CreepingSetpoint)
        failures.append(str(reason))

    # With the commands. A tuning from held commands is the better start: cycles that the end of a
    # call splits in two, and skipped commands, mislead the fit to the path. Without such a tuning,
    # or if it fails, the path is tried.
    if commands is not None:
        # servoj takes commands in single precision.
        received_commands = round_to_single(commands)
        starts: list[Tuning | None] = [None] if held is None else [held, None]
        for start in starts:
            try:
                fit = _fit_commands(motion, received_commands, start=start, held=held)
                break
            except NotIdentified as reason:
                missing = str(reason)
                failures.append(missing)

    # Roughly, without the commands.
    single_cycles = 0
    if fit is None and is_rough_fit_possible:
        held, single_cycles = _fit_roughly(motion, failures)
    return ServojFit(held, fit, failures, missing, single_cycles)


def _fit_roughly(motion: TargetMotion, failures: list[str]) -> tuple[Tuning | None, int]:
    """Fit the tuning to single cycles, or to how the arm comes to rest.

    Args:
        motion: The controller's joint targets.
        failures: Why a tuning was not found, as clauses; another clause is put first if neither
            fit succeeds.

    Returns:
        The tuning, or None; and the number of single cycles that it comes from, which is 0 if the
        arm's coming to rest gave it.
    """
    try:
        tuning = fit_to_single_cycles(motion).round_and_check(MAX_ROUGH_DEVIATION)
        return tuning, len(tuning.residuals)
    except NotIdentified:
        pass
    try:
        return fit_to_settling(motion).round_and_check(MAX_ROUGH_DEVIATION), 0
    except NotIdentified as reason:
        failures.insert(0, str(reason))
        return None, 0


def identify_servoj(
    motion: TargetMotion,
    commands: Array | None,
    *,
    reasons: MutableMapping[str, str],
    notes: list[str],
) -> tuple[ServojResult | None, PredictionResult | None]:
    """Identify the tuning of servoj, and predict the recording with it.

    Args:
        motion: The controller's joint targets.
        commands: Commands (K, n), rad; None if they were not recorded.
        reasons: Reasons for what was not identified, by the key of the result; reasons are added.
        notes: Sentences about the recording; sentences are added.

    Returns:
        The results for servoj and for the prediction; None for what was not identified.
    """
    fit = fit_servoj(motion, commands)
    if fit.from_commands is not None:
        return _describe_fit(motion, fit.from_commands, reasons, notes)

    reasons["prediction"] = fit.missing
    if fit.held is None:
        reasons["servoj"] = "; ".join(reversed(fit.failures))
        moves = find_moves(motion)
        if moves:
            notes.append(describe_moves(moves))
        return None, None
    reasons["servoj.phase_s"] = fit.missing
    if fit.single_cycles:
        notes.append(
            f"gain and lookahead come from {fit.single_cycles} single cycles in which the setpoint "
            "of servoj or servoL stood still"
        )
    return servoj_result(fit.held), None


def _fit_commands(
    motion: TargetMotion, commands: Array, *, start: Tuning | None, held: Tuning | None
) -> CommandFit:
    """Fit the calls of servoj to the commands, and predict the recording.

    Args:
        motion: The controller's joint targets.
        commands: Commands (K, n), rad.
        start: The tuning to start from; None for the fit to the path of the commands.
        held: The tuning from held commands, with which the result must agree; None without one.

    Raises:
        NotIdentified: No tuning and timing of calls explain the motion, or the tunings disagree.
    """
    tuning = fit_to_path(motion, commands) if start is None else start
    index, path_distance = locate_setpoints(motion, tuning, commands)
    rows = _servoj_rows(motion, path_distance, tuning)
    servoj_motion = motion[rows]

    calls, refined = find_calls(servoj_motion, commands, tuning, index[rows])
    refined = refined.round_and_check()
    if held is not None:
        refined = _reconcile(held, refined)

    errors, restarts = predict(servoj_motion, calls, commands)
    return CommandFit(servoj_motion, calls, refined, errors, restarts)


def _servoj_rows(motion: TargetMotion, path_distance: Array, tuning: Tuning) -> slice:
    """Return the rows in which servoj ran: from the first stretch on the path to the last one.

    A stretch is a number of successive moving rows, of which nearly all have their setpoint on the
    path of the commands.

    Args:
        motion: Joint targets in T rows.
        path_distance: Distance of each row's setpoint from the path of the commands (T,), rad.
        tuning: Tuning of servoj.

    Raises:
        NotIdentified: No stretch is on the path.
    """
    max_distance = OFF_PATH_RATIO * float(np.median(tuning.residuals))
    moving = np.flatnonzero(motion.moving)
    is_off = path_distance[moving] > max(max_distance, MIN_OFF_PATH_DISTANCE)
    if not is_off.any():
        return slice(0, len(motion))

    # The fraction of rows off the path in each stretch. A stretch, here and below, is numbered by
    # its first row, counted among the moving rows.
    length = min(STRETCH_ROWS, len(moving))
    off_fraction = np.convolve(is_off, np.ones(length) / length, mode="valid")
    on_path = np.flatnonzero(off_fraction < MAX_OFF_PATH)
    if not len(on_path):
        raise NotIdentified("the motion never follows the commands for long")

    # Rows at rest before and after the motion belong to servoj if the motion does.
    begins_on_path = on_path[0] == 0
    ends_on_path = on_path[-1] == len(off_fraction) - 1
    first = 0 if begins_on_path else moving[on_path[0]]
    end = len(motion) if ends_on_path else moving[on_path[-1] + length - 1] + 1
    return slice(int(first), int(end))


def _reconcile(held: Tuning, refined: Tuning) -> Tuning:
    """Return the refined tuning, with its difference from the one of held commands as deviation.

    Args:
        held: The tuning from held commands.
        refined: The tuning from the timed calls.

    Raises:
        NotIdentified: The two tunings differ by more than their uncertainty.
    """
    difference = np.abs(held.values - refined.values)
    uncertainty = AGREEING_DEVIATIONS * np.hypot(held.deviation, refined.deviation)
    allowed = uncertainty + AGREEING_FRACTION * held.values
    if (difference > allowed).any():
        raise NotIdentified(
            f"the commands give a gain of {refined.gain:.6g}, but the moments when a command was "
            f"held give {held.gain:.6g}: too many calls were not recorded"
        )
    unexplained = np.maximum(difference - held.deviation, 0.0)
    return replace(refined, deviation=np.hypot(refined.deviation, unexplained))


def _describe_fit(
    motion: TargetMotion,
    fit: CommandFit,
    reasons: MutableMapping[str, str],
    notes: list[str],
) -> tuple[ServojResult, PredictionResult | None]:
    """Return the results of a fit, and add its reasons and notes; see `identify_servoj`."""
    if len(fit.motion) < len(motion):
        first = fit.motion.times[0] - motion.times[0]
        last = fit.motion.times[-1] - motion.times[0]
        notes.append(f"servoj ran from {first:.2f} to {last:.2f} s; the rest is ignored")

    law = fit.calls.law
    servoj = servoj_result(fit.tuning, phase=fit.phase, duration=float(law.duration))

    # A prediction needs the commands of all calls, including those between recorded rows.
    size = np.abs(fit.errors)
    rms = float(np.sqrt(np.mean(size**2)))
    span = float(np.median(np.diff(fit.motion.times)))
    max_error = max(MIN_UNSEEN_ERROR, UNSEEN_RATIO * servoj["residual_rad"]["p99"])
    if span > ROWS_APART_RATIO * law.duration and rms > max_error:
        reasons["prediction"] = (
            f"rows are {1e3 * span:.3g} ms apart, but calls last {1e3 * law.duration:.3g} ms: the "
            "commands of the calls between rows are not recorded (with the likeliest ones, the "
            f"error is {rms:.1e} rad)"
        )
        return servoj, None

    prediction: PredictionResult = {
        "rms_rad": rms,
        "median_rad": float(np.median(size)),
        "max_rad": float(size.max()),
        "restarts": fit.restarts,
    }
    return servoj, prediction


def servoj_result(
    tuning: Tuning, *, phase: float | None = None, duration: float | None = None
) -> ServojResult:
    """Return the table [servoj] of a plant file: the tuning of servoj and the timing of its calls.

    Args:
        tuning: Tuning of servoj.
        phase: Time from the beginning of a cycle to that of the call in it, s; None if unknown.
        duration: Duration of a call, s; None if unknown.
    """
    return {
        "gain": float(tuning.gain),
        "lookahead_s": float(tuning.lookahead),
        "phase_s": phase,
        "call_s": duration,
        "uncertainty": {
            "gain": tuning.gain_deviation,
            "lookahead_s": tuning.lookahead_deviation,
        },
        "residual_rad": {
            "median": float(np.median(tuning.residuals)),
            "p99": float(np.percentile(tuning.residuals, 99.0)),
        },
    }
