"""The path seen from three sides, and where on it the error is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from numpy.typing import NDArray

from simbridge.report.drawing import Drawing, few_ticks, plain_numbers
from simbridge.report.numbers import NO_BREAK, significant
from simbridge.report.palette import ATTAINED, REFERENCE, SETPOINT, TRACKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simbridge.evaluation import Evaluation

Array = NDArray[np.float64]

# A path this much flatter than it is long would be a line: its thin side is magnified.
FLAT = 20.0
# Below this, in mm, nothing has moved.
STILL = 1e-3
# Axes that show less than this, in mm, count from the path instead of from base_link.
RELATIVE = 5.0
# More pieces of different colour than this cannot be told apart along a path.
PIECES = 600
LEVELS = 8


@dataclass(frozen=True, eq=False)
class Paths:
    """Positions of the TCP (T, 3) in mm, in base_link, and where the start and the worst sample are."""

    reference: Array
    setpoint: Array
    attained: Array
    worst: int

    @staticmethod
    def of(evaluation: Evaluation) -> Paths:
        reference, setpoint, attained = (
            poses[:, :3] * 1e3 for poses in (evaluation.reference, evaluation.setpoint, evaluation.attained)
        )
        return Paths(reference, setpoint, attained, int(np.argmax(evaluation.budget.tracking.distance)))


@dataclass(frozen=True)
class View:
    """A direction to look from: which coordinates go right and up."""

    title: str
    right: int
    up: int

    @property
    def letters(self) -> str:
        return "xyz"[self.right] + "xyz"[self.up]


VIEWS = (View("From above", 0, 1), View("From the side", 0, 2), View("From the front", 1, 2))


@dataclass(frozen=True)
class Frame:
    """What the axes of a view show, in mm.

    Attributes:
        limits: Of both axes, less their origin.
        origin: What both axes count from; 0 for base_link.
        notes: What a reader has to know about the axes, as sentences.
    """

    limits: tuple[tuple[float, float], tuple[float, float]]
    origin: tuple[float, float]
    notes: tuple[str, ...]


def framed(view: View, points: Array, start: Array, width: float, height: float) -> Frame:
    """Equal axes around the points (K, 3), unless the path is flat from there: then its thin side is magnified."""
    letters, size = view.letters, np.array([width, height])
    chosen = points[:, [view.right, view.up]]
    low, high = chosen.min(axis=0), chosen.max(axis=0)
    spans = np.maximum(high - low, 0.0)
    notes: list[str] = []
    # mm a pixel, with room around.
    own = 1.16 * np.maximum(spans, 10.0 * STILL) / size
    scale = np.full(2, own.max())
    if spans.max() < STILL:
        notes.append("It does not move.")
    else:
        thin = int(np.argmin(own))
        magnification = scale[thin] / own[thin]
        if magnification > FLAT:
            scale[thin] = 2.0 * own[thin]
            times = float(f"{0.5 * magnification:.2g}")
            within = significant(spans[thin], 2)
            notes.append(
                f"Flat from here: {letters[thin]} stays within {within}{NO_BREAK}mm and is magnified {times:.0f} times."
            )
    half = 0.5 * scale * size
    origin = np.where(2.0 * half < RELATIVE, start[[view.right, view.up]], 0.0)
    for axis in np.flatnonzero(origin):
        notes.append(f"Δ{letters[axis]} counts from {letters[axis]} = {significant(origin[axis], 6, 3)}{NO_BREAK}mm.")
    centre = 0.5 * (low + high) - origin
    right, up = ((float(c - h), float(c + h)) for c, h in zip(centre, half, strict=True))
    return Frame((right, up), (float(origin[0]), float(origin[1])), tuple(notes))


def prepare_axes(axes: Axes, view: View, frame: Frame) -> None:
    """Limits, ticks and labels."""
    axes.set_xlim(*frame.limits[0])
    axes.set_ylim(*frame.limits[1])
    for axis, letter, origin in zip((axes.xaxis, axes.yaxis), view.letters, frame.origin, strict=True):
        axis.set_major_locator(few_ticks(5))
        axis.set_major_formatter(plain_numbers())
        axis.set_label_text(f"{'Δ' if origin else ''}{letter} (mm)")


def three_views(paths: Paths) -> list[tuple[View, tuple[str, ...], str]]:
    """For each view: its notes and its figure."""
    points = np.concatenate([paths.reference, paths.setpoint, paths.attained])
    found = []
    for view in VIEWS:
        drawing = Drawing(348, 300)
        frame = framed(view, points, paths.reference[0], 348 - 62, 300 - 48)
        axes = drawing.axes(54, 40, 8, 8)
        prepare_axes(axes, view, frame)
        pick, origin = [view.right, view.up], np.array(frame.origin)
        marker = "." if len(paths.reference) < 20 else None
        for curve, colour, width in (
            (paths.reference, REFERENCE, 4.5),
            (paths.setpoint, SETPOINT, 2.4),
            (paths.attained, ATTAINED, 1.1),
        ):
            axes.plot(*(curve[:, pick] - origin).T, color=colour, linewidth=width, marker=marker)
        _mark(axes, paths.reference[0, pick] - origin, "o")
        _mark(axes, paths.reference[paths.worst, pick] - origin, "X")
        label = f"Path {view.title.lower()}: reference, setpoint and attained in the {view.letters} plane, in mm"
        found.append((view, frame.notes, drawing.svg(f"view-{view.letters}", label)))
    return found


def _mark(axes: Axes, place: Array, marker: str) -> None:
    axes.plot(
        *place,
        marker=marker,
        markersize=8.0,
        markerfacecolor="white",
        markeredgecolor=TRACKING,
        markeredgewidth=1.3,
        clip_on=False,
        zorder=5,
    )


def coloured_path(paths: Paths, error: Array) -> tuple[View, tuple[str, ...], str]:
    """The reference, coloured by the tracking error (T,) in mm that was made there; the worst lies on top."""
    extent = np.ptp(paths.reference, axis=0)
    view = max(VIEWS, key=lambda v: (min(extent[v.right], extent[v.up]), extent[v.right] + extent[v.up]))
    drawing = Drawing(531, 400)
    frame = framed(view, paths.reference, paths.reference[0], 531 - 164, 400 - 48)
    axes = drawing.axes(54, 40, 110, 8)
    prepare_axes(axes, view, frame)
    edges, notes = _edges(error)
    colours = matplotlib.colormaps["viridis_r"](np.linspace(0.06, 1.0, len(edges) - 1))
    places = paths.reference[:, [view.right, view.up]] - np.array(frame.origin)
    level = np.clip(np.searchsorted(edges, _piecewise_largest(error)) - 1, 0, len(edges) - 2)
    for number, colour in enumerate(colours):
        inside = level == number
        # A piece ends where the next one begins.
        inside[1:] |= inside[:-1]
        axes.plot(
            *np.where(inside[:, None], places, np.nan).T,
            color=tuple(colour),
            linewidth=3.0 + 2.0 * number / len(colours),
            marker="." if len(error) < 20 else None,
            solid_capstyle="round",
        )
    _mark(axes, places[0], "o")
    _mark(axes, places[paths.worst], "X")
    bar = drawing.axes(531 - 76, 60, 58, 28)
    steps = np.arange(len(colours))
    bar.bar(np.zeros(len(steps)), np.ones(len(steps)), width=1.0, bottom=steps, color=colours)
    bar.set_xlim(-0.5, 0.5)
    bar.set_ylim(0, len(steps))
    bar.grid(False)
    bar.set_xticks([])
    bar.yaxis.tick_right()
    bar.set_yticks(range(len(edges)), [significant(edge, 2) for edge in edges])
    bar.spines[:].set_visible(False)
    bar.set_title("error (mm)", fontsize=11.0, loc="left")
    label = f"The path in the {view.letters} plane, coloured by the tracking error in mm"
    return view, (*frame.notes, *notes), drawing.svg("map", label)


def _piecewise_largest(error: Array) -> Array:
    """The error (T,), over long paths the largest of each piece."""
    size = -(-len(error) // PIECES)
    padded = np.concatenate([error, np.full(-len(error) % size, error[-1])]).reshape(-1, size)
    return np.repeat(padded.max(axis=1), size)[: len(error)]


def _edges(error: Array) -> tuple[Array, tuple[str, ...]]:
    """The errors at which one colour gives way to the next, and what has to be said about them."""
    worst, usual = float(error.max()), float(np.median(error))
    if worst < 1e-6:
        return np.array([0.0, 1e-6]), ("There is no error.",)
    if worst > 20.0 * usual:
        least = max(float(np.percentile(error, 5.0)), 1e-4 * worst)
        return np.geomspace(least, worst, LEVELS + 1), ("Colours step by equal factors.",)
    return np.linspace(0.0, worst, LEVELS + 1), ()
