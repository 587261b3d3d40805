"""Choosing a solver and its settings at the command line."""

from __future__ import annotations

import json
import re
from dataclasses import fields

import numpy as np
import pytest

import simbridge
from simbridge.errors import UnknownName
from simbridge.ik.damped_least_squares import DampedLeastSquaresParameters
from simbridge.ik.settings import SOLVERS
from simbridge.planning.plan import Plan
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import load_robot, pose
from simbridge.robot.kinematics import tool_path
from simbridge.running.arm_and_solver import choose_solver
from simbridge.trajectory import square
from tests.properties import variants

pytestmark = pytest.mark.usefixtures("without_pages")


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_help_shows_the_named_solvers_flags(cli, name):
    shown = cli("run", "--solver", name, "--help").out
    known = {field.name for field in fields(SOLVERS[name])}
    every = {field.name for kind in SOLVERS.values() for field in fields(kind)}

    for setting in every:
        assert (f"--solver.{setting.replace('_', '-')} " in shown) == (setting in known)


@pytest.mark.parametrize(
    "name", variants(sorted(SOLVERS), "forward-dynamics", "constrained", "closed-form")
)
def test_every_solver_tracks_the_square(cli, name, small, tmp_path):
    answer = cli(
        "run", small["square_tracking"], "--solver", name, "--out", tmp_path / "run", "--json"
    )

    assert answer.status == 0, answer.err

    summary = json.loads(answer.out)
    assert summary["solver"] == name
    assert summary["solver_error"]["position_m"]["rms"] < (
        2e-3 if name == "jacobian-transpose" else 5e-6
    )

    parameters = RunDirectory.open(tmp_path / "run").settings().solver.parameters
    names = {field.name for field in fields(SOLVERS[name])}

    assert set(parameters) == names or name == "forward-dynamics"
    assert SOLVERS[name](**parameters).build(load_robot("ur10")).parameters == parameters


def test_another_solvers_flag_is_refused(cli, line):
    answer = cli("check", line, "--solver", "feedback", "--solver.damping", "0.1")

    assert answer.status == 2
    assert "damping is a setting of damped-least-squares" in answer.message

    answer = cli("check", line, "--solver=feedback", "--solver.gian", "0.1")
    assert answer.status == 2
    assert "Did you mean 'gain'?" in answer.message

    # It has no settings that could be suggested.
    answer = cli("check", line, "--solver=closed-form", "--solver.kp", "1")
    assert answer.message.startswith(
        "There is no setting 'kp' of closed-form. kp is a setting of forward-dynamics"
    )


@pytest.mark.parametrize(
    "command", [("check", "square_tracking", "--solver.kp"), ("experiment", "tracking", "--kp")]
)
def test_a_refused_value_is_one_paragraph(cli, command):
    answer = cli(*command, -1)

    assert (answer.status, answer.out) == (2, "")
    assert re.fullmatch(r"(The solver's )?kp must be [^│]*\.", answer.message)


def test_the_preset_none_is_the_default(cli, line):
    shown = [cli("check", line, *flags, "--json") for flags in ((), ("--solver.preset", "none"))]

    assert shown[0].status == shown[1].status == 0
    assert shown[0].out == shown[1].out


def test_an_unknown_solver_is_refused(cli, line):
    answer = cli("check", line, "--solver", "pseudo")

    assert answer.status == 2
    assert "Did you mean 'pseudoinverse'?" in answer.message


def test_a_scenarios_settings_are_its_solvers():
    robot = load_robot("ur10")
    scenario = simbridge.Scenario(
        square(side=0.1), solver=DampedLeastSquaresParameters(damping=0.2, iterations=7)
    )

    assert choose_solver(scenario, robot).parameters["damping"] == 0.2

    same = choose_solver(scenario, robot, "damped-least-squares", {"iterations": 3})
    assert (same.parameters["damping"], same.iterations) == (0.2, 3)

    named = choose_solver(scenario, robot, "selectively-damped")
    assert (named.name, named.iterations) == ("selectively-damped", 10)
    with pytest.raises(UnknownName, match="kp"):
        choose_solver(scenario, robot, changes={"kp": (1.0,)})


@pytest.mark.python_kernels
def test_a_position_task_ignores_rotation(cli, line, tmp_path):
    stiff = "--solver.task position --solver.stiffness 0.001 --solver.bias 0.2 -1.3 1.9 -2.5 -1.2 0"
    flags = ["--solver", "damped-least-squares", *stiff.split()]
    flags += ["--servo", "ideal", "--period", 0.04, "--tolerance", 1, 0.5]

    answer = cli("run", line, *flags, "--out", tmp_path / "run", "--json")

    assert answer.status == 0, answer.err

    summary = json.loads(answer.out)
    assert summary["solver_error"]["rotation_rad"]["max"] < 1e-9

    joints = RunDirectory.open(tmp_path / "run").plan(Plan.from_arrays).setpoints
    turned = pose.error(*tool_path(load_robot("ur10"), joints[[0, -1]]))[1]

    assert np.linalg.norm(turned) > 0.02
