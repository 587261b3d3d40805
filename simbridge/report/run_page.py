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
from simbridge.report import verdict
from simbridge.report.drawing import drawing_style
from simbridge.report.joints import joint_chart, joints, largest_contributor
from simbridge.report.over_time import contour_chart, errors_over_time, loop_chart
from simbridge.report.palette import ATTAINED, ERRORS, PLANT, REFERENCE, SETPOINT, TRACKING
from simbridge.report.paths import Path, error_map, three_views, worst_sample
from simbridge.report.rendering import Figure, LegendEntry, render
from simbridge.report.session import session_part
from simbridge.report.settings_list import all_settings, important_settings, repeat_command
from simbridge.text import NO_BREAK, millimetres

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
    """The whole page as HTML; the same for the same run.

    Args:
        evaluation: The run.
        summary: Its numbers.
        replay: The file name of the replay in the same directory, if there is one.
    """
    settings = evaluation.settings
    title = f"{summary['scenario']} on {settings.robot.title}"
    if summary["samples"]:
        title += f": {millimetres(summary['tracking_error']['position_m']['rms'])} mm RMS"
    # The shapes of the links are for the replay only.
    tables = evaluation.directory.settings_tables()
    tables.pop("shapes", None)
    repeatable = summary["samples"] or summary["inputs"] is None
    content: dict[str, Any] = {
        "title": title,
        "summary": summary,
        "settings": settings,
        "replay": replay,
        "notices": verdict.notices(evaluation, summary),
        "headline": verdict.headline(summary),
        "tolerance": verdict.tolerance_check(summary),
        "important_settings": important_settings(settings, summary["samples"]),
        "all_settings": all_settings(tables),
        "command": repeat_command(settings, evaluation.directory.path) if repeatable else None,
    }
    content["session"] = None
    if summary["inputs"] is not None and summary["latency"] is not None:
        content["session_sentences"] = (
            verdict.input_sentences(summary["inputs"]),
            verdict.latency_sentence(summary["latency"]),
        )
        session = evaluation.session
        assert session is not None
        with drawing_style():
            content["session"] = session_part(session)
    if summary["samples"]:
        errors: Mapping[str, Any] = summary
        parts = known_parts(errors)
        content |= {
            "parts_of_error": [(part, ERRORS[part.name]) for part in parts],
            "whole": TRACKING_ERROR,
            "tracking_colour": TRACKING,
            "largest": max(
                errors[part.key]["position_m"]["rms"] for part in (*parts, TRACKING_ERROR)
            ),
            "delays": {part: part_delays(summary, part) for part in POSE_PARTS},
            "advice": verdict.advice(summary),
            "plant_model": verdict.plant_sentences(summary),
            "delay_sentences": verdict.delay_sentences(summary),
            "contour_sentence": verdict.contour_sentence(summary),
            "metrics": shown_metrics(summary),
        }
        with drawing_style():
            content |= _figures(evaluation, summary)
    return render("report.html", **content)


def _figures(evaluation: Evaluation, summary: Summary) -> dict[str, Any]:
    """Drawings, and the tables and sentences that belong to them."""
    stamps = evaluation.log.stamp
    found = joints(evaluation)
    kinds = {joint.effort.name for joint in found}
    error_legend, error_chart = errors_over_time(evaluation, summary)
    return {
        **_paths(evaluation),
        "error_legend": error_legend,
        "error_chart": error_chart,
        "contour_chart": contour_chart(evaluation),
        "joints": found,
        "largest_contributor": largest_contributor(found),
        "largest_contribution": max(max(joint.moved["rms"] for joint in found), 1e-15),
        "joint_legend": _JOINT_LEGEND,
        "joint_figures": [
            Figure(joint.name, joint_chart(joint, stamps, i)) for i, joint in enumerate(found)
        ],
        "effort_name": kinds.pop() if len(kinds) == 1 else "torque or force",
        "effort_groups": [
            (f"{kind}, {_EFFORT[kind]}", 2)
            for kind, used in summary["joint_effort"].items()
            if used
        ],
        "degrees_per_radian": math.degrees(1.0),
        "plant_colour": PLANT,
        "loop_chart": loop_chart(evaluation)
        if summary.get("loop") and summary["samples"] > 1
        else "",
    }


def _paths(evaluation: Evaluation) -> dict[str, Any]:
    """The path from three sides, its worst sample, and the error along it."""
    stamps, distance = evaluation.log.stamp, evaluation.errors.tracking.distance * 1e3
    reference, setpoint, attained = (
        getattr(evaluation, name)[:, :3] * 1e3 for name in ("reference", "setpoint", "attained")
    )
    paths = [
        Path("reference", reference, REFERENCE, 8.0),
        Path("setpoint", setpoint, SETPOINT, 5.0),
        Path("attained", attained, ATTAINED, 2.0),
    ]
    marks = [(reference[0], "o"), (reference[distance.argmax()], "X")]
    return {
        "path_legend": _PATH_LEGEND,
        "views": three_views(paths, stamps, {f"tracking error|{NO_BREAK}mm": distance}, marks),
        "worst": [
            worst_sample(evaluation, reference, setpoint, attained),
            error_map(reference, distance, stamps),
        ],
    }
