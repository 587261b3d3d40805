"""The page: verdict, budget, path, worst spot, error over time, joints, settings."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from simbridge.evaluation import Evaluation
from simbridge.readable import NO_BREAK, counted, millimetres, plain
from simbridge.report import tables
from simbridge.report.drawing import drawing_style
from simbridge.report.joint_curves import joint_figure
from simbridge.report.joints import joints
from simbridge.report.over_time import NARROW, ROUNDING, WIDE, Curve, error_curves, error_over_time, shown_range
from simbridge.report.palette import ATTAINED, LIMITER, REFERENCE, SETPOINT, WHOLE
from simbridge.report.settings_list import all_settings, important_settings, repeat_command
from simbridge.report.verdict import blame, headline, judgement, lateness, notices
from simbridge.report.views import Paths, three_views
from simbridge.report.where import coloured_path
from simbridge.report.worst import worst_spot


def report_page(evaluation: Evaluation, summary: Mapping[str, Any]) -> str:
    """The whole page as HTML; the same for the same run."""
    sections = [_verdict(evaluation, summary)]
    if summary["samples"]:
        sections.append(_budget(summary))
        with drawing_style():
            sections += [*_path(evaluation), _over_time(evaluation, summary), _joints(evaluation)]
    sections.append(_settings(evaluation, summary))
    title = f"{summary['scenario']} on {evaluation.settings['robot']['title']}"
    if WHOLE.key in summary:
        title += f": {millimetres(summary[WHOLE.key]['position_m']['rms'])} mm RMS"
    return _PAGE.format(
        title=escape(title),
        style=Path(__file__).with_name("page.css").read_text(encoding="utf-8"),
        sections="\n".join(sections),
    )


# The policy lets a browser load nothing at all: whatever a name in the settings may hold, the page stays by itself.
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{sections}
</main>
</body>
</html>
"""


def _section(name: str, title: str, content: str) -> str:
    return f'<section id="{name}">\n<h2>{title}</h2>\n{content}\n</section>'


def _verdict(evaluation: Evaluation, summary: Mapping[str, Any]) -> str:
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
    return "\n".join(['<header id="verdict">', *parts, "</header>"])


def _budget(summary: Mapping[str, Any]) -> str:
    content = f'<div class="scroll">{tables.budget_table(summary)}</div>'
    content += f'\n<div class="scroll">{tables.delay_table(summary)}</div>'
    if summary.get("loop"):
        content += f"\n<h3>Control loop</h3>\n{tables.loop_table(summary['loop'])}"
    return _section("budget", "Error budget", content)


def _legend(*entries: tuple[str, str, str]) -> str:
    items = "".join(f"<li>{tables.swatch(colour, kind)}{escape(name)}</li>" for name, colour, kind in entries)
    return f'<ul class="legend">{items}</ul>'


def _figure(caption: str, notes: tuple[str, ...], figure: str) -> str:
    small = f'<p class="note">{escape(" ".join(notes))}</p>' if notes else ""
    return f"<figure><figcaption>{escape(caption)}</figcaption>{figure}{small}</figure>"


_LEGEND = _legend(
    ("reference", REFERENCE, "thick"),
    ("setpoint", SETPOINT, ""),
    ("attained", ATTAINED, "thin"),
    ("start", "", "ring"),
    ("worst sample", "", "cross"),
)


def _path(evaluation: Evaluation) -> list[str]:
    paths = Paths.of(evaluation)
    views = "".join(_figure(view.title, notes, figure) for view, notes, figure in three_views(paths))
    path = _section("path", "Path of the TCP", f'{_LEGEND}\n<div class="views">{views}</div>')
    spot = worst_spot(evaluation, paths)
    caption = f"{millimetres(spot.error)}{NO_BREAK}mm at {spot.time:.3f}{NO_BREAK}s, seen {spot.view.title.lower()}"
    view, notes, coloured = coloured_path(paths, evaluation.budget.tracking.distance * 1e3)
    where = f"Where the error is, seen {view.title.lower()}"
    worst = _figure(caption, spot.notes, spot.figure) + _figure(where, notes, coloured)
    return [path, _section("worst", "The worst spot", f'{_LEGEND}\n<div class="halves">{worst}</div>')]


def _over_time(evaluation: Evaluation, summary: Mapping[str, Any]) -> str:
    curves = error_curves(evaluation, summary["delay_s"])
    entries = [(_told(curve, curves), curve.colour, "dotted" if curve.dashes == ":" else "") for curve in curves]
    if evaluation.log.limited.any():
        entries.append(("setpoints limited", LIMITER, "band"))
    entries.append(("worst sample", "", "cross"))
    note = '<p class="note">Logarithmic axes: a division is a factor of ten.</p>'
    wide = f'<div class="wide">{error_over_time(evaluation, curves, WIDE)}</div>'
    narrow = f'<div class="narrow">{error_over_time(evaluation, curves, NARROW)}</div>'
    content = f"{_legend(*entries)}\n<figure>{wide}\n{narrow}</figure>\n{note}"
    return _section("time", "Error over time", content)


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
    legend = _legend(("setpoint", SETPOINT, ""), ("attained (measured)", ATTAINED, "thin"), ("limit", "", "dashes"))
    figures = "".join(
        f"<figure><figcaption>{escape(joint.name)}</figcaption>"
        f"{joint_figure(joint, evaluation.log.stamp, number)}</figure>"
        for number, joint in enumerate(found)
    )
    note = '<p class="note">A limit that is too far away to be drawn is given above the curve.</p>'
    content = f'<div class="scroll">{tables.joint_table(found)}</div>\n{legend}\n<div class="joints">{figures}</div>'
    return _section("joints", "Joints", f"{content}\n{note}")


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
    return _section("settings", "Settings", content)
