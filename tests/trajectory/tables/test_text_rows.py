"""The rows of a text file are split like its header, and every fault has its line."""

from __future__ import annotations

import re

import numpy as np
import pytest

from simbridge.trajectory import read_trajectory
from tests.trajectory.tables.motions import (
    ECHO,
    EPOCH,
    NS,
    POSES,
    TABLE,
    assert_is_the_table,
    assert_same,
    refusal,
    refused,
    rows,
    table_with,
    text,
)


def test_tabs_allow_blanks_within_fields(write_table) -> None:
    poses = POSES * [1e3, 1e3, 1e3, 1, 1, 1, 1]
    header = "Time (s)\tPos X (mm)\tPos Y (mm)\tPos Z (mm)\tqx\tqy\tqz\tqw"

    assert_same(read_trajectory(write_table(rows(NS / 1e9, poses), header, separator="\t")))

    times = [str(np.datetime64(EPOCH + int(t), "ns")).replace("T", " ") for t in NS]

    read = read_trajectory(write_table(rows(times), separator="\t"))

    assert_same(read)
    assert read.epoch_ns == EPOCH


def test_a_tab_among_blanks_separates_like_them(write_table) -> None:
    lines = [f"{row[0]}\t{' '.join(map(str, row[1:]))}" for row in rows(NS / 1e9)]

    assert_same(read_trajectory(write_table([[line] for line in lines])))


def test_blanks_separate_where_tabs_do_not(write_table) -> None:
    plain = [
        [f"{t}\t{' '.join(map(str, row[:3]))}\t{' '.join(map(str, row[3:]))}"]
        for t, *row in rows(NS / 1e9)
    ]

    assert_same(read_trajectory(write_table(plain, "t\tx y z\tqx qy qz qw")))

    lines = ["\t".join(map(str, row)) for row in rows(NS / 1e9)]
    for k, separator in ((5, "\t\t"), (7, " ")):
        lines[k] = lines[k].replace("\t", separator)

    assert_same(read_trajectory(write_table([[line] for line in lines])))
    assert_same(
        read_trajectory(write_table([[line] for line in lines], "t\tx\ty\tz\tqx\tqy\tqz\tqw"))
    )


def test_the_farther_readings_fault_is_named(write_table) -> None:
    table = rows(NS / 1e9)
    table[3][2] = "left"

    assert "line 5, y: 'left' is not a number" in refusal(
        write_table(table, "t\tx\ty\tz\tqx\tqy\tqz\tqw", separator="\t")
    )


def test_fields_in_quotation_marks_are_read(write_table) -> None:
    quoted = [[f'"{value}"' for value in row] for row in rows(NS / 1e9)]

    assert_same(
        read_trajectory(write_table(quoted, '"timestamp","px","py","pz","ox","oy","oz","ow"'))
    )


def test_a_changing_frame_is_refused_by_line(write_table) -> None:
    lines = [
        [t, k, t, "map" if k < 7 else "odom", *row]
        for k, (t, row) in enumerate(zip(NS, POSES, strict=True))
    ]

    assert re.search(
        r"line 9, frame_id: the frame is 'odom' here, but 'map' before",
        refusal(write_table(lines, ECHO)),
    )


def test_another_child_frame_is_refused_by_line(write_table) -> None:
    """Two transforms in one table are no motion."""
    children = ["tool", "tool", "camera"]
    poses = list(zip(children, POSES, strict=False))
    named = [[k, "map", child, *pose] for k, (child, pose) in enumerate(poses)]
    echoed = [[k, 0, "map", child, *pose] for k, (child, pose) in enumerate(poses)]
    header = "t,frame_id,child_frame_id,x,y,z,qx,qy,qz,qw"

    messages = [refusal(write_table(named, header)), refusal(write_table(echoed))]

    for line, message in zip((4, 3), messages, strict=True):
        expected = f"line {line}: the child frame is camera here, but tool before"
        assert expected in message


@pytest.mark.parametrize("separator", [" ", "\t", "   ", ",", ", ", ";", " ; "])
def test_commas_semicolons_and_blanks_separate(write_text, separator: str) -> None:
    assert_is_the_table(read_trajectory(write_text(text(separator))))


@pytest.mark.parametrize(
    "content",
    [
        text().encode(),
        text().rstrip("\n").encode(),
        b"\xef\xbb\xbf" + text(",").encode(),
        text(",").replace("\n", "\r\n").encode(),
        text(",").replace("\n", "\r").encode(),
        b"# recorded at 5 \xc2\xb5s, in the lab; by hand\n\n"
        + text().replace("\n", " # remark\n  \n").encode(),
        text().replace(" ", "  ").replace("\n", "  \n ").encode(),
    ],
    ids=[
        "plain",
        "no newline at the end",
        "BOM",
        "CRLF",
        "CR",
        "comments and empty lines",
        "blanks around",
    ],
)
def test_text_files_of_every_program_are_read(write_text, content: bytes) -> None:
    assert_is_the_table(read_trajectory(write_text(content)))


def test_a_single_line_is_a_trajectory(write_text) -> None:
    assert len(read_trajectory(write_text(text(rows=TABLE[:1]))).times) == 1


@pytest.mark.slow
@pytest.mark.parametrize("separator", [" ", ",", ";"])
@pytest.mark.parametrize(
    ("row", "column", "word", "field", "reason"),
    [
        (1, 2, "left", "y", "'left' is not a number"),
        (0, 7, "one", "qw", "'one' is not a number"),
        (2, 0, "12:30", "t", "'12:30' is not a number"),
        (1, 1, "1_5", "x", "'1_5' is not a number"),
        (1, 4, "-inf", "qx", "-inf is not a finite number"),
        (2, 1, "1e999", "x", "inf is not a finite number"),
        (2, 0, "0.01", "time", "time 0.01 s is not after 0.01 s"),
        (1, 0, "-3", "time", "time -3.0 s is not after 0.0 s"),
        (0, 4, "0.0", "quaternion", "is zero"),
        (2, 6, "0.9", "quaternion", "norm 0.9"),
    ],
)
def test_a_fault_has_line_and_column(
    write_text, separator: str, row: int, column: int, word: str, field: str, reason: str
) -> None:
    content = "# a remark\n\n" + text(separator, table_with(row, column, word))

    fault = refused(write_text(content))

    assert fault.line == row + 3
    assert fault.field == field
    assert reason in str(fault)


def test_a_deep_fault_is_found(write_text) -> None:
    lines = [f"{k} 0 0 0 0 0 0 1" for k in range(20_000)]
    lines[15_000] = "15000 0 zero 0 0 0 0 1"

    fault = refused(write_text("\r\n".join(lines)))

    assert fault.line == 15_001
    assert fault.field == "y"


def test_a_fault_names_the_headers_column(write_text) -> None:
    content = "qw;qx;qy;qz;time;pos_x;pos_y;pos_z\n1;0;0;0;0;0;0;0\n1;0;0;0;1;0;up;0\n"

    fault = refused(write_text(content))

    assert fault.line == 3
    assert fault.field == "pos_y"


def test_a_line_of_units_is_read(write_text) -> None:
    content = "t,x,y,z,rx,ry,rz\nms,mm,mm,mm,deg,deg,deg\n0,1,2,3,0,0,180\n20,1,2,3,0,0,180\n"

    read = read_trajectory(write_text(content))

    assert read.times == pytest.approx([0.0, 0.02])
    assert read.poses[0] == pytest.approx([1e-3, 2e-3, 3e-3, 0.0, 0.0, 1.0, 0.0], abs=1e-12)


def test_a_decimal_comma_is_refused_with_the_remedy(write_text) -> None:
    fault = refused(write_text(text(";").replace(".", ",")))

    assert fault.line == 1
    assert fault.field == "t"
    assert "'0,0' is not a number; write it with a decimal point" in str(fault)


@pytest.mark.parametrize("word", ["", "nan", "NaN"])
@pytest.mark.parametrize("column", [0, 3, 7])
def test_a_part_of_a_sample_is_lost_with_it(write_text, word: str, column: int) -> None:
    path = write_text(text(",", table_with(1, column, word)))

    with pytest.warns(UserWarning, match=r"1 lost sample left out \(line 2\)"):
        motion = read_trajectory(path)

    assert len(motion.times) == len(TABLE) - 1


def test_a_file_of_lost_samples_is_refused(write_text) -> None:
    lines = [f"{k} nan 0 0 0 0 0 1" for k in range(20)]

    assert "all of its 20 samples are lost (nan or empty): x never contains a number" in str(
        refused(write_text("\n".join(lines)))
    )


def test_a_lost_first_stamp_keeps_the_others_exact(write_text) -> None:
    stamps = ["", *(f"176409718200000000{k}" for k in range(1, 9))]
    lines = [f"{stamp},0,0,0,0,0,0,1" for stamp in stamps]

    with pytest.warns(UserWarning, match=r"1 lost sample left out \(line 2\)"):
        motion = read_trajectory(write_text("\n".join(["t[ns],x,y,z,qx,qy,qz,qw", *lines])))

    assert motion.epoch_ns == 1764097182000000001


def test_a_last_line_that_is_cut_off_is_left_out(write_text) -> None:
    path = write_text(text(",").rstrip("\n").rpartition(",")[0])

    with pytest.warns(UserWarning, match="the file is truncated in line 3, which is ignored"):
        motion = read_trajectory(path)

    assert len(motion.times) == len(TABLE) - 1


@pytest.mark.parametrize(("separator", "extra"), [(" ", " 7"), (",", ",7"), (",", ","), (";", ";")])
def test_a_column_too_many_is_refused(write_text, separator: str, extra: str) -> None:
    lines = text(separator).splitlines()
    lines[2] += extra

    fault = refused(write_text("\n".join(lines)))

    assert fault.line == 3
    assert "9 columns, but 8 are expected, as in line 1" in str(fault)


def test_a_column_too_few_is_refused(write_text) -> None:
    fault = refused(write_text("# log\n" + text(rows=[*TABLE, TABLE[0][:7]])))

    assert fault.line == 5
    assert "7 columns, but 8 are expected, as in line 2" in str(fault)
