"""Figures as files: of an inspected trajectory, and of a run for a paper: one column of 88 mm with 8-point text."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simbridge.errors import OutputError
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import Summary
from simbridge.files.writing import replacing, write_file, writing
from simbridge.report.charts import Chart
from simbridge.report.drawing import Drawing, drawing_style
from simbridge.report.over_time import ROUNDING, contour_panels, error_panels, worth_showing
from simbridge.report.palette import ATTAINED, GRID, REFERENCE, SETPOINT
from simbridge.report.paths import VIEWS, draw_error_map, draw_view
from simbridge.report.paths import Path as Curve
from simbridge.trajectory.trajectory import Trajectory

PICTURES = (".png", ".svg", ".pdf")
# More points than a picture of this width can show.
_MAX_POINTS = 20_000
FORMATS = ("svg", "pdf")
# In the pixels of a drawing: 8 points of text are 11 of them.
WIDTH = 343
_LEGEND = 44


def draw_trajectory(
    path: str | Path, trajectory: Trajectory, attained: NDArray[np.bool_] | None, title: str
) -> None:
    """Write a picture: from above, from the side or the front, and the speed over time; in the format of its suffix.

    Args:
        path: The file, .png, .svg or .pdf; an existing one is replaced.
        trajectory: In base_link.
        attained: Which samples (T,) the arm can attain; None when unknown.
        title: The heading.

    Raises:
        OutputError: It cannot be written, or has another suffix.
    """
    file = Path(path)
    if file.suffix.lower() not in PICTURES:
        raise OutputError(path, f"a picture ends in {', '.join(PICTURES)}")
    figure = Figure(figsize=(9.0, 7.0), layout="tight")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=11, parse_math=False)
    above, side, speed = (figure.add_subplot(*at) for at in ((2, 2, 1), (2, 2, 2), (2, 1, 2)))
    shown = np.unique(np.linspace(0, len(trajectory.times) - 1, _MAX_POINTS).astype(int))
    points = trajectory.poses[shown, :3]
    missed = np.zeros(len(shown), dtype=bool) if attained is None else ~attained[shown]
    # From the side, which looks along y, a motion along y alone would be a point.
    extent = np.ptp(points[:, :2], axis=0)
    wide = int(extent[1] > 2.0 * extent[0])
    seen = "from the side" if wide == 0 else "from the front"
    for axes, (across, up), name in ((above, (0, 1), "from above"), (side, (wide, 2), seen)):
        axes.plot(points[:, across], points[:, up], color=SETPOINT, linewidth=1.2)
        axes.plot(
            *points[0, [across, up]], "o", color=SETPOINT, markersize=6, label="start", zorder=3
        )
        if missed.any():
            axes.plot(
                *points[missed][:, [across, up]].T,
                ".",
                color=ATTAINED,
                markersize=5,
                label="out of reach",
            )
        axes.set(title=name, xlabel=f"{'xy'[across]} (m)", ylabel=f"{'xyz'[up]} (m)")
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.1)
        axes.legend(fontsize=8, frameon=False)
    steps = np.diff(trajectory.elapsed)
    if len(steps):
        speeds = np.linalg.norm(np.diff(trajectory.poses[:, :3], axis=0), axis=1) / steps
        chosen = np.unique(np.linspace(0, len(steps) - 1, _MAX_POINTS).astype(int))
        speed.step(
            trajectory.elapsed[chosen], speeds[chosen], where="post", color=SETPOINT, linewidth=1.0
        )
        speed.set_ylim(0.0, 1.1 * max(float(speeds.max()), 1e-3))
    speed.set(xlabel="time (s)", ylabel="speed (m/s)")

    for axes in (above, side, speed):
        axes.grid(color=GRID)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(buffer := io.BytesIO(), format=file.suffix[1:].lower(), dpi=150)
    write_file(path, buffer.getvalue())


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
            with replacing(paths[-1], follow_links=False) as new:
                drawing.save(new, kind)
    return paths


def _drawings(evaluation: Evaluation, summary: Summary) -> dict[str, Drawing]:
    stamps, error = evaluation.log.stamp, evaluation.budget.tracking.distance * 1e3
    shown = worth_showing(error_panels(evaluation, summary))
    panels = [
        replace(panel, lines=[line for line in panel.lines if line.values.max() > ROUNDING])
        for panel in shown
    ]
    errors = Chart(panels, stamps, 60 + 160 * len(panels)).drawn(WIDTH, _LEGEND)
    lines = {line.name: line for panel in panels for line in panel.lines}.values()
    errors.legend([(line.name, line.colour, line.dash) for line in lines])
    styles = {
        "reference": (REFERENCE, 4.0),
        "setpoint": (SETPOINT, 2.0),
        "attained": (ATTAINED, 1.0),
    }
    curves = [
        Curve(name, getattr(evaluation, name)[:, :3] * 1e3, *style)
        for name, style in styles.items()
    ]
    reference = curves[0].positions
    mapped, _, best, _ = draw_error_map(reference, error, WIDTH, 280)
    contour = Chart(contour_panels(evaluation), stamps, 300).drawn(WIDTH)
    found = {"errors": errors, "contour": contour, "map": mapped}
    for view in VIEWS:
        marks = [(reference[0], "o"), (reference[error.argmax()], "X")]
        drawing, _, frame = draw_view(view, curves, marks, _LEGEND // 2, WIDTH)
        # Axes that need an explanation are for the page.
        if view == best or not frame.notes:
            drawing.legend([(curve.name, curve.colour, "") for curve in curves])
            found[f"path-{view.letters}"] = drawing
    return found
