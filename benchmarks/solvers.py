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

_MANY = 100_000
_CALLS = 500

# The most used one; an iterative one; the one without a loop; the one with the most code.
_STARTED = ("forward-dynamics", "damped-least-squares", "closed-form", "constrained")
_ITERATIVE = {
    "jacobian-transpose": "1000 ns",
    "damped-least-squares": "1000 ns",
    "selectively-damped": "12000 ns",
    "pseudoinverse": "12000 ns",
    "feedback": "none",
    "constrained": "none",
}
"""The iterative solvers, with the time that is required of an iteration."""
_START = """
import sys
from simbridge.ik.settings import SOLVERS
from simbridge.robot.load import load_robot
SOLVERS[sys.argv[1]]().build(load_robot("ur10")).step([0.6, 0.2, 0.4, 0.0, 1.0, 0.0, 0.0])
"""


def measure() -> list[Row]:
    """Rows of the table: figure, median, what it is compared to, its value."""
    robot = load_robot("ur10")
    of_arm = (_iteration, _single_step, _many_targets, _experiment_a, _iterative)
    return [*(row for part in of_arm for row in part(robot)), *_starts(), *_closed_form()]


def _iterative(robot: Robot) -> list[Row]:
    """An iteration of each iterative solver, over one lap of the square."""
    poses = square(laps=1).poses
    start = SelectivelyDamped(robot).solve(poses[0]).q
    solvers = [SOLVERS[name]().build(robot) for name in _ITERATIVE]
    taken = medians(*(functools.partial(solver.track, poses, start) for solver in solvers))
    rows: list[Row] = []
    for solver, most, spent in zip(solvers, _ITERATIVE.values(), taken, strict=True):
        iteration = 1e9 * spent / (len(poses) * solver.iterations)
        rows.append(
            (f"{solver.name}, one iteration", f"{iteration:.0f} ns", "required, at most", most)
        )
    return rows


def _closed_form() -> list[Row]:
    rows: list[Row] = []
    for name in ("ur10", "ur5e"):
        spent, count = branches_time(name)
        rows.append(
            (
                f"closed form, {name}: {count} branches",
                f"{1e6 * spent:.1f} us",
                "required, at most",
                "5.0 us",
            )
        )
    return rows


def branches_time(robot_name: str = "ur10") -> tuple[float, int]:
    """Median time of a call of `ClosedForm.branches` with a `pinocchio.SE3`, s, and the number of branches.

    The target is the tool's pose at the robot's home, which on UR arms all eight branches attain.
    """
    robot = load_robot(robot_name)
    solver = ClosedForm(robot)
    target = pin.XYZQUATToSE3(tool_path(robot, robot.home[None])[0])
    count = len(solver.branches(target))
    (taken,) = medians(lambda: [solver.branches(target) for _ in range(_CALLS)])
    return taken / _CALLS, count


def _iteration(robot: Robot) -> list[Row]:
    """An iteration at N = 50 a call, with and without clamps, and the same iteration on pinocchio in the same run."""
    rows: list[Row] = []
    for title, settings in (
        ("clamps on", {}),
        ("plain", {"error_clamp": None, "step_clamp": None}),
    ):
        solver = ForwardDynamics(robot, **settings)  # type: ignore[arg-type]
        poses = square(laps=1).poses[:_CALLS]
        start = solver.solve(poses[0]).q
        solver.reset(start)

        calls, whole, theirs = medians(
            functools.partial(_step_all, solver, poses),
            functools.partial(solver.track, poses, start),
            functools.partial(with_pinocchio, robot, solver, poses[:4], start),
        )
        ours, inside, theirs = (
            1e9 * taken / (count * solver.iterations)
            for taken, count in ((calls, len(poses)), (whole, len(poses)), (theirs, 4))
        )
        name = f"forward dynamics, {title}: iteration"
        rows += [
            (f"{name}, in track", f"{inside:.0f} ns", "required, at most", "300 ns"),
            (
                f"{name}, N = 50, step from Python",
                f"{ours:.0f} ns",
                "pinocchio from Python",
                f"{theirs:.0f} ns",
            ),
            (f"{name}, times faster", f"{theirs / ours:.0f} x", "required, at least", "30 x"),
        ]
    return rows


def _step_all(solver: Solver, targets: Iterable[Target]) -> None:
    for target in targets:
        solver.step(target)


def _single_step(robot: Robot) -> list[Row]:
    solver = ForwardDynamics(robot, iterations=1)
    targets = [pin.XYZQUATToSE3(pose) for pose in square(laps=1).poses[:_CALLS]]
    (taken,) = medians(lambda: _step_all(solver, targets))
    return [
        (
            "one step, N = 1, SE3 given",
            f"{1e6 * taken / _CALLS:.1f} us",
            "required, at most",
            "8.0 us",
        )
    ]


def _many_targets(robot: Robot) -> list[Row]:
    """Time, and memory at its highest, of a hundred thousand targets in one call."""
    solver = ForwardDynamics(robot, iterations=1)
    lap = square(laps=1).poses
    poses = np.tile(lap, (_MANY // len(lap) + 1, 1))[:_MANY]
    start = solver.solve(poses[0]).q
    (taken,) = medians(lambda: solver.track(poses, start))
    tracemalloc.start()
    out = solver.track(poses, start)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return [
        (
            "track, 100,000 targets, N = 1",
            f"{1e3 * taken:.0f} ms",
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
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (_MANY, robot.n))
    twins = [Twin().numbers, Twin.naive(robot.n).numbers]
    blocks = np.split(q, 50)
    (taken,) = medians(
        lambda: [mobility(robot.placements, robot.prismatic, block, twins) for block in blocks]
    )
    return [
        (
            "experiment A, 100,000 configurations",
            f"{1e3 * taken:.0f} ms",
            "required, at most",
            "200 ms",
        )
    ]


def _starts() -> list[Row]:
    """Whole processes up to the first step: with an empty cache, and with what that leaves behind."""
    rows: list[Row] = []
    for solver in _STARTED:
        cold, cached = [], []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as directory:
                cold.append(process_time("-c", _START, solver, cache=directory))
                cached += [process_time("-c", _START, solver, cache=directory) for _ in range(3)]
        for title, times, most in (
            ("first start ever", cold, "15.00 s"),
            ("start with the cache", cached, "1.20 s"),
        ):
            rows.append(
                (f"{solver}, {title}", f"{statistics.median(times):.2f} s", "required, below", most)
            )
    return rows
