"""A close look at the instant with the largest tracking error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simbridge.report.drawing import Drawing
from simbridge.report.palette import ATTAINED, REFERENCE, SETPOINT, TRACKING
from simbridge.report.views import VIEWS, Frame, Paths, View, prepare_axes
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, millimetres, plain, significant

if TYPE_CHECKING:
    from simbridge.evaluation.evaluation import Evaluation


WIDTH, HEIGHT = 531, 410
MARGINS = (54, 40, 18, 24)
# The window is so many times as high as the error is long.
TIMES_THE_ERROR = 4.0
# More dots than this in the window would be a line again.
MAX_DOTS = 80
_CIRCLES = "Circled: the same instant on each curve; dashed: the error."
# How many points of the continuous reference are drawn for a sample.
FINER = 10


@dataclass(frozen=True)
class WorstSpot:
    """The figure and what to say about it.

    Attributes:
        sample: The sample with the largest tracking error, counted from 0.
        time: Its stamp, s.
        error: Its tracking error, m.
        view: From where it is seen.
        notes: As sentences.
        figure: SVG.
    """

    sample: int
    time: float
    error: float
    view: View
    notes: tuple[str, ...]
    figure: str


def worst_spot(evaluation: Evaluation, paths: Paths) -> WorstSpot:
    """The neighbourhood of the worst sample, a few errors wide, from where the error is seen best."""
    k = paths.worst
    wanted, got = paths.reference[k], paths.attained[k]
    error = wanted - got
    length = float(np.linalg.norm(error))
    half_height = _half_height(paths, max(length, 1e-4))
    left, bottom, right, top = MARGINS
    half = half_height * np.array([(WIDTH - left - right) / (HEIGHT - bottom - top), 1.0])
    view = _best_view(paths, error, half_height)
    pick = [view.right, view.up]
    centre = -0.5 * error[pick]
    window = tuple((float(c - h), float(c + h)) for c, h in zip(centre, half, strict=True))
    frame = Frame((window[0], window[1]), (float(wanted[view.right]), float(wanted[view.up])), ())
    curves = [curve[:, pick] - wanted[pick] for curve in (paths.setpoint, paths.attained)]
    span = _nearby([paths.reference[:, pick] - wanted[pick], *curves], k, centre, 1.2 * half)

    drawing = Drawing(WIDTH, HEIGHT)
    axes = drawing.axes(*MARGINS)
    prepare_axes(axes, view, frame)
    axes.plot(*_continuous(evaluation, span)[:, pick].T - wanted[pick, None], color=REFERENCE, linewidth=8.0)
    dots = "." if span.stop - span.start <= MAX_DOTS else None
    for curve, colour, width in zip(curves, (SETPOINT, ATTAINED), (4.5, 2.0), strict=True):
        axes.plot(*curve[span].T, color=colour, linewidth=width, marker=dots, markersize=6.0 + 1.5 * width)
    axes.plot([0.0, -error[pick[0]]], [0.0, -error[pick[1]]], color=TRACKING, linewidth=1.0, linestyle=(0, (4, 2)))
    for place, colour in zip((np.zeros(2), curves[0][k], curves[1][k]), (REFERENCE, SETPOINT, ATTAINED), strict=True):
        axes.plot(*place, marker="o", markersize=8.0, color=colour, markeredgecolor=TRACKING, markeredgewidth=1.3)

    time = float(evaluation.log.stamp[k])
    label = f"The path around the worst sample in the {view.letters} plane, in mm"
    notes = (
        f"Sample {k} of {len(paths.reference)}. {_CIRCLES}",
        _origin(view, wanted),
        *_hidden(length, error[pick]),
        *_dotted(dots, evaluation.plan.period),
    )
    return WorstSpot(k, time, length * 1e-3, view, notes, drawing.svg("worst", label))


def _half_height(paths: Paths, length: float) -> float:
    """Half of the window in mm, so that an error of this length is seen, and no more than the whole path."""
    whole = float(max(np.ptp(paths.reference, axis=0).max(), np.ptp(paths.attained, axis=0).max()))
    return max(min(0.5 * TIMES_THE_ERROR * length, 0.6 * whole), 0.7 * length)


def _best_view(paths: Paths, error: Array, reach: float) -> View:
    """The plane that leaves out the direction in which there is the least error and the least path."""
    near = np.linalg.norm(paths.reference - paths.reference[paths.worst], axis=1) <= 2.0 * reach
    path = np.ptp(paths.reference[near], axis=0)
    weight = np.sum([part**2 / max(float(part @ part), 1e-30) for part in (error, path)], axis=0)
    return max(VIEWS, key=lambda view: float(weight[view.right] + weight[view.up]))


def _nearby(curves: list[Array], k: int, centre: Array, half: Array) -> slice:
    """The samples around k up to where all curves (T, 2) have left the window, this once."""
    inside = np.any([np.all(np.abs(curve - centre) <= half, axis=1) for curve in curves], axis=0)
    outside = np.flatnonzero(~inside)
    before, after = outside[outside < k], outside[outside > k]
    return slice(int(before[-1]) if len(before) else 0, int(after[0]) + 1 if len(after) else len(inside))


def _continuous(evaluation: Evaluation, span: slice) -> Array:
    """The reference (K, 3) in mm with its corners, which lie between samples."""
    times = evaluation.log.plan_time[span]
    steps = np.linspace(0, len(times) - 1, FINER * (len(times) - 1) + 1)
    finer = np.interp(steps, np.arange(len(times)), times)
    return evaluation.plan.trajectory.reference(finer)[:, :3] * 1e3


def _origin(view: View, wanted: Array) -> str:
    places = ", ".join(
        f"{'xyz'[axis]} = {significant(wanted[axis], 7, 3)}{NO_BREAK}mm" for axis in (view.right, view.up)
    )
    return f"Δ counts from the reference at that instant: {places}."


def _hidden(length: float, seen: Array) -> tuple[str, ...]:
    visible = float(np.linalg.norm(seen))
    if visible >= 0.97 * length:
        return ()
    return (f"Of the error, {millimetres(visible * 1e-3)}{NO_BREAK}mm lie in this plane.",)


def _dotted(dots: str | None, period: float) -> tuple[str, ...]:
    return () if dots is None else (f"A dot is a sample, one every {plain(period * 1e3)}{NO_BREAK}ms.",)
