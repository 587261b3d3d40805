"""The path seen from three sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simbridge.report.charts import map_of
from simbridge.report.drawing import Drawing, dots, few_ticks, mark, plain_numbers
from simbridge.report.palette import ATTAINED, REFERENCE, SETPOINT
from simbridge.report.timeline import thinned_path
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simbridge.evaluation.evaluation import Evaluation


# A path this much flatter than it is long would be a line: its thin side is magnified.
FLAT = 20.0
# How much higher than the magnified path its axis is.
SLACK = 1.3
# Below this, in mm, nothing has moved.
STILL = 1e-3
# Axes that show less than this, in mm, count from the path instead of from base_link.
RELATIVE = 5.0
# A long path is drawn by the outermost points of so many pieces.
PIECES = 600


@dataclass(frozen=True, eq=False)
class Paths:
    """Positions of the TCP (T, 3) in mm, in base_link, at stamps (T,) in s, and which sample is the worst."""

    reference: Array
    setpoint: Array
    attained: Array
    worst: int
    stamps: Array

    @staticmethod
    def of(evaluation: Evaluation) -> Paths:
        reference, setpoint, attained = (
            poses[:, :3] * 1e3 for poses in (evaluation.reference, evaluation.setpoint, evaluation.attained)
        )
        return Paths(
            reference, setpoint, attained, int(np.argmax(evaluation.budget.tracking.distance)), evaluation.log.stamp
        )


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
            scale[thin] = SLACK * own[thin]
            notes.append(_flatness(letters[thin], float(spans[thin]), magnification / SLACK))
    half = 0.5 * scale * size
    origin = np.where(2.0 * half < RELATIVE, start[[view.right, view.up]], 0.0)
    for axis in np.flatnonzero(origin):
        notes.append(f"Δ{letters[axis]} counts from {letters[axis]} = {significant(origin[axis], 6, 3)}{NO_BREAK}mm.")
    centre = 0.5 * (low + high) - origin
    right, up = ((float(c - h), float(c + h)) for c, h in zip(centre, half, strict=True))
    return Frame((right, up), (float(origin[0]), float(origin[1])), tuple(notes))


def _flatness(letter: str, span: float, magnification: float) -> str:
    if span < STILL:
        return f"Flat from here: {letter} does not change."
    within = f"{significant(span, 2)}{NO_BREAK}mm"
    return f"Flat from here: {letter} stays within {within} and is magnified {float(f'{magnification:.2g}'):.0f} times."


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
    # Beside the axis it would be in the way of long numbers.
    axes.set_title(up, loc="left", fontsize=11.0, pad=6.0)


def three_views(paths: Paths) -> list[tuple[View, tuple[str, ...], str]]:
    """For each view: its notes and its figure."""
    points = np.concatenate([paths.reference, paths.setpoint, paths.attained])
    found = []
    for view in VIEWS:
        drawing = Drawing(348, 310)
        frame = framed(view, points, paths.reference[0], 348 - 72, 310 - 64)
        axes = drawing.axes(54, 40, 18, 24)
        prepare_axes(axes, view, frame)
        pick, origin = [view.right, view.up], np.array(frame.origin)
        marker = dots(len(paths.reference))
        for curve, colour, width in (
            (paths.reference, REFERENCE, 8.0),
            (paths.setpoint, SETPOINT, 5.0),
            (paths.attained, ATTAINED, 2.0),
        ):
            seen = curve[:, pick] - origin
            axes.plot(*seen[thinned_path(seen, PIECES)].T, color=colour, linewidth=width, marker=marker)
        mark(axes, paths.reference[0, pick] - origin, "o")
        mark(axes, paths.reference[paths.worst, pick] - origin, "X")
        label = f"Path {view.title.lower()}: reference, setpoint and attained in the {view.letters} plane, in mm"
        seen = paths.attained[:, pick] - origin
        kept = thinned_path(seen, PIECES)
        told = {f"attained {'xyz'[i]}|{NO_BREAK}mm": paths.attained[kept, i] for i in pick}
        told["off the reference|" + NO_BREAK + "mm"] = np.linalg.norm((paths.reference - paths.attained)[kept], axis=1)
        svg = drawing.svg(f"view-{view.letters}", label)
        found.append((view, frame.notes, map_of(svg, drawing.places(axes, seen[kept]), paths.stamps[kept], told)))
    return found
