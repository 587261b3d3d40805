"""The motion in a table: its units, and what is left out of it."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.trajectory import read_trajectory
from tests.trajectory.tables.motions import NS, POSES, TURNS, assert_same, refusal, rows


def test_a_partial_unit_is_refused(write_table) -> None:
    message = refusal(write_table(rows(NS / 1e9), "t,x_mm,y,z,qx,qy,qz,qw"))

    assert "State the units of all of them: --columns x[mm]" in message

    table = [[t, *p, *turn] for t, p, turn in zip(NS / 1e9, POSES[:, :3], TURNS, strict=True)]

    assert "--columns rx[deg]" in refusal(write_table(table, "t,x,y,z,rx_deg,ry,rz"))


def test_a_repeated_row_is_left_out(write_table) -> None:
    table = rows(NS / 1e9)

    with pytest.warns(UserWarning, match="1 repeated row left out"):
        assert_same(
            read_trajectory(write_table([*table[:9], table[8], *table[9:]], "t,x,y,z,qx,qy,qz,qw"))
        )


def test_every_backward_row_is_counted(write_table) -> None:
    times = (NS / 1e9).tolist()
    times[7] = times[7] - 0.5
    times[20] = times[20] - 0.1

    message = refusal(write_table(rows(times), "t,x,y,z,qx,qy,qz,qw"))

    assert "line 9, time: time -0.36 s is not after 0.12 s of the previous sample" in message
    assert "2 rows in all; sort the file by time" in message


def test_left_out_rows_keep_their_time(write_table) -> None:
    """At a rate, what follows a lost sample is not earlier."""
    table = POSES.tolist()
    table[9] = ["nan"] * 7

    with pytest.warns(UserWarning, match=r"1 lost sample left out \(line 11\)"):
        read = read_trajectory(write_table(table, "x,y,z,qx,qy,qz,qw"), rate=50.0)

    np.testing.assert_allclose(read.times, np.delete(NS, 9) / 1e9, rtol=0.0, atol=1e-12)


def test_a_row_behind_lost_ones_keeps_its_number(tmp_path) -> None:
    times = NS / 1e9
    poses = POSES.copy()
    poses[3] = np.nan
    times[20] = times[19]
    np.savez(tmp_path / "a.npz", t=times, position=poses[:, :3], quat_xyzw=poses[:, 3:])

    with pytest.warns(UserWarning, match=r"1 lost sample left out \(row 4\)"):
        message = refusal(tmp_path / "a.npz")

    assert "(row 21)" in message
