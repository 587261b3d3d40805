"""All solvers refuse invalid targets and joint positions, and accept the others."""

from __future__ import annotations

import copy
import math
import pickle
import tracemalloc

import numpy as np
import pinocchio as pin
import pytest

import simbridge
from simbridge.errors import InvalidParameter
from simbridge.ik.constrained import Constrained, SoftRows
from simbridge.ik.damped_least_squares import DampedLeastSquares
from simbridge.ik.forward_dynamics import ForwardDynamicsParameters
from simbridge.ik.settings import SOLVERS
from simbridge.ik.targets import as_poses
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.trajectory import square

UR10 = simbridge.load_robot("ur10")
HOME = tool_path(UR10, UR10.home[None])[0]
NEAR = HOME + np.array([0.05, -0.02, 0.03, 0.0, 0.0, 0.0, 0.0])


def halfway(q, _target):
    """Some custom function."""
    return 0.5 * (q + UR10.home)


def made(name, **settings):
    if name == "released":
        return simbridge.ForwardDynamics.preset(UR10, "released", **settings)
    if name == "function":
        return simbridge.CallableSolver(UR10, halfway)
    return SOLVERS[name](**settings).build(UR10)


@pytest.fixture(params=[*SOLVERS, "released", "function"])
def solver(request, monkeypatch):
    # The function attains no target, however often it is called.
    monkeypatch.setattr("simbridge.ik.callable_solver.MAX_CALLS", 20)
    return made(request.param)


NO_POSES = {
    "six numbers": NEAR[:6],
    "not finite": np.full(7, math.nan),
    "infinite": [math.inf, *NEAR[1:]],
    "beyond what can be squared": [1e200, *NEAR[1:]],
    "a zero quaternion": [*NEAR[:3], 0.0, 0.0, 0.0, 0.0],
    "a quaternion without digits": [*NEAR[:3], 1e-200, 0.0, 0.0, 0.0],
    "a quaternion beyond what can be squared": [*NEAR[:3], 1e200, 0.0, 0.0, 0.0],
    "a word": "abc",
    "nothing": None,
    "two poses": [NEAR, NEAR],
}
NO_JOINTS = {
    "too many": np.zeros(40),
    "too few": [0.1],
    "a number": 0.1,
    "a column": UR10.home[:, None],
    "not finite": np.full(6, math.nan),
    "infinite": [0.0, math.inf, 0.0, 0.0, 0.0, 0.0],
    "turned until rounding is more than tolerances": np.full(6, 1e9),
    "a word": "home",
}


def test_an_invalid_target_changes_no_solver(solver):
    solver.step(NEAR)
    untouched = copy.deepcopy(solver)

    for target in NO_POSES.values():
        for action in (solver.step, solver.solve):
            with pytest.raises(InvalidParameter, match="target must be"):
                action(target)
        for action in (solver.track, solver.solve_each):
            with pytest.raises(InvalidParameter, match="target"):
                action([target], UR10.home)
    for rotation, translation in (
        (math.nan * np.eye(3), np.zeros(3)),
        (np.eye(3), np.full(3, math.inf)),
    ):
        with pytest.raises(InvalidParameter, match="target must be"):
            solver.step(pin.SE3(rotation, translation))

    assert np.array_equal(solver.step(NEAR), untouched.step(NEAR))


@pytest.mark.parametrize("q", NO_JOINTS.values(), ids=NO_JOINTS)
def test_invalid_joint_positions_are_refused(q, solver):
    actions = [
        lambda: solver.track([NEAR], q),
        lambda: solver.solve_each([NEAR], q),
        lambda: solver.solve(NEAR, q),
        lambda: solver.reset(q),
    ]
    if solver.name == "closed-form":
        actions += [lambda: solver.notes([NEAR], q), lambda: solver.branches(NEAR, q)]

    for action in actions:
        with pytest.raises(InvalidParameter, match=r"joint positions must be (.*: )?6 finite"):
            action()


def test_targets_of_another_shape_are_refused():
    for targets in (NEAR, np.tile(NEAR, (5, 1))[:, :6], np.tile(NEAR, (2, 2, 1))):
        with pytest.raises(InvalidParameter, match=r"shape of the targets must be \(T, 7\)"):
            made("forward-dynamics").track(targets, UR10.home)


def test_the_sample_of_an_invalid_target_is_named():
    targets = np.tile(NEAR, (20_000, 1))
    targets[9_000] *= 2.0
    targets[17_000, 3:] = 0.0

    with pytest.raises(InvalidParameter, match="target at sample 17000"):
        made("forward-dynamics").track(targets, UR10.home)


def test_far_targets_and_turned_joints_give_finite_answers(solver):
    for x in (-10.0, 1e9, 1e99):
        far = np.array([x, *NEAR[1:]])
        for q in (UR10.home, np.full(6, 1e5)):
            assert np.isfinite(solver.track([far, far], q)).all()
        solver.reset(UR10.home)
        solver.step(far)
        assert np.isfinite([*solver.last.residual, solver.last.manipulability]).all()
    solution = solver.solve(far)

    assert not solution.converged
    assert np.isfinite([*solution.q, solution.distance, solution.angle]).all()


def test_an_overflowing_distance_moves_nothing():
    # Past the check, as what is computed on the way may be: what comes out is never what was in
    # memory before.
    solution = made("forward-dynamics")._solve(np.array([1e200, *NEAR[1:]]), UR10.home.copy())

    assert np.array_equal(solution.q, UR10.home)
    assert (solution.converged, solution.distance) == (False, math.inf)


def test_track_is_step_by_step(solver):
    targets = np.tile(NEAR, (4, 1))
    targets[:, 0] += [0.0, 0.01, 0.02, 0.03]
    targets[:, 3:] *= np.array([1.0, 2.0, 1.0 + 1e-12, 1e-20])[:, None]
    original = targets.copy()
    tracked = solver.track(targets, UR10.home)
    solver.reset(UR10.home)

    assert np.array_equal([solver.step(target) for target in targets], tracked)
    assert np.array_equal(targets, original)

    unit = np.column_stack([targets[:, :3], pose.normalize(targets[:, 3:])])
    assert np.allclose(solver.track(unit, UR10.home), tracked, rtol=0.0, atol=1e-12)


def test_unit_quaternions_are_not_copied():
    targets = square(laps=1).poses

    assert as_poses(targets) is targets


@pytest.mark.parametrize("name", ["forward-dynamics", "damped-least-squares"])
def test_many_targets_take_no_more_memory(name):
    solver = made(name, iterations=1)
    lap = square(laps=1).poses
    targets = np.tile(lap, (50_000 // len(lap) + 1, 1))
    solver.track(lap, UR10.home)
    tracemalloc.start()
    out = solver.track(targets, UR10.home)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1.02 * out.nbytes


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda solver: pickle.loads(pickle.dumps(solver))]
)
def test_a_copy_continues_independently(solver, copied):
    # Far enough for a velocity, or a ballast, to go on from one target to the next.
    far = HOME + np.array([1.5, 0.4, -0.3, 0.0, 0.0, 0.0, 0.0])
    for _ in range(3):
        solver.step(far)
    duplicate = copied(solver)
    theirs = np.array([duplicate.step(far) for _ in range(3)])

    assert np.array_equal([solver.step(far) for _ in range(3)], theirs)
    assert duplicate.last.residual == solver.last.residual
    assert duplicate.solve(NEAR).converged == solver.solve(NEAR).converged


@pytest.mark.parametrize("name", ["forward-dynamics", "damped-least-squares"])
@pytest.mark.parametrize("wrong", [2.5, math.nan, math.inf, 0, "many", [3]])
def test_iterations_are_a_whole_number(name, wrong):
    with pytest.raises(InvalidParameter, match="solver's iterations"):
        made(name, iterations=wrong) if name != "forward-dynamics" else simbridge.ForwardDynamics(
            UR10, iterations=wrong
        )


@pytest.mark.parametrize("name", ["forward-dynamics", "damped-least-squares"])
def test_a_whole_number_may_be_numpys(name):
    made_with_numpy = made(name, iterations=np.int64(7))

    assert np.array_equal(made_with_numpy.step(NEAR), made(name, iterations=7).step(NEAR))
    assert type(made_with_numpy.iterations) is int


@pytest.mark.python_kernels
@pytest.mark.parametrize(
    ("name", "setting", "one", "array", "usual"),
    [
        ("forward-dynamics", "kp", 20.0, np.full(6, 20.0), (20.0,) * 6),
        ("forward-dynamics", "kd", 0.1, np.full(6, 0.1), (0.1,) * 6),
        ("forward-dynamics", "error_clamp", None, np.array([0.1, 0.2]), (0.1, 0.2)),
        ("jacobian-transpose", "kp", 20.0, np.full(6, 20.0), (20.0,) * 6),
        ("damped-least-squares", "stiffness", 0.1, np.full(6, 0.1), (0.1,)),
        ("damped-least-squares", "bias", 0.0, np.zeros(6), (0.0,)),
        ("damped-least-squares", "error_clamp", None, np.array([0.1, 0.2]), (0.1, 0.2)),
        ("feedback", "gain", 100.0, np.full(6, 100.0), (100.0,)),
        ("constrained", "weights", 2.0, np.full(6, 2.0), (2.0,)),
        ("constrained", "posture", 0.0, np.zeros(6), (0.0,)),
    ],
)
def test_numbers_may_come_as_an_array(name, setting, one, array, usual):
    wanted = made(name, **{setting: usual})

    assert np.array_equal(made(name, **{setting: array}).step(NEAR), wanted.step(NEAR))

    if one is not None:
        alone = made(name, **{setting: one})
        assert np.isfinite(alone.step(NEAR)).all()
        # Of gains one is that of the translation, and the rotation gets a tenth.
        assert len(usual) == 6 or alone.parameters == wanted.parameters


def test_forward_dynamics_takes_arrays():
    dynamics = simbridge.ForwardDynamics(
        UR10, kp=np.full(6, 50.0), kd=np.zeros(6), error_clamp=np.array([0.2, 0.5])
    )

    assert dynamics.parameters == simbridge.ForwardDynamics(UR10, kp=(50.0,) * 6).parameters
    assert ForwardDynamicsParameters(kp=np.full(6, 50.0)) == ForwardDynamicsParameters(
        kp=(50.0,) * 6
    )


@pytest.mark.parametrize("solver_class", [simbridge.ForwardDynamics, DampedLeastSquares])
@pytest.mark.parametrize(
    "wrong", [0.2, (0.2,), (0.1, 0.2, 0.3), "ab", (0.1, "b"), (0.1, -1.0), (0.1, math.nan)]
)
def test_error_clamps_are_two_positive_numbers(solver_class, wrong):
    with pytest.raises(InvalidParameter, match="solver's error_clamp"):
        solver_class(UR10, error_clamp=wrong)


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("damped-least-squares", "damping"),
        ("damped-least-squares", "stiffness"),
        ("damped-least-squares", "bias"),
        ("damped-least-squares", "step_clamp"),
        ("pseudoinverse", "alpha"),
        ("constrained", "pull"),
        ("feedback", "gain"),
        ("jacobian-transpose", "kp"),
        ("forward-dynamics", "kp"),
        ("forward-dynamics", "dt"),
    ],
)
def test_a_setting_must_be_a_number(name, setting):
    for wrong in ("much", [[1.0]], object()):
        with pytest.raises(InvalidParameter, match=f"solver's {setting}"):
            made(name, **{setting: wrong})


@pytest.mark.parametrize("name", ["forward-dynamics", "selectively-damped"])
def test_a_start_ten_turns_away_is_the_same(name):
    solver = made(name)
    there = solver.solve(NEAR, UR10.home + 20.0 * math.pi)
    here = solver.solve(NEAR, UR10.home)

    assert there.converged
    assert there.restarts == 0

    # Of the limits, two turns apart, those ten turns up are nearest to the upper ones.
    turns = (there.q - here.q) / (2.0 * math.pi)
    assert np.allclose(turns, np.rint(turns), rtol=0.0, atol=1e-9)
    assert np.all(there.q + 2.0 * math.pi > UR10.position_max)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (SoftRows(np.eye(6), ["a"] * 6), "solver's rows"),
        (SoftRows([[1.0] * 6, [1.0]], np.ones(2)), "solver's rows"),
        (SoftRows(np.eye(6), np.full(6, math.nan)), "got nan"),
        (SoftRows(1e160 * np.eye(6), np.ones(6)), "at most 1e"),
        (SoftRows(np.eye(6), np.ones(6), weights="heavy"), "weights"),
        (SoftRows(np.eye(6), np.ones(6), weights=1e300), "weights"),
    ],
)
def test_rows_must_be_moderate_numbers(rows, message):
    with pytest.raises(InvalidParameter, match=message):
        Constrained(UR10, soft=rows)
