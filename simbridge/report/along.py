"""Is it late, or is it off the path? Contour error and along-path lag over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simbridge.report.charts import Line, Panel
from simbridge.report.palette import ATTAINED, PLANT
from simbridge.report.two_panels import two_panels
from simbridge.text import NO_BREAK, millimetres, milliseconds

if TYPE_CHECKING:
    from simbridge.evaluation.evaluation import Evaluation


def along_path(evaluation: Evaluation) -> str:
    """Two linear axes on one clock: distance to the path, and how far behind along it."""
    stamps, contour = evaluation.log.stamp, evaluation.contour
    panels = [
        _panel("Distance to the path, time aside (mm)", "to the path", ATTAINED, stamps, contour.distance * 1e3),
        _panel("Behind along the path (mm)", "behind", PLANT, stamps, contour.lag * 1e3),
    ]
    label = "Distance to the path and lag along it, in mm over time"
    return two_panels("along", label, panels, stamps)


def _panel(title: str, name: str, colour: str, stamps: Any, values: Any) -> Panel:
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    room = 0.06 * max(high - low, 1e-4)
    return Panel(title, [Line(name, colour, stamps, values, 1.6)], (low - room, high + room), f"{NO_BREAK}mm")


def told(summary: Mapping[str, Any]) -> str:
    """The answer in a sentence or two."""
    off, lag = summary["contour_error"]["position_m"], summary["along_path_lag"]
    length, time = lag["length_m"], lag["time_s"]
    way = "behind" if length["mean"] >= 0.0 else "ahead"
    text = (
        f"Time aside, the tool was {millimetres(off['rms'])}{NO_BREAK}mm RMS off its path "
        f"({millimetres(off['max'])}{NO_BREAK}mm at most). Along the path it was "
        f"{millimetres(abs(length['mean']))}{NO_BREAK}mm {way} on average"
    )
    if time is not None and time["mean"] is not None and np.isfinite(time["mean"]):
        text += f", {milliseconds(abs(time['mean']))}{NO_BREAK}ms where it moved"
    return f"{text}."
