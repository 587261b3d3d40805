"""A name that does not exist is answered with the one that is meant."""

from __future__ import annotations

import pytest

from simbridge.errors import find_nearest
from simbridge.ik.settings import SOLVERS, SYNONYMS

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        ("dls", "damped-least-squares"),
        ("LM", "damped-least-squares"),
        ("dampedleastsquares", "damped-least-squares"),
        ("damped_least_squares", "damped-least-squares"),
        ("fd", "forward-dynamics"),
        ("jt", "jacobian-transpose"),
        ("cf", "closed-form"),
        ("pinv", "pseudoinverse"),
        ("psuedoinverse", "pseudoinverse"),
    ],
)
def test_a_solver_is_found_by_what_people_call_it(name, solver):
    assert find_nearest(name, sorted(SOLVERS), SYNONYMS) == solver


def test_synonyms_stand_for_solvers():
    assert set(SYNONYMS.values()) <= set(SOLVERS)


def test_a_name_like_none_is_not_answered():
    assert find_nearest("zzz", sorted(SOLVERS), SYNONYMS) is None


@pytest.mark.parametrize(("word", "command"), [("rum", "run"), ("chek", "check")])
def test_a_command_is_answered_with_the_nearest(cli, word, command):
    answer = cli(word)

    assert answer.status == 2
    assert answer.message.startswith(f"There is no command '{word}'.")
    assert f"Did you mean '{command}'?" in answer.message


def test_an_experiment_is_answered_with_the_nearest(cli):
    answer = cli("experiment", "trackng")

    assert answer.status == 2
    assert "Did you mean 'tracking'?" in answer.message


@pytest.mark.parametrize(
    ("flag", "meant"), [("--solvr", "--solver"), ("--feedfoward", "--feedforward")]
)
def test_a_flag_is_answered_with_the_nearest(cli, flag, meant):
    answer = cli("run", "circle", flag, "x")

    assert answer.status == 2
    assert f"{meant} " in answer.err


@pytest.mark.parametrize("command", ["run", "check", "studio", "teleop"])
def test_every_door_names_the_solver_that_is_meant(cli, command):
    words = {"run": ["circle"], "check": ["circle"], "teleop": ["keyboard"]}.get(command, [])

    answer = cli(command, *words, "--solver", "dls")

    assert answer.status == 2
    assert "Did you mean 'damped-least-squares'?" in answer.message


@pytest.mark.parametrize(
    ("arguments", "grid"),
    [
        (["--robot", "ur5e"], "robot=ur5e"),
        (["--robot=ur5e,ur10e"], "robot=ur5e,ur10e"),
        (["--solver.kp", "5"], "solver.kp=5"),
        (["--sample_noise", "1", "0.1"], "'sample-noise=1 0.1'"),
        (["--robot"], "robot=A,B,..."),
    ],
)
def test_a_flag_of_run_is_answered_with_grid(cli, arguments, grid):
    answer = cli("sweep", "circle", "--plan-only", *arguments)

    assert answer.status == 2
    assert f"must be given as --grid {grid} (got " in answer.message
