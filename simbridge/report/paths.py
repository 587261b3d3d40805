"""The path of the TCP on the pages: from three sides, coloured by the tracking error, and close to its worst sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator

from simbridge.evaluation.evaluation import Evaluation
from simbridge.report.charts import decimated_path, path_map
from simbridge.report.drawing import Drawing, as_written, dots, few_ticks, mark, plain_numbers
from simbridge.report.palette import ATTAINED, REFERENCE, SETPOINT, TRACKING
from simbridge.report.rendering import Figure
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, SMALLEST, millimetres, plain, significant

# A path this many times longer than thick would be a line: its thin side is magnified.
FLAT = 20.0
# How much higher than the magnified path its axis is.
SLACK = 1.3
# Below this, in mm, nothing has moved.
STATIONARY = 1e-3
# Axes that show less than this, in mm, count from the path instead of from base_link.
RELATIVE = 5.0
# A long path is drawn by the outermost points of this many pieces.
PIECES = 600
# Sizes of a view, and of the map and the worst sample, in pixels.
WIDTH, HEIGHT = 348, 310
HALF_WIDTH, HALF_HEIGHT = 531, 410
# Left, bottom, right, top, in pixels.
MARGINS = (54, 40, 18, 24)
# More colours than this cannot be distinguished.
LEVELS = 8
# The height of the worst sample's window, in lengths of the error.
ERRORS_HIGH = 4.0
# More dots than this in the window would look like a line.
MAX_DOTS = 80
# Points drawn of the continuous reference, for each sample.
POINTS_PER_SAMPLE = 10


@dataclass(frozen=True, eq=False)
class Path:
    """Positions (T, 3) of the TCP in base_link, mm, and how they are drawn; the width in pixels."""

    name: str
    positions: Array
    colour: str
    width: float


class View(NamedTuple):
    """A direction of view: the coordinates that point right and up, as an index and as letters."""

    title: str
    pick: list[int]
    letters: str


VIEWS = (
    View("From above", [0, 1], "xy"),
    View("From the side", [0, 2], "xz"),
    View("From the front", [1, 2], "yz"),
)


Limits: TypeAlias = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Frame:
    """What the axes of a view show, in mm.

    Attributes:
        limits: Of both axes, relative to their origin.
        origin: What both axes count from; 0 for base_link.
        notes: What a reader has to know about the axes, as sentences.
    """

    limits: Limits
    origin: tuple[float, float]
    notes: tuple[str, ...] = ()


def framed(view: View, points: Array, start: Array, width: float, height: float) -> Frame:
    """Equal axes around the points (K, 3), unless the path is flat in this view: then its thin side is magnified."""
    letters, size = view.letters, np.array([width, height])
    chosen = points[:, view.pick]
    low, high = chosen.min(axis=0), chosen.max(axis=0)
    spans = np.maximum(high - low, 0.0)
    notes: list[str] = []
    # mm per pixel, with a margin.
    own = 1.16 * np.maximum(spans, 10.0 * STATIONARY) / size
    scale = np.full(2, own.max())
    if spans.max() < STATIONARY:
        notes.append("It does not move.")
    else:
        thin = int(np.argmin(own))
        magnification = scale[thin] / own[thin]
        if magnification > FLAT:
            scale[thin] = SLACK * own[thin]
            notes.append(_flatness(letters[thin], float(spans[thin]), magnification / SLACK))
    half = 0.5 * scale * size
    origin = np.where(2.0 * half < RELATIVE, start[view.pick], 0.0)
    for axis in np.flatnonzero(origin):
        value = f"{significant(origin[axis], 6, 3)}{NO_BREAK}mm"
        notes.append(f"Δ{letters[axis]} is relative to {letters[axis]} = {value}.")
    centre = 0.5 * (low + high) - origin
    return Frame(_around(centre, half), (float(origin[0]), float(origin[1])), tuple(notes))


def _around(centre: Array, half: Array) -> Limits:
    right, up = ((float(c - h), float(c + h)) for c, h in zip(centre, half, strict=True))
    return right, up


def _flatness(letter: str, span: float, magnification: float) -> str:
    if span < STATIONARY:
        return f"Flat in this view: {letter} does not change."
    within = f"{significant(span, 2)}{NO_BREAK}mm"
    factor = f"{float(f'{magnification:.2g}'):.0f}"
    return f"Flat in this view: {letter} varies by {within} and is magnified {factor} times."


def prepare_axes(axes: Axes, view: View, frame: Frame) -> None:
    """Limits, ticks and labels."""
    axes.set_xlim(*frame.limits[0])
    axes.set_ylim(*frame.limits[1])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(few_ticks(5))
        axis.set_major_formatter(plain_numbers())
    right, up = (
        f"{'Δ' if origin else ''}{letter} (mm)"
        for letter, origin in zip(view.letters, frame.origin, strict=True)
    )
    axes.set_xlabel(right)
    # At the side of the axis it would overlap long numbers.
    axes.set_title(up, loc="left", pad=6.0)


def three_views(
    paths: Sequence[Path],
    stamps: Array,
    columns: Mapping[str, Array] | None = None,
    marks: Sequence[tuple[Array, str]] = (),
) -> list[Figure]:
    """The paths from above, from the side and from the front.

    Args:
        paths: From the first drawn to the last; the pointer shows values of the last one.
        stamps: (T,), s, of the last one.
        columns: Further values (T,) to be shown under the pointer, under "name|unit".
        marks: Points (3,) to be marked, and the kind of mark (see `mark`).
    """
    points, last = extremes(paths), paths[-1]
    figures = []
    for view in VIEWS:
        drawing, axes, frame = draw_view(view, paths, marks)
        seen = last.positions[:, view.pick] - frame.origin
        kept = decimated_path(seen, PIECES)
        # Those of the last path.
        values = {
            f"{last.name} {'xyz'[i]}|{NO_BREAK}mm": last.positions[kept, i] for i in view.pick
        }
        values |= {name: column[kept] for name, column in (columns or {}).items()}
        label = f"{', '.join(path.name for path in paths)}: path {view.title.lower()}, the {view.letters} plane in mm"
        for i, letter in zip(view.pick, view.letters, strict=True):
            label += f"; {letter} from {significant(points[:, i].min())} to {significant(points[:, i].max())}"
        for name, column in (columns or {}).items():
            label += f"; {name.replace('|', ' from ')} {significant(column.min())} to {significant(column.max())}"
        drawn = drawing.svg(f"view-{view.letters}", label)
        mapped = path_map(drawn, drawing.places(axes, seen[kept]), stamps[kept], values)
        figures.append(Figure(view.title, mapped, frame.notes))
    return figures


def extremes(paths: Sequence[Path]) -> Array:
    """The smallest and largest coordinates of each path (2 K, 3)."""
    return np.concatenate(
        [[path.positions.min(axis=0), path.positions.max(axis=0)] for path in paths]
    )


def draw_view(
    view: View,
    paths: Sequence[Path],
    marks: Sequence[tuple[Array, str]],
    head: int = 0,
    width: int = WIDTH,
) -> tuple[Drawing, Axes, Frame]:
    """One of the views, with room for a legend of height `head` above it, both in pixels; arguments as above."""
    left, bottom, right, top = MARGINS
    frame = framed(
        view, extremes(paths), paths[0].positions[0], width - left - right, HEIGHT - bottom - top
    )
    drawing = Drawing(width, HEIGHT + head)
    axes = drawing.axes(left, bottom, right, top + head)
    prepare_axes(axes, view, frame)
    for path in paths:
        seen = path.positions[:, view.pick] - frame.origin
        kept = decimated_path(seen, PIECES)
        axes.plot(*seen[kept].T, color=path.colour, linewidth=path.width, marker=dots(len(seen)))
    for point, kind in marks:
        mark(axes, point[view.pick] - frame.origin, kind)
    return drawing, axes, frame


def error_map(reference: Array, error: Array, stamps: Array) -> Figure:
    """The reference (T, 3) in mm, coloured by the tracking error (T,) in mm at the stamps (T,)."""
    drawing, axes, view, frame = draw_error_map(reference, error)
    places = reference[:, view.pick] - frame.origin
    kept = decimated_path(places, PIECES)
    label = (
        f"The path in the {view.letters} plane, coloured by the tracking error, {significant(error.min())} to "
        f"{significant(error.max())} mm, the largest at {stamps[error.argmax()]:.2f} s"
    )
    columns = {f"error|{NO_BREAK}mm": error[kept]}
    columns |= {f"{'xyz'[i]}|{NO_BREAK}mm": reference[kept, i] for i in range(3)}
    mapped = path_map(
        drawing.svg("map", label, paper=True),
        drawing.places(axes, places[kept]),
        stamps[kept],
        columns,
    )
    return Figure(f"Tracking error along the path, {view.title.lower()}", mapped, frame.notes)


def draw_error_map(
    reference: Array, error: Array, width: int = HALF_WIDTH, height: int = HALF_HEIGHT
) -> tuple[Drawing, Axes, View, Frame]:
    """The map, of a size in pixels, with its scale; arguments as above."""
    extent = np.ptp(reference, axis=0)
    view = max(VIEWS, key=lambda v: (min(extent[v.pick]), sum(extent[v.pick])))
    drawing = Drawing(width, height)
    frame = framed(view, reference, reference[0], width - 154, height - 64)
    axes = drawing.axes(54, 40, 100, 24)
    prepare_axes(axes, view, frame)
    edges = colour_steps(error)
    shades = colours(edges)
    places = reference[:, view.pick] - frame.origin
    level = np.clip(np.searchsorted(edges, _piecewise_largest(error)) - 1, 0, len(edges) - 2)
    kept = decimated_path(places, PIECES)
    for number, colour in enumerate(shades):
        inside = level[kept] == number
        # A piece ends where the next one begins.
        inside[1:] |= inside[:-1]
        axes.plot(
            *np.where(inside[:, None], places[kept], np.nan).T,
            color=colour,
            linewidth=3.0 + 2.0 * number / len(shades),
            marker=dots(len(error)),
            solid_capstyle="round",
        )
    mark(axes, places[0], "o")
    mark(axes, places[np.argmax(error)], "X")
    bar = drawing.axes(width - 76, 60, 58, 28)
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
    return drawing, axes, view, frame


def _piecewise_largest(error: Array) -> Array:
    """The error (T,), over long paths the largest of each piece."""
    size = -(-len(error) // PIECES)
    padded = np.concatenate([error, np.full(-len(error) % size, error[-1])]).reshape(-1, size)
    return np.repeat(padded.max(axis=1), size)[: len(error)]


def colours(edges: Array) -> list[tuple[float, ...]]:
    """Red, green, blue and opacity, 0 to 1, of every step between two edges."""
    return [
        tuple(shade)
        for shade in matplotlib.colormaps["viridis_r"](np.linspace(0.06, 1.0, len(edges) - 1))
    ]


def colour_steps(error: Array) -> Array:
    """The errors, in mm, at which the colour changes: round numbers, from 0 to the largest error (T,).

    They are evenly spaced, unless a few peaks would then leave everything else in the first colour.
    """
    worst, usual = float(error.max()), float(np.median(error))
    if worst < SMALLEST:
        return np.array([0.0, SMALLEST])
    if worst <= 20.0 * usual:
        inner = np.array(
            MaxNLocator(LEVELS, steps=(1.0, 2.0, 2.5, 5.0, 10.0)).tick_values(0.0, worst)[1:]
        )
    else:
        least = max(float(np.percentile(error, 10.0)), 1e-5 * worst, SMALLEST)
        for mantissas in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
            ticks = np.array(LogLocator(subs=mantissas, numticks=100).tick_values(least, worst))
            inner = ticks[(ticks > least) & (ticks < worst)]
            if len(inner) < LEVELS:
                break
    # No last step that is hardly wider than the rounding of its numbers.
    return np.concatenate([[0.0], inner[inner < 0.98 * worst], [worst]])


def edge_names(edges: Array) -> list[str]:
    """Of these errors, mm, with three digits."""
    return [as_written(float(f"{edge:.3g}")) for edge in edges]


def worst_sample(
    evaluation: Evaluation, reference: Array, setpoint: Array, attained: Array
) -> Figure:
    """The neighbourhood of the worst sample, a few errors wide, in the view that shows the error best.

    Args:
        evaluation: The run.
        reference, setpoint, attained: Its positions (T, 3), mm.
    """
    k = int(np.argmax(evaluation.errors.tracking.distance))
    error = reference[k] - attained[k]
    length = float(np.linalg.norm(error))
    # The window shows the error, and no more than the whole path.
    least, whole = (
        max(length, 1e-4),
        float(max(np.ptp(reference, axis=0).max(), np.ptp(attained, axis=0).max())),
    )
    half_height = max(min(0.5 * ERRORS_HIGH * least, 0.6 * whole), 0.7 * least)
    left, bottom, right, top = MARGINS
    half = half_height * np.array([(HALF_WIDTH - left - right) / (HALF_HEIGHT - bottom - top), 1.0])
    view = _best_view(reference, k, error, half_height)
    pick, due = view.pick, reference[k, view.pick]
    centre = -0.5 * error[pick]
    curves = [curve[:, pick] - due for curve in (reference, setpoint, attained)]
    span = _nearby(curves, k, centre, 1.2 * half)

    drawing = Drawing(HALF_WIDTH, HALF_HEIGHT)
    axes = drawing.axes(*MARGINS)
    prepare_axes(axes, view, Frame(_around(centre, half), (float(due[0]), float(due[1]))))
    axes.plot(*(_continuous(evaluation, span)[:, pick] - due).T, color=REFERENCE, linewidth=8.0)
    dotted = "." if span.stop - span.start <= MAX_DOTS else None
    for curve, colour, width in zip(curves[1:], (SETPOINT, ATTAINED), (4.5, 2.0), strict=True):
        axes.plot(
            *curve[span].T,
            color=colour,
            linewidth=width,
            marker=dotted,
            markersize=6.0 + 1.5 * width,
        )
    axes.plot(
        [0.0, -error[pick[0]]],
        [0.0, -error[pick[1]]],
        color=TRACKING,
        linewidth=1.0,
        linestyle=(0, (4, 2)),
    )
    for curve, colour in zip(curves, (REFERENCE, SETPOINT, ATTAINED), strict=True):
        axes.plot(
            *curve[k],
            marker="o",
            markersize=8.0,
            color=colour,
            markeredgecolor=TRACKING,
            markeredgewidth=1.3,
        )

    caption = f"Worst sample: {millimetres(length * 1e-3)}{NO_BREAK}mm at {evaluation.log.stamp[k]:.3f}{NO_BREAK}s, "
    label = f"{caption}{view.title.lower()}: reference, setpoint and attained path around it, in mm"
    places = (
        f"{letter} = {significant(v, 7, 3)}{NO_BREAK}mm"
        for letter, v in zip(view.letters, due, strict=True)
    )
    notes = [
        f"Sample {k} of {len(reference)}. Circles: the same instant on each curve; dashed: the error.",
        f"Δ is relative to the reference at that instant: {', '.join(places)}.",
    ]
    if (visible := float(np.linalg.norm(error[pick]))) < 0.97 * length:
        notes.append(f"{millimetres(visible * 1e-3)}{NO_BREAK}mm of the error are in this plane.")
    if dotted is not None:
        notes.append(
            f"One dot per sample, every {plain(evaluation.plan.period * 1e3)}{NO_BREAK}ms."
        )
    return Figure(caption + view.title.lower(), drawing.svg("worst", label), notes)


def _best_view(reference: Array, k: int, error: Array, radius: float) -> View:
    """The view along the direction in which error and path near sample k are smallest."""
    near = np.linalg.norm(reference - reference[k], axis=1) <= 2.0 * radius
    path = np.ptp(reference[near], axis=0)
    weight = np.sum([part**2 / max(float(part @ part), 1e-30) for part in (error, path)], axis=0)
    return max(VIEWS, key=lambda view: float(weight[view.pick].sum()))


def _nearby(curves: list[Array], k: int, centre: Array, half: Array) -> slice:
    """The samples around k, until all curves (T, 2) have left the window."""
    inside = np.any([np.all(np.abs(curve - centre) <= half, axis=1) for curve in curves], axis=0)
    outside = np.flatnonzero(~inside)
    before, after = outside[outside < k], outside[outside > k]
    return slice(
        int(before[-1]) if len(before) else 0, int(after[0]) + 1 if len(after) else len(inside)
    )


def _continuous(evaluation: Evaluation, span: slice) -> Array:
    """The reference (K, 3) in mm with its corners, which lie between samples."""
    times = evaluation.log.plan_time[span]
    steps = np.linspace(0, len(times) - 1, POINTS_PER_SAMPLE * (len(times) - 1) + 1)
    finer = np.interp(steps, np.arange(len(times)), times)
    return evaluation.plan.trajectory.reference(finer)[:, :3] * 1e3
