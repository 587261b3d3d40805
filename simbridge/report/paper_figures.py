"""Figures of a run for a paper, as SVG or PDF: one column of 88 mm wide, with text of 8 points."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import Summary
from simbridge.report.charts import Chart, Panel
from simbridge.report.drawing import Drawing, drawing_style
from simbridge.report.error_map import draw_error_map
from simbridge.report.over_time import ROUNDING, contour_panels, error_panels
from simbridge.report.palette import ATTAINED, REFERENCE, SETPOINT
from simbridge.report.views import VIEWS, draw_view
from simbridge.report.views import Path as Curve
from simbridge.robot.files import replacing, writing
from simbridge.text import SMALLEST

FORMATS = ("svg", "pdf")
# In the pixels of a drawing: 8 points of text are 11 of them.
WIDTH = 343
_LEGEND = 44


def write_figures(evaluation: Evaluation, summary: Summary, folder: Path, kind: str) -> list[Path]:
    """Write errors, contour, map, and path-xy, path-xz, path-yz where the path is not flat; returns the files.

    Args:
        evaluation: The run.
        summary: Its numbers.
        folder: It is made where it is missing.
        kind: One of `FORMATS`.

    Raises:
        OutputError: A file cannot be written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with drawing_style(paper=True):
        for name, drawing in _drawings(evaluation, summary).items():
            paths.append(folder / f"{name}.{kind}")
            with replacing(paths[-1]) as new:
                drawing.save(new, kind)
    return paths


def _drawings(evaluation: Evaluation, summary: Summary) -> dict[str, Drawing]:
    stamps, error = evaluation.log.stamp, evaluation.budget.tracking.distance * 1e3
    panels = [_shown(panel) for panel in error_panels(evaluation, summary)]
    panels = [panel for panel in panels if panel.shown[1] >= SMALLEST] or panels[:1]
    errors = Chart(panels, stamps, 60 + 160 * len(panels)).drawn(WIDTH, _LEGEND)
    lines = {line.name: line for panel in panels for line in panel.lines}.values()
    errors.legend([(line.name, line.colour, line.dash) for line in lines])
    styles = {"reference": (REFERENCE, 4.0), "setpoint": (SETPOINT, 2.0), "attained": (ATTAINED, 1.0)}
    curves = [Curve(name, getattr(evaluation, name)[:, :3] * 1e3, *style) for name, style in styles.items()]
    reference = curves[0].positions
    mapped, _, best, _ = draw_error_map(reference, error, WIDTH, 280)
    contour = Chart(contour_panels(evaluation), stamps, 300).drawn(WIDTH)
    found = {"errors": errors, "contour": contour, "map": mapped}
    for view in VIEWS:
        marks = [(reference[0], "o"), (reference[error.argmax()], "X")]
        drawing, _, frame = draw_view(view, curves, marks, _LEGEND // 2)
        # Axes that need an explanation are for the page.
        if view == best or not frame.notes:
            drawing.legend([(curve.name, curve.colour, "") for curve in curves])
            found[f"path-{view.letters}"] = drawing
    return found


def _shown(panel: Panel) -> Panel:
    return replace(panel, lines=[line for line in panel.lines if line.values.max() > ROUNDING])
