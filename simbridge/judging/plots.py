"""Draws a judged log over time: errors by source, the worst joint, and the speeds."""

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

# Height of the plot of the errors, pixels.
ERROR_HEIGHT = 300
# Height of the plot of the joint with the largest error, pixels.
JOINT_HEIGHT = 300
# Height of each panel of the plot of the speeds, pixels.
SPEED_HEIGHT = 240

# Widths of the curves, pixels.
WHOLE_ERROR_WIDTH = 2.4
PART_WIDTH = 1.4
JOINT_SPEED_WIDTH = 1.2
SCALING_WIDTH = 1.4
SIGNAL_WIDTH = 1.6

# Smallest time shown on each side of the largest error, s.
MIN_AROUND_S = 0.05
# Smallest time shown on each side of the largest error, as a multiple of the lag.
LAGS_AROUND = 4.0
# Smallest time shown on each side of the largest error, as a number of rows.
ROWS_AROUND = 8
# Empty space above and below a plotted quantity, as a fraction of its range.
RANGE_MARGIN = 0.06
# Smallest empty space above and below joint positions, degrees.
MIN_POSITION_MARGIN = 1e-3
# Top of the axis of errors, as a multiple of the largest error.
ERROR_TOP = 1.08
# Range of the axis of the speed scaling, %.
SCALING_RANGE = (0.0, 105.0)

# Colours of the parts of the error; a part with several sources has the colour of the last one.
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

    # The curves: name, part of the error, colour and width.
    tracked = _tracked_signals(examination)
    curves = [("whole error", whole.whole, TRACKING, WHOLE_ERROR_WIDTH)]
    if len(whole.parts) > 1:
        curves += [
            (part.source, part, part_colour(part), PART_WIDTH)
            for part in whole.parts
            if part.size.rms_rad > ROUNDING
        ]

    # The lines to draw, and the peak and RMS of each for the range of the axis.
    lines = []
    levels = []
    for name, part, colour, width in curves:
        times, values = _trace_error(tracked, part.leading, part.trailing)
        known = values[np.isfinite(values)]
        if len(known) and known.max() > 0.0:
            samples = decimate(values, MAX_COLUMNS)
            lines.append(Line(name, colour, times[samples], values[samples], width))
            levels.append(peak_and_rms(known))
    if not lines:
        return None

    # Parts often differ a hundredfold, which a logarithmic axis shows.
    title = "Largest joint error (mrad)"
    unit = f"{NO_BREAK}mrad"
    if len(lines) > 1:
        panel = Panel(title, lines, logarithmic_range(levels), unit, logarithmic=True)
    else:
        peak, _ = levels[0]
        panel = Panel(title, lines, (0.0, ERROR_TOP * peak), unit)
    chart = Chart([panel], examination.log.times, ERROR_HEIGHT)
    label = "Largest error of a joint over time in mrad: whole, and by source"
    drawings = draw_both_widths(lambda width: chart.svg(f"error{width}", label, width))
    legend = [LegendEntry(line.name, line.colour) for line in lines]
    return legend, chart.html(drawings)


def speed_plot(examination: Examination) -> tuple[list[LegendEntry], Markup]:
    """Return the legend and the plot of the joint speeds over time.

    A second panel shows the speed scaling, if it was recorded and was not 1 throughout.
    """
    # A line for each joint, through only as many samples as the plot can show.
    log = examination.log
    speeds = np.degrees(log.joint_velocities)
    lines = []
    for index, name in enumerate(log.joint_names):
        colour = RUNS[index % len(RUNS)]
        speed = speeds[:, index]
        samples = decimate(speed, MAX_COLUMNS)
        joint_name = _shorten_joint_name(name)
        line = Line(joint_name, colour, log.times[samples], speed[samples], JOINT_SPEED_WIDTH)
        lines.append(line)
    panels = [linear_panel("Joint speed (°/s)", "°/s", lines)]
    legend = [LegendEntry(line.name, line.colour) for line in lines]

    # The recorded speed scaling, in a panel of its own.
    scaling = log.speed_scaling
    if scaling is not None and len(scaling.times) > 1 and np.any(scaling.values != 1.0):
        percent = 100.0 * scaling.values
        samples = decimate(percent, MAX_COLUMNS)
        times = scaling.times[samples]
        line = Line("speed scaling", TRACKING, times, percent[samples], SCALING_WIDTH)
        panels.append(Panel("Speed scaling (%)", [line], SCALING_RANGE, f"{NO_BREAK}%"))

    chart = Chart(panels, log.times, SPEED_HEIGHT * len(panels))
    label = "Speed of each joint over time in degrees per second"
    drawings = draw_both_widths(lambda width: chart.svg(f"speed{width}", label, width))
    return legend, chart.html(drawings)


def worst_plot(examination: Examination) -> tuple[str, list[LegendEntry], Markup] | None:
    """Return a plot of the signals of the joint with the largest error, around its instant.

    Returns:
        The joint and the instant, as a phrase, the legend and the plot; None if no error is known.
    """
    errors = examination.judgement.whole
    if errors is None or errors.whole.size.max_rad == 0.0:
        return None

    # The span that is shown.
    size = errors.whole.size
    joint = examination.log.joint_names.index(size.max_joint)
    lag_s = 0.0 if errors.whole.lag is None else abs(errors.whole.lag.lag_s)
    row_span_s = float(np.median(np.diff(examination.log.times)))
    around_s = max(MIN_AROUND_S, LAGS_AROUND * lag_s, ROWS_AROUND * row_span_s)
    span = (size.max_at_s - around_s, size.max_at_s + around_s)

    candidates = [_signal_line(examination, name, joint, span) for name in SIGNALS]
    lines = [line for line in candidates if line is not None]
    if not lines or len(lines[-1].times) < 2:
        return None

    joint_name = _shorten_joint_name(size.max_joint)
    panel = _position_panel(f"{joint_name} (°)", lines)
    chart = Chart([panel], lines[-1].times, JOINT_HEIGHT)
    label = f"Signals of {joint_name} around the largest error, in degrees over time"
    drawings = draw_both_widths(lambda width: chart.svg(f"worst{width}", label, width))
    legend = [LegendEntry(line.name, line.colour) for line in lines]
    return f"{joint_name}, at {size.max_at_s:.2f}{NO_BREAK}s", legend, chart.html(drawings)


def _shorten_joint_name(name: str) -> str:
    """Return a joint's name for people: "wrist 1" for "wrist_1_joint"."""
    return name.removesuffix("_joint").replace("_", " ")


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
    return Line(name, SIGNAL_COLOURS[name], times[is_shown], values[is_shown], SIGNAL_WIDTH)


def _position_panel(title: str, lines: Sequence[Line]) -> Panel:
    """Return a panel whose axis spans the positions of the lines."""
    values = np.concatenate([line.values[np.isfinite(line.values)] for line in lines])
    low = float(values.min())
    high = float(values.max())
    margin = max(RANGE_MARGIN * (high - low), MIN_POSITION_MARGIN)
    return Panel(title, lines, (low - margin, high + margin), "°")


def _tracked_signals(examination: Examination) -> list[Signals]:
    """Return the signals of the motions whose tracking error is known."""
    motions = examination.judgement.motions
    return [
        signals
        for judged, signals in zip(motions, examination.signals, strict=True)
        if judged.errors is not None
    ]


def _trace_error(tracked: Sequence[Signals], leading: str, trailing: str) -> tuple[Array, Array]:
    """Return the largest difference of a joint between two signals over time, mrad.

    Args:
        tracked: Signals of each motion.
        leading: Name of the leading signal.
        trailing: Name of the trailing signal.

    Returns:
        Instants (K,), s, and differences (K,), mrad; NaN between motions.
    """
    times = []
    values = []
    for signals in tracked:
        if leading in signals.positions and trailing in signals.positions:
            difference = signals.positions[leading] - signals.positions[trailing]
            largest_mrad = 1e3 * np.abs(difference).max(axis=1)
            # A last value of NaN breaks the curve at the end of the motion.
            times += [signals.times, signals.times[-1:]]
            values += [largest_mrad, np.array([math.nan])]
    return np.concatenate(times), np.concatenate(values)
