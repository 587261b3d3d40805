"""Options of the command line that are given without their values."""

from __future__ import annotations

import pytest

from simbridge.cli.missing_values import check_values
from simbridge.cli.option_flags import command_types
from simbridge.errors import MissingValue


@pytest.mark.parametrize(
    ("line", "option", "metavar"),
    [
        ("report RUN --figures", "--figures", "DIR"),
        ("compare A B --figures --json", "--figures", "DIR"),
        ("run circle --tolerance 1 --json", "--tolerance", "MM DEG"),
        ("run circle --home --hold linear", "--home", "RAD ..."),
        ("check circle --solver.kp", "--solver.kp", "VALUE"),
        ("sweep circle --grid", "--grid", "NAME=A,B,..."),
        ("sweep circle --keep", "--keep", "none|extremes|all"),
        ("teleop network --port", "--port", "PORT"),
        ("emulate --check", "--check", "FILE..."),
        ("experiment solvers --seed", "--seed", "NUMBER"),
    ],
)
def test_an_option_without_its_value_is_refused(line, option, metavar):
    words = line.split()

    with pytest.raises(MissingValue) as caught:
        check_values(words[0], command_types(words)[words[0]], words)

    assert (caught.value.option, caught.value.metavar) == (option, metavar)


@pytest.mark.parametrize(
    "line",
    [
        "run circle --tolerance 1 0.5 --json",
        "check circle --home 0 -1.5 1.5 -1.5 -1.5 0",
        "report RUN --figures=plots",
        "sweep circle --grid solver.kp=1,2",
    ],
)
def test_options_with_their_values_are_accepted(line):
    words = line.split()

    check_values(words[0], command_types(words)[words[0]], words)


def test_the_message_names_the_values(cli):
    answer = cli("report", "RUN", "--figures")

    assert answer.status == 2
    assert answer.err == (
        "--figures needs a value: `--figures DIR`. `simbridge report --help` describes it.\n"
    )


def test_help_is_shown_for_an_incomplete_line(cli):
    answer = cli("report", "--figures", "--help")

    assert answer.status == 0
    assert "--figures DIR" in answer.out
