"""The page: verdict, budget, path, worst spot, error over time, joints, settings."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from simbridge.evaluation.evaluation import Evaluation
from simbridge.report import tables
from simbridge.report.along import along_path, told
from simbridge.report.charts import chart
from simbridge.report.document import document, figure, legend, section
from simbridge.report.drawing import drawing_style
from simbridge.report.error_map import coloured_path
from simbridge.report.joint_contributions import joint_contributions
from simbridge.report.joint_curves import joint_figure
from simbridge.report.joints import joints
from simbridge.report.loop import loop_figure
from simbridge.report.motion import effort_table, motion_table
from simbridge.report.over_time import (
    NARROW,
    ROUNDING,
    WIDE,
    Curve,
    error_curves,
    error_over_time,
    error_panels,
    shown_range,
)
from simbridge.report.palette import ATTAINED, LIMITER, REFERENCE, SETPOINT, WHOLE
from simbridge.report.settings_list import all_settings, important_settings, repeat_command
from simbridge.report.timeline import stretches
from simbridge.report.verdict import blame, headline, judgement, lateness, notices
from simbridge.report.views import Paths, three_views
from simbridge.report.worst import worst_spot
from simbridge.text import NO_BREAK, counted, millimetres, plain


def report_page(evaluation: Evaluation, summary: Mapping[str, Any], *, replay: str | None = None) -> str:
    """The whole page as HTML; the same for the same run.

    Args:
        evaluation: The run.
        summary: Its numbers.
        replay: The name of the replay beside the page, if there is one.
    """
    sections = [_verdict(evaluation, summary, replay)]
    if summary["samples"]:
        sections.append(_budget(summary))
        with drawing_style():
            sections += [*_path(evaluation), _over_time(evaluation, summary), _along(evaluation, summary)]
            sections += [_culprits(evaluation), _joints(evaluation), _motion(evaluation, summary)]
            if summary.get("loop"):
                sections.append(_loop(evaluation, summary))
    sections.append(_settings(evaluation, summary))
    title = f"{summary['scenario']} on {evaluation.settings['robot']['title']}"
    if WHOLE.key in summary:
        title += f": {millimetres(summary[WHOLE.key]['position_m']['rms'])} mm RMS"
    return document(title, sections)


def _verdict(evaluation: Evaluation, summary: Mapping[str, Any], replay: str | None) -> str:
    settings = evaluation.settings
    facts = [
        settings["robot"]["title"],
        summary["solver"],
        summary["backend"],
        f"{counted(summary['samples'], 'sample')} of {plain(1e3 * summary['period_s'])}{NO_BREAK}ms",
        f"{summary['duration_s']:.2f}{NO_BREAK}s",
    ]
    parts = [f'<p class="kicker">simbridge: tracking report</p>\n<h1>{escape(summary["scenario"])}</h1>']
    if settings["scenario"].get("description"):
        parts.append(f'<p class="description">{escape(settings["scenario"]["description"])}</p>')
    parts.append(f'<p class="kicker">{" · ".join(escape(fact) for fact in facts)}</p>')
    for notice in notices(evaluation, summary):
        parts.append(f'<p class="notice {notice.kind}" role="note">{escape(notice.text)}</p>')
    parts.append(f'<p class="headline">{escape(headline(summary, settings["robot"]["title"]))}</p>')
    judged = judgement(summary)
    if judged is not None:
        passed, text = judged
        word, kind = ("Passed", "passed") if passed else ("Failed", "failed")
        if passed and summary["outcome"] != "completed":
            word, kind = "Incomplete", "failed"
        parts.append(f'<p class="judgement"><span class="badge {kind}">{word}</span> {escape(text)}.</p>')
    if summary["samples"]:
        parts.append(f"<p>{escape(blame(summary))}</p>\n<p>{escape(lateness(summary))}</p>")
    if replay is not None:
        parts.append(f'<p class="replay"><a href="{escape(replay)}">Replay in 3D</a></p>')
    return "\n".join(['<header id="verdict">', *parts, "</header>"])


def _budget(summary: Mapping[str, Any]) -> str:
    content = f'<div class="scroll">{tables.budget_table(summary)}</div>'
    content += f'\n<div class="scroll">{tables.pose_error_table(summary)}</div>'
    content += f'\n<div class="scroll">{tables.delay_table(summary)}</div>'
    return section("budget", "How much is delay, solver, plant: the error budget", content)


_LEGEND = legend(
    ("reference", REFERENCE, "thick"),
    ("setpoint", SETPOINT, ""),
    ("attained", ATTAINED, "thin"),
    ("start", "", "ring"),
    ("worst sample", "", "cross"),
)


def _path(evaluation: Evaluation) -> list[str]:
    paths = Paths.of(evaluation)
    views = "".join(figure(view.title, notes, drawn) for view, notes, drawn in three_views(paths))
    path = section("path", "Where: the path of the TCP", f'{_LEGEND}\n<div class="views">{views}</div>')
    spot = worst_spot(evaluation, paths)
    caption = f"{millimetres(spot.error)}{NO_BREAK}mm at {spot.time:.3f}{NO_BREAK}s, seen {spot.view.title.lower()}"
    view, notes, coloured = coloured_path(paths, evaluation.budget.tracking.distance * 1e3, evaluation.log.stamp)
    where = f"Where the error is, seen {view.title.lower()}"
    worst = figure(caption, spot.notes, spot.figure) + figure(where, notes, coloured)
    return [path, section("worst", "Where: the worst spot", f'{_LEGEND}\n<div class="halves">{worst}</div>')]


def _over_time(evaluation: Evaluation, summary: Mapping[str, Any]) -> str:
    curves = error_curves(evaluation, summary)
    entries = [(_told(curve, curves), curve.colour, "dotted" if curve.dashes == ":" else "") for curve in curves]
    if evaluation.log.limited.any():
        entries.append(("setpoints limited", LIMITER, "band"))
    entries.append(("worst sample", "", "cross"))
    note = '<p class="note">Logarithmic axes: a division is a factor of ten.</p>'
    wide = f'<div class="wide">{error_over_time(evaluation, curves, WIDE)}</div>'
    narrow = f'<div class="narrow">{error_over_time(evaluation, curves, NARROW)}</div>'
    stamps = evaluation.log.stamp
    bands = stretches(evaluation.log.limited, stamps, gap=1e-3 * float(stamps[-1] - stamps[0]))
    worst = int(np.argmax(curves[0].position))
    marks = (
        [(0, float(stamps[worst]), float(curves[0].position[worst]))] if curves[0].position[worst] > ROUNDING else []
    )
    drawn = chart(f"{wide}\n{narrow}", error_panels(curves), stamps, 480, bands=bands, marks=marks)
    content = f"{legend(*entries)}\n<figure>{drawn}</figure>\n{note}{_HINT}"
    return section("time", "When: error over time", content)


# Only where there is a pointer to do it with.
_HINT = '<p class="note hint">Point for values; drag to look closer; double-click to see the whole again.</p>'


def _along(evaluation: Evaluation, summary: Mapping[str, Any]) -> str:
    content = f"<p>{escape(told(summary))}</p>\n<figure>{along_path(evaluation)}</figure>"
    return section("along", "Late, or off the path?", content)


def _culprits(evaluation: Evaluation) -> str:
    return section("culprits", "Which joint?", joint_contributions(evaluation))


def _motion(evaluation: Evaluation, summary: Mapping[str, Any]) -> str:
    prismatic = evaluation.settings["kinematics"]["prismatic"]
    effort = effort_table(summary, evaluation.log.joint_names, prismatic)
    content = f'{motion_table(summary)}\n<div class="scroll">{effort}</div>'
    return section("motion", "The motion: smoothness, effort, singularities", content)


def _loop(evaluation: Evaluation, summary: Mapping[str, Any]) -> str:
    drawn = f"<figure>{loop_figure(evaluation)}</figure>" if summary["samples"] > 1 else ""
    return section("loop", "Control loop", f"{tables.loop_table(summary['loop'])}\n{drawn}")


def _told(curve: Curve, curves: list[Curve]) -> str:
    """A curve's name; the legend says so if it is nowhere on the axes."""
    missing = {}
    for kind, error, others in (
        ("position", curve.position, [other.position for other in curves]),
        ("rotation", curve.rotation, [other.rotation for other in curves]),
    ):
        if error.max() < max(shown_range(others)[0], ROUNDING):
            missing[kind] = "zero" if error.max() <= ROUNDING else "too small to show"
    if len(missing) == 2 and len(set(missing.values())) == 1:
        return f"{curve.name} ({missing['position']})"
    why = ", ".join(f"{kind} {reason}" for kind, reason in missing.items())
    return f"{curve.name} ({why})" if why else curve.name


def _joints(evaluation: Evaluation) -> str:
    found = joints(evaluation)
    entries = legend(("setpoint", SETPOINT, ""), ("attained (measured)", ATTAINED, "thin"), ("limit", "", "dashes"))
    figures = "".join(
        f"<figure><figcaption>{escape(joint.name)}</figcaption>"
        f"{joint_figure(joint, evaluation.log.stamp, number)}</figure>"
        for number, joint in enumerate(found)
    )
    note = '<p class="note">A limit that is too far away to be drawn is given above the curve.</p>'
    content = f'<div class="scroll">{tables.joint_table(found)}</div>\n{entries}\n<div class="joints">{figures}</div>'
    return section("joints", "What every joint did", f"{content}\n{note}")


def _settings(evaluation: Evaluation, summary: Mapping[str, Any]) -> str:
    settings, run = evaluation.settings, evaluation.directory.path
    command = repeat_command(settings, run)
    if command is None:
        again = (
            "<p>The scenario or the robot is not one of simbridge's own. To send the same setpoints again, give both "
            "to <code>simbridge run</code> as they were given before, with <code>--plan</code> and the directory of "
            "this run.</p>"
        )
    else:
        again = "<p>To send the same setpoints again, as long as the scenario is the same:</p>\n"
        again += f"<pre>{escape(command)}</pre>"
    content = (
        f"{important_settings(settings, summary['samples'])}\n{again}\n"
        f"<details><summary>All settings (SI units, radians)</summary>{all_settings(settings)}</details>"
    )
    return section("settings", "Settings", content)
