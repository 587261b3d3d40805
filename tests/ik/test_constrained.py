"""The constrained step with custom rows, and the rows that it counts as dependent."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from simbridge.errors import InvalidParameter
from simbridge.ik.constrained import Constrained, Rows, SoftRows
from simbridge.ik.pseudoinverse import Pseudoinverse
from simbridge.ik.targets import residual
from simbridge.robot import load_robot
from simbridge.robot.kinematics import task_jacobian, tool_path

pytestmark = pytest.mark.slow

# Strict rows of the user are compiled for the UR10 alone in `make test`: that takes ten seconds.
UR10, PLANAR2R, PLANAR3R = (load_robot(name) for name in ("ur10", "planar2r", "planar3r"))
SOAK = pytest.mark.soak
PLAIN = {"error_clamp": (math.inf, math.inf), "step_clamp": math.inf}
TARGET = tool_path(PLANAR3R, np.array([[0.4, 0.9, -0.5]]))[0]


def settled(solver, target=TARGET, steps=60):
    q = solver.track(np.tile(target, (steps, 1)), solver.robot.home)[-1]
    assert residual(solver.task, target, tool_path(solver.robot, q[None])[0])[0] < 1e-4
    return q


def test_custom_soft_rows_replace_the_natural_posture():
    # One joint is redundant: the last one goes exactly to the wanted angle, and the tool to its
    # target.
    last = np.array([[0.0, 0.0, 1.0]])
    q = settled(Constrained(PLANAR3R, soft=SoftRows(last, lambda q: 0.3 * (0.7 - q[2:]))))

    assert q[2] == pytest.approx(0.7, abs=1e-3)
    assert settled(Constrained(PLANAR3R))[2] != pytest.approx(0.7, abs=0.05)


def test_heavier_soft_rows_win_over_lighter_ones():
    both = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    ends = [
        settled(
            Constrained(PLANAR3R, soft=SoftRows(both, lambda q: 0.3 * ([0.9, 0.3] - q[2]), weights))
        )[2]
        for weights in ([1.0, 1.0], [3.0, 1.0])
    ]

    assert ends == pytest.approx([0.6, 0.75], abs=2e-3)


@pytest.mark.python_kernels
def test_joints_rest_in_free_directions():
    # Held by its pan joint alone, an arm with three joints to spare does not stray: that joint and
    # the task decide.
    held = SoftRows([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]], [0.0])
    home_pose = tool_path(UR10, UR10.home[None])[0]
    q = Constrained(UR10, soft=held, task="position").track(np.tile(home_pose, (8, 1)), UR10.home)[
        -1
    ]

    assert np.abs(q - UR10.home).max() < 1e-12


def test_custom_strict_rows_hold_together_with_the_task():
    # Two joints are geared together: their difference is driven to zero, and stays.
    gear = np.array([[0.0, 0.0, 0.0, 0.0, 1.0, -1.0]])
    target = tool_path(UR10, UR10.home[None] + 0.1)[0]
    pulled = Rows(gear, lambda q: -0.5 * gear @ q)
    q = settled(Constrained(UR10, strict=pulled, task="position"), target)

    assert q[4] == pytest.approx(q[5], abs=1e-6)

    # With a wanted motion of zero the difference stays as it was at the start.
    q = settled(Constrained(UR10, strict=Rows(gear, [0.0]), task="position"), target)

    assert q[4] - q[5] == pytest.approx(UR10.home[4] - UR10.home[5], abs=1e-9)


@pytest.mark.python_kernels
@pytest.mark.parametrize("task", ["position", "axis", "pose"])
def test_an_iteration_solves_the_lectures_system(task):
    rng = np.random.default_rng(7)
    q = UR10.home
    target = tool_path(UR10, (q + 1e-7 * rng.normal(size=6))[None])[0]
    soft = rng.normal(size=(8, 6))
    wanted = 1e-6 * rng.normal(size=8)
    weights = rng.uniform(0.5, 2.0, 8)
    solver = Constrained(
        UR10, soft=SoftRows(soft, wanted, weights), task=task, iterations=1, **PLAIN
    )
    moved = solver.track(target[None], q)[0] - q
    strict = task_jacobian(UR10, q, task)
    reached = strict @ moved
    m = len(strict)
    kkt = np.block([[2.0 * (soft.T * weights) @ soft, strict.T], [strict, np.zeros((m, m))]])
    expected = np.linalg.solve(kkt, np.r_[2.0 * (soft.T * weights) @ wanted, reached])[:6]

    assert np.abs(moved - expected).max() < 1e-8 * np.abs(expected).max()

    remaining = residual(task, target, tool_path(UR10, (q + moved)[None])[0])

    assert max(remaining) < 1e-11


@pytest.mark.parametrize(("joint", "motion"), [(0, 0.0), (2, 0.0), (4, 0.01)])
def test_strict_rows_always_hold(joint, motion):
    row = np.eye(6)[joint : joint + 1]
    solver = Constrained(UR10, strict=Rows(row, [motion]), task="position", iterations=1)
    rng = np.random.default_rng(2)

    for _ in range(10):
        target = tool_path(UR10, (UR10.home + rng.uniform(-1.5, 1.5, 6))[None])
        joints = solver.track(np.tile(target, (40, 1)), UR10.home)
        moved = np.diff(np.vstack([UR10.home, joints]), axis=0)
        most = np.abs(moved).max(axis=1)
        clamp = solver.settings.step_clamp
        assert most.max() <= clamp * (1.0 + 1e-12)
        # Near a singular posture the rows themselves may ask for more than the clamp: then all of
        # the motion is theirs.
        obeyed = np.abs(moved[:, joint] - motion) < 1e-12
        assert np.all(obeyed | (most > clamp * (1.0 - 1e-12)))
        assert obeyed[:10].all()


@pytest.mark.parametrize(
    ("robot", "count", "driven"),
    [
        pytest.param(UR10, 1, False, id="ur10-locked"),
        pytest.param(UR10, 4, True, id="ur10-4-driven"),
        pytest.param(UR10, 1, True, marks=SOAK, id="ur10-driven"),
        pytest.param(PLANAR3R, 1, False, marks=SOAK, id="planar3r-locked"),
        pytest.param(PLANAR3R, 1, True, marks=SOAK, id="planar3r-driven"),
        pytest.param(PLANAR3R, 2, False, marks=SOAK, id="planar3r-2-locked"),
        pytest.param(PLANAR3R, 2, True, marks=SOAK, id="planar3r-2-driven"),
    ],
)
def test_strict_rows_win_over_a_contradicting_task(robot, count, driven):
    rng = np.random.default_rng(4)

    # Each joint is the first of those that are held.
    for first in range(robot.n):
        # These joints are driven to angles, or locked; the target is reached with others, or not at
        # all.
        held = (first + np.arange(count)) % robot.n
        rows = np.eye(robot.n)[held]
        start = robot.home + rng.uniform(-0.3, 0.3, robot.n)
        wanted = robot.home[held] + rng.uniform(-0.5, 0.5, count) if driven else start[held]
        pull = Rows(rows, (lambda q: 0.3 * (wanted - rows @ q)) if driven else np.zeros(count))  # noqa: B023
        target = tool_path(robot, (robot.home + rng.uniform(-0.8, 0.8, robot.n))[None])[0]
        target[:3] *= rng.choice([1.0, 2.0])
        solver = Constrained(robot, strict=pull, task="position")
        joints = solver.track(np.tile(target, (150, 1)), start)
        assert np.abs(np.diff(joints[-30:], axis=0)).max() < 1e-4
        q = joints[-1]
        assert q[held] == pytest.approx(wanted, abs=1e-9)
        remaining = target[:3] - tool_path(robot, q[None])[0, :3]
        free = np.delete(task_jacobian(robot, q, "position"), held, axis=1)
        assert np.abs(free.T @ remaining[: len(free)]).max() < 1e-3 * max(
            1.0, np.linalg.norm(remaining)
        )


@pytest.mark.parametrize("robot", [UR10, pytest.param(PLANAR3R, marks=SOAK)], ids=lambda r: r.name)
@pytest.mark.parametrize("motion", [0.0, 0.01])
def test_rows_without_freedom_hold_exactly(robot, motion):
    rng = np.random.default_rng(5)

    for _ in range(3):
        rows = rng.normal(size=(robot.n, robot.n))
        wanted = motion * rng.uniform(-1.0, 1.0, robot.n)
        solver = Constrained(robot, strict=Rows(rows, rows @ wanted), task="position", iterations=1)
        target = tool_path(robot, (robot.home + rng.uniform(-0.5, 0.5, robot.n))[None])
        joints = solver.track(np.tile(target, (300, 1)), robot.home)
        moved = np.diff(np.vstack([robot.home, joints]), axis=0)
        assert np.abs(moved - wanted).max() < 1e-11


@pytest.mark.python_kernels
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_scaling_makes_no_row_dependent(scale):
    rows = Rows(scale * np.array([[0.0, 0.0, 1.0]]), [0.01 * scale])

    assert stepped(Constrained(PLANAR3R, strict=rows), PLANAR3R.home).dependent_rows == 0


def test_one_solver_may_be_used_by_several_threads():
    """`track` leaves the solver alone, and lets other threads run."""
    solver = Constrained(
        UR10, strict=Rows(np.eye(6)[4:5], lambda q: 0.2 * (0.3 - q[4:5])), task="position"
    )
    constant = Constrained(UR10, strict=Rows(np.eye(6)[4:5], [0.0]), task="position")
    targets = tool_path(UR10, UR10.home + np.linspace(0.0, 0.3, 50)[:, None] * np.ones(6))

    for shared_solver in (solver, constant):
        alone = shared_solver.track(targets, UR10.home)
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda _: shared_solver.track(targets, UR10.home), range(8)))  # noqa: B023
        assert all(np.array_equal(alone, solution) for solution in together)


def test_a_function_may_give_constant_rows():
    soft = np.eye(3)[:2]
    wanted = np.array([0.01, -0.02])
    target = np.tile(TARGET, (20, 1))
    constant = Constrained(PLANAR3R, soft=SoftRows(soft, wanted))

    by_functions = Constrained(PLANAR3R, soft=SoftRows(lambda q: soft, lambda q: wanted))

    assert np.array_equal(
        constant.track(target, PLANAR3R.home), by_functions.track(target, PLANAR3R.home)
    )


def test_varying_rows_are_solved():
    solver = Constrained(PLANAR3R, soft=SoftRows(np.eye(3), lambda q: 0.5 * (PLANAR3R.home - q)))
    solution = solver.solve(TARGET)

    assert solution.converged
    assert residual("position", TARGET, tool_path(PLANAR3R, solution.q[None])[0])[0] < 1e-9
    assert solver.solve_each(np.tile(TARGET, (3, 1)), PLANAR3R.home)[2].all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"soft": SoftRows(np.eye(4), np.zeros(4))}, "rows"),
        ({"soft": SoftRows(np.eye(3), np.zeros(2))}, "rows"),
        ({"soft": SoftRows(np.eye(3), [0.0, math.nan, 0.0])}, "finite"),
        ({"soft": SoftRows(np.eye(3), np.zeros(3), [1.0, -1.0, 1.0])}, "weights"),
        ({"soft": SoftRows(np.eye(3), np.zeros(3)), "pull": 0.1}, "pull"),
        ({"strict": Rows(np.ones((7, 3)), np.zeros(7))}, "at most 6"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows, message):
    with pytest.raises(InvalidParameter, match=message):
        Constrained(PLANAR3R, **rows)


def test_custom_rows_change_the_solvers_name():
    assert Constrained(PLANAR3R, soft=SoftRows(np.eye(3), np.zeros(3))).name != "constrained"
    assert Constrained(PLANAR3R).name == "constrained"


def stepped(solver, q):
    solver.reset(q)
    solver.step(tool_path(solver.robot, np.array([q]))[0])
    return solver.last


def test_dependent_rows_are_counted():
    # Stretched out, a planar arm cannot move along itself: of its two directions one depends on the
    # other.
    stretched = [0.3, 0.0, 0.0]

    assert stepped(Constrained(PLANAR3R, iterations=1), stretched).dependent_rows == 1
    assert stepped(Constrained(PLANAR3R, pull=0.0), stretched).dependent_rows == 1
    assert stepped(Constrained(PLANAR3R), PLANAR3R.home).dependent_rows == 0
    # The task is strict: what is attained only stretched out stays stretched out, whatever the
    # posture pulls.
    assert stepped(Constrained(PLANAR3R, iterations=10), stretched).dependent_rows == 1


@pytest.mark.python_kernels
def test_the_solver_decides_what_is_dependent():
    singular = np.linalg.svd(
        task_jacobian(PLANAR2R, np.array([0.2, 0.01]), "position"), compute_uv=False
    )
    share = singular[1] / singular[0]

    for kind, settings in ((Constrained, {"iterations": 1}), (Pseudoinverse, {})):
        below, above = (
            stepped(kind(PLANAR2R, cutoff=factor * share, **settings), [0.2, 0.01])
            for factor in (0.5, 2.0)
        )
        assert (below.dependent_rows, above.dependent_rows) == (0, 1)
        assert above.cutoff == pytest.approx(2.0 * share)


@pytest.mark.python_kernels
def test_surplus_strict_rows_are_counted():
    hold = Rows(np.eye(3)[1:], np.zeros(2))

    assert stepped(Constrained(PLANAR3R, strict=hold), PLANAR3R.home).dependent_rows == 1
