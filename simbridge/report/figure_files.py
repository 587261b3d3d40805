"""Figures as files: of an inspected trajectory, and of runs for a paper.

Those for a paper fill a column of 88 mm with 8-point text.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simbridge.errors import OutputError, UnknownName
from simbridge.evaluation.comparison import Comparison
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import Summary
from simbridge.files.writing import replacing, write_file, writing
from simbridge.report import compare_charts
from simbridge.report.charts import Chart
from simbridge.report.compare_charts import chart_of, paths_of, run_legend
from simbridge.report.drawing import Drawing, drawing_style
from simbridge.report.over_time import ROUNDING, contour_panels, error_panels, worth_showing
from simbridge.report.palette import ALARM, ATTAINED, GRID, REFERENCE, SETPOINT
from simbridge.report.paths import VIEWS, DrawnPath, draw_error_map, draw_view
from simbridge.robot.pose import Array
from simbridge.trajectory.trajectory import Trajectory

# Suffixes of the pictures of a trajectory.
PICTURES = (".png", ".svg", ".pdf")
# More points than a picture of this width can show.
MAX_POINTS = 20_000
# Upper end of the speed's axis, in largest speeds; and the least speed for which it is made, m/s.
SPEED_MARGIN = 1.1
MIN_SPEED = 1e-3

# Formats of the figures for a paper.
FORMATS = ("svg", "pdf")
# Width of a figure, in the pixels of a drawing: 8 points of text are 11 of them.
WIDTH = 343
# Heights, in the same pixels: of the legend, the map and the contour error; of the errors what a
# panel takes, and what axes and legend take.
LEGEND_HEIGHT = 44
# Height of a line of a legend whose entries stand below each other, pixels.
LEGEND_LINE = 15
MAP_HEIGHT = 280
CONTOUR_HEIGHT = 300
PANEL_HEIGHT = 160
ERRORS_HEIGHT = 60
# The paths of a run: colour and width.
PATH_STYLES = {
    "reference": (REFERENCE, 4.0),
    "setpoint": (SETPOINT, 2.0),
    "attained": (ATTAINED, 1.0),
}


def draw_trajectory(
    path: str | Path, trajectory: Trajectory, attained: NDArray[np.bool_] | None, title: str
) -> None:
    """Write a picture of a trajectory, in the format of its suffix.

    It shows the path from above and from the side or the front, and the speed over time.

    Args:
        path: The file, .png, .svg or .pdf; an existing one is replaced.
        trajectory: The trajectory in base_link.
        attained: True for each sample (T,) that the arm can attain; None when unknown.
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
    top_view = figure.add_subplot(2, 2, 1)
    side_view = figure.add_subplot(2, 2, 2)
    speed = figure.add_subplot(2, 1, 2)

    samples = _spread_evenly(len(trajectory.times))
    points = trajectory.poses[samples, :3]
    is_missed = np.zeros(len(samples), dtype=bool)
    if attained is not None:
        is_missed = ~attained[samples]
    _draw_points(top_view, points, is_missed, right=0, up=1)
    top_view.set_title("from above")
    # The view from the side looks along y: a motion along y alone would be a point in it.
    extent = np.ptp(points[:, :2], axis=0)
    if extent[1] > 2.0 * extent[0]:
        _draw_points(side_view, points, is_missed, right=1, up=2)
        side_view.set_title("from the front")
    else:
        _draw_points(side_view, points, is_missed, right=0, up=2)
        side_view.set_title("from the side")
    _draw_speed(speed, trajectory)

    for axes in (top_view, side_view, speed):
        axes.grid(color=GRID)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=file.suffix[1:].lower(), dpi=150)
    write_file(path, buffer.getvalue())


def _spread_evenly(count: int) -> NDArray[np.intp]:
    """Return the indices of as many of some points as a picture can show."""
    return np.unique(np.linspace(0, count - 1, MAX_POINTS).astype(int))


def _draw_points(
    axes: Axes, points: Array, is_missed: NDArray[np.bool_], *, right: int, up: int
) -> None:
    """Draw a path from one side.

    Args:
        axes: The axes to draw on.
        points: Positions (K, 3), m.
        is_missed: True for each point (K,) that the arm cannot attain.
        right: Index of the coordinate that points right.
        up: Index of the coordinate that points up.
    """
    axes.plot(points[:, right], points[:, up], color=SETPOINT, linewidth=1.2)
    axes.plot(
        points[0, right],
        points[0, up],
        "o",
        color=SETPOINT,
        markersize=6,
        label="start",
        zorder=3,
    )
    if is_missed.any():
        missed = points[is_missed]
        axes.plot(
            missed[:, right],
            missed[:, up],
            ".",
            color=ALARM,
            markersize=5,
            label="out of reach",
        )
    axes.set(xlabel=f"{'xyz'[right]} (m)", ylabel=f"{'xyz'[up]} (m)")
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.1)
    axes.legend(fontsize=8, frameon=False)


def _draw_speed(axes: Axes, trajectory: Trajectory) -> None:
    """Draw the speed of a trajectory over time."""
    durations = np.diff(trajectory.elapsed)
    # A trajectory of one sample has no speed.
    if len(durations):
        distances = np.linalg.norm(np.diff(trajectory.poses[:, :3], axis=0), axis=1)
        speeds = distances / durations
        samples = _spread_evenly(len(durations))
        axes.step(
            trajectory.elapsed[samples],
            speeds[samples],
            where="post",
            color=SETPOINT,
            linewidth=1.0,
        )
        axes.set_ylim(0.0, SPEED_MARGIN * max(float(speeds.max()), MIN_SPEED))
    axes.set(xlabel="time (s)", ylabel="speed (m/s)")


def write_figures(evaluation: Evaluation, summary: Summary, folder: Path, kind: str) -> list[Path]:
    """Write the figures of a run for a paper.

    They are errors, contour, map, and path-xy, path-xz, path-yz where the path is not flat.

    Args:
        evaluation: The run.
        summary: The run's numbers.
        folder: The folder of the files, which is made where it is missing.
        kind: One of `FORMATS`.

    Returns:
        The files.

    Raises:
        OutputError: A file cannot be written.
    """
    with drawing_style(paper=True):
        return _save(_drawings(evaluation, summary), folder, kind)


def write_comparison_figures(comparison: Comparison, folder: Path, kind: str) -> list[Path]:
    """Write the figures of compared runs for a paper.

    They are errors, contour, separation, and path-xy, path-xz, path-yz where the path is not flat.

    Args:
        comparison: The runs.
        folder: The folder of the files, which is made where it is missing.
        kind: One of `FORMATS`.

    Returns:
        The files.

    Raises:
        OutputError: A file cannot be written.
    """
    legend = [(entry.name, entry.colour, entry.kind) for entry in run_legend(comparison)]
    panels = {
        "errors": compare_charts.error_panels(comparison),
        "contour": compare_charts.contour_panels(comparison),
        "separation": compare_charts.separation_panels(comparison),
    }
    head = LEGEND_LINE * len(legend)

    with drawing_style(paper=True):
        drawings: dict[str, Drawing] = {}
        for name, shown in panels.items():
            if shown:
                height = ERRORS_HEIGHT + PANEL_HEIGHT * len(shown) + head
                drawings[name] = chart_of(comparison, shown, height).draw(WIDTH, head)
        paths = [replace(path, width=0.5 * path.width) for path in paths_of(comparison)]
        for view in VIEWS:
            drawing, _, frame = draw_view(view, paths, (), head=head, width=WIDTH)
            if not frame.notes:
                drawings[f"path-{view.letters}"] = drawing

        for drawing in drawings.values():
            # Labels of runs are long: each has a line.
            drawing.legend(legend, columns=1)
        return _save(drawings, folder, kind)


def check_figure_format(kind: str) -> None:
    """Refuse a format in which no figures are written.

    Raises:
        UnknownName: It is not one of `FORMATS`.
    """
    if kind not in FORMATS:
        raise UnknownName("format", kind, FORMATS)


def _save(drawings: Mapping[str, Drawing], folder: Path, kind: str) -> list[Path]:
    """Write drawings by the names of their files, in the style that is set; return the files."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)

    files = []
    for name, drawing in drawings.items():
        file = folder / f"{name}.{kind}"
        files.append(file)
        with replacing(file, follow_links=False) as new:
            drawing.save(new, kind)
    return files


def _drawings(evaluation: Evaluation, summary: Summary) -> dict[str, Drawing]:
    """Return the figures of a run by the names of their files."""
    stamps = evaluation.log.stamp
    error = evaluation.budget.tracking.distance * 1e3
    # The paths have the names of the evaluation's attributes; the reference is the first.
    paths = []
    for name, (colour, width) in PATH_STYLES.items():
        positions = getattr(evaluation, name)[:, :3] * 1e3
        paths.append(DrawnPath(name, positions, colour, width))
    reference = paths[0].positions

    errors = _draw_errors(evaluation, summary)
    error_map = draw_error_map(reference, error, width=WIDTH, height=MAP_HEIGHT)
    contour = Chart(contour_panels(evaluation), stamps, CONTOUR_HEIGHT).draw(WIDTH)
    drawings = {"errors": errors, "contour": contour, "map": error_map.drawing}

    marks = [(reference[0], "o"), (reference[error.argmax()], "X")]
    for view in VIEWS:
        drawing, _, frame = draw_view(view, paths, marks, head=LEGEND_HEIGHT // 2, width=WIDTH)
        # A view whose axes need an explanation is left to the page, unless it is that of the map.
        if view == error_map.view or not frame.notes:
            drawing.legend([(path.name, path.colour, "") for path in paths])
            drawings[f"path-{view.letters}"] = drawing
    return drawings


def _draw_errors(evaluation: Evaluation, summary: Summary) -> Drawing:
    """Draw the tracking error and its parts over time, without those that are rounding."""
    panels = []
    for panel in worth_showing(error_panels(evaluation, summary)):
        lines = [line for line in panel.lines if line.values.max() > ROUNDING]
        panels.append(replace(panel, lines=lines))

    height = ERRORS_HEIGHT + PANEL_HEIGHT * len(panels)
    drawing = Chart(panels, evaluation.log.stamp, height).draw(WIDTH, LEGEND_HEIGHT)
    # Panels share names.
    lines_by_name = {line.name: line for panel in panels for line in panel.lines}
    drawing.legend([(line.name, line.colour, line.dash) for line in lines_by_name.values()])
    return drawing
