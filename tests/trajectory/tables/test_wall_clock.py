"""Times of day are read to the nanosecond, in UTC unless an offset follows."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.trajectory import read_trajectory
from tests.trajectory.tables.motions import EPOCH, NS, POSES, assert_same, refusal, rows


@pytest.mark.parametrize("form", ["{}Z", "{}+00:00", '"{}"', "{}"])
def test_wall_clock_time_is_read_to_the_nanosecond(write_table, form: str) -> None:
    times = [form.format(np.datetime64(EPOCH + int(t), "ns")) for t in NS]

    read = read_trajectory(write_table(rows(times), "time,x,y,z,qx,qy,qz,qw"))

    assert_same(read)
    assert read.epoch_ns == EPOCH
    assert "wall clock" in read.read_as


def test_utc_offsets_and_blanks_are_read(write_table) -> None:
    times = [f"2025-11-25 19:00:0{k}.5+05:30" for k in range(3)]

    read = read_trajectory(write_table(rows(times, POSES[:3]), "time,x,y,z,qx,qy,qz,qw"))

    assert read.epoch_ns == int(np.datetime64("2025-11-25T13:30:00.5", "ns").astype(int))
    np.testing.assert_array_equal(read.times, [0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    "form",
    [
        "2025/11/25 19:00:0{}.5",
        "2025-11-25 19:00:0{}.5 UTC",
        "2025-11-25 20:00:0{}.5+01",
        "2025-11-25 19:00:0{},5",
    ],
)
def test_other_year_first_dates_are_read(write_table, form: str) -> None:
    times = [form.format(k) for k in range(3)]

    read = read_trajectory(
        write_table(rows(times, POSES[:3]), "time;x;y;z;qx;qy;qz;qw", separator=";")
    )

    assert read.epoch_ns == int(np.datetime64("2025-11-25T19:00:00.5", "ns").astype(int))
    np.testing.assert_array_equal(read.times, [0.0, 1.0, 2.0])


@pytest.mark.parametrize("offset", ["-99", "+1401", "-15:00"])
def test_an_offset_that_no_clock_has_is_refused(write_table, offset: str) -> None:
    times = [f"2025-11-25T19:00:0{k}{offset}" for k in range(3)]

    assert "is not a time" in refusal(write_table(rows(times, POSES[:3]), "time,x,y,z,qx,qy,qz,qw"))

    times = [f"2025-11-25T19:00:0{k}+14" for k in range(3)]

    assert (
        read_trajectory(write_table(rows(times, POSES[:3]), "time,x,y,z,qx,qy,qz,qw")).duration
        == 2.0
    )


@pytest.mark.parametrize(
    "word", ["11/25/2025 19:00:00", "25.11.2025 19:00:00", "19:00:00.5", "2025-11-25 19:00:00 CEST"]
)
def test_another_time_of_day_is_refused(write_table, recwarn, word: str) -> None:
    message = refusal(write_table(rows([word] * 3, POSES[:3]), "time,x,y,z,qx,qy,qz,qw"))

    assert f"line 2, time: '{word}' is not a" in message
    assert "form 2026-11-25 18:59:42.5" in message
    assert not recwarn.list
