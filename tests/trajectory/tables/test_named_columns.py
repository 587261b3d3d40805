"""A table is read by the names of its columns, or refused with the flag that chooses them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from simbridge.trajectory import read_trajectory
from simbridge.trajectory.files import read_recording
from tests.trajectory.tables.motions import ECHO, EPOCH, NS, POSES, assert_same, refusal, rows


def test_the_columns_of_pandas_are_known(write_table) -> None:
    read = read_trajectory(write_table(rows(NS / 1e9), "timestamp,px,py,pz,ox,oy,oz,ow"))

    assert_same(read)
    assert read.read_as == "40 poses, 50 Hz, header names px.., metres, xyzw, time in s"


def test_all_ambiguous_columns_are_named(write_table) -> None:
    wrench = [[*row, 0, 0, 0] for row in rows(NS / 1e9)]

    path = write_table(wrench, "t,x,y,z,qx,qy,qz,qw,tx,ty,tz")

    assert (
        "may be x: x, tx; y: y, ty; z: z, tz. Choose one: "
        "x: --columns x=x,y=y,z=z; tx: --columns x=tx,y=ty,z=tz"
    ) in refusal(path)
    assert_same(read_trajectory(path, columns="x=x,y=y,z=z"))


def test_rostopic_echo_has_stamps_and_frame(write_table) -> None:
    lines = [
        [EPOCH + t + 777, k, EPOCH + t, "map", *row]
        for k, (t, row) in enumerate(zip(NS, POSES, strict=True))
    ]

    recording = read_recording(write_table(lines, ECHO))

    assert_same(recording.trajectory)
    assert recording.trajectory.epoch_ns == EPOCH
    assert recording.frame == "map"


@pytest.mark.parametrize("header", ["t,x,y,z,roll,pitch,yaw", "time,px,py,pz", ""])
def test_euler_angles_are_refused_with_advice(write_table, header: str) -> None:
    count = header.count(",") + 1 if header else 4

    message = refusal(write_table(np.ones((3, count)).tolist(), *filter(None, [header])))

    assert "Convert roll, pitch and yaw first" in message
    assert "If there are only positions, add a constant quaternion" in message


def test_a_numbered_quaternion_needs_a_flag(
    write_table,
) -> None:
    path = write_table(
        rows(NS / 1e9, order=(0, 1, 2, 6, 3, 4, 5)), "t,x,y,z,quat_0,quat_1,quat_2,quat_3"
    )
    message = refusal(path)

    first, second = re.findall(r"--columns (\S+?)(?:;|$)", message)

    assert first == "qx=quat_0,qy=quat_1,qz=quat_2,qw=quat_3"
    assert_same(read_trajectory(path, columns=second))
    np.testing.assert_allclose(
        read_trajectory(path, columns=first).poses[:, 3:], np.roll(POSES[:, 3:], 1, axis=1)
    )


def test_a_nameless_time_is_chosen_by_number(write_table) -> None:
    times = [str(np.datetime64(EPOCH + int(t), "ns")) for t in NS]

    path = write_table(rows(times), ",px,py,pz,qx,qy,qz,qw")

    assert "--columns t=1" in refusal(path)
    assert_same(read_trajectory(path, columns="t=1"))


def test_a_rate_replaces_only_the_time(write_table) -> None:
    path = write_table(POSES.tolist(), "px,py,pz,qx,qy,qz,qw")

    assert "does not name t" in refusal(path)
    assert "--rate HZ" in refusal(path)
    assert_same(read_trajectory(path, rate=50.0))
    assert "it has timestamps (t); omit --rate" in refusal(
        write_table(rows(NS / 1e9), name="timed.csv"), rate=50.0
    )


@pytest.mark.parametrize("name", ["", "ar_timestamp", "stamp of the camera"])
def test_the_only_possible_time_is_advised(write_table, name: str) -> None:
    path = write_table(rows(NS / 1e9), f"{name},x,y,z,qx,qy,qz,qw")

    (flag,) = re.findall(r"--columns ([\w=,]+)", refusal(path))

    assert_same(read_trajectory(path, columns=flag))


def test_columns_of_one_name_are_chosen_by_number(write_table) -> None:
    table = [[*row, 1, 2, 3] for row in rows(NS / 1e9)]
    path = write_table(table, "t,x,y,z,qx,qy,qz,qw,x,y,z")

    first, _ = re.findall(r"--columns ([\w=,]+)", refusal(path))

    assert_same(read_trajectory(path, columns=first))


def test_an_unknown_unit_gets_ready_flags(write_table) -> None:
    path = write_table(rows(NS / 1e9), "timestamp[i],x,y,z,qx,qy,qz,qw")

    assert "--columns t[s] or" in refusal(path)
    assert_same(read_trajectory(path, columns="t[s]"))
