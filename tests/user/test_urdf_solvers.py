"""Arms from URDF with every solver: one with seven joints, one with a slide and skewed axes."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simbridge import ClosedForm
from simbridge.cli import run_command
from simbridge.errors import NoClosedForm
from simbridge.ik.settings import SOLVERS
from simbridge.ik.targets import residual
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path

pytestmark = pytest.mark.shares_setup

URDF = Path(__file__).parents[1] / "data" / "urdf"
# Each with its home.
ARMS = {
    "seven_joints": [0.2, 0.6, 0.0, -1.4, 0.1, 0.9, 0.3],
    "odd_axes": [0.3, -0.5, 0.15, 0.4, 0.2],
}
QUICK = [name for name in SOLVERS if name not in ("closed-form", "jacobian-transpose")]
SOAK = pytest.mark.soak


@functools.cache
def load(arm):
    """An arm; the search for where it has room takes a third of a second."""
    return load_robot(URDF / f"{arm}.urdf", home=ARMS[arm])


@functools.cache
def made(arm, name, task=""):
    return SOLVERS[name](task=task).build(load(arm))


def nearby(robot, seed):
    """Joint positions (n,) not far from home, within the limits."""
    span = np.where(robot.prismatic, 0.1, 0.3)
    return robot.home + np.random.default_rng(seed).uniform(-span, span)


def left_over(solver, target, q):
    return max(residual(solver.task, target, tool_path(solver.robot, q[None])[0]))


@pytest.mark.parametrize("arm", ARMS)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_tool_is_where_pinocchio_says(arm, seed):
    robot = load(arm)
    model = pin.buildModelFromUrdf(str(URDF / f"{arm}.urdf"))
    q = nearby(robot, seed)
    # A continuous joint is a cosine and a sine there.
    values = [
        [q[i]] if model.joints[i + 1].nq == 1 else [np.cos(q[i]), np.sin(q[i])]
        for i in range(robot.n)
    ]
    data = model.createData()
    pin.framesForwardKinematics(model, data, np.concatenate(values))
    expected = data.oMf[model.nframes - 1]
    tool = pin.XYZQUATToSE3(tool_path(robot, q[None])[0])

    assert np.abs(tool.homogeneous - expected.homogeneous).max() < 1e-12


def both_arms(names):
    """Return arms and solvers as parameters; `make test` tries two of them with seven joints."""
    cases = []
    for arm, name in itertools.product(ARMS, names):
        is_soak = arm == "seven_joints" and name not in ("damped-least-squares", "forward-dynamics")
        # The quick ones take few steps to a near target.
        in_python = [pytest.mark.python_kernels] if name in QUICK else []
        cases.append(pytest.param(arm, name, marks=[SOAK] * is_soak + in_python))
    return cases


@pytest.mark.parametrize(("arm", "name"), both_arms([*QUICK, "jacobian-transpose"]))
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_near_target_is_attained_or_missed(arm, name, seed):
    robot = load(arm)
    solver = made(arm, name)
    target = tool_path(robot, nearby(robot, seed)[None])[0]
    solution = solver.solve(target)

    assert np.isfinite(solution.q).all()

    remaining = left_over(solver, target, solution.q)
    assert max(solution.distance, solution.angle) == pytest.approx(remaining, abs=1e-9)
    assert remaining < 1e-6 or not solution.converged
    assert solution.converged or name not in QUICK
    if solution.converged:
        assert (solution.q >= robot.position_min).all()
        assert (solution.q <= robot.position_max).all()


@pytest.mark.parametrize(("arm", "name"), both_arms(QUICK))
def test_steps_attain_the_components_that_the_task_constrains(arm, name):
    robot = load(arm)
    task = {"seven_joints": "position", "odd_axes": "axis"}[arm]
    solver = made(arm, name, task)
    target = tool_path(robot, nearby(robot, 3)[None])[0]
    # Forward dynamics needs more steps than the others.
    count = 30 if name == "forward-dynamics" else 12
    joints = solver.track(np.tile(target, (count, 1)), robot.home)

    assert left_over(solver, target, joints[-1]) < 1e-6


@pytest.mark.parametrize(
    ("arm", "reason"), [("seven_joints", "7 joints"), ("odd_axes", "some slide")]
)
def test_the_closed_form_refuses_with_a_reason(arm, reason):
    with pytest.raises(NoClosedForm, match=reason) as refusal:
        ClosedForm(load(arm))
    assert "forward-dynamics" in str(refusal.value)


def test_at_the_command_line_too(cli, line, monkeypatch):
    monkeypatch.setattr(run_command, "load_robot", lambda *_, **__: load("seven_joints"))

    answer = cli("check", line, "--robot", "seven_joints.urdf", "--solver", "closed-form")

    assert answer.status != 0
    assert "7 joints" in answer.message
    assert "forward-dynamics" in answer.message
    assert "Traceback" not in answer.err
