"""What an iteration of each iterative solver costs, beside what is asked of it."""

from __future__ import annotations

import statistics
import time

_REQUIRED = {
    "jacobian-transpose": "1000 ns",
    "damped-least-squares": "1000 ns",
    "selectively-damped": "12000 ns",
    "pseudoinverse": "12000 ns",
    "feedback": "none",
    "constrained": "none",
}
_REPEATS = 7


def measure() -> list[tuple[str, str, str, str]]:
    """Rows of figure, median, what it is compared to, and that: each solver tracks one lap of the square on a UR10."""
    from simbridge.ik.selectively_damped import SelectivelyDamped
    from simbridge.ik.settings import SOLVERS
    from simbridge.robot.load import load_robot
    from simbridge.trajectory.shapes import square

    robot, poses = load_robot("ur10"), square(laps=1).poses
    start = SelectivelyDamped(robot).solve(poses[0]).q
    solvers = [SOLVERS[name]().build(robot) for name in _REQUIRED]
    taken: dict[str, list[float]] = {name: [] for name in _REQUIRED}
    # The first round compiles, or loads what has been compiled before.
    for repeat in range(_REPEATS + 1):
        for solver in solvers:
            begin = time.perf_counter()
            solver.track(poses, start)
            spent = (time.perf_counter() - begin) / (len(poses) * solver.iterations)
            if repeat > 0:
                taken[solver.name].append(spent)
    return [
        (f"{name}, one iteration", f"{statistics.median(times) * 1e9:.0f} ns", "required, at most", _REQUIRED[name])
        for name, times in taken.items()
    ]
