"""The path, coloured by the tracking error."""

from __future__ import annotations

import math

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from simbridge.report.charts import decimated_path, path_map
from simbridge.report.drawing import Drawing, as_written, dots, mark
from simbridge.report.rendering import Figure
from simbridge.report.views import PIECES, VIEWS, Frame, View, framed, prepare_axes
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, significant

# More colours than this cannot be distinguished.
LEVELS = 8
# Smaller errors, in mm, all have one colour.
SMALLEST = 1e-4
WIDTH, HEIGHT = 531, 410


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
    mapped = path_map(drawing.svg("map", label, paper=True), drawing.places(axes, places[kept]), stamps[kept], columns)
    return Figure(f"Tracking error along the path, {view.title.lower()}", mapped, frame.notes)


def draw_error_map(
    reference: Array, error: Array, width: int = WIDTH, height: int = HEIGHT
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
    bar.set_yticks(range(len(edges)), [as_written(float(f"{edge:.3g}")) for edge in edges])
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
    return [tuple(shade) for shade in matplotlib.colormaps["viridis_r"](np.linspace(0.06, 1.0, len(edges) - 1))]


def colour_steps(error: Array) -> Array:
    """The errors, in mm, at which the colour changes: round numbers, from 0 to the largest error (T,).

    They are evenly spaced, unless a few peaks would then leave everything else in the first colour.
    """
    worst, usual = float(error.max()), float(np.median(error))
    if worst < SMALLEST:
        return np.array([0.0, SMALLEST])
    if worst <= 20.0 * usual:
        step = next(step for step in _round_numbers((1.0, 2.0, 2.5, 5.0), worst) if worst <= LEVELS * step)
        inner = step * np.arange(1, LEVELS + 1)
    else:
        least = max(float(np.percentile(error, 10.0)), 1e-5 * worst, SMALLEST)
        mantissas = next(m for m in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)) if _between(m, least, worst) < LEVELS)
        inner = np.array([edge for edge in _round_numbers(mantissas, worst) if edge > least])
    # No last step that is hardly wider than the rounding of its numbers.
    return np.concatenate([[0.0], inner[inner < 0.98 * worst], [worst]])


def _round_numbers(mantissas: tuple[float, ...], largest: float) -> list[float]:
    """Increasing, over six decades up to that of `largest`."""
    last = math.floor(math.log10(largest))
    return [m * 10.0**decade for decade in range(last - 6, last + 1) for m in mantissas]


def _between(mantissas: tuple[float, ...], least: float, largest: float) -> int:
    return sum(least < number < largest for number in _round_numbers(mantissas, largest))
