"""Text files are read in linear time and within limits."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InputFileError
from simbridge.trajectory.files import read_trajectory
from simbridge.trajectory.tables import text_header, text_lines
from simbridge.trajectory.tables.table import MAX_COLUMNS
from simbridge.trajectory.tables.text_header import MAX_COMMENT_WORDS, MAX_COMMENTS
from simbridge.trajectory.tables.text_lines import MAX_LINE_LENGTH
from tests.trajectory.tables.motions import (
    TABLE,
    assert_is_the_table,
    refused,
    same_directory,
    text,
)

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


@pytest.mark.parametrize(
    "header",
    [
        "t,x,y,z,qx,qy,qz,qw",
        "time, px, py, pz, qx, qy, qz, qw",
        "timestamp;tx;ty;tz;qx;qy;qz;qw",
        "stamp pos_x pos_y pos_z quat_x quat_y quat_z quat_w",
        (
            '"Time","position_x","position_y","position_z","orientation_x","orientation_y",'
            '"orientation_z","orientation_w"'
        ),
        "# timestamp tx ty tz qx qy qz qw",
    ],
)
def test_headers_of_other_programs_are_read(write_text, header: str) -> None:
    assert_is_the_table(read_trajectory(write_text(f"{header}\n{text(',')}")))


@same_directory
@given(order=st.permutations(range(10)), separator=st.sampled_from([",", ";", " "]))
def test_a_header_allows_any_order(write_text, order: list[int], separator: str) -> None:
    names = ["t", "x", "y", "z", "qx", "qy", "qz", "qw", "label", "Torque_1"]
    rows = [names] + [[*row, "a_word", "nan"] for row in TABLE]

    content = text(separator, [[row[k] for k in order] for row in rows])

    assert_is_the_table(read_trajectory(write_text(content)))


@given(order=st.permutations(range(8)))
@same_directory
def test_a_comment_of_names_is_a_header(write_text, order: list[int]) -> None:
    rows = [["t", "x", "y", "z", "qx", "qy", "qz", "qw"], *TABLE]

    assert_is_the_table(
        read_trajectory(write_text("# " + text(",", [[row[k] for k in order] for row in rows])))
    )


def test_a_quaternion_goes_before_a_rotation_vector(write_text) -> None:
    rows = [["t", "x", "y", "z", "qx", "qy", "qz", "qw", "rx", "ry", "rz"]] + [
        [*row, "9", "9", "9"] for row in TABLE
    ]

    assert_is_the_table(read_trajectory(write_text(text(",", rows))))


@pytest.mark.parametrize("comment", ["", "# "])
def test_a_line_unlike_its_header_is_refused(write_text, comment: str) -> None:
    fault = refused(write_text(f"{comment}t,x,y,z,qx,qy,qz,qw\n0,0,0,0,0,0,0\n"))

    assert fault.line == 2
    assert "7 columns where 8 are expected, as the" in str(fault)
    assert "in line 1 names" in str(fault)


@pytest.mark.parametrize("count", [1, 6, 9])
def test_another_number_of_columns_needs_a_header(write_text, count: int) -> None:
    fault = refused(write_text(" ".join(["0"] * count)))

    assert fault.line == 1
    assert (
        f"{count} columns; without a header 8 or 7 are expected: "
        "'t x y z qx qy qz qw' or 't x y z rx ry rz'"
    ) in str(fault)


@pytest.mark.parametrize(
    ("header", "missing"),
    [
        ("t,x,y,qx,qy,qz,qw,label", "does not name z;"),
        ("t,x,y,z,roll,pitch,yaw", "does not name qx, qy, qz, qw;"),
        ("t,x,y,z,rx,ry,angle", "does not name rz;"),
        ("moment x y z qx qy qz qw", "does not name t;"),
        ("My first trajectory", "does not name t, x, y, z, qx, qy, qz, qw;"),
    ],
)
def test_a_missing_column_is_listed(write_text, header: str, missing: str) -> None:
    fault = refused(write_text(f"\n{header}\n{text(',')}"))

    assert fault.line == 2
    assert missing in str(fault)
    assert "'t x y z qx qy qz qw' or 't x y z rx ry rz'" in str(fault)


def test_a_repeated_column_is_refused(write_text) -> None:
    fault = refused(write_text("t,x,px,y,z,rx,ry,rz\n0,0,0,0,0,0,0,0\n"))

    assert fault.line == 1
    assert "more than one column is x: x, px" in str(fault)


@pytest.mark.parametrize(
    "content", ["", "\n \n", "# only a remark\n", "t x y z qx qy qz qw\n", "\ufeff"]
)
def test_a_file_without_samples_is_refused(write_text, content: str) -> None:
    fault = refused(write_text(content))

    assert fault.line is None
    assert "no samples" in str(fault)
