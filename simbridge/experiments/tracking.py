"""Experiment D: a target that moves around a square at constant speed, sampled at 100 Hz, for each gain.

The solver is stepped once for every target (dt = 0.1, N = 50, no clamps). Errors are target minus setpoint at those
instants, on the second lap. The gain sweep gives the targets as in teleoperation and vision: measured at a low rate,
with noise, each measurement held until the next. On such targets kp sweeps from smoothing filter to exact inverse
kinematics. A high gain follows the noise and jumps with every new target; a low one lags and cuts corners; the arm
stays closest to the true path in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import NullFormatter, NullLocator

from simbridge.evaluation.metrics.path import contour_error
from simbridge.experiments import KDL, TrackingParameters
from simbridge.experiments.experiment import (
    Outcome,
    Plot,
    Table,
    number,
    solver_colour,
    within,
    within_part,
)
from simbridge.experiments.setup import (
    DT,
    RATE,
    MovingSquare,
    choose_arm,
    choose_layout,
    has_gain,
    is_paper_arm,
    make_solver,
    pose_errors,
    rms,
    start_posture,
    unique_solvers,
)
from simbridge.report.drawing import as_written, few_ticks, plain_numbers
from simbridge.report.palette import INK, REFERENCE, SETPOINT
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import plain

SWEPT_SOLVER = "forward-dynamics"
"""The solver whose gain is swept on slow, noisy targets."""
GAINS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Its gains."""
# The largest delay that is searched, and the resolution, s.
_MAX_DELAY, _RESOLUTION = 0.8, 0.005
_FORWARD_DYNAMICS = {5: (2.285, 2.297, 1.54), 10: (0.789, 0.791, 0.79), 20: (0.168, 0.169, 0.17)}
_TRANSPOSE = {5: 21.5, 10: 11.0, 20: 5.3, 50: 1.8}
EXPECTED = (
    *(
        within_part(f"forward-dynamics, kp {kp}, {what}, mm", value, 0.01, KDL)
        for kp, values in _FORWARD_DYNAMICS.items()
        for what, value in zip(("RMS", "largest", "corner miss"), values, strict=True)
    ),
    *(
        within(f"forward-dynamics, kp 50, {what}, mm", 0.0026, 5e-5, KDL)
        for what in ("RMS", "largest", "corner miss")
    ),
    *(
        within(f"jacobian-transpose, kp {kp}, RMS, mm", value, 0.05, KDL)
        for kp, value in _TRANSPOSE.items()
    ),
)
"""On a UR10 at 0.2 m/s."""

# Three gains of the sweep over time, the higher the gain the darker; and those of the table.
_SHOWN = {1.0: "#7fc8f0", 5.0: SETPOINT, 50.0: "#00335c"}
_TABLED = (None, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
_SWEPT: tuple[tuple[str, Callable[[Lap], float]], ...] = (
    ("path error,\nmm RMS", lambda lap: 1e3 * lap.path_error),
    ("delay, ms", lambda lap: 1e3 * lap.delay),
    ("joint acceleration,\nrad/s² RMS", lambda lap: lap.acceleration),
)
# An RMS up to this is rounding, mm.
_EXACT = 1e-5


@dataclass(frozen=True)
class Lap:
    """The second lap of one solver with one gain.

    Attributes:
        solver: Its name.
        kp: The gain; None for a solver that has none.
        square: The target.
        joints: Joint positions of both laps (2T, n), rad.
        points: The tool (T, 3), m.
        errors: Target minus tool (T, 6), m and rad.
        predicted: The RMS from the solver's predicted lag at the target's speed, m; None where no lag is known.
    """

    solver: str
    kp: float | None
    square: MovingSquare
    joints: Array
    points: Array
    errors: Array
    predicted: float | None

    @property
    def name(self) -> str:
        return self.solver if self.kp is None else f"{self.solver}, kp {plain(self.kp)}"

    @property
    def rms(self) -> float:
        """Of the translation, m."""
        return rms(self.errors[:, :3])

    @property
    def largest(self) -> float:
        """Of the translation, m."""
        return float(np.linalg.norm(self.errors[:, :3], axis=1).max())

    @property
    def corner_misses(self) -> Array:
        """Distance from each corner to the nearest setpoint (4,), m."""
        return np.linalg.norm(self.points - self.square.corners[:, None], axis=2).min(axis=1)

    @property
    def corner_miss(self) -> float:
        """The largest over the corners, m."""
        return float(self.corner_misses.max())

    @property
    def path_error(self) -> float:
        """Contour error, RMS, m."""
        square = self.square
        due = square.times[square.second_lap]
        found = contour_error(square.times, square.poses[:, :3], due, self.points)
        return rms(found.distance[:, np.newaxis])

    @cached_property
    def delay(self) -> float:
        """The shift in time at which the target fits the tool best, s."""
        square, delays = self.square, np.arange(0.0, _MAX_DELAY, _RESOLUTION)
        instants = square.times[square.second_lap]
        shifted = (
            pose.interpolate(square.times, square.poses, instants - delay)[:, :3]
            for delay in delays
        )
        return float(delays[np.argmin([rms(self.points - points) for points in shifted])])

    @property
    def acceleration(self) -> float:
        """Of all joints together, RMS, rad/s^2."""
        return rms(np.diff(self.joints, 2, axis=0)[self.square.second_lap] * RATE**2)


def slow_targets(
    robot: Robot, true: MovingSquare, rate: float, noise: float, seed: int = 0
) -> Array:
    """The square's poses (T, 7) as measured at a low rate, Hz, held in between.

    The noise along each axis has this standard deviation, m; a planar arm gets none across its plane.
    """
    number = np.floor(true.times * rate + 1e-9)
    measured = pose.interpolate(true.times, true.poses, number / rate)
    offsets = np.random.default_rng(seed).normal(0.0, noise, (int(number[-1]) + 1, 3))
    if robot.planar:
        offsets[:, 2] = 0.0
    measured[:, :3] += offsets[number.astype(int)]
    return measured


def sweep(
    robot: Robot,
    names: Sequence[str],
    gains: Sequence[float],
    true: MovingSquare,
    targets: Array | None = None,
    iterations: int = 50,
) -> list[Lap]:
    """Every solver with every gain, stepped once per target (T, 7), by default the square's."""
    laps, second = [], true.second_lap
    for name in names:
        for kp in sorted(set(gains)) if has_gain(name) else (None,):
            settings = {} if kp is None else {"dt": DT, "kp": (kp,)}
            solver = make_solver(robot, name, iterations=iterations, **settings)
            joints = solver.track(
                true.poses if targets is None else targets, start_posture(robot, true.poses[0])
            )
            points = tool_path(robot, joints[second])[:, :3]
            errors, lag = (
                pose_errors(robot, true.poses[second], joints[second]),
                solver.lag(1.0 / RATE),
            )
            predicted = None if lag is None else true.speed * lag
            laps.append(Lap(solver.name, kp, true, joints, points, errors, predicted))
    return laps


def swept_solvers(names: Sequence[str]) -> list[str]:
    """The solver whose gain is swept on slow targets, and those of these solvers that have no such gain."""
    return [SWEPT_SOLVER, *(name for name in names if not has_gain(name))]


def figures(laps: Sequence[Lap]) -> dict[str, float]:
    """RMS, largest error and corner miss of every lap."""
    return {
        f"{lap.name}, {what}, mm": 1e3 * value
        for lap in laps
        for what, value in (
            ("RMS", lap.rms),
            ("largest", lap.largest),
            ("corner miss", lap.corner_miss),
        )
    }


def run(parameters: TrackingParameters) -> Outcome:
    """The command."""
    arm = choose_arm(parameters)
    place, names, iterations = (
        choose_layout(arm.robot),
        unique_solvers(parameters.solver),
        parameters.iterations,
    )
    square = MovingSquare.of(place, parameters.speed)
    laps = sweep(arm.robot, names, parameters.kp, square, iterations=iterations)
    targets = slow_targets(
        arm.robot, square, parameters.target_rate, parameters.noise, parameters.seed
    )
    swept = sweep(arm.robot, swept_solvers(names), GAINS, square, targets, iterations)
    known = is_paper_arm(arm.robot) and (iterations, parameters.speed) == (50, 0.2)
    source = f"{parameters.target_rate:g} Hz, held, {1e3 * parameters.noise:g} mm of noise"
    return Outcome(
        figures=figures(laps),
        expected=EXPECTED if known else (),
        data={
            "arm": arm.as_data(),
            "square": place.as_data(),
            "laps": [
                {
                    "solver": lap.solver,
                    "kp": lap.kp,
                    "rms_m": lap.rms,
                    "max_m": lap.largest,
                    "corner_misses_m": lap.corner_misses.tolist(),
                    "predicted_rms_m": lap.predicted,
                }
                for lap in laps
            ],
            "dial": [
                {
                    "solver": lap.solver,
                    "kp": lap.kp,
                    "off_path_rms_m": lap.path_error,
                    "delay_s": lap.delay,
                    "joint_acceleration_rms_rad_s2": lap.acceleration,
                }
                for lap in swept
            ],
        },
        tables=[
            Table(
                f"The square at {square.speed:.3g} m/s, second lap, mm",
                ("solver", "kp", "RMS", "largest", "corner", "predicted"),
                [
                    (
                        lap.solver,
                        "–" if lap.kp is None else plain(lap.kp),
                        *(number(1e3 * value) for value in (lap.rms, lap.largest, lap.corner_miss)),
                        "–" if lap.predicted is None else number(1e3 * lap.predicted),
                    )
                    for lap in laps
                ],
            ),
            Table(
                f"Gain sweep: targets at {source} ({SWEPT_SOLVER})",
                ("kp", *(label.replace("\n", " ") for label, _ in _SWEPT)),
                [
                    (
                        lap.solver if lap.kp is None else plain(lap.kp),
                        *(number(value(lap)) for _, value in _SWEPT),
                    )
                    for lap in swept
                    if lap.kp in _TABLED
                ],
            ),
        ],
        plots={
            "tracking.png": plot(laps),
            "gain_sweep.png": plot_sweep(swept, targets, parameters.noise),
        },
        notes=[
            "Predicted: speed times T rho/(1 - rho), rho = (1 - dt^2 kp / 4 m)^N.",
            *arm.notes,
            place.note,
        ],
    )


def plot(laps: Sequence[Lap]) -> Plot:
    """A row per solver: the square with every gain, one corner of it, and the RMS against the gain."""
    names = list(dict.fromkeys(lap.solver for lap in laps))
    gains = sorted({lap.kp for lap in laps if lap.kp is not None})
    # Whole decades, mm.
    shown = np.clip([1e3 * lap.rms for lap in laps], _EXACT, None)
    scale = (
        10.0 ** math.floor(np.log10(shown.min())),
        10.0 ** math.ceil(np.log10(shown.max()) + 0.01),
    )

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(names), 3, squeeze=False, width_ratios=(1.0, 1.0, 1.1))
        for row, name in enumerate(names):
            whole, corner, curve = panels[row]
            own = [lap for lap in laps if lap.solver == name]
            for axes in (whole, corner):
                _paths(axes, own)
            _zoom_to_corner(corner, own)
            _gains(curve, own, gains, scale)
            whole.set_title(name)
            whole.legend(loc="center")
        panels[0, 1].set_title("second corner")
        panels[0, 2].set_title("error against gain" if gains else "error")

    return Plot(9.0, 0.2 + 2.9 * len(names), draw)


def _paths(axes: Axes, laps: Sequence[Lap]) -> None:
    targets = 1e3 * (laps[0].points + laps[0].errors[:, :3])
    axes.plot(*targets[:, :2].T, color=REFERENCE, linewidth=4.0, alpha=0.5)
    for rank, lap in enumerate(laps, start=1):
        label = "no gain" if lap.kp is None else f"kp {plain(lap.kp)}"
        # The higher the gain, the stronger.
        opacity = rank / len(laps)
        axes.plot(
            *1e3 * lap.points[:, :2].T, label=label, color=solver_colour(lap.solver), alpha=opacity
        )
    axes.set(aspect="equal", xlabel="x, mm", ylabel="y, mm")


def _zoom_to_corner(axes: Axes, laps: Sequence[Lap]) -> None:
    targets = 1e3 * (laps[0].points + laps[0].errors[:, :3])
    x, y = targets[:, 0].max(), targets[:, 1].min()
    window = min(6e3 * max(lap.corner_miss for lap in laps) + 0.01, float(np.ptp(targets[:, 0])))
    axes.set(xlim=(x - 0.8 * window, x + 0.2 * window), ylim=(y - 0.2 * window, y + 0.8 * window))
    # A window of some hundredths of a millimetre around 950 mm: full numbers, no offset to add to them.
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(few_ticks(3))
        axis.set_major_formatter(plain_numbers())


def _gains(
    axes: Axes, laps: Sequence[Lap], gains: Sequence[float], scale: tuple[float, float]
) -> None:
    """The RMS with every gain; a horizontal line for a solver that has none.

    What is exact except for rounding has no place on a logarithmic scale: it is drawn at the bottom, with a label.
    """
    colour = solver_colour(laps[0].solver)
    swept = [(lap.kp, 1e3 * lap.rms) for lap in laps if lap.kp is not None]
    predicted = [
        (lap.kp, 1e3 * lap.predicted)
        for lap in laps
        if lap.kp is not None and lap.predicted is not None
    ]
    if swept:
        axes.plot(*zip(*swept, strict=True), "o-", color=colour, markersize=5, label="measured")
    else:
        exact = 1e3 * laps[0].rms < scale[0]
        axes.axhline(
            max(1e3 * laps[0].rms, scale[0]), color=colour, linewidth=4.0 if exact else None
        )
        if exact:
            axes.text(
                0.5,
                0.04,
                f"below {as_written(scale[0])} mm",
                transform=axes.transAxes,
                ha="center",
                color=colour,
            )
    if predicted:
        axes.plot(*zip(*predicted, strict=True), "k:", label="predicted lag")
        axes.legend()
    if gains:
        axes.set(xscale="log", xlim=(gains[0] / 1.15, gains[-1] * 1.15), xlabel="kp, N/m")
    axes.set_xticks(gains, [plain(gain) for gain in gains])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(yscale="log", ylim=scale, ylabel="RMS, mm")
    axes.yaxis.set_major_formatter(plain_numbers())
    axes.yaxis.set_minor_formatter(NullFormatter())


def plot_sweep(laps: Sequence[Lap], targets: Array, noise: float) -> Plot:
    """The first edge over time for three gains; and path error, delay and acceleration against the gain."""

    def draw(figure: Figure) -> None:
        true = laps[0].square
        # The first edge of the second lap runs along x: y shows the effect of the noise.
        start, stop = true.second_lap.start, true.second_lap.stop
        edge = slice(start, start + (stop - start) // 4)
        left, right = np.asarray(figure.subfigures(1, 2, width_ratios=(1.25, 1.0)))
        along, across = left.subplots(2, 1)
        for axis, axes in enumerate((along, across)):
            _edge_over_time(axes, laps, 1e3 * targets[edge, axis], edge, axis)
        first = true.times[start]
        shown = np.interp([first + 0.6, first + 1.4], true.times, 1e3 * true.poses[:, 0])
        along.set(xlim=(first + 0.8, first + 1.4), ylim=shown, ylabel="x, along the edge, mm")
        along.legend(loc="upper left", ncols=2)
        middle, wide = 1e3 * true.poses[start + 1, 1], 3.5e3 * noise + 0.5
        across.set(
            xlim=(first + 0.3, true.times[edge.stop] - 0.1), ylim=(middle - wide, middle + wide)
        )
        across.set(xlabel="time, s", ylabel="y, across, mm")
        _against_gain(right, laps)

    return Plot(9.4, 5.0, draw)


def _edge_over_time(
    axes: Axes, laps: Sequence[Lap], targets: Array, edge: slice, axis: int
) -> None:
    times, poses = laps[0].square.times[edge], laps[0].square.poses[edge]
    axes.plot(times, 1e3 * poses[:, axis], color=REFERENCE, linewidth=4.0, alpha=0.5, label="true")
    axes.step(times, targets, where="post", color=INK, linewidth=0.8, label="targets")
    for lap in laps:
        if lap.kp in _SHOWN:
            # A setpoint holds until the next.
            setpoints = 1e3 * lap.points[: len(times), axis]
            axes.step(
                times,
                setpoints,
                where="post",
                label=f"kp {plain(lap.kp)}",
                color=_SHOWN[lap.kp],
                linewidth=1.6,
            )


def _against_gain(figure: SubFigure, laps: Sequence[Lap]) -> None:
    gains, fixed = (
        [lap.kp for lap in laps if lap.kp is not None],
        [lap for lap in laps if lap.kp is None],
    )
    panels = figure.subplots(3, 1, sharex=True)
    for axes, (label, value) in zip(panels, _SWEPT, strict=True):
        swept = [value(lap) for lap in laps if lap.kp is not None]
        axes.plot(gains, swept, "o-", color=solver_colour(SWEPT_SOLVER), markersize=4)
        for lap in fixed:
            axes.axhline(
                value(lap), color=solver_colour(lap.solver), linestyle="--", label=lap.solver
            )
        axes.set(xscale="log", ylabel=label)
        axes.set_ylim(bottom=0.0)
    panels[0].set_title("smoothing  ←  kp  →  exact")
    if fixed:
        panels[1].legend()
    panels[-1].set_xlabel("kp, N/m")
    panels[-1].set_xticks(gains, [plain(gain) for gain in gains])
    panels[-1].minorticks_off()
