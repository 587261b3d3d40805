"""A user's solver as a factory that receives the robot, wherever a solver can be named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import simbridge
from simbridge.errors import ForeignSolverError, InvalidParameter
from simbridge.ik.callable_solver import is_factory, make_custom_solver
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path
from simbridge.sessions.record import read_events

pytestmark = pytest.mark.usefixtures("without_pages")

UR10 = load_robot("ur10")
TARGET = tool_path(UR10, (UR10.home + 0.05)[None])[0]

MODULE = """
import numpy as np
import pinocchio as pin

import simbridge
from simbridge.robot.kinematics import task_jacobian, tool_path


def make(robot, damping=1e-4):
    def step(q, target):
        tool = pin.XYZQUATToSE3(tool_path(robot, q[None])[0])
        error = np.concatenate(
            [target.translation - tool.translation, pin.log3(target.rotation @ tool.rotation.T)]
        )
        jacobian = task_jacobian(robot, q, "pose")
        return q + jacobian.T @ np.linalg.solve(
            jacobian @ jacobian.T + damping * np.eye(6), error
        )

    return step


class Newton:
    def __init__(self, robot):
        self.step = make(robot)

    def __call__(self, q, target):
        return self.step(q, target)


def build(robot):
    return simbridge.DampedLeastSquares(robot, iterations=3)


def fails(robot):
    raise RuntimeError("no model")


def returns_a_number(robot):
    return 3


def returns_a_factory(robot):
    return make


def takes_three(q, target, gain):
    return q


def takes_any(*arguments):
    return arguments[0]
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The path of a script with steps and factories; the working directory is its own."""
    (tmp_path / "robot_ik.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return "./robot_ik.py"


def function(module, name):
    """Return a function of the script."""
    return simbridge.ik.callable_solver.load_function(f"{module}:{name}")


@pytest.mark.parametrize(
    ("name", "robot"),
    [
        ("make", "ur10"),
        ("Newton", "ur3e"),
        pytest.param("make", "ur3e", marks=pytest.mark.soak),
        pytest.param("Newton", "ur10", marks=pytest.mark.soak),
    ],
)
def test_a_factory_works_with_any_arm(cli, module, line, name, robot):
    flags = ("--robot", robot, "--anchor", "start", "--period", 0.008)
    flags += ("--solver", f"{module}:{name}")
    answer = cli("check", line, *flags, "--json")

    assert answer.status == 0, answer.message
    assert json.loads(answer.out)["solver"] == f"{module}:{name}"


def test_a_run_records_the_factory_and_is_replayed(cli, module, line):
    first = cli("run", line, "--solver", f"{module}:make", "--out", "run", "--json")
    again = cli("run", line, "--plan", "run", "--json")

    assert json.loads(first.out)["solver"] == f"{module}:make"
    assert json.loads(first.out)["solver_error"]["position_m"]["max"] < 1e-3
    assert json.loads(again.out)["solver"] == f"{module}:make"


def test_a_solver_that_a_factory_makes_keeps_its_name(module):
    solver = make_custom_solver(UR10, function(module, "build"))

    assert solver.name == "damped-least-squares"
    assert solver.parameters["iterations"] == 3


# The plan that repeats share is in test_repeating, and the name of the factory in the test of one
# run above.
@pytest.mark.soak
def test_repeats_of_a_factorys_run_share_its_plan(cli, module, line):
    answer = cli("run", line, "--solver", f"{module}:make", "--repeat", 2, "--out", "both")

    assert answer.status == 0, answer.message
    assert simbridge.Evaluation.of("both/02").settings.solver.name == f"{module}:make"


def test_a_sweep_takes_a_factory_and_keeps_its_name(cli, module, line, at_once):
    answer = cli(
        "sweep", line, "--grid", f"solver={module}:make", "--keep", "all",
        "--jobs", 1, "--out", "sweep", "--json",
    )  # fmt: skip

    assert answer.status == 0, answer.message
    (run,) = kept_runs("sweep")
    assert simbridge.Evaluation.of(run).settings.solver.name == f"{module}:make"


def kept_runs(sweep):
    """Return the directories of the runs that a sweep has kept."""
    return sorted(path.parent for path in Path(sweep).glob("runs/*/summary.json"))


@pytest.mark.parametrize("by_name", [True, False])
def test_a_session_takes_a_factory(module, tmp_path, by_name):
    solver = f"{module}:make" if by_name else function(module, "make")
    with simbridge.live(
        robot="ur5", solver=solver, realtime=False, report=False, out=tmp_path / "run"
    ) as session:
        session.engage()
        begin = session.tool.translation
        for _ in range(10):
            session.twist([0.05, 0.0, 0.0, 0.0, 0.0, 0.0])
            session.wait(0.04)
        moved = session.tool.translation - begin

    assert moved == pytest.approx([0.02, 0.0, 0.0], abs=2e-3)
    assert not [event for event in read_events(tmp_path / "run") if event["event"] == "stopped"]


@pytest.mark.parametrize("name", ["make", "Newton", "build"])
def test_a_factory_has_one_required_parameter(module, name):
    assert is_factory(function(module, name)) is True


def test_a_step_has_two_required_parameters():
    assert is_factory(lambda q, target, gain=1.0: q) is False


@pytest.mark.parametrize("name", ["takes_three", "takes_any"])
def test_another_number_of_parameters_is_refused(cli, module, name):
    answer = cli("check", "circle", "--solver", f"{module}:{name}")

    assert answer.status == 2
    assert f"{name}(" in answer.message
    assert "a step (q, target) -> q, or a factory (robot) -> step" in answer.message


@pytest.mark.parametrize("name", ["returns_a_number", "returns_a_factory"])
def test_a_factory_must_return_a_step(module, name):
    with pytest.raises(InvalidParameter, match=name):
        make_custom_solver(UR10, function(module, name))


def test_a_failing_factory_is_named(module):
    with pytest.raises(
        ForeignSolverError, match="fails failed with RuntimeError: no model"
    ) as caught:
        make_custom_solver(UR10, function(module, "fails"))

    assert "called with the robot" in str(caught.value)


def test_a_factorys_solver_must_be_for_the_arm():
    other = load_robot("ur3e")

    with pytest.raises(InvalidParameter, match="for ur3e"):
        make_custom_solver(UR10, lambda robot: simbridge.Pseudoinverse(other))


def test_a_function_that_shows_no_parameters_is_a_step():
    assert is_factory(np.frompyfunc(lambda q, target: q, 2, 1)) is False
