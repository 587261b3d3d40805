"""The report of one run: verdict, error budget, path, errors over time, joints, settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.tracking import (
    POSE_PARTS,
    TRACKING_ERROR,
    known_parts,
    part_delays,
)
from simbridge.evaluation.summary import Summary, shown_metrics
from simbridge.recording.settings_text import all_settings
from simbridge.report import verdict
from simbridge.report.drawing import drawing_style
from simbridge.report.joints import joint_chart, joint_results, largest_contributor
from simbridge.report.over_time import contour_chart, errors_over_time, loop_chart
from simbridge.report.palette import ATTAINED, ERRORS, PLANT, REFERENCE, SETPOINT, TRACKING
from simbridge.report.paths import DrawnPath, error_map, three_views, worst_sample
from simbridge.report.rendering import CaptionedDrawing, LegendEntry, render
from simbridge.report.repeat_command import repeat_command
from simbridge.report.session import session_part
from simbridge.report.settings_list import important_settings
from simbridge.text import NO_BREAK, millimetres

# Less than any contribution of a joint, m: bars are drawn as a ratio to the largest one.
MIN_CONTRIBUTION = 1e-15

_EFFORT = {"velocity": "°/s", "acceleration": "°/s²", "jerk": "°/s³", "torque": "N m"}
_PATH_LEGEND = (
    LegendEntry("reference", REFERENCE, "thick"),
    LegendEntry("setpoint", SETPOINT),
    LegendEntry("attained", ATTAINED, "thin"),
    LegendEntry("start", "", "ring"),
    LegendEntry("worst sample", "", "cross"),
)
_JOINT_LEGEND = (
    LegendEntry("setpoint", SETPOINT),
    LegendEntry("attained (measured)", ATTAINED, "thin"),
    LegendEntry("limit", "", "dashes"),
)


def report_page(evaluation: Evaluation, summary: Summary, *, replay: str | None = None) -> str:
    """Return the whole page as HTML; the same for the same run.

    Args:
        evaluation: The run.
        summary: The run's numbers.
        replay: The file name of the replay in the same directory, if there is one.
    """
    content = {
        **_head(evaluation, summary),
        "replay": replay,
        **_settings(evaluation, summary),
        **_session(evaluation, summary),
    }
    if summary["samples"]:
        content |= _error_budget(summary)
        with drawing_style():
            content |= _figures(evaluation, summary)
    return render("report.html", **content)


def _head(evaluation: Evaluation, summary: Summary) -> dict[str, Any]:
    """Return the title, the verdict, and what qualifies it."""
    title = f"{summary['scenario']} on {evaluation.settings.robot.title}"
    if summary["samples"]:
        title += f": {millimetres(summary['tracking_error']['position_m']['rms'])} mm RMS"
    return {
        "title": title,
        "summary": summary,
        "notices": verdict.notices(evaluation, summary),
        "headline": verdict.headline(summary),
        "tolerance": verdict.tolerance_check(summary),
    }


def _settings(evaluation: Evaluation, summary: Summary) -> dict[str, Any]:
    """Return the settings, and the command that repeats the run."""
    record = evaluation.settings
    tables = evaluation.directory.settings_tables()
    # The shapes of the links are for the replay only.
    tables.pop("shapes", None)
    is_repeatable = summary["samples"] or summary["inputs"] is None
    return {
        "settings": record,
        "important_settings": important_settings(record, summary["samples"]),
        "all_settings": all_settings(tables),
        "command": repeat_command(record, evaluation.directory.path) if is_repeatable else None,
    }


def _session(evaluation: Evaluation, summary: Summary) -> dict[str, Any]:
    """Return the part of a live session; None for a run."""
    inputs = summary["inputs"]
    latency = summary["latency"]
    if inputs is None or latency is None:
        return {"session": None}

    # Only the summary of a session has them.
    session = evaluation.session
    assert session is not None
    with drawing_style():
        part = session_part(session)
    sentences = (verdict.input_sentences(inputs), verdict.latency_sentence(latency))
    return {"session": part, "session_sentences": sentences}


def _error_budget(summary: Summary) -> dict[str, Any]:
    """Return the parts of the error, their delays, and the sentences about them."""
    errors: Mapping[str, Any] = summary
    parts = known_parts(errors)
    sizes = [errors[part.key]["position_m"]["rms"] for part in (*parts, TRACKING_ERROR)]
    return {
        "parts_of_error": [(part, ERRORS[part.name]) for part in parts],
        "whole": TRACKING_ERROR,
        "tracking_colour": TRACKING,
        "largest": max(sizes),
        "delays": {part: part_delays(summary, part) for part in POSE_PARTS},
        "advice": verdict.advice(summary),
        "parts_cancel": verdict.PARTS_CANCEL if verdict.parts_cancel(summary) else "",
        "plant_model": verdict.plant_sentences(summary),
        "delay_sentences": verdict.delay_sentences(summary),
        "contour_sentence": verdict.contour_sentence(summary),
        "metrics": shown_metrics(summary),
    }


def _figures(evaluation: Evaluation, summary: Summary) -> dict[str, Any]:
    """Return drawings, and the tables and sentences that belong to them."""
    stamps = evaluation.log.stamp
    results = joint_results(evaluation)
    joint_figures = [
        CaptionedDrawing(joint.name, joint_chart(joint, stamps, number))
        for number, joint in enumerate(results)
    ]

    effort_names = {joint.effort.name for joint in results}
    effort_groups = [
        (f"{kind}, {_EFFORT[kind]}", 2) for kind, used in summary["joint_effort"].items() if used
    ]

    has_loop = summary.get("loop") and summary["samples"] > 1
    error_legend, error_chart = errors_over_time(evaluation, summary)
    return {
        **_paths(evaluation),
        "error_legend": error_legend,
        "error_chart": error_chart,
        "contour_chart": contour_chart(evaluation),
        "joints": results,
        "largest_contributor": largest_contributor(results),
        "largest_contribution": max(
            max(joint.displacement["rms"] for joint in results), MIN_CONTRIBUTION
        ),
        "joint_legend": _JOINT_LEGEND,
        "joint_figures": joint_figures,
        "effort_name": effort_names.pop() if len(effort_names) == 1 else "torque or force",
        "effort_groups": effort_groups,
        "degrees_per_radian": math.degrees(1.0),
        "plant_colour": PLANT,
        "loop_chart": loop_chart(evaluation) if has_loop else "",
    }


def _paths(evaluation: Evaluation) -> dict[str, Any]:
    """Return the drawings of the path: three views, the error along it, and the worst sample."""
    stamps = evaluation.log.stamp
    distance = evaluation.errors.tracking.distance * 1e3
    reference = evaluation.reference[:, :3] * 1e3
    setpoint = evaluation.setpoint[:, :3] * 1e3
    attained = evaluation.attained[:, :3] * 1e3

    # Each path is drawn over the one before and thinner than it, so that all remain visible where
    # they coincide.
    paths = [
        DrawnPath("reference", reference, REFERENCE, 8.0),
        DrawnPath("setpoint", setpoint, SETPOINT, 5.0),
        DrawnPath("attained", attained, ATTAINED, 2.0),
    ]
    # A circle at the start, and a cross at the worst sample.
    marks = [(reference[0], "o"), (reference[distance.argmax()], "X")]
    shown_error = {f"tracking error|{NO_BREAK}mm": distance}
    return {
        "path_legend": _PATH_LEGEND,
        "views": three_views(paths, stamps, shown_error, marks),
        "error_map": error_map(reference, distance, stamps),
        "worst": worst_sample(evaluation, reference, setpoint, attained=attained),
    }
