"""kp as a dial: from a smoothing filter to exact inverse kinematics, on targets that are slow and noisy.

A target moves around the square; it is measured now and then, with noise, and each measurement is held until the next.
That is what teleoperation and vision give. A high gain follows the noise and jumps with every new target; a low one
trails and cuts corners; where the arm stays closest to the true path is between the two. A solver without such a gain
has one place beside the dial.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from simbridge.experiments.drawing import WANTED, Picture, colour_of
from simbridge.experiments.layout import posture_at
from simbridge.experiments.outcome import Table, written
from simbridge.experiments.setting import DT, RATE, MovingSquare, has_gain, rms, solver_named
from simbridge.ik.solver import Solver
from simbridge.report.palette import INK
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import plain

DIAL = "forward-dynamics"
"""The solver whose gain it is."""
GAINS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""The settings of the dial."""
# Three of them over time, the stronger the gain the darker.
_SHOWN = {1.0: "#7fc8f0", 5.0: "#0072b2", 50.0: "#00335c"}
_TABLED = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
# Delays are looked for up to this, and this finely, s.
_LONGEST, _FINE = 0.8, 0.005


@dataclass(frozen=True)
class SlowTargets:
    """What the solver is given of the moving square.

    Attributes:
        true: The target itself.
        rate: Measurements, Hz.
        noise: Standard deviation of each along each axis, m.
        seed: Of the noise.
    """

    true: MovingSquare
    rate: float
    noise: float
    seed: int

    def measured(self, robot: Robot) -> Array:
        """What is measured of it (T, 7), held in between; of an arm in a plane no noise leads out of it."""
        true = self.true
        number = np.floor(true.times * self.rate + 1e-9)
        measured = pose.interpolate(true.times, true.poses, number / self.rate)
        noise = np.random.default_rng(self.seed).normal(0.0, self.noise, (int(number[-1]) + 1, 3))
        if robot.planar:
            noise[:, 2] = 0.0
        measured[:, :3] += noise[number.astype(int)]
        return measured


@dataclass(frozen=True)
class Setting:
    """What one solver makes of it with one gain, on the second lap.

    Attributes:
        solver: Its name.
        kp: The gain; None for a solver that has none.
        points: The tool (T, 3), m.
        off_path: Its distance from the nearest point of the square, RMS, m.
        delay: By which time the true target fits the tool best, s.
        acceleration: Of the joints, all of them together, RMS, rad/s^2.
    """

    solver: str
    kp: float | None
    points: Array
    off_path: float
    delay: float
    acceleration: float

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "solver": self.solver,
            "kp": self.kp,
            "off_path_rms_m": self.off_path,
            "delay_s": self.delay,
            "joint_acceleration_rms_rad_s2": self.acceleration,
        }


def measure(robot: Robot, solver: Solver, slow: SlowTargets, kp: float | None = None) -> Setting:
    """Any solver, stepped once a sample.

    Args:
        robot: The arm.
        solver: With its gain, if it has one.
        slow: What it is given.
        kp: The solver's gain, for the record.

    Raises:
        TargetOutOfReach: The arm does not reach the first corner.
    """
    true = slow.true
    joints = solver.track(slow.measured(robot), posture_at(robot, true.poses[0]))
    points = tool_path(robot, joints)[true.second, :3]
    acceleration = rms(np.diff(joints, 2, axis=0)[true.second] * RATE**2)
    off = rms(_from_square(points, true.corners))
    return Setting(solver.name, kp, points, off, _delay(true, points), acceleration)


def sweep(
    robot: Robot,
    slow: SlowTargets,
    iterations: int = 50,
    gains: Sequence[float] = GAINS,
    beside: Sequence[str] = (),
) -> list[Setting]:
    """The forward-dynamics solver with every gain; and those solvers beside it that have no such gain, once each."""
    settings = []
    for kp in gains:
        solver = solver_named(robot, DIAL, dt=DT, iterations=iterations, kp=(kp,))
        settings.append(measure(robot, solver, slow, kp))
    fixed = [name for name in beside if not has_gain(name)]
    return settings + [measure(robot, solver_named(robot, name, iterations=iterations), slow) for name in fixed]


def _from_square(points: Array, corners: Array) -> Array:
    """From the nearest point of the square to each point (T, 3), m."""
    begin, edges = corners, np.roll(corners, -1, axis=0) - corners
    part = np.einsum("tek,ek->te", points[:, None] - begin, edges) / np.sum(edges**2, axis=1)
    offsets = points[:, None] - begin - np.clip(part, 0.0, 1.0)[..., None] * edges
    nearest = np.argmin(np.linalg.norm(offsets, axis=2), axis=1)
    return offsets[np.arange(len(points)), nearest]


def _delay(true: MovingSquare, points: Array) -> float:
    times = true.times[true.second]
    delays = np.arange(0.0, _LONGEST, _FINE)
    return float(min(delays, key=lambda d: rms(points - pose.interpolate(true.times, true.poses, times - d)[:, :3])))


def table(slow: SlowTargets, settings: Sequence[Setting]) -> Table:
    """For the terminal."""
    rows = [
        (_label(s), written(1e3 * s.off_path), written(1e3 * s.delay), written(s.acceleration))
        for s in settings
        if s.kp is None or s.kp in _TABLED
    ]
    title = f"kp as a dial: targets at {slow.rate:g} Hz, held, with {1e3 * slow.noise:g} mm of noise ({DIAL})"
    return Table(title, ("kp", "off the path, mm", "delay, ms", "joint acceleration, rad/s²"), rows)


def _label(setting: Setting) -> str:
    return setting.solver if setting.kp is None else plain(setting.kp)


def picture(robot: Robot, slow: SlowTargets, settings: Sequence[Setting]) -> Picture:
    """The first edge over time for three gains, and what is gained and lost along the dial."""

    def draw(figure: Figure) -> None:
        true, measured = slow.true, slow.measured(robot)
        # The first edge of the second lap runs along x: there y is what the noise does to it.
        edge = slice(true.second.start, true.second.start + (true.second.stop - true.second.start) // 4)
        left, right = np.asarray(figure.subfigures(1, 2, width_ratios=(1.25, 1.0)))
        along, across = left.subplots(2, 1)
        _over_time(along, true, measured, settings, 0, edge)
        _over_time(across, true, measured, settings, 1, edge)
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
        _along_the_dial(right, settings)

    return Picture(9.4, 5.0, draw)


def _over_time(
    axes: Axes, true: MovingSquare, measured: Array, settings: Sequence[Setting], axis: int, edge: slice
) -> None:
    times = true.times[edge]
    axes.plot(times, 1e3 * true.poses[edge, axis], color=WANTED, linewidth=4.0, alpha=0.5, label="true")
    axes.step(times, 1e3 * measured[edge, axis], where="post", color=INK, linewidth=0.8, label="targets")
    for s in settings:
        if s.kp is None or s.kp not in _SHOWN:
            continue
        # A setpoint holds until the next.
        points = 1e3 * s.points[: len(times), axis]
        axes.step(times, points, where="post", label=f"kp {plain(s.kp)}", color=_SHOWN[s.kp], linewidth=1.6)


def _along_the_dial(figure: SubFigure, settings: Sequence[Setting]) -> None:
    swept = [s for s in settings if s.kp is not None]
    fixed = [s for s in settings if s.kp is None]
    gains = [s.kp for s in swept if s.kp is not None]
    curves: dict[str, Callable[[Setting], float]] = {
        "off the path,\nmm RMS": lambda s: 1e3 * s.off_path,
        "delay, ms": lambda s: 1e3 * s.delay,
        "joint acceleration,\nrad/s² RMS": lambda s: s.acceleration,
    }
    panels = figure.subplots(3, 1, sharex=True)
    for axes, (label, figure_of) in zip(panels, curves.items(), strict=True):
        axes.plot(gains, [figure_of(s) for s in swept], "o-", color=colour_of(DIAL), markersize=4)
        for s in fixed:
            axes.axhline(figure_of(s), color=colour_of(s.solver), linestyle="--", label=s.solver)
        axes.set_xscale("log")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0.0)
    panels[0].set_title("smoothing  ←  kp  →  exact")
    if fixed:
        panels[1].legend()
    panels[-1].set_xlabel("kp, N/m")
    panels[-1].set_xticks(gains, [plain(g) for g in gains])
    panels[-1].minorticks_off()
