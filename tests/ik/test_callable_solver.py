"""A user's own solver runs wherever simbridge's own do."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import simbridge
from simbridge.errors import InvalidParameter
from simbridge.ik.task import task_jacobian
from simbridge.kinematics import tool_path
from simbridge.robot import load_robot
from simbridge.runner import prepare
from simbridge.trajectory import square

UR10 = load_robot("ur10")
SMALL = square(side=0.05, laps=1)


def newton(q, target):
    """Three Newton iterations, as a user would write them."""
    for _ in range(3):
        at = pin.XYZQUATToSE3(tool_path(UR10, q[None])[0])
        error = np.concatenate([target.translation - at.translation, pin.log3(target.rotation @ at.rotation.T)])
        q = q + np.linalg.solve(task_jacobian(UR10, q, "pose"), error)
    return q


def test_a_function_is_stepped_and_tracked_as_any_solver():
    solver = simbridge.CallableSolver(UR10, newton)
    poses = SMALL.poses[:20]
    start = solver.solve(poses[0])
    assert start.converged
    solver.reset(start.q)
    stepped = np.array([solver.step(target) for target in poses])
    assert np.array_equal(stepped, solver.track(poses, start.q))
    assert solver.last.residual < (1e-9, 1e-9)
    assert solver.name == "newton"


def test_a_function_runs_a_scenario_and_its_name_is_recorded(tmp_path):
    run = simbridge.run(simbridge.Scenario(SMALL, name="small"), solver=newton, out=tmp_path / "run")
    assert run.summary["solver"] == "newton"
    assert run.summary["solver_error"]["position_m"]["max"] < 1e-9
    assert "newton" in (tmp_path / "run" / "settings.toml").read_text()


def test_a_scenario_may_bring_its_function():
    scenario = simbridge.Scenario(SMALL, solver=newton)
    assert prepare(scenario).solver.name == "newton"
    assert prepare(scenario, solver_name="pseudoinverse").solver.name == "pseudoinverse"
    with pytest.raises(InvalidParameter, match="function"):
        prepare(scenario, solver_changes={"iterations": 3})


@pytest.mark.parametrize("answer", [None, [0.0] * 5, [float("nan")] * 6, "six"])
def test_an_answer_that_is_no_posture_is_refused_and_the_function_named(answer):
    def mine(q, target):
        return answer

    with pytest.raises(InvalidParameter, match="mine"):
        simbridge.CallableSolver(UR10, mine).step(SMALL.poses[0])


def test_a_function_that_does_not_converge_is_said_not_to():
    solution = simbridge.CallableSolver(UR10, lambda q, target: q).solve(SMALL.poses[0])
    assert not solution.converged
    assert solution.restarts == 0 or solution.iterations > 100


def test_what_cannot_be_called_is_refused():
    with pytest.raises(InvalidParameter, match="function"):
        simbridge.CallableSolver(UR10, "newton")
