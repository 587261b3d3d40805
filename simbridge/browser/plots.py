"""A page's plots against time: the error by its sources, and the joints against their limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from viser import GuiApi, uplot

from simbridge.browser.view import SOURCES, Curve

# Of the whole error, and of its sources; seen on white and on black.
_COLOURS = ("#808080", "#e69f00", "#3b8fd0", "#009e73", "#cc79a7", "#56b4e9")
_RIVAL = "#d55e00"
_JOINTS = (*_COLOURS[1:], _RIVAL, "#a6761d")


def _series(names: Sequence[str], colours: Sequence[str], widths: Sequence[float]) -> tuple[uplot.Series, ...]:
    lines = zip(names, colours, widths, strict=True)
    return (uplot.Series(label="s"), *(uplot.Series(label=n, stroke=c, width=w) for n, c, w in lines))


def _scales(curve: Curve, largest: float) -> dict[str, uplot.Scale]:
    return {"x": uplot.Scale(time=False, range=curve.span), "y": uplot.Scale(range=(0.0, largest))}


def _scale(plot: Any, curve: Curve, largest: float) -> None:
    # A plot is made anew by its page when its scales change: only where they do.
    if plot.scales != (scales := _scales(curve, largest)):
        plot.scales = scales


class ErrorPlots:
    """Error against time; below it, where there is one, the whole error of a second solver or run."""

    def __init__(self, gui: GuiApi) -> None:
        self._gui = gui
        self._plot = gui.add_uplot(
            Curve().errors,
            _series(("error", *SOURCES), _COLOURS, (2.0, *(1.0 for _ in SOURCES))),
            title="distance from the goal, mm",
            padding=(14, 14, 0, 0),
            scales=_scales(Curve(), 1.0),
            aspect=1.8,
        )
        self._rival: Any = None
        self._drawn: list[tuple[int, int]] = []

    def show(self, first: Curve, second: Curve | None) -> None:
        """Show what has changed."""
        drawn = [(id(curve), curve.version) for curve in (first, second) if curve is not None]
        if drawn == self._drawn:
            return
        self._drawn = drawn
        _scale(self._plot, first, first.largest)
        self._plot.data = first.errors
        if second is None:
            if self._rival is not None:
                self._rival.remove()
            self._rival = None
        elif self._rival is None:
            self._rival = self._gui.add_uplot(
                second.errors[:2],
                _series(("error",), (_RIVAL,), (2.0,)),
                title="the second solver, or the run before, mm",
                aspect=2.5,
                scales=_scales(second, second.largest),
            )
        else:
            _scale(self._rival, second, second.largest)
            self._rival.data = second.errors[:2]


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
