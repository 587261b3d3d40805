"""The sentences at the top of a report: how well the run tracked, where the error comes from, what qualifies it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simbridge.backends import SIMULATION
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics import motion_figures as motion
from simbridge.evaluation.metrics.delays import PosePart
from simbridge.evaluation.metrics.samples import Statistics
from simbridge.evaluation.metrics.tracking import (
    NOTHING,
    ErrorPart,
    known_parts,
    part_delays,
    rotation_delay_differs,
)
from simbridge.evaluation.servo_law import servo_law_sentence
from simbridge.evaluation.summary import Pauses, Summary
from simbridge.ik.settings import SOLVERS, FunctionParameters
from simbridge.planning.plan import is_slowed_down, slow_down_reason
from simbridge.report.charts import intervals
from simbridge.sessions.figures import Inputs, Latency
from simbridge.text import (
    NO_BREAK,
    counted,
    degrees,
    fixed,
    join_words,
    millimetres,
    milliseconds,
    plain,
    significant,
)

# Smaller errors are not worth a number in a sentence, degrees and mm: no arm repeats its motions that
# well.
SMALL_ANGLE = 0.01
SMALL_LENGTH = 0.01

# Parts of the plant's error of which one has a share below minus this cancel each other.
CANCELLED = 0.05

# Shorter lags, in s, are no evidence.
LEAST_LAG = 1e-4
# Intervals less than this apart are given as one, s.
GAP = 0.1
# More intervals than this are only counted.
MAX_INTERVALS = 4


ACCURACY_SETTINGS = ("kp", "gain", "damping", "iterations")
"""Settings of solvers on which their error depends."""


class Notice(NamedTuple):
    """A text that qualifies the numbers.

    Attributes:
        kind: A failure is not what was asked for; a caution concerns the numbers.
        text: One or more sentences.
    """

    kind: Literal["failure", "caution"]
    text: str


def subject_of(summary: Summary) -> str:
    """Return what was to be tracked: a scenario by its name, or a session's inputs."""
    return summary["scenario"] if summary["inputs"] is None else "live inputs"


def headline(summary: Summary) -> str:
    """Return what was predicted or measured, and for which plant, in a sentence to be quoted."""
    if "tracking_error" not in summary:
        arm = summary["robot_title"]
        return f"The {arm} tracked nothing of {subject_of(summary)}: no sample was recorded."

    uncertainty = summary["uncertainty"]
    deviation = None if uncertainty is None else uncertainty["position_m"]
    return sentence(
        source_of(summary),
        summary["tracking_error"],
        subject_of(summary),
        summary["outcome"],
        deviation,
    )


def sentence(
    source: str,
    error: Mapping[str, Any],
    subject: str,
    outcome: str,
    deviation: float | None = None,
) -> str:
    """Return a sentence on an error.

    Args:
        source: Who predicted or measured it, and for which plant (see `source_of`).
        error: The tracking error of a summary.
        subject: What was tracked.
        outcome: How the run ended.
        deviation: One standard deviation of the RMS position error, m; None if not known.
    """
    position = error["position_m"]
    mean = with_deviation(position["rms"], deviation)
    size = error_words([position], mean, f" (max {_mm(position['max'])})")
    text = f"{source}: {size} on {subject}"
    if outcome != "completed":
        text += " until the run ended early"

    # An external recording may have no rotations.
    rotation = error["rotation_rad"]
    if rotation is not None and rotation["max"] > NOTHING:
        if math.degrees(rotation["max"]) >= SMALL_ANGLE:
            text += f"; rotation {_deg(rotation['rms'])} RMS (max {_deg(rotation['max'])})"
        else:
            text += f"; rotation below {SMALL_ANGLE:g}°"
    return f"{text}."


def is_small(error: Statistics) -> bool:
    """Return whether no distance of an error, m, is worth a number in a sentence."""
    return 0.0 < 1e3 * error["max"] < SMALL_LENGTH


def error_words(errors: Sequence[Statistics], size: str, largest: str = "") -> str:
    """Return the tracking error of runs: its size, or a bound if the error of each is small.

    Args:
        errors: The position errors of the runs, m.
        size: The RMS with its unit.
        largest: What is added about the largest error.
    """
    if all(map(is_small, errors)):
        return f"tracking error below {SMALL_LENGTH:g}{NO_BREAK}mm"
    return f"{size} RMS tracking error{largest}"


def source_of(facts: Mapping[str, Any], *, externally: bool = False) -> str:
    """Return whether an error is predicted or measured, and for which plant.

    Args:
        facts: The summary of a run or of repeats.
        externally: Whether the error comes from an external measurement.
    """
    title = facts["robot_title"]
    article = "an" if title[:1] in tuple("AEIOaeio") else "a"
    arm = f"{article} {title} with {_servo(facts)}"
    if externally:
        return f"Measured externally for {arm}"
    if facts["backend"] == SIMULATION:
        return f"Predicted for {arm}"
    if facts.get("emulated"):
        return f"Measured by the emulator for {arm}"
    if facts["backend"] == "ursim":
        return f"Measured by URSim for {arm}"
    return f"Measured by the controller of {arm}"


def backend_of(facts: Mapping[str, Any]) -> str:
    """Return the backend of a run, or "emulator" where that answered."""
    return "emulator" if facts["emulated"] else str(facts["backend"])


def _servo(facts: Mapping[str, Any]) -> str:
    """Return what followed the commands: by measurement, where the configured law does not hold."""
    check = facts.get("servo_law")
    text = str(facts["servo"])
    if check is not None and check["holds"] is False and check["gain"] is not None:
        gain, lookahead = significant(check["gain"]), significant(check["lookahead_s"])
        text = f"servoj found at gain {gain}, lookahead {lookahead}{NO_BREAK}s"
    text = re.sub(r"(\d) s$", rf"\1{NO_BREAK}s", text)
    return f"{text} and feedforward" if facts["feedforward"] else text


def with_deviation(value: float, deviation: float | None) -> str:
    """Return a length in mm, with its standard deviation where that changes a digit of it.

    For example "4.49 ± 0.12 mm".

    Args:
        value: m.
        deviation: m; None if not known.
    """
    shown = millimetres(value)
    last_digit = 10.0 ** -len(shown.partition(".")[2])
    if deviation is None or 2e3 * deviation < last_digit:
        return f"{shown}{NO_BREAK}mm"

    # Two digits of the deviation.
    decimals = min(max(1 - math.floor(math.log10(1e3 * deviation)), 0), 4)
    mean = fixed(1e3 * value, decimals)
    return f"{mean}{NO_BREAK}±{NO_BREAK}{fixed(1e3 * deviation, decimals)}{NO_BREAK}mm"


def _mm(metres: float) -> str:
    return f"{millimetres(metres)}{NO_BREAK}mm"


def _deg(radians: float) -> str:
    return f"{degrees(radians)}°"


def _ms(seconds: float) -> str:
    return f"{milliseconds(seconds)}{NO_BREAK}ms"


def advice(summary: Summary) -> str:
    """Return which part dominates the error, what the run shows of it, and what affects it."""
    position = _dominant(summary, "position")
    rotation = _dominant(summary, "rotation")
    if position is None and rotation is None:
        return "There is no error beyond rounding."

    sentences = []
    if position is not None:
        sentences.append(_advice_on(summary, "position", position))
    if rotation is not None:
        # A small rotation, or one with the same cause, is not worth a sentence.
        worst = math.degrees(summary["tracking_error"]["rotation_rad"]["max"])
        if position is None or (rotation[0] != position[0] and worst >= SMALL_ANGLE):
            sentences.append(_advice_on(summary, "rotation", rotation))
    return " ".join(sentences)


def _dominant(summary: Summary, kind: PosePart) -> tuple[ErrorPart, float] | None:
    """Return the part with the largest share of the error, and its share; None without an error.

    Parts of the plant's part count instead of it, unless they cancel each other.
    """
    shares = summary["error_shares"][kind]
    if shares is None:
        return None

    parts = known_parts(summary)
    inner = [part for part in parts if part.of]
    cancel = any(shares[part.attribute] < -CANCELLED for part in inner)
    if inner and not cancel:
        wholes = {part.of for part in inner}
        candidates = [part for part in parts if part.name not in wholes]
    else:
        candidates = [part for part in parts if not part.of]
    part = max(candidates, key=lambda candidate: shares[candidate.attribute])
    return part, shares[part.attribute]


def _advice_on(summary: Summary, kind: PosePart, dominant: tuple[ErrorPart, float]) -> str:
    """Return the sentence on the part that dominates the error of position or rotation."""
    part, ratio = dominant
    names = {"sampling": "sampling", "rest": "the rest of the plant"}
    name = names.get(part.name, f"the {part.name}")
    text = f"{min(round(100.0 * ratio), 100)}{NO_BREAK}% of the {kind} error comes from {name}"
    evidence = _evidence(summary, part, kind)
    if evidence:
        text += f" ({evidence})"
    return f"{text}; {_options(summary, part)}."


def _evidence(summary: Summary, part: ErrorPart, kind: PosePart) -> str:
    """Return what else the run shows of a part of the error; "" for nothing."""
    if part.name == "limiter":
        return f"{summary['limited_samples']} of {counted(summary['samples'], 'setpoint')} changed"
    saturated = summary["saturated_samples"]
    if part.name in ("plant", "rest") and saturated:
        return f"a torque at its limit in {saturated} of {counted(summary['samples'], 'sample')}"
    delay = getattr(part_delays(summary, kind), part.attribute)
    return f"a lag of {_ms(delay)}" if delay is not None and delay >= LEAST_LAG else ""


def _options(summary: Summary, part: ErrorPart) -> str:
    """Return the options that affect a part of the error, as a clause."""
    if part.name == "sampling":
        return "--hold and --sample-rate affect it"
    if part.name == "solver":
        return _solver_options(summary["solver"])
    if part.name == "limiter":
        if summary["inputs"]:
            return "the limits of the session affect it"
        return "--speed-scale below 1 reduces it"
    return _plant_options(summary, part)


def _solver_options(solver: str) -> str:
    """Return the options that affect a solver's error, as a clause."""
    parameters = SOLVERS.get(solver, FunctionParameters)
    names = {parameter.name for parameter in fields(parameters)}
    flags = [f"--solver.{name}" for name in ACCURACY_SETTINGS if name in names]
    if not flags:
        return "another --solver affects it"
    return f"{join_words([*flags, 'another --solver'])} affect it"


def _plant_options(summary: Summary, part: ErrorPart) -> str:
    """Return the options that affect the error of the plant or of a part of it, as a clause."""
    is_servo_law = part.name == "servo law"
    if not is_servo_law and summary["saturated_samples"]:
        return "--speed-scale below 1 reduces it"

    check = summary["servo_law"]
    if check is not None and check["holds"] is False and check["gain"] is not None:
        return (
            "the controller's tuning is not the configured one: --servo-gain and "
            "--servo-lookahead affect it"
        )

    if is_servo_law:
        if summary["inputs"] is not None:
            return "--lead, --servo-gain and --servo-lookahead affect it"
        if summary["feedforward"]:
            return "--speed-scale below 1 reduces it"
        return "--feedforward on compensates for it"

    if summary["backend"] == SIMULATION:
        return "no option affects it"
    return "no option affects it; `simbridge identify RUN` shows what the run says of the arm"


def delay_sentences(summary: Summary) -> str:
    """The delay of the position and its causes; that of the rotation too, where it differs."""
    if summary["delay_of"] == "rotation":
        return _delay(summary, "rotation", "The arm turned in place and")
    position = _delay(summary, "position", "The arm")
    return (
        f"{position} {_delay(summary, 'rotation', 'The rotation')}"
        if rotation_delay_differs(summary)
        else position
    )


def _delay(summary: Summary, part: PosePart, subject: str) -> str:
    """The delay of position or rotation, its causes, and the error that remains without it."""
    delays, causes = part_delays(summary, part), []
    if delays.sampling:
        causes.append(f"{_ms(delays.sampling)} from sampling")
    if delays.solver is not None:
        lag = summary["predicted_lag_s"] if part == "position" else None
        predicted = "" if lag is None else f" ({_ms(lag)} predicted)"
        causes.append(f"{_ms(delays.solver)} from the solver{predicted}")
    if delays.limiter:
        causes.append(f"{_ms(delays.limiter)} from the limiter")
    if delays.servo_law is not None and delays.rest is not None:
        causes.append(f"{_ms(delays.servo_law)} from the servo law")
        causes.append(f"{_ms(delays.rest)} from the rest of the plant")
    elif delays.plant is not None:
        causes.append(f"{_ms(delays.plant)} from the plant")
    why = f": {join_words(causes)}" if causes else ""
    if delays.total is None:
        return (
            f"The delay of the {part} could not be measured{why.replace(': ', '; of its parts: ')}."
        )
    if delays.total == 0.0:
        return f"No time shift reduces the {part} error, so its delay counts as 0{why}."
    relation = "lagged" if delays.total > 0.0 else "led"
    rest = summary["delay_compensated"]
    assert rest is not None, "there is a delay"
    left = (
        _mm(rest["position_m"]["rms"]) if part == "position" else _deg(rest["rotation_rad"]["rms"])
    )
    text = f"{subject} {relation} the reference by {_ms(abs(delays.total))}{why}."
    return f"{text} With this delay removed, {left} RMS would remain."


def plant_sentences(summary: Summary) -> str:
    """What followed the commands, and whether a controller's servo law is the configured one."""
    text, check = summary["plant_model"], summary["servo_law"]
    sentences = [
        f"{text[:1].upper()}{text[1:]}.",
        "" if check is None else servo_law_sentence(check),
    ]
    if summary["uncertainty"] is not None:
        amount = _mm(summary["uncertainty"]["position_m"])
        sentences.append(
            f"Its gain and lookahead are known to a standard deviation that is {amount} of the RMS error."
        )
    return " ".join(filter(None, sentences))


def contour_sentence(summary: Summary) -> str:
    """The contour error, and the lag along the path."""
    error, lag = summary["contour_error"]["position_m"], summary["along_path_lag"]
    length, time = lag["length_m"]["mean"], lag["time_s"]
    kind = "Lag" if length >= 0.0 else "Lead"
    text = f"Contour error: {_mm(error['rms'])} RMS, max {_mm(error['max'])}. "
    text += f"{kind} along the path: {_mm(abs(length))} on average"
    if time is not None and time["mean"] is not None and math.isfinite(time["mean"]):
        text += f", {_ms(abs(time['mean']))} where the path moves"
    return f"{text}."


def tolerance_check(summary: Summary) -> tuple[bool, str] | None:
    """Whether the tolerance was kept, and the comparison; None without a tolerance."""
    tolerance, passed = summary.get("tolerance"), summary.get("passed")
    if tolerance is None or passed is None:
        return None
    error, parts = summary["tracking_error"], []
    for rms, limit, unit, text, scale in (
        (error["position_m"]["rms"], tolerance["position_m"], f"{NO_BREAK}mm", millimetres, 1e3),
        (error["rotation_rad"]["rms"], tolerance["rotation_rad"], "°", degrees, math.degrees(1.0)),
    ):
        relation = "is within" if rms <= limit else "exceeds"
        parts.append(
            f"{text(rms)}{unit} RMS {relation} {plain(float(f'{limit * scale:.6g}'))}{unit}"
        )
    return bool(passed), ", ".join(parts)


def input_sentences(inputs: Inputs) -> str:
    """How many inputs a session was given, what became of them, and how old they were."""
    late = f" ({inputs['late']} late)" if inputs["late"] else ""
    text = f"{counted(inputs['received'], 'input')}: {inputs['accepted']} accepted{late}, "
    text += f"{inputs['rejected']} rejected, {inputs['superseded']} superseded"
    text += f", {inputs['lost_in_log']} lost in the log." if inputs["lost_in_log"] else "."
    if (age := inputs["age_s"]) is not None:
        text += f" Age of the input that was tracked: {_ms(age['median'])} (median), {_ms(age['max'])} at most."
    return text


def latency_sentence(latency: Latency) -> str:
    """How long it took from an input to its command, and from there to the arm; "" where nothing is known."""
    parts, arm = [], latency["command_to_arm_s"]
    if (inside := latency["input_to_command_s"]) is not None:
        parts.append(f"input to command {_ms(inside['median'])} (p99 {_ms(inside['p99'])})")
    known = {"servo law": arm["servo_law"], "correlation": arm["correlation"]}
    by = [f"{_ms(time)} by {name}" for name, time in known.items() if time is not None]
    parts += [f"command to arm {', '.join(by)}"] if by else []
    if (whole := latency["sum_s"]) is not None:
        parts.append(f"sum {_ms(whole['median'])} (p99 {_ms(whole['p99'])})")
    return f"Latency: {'; '.join(parts)}." if parts else ""


def notices(evaluation: Evaluation, summary: Summary) -> list[Notice]:
    """What qualifies the numbers."""
    found = []
    samples, planned = summary["samples"], evaluation.plan.samples
    # A session has no plan.
    amount = (
        f"{samples} of {planned} planned samples"
        if summary["inputs"] is None
        else counted(samples, "sample")
    )
    recorded = f"{amount} {'was' if amount == '1 sample' else 'were'}"
    if summary["outcome"] != "completed":
        text = f"The run did not complete: {summary['outcome']}"
        text += "" if text.endswith((".", "!", "?")) else "."
        found.append(Notice("failure", f"{text} {recorded} recorded."))
    elif not evaluation.log.complete:
        found.append(Notice("failure", f"The log was not closed: {recorded} recorded."))
    if samples == 0:
        return found
    # In a session the limiter is what leads from one input to the next.
    limited = _limited(evaluation) if summary["inputs"] is None else []
    cautions = [*limited, *_saturated(evaluation)]
    plan = evaluation.plan
    if is_slowed_down(plan.duration, plan.trajectory.duration, plan.period):
        cautions.append(
            f"The motion was slowed down {slow_down_reason(summary['feedforward'])}: "
            f"{plan.trajectory.duration:.2f}{NO_BREAK}s of trajectory took {plan.duration:.2f}{NO_BREAK}s."
        )
    scaling = summary.get("speed_scaling")
    if scaling is not None and scaling["min"] < 0.999:
        how = "the motion slower than planned" if summary["inputs"] is None else "more slowly"
        cautions.append(
            f"The controller ran {how}: speed scaling {scaling['mean']:.2f} on average, "
            f"{scaling['min']:.2f} at minimum."
        )
    if summary["pauses"]["count"]:
        cautions.append(pause_sentence(summary["pauses"]))
    return found + [Notice("caution", text) for text in cautions]


def pause_sentence(pauses: Pauses) -> str:
    """How often, and for how long, the program was paused."""
    total = f"{pauses['duration_s']:.1f}{NO_BREAK}s"
    return f"The controller's program was paused {counted(pauses['count'], 'time')}, for {total} in all."


def _limited(evaluation: Evaluation) -> list[str]:
    limited = evaluation.log.limited
    if not limited.any():
        return []
    count = int(limited.sum())
    share = significant(100.0 * count / len(limited), 2, 1)
    return [
        f"The limiter changed {count} of {counted(len(limited), 'setpoint')} ({share}{NO_BREAK}%), "
        f"{_when(limited, evaluation)}. There the arm was not sent the solver's solution."
    ]


def _saturated(evaluation: Evaluation) -> list[str]:
    if evaluation.settings.backend.effort_unit == "A":
        return []
    at_limit = motion.at_limit(evaluation.column("effort"), evaluation.max_effort)
    samples = np.asarray(at_limit.any(axis=1))
    if not samples.any():
        return []
    names = evaluation.log.joint_names
    each = [f"{names[i]} in {at_limit[:, i].sum()}" for i in np.flatnonzero(at_limit.any(axis=0))]
    return [
        f"A joint torque was at its limit in {int(samples.sum())} of {counted(len(samples), 'sample')} "
        f"({join_words(each)}), {_when(samples, evaluation)}. There the arm could not follow its setpoints."
    ]


def _when(marked: NDArray[np.bool_], evaluation: Evaluation) -> str:
    found = intervals(marked, evaluation.log.stamp, GAP)
    texts = [
        f"at {begin:.2f}{NO_BREAK}s"
        if f"{begin:.2f}" == f"{end:.2f}"
        else f"from {begin:.2f} to {end:.2f}{NO_BREAK}s"
        for begin, end in found[:MAX_INTERVALS]
    ]
    more = len(found) - len(texts)
    return join_words([*texts, f"{counted(more, 'more time')}"] if more else texts)
