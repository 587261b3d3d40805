"""A sweep of kp, from smoothing filter to exact inverse kinematics, on targets that are slow and noisy.

A target moves around the square; it is measured at a low rate, with noise, and each measurement is held until the next,
as in teleoperation and vision. A high gain follows the noise and jumps with every new target; a low one lags and cuts
corners; the arm stays closest to the true path in between. A solver without such a gain is one dashed line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from simbridge.experiments.experiment import Plot, Table, number, solver_colour
from simbridge.experiments.layout import RATE, MovingSquare, rms, start_posture
from simbridge.experiments.setup import DT, has_gain, make_solver
from simbridge.ik.solver import Solver
from simbridge.report.palette import INK, REFERENCE
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import plain

SWEPT_SOLVER = "forward-dynamics"
"""The solver whose gain is swept."""
GAINS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""The gains of the sweep."""
# Three of them over time, the higher the gain the darker.
_SHOWN = {1.0: "#7fc8f0", 5.0: "#0072b2", 50.0: "#00335c"}
_TABLED = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
# The largest delay that is searched, and the resolution, s.
_MAX_DELAY, _RESOLUTION = 0.8, 0.005


@dataclass(frozen=True)
class SlowTargets:
    """The moving square as the solver is given it.

    Attributes:
        true: The moving square itself.
        rate: Of the measurements, Hz.
        noise: Their standard deviation along each axis, m.
        seed: Of the noise.
    """

    true: MovingSquare
    rate: float
    noise: float
    seed: int

    def measured(self, robot: Robot) -> Array:
        """The measured targets (T, 7), held in between; for a planar arm without noise across its plane."""
        true = self.true
        number = np.floor(true.times * self.rate + 1e-9)
        measured = pose.interpolate(true.times, true.poses, number / self.rate)
        noise = np.random.default_rng(self.seed).normal(0.0, self.noise, (int(number[-1]) + 1, 3))
        if robot.planar:
            noise[:, 2] = 0.0
        measured[:, :3] += noise[number.astype(int)]
        return measured


@dataclass(frozen=True)
class SweepPoint:
    """One solver with one gain, on the second lap.

    Attributes:
        solver: Its name.
        kp: The gain; None for a solver that has none.
        points: The tool (T, 3), m.
        path_error: Its distance from the nearest point of the square, RMS, m.
        delay: The shift in time at which the true target fits the tool best, s.
        acceleration: Of all joints together, RMS, rad/s^2.
    """

    solver: str
    kp: float | None
    points: Array
    path_error: float
    delay: float
    acceleration: float

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "solver": self.solver,
            "kp": self.kp,
            "off_path_rms_m": self.path_error,
            "delay_s": self.delay,
            "joint_acceleration_rms_rad_s2": self.acceleration,
        }


def measure(robot: Robot, solver: Solver, slow: SlowTargets, kp: float | None = None) -> SweepPoint:
    """One solver, with its gain (for the record), stepped once per sample.

    Raises:
        TargetOutOfReach: The arm does not reach the first corner.
    """
    true = slow.true
    joints = solver.track(slow.measured(robot), start_posture(robot, true.poses[0]))
    points = tool_path(robot, joints)[true.second_lap, :3]
    acceleration = rms(np.diff(joints, 2, axis=0)[true.second_lap] * RATE**2)
    error = rms(_from_square(points, true.corners))
    return SweepPoint(solver.name, kp, points, error, _delay(true, points), acceleration)


def sweep(
    robot: Robot,
    slow: SlowTargets,
    iterations: int = 50,
    gains: Sequence[float] = GAINS,
    others: Sequence[str] = (),
) -> list[SweepPoint]:
    """The forward-dynamics solver with every gain; and each of the other solvers that has no such gain, once."""
    points = []
    for kp in gains:
        solver = make_solver(robot, SWEPT_SOLVER, dt=DT, iterations=iterations, kp=(kp,))
        points.append(measure(robot, solver, slow, kp))
    fixed = [name for name in others if not has_gain(name)]
    return points + [measure(robot, make_solver(robot, name, iterations=iterations), slow) for name in fixed]


def _from_square(points: Array, corners: Array) -> Array:
    """Vectors from the nearest point of the square to each point (T, 3), m."""
    begin, edges = corners, np.roll(corners, -1, axis=0) - corners
    part = np.einsum("tek,ek->te", points[:, None] - begin, edges) / np.sum(edges**2, axis=1)
    offsets = points[:, None] - begin - np.clip(part, 0.0, 1.0)[..., None] * edges
    nearest = np.argmin(np.linalg.norm(offsets, axis=2), axis=1)
    return offsets[np.arange(len(points)), nearest]


def _delay(true: MovingSquare, points: Array) -> float:
    times = true.times[true.second_lap]
    delays = np.arange(0.0, _MAX_DELAY, _RESOLUTION)
    return float(min(delays, key=lambda d: rms(points - pose.interpolate(true.times, true.poses, times - d)[:, :3])))


def table(slow: SlowTargets, points: Sequence[SweepPoint]) -> Table:
    """For the terminal."""
    rows = [
        (s.solver if s.kp is None else plain(s.kp), *map(number, (1e3 * s.path_error, 1e3 * s.delay, s.acceleration)))
        for s in points
        if s.kp is None or s.kp in _TABLED
    ]
    title = f"Gain sweep: targets at {slow.rate:g} Hz, held, {1e3 * slow.noise:g} mm of noise ({SWEPT_SOLVER})"
    return Table(title, ("kp", "path error, mm", "delay, ms", "joint acceleration, rad/s²"), rows)


def plot(robot: Robot, slow: SlowTargets, points: Sequence[SweepPoint]) -> Plot:
    """The first edge over time for three gains, and path error, delay and acceleration against the gain."""

    def draw(figure: Figure) -> None:
        true, measured = slow.true, slow.measured(robot)
        # The first edge of the second lap runs along x: y shows the effect of the noise.
        edge = slice(true.second_lap.start, true.second_lap.start + (true.second_lap.stop - true.second_lap.start) // 4)
        left, right = np.asarray(figure.subfigures(1, 2, width_ratios=(1.25, 1.0)))
        along, across = left.subplots(2, 1)
        _over_time(along, true, measured, points, 0, edge)
        _over_time(across, true, measured, points, 1, edge)
        first = true.times[edge.start]
        along.set_xlim(first + 0.8, first + 1.4)
        low, high = np.interp([first + 0.6, first + 1.4], true.times, 1e3 * true.poses[:, 0])
        along.set_ylim(low, high)
        along.set_ylabel("x, along the edge, mm")
        along.legend(loc="upper left", ncols=2)
        across.set_xlim(first + 0.3, true.times[edge.stop] - 0.1)
        middle = 1e3 * true.poses[edge.start + 1, 1]
        across.set_ylim(middle - 3.5e3 * slow.noise - 0.5, middle + 3.5e3 * slow.noise + 0.5)
        across.set_ylabel("y, across, mm")
        across.set_xlabel("time, s")
        _against_gain(right, points)

    return Plot(9.4, 5.0, draw)


def _over_time(
    axes: Axes, true: MovingSquare, measured: Array, points: Sequence[SweepPoint], axis: int, edge: slice
) -> None:
    times = true.times[edge]
    axes.plot(times, 1e3 * true.poses[edge, axis], color=REFERENCE, linewidth=4.0, alpha=0.5, label="true")
    axes.step(times, 1e3 * measured[edge, axis], where="post", color=INK, linewidth=0.8, label="targets")
    for s in points:
        if s.kp is None or s.kp not in _SHOWN:
            continue
        # A setpoint holds until the next.
        setpoints = 1e3 * s.points[: len(times), axis]
        axes.step(times, setpoints, where="post", label=f"kp {plain(s.kp)}", color=_SHOWN[s.kp], linewidth=1.6)


def _against_gain(figure: SubFigure, points: Sequence[SweepPoint]) -> None:
    swept = [s for s in points if s.kp is not None]
    fixed = [s for s in points if s.kp is None]
    gains = [s.kp for s in swept if s.kp is not None]
    curves: dict[str, Callable[[SweepPoint], float]] = {
        "path error,\nmm RMS": lambda s: 1e3 * s.path_error,
        "delay, ms": lambda s: 1e3 * s.delay,
        "joint acceleration,\nrad/s² RMS": lambda s: s.acceleration,
    }
    panels = figure.subplots(3, 1, sharex=True)
    for axes, (label, figure_of) in zip(panels, curves.items(), strict=True):
        axes.plot(gains, [figure_of(s) for s in swept], "o-", color=solver_colour(SWEPT_SOLVER), markersize=4)
        for s in fixed:
            axes.axhline(figure_of(s), color=solver_colour(s.solver), linestyle="--", label=s.solver)
        axes.set_xscale("log")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0.0)
    panels[0].set_title("smoothing  ←  kp  →  exact")
    if fixed:
        panels[1].legend()
    panels[-1].set_xlabel("kp, N/m")
    panels[-1].set_xticks(gains, [plain(g) for g in gains])
    panels[-1].minorticks_off()
