"""Experiment D: a target that moves around a square at constant speed, sampled at 100 Hz, for each gain.

The solver is stepped once for every target (dt = 0.1, N = 50, no clamps). Errors are target minus setpoint at those
instants, on the second lap. Low gains smooth and lag, high ones are exact: `gain_sweep` shows what that is good for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from simbridge.experiments import TrackingParameters, gain_sweep
from simbridge.experiments.experiment import Outcome, Plot, Table, number, solver_colour, within, within_part
from simbridge.experiments.layout import RATE, MovingSquare, choose_layout, pose_errors, rms, start_posture
from simbridge.experiments.setup import DT, choose_arm, has_gain, is_paper_arm, make_solver, unique_solvers
from simbridge.ik.solver import Solver
from simbridge.report.drawing import as_written, few_ticks, plain_numbers
from simbridge.report.palette import REFERENCE
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import plain

_KDL = "an independent C++ implementation on Orocos KDL"
_FORWARD_DYNAMICS = {5: (2.285, 2.297, 1.54), 10: (0.789, 0.791, 0.79), 20: (0.168, 0.169, 0.17)}
_TRANSPOSE = {5: 21.5, 10: 11.0, 20: 5.3, 50: 1.8}
EXPECTED = (
    *(
        within_part(f"forward-dynamics, kp {kp}, {what}, mm", value, 0.01, _KDL)
        for kp, values in _FORWARD_DYNAMICS.items()
        for what, value in zip(("RMS", "largest", "corner miss"), values, strict=True)
    ),
    *(within(f"forward-dynamics, kp 50, {what}, mm", 0.0026, 5e-5, _KDL) for what in ("RMS", "largest", "corner miss")),
    *(within(f"jacobian-transpose, kp {kp}, RMS, mm", value, 0.05, _KDL) for kp, value in _TRANSPOSE.items()),
)
"""On a UR10 at 0.2 m/s."""

# An RMS up to this is rounding, mm.
_EXACT = 1e-5


@dataclass(frozen=True)
class Lap:
    """The second lap of one solver with one gain.

    Attributes:
        solver: Its name.
        kp: The gain; None for a solver that has none.
        points: The tool (T, 3), m.
        errors: Target minus tool (T, 6), m and rad.
        corner_misses: Distance from each corner to the nearest setpoint (4,), m.
        predicted: The RMS from the solver's predicted lag at the target's speed, m; None where no lag is known.
    """

    solver: str
    kp: float | None
    points: Array
    errors: Array
    corner_misses: Array
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
    def corner_miss(self) -> float:
        """The largest over the corners, m."""
        return float(self.corner_misses.max())

    def as_data(self) -> dict[str, object]:
        """For JSON."""
        return {
            "solver": self.solver,
            "kp": self.kp,
            "rms_m": self.rms,
            "max_m": self.largest,
            "corner_misses_m": self.corner_misses.tolist(),
            "predicted_rms_m": self.predicted,
        }


def measure(robot: Robot, solver: Solver, target: MovingSquare, kp: float | None = None) -> Lap:
    """One solver, with its gain (for the record), around the square.

    Raises:
        TargetOutOfReach: The arm does not reach the first corner.
    """
    joints = solver.track(target.poses, start_posture(robot, target.poses[0]))[target.second_lap]
    points = tool_path(robot, joints)[:, :3]
    misses = np.linalg.norm(points - target.corners[:, None], axis=2).min(axis=1)
    lag = solver.lag(1.0 / RATE)
    errors = pose_errors(robot, target.poses[target.second_lap], joints)
    return Lap(solver.name, kp, points, errors, misses, None if lag is None else target.speed * lag)


def sweep(
    robot: Robot, names: Sequence[str], gains: Sequence[float], target: MovingSquare, iterations: int = 50
) -> list[Lap]:
    """Every solver with every gain; a solver without the paper's gain once."""
    laps = []
    for name in names:
        for kp in sorted(set(gains)) if has_gain(name) else (None,):
            settings = {} if kp is None else {"dt": DT, "kp": (kp,)}
            laps.append(measure(robot, make_solver(robot, name, iterations=iterations, **settings), target, kp))
    return laps


def figures(laps: Sequence[Lap]) -> dict[str, float]:
    """RMS, largest error and corner miss of every lap."""
    found: dict[str, float] = {}
    for lap in laps:
        found[f"{lap.name}, RMS, mm"] = 1e3 * lap.rms
        found[f"{lap.name}, largest, mm"] = 1e3 * lap.largest
        found[f"{lap.name}, corner miss, mm"] = 1e3 * lap.corner_miss
    return found


def run(parameters: TrackingParameters) -> Outcome:
    """The command."""
    arm = choose_arm(parameters)
    place = choose_layout(arm.robot)
    target = MovingSquare.of(place, parameters.speed)
    names = unique_solvers(parameters.solver)
    laps = sweep(arm.robot, names, parameters.kp, target, parameters.iterations)
    slow = gain_sweep.SlowTargets(target, parameters.target_rate, parameters.noise, parameters.seed)
    points = gain_sweep.sweep(arm.robot, slow, parameters.iterations, others=names)
    known = is_paper_arm(arm.robot) and (parameters.iterations, parameters.speed) == (50, 0.2)
    rows = [
        (
            lap.solver,
            "–" if lap.kp is None else plain(lap.kp),
            *(number(1e3 * value) for value in (lap.rms, lap.largest, lap.corner_miss)),
            "–" if lap.predicted is None else number(1e3 * lap.predicted),
        )
        for lap in laps
    ]
    columns = ("solver", "kp", "RMS", "largest", "corner", "predicted")
    return Outcome(
        figures=figures(laps),
        expected=EXPECTED if known else (),
        data={
            "arm": arm.as_data(),
            "square": place.as_data(),
            "laps": [lap.as_data() for lap in laps],
            "dial": [point.as_data() for point in points],
        },
        tables=[
            Table(f"The square at {target.speed:.3g} m/s, second lap, mm", columns, rows),
            gain_sweep.table(slow, points),
        ],
        plots={"tracking.png": plot(laps), "gain_sweep.png": gain_sweep.plot(arm.robot, slow, points)},
        notes=[
            "Predicted: speed times T rho/(1 - rho), rho = (1 - dt^2 kp / 4 m)^N.",
            *arm.notes,
            *filter(None, [place.note]),
        ],
    )


def plot(laps: Sequence[Lap]) -> Plot:
    """A row per solver: the square with every gain, one corner of it, and the RMS against the gain."""
    names = list(dict.fromkeys(lap.solver for lap in laps))
    gains = sorted({lap.kp for lap in laps if lap.kp is not None})
    # Whole decades, mm.
    shown = np.clip([1e3 * lap.rms for lap in laps], _EXACT, None)
    scale = 10.0 ** math.floor(np.log10(shown.min())), 10.0 ** math.ceil(np.log10(shown.max()) + 0.01)

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


def _opacity(laps: Sequence[Lap], lap: Lap) -> float:
    """The opacity of a lap: the higher the gain, the stronger."""
    return (1.0 + laps.index(lap)) / len(laps)


def _paths(axes: Axes, laps: Sequence[Lap]) -> None:
    targets = 1e3 * (laps[0].points + laps[0].errors[:, :3])
    axes.plot(*targets[:, :2].T, color=REFERENCE, linewidth=4.0, alpha=0.5)
    for lap in laps:
        label = "no gain" if lap.kp is None else f"kp {plain(lap.kp)}"
        axes.plot(*1e3 * lap.points[:, :2].T, label=label, color=solver_colour(lap.solver), alpha=_opacity(laps, lap))
    axes.set_aspect("equal")
    axes.set_xlabel("x, mm")
    axes.set_ylabel("y, mm")


def _zoom_to_corner(axes: Axes, laps: Sequence[Lap]) -> None:
    targets = 1e3 * (laps[0].points + laps[0].errors[:, :3])
    x, y = targets[:, 0].max(), targets[:, 1].min()
    window = min(6e3 * max(lap.corner_miss for lap in laps) + 0.01, float(np.ptp(targets[:, 0])))
    axes.set_xlim(x - 0.8 * window, x + 0.2 * window)
    axes.set_ylim(y - 0.2 * window, y + 0.8 * window)
    # A window of some hundredths of a millimetre around 950 mm: full numbers, no offset to add to them.
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(few_ticks(3))
        axis.set_major_formatter(plain_numbers())


def _gains(axes: Axes, laps: Sequence[Lap], gains: Sequence[float], scale: tuple[float, float]) -> None:
    """The RMS with every gain; a horizontal line for a solver that has none.

    What is exact except for rounding has no place on a logarithmic scale: it is drawn at the bottom, with a label.
    """
    colour = solver_colour(laps[0].solver)
    swept = [(lap.kp, 1e3 * lap.rms) for lap in laps if lap.kp is not None]
    predicted = [(lap.kp, 1e3 * lap.predicted) for lap in laps if lap.kp is not None and lap.predicted is not None]
    if swept:
        axes.plot(*zip(*swept, strict=True), "o-", color=colour, markersize=5, label="measured")
    else:
        exact = 1e3 * laps[0].rms < scale[0]
        axes.axhline(max(1e3 * laps[0].rms, scale[0]), color=colour, linewidth=4.0 if exact else None)
        if exact:
            axes.text(
                0.5, 0.04, f"below {as_written(scale[0])} mm", transform=axes.transAxes, ha="center", color=colour
            )
    if predicted:
        axes.plot(*zip(*predicted, strict=True), "k:", label="predicted lag")
        axes.legend()
    if gains:
        axes.set_xscale("log")
        axes.set_xlim(gains[0] / 1.15, gains[-1] * 1.15)
        axes.set_xlabel("kp, N/m")
    axes.set_xticks(gains, [plain(gain) for gain in gains])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yscale("log")
    axes.set_ylim(scale)
    axes.yaxis.set_major_formatter(plain_numbers())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("RMS, mm")
