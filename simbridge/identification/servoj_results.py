"""Identifies servoj from a recording: its tuning, the timing of its calls, and a prediction."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, replace

import numpy as np

from simbridge.identification.call_timing import find_calls
from simbridge.identification.calls import Calls
from simbridge.identification.data import PredictionResult, ServojResult
from simbridge.identification.held import fit_to_held_commands
from simbridge.identification.prediction import predict
from simbridge.identification.servoj import along, fit_to_path
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.identification.tuning import Tuning
from simbridge.robot.pose import Array

# Error of a prediction from which calls without rows explain it, if the rows themselves obey, rad.
MIN_UNSEEN_ERROR = 1e-5
# It also exceeds this many times what the rows leave.
UNSEEN_RATIO = 10.0
# Rows are farther apart than calls from this ratio on.
ROWS_APART_RATIO = 1.01

# Moving rows in which servoj is looked for together.
STRETCH_ROWS = 25
# Fraction of them that may be off the path of the commands.
MAX_OFF_PATH = 0.2
# Setpoints farther from the path than this, rad, and than this many times what the tuning leaves,
# are off it.
MIN_OFF_PATH_DISTANCE = 1e-4
OFF_PATH_RATIO = 50.0

# Tunings that differ by more deviations than this, and by more than this (relative), disagree.
AGREEING_DEVIATIONS = 10.0
AGREEING_FRACTION = 1e-4


@dataclass(frozen=True, eq=False)
class CommandFit:
    """Servoj's tuning and calls, as fitted to a recording and the commands that were sent.

    Attributes:
        motion: The rows in which servoj ran (T).
        calls: Its calls.
        tuning: Its tuning.
        errors: Joint targets predicted minus recorded (T, n), rad.
        restarts: Number of restarts of the prediction.
    """

    motion: TargetMotion
    calls: Calls
    tuning: Tuning
    errors: Array
    restarts: int


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
        commands: Commands (K, n), rad, where they are known.
        reasons: Reasons for what was not identified; those found here are added.
        notes: Sentences about the recording; those found here are added.
    """
    held: Tuning | None = None
    fit: CommandFit | None = None
    failures: list[str] = []
    missing = "it needs the commands (--commands)"

    # Without the commands.
    try:
        held = fit_to_held_commands(motion).round_and_check()
    except NotIdentified as reason:
        failures.append(str(reason))

    # With the commands. Split cycles and skipped commands may mislead the path; but it may be all
    # there is.
    if commands is not None:
        needless = ", which is required if the commands are not recorded"
        failures = [reason.replace(needless, "") for reason in failures]
        single_commands = commands.astype(np.float32).astype(float)
        for start in (None,) if held is None else (held, None):
            try:
                fit = _fit_commands(motion, single_commands, start=start, held=held)
                break
            except NotIdentified as reason:
                missing = str(reason)
                failures.append(missing)

    if fit is not None:
        return _describe_fit(motion, fit, reasons, notes)
    reasons["prediction"] = missing
    if held is None:
        reasons["servoj"] = "; ".join(reversed(failures))
        return None, None
    reasons["servoj.phase_s"] = missing
    return _servoj_result(held), None


def _fit_commands(
    motion: TargetMotion, commands: Array, *, start: Tuning | None, held: Tuning | None
) -> CommandFit:
    """Fit the calls of servoj, and predict the recording.

    Args:
        motion: The controller's joint targets.
        commands: Commands (K, n), rad.
        start: A tuning to begin from; None: from the path of the commands.
        held: The tuning from held commands, with which the result must agree.

    Raises:
        NotIdentified: With the reason.
    """
    tuning = fit_to_path(motion, commands) if start is None else start
    index, off_path = along(motion, tuning, commands)
    rows = _servoj_rows(motion, off_path, tuning)
    servoj_motion = motion[rows]

    calls, refined = find_calls(servoj_motion, commands, tuning, index[rows])
    refined = refined.round_and_check()
    if held is not None:
        refined = _reconcile(held, refined)

    errors, restarts = predict(servoj_motion, calls, commands)
    return CommandFit(servoj_motion, calls, refined, errors, restarts)


def _servoj_rows(motion: TargetMotion, off_path: Array, tuning: Tuning) -> slice:
    """Return the rows in which servoj ran: from the first to the last stretch on the path.

    Args:
        motion: T rows.
        off_path: How far their setpoints are from the path of the commands (T,), rad.
        tuning: Tuning of servoj.

    Raises:
        NotIdentified: There is no such stretch.
    """
    max_distance = OFF_PATH_RATIO * float(np.median(tuning.residuals))
    moving = np.flatnonzero(motion.moving)
    is_off = off_path[moving] > max(max_distance, MIN_OFF_PATH_DISTANCE)
    if not is_off.any():
        return slice(0, len(motion))

    stretch = min(STRETCH_ROWS, len(moving))
    off_fraction = np.convolve(is_off, np.ones(stretch) / stretch, mode="valid")
    good = np.flatnonzero(off_fraction < MAX_OFF_PATH)
    if not len(good):
        raise NotIdentified("the motion never follows the commands for long")

    begins_on_path = good[0] == 0
    ends_on_path = good[-1] == len(off_fraction) - 1
    first = 0 if begins_on_path else moving[good[0]]
    end = len(motion) if ends_on_path else moving[good[-1] + stretch - 1] + 1
    return slice(int(first), int(end))


def _reconcile(held: Tuning, refined: Tuning) -> Tuning:
    """Return a tuning, as uncertain as it differs from the one of held commands, beyond their own.

    Args:
        held: The tuning from held commands.
        refined: The tuning from the calls.

    Raises:
        NotIdentified: They differ by more than their uncertainty.
    """
    difference = np.abs([held.gain - refined.gain, held.lookahead - refined.lookahead])
    uncertainty = AGREEING_DEVIATIONS * np.hypot(held.deviation, refined.deviation)
    allowed = uncertainty + AGREEING_FRACTION * np.array([held.gain, held.lookahead])
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
    """Return the results of a fit; see `identify_servoj`."""
    if len(fit.motion) < len(motion):
        first = fit.motion.times[0] - motion.times[0]
        last = fit.motion.times[-1] - motion.times[0]
        notes.append(f"servoj ran from {first:.2f} to {last:.2f} s; the rest is ignored")

    law = fit.calls.law
    turns = law.begin / motion.cycle
    phase = max(float(motion.cycle * (turns - np.floor(turns + 1e-6))), 0.0)
    servoj = _servoj_result(fit.tuning, phase=phase, call=float(law.duration))

    # A prediction needs the commands of all calls, also of those between rows.
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


def _servoj_result(
    tuning: Tuning, *, phase: float | None = None, call: float | None = None
) -> ServojResult:
    """Return the result of a tuning, and of the timing of calls, s, where it is known."""
    return {
        "gain": float(tuning.gain),
        "lookahead_s": float(tuning.lookahead),
        "phase_s": phase,
        "call_s": call,
        "uncertainty": {
            "gain": float(tuning.deviation[0]),
            "lookahead_s": float(tuning.deviation[1]),
        },
        "residual_rad": {
            "median": float(np.median(tuning.residuals)),
            "p99": float(np.percentile(tuning.residuals, 99.0)),
        },
    }
