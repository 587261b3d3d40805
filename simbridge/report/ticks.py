"""Grid lines and tick labels, drawn at once.

matplotlib makes five artists for each tick, and with them a figure takes twice as long. Here the
grid lines of an axis are one line with gaps, and a label is a text.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import NullLocator

from simbridge.robot.pose import Array

# A tick this fraction of the axis beyond its end is still drawn: it is rounding.
MARGIN = 1e-6
# Grid lines are below everything else.
GRID_ORDER = 0.5


def draw_ticks(panels: Sequence[Axes]) -> None:
    """Draw the grid and the tick labels of axes, and leave no ticks to matplotlib.

    Scales, limits, locators and formatters have been set.

    Args:
        panels: Axes one above the other, which share a horizontal axis; its labels are below the
            last of them.
    """
    for axes in panels:
        positions, labels = _visible_ticks(axes.xaxis)
        _draw_lines(axes, np.repeat(positions, 2), np.tile([0.0, 1.0], len(positions)), "x")
        _draw_vertical_axis(axes)
    # The labels of the last panel's horizontal axis.
    _draw_labels_below(axes, positions, labels)

    # Axes that share an axis share its locator.
    for axes in panels:
        axes.xaxis.set_major_locator(NullLocator())
        axes.yaxis.set_major_locator(NullLocator())


def _draw_labels_below(axes: Axes, positions: Array, labels: Sequence[str]) -> None:
    """Draw labels (K) below axes, at positions (K,) of the horizontal axis, and its title."""
    distance = _label_distance()
    transform, vertical, horizontal = axes.get_xaxis_text1_transform(distance)
    for position, label in zip(positions, labels, strict=True):
        axes.text(position, 0.0, label, transform=transform, va=vertical, ha=horizontal)

    # The title of the axis, which would otherwise be placed by the labels that matplotlib has.
    distance += matplotlib.rcParams["font.size"] + matplotlib.rcParams["axes.labelpad"]
    axes.xaxis.set_label_coords(0.5, -distance / axes.bbox.height)


def _draw_vertical_axis(axes: Axes) -> None:
    """Draw the horizontal grid lines, and the labels to the left of the axes."""
    positions, labels = _visible_ticks(axes.yaxis)
    _draw_lines(axes, np.tile([0.0, 1.0], len(positions)), np.repeat(positions, 2), "y")
    transform, vertical, horizontal = axes.get_yaxis_text1_transform(_label_distance())
    for position, label in zip(positions, labels, strict=True):
        axes.text(0.0, position, label, transform=transform, va=vertical, ha=horizontal)


def _visible_ticks(axis: Axis) -> tuple[Array, list[str]]:
    """Return the positions of the ticks (K,) within the limits of an axis, and their labels."""
    positions = np.asarray(axis.get_majorticklocs(), dtype=float)
    labels = axis.get_major_formatter().format_ticks(positions.tolist())

    low, high = sorted(axis.get_view_interval())
    margin = MARGIN * (high - low)
    is_visible = (positions >= low - margin) & (positions <= high + margin)
    shown = [label for label, visible in zip(labels, is_visible, strict=True) if visible]
    return positions[is_visible], shown


def _draw_lines(axes: Axes, right: Array, up: Array, direction: str) -> None:
    """Draw the grid lines of an axis as one line with gaps.

    Args:
        axes: The axes.
        right: Horizontal positions of both ends of each line (2 K,).
        up: Vertical positions of both ends (2 K,).
        direction: The axis whose values the lines mark, "x" or "y"; along the other axis positions
            are fractions of the axes.
    """
    if direction == "x":
        transform = axes.get_xaxis_transform()
    else:
        transform = axes.get_yaxis_transform()
    gaps = np.arange(2, len(right), 2)
    axes.plot(
        np.insert(right, gaps, np.nan),
        np.insert(up, gaps, np.nan),
        color=matplotlib.rcParams["grid.color"],
        linewidth=matplotlib.rcParams["grid.linewidth"],
        transform=transform,
        zorder=GRID_ORDER,
    )


def _label_distance() -> float:
    """Return the distance of tick labels from their axes, points."""
    parameters = matplotlib.rcParams
    return float(parameters["xtick.major.pad"] + parameters["xtick.major.size"])
