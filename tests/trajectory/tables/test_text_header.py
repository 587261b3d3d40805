"""Text files are read in linear time and within limits."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from simbridge.errors import InputFileError
from simbridge.trajectory.files import read_trajectory
from simbridge.trajectory.tables import text_header, text_lines
from simbridge.trajectory.tables.table import MAX_COLUMNS
from simbridge.trajectory.tables.text_header import MAX_COMMENT_WORDS, MAX_COMMENTS
from simbridge.trajectory.tables.text_lines import MAX_LINE_LENGTH

SAMPLES = "".join(f"{0.1 * k:g} {0.7 + 0.01 * k:g} 0.1 0.3 0 0 0 1\n" for k in range(5))


HEADER = "# t x y z qx qy qz qw\n"


@pytest.fixture
def recognised(monkeypatch):
    """Every list of names in which columns were looked for."""
    lists = []
    recognise = text_header.find_roles
    monkeypatch.setattr(
        text_header, "find_roles", lambda names: lists.append(names) or recognise(names)
    )
    return lists


def written(tmp_path, content):
    path = tmp_path / "poses.csv"
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    "line", ["\n", "\r", "#\n", "   \n", "# a remark\n", "# " + "word " * 20 + "\n"]
)
def test_nameless_lines_are_no_headers(tmp_path, recognised, line):
    read_trajectory(written(tmp_path, line * 1000 + SAMPLES))

    assert recognised == []


def test_a_limited_number_of_comments_is_looked_at(tmp_path, recognised):
    remark = "# one two three four five six seven eight\n"

    read_trajectory(written(tmp_path, remark * (MAX_COMMENTS + 1000) + SAMPLES))

    assert len(recognised) == MAX_COMMENTS


def test_a_limited_number_of_words_is_looked_at(tmp_path, recognised):
    remark = "# " + "word " * 100 + "\n"

    with pytest.raises(InputFileError):
        read_trajectory(written(tmp_path, remark * 1000 + "1 2 3\n"))

    assert sum(map(len, recognised)) == MAX_COMMENT_WORDS


def test_a_comment_header_may_follow_blank_lines(tmp_path):
    swapped = "# t y x z qx qy qz qw\n"

    trajectory = read_trajectory(written(tmp_path, "\n" * 5000 + swapped + SAMPLES))

    assert trajectory.poses[0, 1] == 0.7


@pytest.mark.parametrize(
    "content",
    [
        "\n" * 2_000_000,
        "\r" * 2_000_000,
        "#\n" * 1_000_000,
        HEADER * 200_000,
        ",".join(f"position{k}" for k in range(MAX_COLUMNS)) + "\n1\n",
        "a" + " " * 300_000 + "b,t,x\n1,2,3\n",
        "," * (MAX_LINE_LENGTH - 1) + "\n",
    ],
    ids=[
        "LF",
        "CR",
        "empty comments",
        "headers",
        "numbered names",
        "a long name",
        "columns without names",
    ],
)
def test_the_work_is_no_more_than_linear(tmp_path, content):
    path = written(tmp_path, content)
    # Quadratic work would take hours; the time is that of a busy computer.
    call = (
        "import sys; from simbridge.trajectory.files import read_trajectory; "
        "read_trajectory(sys.argv[1])"
    )

    answer = subprocess.run(
        [sys.executable, "-c", call, path], capture_output=True, timeout=120, check=False
    )

    assert b"InputFileError" in answer.stderr


def test_too_many_lines_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "MAX_LINES", 5)
    read_trajectory(written(tmp_path, SAMPLES.rstrip("\n").replace("\n", "\r\n")))

    with pytest.raises(InputFileError, match="6 lines"):
        read_trajectory(written(tmp_path, SAMPLES))


def test_a_line_too_long_is_refused(tmp_path):
    with pytest.raises(InputFileError) as refusal:
        read_trajectory(written(tmp_path, SAMPLES + "#" * (MAX_LINE_LENGTH + 1)))

    assert refusal.value.line == 6


def test_too_many_columns_are_refused_in_text(tmp_path):
    with pytest.raises(InputFileError, match="10,001 columns"):
        read_trajectory(written(tmp_path, ",".join(["x"] * (MAX_COLUMNS + 1)) + "\n"))


def test_too_many_columns_are_refused_in_arrays(tmp_path):
    np.savez(
        tmp_path / "many.npz", **{f"a{k}": np.zeros((2, 16)) for k in range(MAX_COLUMNS // 16 + 1)}
    )

    with pytest.raises(InputFileError, match="columns"):
        read_trajectory(tmp_path / "many.npz")
