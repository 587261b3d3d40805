"""Laps of a moving target around a square, for every gain of every solver: the measurements of experiment D.

The target moves at constant speed. A solver is given it as it is, or as in teleoperation and vision: measured at a low
rate, with noise, each measurement held until the next. On such targets kp sweeps from smoothing filter to exact inverse
kinematics. A high gain follows the noise and jumps with every new target; a low one lags and cuts corners; the arm
stays closest to the true path in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simbridge.experiments.layout import RATE, Layout, pose_errors, rms, start_posture
from simbridge.experiments.setup import DT, has_gain, make_solver
from simbridge.ik.solver import Solver
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import plain
from simbridge.trajectory.shapes import square

SWEPT_SOLVER = "forward-dynamics"
"""The solver whose gain is swept on slow, noisy targets."""
GAINS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Its gains."""
# The largest delay that is searched, and the resolution, s.
_MAX_DELAY, _RESOLUTION = 0.8, 0.005


@dataclass(frozen=True)
class MovingSquare:
    """A target that moves twice around the square at constant speed: on the second lap the solver has settled.

    Attributes:
        speed: Along the edges, m/s.
        times: Instants (T,), `RATE` a second, s.
        poses: Targets (T, 7).
        corners: (4, 3), m, each of them a target.
        second_lap: Its samples.
    """

    speed: float
    times: Array
    poses: Array
    corners: Array
    second_lap: slice

    @staticmethod
    def of(place: Layout, speed: float = 0.2) -> MovingSquare:
        """At `speed` m/s on a UR10, slower on smaller arms; the edges are made a whole number of samples long."""
        scaled = speed * place.scale
        edge = max(1, round(place.side * RATE / scaled))
        path = square(edge * scaled / RATE, place.centre, scaled, RATE, laps=2, orientation=place.orientation)
        corners = path.poses[: 4 * edge : edge, :3]
        return MovingSquare(scaled, path.times, path.poses, corners, slice(4 * edge, 8 * edge + 1))


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
        """Distance from the nearest point of the square, RMS, m."""
        return rms(_from_square(self.points, self.square.corners))

    @cached_property
    def delay(self) -> float:
        """The shift in time at which the target fits the tool best, s."""
        times, poses, lap = self.square.times, self.square.poses, self.square.second_lap
        delays = np.arange(0.0, _MAX_DELAY, _RESOLUTION)
        shifted = (pose.interpolate(times, poses, times[lap] - delay)[:, :3] for delay in delays)
        return float(delays[np.argmin([rms(self.points - points) for points in shifted])])

    @property
    def acceleration(self) -> float:
        """Of all joints together, RMS, rad/s^2."""
        return rms(np.diff(self.joints, 2, axis=0)[self.square.second_lap] * RATE**2)


def slow_targets(robot: Robot, true: MovingSquare, rate: float, noise: float, seed: int = 0) -> Array:
    """The square's poses (T, 7) as measured at a low rate, held in between.

    Args:
        robot: The arm; a planar one gets no noise across its plane.
        true: The square.
        rate: Of the measurements, Hz.
        noise: Their standard deviation along each axis, m.
        seed: Of the noise.
    """
    number = np.floor(true.times * rate + 1e-9)
    measured = pose.interpolate(true.times, true.poses, number / rate)
    offsets = np.random.default_rng(seed).normal(0.0, noise, (int(number[-1]) + 1, 3))
    if robot.planar:
        offsets[:, 2] = 0.0
    measured[:, :3] += offsets[number.astype(int)]
    return measured


def measure(
    robot: Robot, solver: Solver, true: MovingSquare, targets: Array | None = None, kp: float | None = None
) -> Lap:
    """One solver, with its gain (for the record), stepped once per target; the targets are the square's by default.

    Raises:
        TargetOutOfReach: The arm does not reach the first corner.
    """
    joints = solver.track(true.poses if targets is None else targets, start_posture(robot, true.poses[0]))
    lap, lag = joints[true.second_lap], solver.lag(1.0 / RATE)
    errors = pose_errors(robot, true.poses[true.second_lap], lap)
    points = tool_path(robot, lap)[:, :3]
    return Lap(solver.name, kp, true, joints, points, errors, None if lag is None else true.speed * lag)


def sweep(
    robot: Robot,
    names: Sequence[str],
    gains: Sequence[float],
    true: MovingSquare,
    targets: Array | None = None,
    iterations: int = 50,
) -> list[Lap]:
    """Every solver with every gain; a solver without the paper's gain once."""
    laps = []
    for name in names:
        for kp in sorted(set(gains)) if has_gain(name) else (None,):
            settings = {} if kp is None else {"dt": DT, "kp": (kp,)}
            solver = make_solver(robot, name, iterations=iterations, **settings)
            laps.append(measure(robot, solver, true, targets, kp))
    return laps


def swept_solvers(names: Sequence[str]) -> list[str]:
    """The solver whose gain is swept on slow targets, and those of these solvers that have no such gain."""
    return [SWEPT_SOLVER, *(name for name in names if not has_gain(name))]


def _from_square(points: Array, corners: Array) -> Array:
    """Vectors from the nearest point of the square to each point (T, 3), m."""
    begin, edges = corners, np.roll(corners, -1, axis=0) - corners
    part = np.einsum("tek,ek->te", points[:, None] - begin, edges) / np.sum(edges**2, axis=1)
    offsets = points[:, None] - begin - np.clip(part, 0.0, 1.0)[..., None] * edges
    nearest = np.argmin(np.linalg.norm(offsets, axis=2), axis=1)
    return offsets[np.arange(len(points)), nearest]
