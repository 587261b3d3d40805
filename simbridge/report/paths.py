"""The path of the TCP on the pages.

It is drawn from three sides, coloured by the tracking error, and close to its worst sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator

from simbridge.evaluation.evaluation import Evaluation
from simbridge.report.charts import cut_evenly, decimate_path, path_map
from simbridge.report.drawing import Drawing, as_written, dots, few_ticks, mark, plain_numbers
from simbridge.report.palette import ATTAINED, REFERENCE, SETPOINT, TRACKING
from simbridge.report.rendering import CaptionedDrawing
from simbridge.report.ticks import draw_ticks
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, SMALLEST, millimetres, plain, significant

# A path this many times longer than thick would look like a line: its thin side is magnified.
FLATNESS_RATIO = 20.0
# Ratio of the height of a magnified side's axis to that of the path.
THIN_SIDE_MARGIN = 1.3
# Ratio of the extent that the axes show to that of the path.
MARGIN = 1.16
# Extent of a path below which nothing has moved, mm.
STATIONARY_MM = 1e-3
# Smallest extent that axes show, mm.
MIN_SHOWN_SPAN_MM = 10.0 * STATIONARY_MM
# Axes that show less than this, in mm, count from the path instead of from base_link.
RELATIVE_BELOW_MM = 5.0
# A long path is drawn by the outermost points of this many pieces.
PIECES = 600
# Size of a view, pixels.
WIDTH = 348
HEIGHT = 310
# Size of the map and of the worst sample, pixels.
HALF_WIDTH = 531
HALF_HEIGHT = 410
# Margins of a view: left, bottom, right, top, pixels.
MARGINS = (54, 40, 18, 24)
# Margins of the map, which has its scale of colours at the right.
MAP_MARGINS = (54, 40, 100, 24)
# Margins of that scale, and its width, pixels.
SCALE_BOTTOM = 60
SCALE_RIGHT = 58
SCALE_TOP = 28
SCALE_WIDTH = 18
# More colours than this cannot be distinguished.
LEVELS = 8
# From this ratio of the largest error to the median on, the colours are spaced by ratios.
PEAK_RATIO = 20.0
# Width of the path on the map where the error is smallest, and what is added at its largest,
# pixels.
MAP_WIDTH = 3.0
MAP_EXTRA_WIDTH = 2.0
# Half the height of the worst sample's window, in lengths of the error.
WINDOW_ERRORS = 2.0
# Half that height is at most this many extents of the whole path, as long as the error fits: the
# least, in lengths of the error, comes first.
MAX_WINDOW_EXTENT = 0.6
MIN_WINDOW_ERRORS = 0.7
# The window of a smaller error is that of this one, mm.
MIN_SHOWN_ERROR_MM = 1e-4
# Curves are drawn in this many times the window's width and height, so that they leave the window.
DRAWN_WINDOWS = 1.2
# If a smaller fraction of the error is visible in the window's plane, a note says so.
VISIBLE_FRACTION = 0.97
# More dots than this in the window would look like a line.
MAX_DOTS = 80
# Points that are drawn of the continuous reference for each sample.
POINTS_PER_SAMPLE = 10
# A squared length that divides in place of zero, mm^2.
LEAST_SQUARE_MM2 = 1e-30
# The coordinates' letters.
XYZ = "xyz"


@dataclass(frozen=True, eq=False)
class DrawnPath:
    """A path of the TCP, and how it is drawn.

    Attributes:
        name: The name in labels and legends.
        positions: Positions of the TCP (T, 3) in base_link, mm.
        colour: The colour as CSS names it.
        width: Width of the line, pixels.
    """

    name: str
    positions: Array
    colour: str
    width: float


class View(NamedTuple):
    """A direction of view.

    Attributes:
        title: The direction as a title, such as "From above".
        pick: Indices of the coordinates that point right and up.
        letters: The letters of both.
    """

    title: str
    pick: list[int]
    letters: str


VIEWS = (
    View("From above", [0, 1], "xy"),
    View("From the side", [0, 2], "xz"),
    View("From the front", [1, 2], "yz"),
)

# The lower and the upper end of the horizontal axis, then of the vertical axis, mm.
Limits: TypeAlias = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Frame:
    """The rectangle that the axes of a view show, mm.

    Attributes:
        limits: Ends of both axes, relative to their origin.
        origin: Coordinates from which both axes count, in base_link.
        notes: Sentences that a reader of the axes needs.
    """

    limits: Limits
    origin: tuple[float, float]
    notes: tuple[str, ...] = ()


class ErrorMap(NamedTuple):
    """A drawn map of the reference, coloured by the tracking error.

    Attributes:
        drawing: The drawing, with the scale of the colours.
        axes: The axes of the map.
        view: The direction of view.
        frame: The rectangle that the axes show.
    """

    drawing: Drawing
    axes: Axes
    view: View
    frame: Frame


def frame_points(view: View, points: Array, start: Array, *, width: float, height: float) -> Frame:
    """Fit axes with equal scales around points; the thin side of a flat path is magnified.

    Args:
        view: The direction of view.
        points: Positions (K, 3), mm.
        start: The position (3,), mm, from which axes count that show only a few mm.
        width: Width of the axes, pixels.
        height: Height of the axes, pixels.
    """
    letters = view.letters
    size = np.array([width, height])
    seen = points[:, view.pick]
    low = seen.min(axis=0)
    high = seen.max(axis=0)
    spans = np.maximum(high - low, 0.0)
    notes: list[str] = []

    # The scale that each axis needs, with a margin, mm per pixel. Both axes get the larger one; the
    # thin side of a flat path gets a smaller one, and a note says so.
    needed_scale = MARGIN * np.maximum(spans, MIN_SHOWN_SPAN_MM) / size
    scale = np.full(2, needed_scale.max())
    if spans.max() < STATIONARY_MM:
        notes.append("It does not move.")
    else:
        thin = int(np.argmin(needed_scale))
        magnification = scale[thin] / needed_scale[thin]
        if magnification > FLATNESS_RATIO:
            scale[thin] = THIN_SIDE_MARGIN * needed_scale[thin]
            notes.append(
                _flatness(letters[thin], float(spans[thin]), magnification / THIN_SIDE_MARGIN)
            )

    # Axes that show only a few mm count from the start, so that their numbers stay short.
    half_size = 0.5 * scale * size
    origin = np.where(2.0 * half_size < RELATIVE_BELOW_MM, start[view.pick], 0.0)
    for axis in np.flatnonzero(origin):
        value = f"{significant(origin[axis], 6, 3)}{NO_BREAK}mm"
        notes.append(f"Δ{letters[axis]} is relative to {letters[axis]} = {value}.")

    limits = _limits(0.5 * (low + high) - origin, half_size)
    return Frame(limits, (float(origin[0]), float(origin[1])), tuple(notes))


def _limits(centre: Array, half_size: Array) -> Limits:
    """Return the limits of axes around a centre (2,), with half their width and height (2,), mm."""
    low = centre - half_size
    high = centre + half_size
    return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))


def _flatness(letter: str, span: float, magnification: float) -> str:
    """Say how flat a path is, as a sentence.

    Args:
        letter: Letter of the thin side's coordinate.
        span: Extent of the thin side, mm.
        magnification: Factor by which the thin side is magnified.
    """
    if span < STATIONARY_MM:
        return f"Flat in this view: {letter} does not change."
    within = f"{significant(span, 2)}{NO_BREAK}mm"
    factor = f"{float(f'{magnification:.2g}'):.0f}"
    return f"Flat in this view: {letter} varies by {within} and is magnified {factor} times."


def prepare_axes(axes: Axes, view: View, frame: Frame) -> None:
    """Set the limits of the axes of a view, and draw their ticks and labels."""
    axes.set_xlim(*frame.limits[0])
    axes.set_ylim(*frame.limits[1])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(few_ticks(5))
        axis.set_major_formatter(plain_numbers())

    labels = []
    for letter, origin in zip(view.letters, frame.origin, strict=True):
        labels.append(f"{'Δ' if origin else ''}{letter} (mm)")
    axes.set_xlabel(labels[0])
    # At the side of the axis it would overlap long numbers.
    axes.set_title(labels[1], loc="left", pad=6.0)
    draw_ticks([axes])


def three_views(
    paths: Sequence[DrawnPath],
    stamps: Array,
    columns: Mapping[str, Array] | None = None,
    marks: Sequence[tuple[Array, str]] = (),
) -> list[CaptionedDrawing]:
    """Draw paths from above, from the side and from the front.

    Args:
        paths: The paths in the order of drawing; the pointer shows values of the last one.
        stamps: Stamps (T,) of the last path, s.
        columns: Further values (T,) that the pointer shows, by "name|unit".
        marks: Positions (3,), mm, that are marked, each with its kind of mark (see `mark`).
    """
    columns = columns or {}
    last = paths[-1]
    figures = []
    for view in VIEWS:
        drawing, axes, frame = draw_view(view, paths, marks)

        # The values that the pointer shows along the last path.
        points = last.positions[:, view.pick] - frame.origin
        shown = decimate_path(points, PIECES)
        values = {}
        for i in view.pick:
            values[f"{last.name} {XYZ[i]}|{NO_BREAK}mm"] = last.positions[shown, i]
        for name, column in columns.items():
            values[name] = column[shown]

        drawn = drawing.svg(f"view-{view.letters}", _view_label(view, paths, columns))
        mapped = path_map(drawn, drawing.to_pixels(axes, points[shown]), stamps[shown], values)
        figures.append(CaptionedDrawing(view.title, mapped, frame.notes))
    return figures


def _view_label(view: View, paths: Sequence[DrawnPath], columns: Mapping[str, Array]) -> str:
    """Return a text in place of a view, for those who do not see it."""
    names = ", ".join(path.name for path in paths)
    parts = [f"{names}: path {view.title.lower()}, the {view.letters} plane in mm"]

    points = extremes(paths)
    for i, letter in zip(view.pick, view.letters, strict=True):
        low = significant(points[:, i].min())
        high = significant(points[:, i].max())
        parts.append(f"{letter} from {low} to {high}")
    for name, column in columns.items():
        low = significant(column.min())
        high = significant(column.max())
        parts.append(f"{name.replace('|', ' from ')} {low} to {high}")
    return "; ".join(parts)


def extremes(paths: Sequence[DrawnPath]) -> Array:
    """Return the smallest and the largest coordinates of each of K paths (2 K, 3), mm."""
    corners = []
    for path in paths:
        corners.append(path.positions.min(axis=0))
        corners.append(path.positions.max(axis=0))
    return np.array(corners)


def draw_view(
    view: View,
    paths: Sequence[DrawnPath],
    marks: Sequence[tuple[Array, str]],
    *,
    head: int = 0,
    width: int = WIDTH,
) -> tuple[Drawing, Axes, Frame]:
    """Draw paths from one side.

    Args:
        view: The direction of view.
        paths: The paths in the order of drawing.
        marks: Positions (3,), mm, that are marked, each with its kind of mark (see `mark`).
        head: Height of the room for a legend above the view, pixels.
        width: Width of the drawing, pixels.

    Returns:
        The drawing, its axes, and the rectangle that they show, from whose origin they count.
    """
    left, bottom, right, top = MARGINS
    frame = frame_points(
        view,
        extremes(paths),
        paths[0].positions[0],
        width=width - left - right,
        height=HEIGHT - bottom - top,
    )
    drawing = Drawing(width, HEIGHT + head)
    axes = drawing.axes(left, bottom, right, top + head)
    prepare_axes(axes, view, frame)

    for path in paths:
        points = path.positions[:, view.pick] - frame.origin
        shown = decimate_path(points, PIECES)
        axes.plot(
            *points[shown].T,
            color=path.colour,
            linewidth=path.width,
            # A path of few samples has a dot at each.
            marker=dots(len(points)),
        )
    for point, kind in marks:
        mark(axes, point[view.pick] - frame.origin, kind)
    return drawing, axes, frame


def error_map(reference: Array, error: Array, stamps: Array) -> CaptionedDrawing:
    """Draw the reference, coloured by the tracking error.

    Args:
        reference: Positions of the reference (T, 3), mm.
        error: Tracking error (T,), mm.
        stamps: Stamps (T,), s.
    """
    drawn_map = draw_error_map(reference, error)
    view = drawn_map.view
    points = reference[:, view.pick] - drawn_map.frame.origin
    shown = decimate_path(points, PIECES)
    columns = {f"error|{NO_BREAK}mm": error[shown]}
    for i in range(3):
        columns[f"{XYZ[i]}|{NO_BREAK}mm"] = reference[shown, i]

    label = (
        f"The path in the {view.letters} plane, coloured by the tracking error, "
        f"{significant(error.min())} to {significant(error.max())} mm, the largest at "
        f"{stamps[error.argmax()]:.2f} s"
    )
    svg = drawn_map.drawing.svg("map", label, paper=True)
    pixels = drawn_map.drawing.to_pixels(drawn_map.axes, points[shown])
    mapped = path_map(svg, pixels, stamps[shown], columns)
    return CaptionedDrawing(
        f"Tracking error along the path, {view.title.lower()}", mapped, drawn_map.frame.notes
    )


def draw_error_map(
    reference: Array, error: Array, *, width: int = HALF_WIDTH, height: int = HALF_HEIGHT
) -> ErrorMap:
    """Draw the map with its scale, in the view that shows most of the path.

    Args:
        reference: Positions of the reference (T, 3), mm.
        error: Tracking error (T,), mm.
        width: Width of the drawing, pixels.
        height: Height of the drawing, pixels.
    """
    extent = np.ptp(reference, axis=0)
    view = max(VIEWS, key=lambda view: (min(extent[view.pick]), sum(extent[view.pick])))
    left, bottom, right, top = MAP_MARGINS
    frame = frame_points(
        view,
        reference,
        reference[0],
        width=width - left - right,
        height=height - bottom - top,
    )
    drawing = Drawing(width, height)
    axes = drawing.axes(left, bottom, right, top)
    prepare_axes(axes, view, frame)

    edges = colour_steps(error)
    points = reference[:, view.pick] - frame.origin
    _draw_coloured_path(axes, points, error, edges=edges)
    mark(axes, points[0], "o")
    mark(axes, points[np.argmax(error)], "X")

    scale_left = width - SCALE_RIGHT - SCALE_WIDTH
    _draw_scale(drawing.axes(scale_left, SCALE_BOTTOM, SCALE_RIGHT, SCALE_TOP), edges)
    return ErrorMap(drawing, axes, view=view, frame=frame)


def _draw_coloured_path(axes: Axes, points: Array, error: Array, *, edges: Array) -> None:
    """Draw a path, wider and in another colour where its error is larger.

    Args:
        axes: The axes to draw on.
        points: Positions in the view (T, 2), relative to the axes' origin, mm.
        error: Tracking error (T,), mm.
        edges: The errors at which the colour changes, mm.
    """
    # The number of each sample's colour: that of the step between the edges around its error.
    step_numbers = np.searchsorted(edges, _largest_of_pieces(error)) - 1
    colour_numbers = np.clip(step_numbers, 0, len(edges) - 2)

    shown = decimate_path(points, PIECES)
    path_colours = colours(edges)
    for number, colour in enumerate(path_colours):
        has_colour = colour_numbers[shown] == number
        # A piece of the path ends where the next one begins.
        has_colour[1:] |= has_colour[:-1]
        # The line has gaps where points are nan: where the path has another colour.
        coloured_points = np.where(has_colour[:, None], points[shown], np.nan)
        axes.plot(
            *coloured_points.T,
            color=colour,
            linewidth=MAP_WIDTH + MAP_EXTRA_WIDTH * number / len(path_colours),
            # A path of few samples has a dot at each.
            marker=dots(len(error)),
            solid_capstyle="round",
        )


def _draw_scale(bar: Axes, edges: Array) -> None:
    """Draw the colours above each other, with the errors at which they change, mm."""
    shades = colours(edges)
    steps = np.arange(len(shades))
    bar.bar(np.zeros(len(steps)), np.ones(len(steps)), width=1.0, bottom=steps, color=shades)
    bar.set_xlim(-0.5, 0.5)
    bar.set_ylim(0, len(steps))
    bar.grid(False)
    bar.set_xticks([])
    bar.yaxis.tick_right()
    bar.set_yticks(range(len(edges)), edge_names(edges))
    bar.spines[:].set_visible(False)
    bar.set_title("mm", loc="left")


def _largest_of_pieces(error: Array) -> Array:
    """Return for each sample the largest error of its piece of the path (T,).

    A short path is cut into its samples.
    """
    pieces = cut_evenly(error, PIECES)
    return np.repeat(pieces.max(axis=1), pieces.shape[1])[: len(error)]


def colours(edges: Array) -> list[tuple[float, ...]]:
    """Return red, green, blue and opacity, 0 to 1, of every step between two edges."""
    shades = matplotlib.colormaps["viridis_r"](np.linspace(0.06, 1.0, len(edges) - 1))
    return [tuple(shade) for shade in shades]


def colour_steps(error: Array) -> Array:
    """Return the errors at which the colour changes, mm: round numbers, from 0 to the largest.

    They are evenly spaced, unless a few peaks would then leave everything else in the first colour.

    Args:
        error: Tracking error (T,), mm.
    """
    worst = float(error.max())
    if worst < SMALLEST:
        return np.array([0.0, SMALLEST])

    if worst <= PEAK_RATIO * float(np.median(error)):
        locator = MaxNLocator(LEVELS, steps=(1.0, 2.0, 2.5, 5.0, 10.0))
        inner = np.array(locator.tick_values(0.0, worst)[1:])
    else:
        least = max(float(np.percentile(error, 10.0)), 1e-5 * worst, SMALLEST)
        for mantissas in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
            ticks = np.array(LogLocator(subs=mantissas, numticks=100).tick_values(least, worst))
            inner = ticks[(ticks > least) & (ticks < worst)]
            if len(inner) < LEVELS:
                break
    # The last step must be wider than the rounding of the numbers beside it.
    return np.concatenate([[0.0], inner[inner < 0.98 * worst], [worst]])


def edge_names(edges: Array) -> list[str]:
    """Return errors, mm, as texts with three digits."""
    return [as_written(float(f"{edge:.3g}")) for edge in edges]


@dataclass(frozen=True, eq=False)
class WorstSample:
    """The sample with the largest tracking error, and the window around it.

    Attributes:
        index: Index of the sample.
        error: Reference minus attained (3,), mm.
        view: The view in which the window is drawn.
        origin: Position of the reference in the view (2,), mm, from which the axes count.
        limits: Ends of the axes, relative to the origin.
        rows: The samples within the window.
    """

    index: int
    error: Array
    view: View
    origin: Array
    limits: Limits
    rows: slice

    @property
    def length(self) -> float:
        """Length of the error, mm."""
        return float(np.linalg.norm(self.error))


def worst_sample(
    evaluation: Evaluation, reference: Array, setpoint: Array, *, attained: Array
) -> CaptionedDrawing:
    """Draw the neighbourhood of the worst sample, a few errors wide.

    It is drawn in the view that shows the error best.

    Args:
        evaluation: The run.
        reference: Positions of the reference (T, 3), mm.
        setpoint: Positions of the setpoint (T, 3), mm.
        attained: Attained positions (T, 3), mm.
    """
    worst = _find_worst(evaluation, reference, setpoint, attained=attained)
    view = worst.view
    has_dots = worst.rows.stop - worst.rows.start <= MAX_DOTS
    curves = [curve[:, view.pick] - worst.origin for curve in (reference, setpoint, attained)]
    path = _sample_reference(evaluation, worst.rows)[:, view.pick] - worst.origin
    drawing = _draw_worst(worst, curves, path, has_dots=has_dots)

    length = f"{millimetres(worst.length * 1e-3)}{NO_BREAK}mm"
    stamp = f"{evaluation.log.stamp[worst.index]:.3f}{NO_BREAK}s"
    caption = f"Worst sample: {length} at {stamp}, {view.title.lower()}"
    label = f"{caption}: reference, setpoint and attained path around it, in mm"

    coordinates = []
    for letter, value in zip(view.letters, worst.origin, strict=True):
        coordinates.append(f"{letter} = {significant(value, 7, 3)}{NO_BREAK}mm")
    notes = [
        f"Sample {worst.index} of {len(reference)}. Circles: the same instant on each curve; "
        "dashed: the error.",
        f"Δ is relative to the reference at that instant: {', '.join(coordinates)}.",
    ]
    visible = float(np.linalg.norm(worst.error[view.pick]))
    if visible < VISIBLE_FRACTION * worst.length:
        notes.append(f"{millimetres(visible * 1e-3)}{NO_BREAK}mm of the error are in this plane.")
    if has_dots:
        period = f"{plain(evaluation.plan.period * 1e3)}{NO_BREAK}ms"
        notes.append(f"One dot per sample, every {period}.")
    return CaptionedDrawing(caption, drawing.svg("worst", label), notes)


def _find_worst(
    evaluation: Evaluation, reference: Array, setpoint: Array, *, attained: Array
) -> WorstSample:
    """Find the worst sample, and the window around it.

    Args:
        evaluation: The run.
        reference: Positions of the reference (T, 3), mm.
        setpoint: Positions of the setpoint (T, 3), mm.
        attained: Attained positions (T, 3), mm.
    """
    k = int(np.argmax(evaluation.errors.tracking.distance))
    error = reference[k] - attained[k]

    # The window is a few errors high, but not much larger than the whole path; still, it holds the
    # error where that is longer than the path.
    shown_error = max(float(np.linalg.norm(error)), MIN_SHOWN_ERROR_MM)
    extent = float(max(np.ptp(reference, axis=0).max(), np.ptp(attained, axis=0).max()))
    half_height = min(WINDOW_ERRORS * shown_error, MAX_WINDOW_EXTENT * extent)
    half_height = max(half_height, MIN_WINDOW_ERRORS * shown_error)

    # Its width follows from the shape of the axes, since both have the same scale.
    left, bottom, right, top = MARGINS
    aspect = (HALF_WIDTH - left - right) / (HALF_HEIGHT - bottom - top)
    half_size = half_height * np.array([aspect, 1.0])

    # The axes count from the reference. The centre is in the middle of the error: half of it back
    # from the reference, since the error is reference minus attained.
    view = _best_view(reference, k, error, radius=half_height)
    origin = reference[k, view.pick]
    centre = -0.5 * error[view.pick]
    curves = [curve[:, view.pick] - origin for curve in (reference, setpoint, attained)]
    rows = _rows_within(curves, k, centre, half_size=DRAWN_WINDOWS * half_size)
    return WorstSample(
        index=k,
        error=error,
        view=view,
        origin=origin,
        limits=_limits(centre, half_size),
        rows=rows,
    )


def _draw_worst(
    worst: WorstSample, curves: Sequence[Array], path: Array, *, has_dots: bool
) -> Drawing:
    """Draw the window around the worst sample.

    Args:
        worst: The sample and its window.
        curves: Reference, setpoint and attained positions (T, 2) in the view, relative to the
            reference at the sample, mm.
        path: The continuous reference (K, 2) in the view, relative to the same position, mm.
        has_dots: True to draw a dot for each sample.
    """
    drawing = Drawing(HALF_WIDTH, HALF_HEIGHT)
    axes = drawing.axes(*MARGINS)
    origin = (float(worst.origin[0]), float(worst.origin[1]))
    prepare_axes(axes, worst.view, Frame(worst.limits, origin))

    # The curves.
    axes.plot(*path.T, color=REFERENCE, linewidth=8.0)
    for curve, colour, width in zip(curves[1:], (SETPOINT, ATTAINED), (4.5, 2.0), strict=True):
        axes.plot(
            *curve[worst.rows].T,
            color=colour,
            linewidth=width,
            marker="." if has_dots else None,
            markersize=6.0 + 1.5 * width,
        )

    # The error, and the same instant on each curve.
    right, up = worst.error[worst.view.pick]
    axes.plot([0.0, -right], [0.0, -up], color=TRACKING, linewidth=1.0, linestyle=(0, (4, 2)))
    for curve, colour in zip(curves, (REFERENCE, SETPOINT, ATTAINED), strict=True):
        axes.plot(
            *curve[worst.index],
            marker="o",
            markersize=8.0,
            color=colour,
            markeredgecolor=TRACKING,
            markeredgewidth=1.3,
        )
    return drawing


def _best_view(reference: Array, k: int, error: Array, *, radius: float) -> View:
    """Return the view along the direction in which error and path near a sample are smallest.

    Args:
        reference: Positions of the reference (T, 3), mm.
        k: Index of the sample.
        error: Error of the sample (3,), mm.
        radius: Half the height of the window, mm.
    """
    is_near = np.linalg.norm(reference - reference[k], axis=1) <= 2.0 * radius
    path = np.ptp(reference[is_near], axis=0)

    # The fractions of x, y and z in both, as squares: a view shows those of its two coordinates.
    fractions = []
    for extents in (error, path):
        fractions.append(extents**2 / max(float(extents @ extents), LEAST_SQUARE_MM2))
    weight = np.sum(fractions, axis=0)
    return max(VIEWS, key=lambda view: float(weight[view.pick].sum()))


def _rows_within(curves: Sequence[Array], k: int, centre: Array, *, half_size: Array) -> slice:
    """Return the samples around one, until all curves have left the window.

    Args:
        curves: Positions in the view (T, 2), mm.
        k: Index of the sample.
        centre: Centre of the window (2,), mm.
        half_size: Half of the window's width and height (2,), mm.
    """
    is_inside = [np.all(np.abs(curve - centre) <= half_size, axis=1) for curve in curves]
    outside = np.flatnonzero(~np.any(is_inside, axis=0))
    before = outside[outside < k]
    after = outside[outside > k]
    first = int(before[-1]) if len(before) else 0
    end = int(after[0]) + 1 if len(after) else len(curves[0])
    return slice(first, end)


def _sample_reference(evaluation: Evaluation, rows: slice) -> Array:
    """Return the continuous reference (K, 3), mm, over some samples.

    It is evaluated between them as well, where its corners lie.
    """
    times = evaluation.log.plan_time[rows]
    steps = np.linspace(0, len(times) - 1, POINTS_PER_SAMPLE * (len(times) - 1) + 1)
    finer_times = np.interp(steps, np.arange(len(times)), times)
    return evaluation.plan.trajectory.reference(finer_times)[:, :3] * 1e3
