"""The plot of the tracked laps."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from simbridge.experiments import (
    tracking,
)
from simbridge.experiments.tracking_plots import plot_laps
from tests.experiments.paper import UR10, around

pytestmark = pytest.mark.slow


def test_a_solver_without_gain_shares_the_axes():
    laps = tracking.sweep(UR10, ["closed-form", "forward-dynamics"], (5.0, 50.0), true=around(UR10))
    figure = Figure()
    plot_laps(laps).draw(figure)
    FigureCanvasAgg(figure).draw()
    panels = np.reshape(figure.axes, (2, 3))
    fixed, swept = panels[:, 2]

    assert (fixed.get_xscale(), fixed.get_xlim(), fixed.get_ylim()) == (
        "log",
        swept.get_xlim(),
        swept.get_ylim(),
    )
    assert [label.get_text() for label in fixed.get_xticklabels()] == ["5", "50"]

    offsets = [
        axis.get_offset_text().get_text()
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
    ]
    assert not any(offsets)
