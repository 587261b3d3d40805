"""Draws the figures of solvers.html: error, smoothness and time on streams, and worst moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import LogLocator, NullLocator

from simbridge.experiments.outcome import solver_colour
from simbridge.experiments.suite.answers import stream_acceleration, stream_error
from simbridge.experiments.suite.results import MotionResult, SuiteResults
from simbridge.experiments.suite.summary import summarize_solver
from simbridge.report.drawing import Drawing, mark, plain_numbers
from simbridge.report.palette import INK, REFERENCE
from simbridge.report.rendering import CaptionedDrawing
from simbridge.robot.pose import Array
from simbridge.text import millimetres, significant

# Width of the figure of error, smoothness and time, pixels.
TRADE_WIDTH = 620
# Height of that figure, pixels.
TRADE_HEIGHT = 340
# Margins of that figure: left, bottom, right and top, pixels.
TRADE_MARGINS = (44, 44, 16, 26)
# Space around the points of that figure, as a fraction of their extent along each axis.
SPACE_AROUND_POINTS = 0.12
# Area of the marker of the fastest solver, pixels^2. The area grows by as much for each factor of
# ten in time.
MARKER_AREA = 30.0
# Largest distance of the points of solvers that share a label, as fractions of the two axes.
LABEL_DISTANCE = np.array([0.06, 0.05])
# Height of a label, as a fraction of the vertical axis: labels are moved upwards until they do not
# overlap.
LABEL_HEIGHT = 0.055
# Horizontal position to the right of which a label is on the left of its point, as a fraction.
LABEL_FLIP = 0.6
# Smallest error that is drawn, mm; smaller ones are drawn as this one, since they are exact.
SMALLEST_ERROR = 1e-3
# Largest number of names in a label.
MAX_NAMES = 3

# Width of the picture of a worst moment, pixels.
WORST_WIDTH = 200
# Height of the picture of a worst moment, pixels.
WORST_HEIGHT = 140
# Margins of that picture: left, bottom, right and top, pixels.
WORST_MARGINS = (2, 2, 2, 2)
# Fraction of the axes that is empty on each side of the paths.
SPACE_BESIDE_PATHS = 0.12
# Half the smallest width that a picture shows, mm: a rounding error must not fill it.
MIN_HALF_WIDTH = 0.5


@dataclass(frozen=True)
class TradePoint:
    """A solver's trade-off between error, smoothness and time on the streams.

    Attributes:
        solver: Name of the solver.
        error: RMS error to the ideal motion, at least SMALLEST_ERROR, mm.
        acceleration: RMS joint acceleration, as a share of the limit.
        time: Median time per call, µs.
    """

    solver: str
    error: float
    acceleration: float
    time: float


def draw_trade(results: SuiteResults) -> CaptionedDrawing | None:
    """Draw the trade-off between error, smoothness and time of each solver on the streams.

    None if no solver has results on streams.
    """
    points = _list_trade_points(results)
    if not points:
        return None

    # A disc for each solver, whose area shows the time.
    drawing = Drawing(TRADE_WIDTH, TRADE_HEIGHT)
    axes = drawing.axes(*TRADE_MARGINS)
    fastest = min(point.time for point in points)
    for point in points:
        area = MARKER_AREA * (1.0 + math.log10(point.time / fastest))
        axes.scatter(
            point.acceleration,
            point.error,
            s=area,
            color=solver_colour(point.solver),
            alpha=0.8,
            linewidths=0.0,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(SPACE_AROUND_POINTS)
    # Settle the limits of the axes now: the positions of the labels are computed from them.
    axes.autoscale_view()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(plain_numbers())
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("RMS joint acceleration, share of the limit (lower is smoother)")
    axes.set_title("RMS error to the ideal motion (mm)", loc="left")

    # Labels, at positions from 0 to 1 along the axes, on the side of their points with more room.
    pixels = axes.transData.transform([(point.acceleration, point.error) for point in points])
    positions = axes.transAxes.inverted().transform(pixels)
    for position, text in _place_labels(points, positions):
        is_left_of_point = position[0] > LABEL_FLIP
        axes.annotate(
            text,
            (float(position[0]), float(position[1])),
            xycoords="axes fraction",
            xytext=(-8 if is_left_of_point else 8, 0),
            textcoords="offset points",
            ha="right" if is_left_of_point else "left",
            va="center",
            color=INK,
        )

    best = min(points, key=lambda point: point.error)
    label = (
        "Error over smoothness of each solver on the streams; the smallest error is "
        f"{significant(best.error)} mm, of {best.solver}"
    )
    return CaptionedDrawing(
        "Error, smoothness and time on streams",
        drawing.svg("trade", label),
        ["Medians over the streams. The larger the disc, the longer a call takes."],
    )


def _list_trade_points(results: SuiteResults) -> list[TradePoint]:
    """Return a point for each solver that has results on streams."""
    points = []
    for solver in results.solvers:
        error = stream_error(results, solver.name)
        acceleration = stream_acceleration(results, solver.name)
        time = summarize_solver(results, solver.name).median_time_s
        # A logarithmic axis has no zero.
        if error is not None and acceleration and time:
            shown_error = max(1e3 * error, SMALLEST_ERROR)
            points.append(TradePoint(solver.name, shown_error, acceleration, 1e6 * time))
    return points


def _place_labels(points: Sequence[TradePoint], positions: Array) -> list[tuple[Array, str]]:
    """Return the positions (2,) and the texts of labels, as fractions of the axes.

    Solvers next to each other share a label. Labels are moved upwards to keep them apart.

    Args:
        points: The solvers.
        positions: Positions of the points (K, 2), as fractions of the axes.
    """
    # Groups of solvers: the position of the first one, and all names.
    groups: list[tuple[Array, list[str]]] = []
    for point, position in zip(points, positions, strict=True):
        for group_position, names in groups:
            if (np.abs(group_position - position) < LABEL_DISTANCE).all():
                names.append(point.solver)
                break
        else:
            groups.append((position, [point.solver]))

    # A label for each group, from the lowest to the highest.
    labels = []
    lowest_free = -math.inf
    for (x, y), names in sorted(groups, key=lambda group: float(group[0][1])):
        text = ", ".join(names[:MAX_NAMES])
        if len(names) > MAX_NAMES:
            text += f" + {len(names) - MAX_NAMES}"
        height = max(float(y), lowest_free)
        labels.append((np.array([x, height]), text))
        lowest_free = height + LABEL_HEIGHT
    return labels


def draw_worst_moment(result: MotionResult) -> CaptionedDrawing:
    """Draw target and tool around the largest error of a solver on a motion.

    The view is along the direction in which the two paths extend least.
    """
    # Project both paths, mm, on the two directions in which they extend most.
    target = 1e3 * np.array(result.worst.target_m)
    tool = 1e3 * np.array(result.worst.tool_m)
    both = np.concatenate([target, tool])
    centre = 0.5 * (both.min(axis=0) + both.max(axis=0))
    _, _, directions = np.linalg.svd(both - centre, full_matrices=False)
    view = directions[:2].T
    target_points = (target - centre) @ view
    tool_points = (tool - centre) @ view
    errors = np.linalg.norm(target - tool, axis=1)
    worst = int(np.argmax(errors))

    drawing = Drawing(WORST_WIDTH, WORST_HEIGHT)
    axes = drawing.axes(*WORST_MARGINS)
    axes.set_axis_off()
    axes.plot(*target_points.T, color=REFERENCE, linewidth=5.0, solid_capstyle="round")
    axes.plot(*tool_points.T, color=solver_colour(result.solver), linewidth=1.8)
    axes.plot(
        [target_points[worst, 0], tool_points[worst, 0]],
        [target_points[worst, 1], tool_points[worst, 1]],
        color=INK,
        linewidth=1.0,
    )
    mark(axes, tool_points[worst], "o")

    # The view shows both paths with a margin, at the same scale along both axes.
    points = np.concatenate([target_points, tool_points])
    half_extent = 0.5 * np.ptp(points, axis=0)
    middle = points.min(axis=0) + half_extent
    aspect = WORST_WIDTH / WORST_HEIGHT
    half_width = max(half_extent[0], half_extent[1] * aspect, MIN_HALF_WIDTH)
    half_width /= 1.0 - 2.0 * SPACE_BESIDE_PATHS
    half_height = half_width / aspect
    axes.set_xlim(middle[0] - half_width, middle[0] + half_width)
    axes.set_ylim(middle[1] - half_height, middle[1] + half_height)

    error = f"{millimetres(result.error.max_m)} mm"
    text = f"{result.solver}: {error} at {significant(result.worst.time_s)} s"
    return CaptionedDrawing(
        result.motion,
        drawing.svg(f"worst-{result.motion}", f"{result.motion}, {text}"),
        [text],
    )
