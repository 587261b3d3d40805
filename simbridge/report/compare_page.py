"""compare.html: runs of one scenario laid over each other, made of the same parts as a run's own page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from simbridge.evaluation.comparison import Compared, Comparison
from simbridge.evaluation.metrics.pose_errors import statistics
from simbridge.evaluation.metrics.summary import POSE_PARTS, part_delays
from simbridge.evaluation.repeats import IsoFigures
from simbridge.report.charts import Line, Panel, map_of
from simbridge.report.document import document, figure, legend, section
from simbridge.report.drawing import Drawing, dots, drawing_style
from simbridge.report.iso import iso_section
from simbridge.report.over_time import ROUNDING, shown_range
from simbridge.report.palette import PARTS, REFERENCE, WHOLE
from simbridge.report.settings_list import flattened
from simbridge.report.tables import swatch
from simbridge.report.timeline import thinned_path
from simbridge.report.two_panels import two_panels
from simbridge.report.views import PIECES, VIEWS, framed, prepare_axes
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, degrees, millimetres, milliseconds

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1a1a1a")
ALONG = "Time on the trajectory (s)"
# Settings that are different in any two runs.
_ALWAYS_DIFFERENT = ("versions.", "shapes", "kinematics.placements", "controller.kinematics_checksum")


def compare_page(comparison: Comparison, figures: IsoFigures | None = None) -> str:
    """The whole page as HTML.

    Args:
        comparison: The runs.
        figures: ISO 9283-style figures, when the runs are cycles of one motion on one arm.
    """
    scenario = comparison.runs[0].summary["scenario"]
    with drawing_style():
        sections = [_header(comparison), _budget(comparison), _delays(comparison), _path(comparison)]
        sections += [_over_time(comparison), _along(comparison), _apart(comparison)]
    if figures is not None:
        content = iso_section([figures.as_dict()])
        sections.append(section("iso", "Cycles of one motion: ISO 9283-style figures", content))
    sections.append(_settings(comparison))
    return document(f"{scenario}: {len(comparison.runs)} runs compared", [part for part in sections if part])


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _legend(comparison: Comparison, *more: tuple[str, str, str]) -> str:
    return legend(*more, *((run.name, _colour(i), "") for i, run in enumerate(comparison.runs)))


def _header(comparison: Comparison) -> str:
    best = min(comparison.runs, key=lambda run: float(run.summary[WHOLE.key]["position_m"]["rms"]))
    worst = max(comparison.runs, key=lambda run: float(run.summary[WHOLE.key]["position_m"]["rms"]))
    parts = [
        '<p class="kicker">simbridge: comparison</p>',
        f"<h1>{escape(best.summary['scenario'])}</h1>",
        *(f'<p class="notice caution" role="note">{escape(warning)}</p>' for warning in comparison.warnings),
        f'<p class="headline">{escape(f"From {_told(best)} to {_told(worst)}.")}</p>',
    ]
    for run, apart, behind in zip(comparison.runs[1:], comparison.apart[1:], comparison.behind[1:], strict=True):
        if apart is not None:
            parts.append(f"<p>{escape(_distance(comparison.runs[0], run, statistics(apart[1].distance), behind))}</p>")
    return "\n".join(['<header id="verdict">', *parts, "</header>"])


def _told(run: Compared) -> str:
    error = run.summary[WHOLE.key]
    return (
        f"{millimetres(error['position_m']['rms'])}{NO_BREAK}mm and {degrees(error['rotation_rad']['rms'])}{NO_BREAK}"
        f"degrees RMS ({run.name}, {run.summary['backend']})"
    )


def _distance(first: Compared, run: Compared, apart: Mapping[str, float], behind: float | None) -> str:
    text = (
        f"The tool of {run.name} was {millimetres(apart['rms'])}{NO_BREAK}mm RMS from that of {first.name} "
        f"({millimetres(apart['max'])}{NO_BREAK}mm at most)"
    )
    if behind is None:
        return f"{text}."
    way = "behind" if behind >= 0.0 else "ahead of"
    return f"{text}, {milliseconds(abs(behind))}{NO_BREAK}ms {way} it."


def _table(caption: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row">{name}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        for name, cells in rows
    )
    return (
        f'<div class="scroll"><table class="numbers"><caption class="unseen">{caption}</caption>'
        f"<thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _names(comparison: Comparison) -> list[str]:
    return [f"{swatch(_colour(i))}{escape(run.name)}" for i, run in enumerate(comparison.runs)]


def _budget(comparison: Comparison) -> str:
    worst = max(
        float(run.summary[line.key]["position_m"]["rms"]) for run in comparison.runs for line in (WHOLE, *PARTS)
    )
    rows = []
    for name, run in zip(_names(comparison), comparison.runs, strict=True):
        summary, whole = run.summary, run.summary[WHOLE.key]
        cells = [_bar(whole["position_m"]["rms"], worst, WHOLE.colour)]
        cells += [_bar(summary[line.key]["position_m"]["rms"], worst, line.colour) for line in PARTS]
        rest = summary["delay_compensated"]
        cells.append("–" if rest is None else _bar(rest["position_m"]["rms"], worst, WHOLE.colour))
        cells += [_bar(summary["contour_error"]["position_m"]["rms"], worst, WHOLE.colour)]
        cells += [millimetres(whole["position_m"]["max"]), degrees(whole["rotation_rad"]["rms"])]
        rows.append((name, cells))
    columns = ["Run", "tracking", *(line.name for line in PARTS)]
    columns += ["without delay", "contour", "tracking, max", "rotation, °"]
    note = '<p class="note">RMS in mm, but the largest tracking error (mm) and the RMS of its rotation.</p>'
    return section("budget", "How much is delay, solver, plant", _table("Errors", columns, rows) + note)


def _bar(value: float, worst: float, colour: str) -> str:
    share = 100.0 * value / worst if worst > 0.0 else 0.0
    return f'{millimetres(value)}<span class="bar" style="width:{share:.1f}%;background:{colour}"></span>'


def _delays(comparison: Comparison) -> str:
    rows = []
    delays = [[late for part in POSE_PARTS for late in part_delays(run.summary, part)] for run in comparison.runs]
    worst = max(abs(late or 0.0) for of_run in delays for late in of_run)
    for i, (name, of_run) in enumerate(zip(_names(comparison), delays, strict=True)):
        cells = []
        for late in of_run:
            share = 100.0 * abs(late or 0.0) / worst if worst > 0.0 else 0.0
            bar = f'<span class="bar" style="width:{share:.1f}%;background:{_colour(i)}"></span>'
            cells.append(milliseconds(late) + bar)
        rows.append((name, [*cells, milliseconds(comparison.behind[i])]))
    columns = ["Run", *(f"{part}, {whose}" for part in POSE_PARTS for whose in ("total", "solver", "plant"))]
    columns.append("behind the first run")
    note = (
        '<p class="note">In ms; all but the last by each run\'s own clock; that by the time on the trajectory, which '
        "waits where a controller does.</p>"
    )
    return section("delay", "Delay", _table("Delays", columns, rows) + note)


def _path(comparison: Comparison) -> str:
    reference = comparison.runs[0].evaluation.reference[:, :3] * 1e3
    attained = [run.evaluation.attained[:, :3] * 1e3 for run in comparison.runs]
    points, views = np.concatenate([reference, *attained]), ""
    for view in VIEWS:
        drawing = Drawing(348, 310)
        frame = framed(view, points, reference[0], 348 - 72, 310 - 64)
        axes = drawing.axes(54, 40, 18, 24)
        prepare_axes(axes, view, frame)
        pick, origin = [view.right, view.up], np.array(frame.origin)
        seen = reference[:, pick] - origin
        axes.plot(*seen[thinned_path(seen, PIECES)].T, color=REFERENCE, linewidth=8.0, marker=dots(len(seen)))
        for i, path in enumerate(attained):
            drawn = path[:, pick] - origin
            width = max(1.4, 4.5 - 1.6 * i)
            axes.plot(*drawn[thinned_path(drawn, PIECES)].T, color=_colour(i), linewidth=width)
        last = attained[-1][:, pick] - origin
        kept = thinned_path(last, PIECES)
        told = {f"{comparison.runs[-1].name}, {'xyz'[k]}|{NO_BREAK}mm": attained[-1][kept, k] for k in pick}
        svg = drawing.svg(f"view-{view.letters}", f"Paths {view.title.lower()}, in mm")
        times = comparison.runs[-1].evaluation.log.plan_time[kept]
        views += figure(view.title, frame.notes, map_of(svg, drawing.places(axes, last[kept]), times, told))
    content = f'{_legend(comparison, ("reference", REFERENCE, "thick"))}\n<div class="views">{views}</div>'
    return section("path", "Where: the paths", content)


def _over_time(comparison: Comparison) -> str:
    panels = []
    for title, unit, scale, kind in (
        ("Position error (mm)", f"{NO_BREAK}mm", 1e3, "distance"),
        ("Rotation error (°)", "°", float(np.degrees(1.0)), "angle"),
    ):
        errors = [getattr(run.evaluation.budget.tracking, kind) * scale for run in comparison.runs]
        lines = [
            Line(run.name, _colour(i), run.evaluation.log.plan_time, error, 1.6)
            for i, (run, error) in enumerate(zip(comparison.runs, errors, strict=True))
            if error.max() > ROUNDING
        ]
        panels.append(Panel(title, lines, shown_range(errors), unit, logarithmic=True))
    drawn = two_panels("time", "Tracking error of every run over time", panels, _clock(comparison), axis=ALONG)
    note = '<p class="note">Logarithmic axes: a division is a factor of ten.</p>'
    return section("time", "When: the tracking error", f"{_legend(comparison)}<figure>{drawn}</figure>{note}")


def _along(comparison: Comparison) -> str:
    panels = []
    for title, kind in (("Distance to the path, time aside (mm)", "distance"), ("Behind along the path (mm)", "lag")):
        values = [getattr(run.evaluation.contour, kind) * 1e3 for run in comparison.runs]
        lines = [
            Line(run.name, _colour(i), run.evaluation.log.plan_time, value, 1.6)
            for i, (run, value) in enumerate(zip(comparison.runs, values, strict=True))
        ]
        panels.append(Panel(title, lines, _shown(values), f"{NO_BREAK}mm"))
    drawn = two_panels("along", "Contour error and lag of every run", panels, _clock(comparison), axis=ALONG)
    return section("along", "Late, or off the path?", f"{_legend(comparison)}<figure>{drawn}</figure>")


def _apart(comparison: Comparison) -> str:
    known = [(i, apart) for i, apart in enumerate(comparison.apart) if apart is not None]
    if not known:
        return ""
    panels = []
    for title, unit, scale, kind in (
        ("Tool to tool (mm)", f"{NO_BREAK}mm", 1e3, "distance"),
        ("Turned against each other (°)", "°", float(np.degrees(1.0)), "angle"),
    ):
        values = [getattr(apart[1], kind) * scale for _, apart in known]
        lines = [
            Line(comparison.runs[i].name, _colour(i), apart[0], value, 1.6)
            for (i, apart), value in zip(known, values, strict=True)
        ]
        panels.append(Panel(title, lines, _shown(values), unit))
    drawn = two_panels("apart", "Distance from the first run over time", panels, _clock(comparison), axis=ALONG)
    title = f"How far from {escape(comparison.runs[0].name)}?"
    shown = legend(*((comparison.runs[i].name, _colour(i), "") for i, _ in known))
    return section("apart", title, f"{shown}<figure>{drawn}</figure>")


def _shown(values: Sequence[Array]) -> tuple[float, float]:
    low = min(0.0, *(float(value.min()) for value in values))
    high = max(1e-6, *(float(value.max()) for value in values))
    room = 0.06 * (high - low)
    return low - room, high + room


def _clock(comparison: Comparison) -> Array:
    times = [run.evaluation.log.plan_time for run in comparison.runs]
    return np.array([min(float(t[0]) for t in times), max(float(t[-1]) for t in times)])


def _settings(comparison: Comparison) -> str:
    """What the runs were made with, as far as it is not the same."""
    every = [dict(flattened(run.evaluation.settings)) for run in comparison.runs]
    names = dict.fromkeys(name for settings in every for name in settings)
    rows = []
    for name in names:
        values = [settings.get(name, "–") for settings in every]
        if len(set(values)) > 1 and not name.startswith(_ALWAYS_DIFFERENT):
            rows.append((escape(name), [escape(value) for value in values]))
    columns = ["Setting", *(run.name for run in comparison.runs)]
    content = _table("Settings", columns, rows) if rows else "<p>All settings are the same.</p>"
    return section("settings", "What is different (SI units, radians)", content.replace("numbers", "differences", 1))
