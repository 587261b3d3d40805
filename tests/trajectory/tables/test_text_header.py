"""Text files are read in linear time and within limits."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from pathlib import Path

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
from tests.patience import PATIENCE
from tests.trajectory.tables.motions import (
    EPOCH,
    NS,
    POSES,
    TABLE,
    assert_is_the_table,
    assert_same,
    refusal,
    refused,
    rows,
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


@pytest.mark.slow
def test_a_limited_number_of_comments_is_looked_at(tmp_path, recognised):
    remark = "# one two three four five six seven eight\n"

    read_trajectory(written(tmp_path, remark * (MAX_COMMENTS + 100) + SAMPLES))

    assert len(recognised) == MAX_COMMENTS


@pytest.mark.slow
def test_a_limited_number_of_words_is_looked_at(tmp_path, recognised):
    remark = "# " + "word " * 100 + "\n"

    with pytest.raises(InputFileError):
        read_trajectory(written(tmp_path, remark * (MAX_COMMENT_WORDS // 100 + 100) + "1 2 3\n"))

    assert sum(map(len, recognised)) == MAX_COMMENT_WORDS


def test_a_comment_header_may_follow_blank_lines(tmp_path):
    swapped = "# t y x z qx qy qz qw\n"

    trajectory = read_trajectory(written(tmp_path, "\n" * 5000 + swapped + SAMPLES))

    assert trajectory.poses[0, 1] == 0.7


LARGE = {
    "LF": "\n" * 300_000,
    "CR": "\r" * 300_000,
    "empty comments": "#\n" * 300_000,
    "headers": HEADER * 200_000,
    "numbered names": ",".join(f"position{k}" for k in range(MAX_COLUMNS)) + "\n1\n",
    "a long name": "a" + " " * 300_000 + "b,t,x\n1,2,3\n",
    "columns without names": "," * (MAX_LINE_LENGTH - 1) + "\n",
}
# Reads files, and prints the name of each that is refused.
READER = """
import sys
from simbridge.errors import InputFileError
from simbridge.trajectory.files import read_trajectory

for path in sys.argv[1:]:
    try:
        read_trajectory(path)
    except InputFileError:
        print(path, flush=True)
"""


@pytest.fixture(scope="module")
def refused_names(tmp_path_factory):
    """The names of the large files that one process refuses."""
    directory = tmp_path_factory.mktemp("large")
    paths = []
    for name, content in LARGE.items():
        paths.append(directory / f"{name}.csv")
        paths[-1].write_text(content)

    # Quadratic work would take too long: then the names of the files before it have been printed.
    printed = directory / "printed"
    with printed.open("w") as file, contextlib.suppress(subprocess.TimeoutExpired):
        # The time is that of a busy computer.
        command = [sys.executable, "-c", READER, *paths]
        subprocess.run(command, stdout=file, timeout=PATIENCE, check=True)
    return [Path(path).stem for path in printed.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.shares_setup
@pytest.mark.parametrize("name", LARGE)
def test_the_work_is_no_more_than_linear(refused_names, name):
    assert name in refused_names


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
    assert "7 columns, but 8 are expected, as the" in str(fault)
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
        ("t,x,y,qx,qy,qz,qw,label", "does not name z"),
        ("t,x,y,z,roll,pitch,yaw", "does not name qx, qy, qz, qw"),
        ("t,x,y,z,rx,ry,angle", "does not name rz"),
        ("moment x y z qx qy qz qw", "does not name t"),
        ("My first trajectory", "does not name t, x, y, z, qx, qy, qz, qw"),
    ],
)
def test_a_missing_column_is_listed(write_text, header: str, missing: str) -> None:
    fault = refused(write_text(f"\n{header}\n{text(',')}"))

    assert fault.line == 2
    assert missing in str(fault)


def test_a_repeated_column_is_refused(write_text) -> None:
    fault = refused(write_text("t,x,px,y,z,rx,ry,rz\n0,0,0,0,0,0,0,0\n"))

    assert fault.line == 1
    assert "more than one column may be x: x, px" in str(fault)


@pytest.mark.parametrize(
    "content", ["", "\n \n", "# only a remark\n", "t x y z qx qy qz qw\n", "\ufeff"]
)
def test_a_file_without_samples_is_refused(write_text, content: str) -> None:
    fault = refused(write_text(content))

    assert fault.line is None
    assert "no samples" in str(fault)


W_FIRST = (0, 1, 2, 6, 3, 4, 5)
OKVIS = (
    "timestamp, p_WS_W_x, p_WS_W_y, p_WS_W_z, q_WS_x, q_WS_y, q_WS_z, q_WS_w, v_WS_W_x, "
    "v_WS_W_y, v_WS_W_z, b_g_x, b_g_y, b_g_z, b_a_x, b_a_y, b_a_z"
)
EUROC = (
    "#timestamp, p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], "
    "q_RS_z [], v_RS_R_x [m s^-1], v_RS_R_y [m s^-1], v_RS_R_z [m s^-1], "
    "b_w_RS_S_x [rad s^-1], b_w_RS_S_y [rad s^-1], b_w_RS_S_z [rad s^-1], "
    "b_a_RS_S_x [m s^-2], b_a_RS_S_y [m s^-2], b_a_RS_S_z [m s^-2]"
)
TUM_VI = (
    "#timestamp [ns], p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], "
    "q_RS_z []"
)
KIMERA = "#timestamp,x,y,z,qw,qx,qy,qz,vx,vy,vz,bgx,bgy,bgz,bax,bay,baz"
OPENVINS = (
    "# timestamp(s) tx ty tz qx qy qz qw Pr11 Pr12 Pr13 Pr22 Pr23 Pr33 Pt11 Pt12 Pt13 Pt22 Pt23 "
    "Pt33"
)
NEWER_COLLEGE = "# counter, sec, nsec, x, y, z, qx, qy, qz, qw"


@pytest.mark.parametrize(
    ("header", "order", "others"),
    [
        (EUROC, W_FIRST, 9),
        (TUM_VI, W_FIRST, 0),
        ("# timestamp[ns],tx,ty,tz,qw,qx,qy,qz", W_FIRST, 0),
        (KIMERA, W_FIRST, 9),
        (OKVIS, range(7), 9),
    ],
    ids=["EuRoC", "TUM-VI mocap", "TUM-VI dso", "Kimera", "OKVIS"],
)
def test_visual_odometry_in_nanoseconds_is_known(write_table, header, order, others) -> None:
    table = [[*row, *[0.1] * others] for row in rows(EPOCH + NS, order=order)]

    read = read_trajectory(write_table(table, header))

    assert_same(read)
    assert read.epoch_ns == EPOCH


@pytest.mark.parametrize(
    ("header", "others"),
    [
        ("# timestamp tx ty tz qx qy qz qw", 0),
        ("# time(s) tx ty tz qx qy qz qw", 0),
        (OPENVINS, 12),
    ],
    ids=["UZH-FPV", "time(s)", "OpenVINS"],
)
def test_visual_odometry_in_seconds_is_known(write_table, header, others) -> None:
    table = [[*row, *[0.1] * others] for row in rows(NS / 1e9)]

    assert_same(read_trajectory(write_table(table, header, separator=" ")))


def test_a_counter_and_stamps_are_known(write_table) -> None:
    table = [
        [k, *divmod(EPOCH + int(t), 10**9), *row]
        for k, (t, row) in enumerate(zip(NS, POSES.tolist(), strict=True))
    ]

    assert_same(read_trajectory(write_table(table, NEWER_COLLEGE)))


@pytest.mark.parametrize(
    "header",
    [
        "# timestamp [s] tx [m] ty [m] tz [m] qw [] qx [] qy [] qz []",
        "# time in s, x in m, y in m, z in m, qw, qx, qy, qz",
        "# Format: t x y z q_w q_x q_y q_z",
        "# [timestamp, x, y, z, qw, qx, qy, qz]",
        "% time x y z qw qx qy qz",
        "// time x y z qw qx qy qz",
        "%time,x,y,z,qw,qx,qy,qz",
        "#t,x,y,z,qw,qx,qy,qz,",
        "# t x y z qx qy qz qw\n# t x y z qx qy qz qw\nt x y z qw qx qy qz",
    ],
)
def test_a_header_of_any_form_decides(write_table, header: str) -> None:
    separator = "," if header.endswith(",") or "%time," in header else " "
    table = rows(NS / 1e9, order=W_FIRST)

    assert_same(read_trajectory(write_table(table, header, separator=separator)))


@pytest.mark.parametrize(
    "comment",
    [
        "# position, then the quaternion (w, x, y, z)",
        "# time, position and quat_wxyz",
        "# the quaternion is scalar first",
        "# columns are time x y z then rot.w rot.x rot.y rot.z as floats",
        "# timestamp tx ty tz qw qx qy qz  (camera in world)",
    ],
)
@pytest.mark.parametrize("rate", [None, 50.0])
def test_a_contradicting_comment_is_refused(write_table, comment: str, rate) -> None:
    table = rows(NS / 1e9, order=W_FIRST)
    if rate is not None:
        table = [row[1:] for row in table]
    path = write_table(table, comment, separator=" ")

    message = refusal(path, rate=rate)

    w_first, w_last = re.findall(r"--columns ([\w=,]+)", message)
    assert_same(read_trajectory(path, columns=w_first, rate=rate))
    assert w_last.endswith("qw=8" if rate is None else "qw=7")


def test_two_contradicting_comments_are_refused(write_table) -> None:
    comments = ("# timestamp tx ty tz qx qy qz qw", "# t x y z qw qx qy qz")
    path = write_table(rows(NS / 1e9, order=W_FIRST), *comments, separator=" ")

    message = refusal(path)

    _, second = re.findall(r"--columns ([\w=,]+)", message)
    assert "the comments in lines 1 and 2" in message
    assert_same(read_trajectory(path, columns=second))


@pytest.mark.parametrize("header", ["# timestamp tx ty tz qx qy qz qw", "# made by hand"])
def test_another_order_between_rows_is_refused(write_table, header: str) -> None:
    table = rows(NS / 1e9)
    table[20] = ["# timestamp tx ty tz qw qx qy qz"]

    assert "line 22: according to this comment, the order of the columns changes here" in refusal(
        write_table(table, header, separator=" ")
    )


def test_remarks_between_rows_change_nothing(write_table) -> None:
    table = [*rows(NS / 1e9)[:20], ["# the second half"], *rows(NS / 1e9)[20:]]

    assert_same(read_trajectory(write_table(table, separator=" ")))


@pytest.mark.parametrize("order", [range(7), W_FIRST])
def test_advice_has_the_order_of_the_comment(write_table, order) -> None:
    names = [("x", "y", "z", "qx", "qy", "qz", "qw")[k] for k in order]
    table = [[*row, *[0.1] * 5] for row in rows(NS / 1e9, order=order)]
    path = write_table(table, f"# t {' '.join(names)}", separator=" ")

    (flag,) = re.findall(r"--columns ([\w=,]+)", refusal(path))

    assert_same(read_trajectory(path, columns=flag))


def test_pandas_index_between_tabs_has_no_name(write_table) -> None:
    table = [[k, *row] for k, row in enumerate(rows(NS / 1e9))]

    assert_same(read_trajectory(write_table(table, "\tt\tx\ty\tz\tqx\tqy\tqz\tqw", separator="\t")))


@pytest.mark.parametrize(
    "remark",
    ["order: t x y z qw qx qy qz", "quaternion wxyz", "qw first", "Hamilton (w leading)"],
)
def test_a_comment_against_the_header_is_refused(tmp_path, remark):
    header = f"# {remark}\nt,x,y,z,qx,qy,qz,qw\n"
    rows = SAMPLES.replace(" ", ",")

    with pytest.raises(InputFileError) as refusal:
        read_trajectory(written(tmp_path, header + rows))

    assert refusal.value.line == 1
    assert "--columns qw=5,qx=6,qy=7,qz=8" in str(refusal.value)
    assert "--columns qx=5,qy=6,qz=7,qw=8" in str(refusal.value)


def test_a_comment_that_agrees_with_the_header_is_read(tmp_path):
    header = "# quaternion wxyz\nt,x,y,z,qw,qx,qy,qz\n"
    rows = "".join(f"{0.1 * k:g},0.7,0.1,0.3,0,1,0,0\n" for k in range(5))

    trajectory = read_trajectory(written(tmp_path, header + rows))

    assert trajectory.poses[0, 3:].tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("remark", ["qw first", "w leading", "q0 q1 q2 q3 with q0 scalar"])
def test_w_first_in_prose_is_refused(tmp_path, remark):
    with pytest.raises(InputFileError) as refusal:
        read_trajectory(written(tmp_path, f"# {remark}\n{SAMPLES}"))

    assert refusal.value.line == 1
