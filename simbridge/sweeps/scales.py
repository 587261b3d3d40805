"""Chooses scales and limits of the axes of a sweep's figures."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from simbridge.report.drawing import few_ticks, plain_numbers
from simbridge.text import SMALLEST

# Largest number of ticks of an axis.
MAX_TICKS = 8
# Ratio of the largest to the smallest value above which an axis is logarithmic.
LOGARITHMIC_RATIO = 20.0
# Smallest distance of the limits of an axis, as a fraction of their mean.
MIN_RELATIVE_EXTENT = 0.02


def is_logarithmic(low: float, high: float) -> bool:
    """Return whether values span more than a decade or so, and are drawn on a logarithmic axis."""
    return low > 0.0 and high / low > LOGARITHMIC_RATIO


def scale_axis(axes: Axes, name: str, values: Iterable[float], *, vertical: bool = False) -> None:
    """Choose scale, ticks and title of an axis.

    Args:
        axes: Axes of the drawing.
        name: Title of the axis; "" for none.
        values: Values that are drawn along the axis.
        vertical: Whether the axis is the y axis.
    """
    axis = axes.yaxis if vertical else axes.xaxis
    set_scale = axes.set_yscale if vertical else axes.set_xscale
    set_title = axes.set_ylabel if vertical else axes.set_xlabel

    distinct = sorted(set(values))
    if is_logarithmic(distinct[0], distinct[-1]):
        set_scale("log")
        # A tick at each value, or, with many values, at 1, 2 and 5 in each decade.
        has_few_values = len(distinct) <= MAX_TICKS
        locator = FixedLocator(distinct) if has_few_values else LogLocator(subs=(1, 2, 5))
        axis.set_major_locator(locator)
        axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_locator(few_ticks(MAX_TICKS))
    axis.set_major_formatter(plain_numbers())
    set_title(name)


def widen_limits(limits: tuple[float, float]) -> tuple[float, float]:
    """Widen the limits of an axis, so that differences that do not matter cannot be seen.

    The limits end up at least 2 % of their mean apart, and at least SMALLEST. Those of a
    logarithmic axis stay as they are.
    """
    low, high = limits
    if is_logarithmic(low, high):
        return limits

    extent = high - low
    mean = 0.5 * abs(low + high)
    missing = max(MIN_RELATIVE_EXTENT * mean - extent, SMALLEST - extent, 0.0)
    # Half of what is missing is added at either end, but positive values get no negative limit.
    below = min(0.5 * missing, low) if low >= 0.0 else 0.5 * missing
    return low - below, high + missing - below
