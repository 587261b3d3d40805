"""Draws experiment D: the square with every gain, and the gain sweep on slow, noisy targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import NullFormatter, NullLocator

from simbridge.experiments.lap import Lap
from simbridge.experiments.outcome import Plot, solver_colour
from simbridge.report.drawing import as_written, few_ticks, plain_numbers
from simbridge.report.palette import INK, REFERENCE, SETPOINT
from simbridge.robot.pose import Array
from simbridge.text import plain

# Functions that return the quantities of a lap of the gain sweep, by the labels of their axes.
SWEPT_QUANTITIES: Mapping[str, Callable[[Lap], float]] = {
    "path error,\nmm RMS": lambda lap: 1e3 * lap.path_error,
    "delay, ms": lambda lap: 1e3 * lap.delay,
    "joint acceleration,\nrad/s² RMS": lambda lap: lap.acceleration,
}
# Colours of the three gains, N/m, that are drawn over time: the higher the gain, the darker.
GAIN_COLOURS = {1.0: "#7fc8f0", 5.0: SETPOINT, 50.0: "#00335c"}
# Largest RMS error that counts as rounding, mm.
EXACT_MM = 1e-5
# Smallest distance of the largest error from the end of its scale, decades.
DECADE_MARGIN = 0.01
# Width of the view of a corner, as a multiple of the largest corner miss.
CORNER_VIEW_RATIO = 6.0
# Smallest width of the view of a corner, mm.
MIN_CORNER_VIEW_MM = 0.01
# Half the height of the view across the edge, in standard deviations of the noise.
NOISE_DEVIATIONS = 3.5
# Space added to that half height, mm.
ACROSS_MARGIN_MM = 0.5


def plot_laps(laps: Sequence[Lap]) -> Plot:
    """Return a plot with a row per solver.

    Each row has the square with every gain, one corner of it, and the RMS error against the gain.
    """
    names = list(dict.fromkeys(lap.solver for lap in laps))
    gains = sorted({lap.kp for lap in laps if lap.kp is not None})

    # The scale of errors, mm, extends over whole decades.
    errors = np.clip([1e3 * lap.rms for lap in laps], EXACT_MM, None)
    lowest = 10.0 ** math.floor(np.log10(errors.min()))
    highest = 10.0 ** math.ceil(np.log10(errors.max()) + DECADE_MARGIN)

    def draw(figure: Figure) -> None:
        """Draw three panels for each solver: its square, a corner, and its errors."""
        panels = figure.subplots(len(names), 3, squeeze=False, width_ratios=(1.0, 1.0, 1.1))
        for name, (square_axes, corner_axes, error_axes) in zip(names, panels, strict=True):
            solver_laps = [lap for lap in laps if lap.solver == name]
            _draw_paths(square_axes, solver_laps)
            _draw_paths(corner_axes, solver_laps)
            _zoom_to_corner(corner_axes, solver_laps)
            _draw_errors(error_axes, solver_laps, lowest)
            _set_scales(error_axes, gains, (lowest, highest))
            square_axes.set_title(name)
            square_axes.legend(loc="center")
        panels[0, 1].set_title("second corner")
        panels[0, 2].set_title("error against gain" if gains else "error")

    return Plot(9.0, 0.2 + 2.9 * len(names), draw)


def _target_points(laps: Sequence[Lap]) -> Array:
    """Return the positions of the targets (T, 3), mm, which are the same for all laps."""
    return 1e3 * (laps[0].points + laps[0].errors[:, :3])


def _draw_paths(axes: Axes, laps: Sequence[Lap]) -> None:
    """Draw the targets and the tool from above; the higher the gain, the stronger the colour."""
    axes.plot(*_target_points(laps)[:, :2].T, color=REFERENCE, linewidth=4.0, alpha=0.5)
    for rank, lap in enumerate(laps, start=1):
        label = "no gain" if lap.kp is None else f"kp {plain(lap.kp)}"
        colour = solver_colour(lap.solver)
        axes.plot(*1e3 * lap.points[:, :2].T, label=label, color=colour, alpha=rank / len(laps))
    axes.set(aspect="equal", xlabel="x, mm", ylabel="y, mm")


def _zoom_to_corner(axes: Axes, laps: Sequence[Lap]) -> None:
    """Limit the view to the surroundings of the second corner, as wide as the largest miss."""
    # The second corner is at the largest x and the smallest y.
    targets = _target_points(laps)
    x = targets[:, 0].max()
    y = targets[:, 1].min()

    # The corner is at four fifths of the view, which is no wider than the square.
    largest_miss_mm = 1e3 * max(lap.corner_miss for lap in laps)
    width = CORNER_VIEW_RATIO * largest_miss_mm + MIN_CORNER_VIEW_MM
    width = min(width, float(np.ptp(targets[:, 0])))
    axes.set(xlim=(x - 0.8 * width, x + 0.2 * width), ylim=(y - 0.2 * width, y + 0.8 * width))

    # The view may be some hundredths of a millimetre around 950 mm: the ticks have full numbers,
    # without an offset to add to them.
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(few_ticks(3))
        axis.set_major_formatter(plain_numbers())


def _draw_errors(axes: Axes, laps: Sequence[Lap], lowest: float) -> None:
    """Draw the RMS error with every gain; a horizontal line for a solver without a gain.

    Args:
        axes: Axes to draw into.
        laps: Laps of one solver.
        lowest: Lower end of the scale of errors, mm.
    """
    # Points of gain, N/m, and error, mm.
    measured = [(lap.kp, 1e3 * lap.rms) for lap in laps if lap.kp is not None]
    predicted = [
        (lap.kp, 1e3 * lap.predicted)
        for lap in laps
        if lap.kp is not None and lap.predicted is not None
    ]
    if measured:
        colour = solver_colour(laps[0].solver)
        axes.plot(*np.transpose(measured), "o-", color=colour, markersize=5, label="measured")
    else:
        _draw_constant_error(axes, laps[0], lowest)
    if predicted:
        axes.plot(*np.transpose(predicted), "k:", label="predicted lag")
        axes.legend()


def _draw_constant_error(axes: Axes, lap: Lap, lowest: float) -> None:
    """Draw the RMS error of a solver without a gain as a horizontal line.

    A solver that is exact except for rounding has no place on a logarithmic scale: its line is at
    the bottom, with a label.

    Args:
        axes: Axes to draw into.
        lap: Lap of the solver.
        lowest: Lower end of the scale of errors, mm.
    """
    colour = solver_colour(lap.solver)
    rms_mm = 1e3 * lap.rms
    is_exact = rms_mm < lowest
    axes.axhline(max(rms_mm, lowest), color=colour, linewidth=4.0 if is_exact else None)
    if is_exact:
        text = f"below {as_written(lowest)} mm"
        axes.text(0.5, 0.04, text, transform=axes.transAxes, ha="center", color=colour)


def _set_scales(axes: Axes, gains: Sequence[float], scale: tuple[float, float]) -> None:
    """Make both scales logarithmic.

    Args:
        axes: Axes with errors against gains.
        gains: All gains, N/m, in ascending order; they are the ticks.
        scale: Lower and upper end of the scale of errors, mm.
    """
    if gains:
        axes.set(xscale="log", xlim=(gains[0] / 1.15, gains[-1] * 1.15), xlabel="kp, N/m")
    axes.set_xticks(gains, [plain(gain) for gain in gains])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(yscale="log", ylim=scale, ylabel="RMS, mm")
    axes.yaxis.set_major_formatter(plain_numbers())
    axes.yaxis.set_minor_formatter(NullFormatter())


def plot_sweep(laps: Sequence[Lap], targets: Array, noise: float) -> Plot:
    """Return a plot of the gain sweep.

    It has the first edge over time for three gains, and path error, delay and acceleration against
    the gain.

    Args:
        laps: Laps of the sweep.
        targets: Target poses as the solvers got them (T, 7).
        noise: Standard deviation of the targets' noise along each axis, m.
    """

    def draw(figure: Figure) -> None:
        """Draw the edge on the left, and the quantities on the right."""
        left, right = np.asarray(figure.subfigures(1, 2, width_ratios=(1.25, 1.0)))
        _draw_edge(left, laps, targets, noise)
        _draw_against_gain(right, laps)

    return Plot(9.4, 5.0, draw)


def _draw_edge(figure: SubFigure, laps: Sequence[Lap], targets: Array, noise: float) -> None:
    """Draw the first edge of the second lap over time, along and across the edge.

    The edge runs along x; y shows the effect of the noise.

    Args:
        figure: Figure to draw into.
        laps: Laps of the sweep.
        targets: Target poses as the solvers got them (T, 7).
        noise: Standard deviation of the targets' noise along each axis, m.
    """
    true = laps[0].square
    start = true.second_lap.start
    stop = true.second_lap.stop
    edge = slice(start, start + (stop - start) // 4)
    begin = true.times[start]

    along, across = figure.subplots(2, 1)
    for axis, axes in enumerate((along, across)):
        _draw_over_time(axes, laps, 1e3 * targets[edge, axis], edge=edge, axis=axis)

    # Along the edge, 0.6 s in which the targets and the lags can be distinguished.
    x_limits = np.interp([begin + 0.6, begin + 1.4], true.times, 1e3 * true.poses[:, 0])
    along.set(xlim=(begin + 0.8, begin + 1.4), ylim=x_limits, ylabel="x, along the edge, mm")
    along.legend(loc="upper left", ncols=2)

    # Across the edge, all of it but the corners.
    middle = 1e3 * true.poses[start + 1, 1]
    half_height = NOISE_DEVIATIONS * 1e3 * noise + ACROSS_MARGIN_MM
    across.set(
        xlim=(begin + 0.3, true.times[edge.stop] - 0.1),
        ylim=(middle - half_height, middle + half_height),
    )
    across.set(xlabel="time, s", ylabel="y, across, mm")


def _draw_over_time(
    axes: Axes, laps: Sequence[Lap], targets: Array, *, edge: slice, axis: int
) -> None:
    """Draw a coordinate of the square, of the targets, and of the tool with three gains.

    Args:
        axes: Axes to draw into.
        laps: Laps of the sweep.
        targets: The coordinate of the targets on the edge, mm.
        edge: Samples of the edge.
        axis: Index of the coordinate: 0 for x, 1 for y.
    """
    square = laps[0].square
    times = square.times[edge]
    true = 1e3 * square.poses[edge][:, axis]
    axes.plot(times, true, color=REFERENCE, linewidth=4.0, alpha=0.5, label="true")
    axes.step(times, targets, where="post", color=INK, linewidth=0.8, label="targets")

    for lap in laps:
        if lap.kp in GAIN_COLOURS:
            # A setpoint holds until the next one.
            axes.step(
                times,
                1e3 * lap.points[: len(times), axis],
                where="post",
                label=f"kp {plain(lap.kp)}",
                color=GAIN_COLOURS[lap.kp],
                linewidth=1.6,
            )


def _draw_against_gain(figure: SubFigure, laps: Sequence[Lap]) -> None:
    """Draw each quantity against the gain; horizontal lines for solvers without a gain."""
    with_gain = [lap for lap in laps if lap.kp is not None]
    without_gain = [lap for lap in laps if lap.kp is None]
    gains = [lap.kp for lap in with_gain if lap.kp is not None]

    panels = figure.subplots(3, 1, sharex=True)
    for axes, (label, measure) in zip(panels, SWEPT_QUANTITIES.items(), strict=True):
        colour = solver_colour(with_gain[0].solver)
        axes.plot(gains, [measure(lap) for lap in with_gain], "o-", color=colour, markersize=4)
        for lap in without_gain:
            colour = solver_colour(lap.solver)
            axes.axhline(measure(lap), color=colour, linestyle="--", label=lap.solver)
        axes.set(xscale="log", ylabel=label)
        axes.set_ylim(bottom=0.0)

    panels[0].set_title("smoothing  ←  kp  →  exact")
    if without_gain:
        panels[1].legend()
    panels[-1].set_xlabel("kp, N/m")
    panels[-1].set_xticks(gains, [plain(gain) for gain in gains])
    panels[-1].minorticks_off()
