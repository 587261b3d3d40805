"""A custom solver runs wherever simbridge's solvers do."""

from __future__ import annotations

import json
import sys

import numpy as np
import pinocchio as pin
import pytest

import simbridge
from simbridge.errors import ForeignSolverError, InvalidParameter, UnknownName
from simbridge.ik.callable_solver import CallableSolver, load_function
from simbridge.ik.settings import check_solver
from simbridge.robot import load_robot
from simbridge.robot.kinematics import task_jacobian, tool_path
from simbridge.running.run_setup import prepare
from simbridge.trajectory import read_trajectory, square

pytestmark = [pytest.mark.usefixtures("without_pages"), pytest.mark.slow]

UR10 = load_robot("ur10")
SMALL = square(side=0.05, laps=1)


def newton(q, target):
    """Three Newton iterations, as a user would write them."""
    for _ in range(3):
        at = pin.XYZQUATToSE3(tool_path(UR10, q[None])[0])
        error = np.concatenate(
            [target.translation - at.translation, pin.log3(target.rotation @ at.rotation.T)]
        )
        q = q + np.linalg.solve(task_jacobian(UR10, q, "pose"), error)
    return q


def test_a_function_works_as_a_solver():
    solver = simbridge.CallableSolver(UR10, newton)
    poses = SMALL.poses[:20]

    start = solver.solve(poses[0])

    assert start.converged

    solver.reset(start.q)
    stepped = np.array([solver.step(target) for target in poses])

    assert np.array_equal(stepped, solver.track(poses, start.q))
    assert solver.last.residual < (1e-9, 1e-9)
    assert solver.name == "newton"


class OwnEnd(BaseException):
    """An error of a solver that is no Exception."""


@pytest.mark.parametrize("error", [OwnEnd, GeneratorExit, SystemExit])
def test_exceptions_name_the_function(error):
    def failing(q, target):
        raise error

    solver = CallableSolver(UR10, failing)

    with pytest.raises(ForeignSolverError, match=error.__name__):
        solver.track(SMALL.poses[:2], UR10.home)


def test_a_run_records_its_functions_name(tmp_path, line, without_pages):
    scenario = simbridge.Scenario(read_trajectory(line), name="line")

    run = simbridge.run(scenario, solver=newton, out=tmp_path / "run")

    assert run.summary["solver"] == "newton"
    assert run.summary["solver_error"]["position_m"]["max"] < 1e-9
    assert "newton" in (tmp_path / "run" / "settings.toml").read_text()


def test_a_scenario_may_bring_its_function():
    scenario = simbridge.Scenario(SMALL, solver=newton)

    assert prepare(scenario).solver.name == "newton"
    assert prepare(scenario, solver="pseudoinverse").solver.name == "pseudoinverse"

    with pytest.raises(InvalidParameter, match="function"):
        prepare(scenario, solver_changes={"iterations": 3})


@pytest.mark.parametrize("answer", [None, [0.0] * 5, [float("nan")] * 6, "six"])
def test_an_answer_must_be_a_posture(answer):
    def mine(q, target):
        return answer

    with pytest.raises(InvalidParameter, match="mine"):
        simbridge.CallableSolver(UR10, mine).step(SMALL.poses[0])


def test_a_function_that_does_not_converge_is_reported():
    solution = simbridge.CallableSolver(UR10, lambda q, target: q).solve(SMALL.poses[0])

    assert not solution.converged
    # A hundred calls from home, and from each of five other postures.
    assert (solution.iterations, solution.restarts) == (600, 5)


def test_joints_beyond_limits_turn_back():
    target = tool_path(UR10, UR10.home[None])[0]
    beyond = UR10.home + 2.0 * np.pi * np.array([3, 0, 0, -2, 0, 0])

    solution = simbridge.CallableSolver(UR10, lambda q, target: beyond).solve(target)

    assert solution.converged
    # To the turn that is nearest to the start.
    assert solution.q == pytest.approx(UR10.home, abs=1e-12)


def test_an_exception_has_message_and_line():
    def mine(q, target):
        raise np.linalg.LinAlgError("Singular matrix")

    with pytest.raises(
        ForeignSolverError, match=r"mine failed with LinAlgError: Singular .*test_callable"
    ) as caught:
        simbridge.CallableSolver(UR10, mine).step(SMALL.poses[0])

    assert caught.value.name == "mine"
    assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(InvalidParameter, match="function"):
        simbridge.CallableSolver(UR10, "newton")


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A custom module in the working directory: a solver that needs several calls, and one that
    fails.
    """
    (tmp_path / "own_solver_for_tests.py").write_text(
        "import numpy as np\n"
        "import simbridge\n"
        "from helper_for_tests import exact\n\n"
        "class Half:\n"
        "    def step(self, q, target):\n"
        "        return 0.5 * (q + exact.branches(target, near=q)[0])\n\n"
        "half = Half()\n\n"
        "def whole(q, target):\n"
        "    return exact.branches(target, near=q)[0]\n\n"
        "number = 3\n"
    )
    (tmp_path / "helper_for_tests.py").write_text(
        "import simbridge\nexact = simbridge.ClosedForm(simbridge.load_robot('ur10'))\n"
    )
    monkeypatch.chdir(tmp_path)
    yield "own_solver_for_tests"
    for name in ("own_solver_for_tests", "helper_for_tests"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "name",
    [
        "own_solver_for_tests:whole",
        # test_files_are_named_by_absolute_paths runs a function in a file.
        pytest.param("./own_solver_for_tests.py:whole", marks=pytest.mark.soak),
    ],
)
def test_a_function_is_named_at_the_command_line(cli, own_module, line, without_pages, name):
    answer = cli("run", line, "--solver", name, "--out", "run", "--json")

    assert answer.status == 0, answer.message

    summary = json.loads(answer.out)

    assert summary["solver"] == name
    assert summary["solver_error"]["position_m"]["max"] < 1e-6

    # A replay finds it again by that name.
    again = cli("run", line, "--plan", "run", "--json")

    assert json.loads(again.out)["solver"] == name


@pytest.mark.parametrize("place", ["own_solver_for_tests", "./own_solver_for_tests.py"])
def test_a_method_of_an_object_is_named_too(own_module, place):
    name = f"{place}:half.step"
    solver = CallableSolver(UR10, load_function(name), name=name)
    target = tool_path(UR10, (UR10.home + 0.1)[None])[0]

    assert solver.step(target) == pytest.approx(UR10.home + 0.05, abs=1e-9)
    assert solver.parameters["function"].endswith("Half.step")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "own_solver_for_tests:hole",
            "There is no function 'hole' in own_solver_for_tests. Did you mean 'whole'?",
        ),
        ("own_solver_for_tests:number", "not int"),
        (
            "no_module_for_tests:step",
            "importing no_module_for_tests failed with ModuleNotFoundError",
        ),
        ("./no_script.py:step", "file not found"),
        ("newton", "Give a function of your own as module:function or ./FILE.py:function."),
        (":newton", "There is no solver ':newton'"),
    ],
)
def test_a_missing_function_is_reported(cli, own_module, name, message):
    answer = cli("check", "square_tracking", "--solver", name)

    assert answer.status == 2
    assert message in answer.message


def test_a_function_has_no_settings(cli, own_module):
    answer = cli(
        "check", "square_tracking", "--solver", "own_solver_for_tests:whole", "--solver.kp", 3
    )

    assert answer.status == 2
    assert "must be left out (got kp)" in answer.message


def test_a_file_named_as_solver_needs_its_function():
    with pytest.raises(UnknownName, match=r"Give a function in this file as \./dls\.py:function\."):
        check_solver("dls.py")
