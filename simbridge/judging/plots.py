"""The plots of a judged log over time: errors by source, the worst joint, and the speeds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from simbridge.judging.judgement import Examination
from simbridge.judging.signal_chain import SIGNALS, Signals
from simbridge.judging.tracking_errors import SignalDifference
from simbridge.judging.wording import ROUNDING
from simbridge.report.charts import Chart, Line, Panel, decimate
from simbridge.report.over_time import (
    MAX_COLUMNS,
    draw_both_widths,
    linear_panel,
    logarithmic_range,
    peak_and_rms,
)
from simbridge.report.palette import (
    ATTAINED,
    LIMITER,
    PLANT,
    REFERENCE,
    RUNS,
    SAMPLING,
    SETPOINT,
    SOLVER,
    TRACKING,
)
from simbridge.report.rendering import LegendEntry
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK

# Heights of the plots, pixels.
ERROR_HEIGHT = 300
JOINT_HEIGHT = 300
SPEED_HEIGHT = 240
# Time shown on both sides of the largest error: at least this long, s, ...
LEAST_AROUND_S = 0.05
# ... this many lags, ...
LAGS_AROUND = 4.0
# ... and this many rows.
ROWS_AROUND = 8

# Colours of the sources of the error, by the last source of a part.
SOURCE_COLOURS = {
    "sending": SAMPLING,
    "network": LIMITER,
    "interpolation": SOLVER,
    "servo law": PLANT,
    "arm": ATTAINED,
}
# Colours of the signals.
SIGNAL_COLOURS = {
    "reference": REFERENCE,
    "command sent": SAMPLING,
    "command taken": LIMITER,
    "setpoint": SETPOINT,
    "target": PLANT,
    "actual": ATTAINED,
}


def part_colour(part: SignalDifference) -> str:
    """Return the colour of a part of the error."""
    return SOURCE_COLOURS[part.source.split(" and ")[-1]]


def error_plot(examination: Examination) -> tuple[list[LegendEntry], Markup] | None:
    """Return the joint error over time, whole and by source; None if no error is known."""
    whole = examination.judgement.whole
    if whole is None:
        return None

    tracked = _tracked_signals(examination)
    curves = [("whole error", whole.whole, TRACKING, 2.4)]
    if len(whole.parts) > 1:
        curves += [
            (part.source, part, part_colour(part), 1.4)
            for part in whole.parts
            if part.size.rms_rad > ROUNDING
        ]

    lines = []
    levels = []
    for name, part, colour, width in curves:
        times, values = _error_curve(tracked, part.leading, part.trailing)
        known = values[np.isfinite(values)]
        if len(known) and known.max() > 0.0:
            kept = decimate(values, MAX_COLUMNS)
            lines.append(Line(name, colour, times[kept], values[kept], width))
            levels.append(peak_and_rms(known))
    if not lines:
        return None

    # Parts often differ a hundredfold, which a logarithmic axis shows.
    title = "Largest joint error (mrad)"
    unit = f"{NO_BREAK}mrad"
    if len(lines) > 1:
        panel = Panel(title, lines, logarithmic_range(levels), unit, logarithmic=True)
    else:
        panel = Panel(title, lines, (0.0, 1.08 * levels[0][0]), unit)
    chart = Chart([panel], examination.log.times, ERROR_HEIGHT)
    label = "Largest error of a joint over time in mrad: whole, and by source"
    drawn = draw_both_widths(lambda width: chart.svg(f"error{width}", label, width))
    legend = [LegendEntry(line.name, line.colour) for line in lines]
    return legend, chart.html(drawn)


def speed_plot(examination: Examination) -> tuple[list[LegendEntry], Markup]:
    """Return the speed of each joint over time, and the speed scaling where it was recorded."""
    log = examination.log
    velocities = log.joint_velocities
    lines = []
    for number, (name, values) in enumerate(
        zip(log.joint_names, np.degrees(velocities).T, strict=True)
    ):
        colour = RUNS[number % len(RUNS)]
        kept = decimate(values, MAX_COLUMNS)
        shown = name.removesuffix("_joint").replace("_", " ")
        lines.append(Line(shown, colour, log.times[kept], values[kept], 1.2))
    panels = [linear_panel("Joint speed (°/s)", "°/s", lines)]
    legend = [LegendEntry(line.name, line.colour) for line in lines]

    scaling = log.speed_scaling
    if scaling is not None and len(scaling.times) > 1 and np.any(scaling.values != 1.0):
        values = 100.0 * scaling.values
        kept = decimate(values, MAX_COLUMNS)
        line = Line("speed scaling", TRACKING, scaling.times[kept], values[kept], 1.4)
        panels.append(Panel("Speed scaling (%)", [line], (0.0, 105.0), f"{NO_BREAK}%"))

    chart = Chart(panels, log.times, SPEED_HEIGHT * len(panels))
    label = "Speed of each joint over time in degrees per second"
    drawn = draw_both_widths(lambda width: chart.svg(f"speed{width}", label, width))
    return legend, chart.html(drawn)


def worst_plot(examination: Examination) -> tuple[str, list[LegendEntry], Markup] | None:
    """Return the signals of the joint with the largest error around that instant.

    Returns:
        What is shown, as a phrase, the legend and the plot; None if no error is known.
    """
    whole = examination.judgement.whole
    if whole is None or whole.whole.size.max_rad == 0.0:
        return None
    size = whole.whole.size
    names = examination.log.joint_names
    joint = names.index(size.max_joint)
    lag = 0.0 if whole.whole.lag is None else abs(whole.whole.lag.lag_s)
    span = float(np.median(np.diff(examination.log.times)))
    around = max(LEAST_AROUND_S, LAGS_AROUND * lag, ROWS_AROUND * span)
    begin = size.max_at_s - around
    end = size.max_at_s + around

    curves = [_signal_line(examination, name, joint, (begin, end)) for name in SIGNALS]
    lines = [curve for curve in curves if curve is not None]
    if not lines or len(lines[-1].times) < 2:
        return None

    joint_name = size.max_joint.removesuffix("_joint").replace("_", " ")
    panel = _position_panel(f"{joint_name} (°)", lines)
    chart = Chart([panel], lines[-1].times, JOINT_HEIGHT)
    label = f"Signals of {joint_name} around the largest error, in degrees over time"
    drawn = draw_both_widths(lambda width: chart.svg(f"worst{width}", label, width))
    legend = [LegendEntry(line.name, line.colour) for line in lines]
    return f"{joint_name}, at {size.max_at_s:.2f}{NO_BREAK}s", legend, chart.html(drawn)


def _signal_line(
    examination: Examination, name: str, joint: int, span: tuple[float, float]
) -> Line | None:
    """Return a signal of a joint as a curve, in degrees; None if it is not known in a span.

    Args:
        examination: The judged log.
        name: Name of the signal.
        joint: Index of the joint, from 0.
        span: First and last instant, s.
    """
    known = [item for item in _tracked_signals(examination) if name in item.positions]
    if not known:
        return None
    times = np.concatenate([signals.times for signals in known])
    values = np.degrees(np.concatenate([signals.positions[name][:, joint] for signals in known]))
    is_shown = (times >= span[0]) & (times <= span[1])
    if not np.isfinite(values[is_shown]).any():
        return None
    return Line(name, SIGNAL_COLOURS[name], times[is_shown], values[is_shown], 1.6)


def _position_panel(title: str, lines: Sequence[Line]) -> Panel:
    """Return a panel whose axis spans the positions of the lines."""
    values = np.concatenate([line.values[np.isfinite(line.values)] for line in lines])
    low = float(values.min())
    high = float(values.max())
    margin = max(0.06 * (high - low), 1e-3)
    return Panel(title, lines, (low - margin, high + margin), "°")


def _tracked_signals(examination: Examination) -> list[Signals]:
    """Return the signals of the motions whose tracking error is known."""
    motions = examination.judgement.motions
    return [
        signals
        for judged, signals in zip(motions, examination.signals, strict=True)
        if judged.errors is not None
    ]


def _error_curve(tracked: Sequence[Signals], leading: str, trailing: str) -> tuple[Array, Array]:
    """Return the largest difference of a joint between two signals over time, mrad.

    Args:
        tracked: The signals of the motions.
        leading: Name of the one signal.
        trailing: Name of the other.

    Returns:
        Instants (K,), s, and differences (K,), mrad; NaN between motions.
    """
    times = []
    values = []
    for signals in tracked:
        if leading in signals.positions and trailing in signals.positions:
            difference = signals.positions[leading] - signals.positions[trailing]
            times += [signals.times, signals.times[-1:]]
            values += [1e3 * np.abs(difference).max(axis=1), np.array([math.nan])]
    return np.concatenate(times), np.concatenate(values)
