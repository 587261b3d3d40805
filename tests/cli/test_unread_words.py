"""Options that a command does not have, and values that nothing takes."""

from __future__ import annotations

import pytest

from simbridge.cli.command_line import SUBCOMMANDS
from simbridge.cli.declared_options import declared_options
from simbridge.cli.option_errors import RepeatedOption, SurplusValue, UnknownOption
from simbridge.cli.option_flags import command_types
from simbridge.cli.unread_words import check_options, refuse_unread


def options_error(line, error):
    """The error of a command line; the words after a bar are those that tyro has not read."""
    line, _, unread = line.partition(" | ")
    words = [*line.split(), *unread.split()]
    kind = command_types(words)[words[0]]
    with pytest.raises(error) as caught:
        check_options(words[0], kind, words)
        refuse_unread(words[0], kind, words, unread.split())
    return caught.value


@pytest.mark.parametrize(
    ("line", "nearest"),
    [
        ("run circle --speed 0.5", ("--speed-scale FACTOR", "--max-tool-speed M/S")),
        ("run circle --sped-scale=0.5", ("--speed-scale FACTOR",)),
        ("check circle --max_tool_sped 1", ("--max-tool-speed M/S",)),
        ("check circle --no-json", ("--json",)),
        ("emulate --por 3", ("--control-port PORT", "--rest-port PORT")),
        ("compare A B --figure out", ("--figures DIR",)),
        ("robots --robot ur5e", ()),
        ("check circle | -floor 1", ("--floor M|none",)),
    ],
)
def test_an_unknown_option_is_answered_with_the_nearest(line, nearest):
    error = options_error(line, UnknownOption)

    assert error.nearest == nearest


@pytest.mark.slow
@pytest.mark.parametrize("command", [name for name in command_types([]) if name not in SUBCOMMANDS])
def test_every_command_suggests_only_its_own_options(command):
    known = declared_options(command_types([command])[command])

    error = options_error(f"{command} --json-out-speed-port x", UnknownOption)

    assert {name.split()[0] for name in error.nearest} <= set(known)


@pytest.mark.parametrize(
    ("line", "option", "values"),
    [
        ("sweep circle --grid a=1 b=2 | c", "--grid", ("a=1", "b=2")),
        ("sweep --grid=a=1 b=2 circle", "--grid", ("a=1", "b=2")),
        ("sweep circle --random a=1:2 | b", "--random", ("a=1:2", "b")),
        ("runs --filter label=a scenario=b", "--filter", ("label=a", "scenario=b")),
        ("run arm --xacro-arg a:=1 b:=2", "--xacro-arg", ("a:=1", "b:=2")),
        ("evaluate RUN --attained a | b", "--attained", ("a", "b")),
        ("run circle --backend pybullet | mujoco", "--backend", ("pybullet", "mujoco")),
        ("run circle --tolerance 1 2 | 3", "--tolerance", ("1", "2", "3")),
        ("check circle --json=3", "--json", ("3",)),
        ("check circle | square", "", ("square",)),
        ("check circle --json | square", "", ("square",)),
    ],
)
def test_a_surplus_value_is_refused_with_its_option(line, option, values):
    error = options_error(line, SurplusValue)

    assert (error.option, error.values) == (option, values)


@pytest.mark.parametrize("line", ["run a --robot ur5 --robot ur10", "run a --robot=ur5 --robot b"])
def test_an_option_given_twice_is_refused(line):
    error = options_error(line, RepeatedOption)

    assert (error.option, error.count) == ("--robot", 2)


@pytest.mark.parametrize(
    "line",
    [
        "run circle --max_tool_speed 0.1 --json --json",
        "sweep circle --grid a=1 --grid b=2",
        "sweep --grid a=1 circle square",
        "check circle --solver.kp 5 --home -0.5 1 1 1 1 1",
        "teleop network --port 3 --view",
    ],
)
def test_a_line_that_can_be_read_is_accepted(line):
    words = line.split()

    check_options(words[0], command_types(words)[words[0]], words)


def test_an_unknown_option_is_answered_in_a_paragraph(cli):
    answer = cli("run", "square_tracking", "--speed", "0.5")

    assert answer.status == 2
    assert answer.message == (
        "`simbridge run` has no option '--speed'. Did you mean --speed-scale FACTOR or "
        "--max-tool-speed M/S? `simbridge run --help` lists its options."
    )


def test_several_values_are_answered_with_the_line_to_write(cli):
    answer = cli("sweep", "circle", "--grid", "solver.kp=5,10", "sample-noise=0 0,1 0.1")

    assert answer.status == 2
    assert "repeat it: `--grid solver.kp=5,10 --grid 'sample-noise=0 0,1 0.1'`." in answer.message


def test_an_experiment_has_its_own_options(cli):
    answer = cli("experiment", "solvers", "--speed", "3")

    assert answer.status == 2
    assert "`simbridge experiment solvers` has no option '--speed'." in answer.message


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["--json", "run", "circle"], "simbridge COMMAND --json"),
        (["experiment", "--seed", "3", "solvers"], "simbridge experiment EXPERIMENT --seed"),
        (["ursim", "--host", "127.0.0.1", "start"], "simbridge ursim ACTION --host"),
    ],
)
def test_an_option_before_the_name_is_refused(cli, words, usage):
    answer = cli(*words)

    assert answer.status == 2
    assert f"`{usage}`" in answer.message
