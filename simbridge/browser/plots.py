"""The plots of a page's panel: errors and joints against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import viser
from viser import uplot

from simbridge.browser.curve import Curve
from simbridge.browser.snapshot import SOURCES
from simbridge.robot.pose import Array

# Colours of the whole error and of its sources, legible on white and on black.
ERROR_COLOUR = "#808080"
SOURCE_COLOURS = ("#e69f00", "#3b8fd0", "#009e73", "#cc79a7", "#56b4e9")
RIVAL_COLOUR = "#d55e00"
JOINT_COLOURS = (*SOURCE_COLOURS, RIVAL_COLOUR, "#a6761d")

# Widths of lines, pixels.
THICK = 2.0
MEDIUM = 1.5
THIN = 1.0

TIME_SERIES = uplot.Series(label="s")
# The error of one solver, and with it that of a second one, or of the run before.
ERROR_SERIES = (
    TIME_SERIES,
    uplot.Series(label="error", stroke=ERROR_COLOUR, width=THICK),
    *(
        uplot.Series(label=source, stroke=colour, width=THIN)
        for source, colour in zip(SOURCES, SOURCE_COLOURS, strict=True)
    ),
)
COMPARED_SERIES = (
    *ERROR_SERIES,
    uplot.Series(label="second solver / previous run", stroke=RIVAL_COLOUR, width=THICK),
)


class ErrorPlot:
    """Error by source against time.

    If there is a second solver, or a run before, its whole error is shown too.
    """

    def __init__(self, gui: viser.GuiApi) -> None:
        title = "distance from the goal, mm"
        self._plot = _add_plot(gui, title, Curve().errors, ERROR_SERIES, largest=1.0)
        # Identity and version of the curves that were drawn.
        self._drawn: list[tuple[int, int]] = []

    def show(self, first: Curve, second: Curve | None) -> None:
        """Show the errors of one or two curves, unless they are drawn already.

        Args:
            first: Curve of the solver, or of a run.
            second: Curve of the second solver, or of the run before.
        """
        drawn = [(id(curve), curve.version) for curve in (first, second) if curve is not None]
        if drawn == self._drawn:
            return
        self._drawn = drawn

        data = first.errors
        series: tuple[uplot.Series, ...] = ERROR_SERIES
        largest = first.largest
        if second is not None:
            times, error = second.errors[:2]
            second_error = np.interp(data[0], times, error, left=np.nan, right=np.nan)
            data = (*data, second_error)
            series = COMPARED_SERIES
            largest = max(largest, second.largest)

        _set_scales(self._plot, first, largest)
        # The page draws after each of these assignments, and must have data for every series then:
        # a series that goes is removed before the data are set, and a new one is added after that.
        if len(series) < len(self._plot.series):
            self._plot.series = series
        self._plot.data = data
        if len(series) > len(self._plot.series):
            self._plot.series = series


class JointPlots:
    """Plots of the use of each joint's range and velocity limit, against time.

    Args:
        gui: Viser's panel.
        names: Names of the joints.
    """

    def __init__(self, gui: viser.GuiApi, names: Sequence[str]) -> None:
        self._n = len(names)
        series = [TIME_SERIES]
        for index, name in enumerate(names):
            colour = JOINT_COLOURS[index % len(JOINT_COLOURS)]
            series.append(uplot.Series(label=name, stroke=colour, width=MEDIUM))

        titles = ("joint positions, % of their ranges", "joint velocities, % of their limits")
        empty = Curve().joints(self._n)[0]
        self._plots = [
            _add_plot(gui, title, empty, tuple(series), largest=100.0) for title in titles
        ]
        # Identity and version of the curve that was drawn.
        self._drawn = (0, 0)

    def show(self, curve: Curve) -> None:
        """Show the joints of a curve, unless they are drawn already."""
        drawn = (id(curve), curve.version)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        for plot, data in zip(self._plots, curve.joints(self._n), strict=True):
            _set_scales(plot, curve, 100.0)
            plot.data = data


def _add_plot(
    gui: viser.GuiApi,
    title: str,
    data: tuple[Array, ...],
    series: tuple[uplot.Series, ...],
    *,
    largest: float,
) -> Any:
    """Add an empty plot, without the values under the pointer: dashes where there is none."""
    return gui.add_uplot(
        data,
        series,
        title=title,
        padding=(14, 14, 0, 0),
        scales=_scales(Curve(), largest),
        legend=uplot.Legend(live=False),
        aspect=1.8,
    )


def _scales(curve: Curve, largest: float) -> dict[str, uplot.Scale]:
    """Return the scales of a plot: the curve's time, and values from 0 to the largest."""
    return {
        "x": uplot.Scale(time=False, range=curve.span),
        "y": uplot.Scale(range=(0.0, largest)),
    }


def _set_scales(plot: Any, curve: Curve, largest: float) -> None:
    """Set a plot's scales only where they change, for its page then makes it anew."""
    scales = _scales(curve, largest)
    if plot.scales != scales:
        plot.scales = scales
