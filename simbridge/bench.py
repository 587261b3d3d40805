"""How fast it is, each figure beside what it is compared to, measured in one run.

Machines differ and share their cores: medians are quoted, and rivals are timed in turn with what they are compared to.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

REPEATS = 5
# These take minutes, and so are only measured when asked for.
_MINUTES = ("servo", "emulator")


class _Results:
    def __init__(self) -> None:
        self.table = Table(box=None, pad_edge=False)
        for name in ("figure", "median", "compared to", "its value"):
            self.table.add_column(name, justify="right" if name in {"median", "its value"} else "left")

    def add(self, figure: str, value: str, rival: str, rival_value: str) -> None:
        self.table.add_row(figure, value, rival, rival_value)


def bench(what: str) -> int:
    """Measure "all" (but for servo and emulator, which take minutes), or one part, and print a table."""
    results = _Results()
    console = Console(highlight=False)
    parts: dict[str, Callable[[_Results], None]] = {
        "solvers": _solvers,
        "run": _run,
        "startup": _startup,
        "servo": _servo,
        "emulator": _emulator,
    }
    for name, part in parts.items():
        if what == name or (what == "all" and name not in _MINUTES):
            with console.status(f"Measuring {name} ..."):
                part(results)
    console.print(results.table)
    return 0


def _interleaved(*actions: Callable[[], object]) -> list[float]:
    """Median wall time of each action, s; taken in turns, so that all see the same machine."""
    for action in actions:
        action()
    taken: list[list[float]] = [[] for _ in actions]
    for _ in range(REPEATS):
        for times, action in zip(taken, actions, strict=True):
            begin = time.perf_counter()
            action()
            times.append(time.perf_counter() - begin)
    return [statistics.median(times) for times in taken]


def _solvers(results: _Results) -> None:
    """One iteration of the paper's solver, compiled, against the same iteration with pinocchio called from Python."""
    from simbridge.ik.forward_dynamics import ForwardDynamics
    from simbridge.robot import load_robot
    from simbridge.trajectory import square

    robot = load_robot("ur10")
    solver = ForwardDynamics(robot, error_clamp=None, step_clamp=None)
    poses = square(laps=1).poses
    start = solver.solve(poses[0]).q
    few = poses[:4]
    compiled, rival = _interleaved(
        lambda: solver.track(poses, start), lambda: _with_pinocchio(robot, solver, few, start)
    )
    ours = compiled / (len(poses) * solver.iterations)
    theirs = rival / (len(few) * solver.iterations)
    results.add("solver, one iteration", f"{ours * 1e9:.0f} ns", "pinocchio from Python", f"{theirs * 1e9:.0f} ns")
    results.add("solver, one step", f"{ours * 5e7:.1f} us", "e-Series control period", "2000 us")


def _with_pinocchio(robot, solver, poses, start):  # type: ignore[no-untyped-def]
    """The same algorithm on pinocchio: forward kinematics, log, Jacobian and the twin's mass matrix by its crba."""
    import pinocchio as pin

    model = robot.model.copy()
    twin = solver.twin
    eye = np.eye(3)
    for joint in range(1, model.njoints):
        model.inertias[joint] = pin.Inertia(twin.link_mass, np.zeros(3), twin.link_inertia * eye)
    at = robot.tool0 * robot.tcp
    model.inertias[model.njoints - 1] += at.act(pin.Inertia(twin.tool_mass, np.zeros(3), twin.tool_inertia * eye))
    data, frame = model.createData(), model.getFrameId("tcp")
    gain, scale = np.array(solver.kp), 0.25 * solver.dt**2
    q = start.copy()
    for pose in poses:
        target = pin.XYZQUATToSE3(pose)
        for _ in range(solver.iterations):
            jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
            tool = data.oMf[frame]
            error = np.concatenate([target.translation - tool.translation, pin.log3(target.rotation @ tool.rotation.T)])
            mass = pin.crba(model, data, q)
            mass = np.triu(mass) + np.triu(mass, 1).T
            q = q + scale * np.linalg.solve(mass, jacobian.T @ (gain * error))
    return q


def _run(results: _Results) -> None:
    """Simulated seconds per wall second of a whole run with logging, and how much of a period its parts take."""
    from simbridge.recording.log import LogWriter
    from simbridge.recording.samples import Samples
    from simbridge.runner import execute, open_backend, prepare

    prepared = prepare("square_tracking")
    plan = prepared.plan

    def logged() -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "log.mcap"
            samples = Samples(plan)
            log = LogWriter(path, joint_names=prepared.robot.joint_names, period=plan.period)
            with open_backend("pybullet", prepared.robot, prepared.options) as arm, log:
                arm.move_to(plan.setpoints[0])
                for state in arm.stream(plan.setpoints):
                    log.write(samples.of(state))

    def unlogged() -> None:
        with open_backend("pybullet", prepared.robot, prepared.options) as arm:
            arm.move_to(plan.setpoints[0])
            for _state in arm.stream(plan.setpoints):
                pass

    def reported() -> None:
        with tempfile.TemporaryDirectory() as directory:
            execute(prepared, out=Path(directory) / "run")

    with_log, without, whole = _interleaved(logged, unlogged, reported)
    factor = f"{plan.duration / with_log:.0f} x real time"
    results.add("the square, with its log", factor, "required", "20 x")
    results.add("the same, no log", f"{plan.duration / without:.0f} x real time", "with its log", factor)
    results.add("the same, metrics, report", f"{whole:.2f} s", "simulated time", f"{plan.duration:.0f} s")
    share = (with_log - without) / plan.samples
    results.add("logging, one sample", f"{share * 1e6:.0f} us", "5 % of a 500 Hz period", "100 us")


def _startup(results: _Results) -> None:
    """Whole processes: the help, and a repeated run with everything cached."""
    program = [sys.executable, "-m", "simbridge"]
    with tempfile.TemporaryDirectory() as directory:
        counter = iter(range(1000))

        def call(*arguments: str) -> None:
            subprocess.run([*program, *arguments], check=True, capture_output=True, cwd=directory)

        helped, bare, ran = _interleaved(
            lambda: call("--help"),
            lambda: subprocess.run([sys.executable, "-c", "pass"], check=True, cwd=directory),
            lambda: call("run", "square_tracking", "--out", f"run{next(counter)}"),
        )
    results.add("simbridge --help", f"{helped:.2f} s", "required, below", "0.30 s")
    results.add("an empty Python process", f"{bare:.2f} s", "simbridge --help", f"{helped:.2f} s")
    results.add("repeated run, whole process", f"{ran:.2f} s", "required, below", "4.00 s")


def _emulator(results: _Results) -> None:
    """The emulator's ticks while the real client streams servoJ for a minute, and under hostile load."""
    from simbridge.emulator.benchmark import measure

    for row in measure():
        results.add(*row)


def _servo(results: _Results) -> None:
    """The servo loop on the emulator for a minute, then for another with the parent computing all the while."""
    from simbridge.bench_servo import measure

    for row in measure():
        results.add(*row)
