"""Scales and limits of the axes of a sweep's figures."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from simbridge.report.drawing import few_ticks, plain_numbers
from simbridge.text import SMALLEST

# Ticks of an axis at most.
MAX_TICKS = 8
# Ratio of the largest to the smallest value, above which an axis is logarithmic.
LOGARITHMIC_RATIO = 20.0


def is_logarithmic(low: float, high: float) -> bool:
    """Return whether values span more than a decade or so, and are drawn on a logarithmic axis."""
    return low > 0.0 and high / low > LOGARITHMIC_RATIO


def scale_axis(axes: Axes, name: str, values: Iterable[float], *, vertical: bool = False) -> None:
    """Choose scale, ticks and title of an axis.

    Args:
        axes: Axes of the drawing.
        name: Name of the parameter; "" for no title.
        values: The values that are drawn along the axis.
        vertical: Whether it is the y axis.
    """
    axis = axes.yaxis if vertical else axes.xaxis
    set_scale = axes.set_yscale if vertical else axes.set_xscale
    set_title = axes.set_ylabel if vertical else axes.set_xlabel

    distinct = sorted(set(values))
    if is_logarithmic(distinct[0], distinct[-1]):
        set_scale("log")
        is_few = len(distinct) <= MAX_TICKS
        axis.set_major_locator(FixedLocator(distinct) if is_few else LogLocator(subs=(1, 2, 5)))
        axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_locator(few_ticks(MAX_TICKS))
    axis.set_major_formatter(plain_numbers())
    set_title(name)


def widen_limits(limits: tuple[float, float]) -> tuple[float, float]:
    """Widen the limits of an axis, so that differences that do not matter are not to be seen.

    Limits end up at least 2 % of their values and SMALLEST apart; those of a logarithmic axis stay.
    """
    low, high = limits
    if is_logarithmic(low, high):
        return limits

    missing = max(0.01 * abs(low + high) - (high - low), SMALLEST - (high - low), 0.0)
    # Positive values get no negative limit.
    below = min(0.5 * missing, low) if low >= 0.0 else 0.5 * missing
    return low - below, high + missing - below
