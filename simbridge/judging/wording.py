"""Puts a judgement into words: the headline, which can be quoted, and the lines and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from simbridge.judging.arm import Arm
from simbridge.judging.judgement import JudgedMotion, LogJudgement
from simbridge.judging.kinds import MotionKind
from simbridge.judging.predictions import Prediction
from simbridge.judging.servoj_evidence import ServojEvidence
from simbridge.judging.tool_tracking import ToolTracking
from simbridge.judging.tracking_errors import DifferenceSize, SignalDifference, TrackingErrors
from simbridge.servo.extrapolation import describe_extrapolation
from simbridge.text import (
    NO_BREAK,
    counted,
    fixed,
    join_words,
    millimetres,
    milliradians,
    milliseconds,
    plain,
    significant,
)

# Headings of the table of motions.
COLUMNS = (
    "Motion",
    "from, s",
    "lasts, s",
    "kind",
    "lag, ms",
    "RMS, mrad",
    "tool RMS, mm",
    "largest part",
    "peak speed, rad/s",
)
# Columns of the table of motions that hold text.
TEXT_COLUMNS = ("kind", "largest part")
# Columns of the table of motions that a narrow terminal leaves out, the least important first.
DISPENSABLE_COLUMNS = (
    "peak speed, rad/s",
    "lasts, s",
    "from, s",
    "largest part",
    "tool RMS, mm",
    "kind",
)
# Headings of the table of the parts of the errors.
PART_COLUMNS = ("Motion", "from", "to", "source", "lag, ms", "RMS, mrad", "max, mrad", "tool, mm")
# Columns of that table that hold text.
PART_TEXT_COLUMNS = ("from", "to", "source")
# Columns of that table that a narrow terminal leaves out, the least important first.
DISPENSABLE_PART_COLUMNS = ("max, mrad", "tool, mm", "source", "lag, ms")
# Headings of the table of events.
EVENT_COLUMNS = ("from, s", "event", "details")
# Columns of that table that hold text.
EVENT_TEXT_COLUMNS = ("event", "details")
# Largest number of motions that are shown by default.
MAX_SHOWN_MOTIONS = 5
# Smallest uncertainty of a lag that is stated, s.
LEAST_UNCERTAINTY_S = 1e-6
# Shortest time at less than full speed that is remarked on, s: every stop has a moment of it.
LEAST_SLOWDOWN_S = 0.05
# Shortest time from when a command is taken to its own later time that is remarked on, s.
LEAST_EARLY_S = 2e-4
# Smallest relative uncertainty of a gain or lookahead that is stated beside it.
LEAST_SHOWN_DEVIATION = 1e-3
# Smallest relative uncertainty of a tuning that is stated as a number; a smaller one is "better
# than" this.
LEAST_RELATIVE_DEVIATION = 1e-5
# Largest part of an error that counts as rounding, rad.
ROUNDING = 1e-7
# Smallest delay of the tool that is stated, s.
LEAST_DELAY_S = 1e-5

# The name of each signal in a sentence that says that the joints trail it.
SIGNAL_NAMES = {
    "reference": "the reference",
    "command sent": "the commands",
    "command taken": "the commands that the controller took",
    "setpoint": "servoj's setpoints",
    "target": "their targets",
}


def headline(judgement: LogJudgement) -> str:
    """Return the sentence that says what the log shows, or that there is nothing to judge."""
    arm = arm_phrase(judgement.arm)
    if not judgement.motions:
        return (
            f"{arm} was at rest throughout ({fixed(judgement.duration_s, 1)} s): this log shows "
            "nothing to judge."
        )
    if all(judged.kind.name == "freedrive" for judged in judgement.motions):
        return (
            f"{arm} was moved by hand throughout (freedrive: the targets follow the joints): this "
            "log shows no tracking to judge."
        )

    subject = f"{arm} made {motions_phrase(judgement.motions)}"
    stops = _stops_phrase(judgement.motions)
    if judgement.whole is None:
        return f"{subject}; {_no_error_clause(judgement)}{stops}."

    clauses = [subject]
    speedj_delay = _speedj_delay_phrase(judgement.motions)
    if speedj_delay:
        clauses.append(speedj_delay)
    if judgement.tool is not None:
        clauses.append(tool_phrase(judgement.tool))
    clauses.append(error_phrase(judgement.whole, with_tool=judgement.tool is None))
    detailed = _most_detailed_clause(judgement.motions, len(judgement.whole.parts))
    if detailed:
        clauses.append(detailed)
    return f"{'; '.join(clauses)}{stops}."


def _most_detailed_clause(motions: Sequence[JudgedMotion], part_count: int) -> str:
    """Return a clause on a motion whose error has more parts than the whole error; "" for none.

    Only parts that all motions have are in the whole error. Of several such motions it is the one
    with the largest error.

    Args:
        motions: The motions.
        part_count: Number of parts of the whole error.
    """
    detailed = [
        (judged, judged.errors)
        for judged in motions
        if judged.errors is not None and len(judged.errors.parts) > part_count
    ]
    if not detailed:
        return ""
    judged, errors = max(detailed, key=lambda item: item[0].error_rad)
    return f"in motion {judged.motion.number} {error_phrase(errors)}"


def tool_phrase(tool: ToolTracking) -> str:
    """Return the tracking error at the tool as a clause, in the words of a run's report."""
    delay = ""
    if tool.delay_s is not None and tool.delay_s >= LEAST_DELAY_S:
        delay = f", {milliseconds(tool.delay_s)}{NO_BREAK}ms late"
    return (
        f"the tool was {millimetres(tool.rms_m)}{NO_BREAK}mm RMS off the reference (max "
        f"{millimetres(tool.max_m)}{NO_BREAK}mm{delay})"
    )


def arm_phrase(arm: Arm) -> str:
    """Return the arm as the subject of a sentence: "A simulated UR5e", "A UR3e", "An arm"."""
    name = arm.title or ("arm" if not arm.series else f"{arm.series} arm")
    if arm.is_simulated:
        return f"A simulated {name}"
    article = "An" if name[0] in "aeio" else "A"
    return f"{article} {name}"


def motions_phrase(motions: Sequence[JudgedMotion]) -> str:
    """Return how many motions there are of each kind: "3 motions (2 movej, 1 unknown)"."""
    total = counted(len(motions), "motion")
    phrases = {kind_phrase(judged.kind) for judged in motions}
    if len(phrases) == 1:
        return f"{total} ({phrases.pop()})"
    counts = Counter(judged.kind.name for judged in motions)
    parts = [f"{count} {name}" for name, count in counts.most_common()]
    return f"{total} ({', '.join(parts)})"


def kind_phrase(kind: MotionKind) -> str:
    """Return a kind with its parameters: "servoj, gain 300, lookahead 0.1 s"."""
    if kind.servoj is not None:
        servoj = kind.servoj
        gain = _with_uncertainty(servoj.gain, servoj.gain_uncertainty)
        lookahead = _with_uncertainty(servoj.lookahead_s, servoj.lookahead_uncertainty_s)
        source = " by the measured joints" if servoj.is_measured else ""
        return f"{kind.name}, gain {gain}, lookahead {lookahead}{NO_BREAK}s{source}"
    if kind.movej is not None:
        speed = significant(kind.movej.speed_rad_s)
        acceleration = significant(kind.movej.acceleration_rad_s2)
        return f"movej, {speed}{NO_BREAK}rad/s, {acceleration}{NO_BREAK}rad/s²"
    if kind.speedj is not None and kind.speedj.acceleration_rad_s2 is not None:
        acceleration = significant(kind.speedj.acceleration_rad_s2)
        return f"speedj, {acceleration}{NO_BREAK}rad/s²"
    if kind.name == "unknown":
        return "of an unknown kind"
    return kind.name


def _with_uncertainty(value: float, uncertainty: float) -> str:
    """Return an identified gain or lookahead, with its uncertainty if that is large enough."""
    if uncertainty < LEAST_SHOWN_DEVIATION * abs(value):
        return f"{value:.4g}"
    # Round both to the first digit of the uncertainty.
    decimals = -int(np.floor(np.log10(uncertainty)))
    return f"{round(value, decimals):.4g} ± {round(uncertainty, decimals):.4g}"


def error_phrase(errors: TrackingErrors, *, with_tool: bool = True) -> str:
    """Return the tracking error as a clause, with its parts.

    Args:
        errors: The error.
        with_tool: Whether the size of the error at the tool is stated.
    """
    whole = errors.whole
    leading = SIGNAL_NAMES[whole.leading]
    trailing = "the joints" if whole.trailing == "actual" else "the joint targets"
    if whole.size.max_rad == 0.0:
        return f"{trailing} were exactly at {leading}"

    # "the joints trailed the commands by 30 ms, 2 mrad RMS".
    lag = lag_text(whole)
    size = size_text(whole.size, with_tool=with_tool)
    if lag:
        clause = f"{trailing} trailed {leading} by {lag}, {size}"
    else:
        clause = f"{trailing} missed {leading} by {size}"

    # The parts of the error, the largest first.
    if len(errors.parts) > 1:
        parts = [
            f"{part.source} {milliradians(part.size.rms_rad)}{NO_BREAK}mrad"
            for part in sorted(errors.parts, key=lambda part: -part.size.rms_rad)
            if part.size.rms_rad > ROUNDING
        ]
        clause += f": {join_words(parts)}"
    return clause


def size_text(size: DifferenceSize, *, with_tool: bool = True) -> str:
    """Return the size of an error: "0.205 mrad RMS (0.0958 mm at the tool)"."""
    text = f"{milliradians(size.rms_rad)}{NO_BREAK}mrad RMS"
    if with_tool and size.tool_rms_m is not None:
        text += f" ({millimetres(size.tool_rms_m)}{NO_BREAK}mm at the tool)"
    return text


def lag_text(part: SignalDifference) -> str:
    """Return a lag with its uncertainty: "0.489 ± 0.005 ms"; "" if there is none."""
    if part.lag is None:
        return ""
    return f"{lag_number(part)}{NO_BREAK}ms"


def lag_number(part: SignalDifference) -> str:
    """Return a lag in ms with its uncertainty, without the unit; a dash if there is none."""
    if part.lag is None:
        return "–"
    if part.lag.uncertainty_s < LEAST_UNCERTAINTY_S:
        return fixed(1e3 * part.lag.lag_s, 2)

    # The uncertainty has one digit, or two if the first is a 1; the lag has as many decimals.
    uncertainty_ms = 1e3 * part.lag.uncertainty_s
    exponent = int(np.floor(np.log10(uncertainty_ms)))
    mantissa = uncertainty_ms / 10.0**exponent
    digits = 2 if mantissa < 2.0 else 1
    decimals = max(digits - 1 - exponent, 0)
    return f"{fixed(1e3 * part.lag.lag_s, decimals)} ± {fixed(uncertainty_ms, decimals)}"


def _no_error_clause(judgement: LogJudgement) -> str:
    """Return a clause on a log without a tracking error: it has only one signal of the joints."""
    speedj_delay = _speedj_delay_phrase(judgement.motions)
    if speedj_delay:
        return speedj_delay
    if judgement.signals == ("target",):
        return (
            "only the joint targets were recorded, neither commands nor measured joints, so no "
            "tracking error is known"
        )
    return (
        "only the measured joints were recorded, neither commands nor targets, so no tracking "
        "error is known"
    )


def _speedj_delay_phrase(motions: Sequence[JudgedMotion]) -> str:
    """Return a clause on how long after commands to speedj the targets follow; "" without any.

    The delay is that of the first such motion, the late commands are those of all of them.
    """
    speedj = [item.kind.speedj for item in motions if item.kind.speedj is not None]
    if not speedj:
        return ""
    first = speedj[0]
    delay = plain(round(1e3 * first.delay_s, 3))
    rows = counted(first.delay_rows, "row")
    clause = f"the joint targets follow the commands {delay}{NO_BREAK}ms ({rows}) later"
    late_count = sum(len(item.late_s) for item in speedj)
    if late_count:
        clause += f", and {counted(late_count, 'command')} came late"
    return clause


def _stops_phrase(motions: Sequence[JudgedMotion]) -> str:
    """Return the first stop of a motion as a clause that ends a sentence; "" without any.

    The end or pause of a program is not stated: it is nothing unusual.
    """
    for judged in motions:
        if judged.stop is not None and "program" not in judged.stop.cause:
            at_s = fixed(judged.stop.at_s, 2)
            return (
                f"; a {judged.stop.cause} ended motion {judged.motion.number} at {at_s}{NO_BREAK}s"
            )
    return ""


def motion_row(judged: JudgedMotion) -> tuple[str, ...]:
    """Return the cells of a motion in the table of motions; see COLUMNS."""
    motion = judged.motion
    errors = judged.errors
    return (
        str(motion.number),
        fixed(motion.begin_s, 2),
        fixed(motion.duration_s, 2),
        "unknown" if judged.kind.name == "unknown" else kind_phrase(judged.kind),
        *error_cells(errors),
        significant(judged.peaks.speed.value),
    )


def error_cells(errors: TrackingErrors | None) -> tuple[str, str, str, str]:
    """Return the cells of an error: lag, RMS in the joints, RMS at the tool, and largest part."""
    if errors is None:
        return ("–", "–", "–", "–")
    size = errors.whole.size
    return (
        lag_number(errors.whole),
        milliradians(size.rms_rad),
        millimetres(size.tool_rms_m),
        source_name(errors.largest),
    )


def source_name(part: SignalDifference) -> str:
    """Return the source of a part in a table: "not separable" if several sources make it."""
    return part.source if " and " not in part.source else "not separable"


def shown_motions(judgement: LogJudgement, *, verbose: bool = False) -> list[JudgedMotion]:
    """Return the motions that the table shows: all of them, or those with the largest errors."""
    motions = list(judgement.motions)
    if verbose or len(motions) <= MAX_SHOWN_MOTIONS:
        return motions
    largest = sorted(motions, key=lambda judged: judged.error_rad, reverse=True)[:MAX_SHOWN_MOTIONS]
    return sorted(largest, key=lambda judged: judged.motion.number)


def shown_selection(motions: Sequence[JudgedMotion]) -> str:
    """Return a phrase for the motions that `shown_motions` has chosen."""
    if all(judged.errors is None for judged in motions):
        return f"the first {len(motions)} motions"
    return f"the {len(motions)} motions with the largest errors"


def prediction_sentence(judged: JudgedMotion) -> str:
    """Return the sentence on what the servo law predicts for a motion, for each variant of it."""
    is_assumed = judged.predictions[0].variant == "driver's tuning"
    clauses = [
        _prediction_clause(prediction, is_assumed=is_assumed) for prediction in judged.predictions
    ]
    sentence = f"Predicted for motion {judged.motion.number}: {'; '.join(clauses)}."
    extrapolation = describe_extrapolation(prediction.gain for prediction in judged.predictions)
    return f"{sentence} {extrapolation}".strip()


def _prediction_clause(prediction: Prediction, *, is_assumed: bool) -> str:
    """Return a prediction as a clause.

    Args:
        prediction: The prediction.
        is_assumed: Whether the tuning is an assumption, since the log shows neither the tuning nor
            what the network adds to the error.
    """
    size = f"{milliradians(prediction.rms_rad)}{NO_BREAK}mrad"
    if prediction.tool_rms_m is not None:
        size += f" ({millimetres(prediction.tool_rms_m)}{NO_BREAK}mm at the tool)"

    gain = f"{prediction.gain:.4g}"
    lookahead = f"{prediction.lookahead_s:.3g}{NO_BREAK}s"
    if prediction.variant == "other tuning":
        return f"a gain of {gain} and a lookahead of {lookahead} would leave {size}"
    if prediction.variant == "feedforward":
        limits = "" if prediction.keeps_limits else ", but would exceed its limits"
        network = ", besides what the network adds" if is_assumed else ""
        return f"feedforward would leave {size}{limits}{network}"

    condition = "as it was sent"
    if is_assumed:
        condition = (
            f"if servoj has the tuning of UR's ROS driver (gain {gain}, lookahead {lookahead})"
        )
    off = ""
    if prediction.off_rms_rad is not None:
        off = f", {milliradians(prediction.off_rms_rad)}{NO_BREAK}mrad off the measured motion"
    return f"{condition}, {size}{off}"


def remarks(judgement: LogJudgement) -> list[str]:
    """Return sentences on what else the log shows, the most important first."""
    sentences = [
        _gap_remark(judgement),
        _held_remark(judgement),
        _early_remark(judgement),
        _jump_remark(judgement),
        _slowdown_remark(judgement),
    ]
    predicted = [judged for judged in judgement.motions if judged.predictions]
    if predicted:
        sentences.append(prediction_sentence(max(predicted, key=lambda judged: judged.error_rad)))
    if judgement.missing:
        names = join_words([item.quantity for item in judgement.missing])
        sentences.append(f"Not recorded: {names}.")
    return [sentence for sentence in sentences if sentence]


def _gap_remark(judgement: LogJudgement) -> str:
    """Return how many rows were lost, or came late; "" for none."""
    if not judgement.gaps:
        return ""
    lost = sum(gap.lost for gap in judgement.gaps)
    longest = max(judgement.gaps, key=lambda gap: gap.duration_s)
    duration = f"{fixed(1e3 * longest.duration_s, 0)}{NO_BREAK}ms"
    begin = f"{fixed(longest.at_s, 2)}{NO_BREAK}s"

    # Either rows are missing in every gap of a log, or in none (see `find_gaps`).
    if lost:
        holes = counted(len(judgement.gaps), "hole")
        return (
            f"{holes} in the log ({counted(lost, 'row')} lost); the longest lasts {duration}, "
            f"from {begin}."
        )
    # Each gap is then the wait for one row that came late.
    rows = counted(len(judgement.gaps), "row")
    return f"{rows} came late; the longest wait was {duration}, from {begin}."


def _held_remark(judgement: LogJudgement) -> str:
    """Return how many calls of servoj had no new command; "" for none."""
    servoj = [judged.kind.servoj for judged in judgement.motions if judged.kind.servoj is not None]
    held = sum(evidence.held_calls or 0 for evidence in servoj)
    if not held:
        return ""
    return f"{counted(held, 'servoj call')} had no new command, and held the one before."


def _early_remark(judgement: LogJudgement) -> str:
    """Return that commands were taken before their times, which cannot be right; "" otherwise."""
    servoj = [judged.kind.servoj for judged in judgement.motions if judged.kind.servoj is not None]
    delays = [
        evidence.delay_s
        for evidence in servoj
        if evidence.delay_s is not None and not evidence.is_measured
    ]
    smallest = min(delays, default=0.0)
    if smallest > -LEAST_EARLY_S:
        return ""
    return (
        f"Commands were taken {milliseconds(-smallest)}{NO_BREAK}ms before their times, so these "
        "are not when they were sent: the network's part and its delay are too small by that."
    )


def _jump_remark(judgement: LogJudgement) -> str:
    """Return how often the commands jump, and how far; "" if they do not."""
    if not judgement.jumps:
        return ""
    jump = max(judgement.jumps, key=lambda item: item.size_rad)
    where = f"command {jump.index}"
    if jump.at_s is not None:
        where = f"at {fixed(jump.at_s, 2)}{NO_BREAK}s"
    return (
        f"The commands jump {counted(len(judgement.jumps), 'time')}, at most by "
        f"{milliradians(jump.size_rad)}{NO_BREAK}mrad ({jump.joint}, {where})."
    )


def _slowdown_remark(judgement: LogJudgement) -> str:
    """Return how long the controller moved at less than full speed; "" if it did not."""
    slowdowns = [item for judged in judgement.motions for item in judged.slowdowns]
    duration = sum(item.end_s - item.begin_s for item in slowdowns)
    if duration <= LEAST_SLOWDOWN_S:
        return ""
    slowest = min(slowdowns, key=lambda item: item.least)
    return (
        f"The controller moved more slowly than planned for {fixed(duration, 2)}{NO_BREAK}s; its "
        f"speed scaling fell to {fixed(100.0 * slowest.least, 0)}{NO_BREAK}% at "
        f"{fixed(slowest.begin_s, 2)}{NO_BREAK}s."
    )


def evidence(judged: JudgedMotion) -> str:
    """Return the sentence that says what shows the kind of a motion."""
    kind = judged.kind
    number = judged.motion.number
    if kind.movej is not None:
        residual = significant(1e6 * kind.movej.residual_rad)
        return (
            f"Motion {number} is a movej: a straight line in joint space with a trapezoid of "
            f"speed, to within {residual}{NO_BREAK}µrad."
        )
    if kind.servoj is not None:
        return (
            f"Motion {number} obeys servoj's law: {_servoj_clause(kind.servoj)} (gain and "
            f"lookahead are known to {_tuning_precision(kind.servoj)})."
        )
    if kind.speedj is not None:
        explained = fixed(100.0 * kind.speedj.explained, 1)
        return (
            f"Motion {number} is a speedj: commands {counted(kind.speedj.delay_rows, 'row')} "
            f"before explain {explained}{NO_BREAK}% of its rows."
        )
    if kind.freedrive is not None:
        trail = fixed(1e3 * kind.freedrive.trail_s, 2)
        return f"Motion {number} was made by hand: targets trail the joints by {trail}{NO_BREAK}ms."
    return f"The kind of motion {number} is unknown: {kind.reason}."


def _servoj_clause(servoj: ServojEvidence) -> str:
    """Return a clause on what shows that a motion obeys servoj's law."""
    if servoj.is_measured and servoj.delay_s is not None:
        delay = f"{milliseconds(servoj.delay_s)}{NO_BREAK}ms"
        return f"with a delay of {delay} it explains the measured joints"
    if servoj.has_commands:
        return "the recorded commands explain its targets"
    if servoj.single_cycles:
        cycles = counted(servoj.single_cycles, "single cycle")
        return f"its setpoint stood still in {cycles}"
    return "a command was held while it moved"


def _tuning_precision(servoj: ServojEvidence) -> str:
    """Return how precisely a tuning is known, in percent: "0.2 %", "better than 0.001 %"."""
    relative = max(
        servoj.gain_uncertainty / servoj.gain, servoj.lookahead_uncertainty_s / servoj.lookahead_s
    )
    if relative < LEAST_RELATIVE_DEVIATION:
        return f"better than {plain(100.0 * LEAST_RELATIVE_DEVIATION)}{NO_BREAK}%"
    return f"{significant(100.0 * relative, 2)}{NO_BREAK}%"


def variant_name(prediction: Prediction) -> str:
    """Return what is predicted: "as sent: gain 300, lookahead 0.1 s"."""
    tuning = f"gain {prediction.gain:.4g}, lookahead {prediction.lookahead_s:.3g}{NO_BREAK}s"
    return f"{prediction.variant}: {tuning}"


def prediction_remark(prediction: Prediction) -> str:
    """Return sentences on how far a prediction can be trusted; "" without any."""
    sentences = []
    if prediction.off_rms_rad is not None:
        off = milliradians(prediction.off_rms_rad)
        sentences.append(f"It is {off}{NO_BREAK}mrad RMS off the measured motion.")
    if prediction.is_extrapolated:
        sentences.append(describe_extrapolation([prediction.gain]))
    if not prediction.keeps_limits:
        sentences.append("It would exceed the limits of acceleration or command lead.")
    return " ".join(sentences)


def motion_parts(judgement: LogJudgement) -> list[tuple[JudgedMotion, SignalDifference]]:
    """Return the parts of the error of each motion, in order."""
    return [
        (judged, part)
        for judged in judgement.motions
        if judged.errors is not None
        for part in judged.errors.parts
    ]


def part_row(judged: JudgedMotion, part: SignalDifference) -> tuple[str, ...]:
    """Return the cells of a part of a motion's error; see PART_COLUMNS."""
    return (
        str(judged.motion.number),
        part.leading,
        part.trailing,
        part.source,
        lag_number(part),
        milliradians(part.size.rms_rad),
        milliradians(part.size.max_rad),
        millimetres(part.size.tool_rms_m),
    )


def limit_row(judged: JudgedMotion) -> tuple[str, ...]:
    """Return the cells of a motion in the table of peaks."""
    cells = [str(judged.motion.number)]
    for peak in (judged.peaks.speed, judged.peaks.acceleration):
        percentage = "–"
        if peak.share is not None:
            percentage = f"{significant(100.0 * peak.share)}{NO_BREAK}%"
        cells += [significant(peak.value), percentage]
    return tuple(cells)


def arm_facts(arm: Arm) -> list[tuple[str, str]]:
    """Return what is known of an arm and its controller, as names and values."""
    cycle = "unknown" if arm.cycle_s is None else f"{plain(1e3 * arm.cycle_s)}{NO_BREAK}ms"
    facts = [
        ("Arm", arm.title or "unknown"),
        ("Controller", arm.series or "unknown"),
        ("Cycle", cycle),
    ]
    if arm.is_simulated:
        facts.append(("Simulated", "yes: the joints are exactly at their targets"))
    if arm.evidence:
        facts.append(("Evidence", "; ".join(arm.evidence)))
    return facts


def events(judgement: LogJudgement) -> list[tuple[str, str, str]]:
    """Return the rows of the table of events, in order of time; see EVENT_COLUMNS."""
    entries = _log_events(judgement)
    for judged in judgement.motions:
        entries += _motion_events(judged)
    return [(fixed(at_s, 2), name, details) for at_s, name, details in sorted(entries)]


def _log_events(judgement: LogJudgement) -> list[tuple[float, str, str]]:
    """Return the holes of a log and the jumps of its commands: time, s, name and details."""
    entries = []
    for gap in judgement.gaps:
        name = "hole" if gap.lost else "late row"
        details = f"{fixed(1e3 * gap.duration_s, 0)}{NO_BREAK}ms without a row"
        if gap.lost:
            details += f", {counted(gap.lost, 'row')} lost"
        entries.append((gap.at_s, name, details))
    for jump in judgement.jumps:
        if jump.at_s is not None:
            details = f"{jump.joint} by {milliradians(jump.size_rad)}{NO_BREAK}mrad"
            entries.append((jump.at_s, "jump of the commands", details))
    return entries


def _motion_events(judged: JudgedMotion) -> list[tuple[float, str, str]]:
    """Return the events of a motion: time, s, name and details of each."""
    entries = []
    for slowdown in judged.slowdowns:
        percent = f"{fixed(100.0 * slowdown.least, 0)}{NO_BREAK}%"
        details = f"down to {percent}, until {fixed(slowdown.end_s, 2)}{NO_BREAK}s"
        entries.append((slowdown.begin_s, "slower than planned", details))
    if judged.stop is not None:
        details = f"ended motion {judged.motion.number}: {judged.stop.evidence}"
        entries.append((judged.stop.at_s, judged.stop.cause, details))
    if judged.kind.speedj is not None:
        details = "the command before it was repeated"
        entries += [(at_s, "late command", details) for at_s in judged.kind.speedj.late_s]
    return entries
