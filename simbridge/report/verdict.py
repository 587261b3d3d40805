"""The sentences at the top of a report.

They say how well the run tracked, where the error comes from, and what qualifies the numbers.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simbridge.backends import is_simulated
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics import motion_figures as motion
from simbridge.evaluation.metrics.delays import PosePart
from simbridge.evaluation.metrics.samples import Statistics
from simbridge.evaluation.metrics.tracking import (
    NOTHING,
    TRACKING_ERROR,
    ErrorPart,
    known_parts,
    part_delays,
    rotation_delay_differs,
)
from simbridge.evaluation.servo_law import has_other_tuning, servo_law_sentence
from simbridge.evaluation.summary import Pauses, Summary
from simbridge.ik.callable_solver import RECORDED_JOINTS
from simbridge.ik.settings import ALL_SOLVERS, FunctionParameters
from simbridge.planning.plan import is_slowed_down, slow_down_reason
from simbridge.report.charts import intervals
from simbridge.robot.pose import Array
from simbridge.servo.extrapolation import describe_extrapolation
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

# Smaller errors, degrees and mm, are not worth a number in a sentence: no arm repeats its motions
# that well.
SMALL_ANGLE = 0.01
SMALL_LENGTH = 0.01

# Parts of the plant's error of which one has a share below minus this cancel each other.
CANCELLED = 0.05

# The shortest lag that counts as evidence, s.
LEAST_LAG = 1e-4
# Intervals less than this apart are given as one, s.
GAP = 0.1
# More intervals than this are only counted.
MAX_INTERVALS = 4
# A speed scaling from here to 1 counts as none.
UNSCALED_SPEED = 0.999

NOTHING_TO_IMPROVE = (
    f"Less than {SMALL_LENGTH:g}{NO_BREAK}mm and {SMALL_ANGLE:g}° RMS: no arm repeats its motions "
    "that well, so there is nothing to improve."
)

PARTS_CANCEL = "A part is larger than the error it belongs to where parts cancel each other."

ACCURACY_SETTINGS = {
    "kp": "higher",
    "gain": "higher",
    "damping": "lower",
    "iterations": "higher",
}
"""Settings of solvers on which their error depends, and the direction in which it falls."""


class Notice(NamedTuple):
    """A text that qualifies the numbers.

    Attributes:
        kind: A failure is not what was asked for; a caution concerns the numbers.
        text: One or more sentences.
    """

    kind: Literal["failure", "caution"]
    text: str


def subject_of(summary: Summary) -> str:
    """Return the name of what was tracked: a scenario, or a session's inputs."""
    return summary["scenario"] if summary["inputs"] is None else "live inputs"


def headline(summary: Summary) -> str:
    """Return a sentence to be quoted: the prediction or measurement, and its plant."""
    if "tracking_error" not in summary:
        arm = summary["robot_title"]
        return f"The {arm} did not track {subject_of(summary)}: no sample was recorded."

    uncertainty = summary["uncertainty"]
    deviation = None if uncertainty is None else uncertainty["position_m"]
    return sentence(
        source_of(summary),
        summary["tracking_error"],
        subject_of(summary),
        outcome=summary["outcome"],
        deviation=deviation,
    )


def sentence(
    source: str,
    error: Mapping[str, Any],
    subject: str,
    *,
    outcome: str,
    deviation: float | None = None,
) -> str:
    """Return a sentence on an error.

    Args:
        source: The origin of the error and its plant (see `source_of`).
        error: The tracking error of a summary.
        subject: The name of what was tracked (see `subject_of`).
        outcome: The outcome of the run; "completed" is not mentioned.
        deviation: One standard deviation of the RMS position error, m; None if not known.
    """
    position = error["position_m"]
    rms_text = with_deviation(position["rms"], deviation)
    size = describe_errors([position], rms_text, f" (max {_mm(position['max'])})")
    text = f"{source}: {size} on {subject}"
    if outcome != "completed":
        text += " until the run ended early"

    # An external recording may have no rotations. An error that is rounding alone is not mentioned,
    # and one below what an arm repeats is only bounded.
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


def describe_errors(errors: Sequence[Statistics], size: str, largest: str = "") -> str:
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
    if is_simulated(facts["backend"]):
        remark = " (extrapolated)" if facts.get("extrapolated_servo_gain") else ""
        return f"Predicted for {arm}{remark}"
    if facts.get("emulated"):
        return f"Measured by the emulator for {arm}"
    if facts["backend"] == "ursim":
        return f"Measured by URSim for {arm}"
    return f"Measured by the controller of {arm}"


def backend_of(facts: Mapping[str, Any]) -> str:
    """Return the backend of a run, or "emulator" where that answered."""
    return "emulator" if facts["emulated"] else str(facts["backend"])


def _servo(facts: Mapping[str, Any]) -> str:
    """Return the servo that followed the commands, as measured where its settings do not hold."""
    check = facts.get("servo_law")
    text = str(facts["servo"])
    if check is not None and has_other_tuning(check):
        gain = significant(check["gain"])
        lookahead = significant(check["lookahead_s"])
        text = f"servoj found at gain {gain}, lookahead {lookahead}{NO_BREAK}s"
    text = re.sub(r"(\d) s$", rf"\1{NO_BREAK}s", text)
    return f"{text} and feedforward" if facts["feedforward"] else text


def with_deviation(value: float, deviation: float | None) -> str:
    """Return a length in mm, with its standard deviation where that changes a digit of it.

    For example "4.49 ± 0.12 mm".

    Args:
        value: The length, m.
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
    """Return a length, m, as text in mm."""
    return f"{millimetres(metres)}{NO_BREAK}mm"


def _deg(radians: float) -> str:
    """Return an angle, rad, as text in degrees."""
    return f"{degrees(radians)}°"


def _ms(seconds: float) -> str:
    """Return a time, s, as text in ms."""
    return f"{milliseconds(seconds)}{NO_BREAK}ms"


def advice(summary: Summary) -> str:
    """Return sentences about the dominant part of the error: what shows it, and what affects it.

    An error that is too small for any arm to show needs no remedy.
    """
    position = _dominant(summary, "position")
    rotation = _dominant(summary, "rotation")
    if position is None and rotation is None:
        return "There is no error beyond rounding."

    error = summary["tracking_error"]
    if 1e3 * error["position_m"]["rms"] < SMALL_LENGTH:
        position = None
    if math.degrees(error["rotation_rad"]["rms"]) < SMALL_ANGLE:
        rotation = None
    if position is None and rotation is None:
        return NOTHING_TO_IMPROVE

    sentences = []
    if position is not None:
        sentences.append(_advice_on(summary, "position", position))
    # A rotation error of the same cause is not worth a second sentence.
    if rotation is not None and (position is None or rotation[0] != position[0]):
        sentences.append(_advice_on(summary, "rotation", rotation))
    return " ".join(sentences)


def parts_cancel(summary: Summary, *, inner: bool = True) -> bool:
    """Return whether a part of the error is larger than the error that it belongs to.

    Parts that are too small for a number in a sentence do not count.

    Args:
        summary: The run's.
        inner: Whether the parts of the plant's error count, too.
    """
    smallest = {"position_m": 1e-3 * SMALL_LENGTH, "rotation_rad": math.radians(SMALL_ANGLE)}
    errors: Mapping[str, Any] = summary
    for part in known_parts(summary):
        if part.whole and not inner:
            continue
        whole = errors[f"{part.whole}_error" if part.whole else TRACKING_ERROR.key]
        for kind, least in smallest.items():
            size = errors[part.key][kind]["rms"]
            if size > max((1.0 + CANCELLED) * whole[kind]["rms"], least):
                return True
    return False


def _dominant(summary: Summary, kind: PosePart) -> tuple[ErrorPart, float] | None:
    """Return the part with the largest share of the error, and its share; None without an error.

    If the plant's part is known in parts itself, these count in its place, unless they cancel
    each other.
    """
    shares = summary["error_shares"][kind]
    if shares is None:
        return None

    # `part.whole` is the name of the part that a part belongs to; "" for a part of the whole error.
    parts = known_parts(summary)
    inner = [part for part in parts if part.whole]
    are_cancelling = any(shares[part.attribute] < -CANCELLED for part in inner)
    if inner and not are_cancelling:
        wholes = {part.whole for part in inner}
        candidates = [part for part in parts if part.name not in wholes]
    else:
        candidates = [part for part in parts if not part.whole]
    part = max(candidates, key=lambda candidate: shares[candidate.attribute])
    return part, shares[part.attribute]


def _advice_on(summary: Summary, kind: PosePart, dominant: tuple[ErrorPart, float]) -> str:
    """Return the sentence on the part that dominates the error of position or rotation."""
    part, ratio = dominant
    names = {"sampling": "sampling", "rest": "the rest of the plant"}
    name = names.get(part.name, f"the {part.name}")
    percentage = round(100.0 * ratio)
    if percentage > 100:
        text = f"The {kind} error comes from {name}; other parts cancel some of it"
    else:
        text = f"{percentage}{NO_BREAK}% of the {kind} error comes from {name}"
    evidence = _evidence(summary, part, kind)
    if evidence:
        text += f" ({evidence})"
    return f"{text}; {_options(summary, part)}."


def _evidence(summary: Summary, part: ErrorPart, kind: PosePart) -> str:
    """Return the evidence of the run for a part of the error, as a noun phrase; "" for none."""
    if part.name == "limiter":
        return f"{summary['limited_samples']} of {counted(summary['samples'], 'setpoint')} changed"
    saturated = summary["saturated_samples"]
    if part.name in ("plant", "rest") and saturated:
        return f"torque at its limit in {saturated} of {counted(summary['samples'], 'sample')}"
    delay = getattr(part_delays(summary, kind), part.attribute)
    return f"a lag of {_ms(delay)}" if delay is not None and delay >= LEAST_LAG else ""


def _options(summary: Summary, part: ErrorPart) -> str:
    """Return the options that affect a part of the error, as a clause."""
    if part.name == "sampling":
        return "try --hold linear or a higher --sample-rate"
    if part.name == "solver":
        return _solver_options(summary["solver"])
    if part.name == "limiter":
        if summary["inputs"]:
            return "relax the session's limits or send slower inputs"
        return "--speed-scale below 1 reduces it"
    return _plant_options(summary, part)


def _solver_options(solver: str) -> str:
    """Return the options that affect a solver's error, as a clause."""
    parameters = ALL_SOLVERS.get(solver, FunctionParameters)
    names = {parameter.name for parameter in fields(parameters)}
    flags: dict[str, list[str]] = defaultdict(list)
    for name, direction in ACCURACY_SETTINGS.items():
        if name in names:
            flags[direction].append(f"--solver.{name}")

    changes = [f"a {direction} {' or '.join(group)}" for direction, group in flags.items()]
    return (
        f"try {', '.join([*changes, 'or another --solver'])}"
        if changes
        else ("try another --solver")
    )


def _plant_options(summary: Summary, part: ErrorPart) -> str:
    """Return the options that affect the error of the plant or of a part of it, as a clause."""
    is_servo_law = part.name == "servo law"
    if not is_servo_law and summary["saturated_samples"]:
        return "--speed-scale below 1 reduces it"

    check = summary["servo_law"]
    if has_other_tuning(check):
        return (
            "the controller's tuning differs from the configured one: check --servo-gain and "
            "--servo-lookahead"
        )

    # The tuning is the configured one, but the joint targets do not follow the recorded commands.
    if check is not None and check["holds"] is False and check["gain"] is not None:
        return (
            "commands probably came too late or were lost: check the computer with `simbridge "
            "bench` and the network with `simbridge doctor`"
        )

    if is_servo_law:
        is_session = summary["inputs"] is not None
        if is_session:
            return "try --lead on, a higher --servo-gain or a shorter --servo-lookahead"
        if summary["feedforward"]:
            return "--speed-scale below 1 reduces it"
        return "--feedforward on compensates for it"

    if is_simulated(summary["backend"]):
        return "no option reduces it"
    return "no option reduces it; `simbridge identify RUN` shows what the run reveals about the arm"


def delay_sentences(summary: Summary) -> str:
    """Return the delay of the position and its causes.

    The rotation's follows where it differs.
    """
    if summary["delay_of"] == "rotation":
        return _delay_sentence(summary, "rotation", "The arm turned in place and")

    position = _delay_sentence(summary, "position", "The arm")
    if not rotation_delay_differs(summary):
        return position
    return f"{position} {_delay_sentence(summary, 'rotation', 'The rotation')}"


def _delay_sentence(summary: Summary, part: PosePart, subject: str) -> str:
    """Return a delay, its causes, and the error that remains without it.

    Args:
        summary: Summary of the run.
        part: The part of the pose whose delay it is.
        subject: What lagged or led, as the beginning of a sentence.
    """
    total = part_delays(summary, part).total
    causes = _delay_causes(summary, part)
    if total is None:
        known = join_words([cause.text for cause in causes]) if causes else ""
        parts = f"; of its parts: {known}" if known else ""
        return f"The delay of the {part} could not be measured{parts}."

    reasons = _explain_delay(total, causes)
    if total == 0.0:
        return f"No time shift reduces the {part} error, so its delay counts as 0{reasons}."

    compensated = summary["delay_compensated"]
    assert compensated is not None, "there is a delay"
    if part == "position":
        remainder = _mm(compensated["position_m"]["rms"])
    else:
        remainder = _deg(compensated["rotation_rad"]["rms"])

    relation = "lagged" if total > 0.0 else "led"
    text = f"{subject} {relation} the reference by {_ms(abs(total))}{reasons}."
    return f"{text} With this delay removed, {remainder} RMS would remain."


class DelayCause(NamedTuple):
    """A part of a delay.

    Attributes:
        delay: The part, s; negative where it is a lead.
        text: The part with its source, as in "9.00 ms from the solver".
    """

    delay: float
    text: str


def _explain_delay(total: float, causes: Sequence[DelayCause]) -> str:
    """Return the parts of a delay as a clause; "" if they say nothing.

    Parts that are larger than their sum cancel each other, which the clause says.

    Args:
        total: The whole delay, s.
        causes: Parts of the delay.
    """
    largest = max((abs(cause.delay) for cause in causes), default=0.0)
    if largest < LEAST_LAG:
        return ""

    texts = join_words([cause.text for cause in causes])
    if largest <= abs(total) + LEAST_LAG:
        return f": {texts}"
    return f" (its parts partly cancel each other: {texts})"


def _delay_causes(summary: Summary, part: PosePart) -> list[DelayCause]:
    """Return the shares of a delay that come from each part of the error."""
    delays = part_delays(summary, part)
    causes = []

    def add(delay: float, source: str) -> None:
        causes.append(DelayCause(delay, f"{_ms(delay)} from {source}"))

    if delays.sampling:
        add(delays.sampling, "sampling")

    if delays.solver is not None and summary["solver"] != RECORDED_JOINTS:
        # The prediction holds for the position alone.
        lag = summary["predicted_lag_s"] if part == "position" else None
        prediction = "" if lag is None else f" ({_ms(lag)} predicted)"
        add(delays.solver, f"the solver{prediction}")

    if delays.limiter:
        add(delays.limiter, "the limiter")

    if delays.servo_law is not None and delays.rest is not None:
        add(delays.servo_law, "the servo law")
        add(delays.rest, "the rest of the plant")
    elif delays.plant is not None:
        add(delays.plant, "the plant")
    return causes


def plant_sentences(summary: Summary) -> str:
    """Return sentences about the plant that followed the commands, and the check of its law."""
    model = summary["plant_model"]
    sentences = [f"{model[:1].upper()}{model[1:]}."]
    gain = summary["extrapolated_servo_gain"]
    if gain is not None:
        sentences.append(describe_extrapolation([gain]))

    check = summary["servo_law"]
    if check is not None:
        sentences.append(servo_law_sentence(check))

    if summary["uncertainty"] is not None:
        deviation = _mm(summary["uncertainty"]["position_m"])
        sentences.append(
            f"Its gain and lookahead are known to a standard deviation that is {deviation} of the "
            "RMS error."
        )
    return " ".join(filter(None, sentences))


def contour_sentence(summary: Summary) -> str:
    """Return the contour error, and the lag along the path."""
    error = summary["contour_error"]["position_m"]
    length = summary["along_path_lag"]["length_m"]["mean"]
    time = summary["along_path_lag"]["time_s"]

    kind = "Lag" if length >= 0.0 else "Lead"
    text = f"Contour error: {_mm(error['rms'])} RMS, max {_mm(error['max'])}. "
    text += f"{kind} along the path: {_mm(abs(length))} on average"
    if time is not None and time["mean"] is not None and math.isfinite(time["mean"]):
        text += f" ({_ms(abs(time['mean']))} while moving)"
    return f"{text}."


def tolerance_check(summary: Summary) -> tuple[bool, str] | None:
    """Return whether the tolerance was kept, and the comparison; None without a tolerance."""
    tolerance = summary.get("tolerance")
    passed = summary.get("passed")
    if tolerance is None or passed is None:
        return None

    position = summary["tracking_error"]["position_m"]["rms"]
    position_limit = tolerance["position_m"]
    shown_limit = f"{_number_as_entered(1e3 * position_limit)}{NO_BREAK}mm"
    position_text = f"{_mm(position)} RMS {_relation(position, position_limit)} {shown_limit}"

    rotation = summary["tracking_error"]["rotation_rad"]["rms"]
    rotation_limit = tolerance["rotation_rad"]
    shown_limit = f"{_number_as_entered(rotation_limit * math.degrees(1.0))}°"
    rotation_text = f"{_deg(rotation)} RMS {_relation(rotation, rotation_limit)} {shown_limit}"
    return bool(passed), f"{position_text}, {rotation_text}"


def _relation(error: float, limit: float) -> str:
    """Return the verb that compares an error with its limit."""
    return "is within" if error <= limit else "exceeds"


def _number_as_entered(value: float) -> str:
    """Return a number that a user gave, without the rounding of its conversion."""
    return plain(float(f"{value:.6g}"))


def input_sentences(inputs: Inputs) -> str:
    """Return a sentence about a session's inputs: their number, their fates and their ages."""
    late = f" ({inputs['late']} late)" if inputs["late"] else ""
    lost = f", {inputs['lost_in_log']} lost in the log" if inputs["lost_in_log"] else ""
    text = f"{counted(inputs['received'], 'input')}: {inputs['accepted']} accepted{late}"
    text += f", {inputs['rejected']} rejected, {inputs['superseded']} superseded{lost}."

    age = inputs["age_s"]
    if age is not None:
        median = _ms(age["median"])
        text += f" Age of the input that was tracked: {median} (median), {_ms(age['max'])} at most."
    return text


def latency_sentence(latency: Latency) -> str:
    """Return the latency from an input to its command and to the arm; "" if nothing is known."""
    parts = []
    to_command = latency["input_to_command_s"]
    if to_command is not None:
        parts.append(f"input to command {_median_and_p99(to_command)}")

    to_arm = latency["command_to_arm_s"]
    estimates = []
    if to_arm["servo_law"] is not None:
        estimates.append(f"{_ms(to_arm['servo_law'])} by servo law")
    if to_arm["correlation"] is not None:
        estimates.append(f"{_ms(to_arm['correlation'])} by correlation")
    if estimates:
        parts.append(f"command to arm {', '.join(estimates)}")

    total = latency["sum_s"]
    if total is not None:
        parts.append(f"sum {_median_and_p99(total)}")
    return f"Latency: {'; '.join(parts)}." if parts else ""


def _median_and_p99(times: Mapping[str, Any]) -> str:
    """Return the median of times, s, and their 99th percentile, as text."""
    return f"{_ms(times['median'])} (p99 {_ms(times['p99'])})"


def notices(evaluation: Evaluation, summary: Summary) -> list[Notice]:
    """Return remarks that qualify the numbers: failures first, then cautions."""
    failures = []
    recorded = _recorded_samples(evaluation, summary)
    if summary["outcome"] != "completed":
        text = f"The run did not complete: {summary['outcome']}"
        if not text.endswith((".", "!", "?")):
            text += "."
        failures.append(Notice("failure", f"{text} {recorded} recorded."))
    elif not evaluation.log.complete:
        failures.append(Notice("failure", f"The log was not closed: {recorded} recorded."))

    if summary["samples"] == 0:
        return failures
    return failures + [Notice("caution", text) for text in _cautions(evaluation, summary)]


def _recorded_samples(evaluation: Evaluation, summary: Summary) -> str:
    """Return the number of recorded samples, as the beginning of a sentence with its verb."""
    samples = summary["samples"]
    if summary["inputs"] is None:
        amount = f"{samples} of {evaluation.plan.samples} planned samples"
    else:
        # A session has no plan.
        amount = counted(samples, "sample")
    verb = "was" if amount == "1 sample" else "were"
    return f"{amount} {verb}"


def _cautions(evaluation: Evaluation, summary: Summary) -> list[str]:
    """Return sentences about limits to the meaning of the numbers."""
    is_session = summary["inputs"] is not None
    cautions = [*summary["plant_notes"], *summary["solver_notes"]]

    # In a session it is the limiter that leads from one input to the next.
    if not is_session and evaluation.log.limited.any():
        cautions.append(_limiter_caution(evaluation))
    # A current cannot be compared with the limit, which is a torque.
    if evaluation.settings.backend.effort_unit != "A":
        cautions += _saturation_cautions(evaluation)

    plan = evaluation.plan
    if is_slowed_down(plan.duration, plan.trajectory.duration, plan.period):
        reason = slow_down_reason(summary["feedforward"])
        cautions.append(
            f"The motion was slowed down {reason}: {plan.trajectory.duration:.2f}{NO_BREAK}s of "
            f"trajectory took {plan.duration:.2f}{NO_BREAK}s."
        )

    scaling = summary.get("speed_scaling")
    if scaling is not None and scaling["min"] < UNSCALED_SPEED:
        manner = "more slowly" if is_session else "the motion slower than planned"
        cautions.append(
            f"The controller ran {manner}: speed scaling {scaling['mean']:.2f} on average, "
            f"{scaling['min']:.2f} at minimum."
        )

    if summary["pauses"]["count"]:
        cautions.append(pause_sentence(summary["pauses"]))
    return cautions


def pause_sentence(pauses: Pauses) -> str:
    """Return a sentence about the number and the length of the program's pauses."""
    times = counted(pauses["count"], "time")
    total = f"{pauses['duration_s']:.1f}{NO_BREAK}s"
    return f"The controller's program was paused {times}, for a total of {total}."


def _limiter_caution(evaluation: Evaluation) -> str:
    """Return a sentence about the setpoints that the limiter changed, and their time."""
    limited = evaluation.log.limited
    count = int(limited.sum())
    percentage = significant(100.0 * count / len(limited), 2, 1)
    return (
        f"The limiter changed {count} of {counted(len(limited), 'setpoint')} "
        f"({percentage}{NO_BREAK}%), {_times(limited, evaluation.log.stamp)}. In these, the arm "
        "was not sent the solver's solution."
    )


def _saturation_cautions(evaluation: Evaluation) -> list[str]:
    """Return at most one sentence: which joint torques were at their limits, and when."""
    at_limit = motion.at_limit(evaluation.column("effort"), evaluation.max_effort)
    saturated = np.asarray(at_limit.any(axis=1))
    if not saturated.any():
        return []

    joint_texts = []
    for joint in np.flatnonzero(at_limit.any(axis=0)):
        joint_texts.append(f"{evaluation.log.joint_names[joint]} in {at_limit[:, joint].sum()}")
    samples = counted(len(saturated), "sample")
    return [
        f"A joint torque was at its limit in {int(saturated.sum())} of {samples} "
        f"({join_words(joint_texts)}), {_times(saturated, evaluation.log.stamp)}. In these, the "
        "arm could not follow its setpoints."
    ]


def _times(marked: NDArray[np.bool_], stamps: Array) -> str:
    """Return the first intervals in which samples (T,) are marked, from their instants, as text."""
    periods = intervals(marked, stamps, GAP)
    texts = []
    for begin, end in periods[:MAX_INTERVALS]:
        if f"{begin:.2f}" == f"{end:.2f}":
            texts.append(f"at {begin:.2f}{NO_BREAK}s")
        else:
            texts.append(f"from {begin:.2f} to {end:.2f}{NO_BREAK}s")

    more = len(periods) - len(texts)
    if more:
        texts.append(counted(more, "more time"))
    return join_words(texts)
