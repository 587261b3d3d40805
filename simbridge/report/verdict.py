"""What the page says first, in sentences: how well, who is to blame, how late, and what a reader must know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from simbridge.evaluation import Evaluation
from simbridge.metrics.summary import turns_otherwise
from simbridge.readable import (
    NO_BREAK,
    counted,
    degrees,
    listed,
    millimetres,
    milliseconds,
    plain,
    significant,
)
from simbridge.report.palette import PARTS, WHOLE, BudgetLine
from simbridge.report.timeline import stretches

# What is smaller, in m and rad, is rounding: nobody's fault.
NOTHING = 1e-12
# Stretches of time less than this apart are told as one, s.
GAP = 0.1
# More stretches than this are only counted.
MOST_STRETCHES = 4


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
    """The three delays, the rotation's own where it is another one, and the solver's predicted lag."""
    total, solver, plant = (summary[key] for key in ("delay_s", "solver_delay_s", "plant_delay_s"))
    predicted = summary["predicted_lag_s"]
    expected = "" if predicted is None else f" ({milliseconds(predicted)}{NO_BREAK}ms predicted for the solver)"
    parts = []
    if solver is not None:
        who = "the solver and the limiter" if summary["limited_samples"] else "the solver"
        parts.append(f"{milliseconds(solver)}{NO_BREAK}ms by {who}{expected}")
    if plant is not None:
        parts.append(f"{milliseconds(plant)}{NO_BREAK}ms by the plant")
    if total is None:
        text = "A delay of the whole could not be measured"
        return f"{text}; of its parts, {' and '.join(parts)}." if parts else f"{text}."
    if total == 0.0:
        text = "No shift in time makes the error of the position smaller, and so its delay counts as 0"
    else:
        way = "behind" if total > 0.0 else "ahead of"
        text = f"The arm was {milliseconds(abs(total))}{NO_BREAK}ms {way} the reference"
    if parts:
        text += f": {' and '.join(parts)}"
    rest, turned = summary["delay_compensated"], summary["rotation_delay_s"]
    if rest is not None and total != 0.0:
        text += f". Without this delay {millimetres(rest['position_m']['rms'])}{NO_BREAK}mm RMS would remain"
    if rest is not None and turns_otherwise(summary):
        text += (
            f". The rotation was {milliseconds(abs(turned))}{NO_BREAK}ms {'behind' if turned > 0.0 else 'ahead'}; "
            f"without that {degrees(rest['rotation_rad']['rms'])}{NO_BREAK}degrees RMS would remain"
        )
    return text + "."


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
        for begin, end in found[:MOST_STRETCHES]
    ]
    more = len(found) - len(written)
    return listed([*written, f"{more} times more"] if more else written)
