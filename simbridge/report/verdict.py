"""What the page says first, in sentences: how well, who is to blame, how late, and what a reader must know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.delays import PosePart
from simbridge.evaluation.metrics.summary import part_delays, turns_otherwise
from simbridge.report.palette import PARTS, WHOLE, BudgetLine
from simbridge.report.timeline import stretches
from simbridge.text import (
    NO_BREAK,
    counted,
    degrees,
    listed,
    millimetres,
    milliseconds,
    plain,
    significant,
)

# What is smaller, in m and rad, is rounding: nobody's fault.
NOTHING = 1e-12
# Stretches of time less than this apart are told as one, s.
GAP = 0.1
# More stretches than this are only counted.
MAX_STRETCHES = 4


@dataclass(frozen=True)
class Notice:
    """Something that qualifies the numbers.

    Attributes:
        kind: "failure" when the run is not what was asked for, "caution" when its numbers need care.
        text: As sentences.
    """

    kind: Literal["failure", "caution"]
    text: str


def headline(summary: Mapping[str, Any], robot: str) -> str:
    """How well the path was tracked, in a sentence."""
    if WHOLE.key not in summary:
        return f"The {robot} tracked nothing of {summary['scenario']}: no sample was recorded."
    error = summary[WHOLE.key]
    position, rotation = error["position_m"], error["rotation_rad"]
    tracked = "tracked" if summary["outcome"] == "completed" else "had until then tracked"
    return (
        f"The {robot} {tracked} {summary['scenario']} with {millimetres(position['rms'])}{NO_BREAK}mm RMS "
        f"({millimetres(position['max'])}{NO_BREAK}mm at most) and {degrees(rotation['rms'])}{NO_BREAK}degrees RMS "
        f"({degrees(rotation['max'])}{NO_BREAK}degrees at most)."
    )


def blame(summary: Mapping[str, Any]) -> str:
    """Which line of the budget is the largest, in position and, if it is another one, in rotation."""

    def ranked(kind: str) -> list[tuple[float, BudgetLine]]:
        found = [(float(summary[line.key][kind]["rms"]), line) for line in PARTS]
        return sorted((pair for pair in found if pair[0] > NOTHING), key=lambda pair: -pair[0])

    position, rotation = ranked("position_m"), ranked("rotation_rad")
    sentences = []
    if position:
        (most, first), *others = position
        text = f"The largest part of the position error comes from {first.culprit}: {millimetres(most)}{NO_BREAK}mm RMS"
        if others:
            text += f"; next comes the {others[0][1].name} with {millimetres(others[0][0])}{NO_BREAK}mm"
        sentences.append(text + ".")
    if rotation and (not position or rotation[0][1] is not position[0][1]):
        most, first = rotation[0]
        culprit = first.culprit if not position or first.name == "sampling" else f"the {first.name}"
        sentences.append(
            f"The largest part of the rotation error comes from {culprit}: {degrees(most)}{NO_BREAK}degrees RMS."
        )
    return " ".join(sentences) or "There is no error beyond rounding, and so nobody to blame."


def lateness(summary: Mapping[str, Any]) -> str:
    """How late the position was and by whom, with the solver's predicted lag; and the rotation, if that is another."""
    sentences = []
    if summary["delay_of"] == "rotation":
        sentences.append(_late(summary, "rotation", "The arm turned in place and was", "the rotation"))
    else:
        sentences.append(_late(summary, "position", "The arm was", "the position"))
        if turns_otherwise(summary):
            sentences.append(_late(summary, "rotation", "The rotation was", "the rotation"))
    return " ".join(sentences)


def _late(summary: Mapping[str, Any], part: PosePart, who: str, what: str) -> str:
    """One part's delay, of whom it comes, and what would remain without it."""
    delays = part_delays(summary, part)
    causes = []
    if delays.solver is not None:
        blamed = "the solver and the limiter" if summary["limited_samples"] else "the solver"
        lag = summary["predicted_lag_s"] if part == "position" else None
        expected = "" if lag is None else f" ({milliseconds(lag)}{NO_BREAK}ms predicted for the solver)"
        causes.append(f"{milliseconds(delays.solver)}{NO_BREAK}ms by {blamed}{expected}")
    if delays.plant is not None:
        causes.append(f"{milliseconds(delays.plant)}{NO_BREAK}ms by the plant")
    by = " and ".join(causes)
    if delays.total is None:
        return f"A delay of {what} could not be measured{'; of its parts, ' if by else ''}{by}."
    if delays.total == 0.0:
        text = f"No shift in time makes the error of {what} smaller, and so its delay counts as 0"
        return f"{text}{': ' if by else ''}{by}."
    way = "behind" if delays.total > 0.0 else "ahead of"
    text = f"{who} {milliseconds(abs(delays.total))}{NO_BREAK}ms {way} the reference{': ' if by else ''}{by}."
    rest = summary["delay_compensated"]
    left = (
        f"{millimetres(rest['position_m']['rms'])}{NO_BREAK}mm"
        if part == "position"
        else f"{degrees(rest['rotation_rad']['rms'])}{NO_BREAK}degrees"
    )
    return f"{text} Without this delay {left} RMS would remain."


def judgement(summary: Mapping[str, Any]) -> tuple[bool, str] | None:
    """Whether the tolerance was kept, and the comparison; None when there is none to keep."""
    tolerance, passed = summary.get("tolerance"), summary.get("passed")
    if tolerance is None or passed is None:
        return None
    error = summary[WHOLE.key]
    parts = []
    for kind, unit, written, scale in (
        ("position_m", f"{NO_BREAK}mm", millimetres, 1e3),
        ("rotation_rad", "°", degrees, float(np.degrees(1.0))),
    ):
        rms, most = error[kind]["rms"], tolerance[kind]
        parts.append(
            f"{written(rms)}{unit} RMS {'is within' if rms <= most else 'exceeds'} "
            f"{plain(float(f'{most * scale:.6g}'))}{unit}"
        )
    return bool(passed), f"{parts[0]}, {parts[1]}"


def notices(evaluation: Evaluation, summary: Mapping[str, Any]) -> list[Notice]:
    """What happened on the way that qualifies the numbers."""
    found = []
    samples, planned = summary["samples"], evaluation.plan.samples
    if summary["outcome"] != "completed":
        text = f"The run did not complete: {summary['outcome']}"
        text += "" if text.endswith((".", "!", "?")) else "."
        found.append(Notice("failure", f"{text} {samples} of {planned} planned samples were recorded."))
    elif not evaluation.log.complete:
        found.append(Notice("failure", f"The log was not closed: {samples} of {planned} planned samples can be read."))
    if samples == 0:
        return found
    found += _limited(evaluation)
    found += _saturated(evaluation)
    plan = evaluation.plan
    if plan.duration > plan.trajectory.duration + 1.5 * plan.period:
        found.append(
            Notice(
                "caution",
                f"Time was stretched to keep the tool's speed: {plan.trajectory.duration:.2f}{NO_BREAK}s of trajectory "
                f"take {plan.duration:.2f}{NO_BREAK}s.",
            )
        )
    scaling = summary.get("speed_scaling")
    if scaling is not None and scaling["min"] < 0.999:
        found.append(
            Notice(
                "caution",
                f"The controller ran the motion slower than asked: speed scaling {scaling['mean']:.2f} on average, "
                f"{scaling['min']:.2f} at the least.",
            )
        )
    return found


def _limited(evaluation: Evaluation) -> list[Notice]:
    limited, stamps = evaluation.log.limited, evaluation.log.stamp
    if not limited.any():
        return []
    count = int(limited.sum())
    share = significant(100.0 * count / len(limited), 2, 1)
    return [
        Notice(
            "caution",
            f"The limiter changed {count} of {counted(len(limited), 'setpoint')} ({share}{NO_BREAK}%), "
            f"{_when(stretches(limited, stamps, GAP))}. There the arm was not sent what the solver found.",
        )
    ]


def _saturated(evaluation: Evaluation) -> list[Notice]:
    if evaluation.settings["backend"].get("effort_unit", "N m") == "A":
        return []
    with np.errstate(invalid="ignore"):
        at_limit = np.abs(evaluation.log.effort) >= evaluation.max_effort
    samples = np.asarray(at_limit.any(axis=1))
    if not samples.any():
        return []
    names = evaluation.log.joint_names
    each = [f"{names[i]} in {at_limit[:, i].sum()}" for i in np.flatnonzero(at_limit.any(axis=0))]
    return [
        Notice(
            "caution",
            f"A joint torque was at its limit in {int(samples.sum())} of {counted(len(samples), 'sample')} "
            f"({listed(each)}), {_when(stretches(samples, evaluation.log.stamp, GAP))}. "
            "There the arm could not do what it was told.",
        )
    ]


def _when(found: list[tuple[float, float]]) -> str:
    written = [
        f"at {begin:.2f}{NO_BREAK}s" if f"{begin:.2f}" == f"{end:.2f}" else f"from {begin:.2f} to {end:.2f}{NO_BREAK}s"
        for begin, end in found[:MAX_STRETCHES]
    ]
    more = len(found) - len(written)
    return listed([*written, f"{more} times more"] if more else written)
