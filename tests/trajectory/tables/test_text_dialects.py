"""Text without a header is of one of a few dialects, or refused with the nearest."""

from __future__ import annotations

import re

import numpy as np
import pytest

from simbridge.trajectory import read_trajectory
from simbridge.trajectory.files import read_recording
from tests.trajectory.tables.motions import COUNT, EPOCH, NS, POSES, assert_same, refusal, rows

ROS2 = {
    "PoseStamped": (["tool"], 0),
    "TransformStamped": (["base", "tool"], 0),
    "PoseWithCovarianceStamped": (["map"], 36),
    "Odometry": (["odom", ""], 36 + 6 + 36),
}


@pytest.mark.parametrize("message", ROS2)
def test_ros2_topic_echo_is_known_by_length(write_table, message: str) -> None:
    frames, more = ROS2[message]
    lines = [
        [*divmod(EPOCH + int(t), 10**9), *frames, *row, *[0.0] * more]
        for t, row in zip(NS, POSES, strict=True)
    ]

    recording = read_recording(write_table(lines))

    assert_same(recording.trajectory)
    assert recording.trajectory.epoch_ns == EPOCH
    assert recording.frame == frames[0]
    assert f"ros2 topic echo of {message}" in recording.trajectory.read_as


@pytest.mark.parametrize("count", [9, 14, 30])
def test_another_number_of_fields_is_refused(write_table, count: int) -> None:
    table = [[*row, *[0.1] * (count - 8)] for row in rows(NS / 1e9)]
    path = write_table(table)

    message = refusal(path)

    assert f"{count} columns" in message
    assert "PoseStamped (10)" in message

    w_last, w_first = re.findall(r"--columns (\S+?)(?=;|$)", message)

    assert_same(read_trajectory(path, columns=w_last))
    assert w_first == "t=1,x=2,y=3,z=4,qw=5,qx=6,qy=7,qz=8"


def test_kitti_needs_the_rate(write_table) -> None:
    table = [[1, 0, 0, 0.7, 0, -1, 0, 0.1, 0, 0, -1, 0.3 + 0.01 * k] for k in range(5)]

    path = write_table(table, separator=" ", name="00.txt")

    assert (
        "files with 12 numbers per line, such as KITTI's, have no times: add --rate HZ"
    ) in refusal(path)

    read = read_trajectory(path, rate=50.0)

    np.testing.assert_allclose(read.times, np.arange(5) / 50.0)
    np.testing.assert_allclose(read.poses[2], [0.7, 0.1, 0.32, 1.0, 0.0, 0.0, 0.0], atol=1e-12)


def test_seven_bare_numbers_are_ambiguous(write_table) -> None:
    path = write_table(POSES.tolist())

    message = refusal(path)

    assert "may be t x y z rx ry rz, or x y z qx qy qz qw without times" in message
    assert_same(read_trajectory(path, rate=50.0))
    assert len(read_trajectory(path, columns="t=1,x=2,y=3,z=4,rx=5,ry=6,rz=7").times) == COUNT


W_FIRST = (0, 1, 2, 6, 3, 4, 5)
EUROC_FLAG = "t=1,x=2,y=3,z=4,qw=5,qx=6,qy=7,qz=8"
TUM_FLAG = "t=1,x=2,y=3,z=4,qx=5,qy=6,qz=7,qw=8"


def flags_in(message: str) -> list[str]:
    return re.findall(r"--columns ([\w=,]+)", message)


@pytest.mark.parametrize("form", ["{}", "{}.000000", "{:.18e}"])
def test_nanoseconds_between_commas_need_a_flag(write_table, form: str) -> None:
    stamps = [form.format(stamp) for stamp in (EPOCH + NS).tolist()]
    path = write_table(rows(stamps, order=W_FIRST))

    assert flags_in(refusal(path)) == [EUROC_FLAG, TUM_FLAG]
    assert_same_poses(read_trajectory(path, columns=EUROC_FLAG))


def assert_same_poses(read) -> None:
    np.testing.assert_allclose(read.poses, POSES, rtol=0.0, atol=1e-12)


def test_nanoseconds_between_blanks_need_a_flag_too(write_table) -> None:
    stamps = [f"{stamp}.000000" for stamp in (EPOCH // 1000 * 1000 + NS).tolist()]
    path = write_table(rows(stamps), separator=" ")

    assert flags_in(refusal(path)) == [EUROC_FLAG, TUM_FLAG]

    read = read_trajectory(path, columns=TUM_FLAG)

    assert_same_poses(read)
    assert read.times[1] - read.times[0] == pytest.approx(0.02, abs=1e-6)


def test_eurocs_rows_without_header_get_its_flag(write_table) -> None:
    table = [[*row, *[0.0] * 9] for row in rows(EPOCH + NS, order=W_FIRST)]
    path = write_table(table)

    assert flags_in(refusal(path)) == [EUROC_FLAG]
    assert_same(read_trajectory(path, columns=EUROC_FLAG))


def test_a_separator_may_end_every_line(write_table) -> None:
    table = [[*row, ""] for row in rows(NS / 1e9)]

    assert_same(read_trajectory(write_table(table)))
    assert_same(read_trajectory(write_table(table, "t,x,y,z,qx,qy,qz,qw")))
    assert_same(read_trajectory(write_table(rows(NS / 1e9), "t,x,y,z,qx,qy,qz,qw,")))


def test_an_empty_last_number_shifts_no_role(write_table) -> None:
    table = rows(NS / 1e9)
    table[0][-1] = ""

    assert "8 columns, but 7 are expected" in refusal(write_table(table))


def test_kitti_beyond_fifty_metres_is_noted(write_table) -> None:
    table = [[1, 0, 0, 120.0 + k, 0, 1, 0, 0.0, 0, 0, 1, 1.5] for k in range(5)]

    with pytest.warns(UserWarning, match=r"as KITTI says: a position is 124 m"):
        read = read_trajectory(write_table(table, separator=" "), rate=10.0)

    assert read.start[0] == 120.0
