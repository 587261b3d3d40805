"""The instants of a table are exact where its stamps are."""

from __future__ import annotations

import re

import numpy as np
import pytest

from simbridge.trajectory import read_trajectory
from tests.trajectory.tables.motions import COUNT, EPOCH, NS, POSES, assert_same, refusal, rows


@pytest.mark.parametrize(
    "header",
    [
        "header.stamp.sec,header.stamp.nanosec,pose.position.x,pose.position.y,pose.position.z,"
        "pose.orientation.x,pose.orientation.y,pose.orientation.z,pose.orientation.w",
        "secs,nsecs,pos_x,pos_y,pos_z,rot_x,rot_y,rot_z,rot_w",
    ],
)
def test_stamps_in_two_columns_are_exact(write_table, header: str) -> None:
    lines = [[*divmod(EPOCH + int(t), 10**9), *row] for t, row in zip(NS, POSES, strict=True)]

    read = read_trajectory(write_table(lines, header))

    assert_same(read)
    assert read.epoch_ns == EPOCH


@pytest.mark.parametrize(
    ("names", "per_second"),
    [("t_s,t_ns", 10**9), ("tv_sec,tv_usec", 10**6), ("sec,msec", 10**3), ("s,ns", 10**9)],
)
def test_seconds_and_a_fraction_are_one_stamp(write_table, names: str, per_second: int) -> None:
    lines = [
        [*divmod(int(t) * per_second // 10**9, per_second), *row]
        for t, row in zip(NS, POSES, strict=True)
    ]

    assert_same(read_trajectory(write_table(lines, f"{names},x,y,z,qx,qy,qz,qw")))


def test_one_time_in_two_units_gets_a_flag_for_each(write_table) -> None:
    lines = [[t / 1e9, t, *row] for t, row in zip(NS.tolist(), POSES, strict=True)]
    path = write_table(lines, "t_s,t_ns,x,y,z,qx,qy,qz,qw")

    flags = re.findall(r"--columns (\S+)", refusal(path))

    assert flags == ["t=t_s", "t=t_ns"]
    for flag in flags:
        assert_same(read_trajectory(path, columns=flag))


def test_date_and_time_are_one_time(write_table) -> None:
    table = [["2025-11-25", *row] for row in rows([f"19:00:0{k}.5" for k in range(3)], POSES[:3])]

    read = read_trajectory(write_table(table, "date,time,x,y,z,qx,qy,qz,qw"))

    assert read.epoch_ns == int(np.datetime64("2025-11-25T19:00:00.5", "ns").astype(int))
    np.testing.assert_array_equal(read.times, [0.0, 1.0, 2.0])


@pytest.mark.parametrize("time", [185900 + np.arange(COUNT), 10 * np.arange(COUNT), EPOCH + NS])
def test_whole_number_dates_need_a_choice(write_table, tmp_path, time) -> None:
    table = [[20251125, *row] for row in rows(time)]

    path = write_table(table, "date,time,x,y,z,qx,qy,qz,qw")

    assert "is not a time; times of day have the form 2026-11-25 18:59:42.5" in refusal(path)
    assert "if time counts seconds: --columns t=time" in refusal(path)

    names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    arrays = {
        "date": np.full(COUNT, 20251125),
        "time": time,
        **dict(zip(names, POSES.T, strict=True)),
    }

    np.savez(tmp_path / "a.npz", **arrays)

    assert f"'20251125 {time[0]}' is not a time" in refusal(tmp_path / "a.npz")


def test_a_later_kind_of_time_is_refused(write_table) -> None:
    for word in ("noon", "1764097182"):
        times = ["2025-11-25T19:00:00", "2025-11-25T19:00:01", word]

        message = refusal(write_table(rows(times, POSES[:3]), "time,x,y,z,qx,qy,qz,qw"))

        assert f"line 4, time: '{word}' is not a time" in message
