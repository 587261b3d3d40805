"""All solvers, with their default settings: along one trajectory, and to random reachable poses.

The trajectory is a scenario's, the solver stepped once per control period; limits are shown, not
enforced. The poses are the tool's at random joint positions; each is solved from other random joint
positions, restarts included.
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
from simbridge.experiments import SQUARE, SolversParameters
from simbridge.experiments.arm import (
    choose_arm,
    make_solver,
    pose_errors,
    random_joints,
    rms,
    start_posture,
    within_limits,
)
from simbridge.experiments.layout import MovingSquare, choose_layout
from simbridge.experiments.outcome import (
    Outcome,
    Plot,
    ResultTable,
    format_number,
    solver_colour,
)
from simbridge.ik.parameters import IterativeParameters, Jacobian
from simbridge.ik.settings import SOLVERS, FunctionParameters
from simbridge.ik.solver import Solver
from simbridge.planning.scenario import load_scenario
from simbridge.report.palette import LIMIT
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import millimetres
from simbridge.trajectory.trajectory import Hold, Trajectory

# A pose within these, m and rad, with joints within their limits, is solved.
SOLVED_DISTANCE = 1e-3
SOLVED_ANGLE = math.radians(0.1)
# Samples of a trajectory at least: fewer have no acceleration.
MIN_SAMPLES = 3

NOTE = (
    "Peak: the fastest joint; limits are not enforced here. RMS rad/s²: joint acceleration (lower "
    "is smoother). Solvers continue to 1e-10 m, with restarts. Times depend on this computer."
)


@dataclass(frozen=True)
class TrackingFigures:
    """One solver along the trajectory; the names are those of results.json.

    Attributes:
        rms: Target minus tool, m.
        angle: Angle of the rotation, likewise, rad.
        peak_speed: Peak speed of the fastest joint, rad/s.
        acceleration: Acceleration of all joints together, RMS, rad/s^2: the lower, the smoother.
        step_time: Duration of one step within a whole trajectory, s.
    """

    rms: float
    angle: float
    peak_speed: float
    acceleration: float
    step_time: float


@dataclass(frozen=True)
class PoseFigures:
    """One solver on the random poses; the names are those of results.json.

    Attributes:
        success: Part of the poses that were solved.
        mean_restarts: Per pose; solvers continue to a tolerance far below `SOLVED_DISTANCE`.
        median_error_m: The residual of the translation of the solved poses; None if there are none.
        median_time_s: Median duration of a call.
    """

    success: float
    mean_restarts: float
    median_error_m: float | None
    median_time_s: float


@dataclass(frozen=True)
class ComparedTrajectory:
    """The trajectory along which solvers are compared.

    Attributes:
        title: Its name.
        targets: One per control period (T, 7); None if the arm can follow no square, or does not
            reach the first target of a scenario.
        notes: Sentences on it.
    """

    title: str
    targets: Array | None
    notes: tuple[str, ...] = ()


def track(robot: Robot, solver: Solver, targets: Array) -> TrackingFigures:
    """Measure a solver along targets, from a posture solved for the first.

    Args:
        robot: The arm.
        solver: The solver that is measured.
        targets: One per control period (T, 7).
    """
    start = start_posture(robot, targets[0])
    # The first call compiles.
    solver.track(targets[:2], start)

    begin = time.perf_counter()
    joints = solver.track(targets, start)
    step_time = (time.perf_counter() - begin) / len(joints)

    errors = pose_errors(robot, targets, joints)
    speeds = np.diff(joints, axis=0) / robot.period
    return TrackingFigures(
        rms=rms(errors[:, :3]),
        angle=rms(errors[:, 3:]),
        peak_speed=float(np.abs(speeds).max()),
        acceleration=rms(np.diff(speeds, axis=0) / robot.period),
        step_time=step_time,
    )


def scenario_targets(robot: Robot, scenario: str) -> Array:
    """Return the targets (T, 7) of a scenario, one per control period.

    Raises:
        UnknownName: There is no such scenario.
        InvalidTrajectory: It lasts less than three periods, too short for an acceleration.
    """
    loaded = load_scenario(scenario, robot)
    return _sample(robot, loaded.trajectory, loaded.hold)


def _sample(robot: Robot, trajectory: Trajectory, hold: Hold) -> Array:
    """Return the targets (T, 7) of a trajectory, one per control period."""
    times = np.arange(int(trajectory.duration / robot.period) + 1) * robot.period
    if len(times) < MIN_SAMPLES:
        reason = (
            f"it lasts {trajectory.duration:g} s, less than three control periods of {robot.name}"
        )
        raise InvalidTrajectory(reason, source=trajectory.source)
    return trajectory.target(times, hold)


def choose_trajectory(robot: Robot, scenario: str) -> ComparedTrajectory:
    """Return the trajectory along which solvers are compared.

    The paper's square is laid out as in experiment D if the arm cannot follow it where it is.

    Args:
        robot: The arm.
        scenario: A name, a script, or a file.
    """
    try:
        if scenario == SQUARE:
            layout = choose_layout(robot)
            if layout.note:
                moving = MovingSquare.of(layout)
                targets = _sample(robot, Trajectory(moving.times, moving.poses), "linear")
                return ComparedTrajectory(f"{SQUARE}, around the tool", targets, (layout.note,))

        targets = scenario_targets(robot, scenario)
        start_posture(robot, targets[0])
    except TargetOutOfReach as error:
        note = f"{error} Solvers are compared on random poses only."
        return ComparedTrajectory(scenario, None, (note,))
    return ComparedTrajectory(scenario, targets)


def solve(robot: Robot, solver: Solver, samples: int, seed: int = 0) -> PoseFigures:
    """Measure a solver on random reachable poses from random starts, the same for every solver.

    Args:
        robot: The arm.
        solver: The solver that is measured.
        samples: Number of poses.
        seed: Seed of poses and starts.
    """
    # Its own stream: with the seed alone the first poses would be those of the solvers' restart
    # postures.
    random = np.random.default_rng((seed, 1))
    targets = tool_path(robot, random_joints(robot, samples, random))
    starts = random_joints(robot, samples, random)
    # The first call compiles.
    solver.solve(targets[0], starts[0])

    rows = []
    for target, start in zip(targets, starts, strict=True):
        begin = time.perf_counter()
        solution = solver.solve(target, start)
        duration = time.perf_counter() - begin

        is_close = solution.distance <= SOLVED_DISTANCE and solution.angle <= SOLVED_ANGLE
        is_solved = is_close and within_limits(robot, solution.q)
        error = solution.distance if is_solved else math.nan
        rows.append((is_solved, solution.restarts, error, duration))

    success, restarts, errors, times = np.array(rows, dtype=float).T
    return PoseFigures(
        success=float(success.mean()),
        mean_restarts=float(restarts.mean()),
        median_error_m=float(np.nanmedian(errors)) if success.any() else None,
        median_time_s=float(np.median(times)),
    )


def available_solvers(
    robot: Robot, names: Sequence[str], jacobians: Sequence[Jacobian]
) -> tuple[dict[str, Solver], list[str]]:
    """Return the solvers of these names, or all that support the arm.

    A solver that uses the Jacobian is returned once for each of `jacobians`, with the name
    "NAME, difference" where its Jacobian is not exact.

    Args:
        robot: The arm.
        names: Names of solvers; all if empty.
        jacobians: How Jacobians are computed.

    Returns:
        The solvers by name, and notes on those that do not support the arm.
    """
    solvers: dict[str, Solver] = {}
    notes = []
    for name in dict.fromkeys(names or SOLVERS):
        uses_jacobian = issubclass(SOLVERS.get(name, FunctionParameters), IterativeParameters)
        kinds = jacobians if uses_jacobian else ("exact",)
        try:
            for kind in kinds:
                title = name if kind == "exact" else f"{name}, {kind}"
                solvers[title] = make_solver(robot, name, jacobian=kind)
        except NoClosedForm as error:
            if names:
                raise
            notes.append(str(error))
    return solvers, notes


def run(parameters: SolversParameters) -> Outcome:
    """Carry out the command."""
    arm = choose_arm(parameters)
    robot = arm.robot
    solvers, solver_notes = available_solvers(robot, parameters.solver, parameters.jacobian)
    trajectory = choose_trajectory(robot, parameters.scenario)

    tracked: dict[str, TrackingFigures] = {}
    if trajectory.targets is not None:
        for name, solver in solvers.items():
            tracked[name] = track(robot, solver, trajectory.targets)
    solved = {
        name: solve(robot, solver, parameters.samples, parameters.seed)
        for name, solver in solvers.items()
    }

    tables = []
    if trajectory.targets is not None:
        periods = f"{len(trajectory.targets)} control periods of {1e3 * robot.period:g} ms"
        tables.append(_trajectory_table(f"{trajectory.title}, {periods}", tracked))
    tables.append(_pose_table(parameters.samples, solved))

    data = {}
    for name, pose_figures in solved.items():
        trajectory_figures = vars(tracked[name]) if name in tracked else None
        data[name] = {"trajectory": trajectory_figures, "poses": vars(pose_figures)}
    return Outcome(
        figures={},
        data={"arm": arm.as_data(), "solvers": data},
        tables=tables,
        plots={"solvers.png": _plot(robot, tracked, solved)},
        notes=[NOTE, *solver_notes, *arm.notes, *trajectory.notes],
    )


def _trajectory_table(title: str, tracked: Mapping[str, TrackingFigures]) -> ResultTable:
    """Return a table with a row for each solver along the trajectory."""
    rows = []
    for name, figures in tracked.items():
        rows.append(
            (
                name,
                format_number(1e3 * figures.rms),
                format_number(math.degrees(figures.angle)),
                format_number(figures.peak_speed),
                format_number(figures.acceleration),
                format_number(1e6 * figures.step_time),
            )
        )
    columns = ("solver", "RMS mm", "RMS deg", "peak rad/s", "RMS rad/s²", "µs/step")
    return ResultTable(title, columns, rows)


def _pose_table(samples: int, solved: Mapping[str, PoseFigures]) -> ResultTable:
    """Return a table with a row for each solver on the random poses."""
    rows = []
    for name, figures in solved.items():
        rows.append(
            (
                name,
                f"{100.0 * figures.success:.1f}",
                f"{figures.mean_restarts:.1f}",
                millimetres(figures.median_error_m),
                format_number(1e6 * figures.median_time_s),
            )
        )
    title = f"{samples} random poses, random starts: within 1 mm, 0.1 degrees and the joint limits"
    columns = ("solver", "solved %", "restarts", "median mm", "median µs")
    return ResultTable(title, columns, rows)


@dataclass(frozen=True)
class SolverPanel:
    """One quantity of all solvers in the plot.

    Attributes:
        label: Name and unit.
        values: One per solver.
        is_logarithmic: Whether its scale is.
    """

    label: str
    values: list[float]
    is_logarithmic: bool = False

    def draw(self, axes: Axes, names: Sequence[str]) -> None:
        """Draw a point or a bar for each solver, in its colour."""
        for row, (name, value) in enumerate(zip(names, self.values, strict=True)):
            if self.is_logarithmic:
                axes.semilogx(value, row, "o", color=solver_colour(name), markersize=7)
            else:
                axes.barh(row, value, height=0.6, color=solver_colour(name))
        axes.grid(False, axis="y")
        axes.set_xlabel(self.label)


def _panels(
    tracked: Mapping[str, TrackingFigures], solved: Mapping[str, PoseFigures]
) -> list[SolverPanel]:
    """Return the quantities of the plot; those of the trajectory only where it was tracked."""
    success = [100.0 * figures.success for figures in solved.values()]
    times = [1e6 * figures.median_time_s for figures in solved.values()]
    panels = [
        SolverPanel("poses solved, %", success),
        SolverPanel("median time, µs", times, is_logarithmic=True),
    ]
    if not tracked:
        return panels

    errors = [1e3 * figures.rms for figures in tracked.values()]
    accelerations = [figures.acceleration for figures in tracked.values()]
    speeds = [figures.peak_speed for figures in tracked.values()]
    return [
        *panels,
        SolverPanel("trajectory: error,\nmm RMS", errors, is_logarithmic=True),
        SolverPanel("joint acceleration,\nrad/s² RMS", accelerations),
        SolverPanel("peak joint speed,\nrad/s (- - limit)", speeds),
    ]


def _plot(
    robot: Robot, tracked: Mapping[str, TrackingFigures], solved: Mapping[str, PoseFigures]
) -> Plot:
    """Return a plot with a row per solver, and a column per quantity."""
    names = list(solved)
    panels = _panels(tracked, solved)

    def draw(figure: Figure) -> None:
        columns = figure.subplots(1, len(panels), sharey=True)
        for axes, panel in zip(columns, panels, strict=True):
            panel.draw(axes, names)
        if tracked:
            limit = float(robot.max_velocity.min())
            columns[-1].axvline(limit, color=LIMIT, linestyle="--", linewidth=1.0)
        columns[0].set_yticks(range(len(names)), names)
        columns[0].invert_yaxis()

    return Plot(1.9 + 1.5 * len(panels), 0.9 + 0.36 * len(names), draw)
