"""Input within a refusal is shortened and visible at the command line.

What is to be copied is whole, and works.
"""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest

from simbridge.cli.error_reporting import print_message
from simbridge.errors import InputFileError, InvalidParameter, UnknownName
from simbridge.quoting import ELLIPSIS
from simbridge.trajectory.files import read_trajectory

LONG = "x" * 100_000


@pytest.mark.parametrize(
    "error",
    [
        UnknownName("robot", LONG, ["ur10"]),
        UnknownName("topic", "x", [LONG] * 1000),
        InvalidParameter("label", LONG, "a short text"),
        InputFileError("file.toml", "unknown field", field=LONG),
    ],
)
def test_long_input_is_shortened(error):
    assert ELLIPSIS in str(error)
    assert len(str(error)) < 10_000


def test_an_errors_fields_hold_all_input():
    assert UnknownName("robot", LONG, ["ur10"]).name == LONG


@pytest.mark.parametrize(
    "words",
    [
        ["run", LONG],
        ["run", "circle", "--solver", LONG],
        ["sweep", "circle", "--grid", LONG],
        ["runs", "--sort", LONG],
    ],
)
def test_the_command_line_shortens_what_was_given(cli, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)

    answer = cli(*words)

    assert answer.status == 2
    assert len(answer.err) < 10_000


@pytest.mark.parametrize("word", ["\x1b]0;title\x07", "a\rb", "\x9b2J", "\u202e"])
def test_control_characters_are_visible_in_an_error(cli, word):
    answer = cli("run", "circle", "--robot", word)

    assert answer.status == 2
    assert word not in answer.err
    assert "\\" in answer.err


def test_cells_of_a_file_are_shortened(tmp_path):
    (tmp_path / "poses.csv").write_text(f"t,x,y,z,qx,qy,qz,qw\n0,{LONG},0,0,0,0,0,1\n")

    with pytest.raises(InputFileError) as refusal:
        read_trajectory(tmp_path / "poses.csv")

    assert len(str(refusal.value)) < 1000


def test_many_names_of_a_file_are_shortened(tmp_path):
    (tmp_path / "poses.csv").write_text(
        ",".join(f"name{k}{LONG[:90]}" for k in range(5000)) + "\n1\n"
    )

    with pytest.raises(InputFileError) as refusal:
        read_trajectory(tmp_path / "poses.csv", columns="t=missing")

    assert len(str(refusal.value)) < 10_000


def test_a_command_stays_in_one_line(capsys):
    command = "`simbridge report '/tmp/" + "a directory with blanks/" * 8 + "'`"

    print_message(
        f"The report was interrupted; {command} completes it. " + "More words follow. " * 10
    )

    assert command in capsys.readouterr().err


def test_a_commands_path_is_quoted(cli, tmp_path):
    run = tmp_path / "my $run's"
    run.mkdir()
    (run / "settings.toml").write_text("")

    answer = cli("view", run)

    (command,) = re.findall(r"`([^`]*)`", answer.err)

    assert shlex.split(command) == ["simbridge", "report", str(run)]


@pytest.mark.parametrize("name", ["my pose", "it's", "$HOME", "a,b", "größe"])
def test_columns_to_be_copied_work_whatever_their_names(tmp_path, name):
    poses = np.tile([0.7, 0.1, 0.3, 0.0, 0.0, 0.0, 1.0], (4, 1))
    np.savez(tmp_path / "poses.npz", **{"t": np.arange(4) * 0.1, name: poses})

    with pytest.raises(InputFileError) as refusal:
        read_trajectory(tmp_path / "poses.npz")

    flags = re.findall(r"--columns (\S+?)(?=[;,.]?(?:\s|$))", str(refusal.value))
    words = shlex.split(f"--columns {flags[0]}")

    trajectory = read_trajectory(tmp_path / "poses.npz", columns=words[1] + ",t=t")

    assert len(words) == 2
    np.testing.assert_allclose(trajectory.poses, poses)


def test_a_long_flag_is_not_shortened(tmp_path):
    name = "orientation_" + "of_the_tool_" * 20
    header = ",".join(["t", "x", "y", "z", *(f"{name}orientation_{k}" for k in range(4))])
    (tmp_path / "poses.csv").write_text(f"{header}\n0,0.7,0.1,0.3,0,0,0,1\n")

    with pytest.raises(InputFileError) as refusal:
        read_trajectory(tmp_path / "poses.csv")

    assert ELLIPSIS not in str(refusal.value)

    (flag, _) = re.findall(r"--columns (\S+?)(?=[;]|$)", str(refusal.value))
    assert len(read_trajectory(tmp_path / "poses.csv", columns=flag).poses) == 1
