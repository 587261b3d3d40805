"""A page's plots against time: the error by its sources, and the joints against their limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from viser import GuiApi, uplot

from simbridge.browser.view import SOURCES, Curve

# Of the whole error, and of its sources; seen on white and on black.
_COLOURS = ("#808080", "#e69f00", "#3b8fd0", "#009e73", "#cc79a7", "#56b4e9")
_RIVAL = "#d55e00"
_JOINTS = (*_COLOURS[1:], _RIVAL, "#a6761d")


# Without the values under the pointer, which are dashes where there is none.
_LEGEND = uplot.Legend(live=False)


def _series(names: Sequence[str], colours: Sequence[str], widths: Sequence[float]) -> tuple[uplot.Series, ...]:
    lines = zip(names, colours, widths, strict=True)
    return (uplot.Series(label="s"), *(uplot.Series(label=n, stroke=c, width=w) for n, c, w in lines))


_ALONE = _series(("error", *SOURCES), _COLOURS, (2.0, *(1.0 for _ in SOURCES)))
_COMPARED = _series(("second solver, or run before",), (_RIVAL,), (2.0,))[1:]


def _scales(curve: Curve, largest: float) -> dict[str, uplot.Scale]:
    return {"x": uplot.Scale(time=False, range=curve.span), "y": uplot.Scale(range=(0.0, largest))}


def _scale(plot: Any, curve: Curve, largest: float) -> None:
    # A plot is made anew by its page when its scales change: only where they do.
    if plot.scales != (scales := _scales(curve, largest)):
        plot.scales = scales


class ErrorPlot:
    """Error against time, with the whole error of a second solver, or of the run before, where there is one."""

    def __init__(self, gui: GuiApi) -> None:
        self._plot = gui.add_uplot(
            Curve().errors,
            _ALONE,
            title="distance from the goal, mm",
            padding=(14, 14, 0, 0),
            scales=_scales(Curve(), 1.0),
            legend=_LEGEND,
            aspect=1.8,
        )
        self._drawn: list[tuple[int, int]] = []

    def show(self, first: Curve, second: Curve | None) -> None:
        """Show what has changed."""
        drawn = [(id(curve), curve.version) for curve in (first, second) if curve is not None]
        if drawn == self._drawn:
            return
        self._drawn = drawn
        data, series = first.errors, _ALONE
        if second is not None:
            time, error = second.errors[:2]
            data = (*data, np.interp(data[0], time, error, left=np.nan, right=np.nan))
            series = (*_ALONE, *_COMPARED)
        _scale(self._plot, first, max(first.largest, second.largest if second is not None else 0.0))
        # The page draws with each of them: it must have the data of every series.
        if second is None:
            self._name(series)
        self._plot.data = data
        self._name(series)

    def _name(self, series: tuple[uplot.Series, ...]) -> None:
        if len(self._plot.series) != len(series):
            self._plot.series = series


class JointPlots:
    """Each joint's share of its range and of its velocity limit, against time."""

    def __init__(self, gui: GuiApi, names: Sequence[str]) -> None:
        self._n, self._drawn = len(names), (0, 0)
        colours = [_JOINTS[i % len(_JOINTS)] for i in range(self._n)]
        self._plots = [
            gui.add_uplot(
                tuple(Curve().joints(self._n)[0]),
                _series(names, colours, [1.5] * self._n),
                title=title,
                padding=(14, 14, 0, 0),
                scales=_scales(Curve(), 100.0),
                legend=_LEGEND,
                aspect=1.8,
            )
            for title in ("joint positions, % of their ranges", "joint velocities, % of their limits")
        ]

    def show(self, curve: Curve) -> None:
        """Show what has changed."""
        if (drawn := (id(curve), curve.version)) != self._drawn:
            self._drawn = drawn
            for plot, data in zip(self._plots, curve.joints(self._n), strict=True):
                _scale(plot, curve, 100.0)
                plot.data = data
