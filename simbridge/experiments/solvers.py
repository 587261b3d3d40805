"""All solvers, with their default settings: along one trajectory, and to random reachable poses.

The trajectory is a scenario's, the solver stepped once per control period; limits are shown, not enforced. The poses
are the tool's at random joint positions; each is solved from other random joint positions, restarts included.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from simbridge.errors import InvalidTrajectory, NoClosedForm, TargetOutOfReach
from simbridge.experiments import SQUARE, SolversParameters
from simbridge.experiments.experiment import Outcome, Plot, Table, number, solver_colour
from simbridge.experiments.setup import (
    MovingSquare,
    choose_arm,
    choose_layout,
    make_solver,
    pose_errors,
    rms,
    start_posture,
    within_limits,
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

SOLVED = (1e-3, math.radians(0.1))
"""A pose within these, m and rad, with joints within their limits, is solved."""


@dataclass(frozen=True)
class Tracked:
    """One solver along the trajectory.

    Attributes:
        rms: Target minus tool, m.
        angle: The same for the rotation, rad.
        peak_speed: Of the fastest joint, rad/s.
        acceleration: Of all joints together, RMS, rad/s^2: the lower, the smoother.
        step_time: Of one step within a whole trajectory, s.
    """

    rms: float
    angle: float
    peak_speed: float
    acceleration: float
    step_time: float


@dataclass(frozen=True)
class Solved:
    """One solver on the random poses; the names are those of results.json.

    Attributes:
        success: Part of the poses that were solved.
        mean_restarts: Per pose; solvers continue to a tolerance far below `SOLVED`.
        median_error_m: The residual of the translation of the solved poses; None if there are none.
        median_time_s: Of a call.
    """

    success: float
    mean_restarts: float
    median_error_m: float | None
    median_time_s: float


def track(robot: Robot, solver: Solver, targets: Array) -> Tracked:
    """Along targets (T, 7), one per control period, from a posture solved for the first."""
    start = start_posture(robot, targets[0])
    # The first call compiles.
    solver.track(targets[:2], start)
    begin = time.perf_counter()
    joints = solver.track(targets, start)
    step_time = (time.perf_counter() - begin) / len(joints)
    errors = pose_errors(robot, targets, joints)
    speeds = np.diff(joints, axis=0) / robot.period
    return Tracked(
        rms=rms(errors[:, :3]),
        angle=rms(errors[:, 3:]),
        peak_speed=float(np.abs(speeds).max()),
        acceleration=rms(np.diff(speeds, axis=0) / robot.period),
        step_time=step_time,
    )


def scenario_targets(robot: Robot, scenario: str) -> Array:
    """The targets (T, 7) of a scenario, one per control period.

    Raises:
        UnknownName: There is no such scenario.
        InvalidTrajectory: It lasts less than three periods, too short for an acceleration.
    """
    loaded = load_scenario(scenario, robot)
    return _sample(robot, loaded.trajectory, loaded.hold)


def _sample(robot: Robot, trajectory: Trajectory, hold: Hold) -> Array:
    times = np.arange(int(trajectory.duration / robot.period) + 1) * robot.period
    if len(times) < 3:
        reason = (
            f"it lasts {trajectory.duration:g} s, less than three control periods of {robot.name}"
        )
        raise InvalidTrajectory(reason, source=trajectory.source)
    return trajectory.target(times, hold)


def choose_trajectory(robot: Robot, scenario: str) -> tuple[str, Array | None, list[str]]:
    """Name and targets (T, 7) of the trajectory along which solvers are compared, and notes on it.

    The paper's square is laid out as in experiment D if the arm cannot follow it where it is. The targets are None if
    the arm can follow no square, or does not reach the first target of a scenario.
    """
    try:
        if scenario == SQUARE and (place := choose_layout(robot)).note:
            moving = MovingSquare.of(place)
            targets = _sample(robot, Trajectory(moving.times, moving.poses), "linear")
            return f"{SQUARE}, around the tool", targets, [place.note]
        targets = scenario_targets(robot, scenario)
        start_posture(robot, targets[0])
    except TargetOutOfReach as error:
        return scenario, None, [f"{error} Solvers are compared on random poses only."]
    return scenario, targets, []


def random_joints(robot: Robot, count: int, random: np.random.Generator) -> Array:
    """Joint positions (count, n) within the limits and half a turn from zero."""
    wide = np.where(robot.prismatic, np.inf, math.pi)
    low, high = np.maximum(robot.position_min, -wide), np.minimum(robot.position_max, wide)
    return random.uniform(low, high, (count, robot.n))


def solve(robot: Robot, solver: Solver, samples: int, seed: int = 0) -> Solved:
    """Random reachable poses from random starts, the same for every solver."""
    # Its own stream: with the seed alone the first poses would be those of the solvers' restart postures.
    random = np.random.default_rng((seed, 1))
    targets = tool_path(robot, random_joints(robot, samples, random))
    starts = random_joints(robot, samples, random)
    solver.solve(targets[0], starts[0])
    rows = []
    for target, start in zip(targets, starts, strict=True):
        begin = time.perf_counter()
        found = solver.solve(target, start)
        duration = time.perf_counter() - begin
        solved = (
            within_limits(robot, found.q)
            and found.distance <= SOLVED[0]
            and found.angle <= SOLVED[1]
        )
        rows.append((solved, found.restarts, found.distance if solved else math.nan, duration))
    success, restarts, errors, times = np.array(rows, dtype=float).T
    error = float(np.nanmedian(errors)) if success.any() else None
    return Solved(float(success.mean()), float(restarts.mean()), error, float(np.median(times)))


def available_solvers(
    robot: Robot, names: Sequence[str], jacobians: Sequence[Jacobian]
) -> tuple[dict[str, Solver], list[str]]:
    """The solvers of these names, or all that support the arm; and notes on those that do not.

    Those that use the Jacobian are there with each of `jacobians`, as "NAME, difference" where it is not the exact one.
    """
    found: dict[str, Solver] = {}
    notes = []
    for name in dict.fromkeys(names or SOLVERS):
        kinds = (
            jacobians
            if issubclass(SOLVERS.get(name, FunctionParameters), IterativeParameters)
            else ("exact",)
        )
        try:
            for kind in kinds:
                found[name if kind == "exact" else f"{name}, {kind}"] = make_solver(
                    robot, name, jacobian=kind
                )
        except NoClosedForm as error:
            if names:
                raise
            notes.append(str(error))
    return found, notes


def run(parameters: SolversParameters) -> Outcome:
    """The command."""
    arm = choose_arm(parameters)
    robot = arm.robot
    solvers, notes = available_solvers(robot, parameters.solver, parameters.jacobian)
    title, targets, trajectory_notes = choose_trajectory(robot, parameters.scenario)
    tracked = (
        {}
        if targets is None
        else {name: track(robot, solver, targets) for name, solver in solvers.items()}
    )
    solved = {
        name: solve(robot, solver, parameters.samples, parameters.seed)
        for name, solver in solvers.items()
    }
    tables = [_pose_table(parameters.samples, solved)]
    if targets is not None:
        periods = f"{len(targets)} control periods of {1e3 * robot.period:g} ms"
        tables.insert(0, _trajectory_table(f"{title}, {periods}", tracked))
    return Outcome(
        figures={},
        data={
            "arm": arm.as_data(),
            "solvers": {
                name: {
                    "trajectory": vars(tracked[name]) if name in tracked else None,
                    "poses": vars(found),
                }
                for name, found in solved.items()
            },
        },
        tables=tables,
        plots={"solvers.png": _plot(robot, tracked, solved)},
        notes=[
            "Peak: the fastest joint; limits are not enforced here. RMS rad/s²: joint acceleration, the lower the "
            "smoother. Solvers continue to 1e-10 m, with restarts. Times depend on this machine.",
            *notes,
            *arm.notes,
            *trajectory_notes,
        ],
    )


def _trajectory_table(title: str, tracked: Mapping[str, Tracked]) -> Table:
    rows = [
        (
            name,
            *map(
                number,
                (
                    1e3 * t.rms,
                    math.degrees(t.angle),
                    t.peak_speed,
                    t.acceleration,
                    1e6 * t.step_time,
                ),
            ),
        )
        for name, t in tracked.items()
    ]
    return Table(
        title, ("solver", "RMS mm", "RMS deg", "peak rad/s", "RMS rad/s²", "µs/step"), rows
    )


def _pose_table(samples: int, solved: Mapping[str, Solved]) -> Table:
    rows = [
        (
            name,
            f"{100.0 * found.success:.1f}",
            f"{found.mean_restarts:.1f}",
            millimetres(found.median_error_m),
            number(1e6 * found.median_time_s),
        )
        for name, found in solved.items()
    ]
    title = f"{samples} random poses, random starts: within 1 mm, 0.1 degrees and the joint limits"
    return Table(title, ("solver", "solved %", "restarts", "median mm", "median µs"), rows)


def _plot(robot: Robot, tracked: Mapping[str, Tracked], solved: Mapping[str, Solved]) -> Plot:
    """A row per solver, a column per quantity; those of the trajectory only where it was tracked."""
    names = list(solved)
    panels: list[tuple[str, list[float], bool]] = [
        ("poses solved, %", [100.0 * s.success for s in solved.values()], False),
        ("median time, µs", [1e6 * s.median_time_s for s in solved.values()], True),
    ]
    if tracked:
        panels += [
            ("trajectory: error,\nmm RMS", [1e3 * t.rms for t in tracked.values()], True),
            ("joint acceleration,\nrad/s² RMS", [t.acceleration for t in tracked.values()], False),
            (
                "peak joint speed,\nrad/s (- - limit)",
                [t.peak_speed for t in tracked.values()],
                False,
            ),
        ]

    def draw(figure: Figure) -> None:
        columns = figure.subplots(1, len(panels), sharey=True)
        for axes, (label, values, logarithmic) in zip(columns, panels, strict=True):
            for row, (name, value) in enumerate(zip(names, values, strict=True)):
                if logarithmic:
                    axes.semilogx(value, row, "o", color=solver_colour(name), markersize=7)
                else:
                    axes.barh(row, value, height=0.6, color=solver_colour(name))
            axes.grid(False, axis="y")
            axes.set_xlabel(label)
        if tracked:
            columns[-1].axvline(
                float(robot.max_velocity.min()), color=LIMIT, linestyle="--", linewidth=1.0
            )
        columns[0].set_yticks(range(len(names)), names)
        columns[0].invert_yaxis()

    return Plot(1.9 + 1.5 * len(panels), 0.9 + 0.36 * len(names), draw)
