"""The iterative solvers: each step against its formula in numpy, and the properties that all of
them have.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simbridge
from simbridge.errors import InvalidParameter, UnknownName
from simbridge.ik.jacobian_transpose import JacobianTranspose, paper_alpha
from simbridge.ik.parameters import IterativeParameters
from simbridge.ik.settings import SOLVERS
from simbridge.ik.targets import adopt_free_components, residual
from simbridge.resources import robot_files
from simbridge.robot import load_robot, pose
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.kinematics import task_jacobian, tool_path
from simbridge.trajectory import square
from tests.properties import few_examples, variants

pytestmark = pytest.mark.slow

UR10, PLANAR2R, PLANAR3R = (load_robot(name) for name in ("ur10", "planar2r", "planar3r"))
ITERATIVE = [name for name, kind in SOLVERS.items() if issubclass(kind, IterativeParameters)]
ARMS = st.sampled_from(sorted(robot_files())).map(functools.cache(load_robot))
PLAIN = {"error_clamp": (math.inf, math.inf), "step_clamp": math.inf}


def made(name, robot=UR10, **changes):
    return SOLVERS[name](**changes).build(robot)


def finite_differences(robot, q, task, step=1e-6):
    """The task's Jacobian by central differences of the poses: the oracle."""
    out = np.empty((6, robot.n))
    for j in range(robot.n):
        ends = tool_path(
            robot, np.array([q - step * np.eye(robot.n)[j], q + step * np.eye(robot.n)[j]])
        )
        out[:, j] = np.concatenate(pose.error(ends[1], ends[0])) / (2.0 * step)
    if task == "axis":
        x, y = (pose.rotate(tool_path(robot, q[None])[0, 3:], axis) for axis in np.eye(3)[:2])
        return np.vstack([out[:3], x @ out[3:], y @ out[3:]])
    return out[: TASK_ROWS[task]]


def task_rows(robot, q, target, task):
    """The error in the rows of `finite_differences`."""
    at = tool_path(robot, q[None])[0]
    translation, rotation = pose.error(adopt_free_components(task, target, at), at)
    if task == "axis":
        rotation = np.array([pose.rotate(at[3:], axis) @ rotation for axis in np.eye(3)[:2]])
    return np.concatenate([translation, rotation])[: TASK_ROWS[task]]


def postures(robot, seed, spread=2.5):
    return np.random.default_rng(seed).uniform(-spread, spread, robot.n)


@few_examples(12, soak=500)
@given(st.integers(0, 2**32 - 1), st.sampled_from(list(TASK_ROWS)), ARMS)
def test_jacobians_agree_with_finite_differences(seed, task, robot):
    q = postures(robot, seed)

    assert np.abs(task_jacobian(robot, q, task) - finite_differences(robot, q, task)).max() < 1e-8


@few_examples(20)
@given(st.integers(0, 2**32 - 1), st.sampled_from(list(TASK_ROWS)))
def test_what_a_task_leaves_free_costs_nothing(seed, task):
    rng = np.random.default_rng(seed)
    at, target = (
        np.concatenate([rng.normal(size=3), pose.normalize(rng.normal(size=4))]) for _ in range(2)
    )
    masked = adopt_free_components(task, target, at)

    distance, angle = residual(task, target, at)

    assert distance == pytest.approx(np.linalg.norm(target[:3] - at[:3]))

    z = np.array([0.0, 0.0, 1.0])
    wanted, got = (pose.rotate(p[3:], z) for p in (target, at))
    between = math.atan2(np.linalg.norm(np.cross(wanted, got)), wanted @ got)
    expected = {"pose": np.linalg.norm(pose.error(target, at)[1]), "axis": between, "position": 0.0}

    assert angle == pytest.approx(expected[task], abs=1e-9)
    assert np.linalg.norm(masked[3:]) == pytest.approx(1.0)


def transpose_step(solver, jacobian, error, q):
    gain = np.array([50.0] * 3 + [5.0] * 3)[: len(error)]
    return 0.25 * 0.01 * paper_alpha(UR10) * jacobian.T @ (gain * error)


def pseudoinverse_step(solver, jacobian, error, q):
    return solver.alpha * np.linalg.pinv(jacobian) @ error


def damped_step(solver, jacobian, error, q):
    damping = solver.damping**2 * np.eye(len(error))
    return jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + damping, error)


def feedback_step(solver, jacobian, error, q):
    identity = np.eye(len(error))
    gain = solver.gain[0] * identity
    return jacobian.T @ gain @ np.linalg.solve(jacobian @ jacobian.T @ gain + identity, error)


def constrained_step(solver, jacobian, error, q):
    m, n = jacobian.shape
    weights = 2.0 * np.eye(n)
    kkt = np.block([[weights, jacobian.T], [jacobian, np.zeros((m, m))]])
    soft = weights @ (solver.pull * (UR10.home - q))
    return np.linalg.solve(kkt, np.concatenate([soft, error]))[:n]


# One plain iteration in numpy, of the solvers' settings, the Jacobian, the error and the joints. A
# solver that is not here has its formula in a test of its own.
FORMULAS = {
    "jacobian-transpose": transpose_step,
    "pseudoinverse": pseudoinverse_step,
    "damped-least-squares": damped_step,
    "feedback": feedback_step,
    "constrained": constrained_step,
}


# Each solver with each task. Of the tasks axis and position only the pseudoinverse is compiled: two
# iterations of the others take less time in Python than compiling each of them does.
ITERATION_CASES = [
    pytest.param(
        name,
        task,
        marks=[pytest.mark.python_kernels] * (task != "pose" and name != "pseudoinverse"),
    )
    for name, task in itertools.product(FORMULAS, TASK_ROWS)
]


@pytest.mark.parametrize(("name", "task"), ITERATION_CASES)
@few_examples(2)
@given(seed=st.integers(0, 2**32 - 1))
def test_an_iteration_without_clamps_is_the_formula(seed, name, task):
    q = UR10.home + 0.2 * postures(UR10, seed)
    target = tool_path(UR10, (q + 0.02 * postures(UR10, seed + 1))[None])[0]
    solver = made(name, iterations=1, task=task, **PLAIN)
    moved = solver.track(target[None], q)[0] - q

    jacobian = finite_differences(UR10, q, task)
    error = task_rows(UR10, q, target, task)
    expected = FORMULAS[name](SOLVERS[name](), jacobian, error, q)

    assert np.abs(moved - expected).max() < 1e-6 * max(1.0, np.abs(expected).max())


def test_alpha_is_that_of_the_paper():
    assert JacobianTranspose(UR10).alpha == pytest.approx(0.787, abs=0.002)
    assert JacobianTranspose(UR10, alpha=0.5).parameters["alpha"] == 0.5


def test_the_length_of_buss_and_kim_is_best():
    q = UR10.home
    target = tool_path(UR10, (q + 1e-5)[None])[0]
    moved = (
        made("jacobian-transpose", step_length="buss-kim", iterations=1, **PLAIN).track(
            target[None], q
        )[0]
        - q
    )
    jacobian = finite_differences(UR10, q, "pose")
    error = task_rows(UR10, q, target, "pose")
    direction = jacobian.T @ error
    lengths = np.linspace(0.0, 3.0, 3001) * np.linalg.norm(moved) / np.linalg.norm(direction)
    remaining_errors = [np.linalg.norm(error - length * jacobian @ direction) for length in lengths]

    assert np.argmin(remaining_errors) == pytest.approx(1000, abs=2)


def lag_of_the_square(kp):
    trajectory = square(side=0.4, laps=2)
    solver = JacobianTranspose(UR10, kp=(kp,), **PLAIN)
    start = simbridge.ForwardDynamics(UR10).solve(trajectory.poses[0]).q
    joints = solver.track(trajectory.poses, start)
    half = len(joints) // 2
    off = np.linalg.norm(
        trajectory.poses[half:, :3] - tool_path(UR10, joints[half:])[:, :3], axis=1
    )
    return 1e3 * math.sqrt(np.mean(off**2))


@pytest.mark.parametrize(("kp", "rms"), [(5.0, 21.5), (10.0, 11.0), (20.0, 5.3), (50.0, 1.8)])
def test_the_transpose_lags_as_in_experiment_d(kp, rms):
    assert lag_of_the_square(kp) == pytest.approx(rms, rel=0.03)


@few_examples(12, soak=500)
@given(st.integers(0, 2**32 - 1), ARMS, st.sampled_from(sorted(SOLVERS)))
def test_a_near_target_is_attained_or_reported(seed, robot, name):
    if name == "closed-form" and robot.name == "planar3r":
        name = "pseudoinverse"
    solver = made(name, robot)
    start = np.clip(postures(robot, seed), robot.position_min, robot.position_max)
    target = tool_path(robot, (start + 0.05 * postures(robot, seed + 1))[None])[0]
    solution = solver.solve(target, start)
    remaining = residual(solver.task, target, tool_path(robot, solution.q[None])[0])

    assert np.isfinite(solution.q).all()
    assert max(remaining) < 1e-6 or not solution.converged

    inside = (solution.q >= robot.position_min).all() and (solution.q <= robot.position_max).all()

    assert inside or not solution.converged
    assert (solution.distance, solution.angle) == pytest.approx(remaining, abs=1e-9)


@pytest.mark.parametrize("name", ["pseudoinverse", "selectively-damped", "constrained"])
def test_a_reliable_solver_finds_reachable_poses(name):
    poses = tool_path(UR10, np.random.default_rng(3).uniform(-math.pi, math.pi, (40, 6)))

    assert sum(made(name).solve(target).converged for target in poses) >= 39


@pytest.mark.parametrize(
    ("task", "names", "options"),
    [
        ("pose", ITERATIVE, {}),
        # Of these tasks, one solver makes its default number of iterations: it is compiled.
        ("axis", ["pseudoinverse"], {}),
        ("position", ["pseudoinverse"], {}),
        pytest.param("axis", ITERATIVE, {"iterations": 2}, marks=pytest.mark.python_kernels),
        pytest.param("position", ITERATIVE, {"iterations": 2}, marks=pytest.mark.python_kernels),
    ],
)
@few_examples(3, soak=100)
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_singular_postures_give_numbers_again_and_again(task, names, options, seed, data):
    name = data.draw(st.sampled_from(names))
    rng = np.random.default_rng(seed)
    q = rng.choice([0.0, math.pi / 2.0, math.pi, -math.pi / 2.0], 6)
    target = np.concatenate([rng.normal(size=3), pose.normalize(rng.normal(size=4))])
    first, second = (
        made(name, task=task, **options).track(np.tile(target, (5, 1)), q) for _ in range(2)
    )

    assert np.isfinite(first).all()
    assert np.array_equal(first, second)

    solver = made(name, task=task, **options)
    solver.reset(q)

    assert np.array_equal([solver.step(target) for _ in range(5)], first)


def settled(solver, target, start, targets):
    """The joints (n,) after so many steps towards one target, and how much they still move in the
    last twenty.
    """
    joints = solver.track(np.tile(target, (targets, 1)), start)
    return joints[-1], float(np.abs(np.diff(joints[-20:], axis=0)).max())


# Each solver with one arm; one of them also with an arm that has a joint to spare.
STRETCHING = [
    *[(PLANAR2R, name) for name in ITERATIVE],
    *[
        pytest.param(PLANAR3R, name, marks=[pytest.mark.soak] * (name != "pseudoinverse"))
        for name in ITERATIVE
    ],
]


@pytest.mark.parametrize(("robot", "name"), STRETCHING, ids=lambda it: getattr(it, "name", it))
@few_examples(2)
@given(far=st.floats(1.05, 10.0), bearing=st.floats(-3.1, 3.1))
def test_a_planar_arm_stretches_and_rests(name, robot, far, bearing):
    """The jitter of the tutorial: a goal out of the arm's reach."""
    target = np.array(
        [
            far * robot.arm_length * math.cos(bearing),
            far * robot.arm_length * math.sin(bearing),
            0,
            0,
            0,
            0,
            1.0,
        ]
    )
    solver = made(name, robot)
    q, moving = settled(solver, target, robot.home, 2000)
    solver.reset(q)
    solver.step(target)
    missed = (far - 1.0) * robot.arm_length

    assert solver.last.residual[0] == pytest.approx(missed, abs=1e-3)
    assert moving < 1e-3


@pytest.mark.parametrize("name", ["pseudoinverse", "constrained", "damped-least-squares"])
def test_without_clamps_the_arm_jitters(name):
    target = np.array([2.0 * PLANAR2R.arm_length, 0.3, 0.0, 0.0, 0.0, 0.0, 1.0])
    _, moving = settled(made(name, PLANAR2R, **PLAIN), target, PLANAR2R.home, 500)

    assert moving > 0.1


@few_examples(2, soak=80)
@given(st.integers(0, 2**32 - 1), st.sampled_from(ITERATIVE), st.floats(1.5, 5.0))
def test_a_ur10_rests_out_of_reach(seed, name, far):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    target = np.concatenate(
        [far * direction / np.linalg.norm(direction), pose.normalize(rng.normal(size=4))]
    )
    solver = made(name)

    _, moving = settled(solver, target, UR10.home, 1500)

    # At least no joint moves as far in twenty periods as in one at full speed.
    assert moving < 2e-3
    assert not solver.solve(target).converged


@pytest.mark.parametrize("stiffness", variants([0.05, 0.5, 0.9], 0.9))
@few_examples(3, soak=100)
@given(st.integers(0, 2**32 - 1))
def test_joint_stiffness_costs_no_accuracy(stiffness, seed):
    """The same least distance, subject to the task, that the constrained step solves for."""
    rng = np.random.default_rng(seed)
    target = tool_path(PLANAR3R, (PLANAR3R.home + rng.uniform(-0.5, 0.5, 3))[None])
    start = PLANAR3R.home + rng.uniform(-0.3, 0.3, 3)
    ends = [
        solver.track(np.tile(target, (600, 1)), start)[-1]
        for solver in (
            made("damped-least-squares", PLANAR3R, stiffness=(stiffness,)),
            made("constrained", PLANAR3R),
        )
    ]

    assert np.abs(ends[0] - ends[1]).max() < 1e-6
    assert residual("position", target[0], tool_path(PLANAR3R, ends[0][None])[0])[0] < 1e-9


def test_the_printed_bias_never_becomes_nan():
    plain = {"stiffness": (0.3,), "bias_term": "printed", "step_clamp": math.inf, "iterations": 2}
    solver = made("damped-least-squares", PLANAR3R, **plain)
    target = tool_path(PLANAR3R, (PLANAR3R.home + np.array([0.9, -0.9, 0.9]))[None])

    for away in (-0.5, -1.0, -1.5):
        assert np.isfinite(solver.track(np.tile(target, (200, 1)), PLANAR3R.home + away)).all()


def test_joint_stiffness_pulls_from_both_sides():
    target = tool_path(PLANAR3R, PLANAR3R.home[None])[0]
    start = PLANAR3R.home

    for away in (-0.3, 0.3):
        bias = tuple(start + away)
        ends = {}
        for term in ("gradient", "printed"):
            solver = made(
                "damped-least-squares", PLANAR3R, stiffness=(0.05,), bias=bias, bias_term=term
            )
            ends[term] = solver.track(np.tile(target, (30, 1)), start)[-1]
            assert residual("position", target, tool_path(PLANAR3R, ends[term][None])[0])[0] < 1e-6
        off = {term: np.linalg.norm(q - bias) for term, q in ends.items()}
        assert off["gradient"] < np.linalg.norm(start - np.array(bias)) - 1e-3
        assert off["gradient"] < off["printed"]


def test_the_constrained_step_takes_the_most_natural_posture():
    from scipy.optimize import minimize

    target = tool_path(PLANAR3R, np.array([[0.4, 0.9, -0.5]]))[0]
    q = made("constrained", PLANAR3R, pull=0.2).track(np.tile(target, (200, 1)), PLANAR3R.home)[-1]
    best = minimize(
        lambda x: np.sum((x - PLANAR3R.home) ** 2),
        q,
        constraints={"type": "eq", "fun": lambda x: (tool_path(PLANAR3R, x[None])[0] - target)[:2]},
    )

    assert np.sum((q - PLANAR3R.home) ** 2) == pytest.approx(best.fun, rel=1e-3)


@pytest.mark.python_kernels
def test_the_last_step_reports_dependent_rows():
    # Stretched out, one of the two directions of the plane depends on the other; any solver says
    # so.
    for name in ("constrained", "forward-dynamics"):
        solver = made(name, PLANAR3R, iterations=1)
        solver.reset([0.3, 0.0, 0.0])
        solver.step(tool_path(PLANAR3R, np.array([[0.3, 0.0, 0.0]]))[0])
        assert solver.last.dependent_rows == 1

    stretched = tool_path(PLANAR3R, np.zeros((1, 3)))[0]
    flat = made("constrained", PLANAR3R, pull=0.0)
    flat.reset(np.zeros(3))
    flat.step(stretched)

    assert flat.last.dependent_rows == 1
    assert flat.last.manipulability == pytest.approx(0.0, abs=1e-9)

    flat.reset(PLANAR3R.home)
    flat.step(tool_path(PLANAR3R, PLANAR3R.home[None])[0])

    assert flat.last.dependent_rows == 0

    jacobian = finite_differences(PLANAR3R, flat.q, "position")[:2]

    assert flat.last.manipulability == pytest.approx(
        math.sqrt(np.linalg.det(jacobian @ jacobian.T)), rel=1e-6
    )


@pytest.mark.parametrize(("name", "period"), [("pseudoinverse", 0.002), ("constrained", 0.008)])
def test_the_predicted_lag_is_the_measured_one(name, period):
    speed = 0.1
    solver = made(name, iterations=1)
    times = np.arange(2000) * period / 10.0
    poses = np.tile(tool_path(UR10, UR10.home[None]), (2000, 1))
    poses[:, 0] += speed * times
    joints = solver.track(poses, UR10.home)
    behind = poses[-1, 0] - tool_path(UR10, joints[-1:])[0, 0]

    assert behind / speed == pytest.approx(solver.lag(period / 10.0), abs=1e-6)


def test_invalid_settings_are_refused():
    for name, wrong in [
        ("pseudoinverse", {"alpha": 2.0}),
        ("damped-least-squares", {"stiffness": (1.0,)}),
        ("damped-least-squares", {"bias": (1.0, 2.0)}),
        ("damped-least-squares", {"damping": 0.0}),
        ("feedback", {"gain": (-1.0,)}),
        ("constrained", {"pull": 1.5}),
        ("constrained", {"weights": (0.0,)}),
        ("jacobian-transpose", {"step_length": "short"}),
        ("selectively-damped", {"iterations": 0}),
        ("selectively-damped", {"error_clamp": (1.0,)}),
        ("selectively-damped", {"step_clamp": -1.0}),
    ]:
        with pytest.raises(InvalidParameter):
            made(name, **wrong)

    with pytest.raises(UnknownName, match="task"):
        made("feedback", task="half")


@pytest.mark.parametrize("name", ITERATIVE)
def test_recorded_parameters_make_the_solver_again(name):
    solver = made(name, iterations=3, step_clamp=0.05)
    again = SOLVERS[name](**solver.parameters).build(UR10)
    poses = square(side=0.1).poses[:20]

    assert again.parameters == solver.parameters
    assert np.array_equal(again.track(poses, UR10.home), solver.track(poses, UR10.home))


def test_the_notice_explains_a_solver_not_chosen():
    chosen, start = (
        made(name).description for name in ("damped-least-squares", "selectively-damped")
    )

    assert chosen == "damped-least-squares solver"
    assert start == "selectively-damped solver (it also finds the start for other solvers)"


@pytest.mark.python_kernels
@pytest.mark.parametrize(
    "name",
    variants(ITERATIVE, "damped-least-squares"),
)
def test_differences_are_off_as_their_step_is(name):
    target = tool_path(UR10, UR10.home[None] + 0.02)[0]

    def step(**settings):
        return made(name, iterations=1, **PLAIN, **settings).track(target[None], UR10.home)[0]

    exact = step()

    assert np.array_equal(exact, step(difference_step=0.1))

    off = [
        np.abs(step(jacobian="difference", difference_step=h) - exact).max() for h in (1e-2, 1e-3)
    ]

    assert 0.0 < off[0] < 0.1 * np.abs(exact - UR10.home).max()
    assert off[0] == pytest.approx(10.0 * off[1], rel=0.2)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"jacobian": "analytic"}, "exact or difference"), ({"difference_step": 0.0}, "positive")],
)
def test_impossible_jacobians_and_steps_are_refused(settings, words):
    with pytest.raises(InvalidParameter, match=words):
        made("pseudoinverse", **settings)
