"""Paths of the TCP seen from three sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from simbridge.report.charts import decimated_path, path_map
from simbridge.report.drawing import Drawing, dots, few_ticks, mark, plain_numbers
from simbridge.report.rendering import Figure
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, significant

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

WIDTH, HEIGHT = 348, 310
# Left, bottom, right, top, in pixels.
MARGINS = (54, 40, 18, 24)


@dataclass(frozen=True, eq=False)
class Path:
    """Positions (T, 3) of the TCP in base_link, mm, and how they are drawn; the width in pixels."""

    name: str
    positions: Array
    colour: str
    width: float


@dataclass(frozen=True)
class View:
    """A direction of view: which coordinates point right and up."""

    title: str
    right: int
    up: int

    @property
    def pick(self) -> list[int]:
        """Both coordinates, as an index."""
        return [self.right, self.up]

    @property
    def letters(self) -> str:
        return "xyz"[self.right] + "xyz"[self.up]


VIEWS = (View("From above", 0, 1), View("From the side", 0, 2), View("From the front", 1, 2))


@dataclass(frozen=True)
class Frame:
    """What the axes of a view show, in mm.

    Attributes:
        limits: Of both axes, relative to their origin.
        origin: What both axes count from; 0 for base_link.
        notes: What a reader has to know about the axes, as sentences.
    """

    limits: tuple[tuple[float, float], tuple[float, float]]
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
    right, up = ((float(c - h), float(c + h)) for c, h in zip(centre, half, strict=True))
    return Frame((right, up), (float(origin[0]), float(origin[1])), tuple(notes))


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
        f"{'Δ' if origin else ''}{letter} (mm)" for letter, origin in zip(view.letters, frame.origin, strict=True)
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
        values = {f"{last.name} {'xyz'[i]}|{NO_BREAK}mm": last.positions[kept, i] for i in view.pick}
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
    return np.concatenate([[path.positions.min(axis=0), path.positions.max(axis=0)] for path in paths])


def draw_view(
    view: View, paths: Sequence[Path], marks: Sequence[tuple[Array, str]], head: int = 0
) -> tuple[Drawing, Axes, Frame]:
    """One of the views, with room for a legend of that height in pixels above it; arguments as above."""
    left, bottom, right, top = MARGINS
    frame = framed(view, extremes(paths), paths[0].positions[0], WIDTH - left - right, HEIGHT - bottom - top)
    drawing = Drawing(WIDTH, HEIGHT + head)
    axes = drawing.axes(left, bottom, right, top + head)
    prepare_axes(axes, view, frame)
    for path in paths:
        seen = path.positions[:, view.pick] - frame.origin
        kept = decimated_path(seen, PIECES)
        axes.plot(*seen[kept].T, color=path.colour, linewidth=path.width, marker=dots(len(seen)))
    for point, kind in marks:
        mark(axes, point[view.pick] - frame.origin, kind)
    return drawing, axes, frame
