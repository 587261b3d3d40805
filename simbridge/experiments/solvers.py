"""All solvers, with their default settings: along one trajectory, and to random poses that can be reached.

The trajectory is a scenario's, the solver stepped once a control period; limits are shown, not kept. The poses are
where random joint positions put the tool; each is solved from other random joint positions, restarts included.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simbridge.errors import InvalidTrajectory, NoClosedForm, TargetOutOfReach
from simbridge.experiments.arm import arm
from simbridge.experiments.drawing import Picture, colour_of
from simbridge.experiments.layout import layout, posture_at
from simbridge.experiments.outcome import Outcome, Table, written
from simbridge.experiments.parameters import SQUARE, SolversParameters
from simbridge.experiments.setting import MovingSquare, errors, rms, solver_named
from simbridge.ik.settings import SOLVERS
from simbridge.ik.solver import Solver
from simbridge.planning.scenario import load_scenario
from simbridge.report.palette import LIMIT
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.trajectory.trajectory import Hold, Trajectory

CLOSE = (1e-3, math.radians(0.1))
"""A pose within these, m and rad, and joints within their limits, is a success."""


@dataclass(frozen=True)
class Tracked:
    """Along the trajectory.

    Attributes:
        rms: Target minus tool, m.
        angle: The same of the rotation, rad.
        peak_speed: Of the fastest joint, rad/s.
        acceleration: Of the joints, all of them together, RMS, rad/s^2: the smoother, the less.
        step_time: Of one step within a whole trajectory, s.
    """

    rms: float
    angle: float
    peak_speed: float
    acceleration: float
    step_time: float


@dataclass(frozen=True)
class Solved:
    """Random poses.

    Attributes:
        successes: Of each pose (P,), whether it was solved.
        restarts: Of each pose (P,); solvers go on to a tolerance far below CLOSE.
        errors: What is left of the translation (P,), m.
        times: Of each call (P,), s.
    """

    successes: Array
    restarts: Array
    errors: Array
    times: Array

    @property
    def success(self) -> float:
        """Part of the poses that were solved."""
        return float(np.mean(self.successes))

    @property
    def median_time(self) -> float:
        """Of a call, s."""
        return float(np.median(self.times))

    @property
    def median_error(self) -> float | None:
        """Of the translation where it was solved, m; None if nowhere."""
        solved = self.errors[self.successes.astype(bool)]
        return float(np.median(solved)) if len(solved) else None


def track(robot: Robot, solver: Solver, targets: Array) -> Tracked:
    """Along targets (T, 7), one a control period, from a posture that was solved for the first."""
    start = posture_at(robot, targets[0])
    # The first call compiles.
    solver.track(targets[:2], start)
    begin = time.perf_counter()
    joints = solver.track(targets, start)
    taken = (time.perf_counter() - begin) / len(joints)
    off = errors(robot, targets, joints)
    speeds = np.diff(joints, axis=0) / robot.period
    return Tracked(
        rms=rms(off[:, :3]),
        angle=rms(off[:, 3:]),
        peak_speed=float(np.abs(speeds).max()),
        acceleration=rms(np.diff(speeds, axis=0) / robot.period),
        step_time=taken,
    )


def targets_of(robot: Robot, scenario: str) -> Array:
    """The targets (T, 7) of a scenario, one a control period.

    Raises:
        UnknownName: There is no such scenario.
        InvalidTrajectory: It lasts less than three periods, from which no acceleration can be told.
    """
    found = load_scenario(scenario, robot)
    return _each_period(robot, found.trajectory, found.hold)


def _each_period(robot: Robot, trajectory: Trajectory, hold: Hold) -> Array:
    times = np.arange(int(trajectory.duration / robot.period) + 1) * robot.period
    if len(times) < 3:
        reason = f"it lasts {trajectory.duration:g} s, less than three control periods of {robot.name}"
        raise InvalidTrajectory(reason, source=trajectory.source)
    return trajectory.target(times, hold)


def trajectory_for(robot: Robot, scenario: str) -> tuple[str, Array | None, list[str]]:
    """Name and targets (T, 7) of the trajectory along which solvers are compared, and what is to be said of it.

    The paper's square is laid out as in experiment D where the arm does not get around it. None if the arm follows no
    square, or does not reach the first target of a scenario.
    """
    try:
        if scenario == SQUARE and (place := layout(robot)).note:
            moving = MovingSquare.of(place)
            targets = _each_period(robot, Trajectory(moving.times, moving.poses), "linear")
            return f"{SQUARE}, around the tool", targets, [place.note]
        targets = targets_of(robot, scenario)
        posture_at(robot, targets[0])
    except TargetOutOfReach as error:
        return scenario, None, [f"{error} So solvers are compared on random poses alone."]
    return scenario, targets, []


def random_joints(robot: Robot, count: int, random: np.random.Generator) -> Array:
    """Joint positions (count, n) within the limits, no joint beyond half a turn."""
    wide = np.where(robot.prismatic, np.inf, math.pi)
    low, high = np.maximum(robot.position_min, -wide), np.minimum(robot.position_max, wide)
    return random.uniform(low, high, (count, robot.n))


def solve(robot: Robot, solver: Solver, samples: int, seed: int = 0) -> Solved:
    """Random reachable poses from random starts, the same for every solver."""
    # A stream of its own: with the seed alone the first poses would be those at the solvers' restart postures.
    random = np.random.default_rng((seed, 1))
    targets = tool_path(robot, random_joints(robot, samples, random))
    starts = random_joints(robot, samples, random)
    solver.solve(targets[0], starts[0])
    rows = []
    for target, start in zip(targets, starts, strict=True):
        begin = time.perf_counter()
        found = solver.solve(target, start)
        taken = time.perf_counter() - begin
        inside = bool(np.all((found.q >= robot.position_min) & (found.q <= robot.position_max)))
        good = inside and found.distance <= CLOSE[0] and found.angle <= CLOSE[1]
        rows.append((good, found.restarts, found.distance, taken))
    return Solved(*np.array(rows, dtype=float).T)


def available(robot: Robot, names: Sequence[str]) -> tuple[dict[str, Solver], list[str]]:
    """The solvers of these names, or all that can solve for the arm; and sentences on those that cannot."""
    if names:
        return {name: solver_named(robot, name) for name in dict.fromkeys(names)}, []
    found, notes = {}, []
    for name in SOLVERS:
        try:
            found[name] = solver_named(robot, name)
        except NoClosedForm as error:
            notes.append(str(error))
    return found, notes


def run(parameters: SolversParameters) -> Outcome:
    """The command."""
    chosen = arm(parameters)
    robot = chosen.robot
    solvers, notes = available(robot, parameters.solver)
    title, targets, about_targets = trajectory_for(robot, parameters.scenario)
    tracked = {} if targets is None else {name: track(robot, solver, targets) for name, solver in solvers.items()}
    solved = {name: solve(robot, solver, parameters.samples, parameters.seed) for name, solver in solvers.items()}
    poses = [
        (
            name,
            f"{100.0 * found.success:.1f}",
            f"{float(found.restarts.mean()):.1f}",
            "–" if found.median_error is None else f"{1e3 * found.median_error:.0e}",
            written(1e6 * found.median_time),
        )
        for name, found in solved.items()
    ]
    return Outcome(
        figures={},
        comparisons=[],
        data={
            "arm": chosen.as_data(),
            "solvers": {
                name: {
                    "trajectory": vars(tracked[name]) if name in tracked else None,
                    "poses": {
                        "success": found.success,
                        "mean_restarts": float(found.restarts.mean()),
                        "median_error_m": found.median_error,
                        "median_time_s": found.median_time,
                    },
                }
                for name, found in solved.items()
            },
        },
        tables=[
            *([] if targets is None else [_along_table(robot, title, targets, tracked)]),
            Table(
                f"{parameters.samples} random poses, random starts: within 1 mm, 0.1 degrees and the joint limits",
                ("solver", "solved %", "restarts", "median mm", "median us"),
                poses,
            ),
        ],
        pictures={"solvers.png": _bars(robot, tracked, solved)},
        notes=[
            "Peak: the fastest joint; limits are not kept here. RMS rad/s²: joint acceleration, the less the smoother. "
            "Solvers go on to 1e-10 m, with restarts until then. Times are this machine's.",
            *notes,
            *chosen.notes,
            *about_targets,
        ],
    )


def _along_table(robot: Robot, title: str, targets: Array, tracked: Mapping[str, Tracked]) -> Table:
    rows = [
        (
            name,
            written(1e3 * found.rms),
            written(math.degrees(found.angle)),
            written(found.peak_speed),
            written(found.acceleration),
            written(1e6 * found.step_time),
        )
        for name, found in tracked.items()
    ]
    return Table(
        f"{title}, {len(targets)} control periods of {1e3 * robot.period:g} ms",
        ("solver", "RMS mm", "RMS deg", "peak rad/s", "RMS rad/s²", "us/step"),
        rows,
    )


def _bars(robot: Robot, tracked: Mapping[str, Tracked], solved: Mapping[str, Solved]) -> Picture:
    """A row a solver, a column a quantity; those of the trajectory only where it was tracked."""
    names = list(solved)
    panels: list[tuple[str, list[float], bool]] = [
        ("poses solved, %", [100.0 * s.success for s in solved.values()], False),
        ("median time, µs", [1e6 * s.median_time for s in solved.values()], True),
    ]
    if tracked:
        panels += [
            ("trajectory: error,\nmm RMS", [1e3 * t.rms for t in tracked.values()], True),
            ("joint acceleration,\nrad/s² RMS", [t.acceleration for t in tracked.values()], False),
            ("peak joint speed,\nrad/s (- - limit)", [t.peak_speed for t in tracked.values()], False),
        ]

    def draw(figure: Figure) -> None:
        columns = figure.subplots(1, len(panels), sharey=True)
        for axes, (label, values, decades) in zip(columns, panels, strict=True):
            _column(axes, names, values, decades)
            axes.set_xlabel(label)
        if tracked:
            columns[-1].axvline(float(robot.max_velocity.min()), color=LIMIT, linestyle="--", linewidth=1.0)
        columns[0].set_yticks(range(len(names)), names)
        columns[0].invert_yaxis()

    return Picture(1.9 + 1.5 * len(panels), 0.9 + 0.36 * len(names), draw)


def _column(axes: Axes, names: Sequence[str], values: Sequence[float], decades: bool) -> None:
    for row, (name, value) in enumerate(zip(names, values, strict=True)):
        if decades:
            axes.plot(value, row, "o", color=colour_of(name), markersize=7)
        else:
            axes.barh(row, value, height=0.6, color=colour_of(name))
    if decades:
        axes.set_xscale("log")
    axes.grid(False, axis="y")
