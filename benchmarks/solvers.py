"""Speed of the solvers: per iteration, per step, over many targets, and from a cold start."""

from __future__ import annotations

import functools
import statistics
import tempfile
import tracemalloc
from collections.abc import Iterable

import numpy as np
import pinocchio as pin

from benchmarks.measuring import medians, process_time
from simbridge.bench import Row
from simbridge.ik.closed_form import ClosedForm
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.ik.kernels.mathematics import mobility
from simbridge.ik.selectively_damped import SelectivelyDamped
from simbridge.ik.settings import SOLVERS
from simbridge.ik.solver import Solver, Target
from simbridge.ik.twin import Twin
from simbridge.robot.kinematics import tool_path
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.trajectory.shapes import square
from tests.ik.pinocchio_reference import with_pinocchio

# Targets of a long trajectory.
MANY_TARGETS = 100_000
# Calls of a function that takes microseconds.
CALLS = 500

# Solvers whose start is measured: the most used one; an iterative one; the one without a loop; the
# one with the most code.
STARTED_SOLVERS = ("forward-dynamics", "damped-least-squares", "closed-form", "constrained")
# The iterative solvers, with the time that is required of an iteration.
ITERATIVE_SOLVERS = {
    "jacobian-transpose": "1000 ns",
    "damped-least-squares": "1000 ns",
    "selectively-damped": "12000 ns",
    "pseudoinverse": "12000 ns",
    "feedback": "none",
    "constrained": "none",
}
# A process up to its first step.
START_SCRIPT = """
import sys
from simbridge.ik.settings import SOLVERS
from simbridge.robot.load import load_robot
SOLVERS[sys.argv[1]]().build(load_robot("ur10")).step([0.6, 0.2, 0.4, 0.0, 1.0, 0.0, 0.0])
"""


def measure() -> list[Row]:
    """Measure all of them."""
    robot = load_robot("ur10")
    return [
        *_iteration(robot),
        *_single_step(robot),
        *_many_targets(robot),
        *_experiment_a(robot),
        *_iterative(robot),
        *_starts(),
        *_closed_form(),
    ]


def _iterative(robot: Robot) -> list[Row]:
    """Measure an iteration of each iterative solver, over one lap of the square."""
    poses = square(laps=1).poses
    start = SelectivelyDamped(robot).solve(poses[0]).q
    solvers = [SOLVERS[name]().build(robot) for name in ITERATIVE_SOLVERS]
    durations = medians(*(functools.partial(solver.track, poses, start) for solver in solvers))
    limits = ITERATIVE_SOLVERS.values()

    rows: list[Row] = []
    for solver, limit, duration in zip(solvers, limits, durations, strict=True):
        iteration = 1e9 * duration / (len(poses) * solver.iterations)
        name = f"{solver.name}, one iteration"
        rows.append((name, f"{iteration:.0f} ns", "required, at most", limit))
    return rows


def _closed_form() -> list[Row]:
    """Measure the closed form on two arms."""
    rows: list[Row] = []
    for robot in ("ur10", "ur5e"):
        duration, count = branches_time(robot)
        name = f"closed form, {robot}: {count} branches"
        rows.append((name, f"{1e6 * duration:.1f} us", "required, at most", "5.0 us"))
    return rows


def branches_time(robot_name: str = "ur10") -> tuple[float, int]:
    """Measure a call of `ClosedForm.branches` with a `pinocchio.SE3`.

    The target is the tool's pose at the robot's home, which on UR arms all eight branches attain.

    Returns:
        The median time, s, and the number of branches.
    """
    robot = load_robot(robot_name)
    solver = ClosedForm(robot)
    target = pin.XYZQUATToSE3(tool_path(robot, robot.home[None])[0])
    count = len(solver.branches(target))
    (duration,) = medians(lambda: [solver.branches(target) for _ in range(CALLS)])
    return duration / CALLS, count


def _iteration(robot: Robot) -> list[Row]:
    """Measure an iteration with and without clamps, and the same on pinocchio in the same run."""
    rows: list[Row] = []
    for title, settings in (
        ("clamps on", {}),
        ("plain", {"error_clamp": None, "step_clamp": None}),
    ):
        solver = ForwardDynamics(robot, **settings)  # type: ignore[arg-type]
        poses = square(laps=1).poses[:CALLS]
        start = solver.solve(poses[0]).q
        solver.reset(start)

        few_poses = poses[:4]
        step_time, track_time, pinocchio_time = medians(
            functools.partial(_step_all, solver, poses),
            functools.partial(solver.track, poses, start),
            functools.partial(with_pinocchio, robot, solver, few_poses, start),
        )
        # Of an iteration, ns.
        stepped = 1e9 * step_time / (len(poses) * solver.iterations)
        tracked = 1e9 * track_time / (len(poses) * solver.iterations)
        reference = 1e9 * pinocchio_time / (len(few_poses) * solver.iterations)
        name = f"forward dynamics, {title}: iteration"
        rows += [
            (f"{name}, in track", f"{tracked:.0f} ns", "required, at most", "300 ns"),
            (
                f"{name}, N = 50, step from Python",
                f"{stepped:.0f} ns",
                "pinocchio from Python",
                f"{reference:.0f} ns",
            ),
            (f"{name}, times faster", f"{reference / stepped:.0f} x", "required, at least", "30 x"),
        ]
    return rows


def _step_all(solver: Solver, targets: Iterable[Target]) -> None:
    for target in targets:
        solver.step(target)


def _single_step(robot: Robot) -> list[Row]:
    """Measure a step with one iteration, called from Python."""
    solver = ForwardDynamics(robot, iterations=1)
    targets = [pin.XYZQUATToSE3(pose) for pose in square(laps=1).poses[:CALLS]]
    (duration,) = medians(lambda: _step_all(solver, targets))
    step = f"{1e6 * duration / CALLS:.1f} us"
    return [("one step, N = 1, SE3 given", step, "required, at most", "8.0 us")]


def _many_targets(robot: Robot) -> list[Row]:
    """Measure time, and memory at its highest, of a hundred thousand targets in one call."""
    solver = ForwardDynamics(robot, iterations=1)
    lap = square(laps=1).poses
    poses = np.tile(lap, (MANY_TARGETS // len(lap) + 1, 1))[:MANY_TARGETS]
    start = solver.solve(poses[0]).q
    (duration,) = medians(lambda: solver.track(poses, start))
    tracemalloc.start()
    out = solver.track(poses, start)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return [
        (
            "track, 100,000 targets, N = 1",
            f"{1e3 * duration:.0f} ms",
            "a lap at 500 Hz",
            f"{2 * len(lap):.0f} ms",
        ),
        (
            "track, 100,000 targets: memory",
            f"{peak / 1e6:.2f} MB",
            "its result",
            f"{out.nbytes / 1e6:.2f} MB",
        ),
    ]


def _experiment_a(robot: Robot) -> list[Row]:
    """Measure the matrices of experiment A."""
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (MANY_TARGETS, robot.n))
    twins = [Twin().numbers, Twin.naive(robot.n).numbers]
    blocks = np.split(q, 50)
    (duration,) = medians(
        lambda: [mobility(robot.placements, robot.prismatic, block, twins) for block in blocks]
    )
    name = "experiment A, 100,000 configurations"
    return [(name, f"{1e3 * duration:.0f} ms", "required, at most", "200 ms")]


def _starts() -> list[Row]:
    """Measure processes up to the first step: with an empty cache, and with what that leaves."""
    rows: list[Row] = []
    for solver in STARTED_SOLVERS:
        cold = []
        cached = []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as directory:
                cold.append(process_time("-c", START_SCRIPT, solver, cache=directory))
                cached += [
                    process_time("-c", START_SCRIPT, solver, cache=directory) for _ in range(3)
                ]
        first = f"{statistics.median(cold):.2f} s"
        usual = f"{statistics.median(cached):.2f} s"
        rows.append((f"{solver}, first start ever", first, "required, below", "15.00 s"))
        rows.append((f"{solver}, start with the cache", usual, "required, below", "1.20 s"))
    return rows
