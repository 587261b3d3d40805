"""A close view of the sample with the largest tracking error."""

from __future__ import annotations

import numpy as np

from simbridge.evaluation.evaluation import Evaluation
from simbridge.report.drawing import Drawing
from simbridge.report.palette import ATTAINED, REFERENCE, SETPOINT, TRACKING
from simbridge.report.rendering import Figure
from simbridge.report.views import MARGINS, VIEWS, Frame, View, prepare_axes
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, millimetres, plain, significant

WIDTH, HEIGHT = 531, 410
# The height of the window, in lengths of the error.
ERRORS_HIGH = 4.0
# More dots than this in the window would look like a line.
MAX_DOTS = 80
# Points drawn of the continuous reference, for each sample.
POINTS_PER_SAMPLE = 10


def worst_sample(evaluation: Evaluation, reference: Array, setpoint: Array, attained: Array) -> Figure:
    """The neighbourhood of the worst sample, a few errors wide, in the view that shows the error best.

    Args:
        evaluation: The run.
        reference, setpoint, attained: Its positions (T, 3), mm.
    """
    k = int(np.argmax(evaluation.errors.tracking.distance))
    error = reference[k] - attained[k]
    length = float(np.linalg.norm(error))
    half_height = _half_height(reference, attained, max(length, 1e-4))
    left, bottom, right, top = MARGINS
    half = half_height * np.array([(WIDTH - left - right) / (HEIGHT - bottom - top), 1.0])
    view = _best_view(reference, k, error, half_height)
    pick, due = view.pick, reference[k, view.pick]
    centre = -0.5 * error[pick]
    window = tuple((float(c - h), float(c + h)) for c, h in zip(centre, half, strict=True))
    curves = [curve[:, pick] - due for curve in (reference, setpoint, attained)]
    span = _nearby(curves, k, centre, 1.2 * half)

    drawing = Drawing(WIDTH, HEIGHT)
    axes = drawing.axes(*MARGINS)
    prepare_axes(axes, view, Frame((window[0], window[1]), (float(due[0]), float(due[1]))))
    axes.plot(*(_continuous(evaluation, span)[:, pick] - due).T, color=REFERENCE, linewidth=8.0)
    dots = "." if span.stop - span.start <= MAX_DOTS else None
    for curve, colour, width in zip(curves[1:], (SETPOINT, ATTAINED), (4.5, 2.0), strict=True):
        axes.plot(*curve[span].T, color=colour, linewidth=width, marker=dots, markersize=6.0 + 1.5 * width)
    axes.plot([0.0, -error[pick[0]]], [0.0, -error[pick[1]]], color=TRACKING, linewidth=1.0, linestyle=(0, (4, 2)))
    for curve, colour in zip(curves, (REFERENCE, SETPOINT, ATTAINED), strict=True):
        axes.plot(*curve[k], marker="o", markersize=8.0, color=colour, markeredgecolor=TRACKING, markeredgewidth=1.3)

    caption = f"Worst sample: {millimetres(length * 1e-3)}{NO_BREAK}mm at {evaluation.log.stamp[k]:.3f}{NO_BREAK}s, "
    label = f"{caption}{view.title.lower()}: reference, setpoint and attained path around it, in mm"
    notes = [
        f"Sample {k} of {len(reference)}. Circles: the same instant on each curve; dashed: the error.",
        _origin(view, due),
        *_hidden(length, error[pick]),
        *([] if dots is None else [f"One dot per sample, every {plain(evaluation.plan.period * 1e3)}{NO_BREAK}ms."]),
    ]
    return Figure(caption + view.title.lower(), drawing.svg("worst", label), notes)


def _half_height(reference: Array, attained: Array, length: float) -> float:
    """Half the window's height in mm: it shows an error of this length, and no more than the whole path."""
    whole = float(max(np.ptp(reference, axis=0).max(), np.ptp(attained, axis=0).max()))
    return max(min(0.5 * ERRORS_HIGH * length, 0.6 * whole), 0.7 * length)


def _best_view(reference: Array, k: int, error: Array, radius: float) -> View:
    """The view along the direction in which error and path near sample k are smallest."""
    near = np.linalg.norm(reference - reference[k], axis=1) <= 2.0 * radius
    path = np.ptp(reference[near], axis=0)
    weight = np.sum([part**2 / max(float(part @ part), 1e-30) for part in (error, path)], axis=0)
    return max(VIEWS, key=lambda view: float(weight[view.right] + weight[view.up]))


def _nearby(curves: list[Array], k: int, centre: Array, half: Array) -> slice:
    """The samples around k, until all curves (T, 2) have left the window."""
    inside = np.any([np.all(np.abs(curve - centre) <= half, axis=1) for curve in curves], axis=0)
    outside = np.flatnonzero(~inside)
    before, after = outside[outside < k], outside[outside > k]
    return slice(int(before[-1]) if len(before) else 0, int(after[0]) + 1 if len(after) else len(inside))


def _continuous(evaluation: Evaluation, span: slice) -> Array:
    """The reference (K, 3) in mm with its corners, which lie between samples."""
    times = evaluation.log.plan_time[span]
    steps = np.linspace(0, len(times) - 1, POINTS_PER_SAMPLE * (len(times) - 1) + 1)
    finer = np.interp(steps, np.arange(len(times)), times)
    return evaluation.plan.trajectory.reference(finer)[:, :3] * 1e3


def _origin(view: View, due: Array) -> str:
    places = (f"{letter} = {significant(v, 7, 3)}{NO_BREAK}mm" for letter, v in zip(view.letters, due, strict=True))
    return f"Δ is relative to the reference at that instant: {', '.join(places)}."


def _hidden(length: float, seen: Array) -> list[str]:
    visible = float(np.linalg.norm(seen))
    if visible >= 0.97 * length:
        return []
    return [f"{millimetres(visible * 1e-3)}{NO_BREAK}mm of the error are in this plane."]
