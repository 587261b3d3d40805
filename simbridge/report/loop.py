"""How the control loop kept its period, and what the controller made of the speed: runs on a controller only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simbridge.report.charts import Line, Panel
from simbridge.report.palette import SETPOINT, SOLVER
from simbridge.report.two_panels import two_panels
from simbridge.text import NO_BREAK

if TYPE_CHECKING:
    from simbridge.evaluation.evaluation import Evaluation


def loop_figure(evaluation: Evaluation) -> str:
    """From one state to the next by the host's clock, and the controller's speed scaling, over the run's time."""
    log = evaluation.log
    between = np.diff(log.host_monotonic) * 1e3
    scaling = log.speed_scaling * 100.0
    panels = [
        Panel(
            "From one state to the next, by the host's clock (ms)",
            [Line("period", SETPOINT, log.stamp[1:], between, 1.2)],
            (0.0, 1.08 * max(float(between.max()), 2e3 * evaluation.plan.period)),
            f"{NO_BREAK}ms",
        ),
        Panel(
            "Speed scaling (%)",
            [Line("speed scaling", SOLVER, log.stamp, scaling, 1.8)],
            (0.0, max(105.0, 1.05 * float(scaling.max()))),
            f"{NO_BREAK}%",
        ),
    ]
    label = "Period of the control loop and speed scaling over time"
    return two_panels("loop", label, panels, log.stamp)
