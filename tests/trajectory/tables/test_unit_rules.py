"""Units that nothing states follow from the numbers, or are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.trajectory import read_trajectory
from tests.trajectory.tables.motions import (
    EPOCH,
    NS,
    POSES,
    STEP,
    assert_same,
    refusal,
    refused,
    rows,
    same_directory,
)

CLOCKS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}


LENGTHS = {"m": 1.0, "cm": 100.0, "mm": 1000.0}


@same_directory
@given(
    order=st.permutations(range(8)),
    clock=st.sampled_from(sorted(CLOCKS)),
    length=st.sampled_from(sorted(LENGTHS)),
    began=st.integers(0, 10**18),
)
def test_stated_units_read_back(write_table, order, clock, length, began) -> None:
    poses = POSES * np.array([LENGTHS[length]] * 3 + [1.0] * 4)
    whole = clock == "ns"
    times = [int(t) + began if whole else round(int(t) / CLOCKS[clock], 6) for t in NS]
    names = [f"t [{clock}]", *(f"{axis}_{length}" for axis in "xyz"), "qx", "qy", "qz", "qw"]
    table = rows(times, poses)

    read = read_trajectory(
        write_table([[row[k] for k in order] for row in table], ",".join(names[k] for k in order))
    )

    assert_same(read)


@pytest.mark.slow
@pytest.mark.parametrize(
    "began", [0, EPOCH // STEP * STEP], ids=["since its beginning", "since 1970"]
)
@pytest.mark.parametrize("unit", CLOCKS)
@pytest.mark.parametrize("length", ["m", "mm"])
def test_units_that_nothing_states_follow_from_the_numbers(
    write_table, unit: str, length: str, began: int
) -> None:
    times = [
        repr((int(t) + began) / CLOCKS[unit])
        if unit == "s"
        else (int(t) + began) // int(CLOCKS[unit])
        for t in NS
    ]
    poses = POSES * np.array([LENGTHS[length]] * 3 + [1.0] * 4)

    read = read_trajectory(write_table(rows(times, poses), "t,x,y,z,qx,qy,qz,qw"))

    np.testing.assert_allclose(read.elapsed, NS / 1e9, rtol=0.0, atol=5e-7)
    np.testing.assert_allclose(read.poses, POSES, rtol=0.0, atol=1e-12)
    assert f"time in {unit}" in read.read_as
    assert f"{'metres' if length == 'm' else 'millimetres'}, " in read.read_as


def test_way_points_seconds_apart_stay_in_seconds(write_table) -> None:
    read = read_trajectory(
        write_table(
            [[5 * k, 0.1 * k, 0.0, 0.3, 0, 0, 0, 1] for k in range(8)], "t,x,y,z,qx,qy,qz,qw"
        )
    )

    np.testing.assert_array_equal(read.times, 5.0 * np.arange(8))


def test_seconds_or_milliseconds_need_a_flag(write_table) -> None:
    # 5 mm/s with a sample every 2 s, or 5 m/s with one every 2 ms.
    path = write_table(
        [[2 * k, 0.01 * k, 0.0, 0.3, 0, 0, 0, 1] for k in range(20)], "t,x,y,z,qx,qy,qz,qw"
    )

    message = refusal(path)

    assert "the sample period may be 2.00 s (s) or 0.00200 s (ms)" in message
    assert "--columns t[s] or --columns t[ms]" in message
    assert read_trajectory(path, columns="t[ms]").duration == pytest.approx(0.038)


def test_metres_or_millimetres_need_a_flag(write_table) -> None:
    path = write_table(
        [[0.1 * k, 12.0, 0.0, 0.3, 0, 0, 0, 1] for k in range(3)], "t,x,y,z,qx,qy,qz,qw"
    )

    assert ("may be 12.0 m or 12.0 mm. State which: --columns x[m] or --columns x[mm]") in refusal(
        path
    )
    assert read_trajectory(path, columns="x[mm]").start[0] == pytest.approx(0.012)
    assert read_trajectory(path, columns="x[m]").start[0] == 12.0


def test_tum_has_its_units_with_a_note(write_table) -> None:
    path = write_table(rows(NS), separator=" ", name="motion.tum")

    with pytest.warns(
        UserWarning,
        match=r"in seconds and metres, as \.tum says.*20\.0 ms in ns; .*add --columns t\[ns\]",
    ):
        assert read_trajectory(path).times[1] == STEP

    assert_same(read_trajectory(path, columns="t[ns]"))


def test_tum_in_millimetres_is_noted(write_table) -> None:
    path = write_table(
        rows(NS / 1e9, POSES * np.array([1e3] * 3 + [1.0] * 4)), separator=" ", name="motion.tum"
    )

    with pytest.warns(
        UserWarning,
        match=r"a position is 856 m from the origin\. If it is 856 mm, add --columns x\[mm\]",
    ):
        assert read_trajectory(path).start[0] == 700.0

    assert_same(read_trajectory(path, columns="x[mm]"))


@pytest.mark.parametrize("uptime_s", [1_800, 10 * 86_400])
def test_relative_nanoseconds_are_no_date(write_table, uptime_s: int) -> None:
    read = read_trajectory(write_table(rows(NS + uptime_s * 10**9), "t,x,y,z,qx,qy,qz,qw"))

    assert_same(read)
    assert "time in ns" in read.read_as


def test_other_units_are_converted(write_text) -> None:
    read = read_trajectory(
        write_text(
            "stamp_ns,x [mm],y (cm),z_m,rx [deg],ry (deg),rz_rad\n0,125,10,0.5,0,90,0\n"
            "10000000,1,1,1,0,0,0\n"
        )
    )

    np.testing.assert_array_equal(read.times, [0.0, 0.01])
    np.testing.assert_allclose(
        read.start, [0.125, 0.1, 0.5, 0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5)], atol=1e-15
    )


def test_an_unknown_unit_is_refused(write_text) -> None:
    fault = refused(write_text("t [min],x,y,z,qx,qy,qz,qw\n0,0,0,0,0,0,0,1\n"))

    assert fault.line == 1
    assert "'t [min]' has the unit min; state one of s, ms, us, ns" in str(fault)


@pytest.mark.parametrize("name", ["t [ns]", "timestamp_ns", "t[us]"])
def test_an_impossible_stated_unit_is_refused(write_table, name: str) -> None:
    path = write_table(rows(NS / 1e9), f"{name},x,y,z,qx,qy,qz,qw")

    assert "State which unit is right: --columns t[s]" in refusal(path)
    assert_same(read_trajectory(path, columns="t[s]"))
