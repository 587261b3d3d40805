"""Arrays of npz and Parquet files are read by their names."""

from __future__ import annotations

import re
import sys

import numpy as np
import pinocchio as pin
import pyarrow
import pytest
from pyarrow import parquet

from simbridge.errors import MissingPackage
from simbridge.trajectory import read_trajectory
from tests.trajectory.tables.motions import (
    COUNT,
    EPOCH,
    NS,
    POSES,
    STEP,
    TURNS,
    assert_same,
    refusal,
)


def test_npz_with_named_quaternions_is_read(tmp_path) -> None:
    path = tmp_path / "motion.npz"
    np.savez(path, timestamps=EPOCH + NS, positions=POSES[:, :3], quat_xyzw=POSES[:, 3:])

    read = read_trajectory(path)

    assert_same(read)
    assert read.epoch_ns == EPOCH


def test_npz_with_rotation_vectors_is_read(tmp_path) -> None:
    for place in ("p", "xyz"):
        np.savez(tmp_path / "a.npz", **{"t": NS / 1e9, place: POSES[:, :3], "rotvec": TURNS})

        assert_same(read_trajectory(tmp_path / "a.npz"), 1e-9)


@pytest.mark.parametrize("timed", [False, True])
def test_whole_poses_need_an_order(tmp_path, timed: bool) -> None:
    arrays = (
        {"log": np.column_stack([NS / 1e9, POSES])}
        if timed
        else {"times": NS / 1e9, "poses": POSES}
    )
    np.savez(tmp_path / "a.npz", **arrays)

    message = refusal(tmp_path / "a.npz")

    assert f"{[*arrays][-1]} has {8 if timed else 7} numbers per row" in message

    xyzw, wxyz = re.findall(r"--columns (\S+?)(?=;|$)", message.removesuffix("."))

    assert_same(read_trajectory(tmp_path / "a.npz", columns=xyzw))

    reordered = read_trajectory(tmp_path / "a.npz", columns=wxyz)

    np.testing.assert_array_equal(reordered.poses[:, 3:], POSES[:, [4, 5, 6, 3]])


def test_joints_are_not_whole_poses(tmp_path) -> None:
    names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    np.savez(tmp_path / "a.npz", q=np.zeros((COUNT, 7)), **dict(zip(names, POSES.T, strict=True)))

    message = refusal(tmp_path / "a.npz")

    assert "numbers per row" not in message
    assert "A table without a time column needs --rate HZ" in message
    assert_same(read_trajectory(tmp_path / "a.npz", rate=50.0))

    for joints in ("q", "q_actual", "joints", "joint_positions"):
        np.savez(tmp_path / "b.npz", t=NS / 1e9, **{joints: np.zeros((COUNT, 7))})

        assert "numbers per row" not in refusal(tmp_path / "b.npz")


def test_whole_poses_without_times_need_the_rate_too(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", q=np.zeros((COUNT, 7)), poses=POSES)

    message = refusal(tmp_path / "a.npz")

    xyzw = re.findall(r"--columns (\S+) --rate HZ", message)[0]

    assert_same(read_trajectory(tmp_path / "a.npz", columns=xyzw, rate=50.0))


def test_npz_of_matrices_is_read(tmp_path) -> None:
    matrices = np.tile(np.diag([1.0, -1.0, -1.0, 1.0]), (5, 1, 1))
    matrices[:, :3, 3] = POSES[:5, :3]
    np.savez(tmp_path / "a.npz", t=NS[:5] / 1e9, poses=matrices)

    read = read_trajectory(tmp_path / "a.npz")

    np.testing.assert_allclose(
        read.poses, np.column_stack([POSES[:5, :3], np.tile([1.0, 0, 0, 0], (5, 1))]), atol=1e-12
    )


def test_npz_of_rotation_matrices_beside_positions_is_read(tmp_path) -> None:
    turns = np.array([pin.Quaternion(row[3:]).toRotationMatrix() for row in POSES])
    np.savez(tmp_path / "a.npz", t=NS / 1e9, R=turns, p=POSES[:, :3])

    read = read_trajectory(tmp_path / "a.npz")

    np.testing.assert_allclose(
        np.abs((read.poses[:, 3:] * POSES[:, 3:]).sum(axis=1)), 1.0, atol=1e-12
    )
    np.testing.assert_array_equal(read.poses[:, :3], POSES[:, :3])

    # Beside a quaternion, (T, 3, 3) is something else, such as a covariance.
    np.savez(
        tmp_path / "b.npz",
        t=NS / 1e9,
        position=POSES[:, :3],
        quat_xyzw=POSES[:, 3:],
        covariance=0.0 * turns,
    )

    assert_same(read_trajectory(tmp_path / "b.npz"))


@pytest.mark.parametrize("name", ["velocity", "euler", "force", "omega"])
def test_beside_matrices_a_position_needs_its_name(tmp_path, name: str) -> None:
    turns = np.array([pin.Quaternion(row[3:]).toRotationMatrix() for row in POSES])
    vectors = {name: 0.5 * POSES[:, :3]}

    np.savez(tmp_path / "a.npz", t=NS / 1e9, R=turns, **vectors)

    message = refusal(tmp_path / "a.npz")

    assert "the table with the matrices R does not name x, y, z" in message

    np.savez(tmp_path / "b.npz", t=NS / 1e9, R=turns, position=POSES[:, :3], **vectors)

    np.testing.assert_array_equal(read_trajectory(tmp_path / "b.npz").poses[:, :3], POSES[:, :3])

    # Columns of a pose are read as without the matrices, whatever these are.
    columns = dict(zip(("x", "y", "z", "qx", "qy", "qz", "qw"), POSES.T, strict=True))
    for matrices in ({"R": turns}, {"covariance": np.tile(1e-6 * np.eye(3), (COUNT, 1, 1))}):
        np.savez(tmp_path / "c.npz", t=NS / 1e9, **columns, **matrices, **vectors)

        assert_same(read_trajectory(tmp_path / "c.npz"))


def test_a_covariance_beside_positions_is_no_rotation(tmp_path) -> None:
    np.savez(
        tmp_path / "a.npz",
        t=NS / 1e9,
        position=POSES[:, :3],
        covariance=np.tile(np.eye(3), (COUNT, 1, 1)),
    )

    assert "does not name qx, qy, qz, qw" in refusal(tmp_path / "a.npz")


def test_an_arrays_unit_holds_for_its_columns(tmp_path) -> None:
    turns = np.array([pin.Quaternion(row[3:]).toRotationMatrix() for row in POSES])
    for name in ("p_mm", "position_mm"):
        np.savez(tmp_path / "a.npz", t=NS / 1e9, R=turns, **{name: POSES[:, :3]})

        np.testing.assert_allclose(
            read_trajectory(tmp_path / "a.npz").poses[:, :3], POSES[:, :3] / 1e3, rtol=1e-12
        )


def test_a_structured_array_is_read_by_fields(tmp_path) -> None:
    columns = dict(
        zip(("t", "x", "y", "z", "qx", "qy", "qz", "qw"), [NS / 1e9, *POSES.T], strict=True)
    )
    table = np.zeros(COUNT, dtype=[(name, float) for name in columns])
    for name, values in columns.items():
        table[name] = values

    np.savez(tmp_path / "a.npz", log=table)

    assert_same(read_trajectory(tmp_path / "a.npz"))


def structured(shift: float):
    columns = dict(
        zip(("t", "x", "y", "z", "qx", "qy", "qz", "qw"), [NS / 1e9, *POSES.T], strict=True)
    )
    table = np.zeros(COUNT, dtype=[(name, float) for name in columns])
    for name, values in columns.items():
        table[name] = values
    table["x"] += shift
    return table


def test_one_structured_array_can_be_chosen(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", target=structured(0.0), actual=structured(0.2))

    message = refusal(tmp_path / "a.npz")

    assert "does not name t, x, y, z" in message
    assert "target.t, target.x" in message
    assert "actual.t, actual.x" in message

    roles = ("t", "x", "y", "z", "qx", "qy", "qz", "qw")

    assert_same(
        read_trajectory(
            tmp_path / "a.npz", columns=",".join(f"{role}=target.{role}" for role in roles)
        )
    )


def test_a_structured_array_replaces_no_columns(tmp_path) -> None:
    columns = dict(
        zip(("t", "x", "y", "z", "qx", "qy", "qz", "qw"), [NS / 1e9, *POSES.T], strict=True)
    )

    np.savez(tmp_path / "a.npz", target=structured(0.2), **columns)

    assert_same(read_trajectory(tmp_path / "a.npz"))

    np.savez(
        tmp_path / "b.npz",
        t=NS / 1e9,
        position=POSES[:, :3],
        quat_xyzw=POSES[:, 3:],
        imu=structured(0.2),
    )

    assert_same(read_trajectory(tmp_path / "b.npz"))

    # Beside other arrays as long, it is one of several.
    for others in (
        {"poses": POSES},
        {"R": np.tile(np.eye(3), (COUNT, 1, 1))},
        {"force": POSES[:, :3]},
    ):
        np.savez(tmp_path / "d.npz", actual=structured(0.0), **others)

        assert "does not name t, x, y, z" in refusal(
            tmp_path / "d.npz"
        ) or "poses has 7" in refusal(tmp_path / "d.npz")

    np.savez(tmp_path / "d.npz", actual=structured(0.0), camera=np.eye(3), home=np.zeros(6))

    assert_same(read_trajectory(tmp_path / "d.npz"))

    # Of two times one may be another clock's.
    np.savez(tmp_path / "c.npz", t=NS / 5e8, actual=structured(0.0))

    assert "does not name x, y, z, qx, qy, qz, qw" in refusal(tmp_path / "c.npz")


def test_npz_with_objects_is_refused(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", t=np.array([{}], dtype=object))

    assert "cannot be read as npz" in refusal(tmp_path / "a.npz")

    (tmp_path / "b.npz").write_bytes(b"PK\3\4 and no more")

    assert "cannot be read as npz" in refusal(tmp_path / "b.npz")


def test_parquet_of_pandas_has_wall_time(tmp_path) -> None:
    names = ("px", "py", "pz", "qx", "qy", "qz", "qw")
    columns = {
        "time": (EPOCH + NS).astype("datetime64[ns]"),
        **dict(zip(names, POSES.T, strict=True)),
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")

    read = read_trajectory(tmp_path / "a.parquet")

    assert_same(read)
    assert read.epoch_ns == EPOCH
    assert "wall clock" in read.read_as


def test_an_infinite_number_is_refused_by_row(tmp_path) -> None:
    poses = POSES.copy()
    poses[3, 1] = np.inf

    np.savez(tmp_path / "a.npz", t=NS / 1e9, position=poses[:, :3], quat_xyzw=poses[:, 3:])

    assert "row 4: inf is not a finite number" in refusal(tmp_path / "a.npz")


def test_a_part_of_a_row_is_lost_with_it(tmp_path) -> None:
    times = NS / 1e9
    poses = POSES.copy()
    times[2] = np.nan
    poses[3, 1] = np.nan
    poses[5, 6] = np.nan
    np.savez(tmp_path / "a.npz", t=times, position=poses[:, :3], quat_xyzw=poses[:, 3:])

    with pytest.warns(UserWarning, match=r"3 lost samples left out \(rows 3 to 6\)"):
        read = read_trajectory(tmp_path / "a.npz")

    np.testing.assert_array_equal(read.poses[:, :3], np.delete(POSES, [2, 3, 5], axis=0)[:, :3])


def test_parquet_needs_its_extra(tmp_path, monkeypatch) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")

    assert "cannot be read as Parquet" in refusal(tmp_path / "a.parquet")

    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(MissingPackage, match=r'pip install "simbridge\[parquet\]"'):
        read_trajectory(tmp_path / "a.parquet")


def test_parquet_of_durations_is_read(tmp_path) -> None:
    names = ("px", "py", "pz", "qx", "qy", "qz", "qw")
    columns = {"time": NS.astype("timedelta64[ns]"), **dict(zip(names, POSES.T, strict=True))}

    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")

    assert_same(read_trajectory(tmp_path / "a.parquet"))


def parquet_of(path, **times):
    columns = dict(zip(("px", "py", "pz", "qx", "qy", "qz", "qw"), POSES.T, strict=True))
    parquet.write_table(pyarrow.table({**columns, **times}), path)
    return path


@pytest.mark.parametrize("name", ["time", "time_ms", "time [ns]", "elapsed"])
@pytest.mark.parametrize("step", [STEP, 10**9])
def test_durations_need_no_unit(tmp_path, name: str, step: int) -> None:
    durations = (step * np.arange(COUNT)).astype("timedelta64[ns]")

    read = read_trajectory(parquet_of(tmp_path / "a.parquet", **{name: durations}))

    np.testing.assert_array_equal(read.times, step * np.arange(COUNT) / 1e9)
    assert read.read_as.endswith("durations")


@pytest.mark.slow
@pytest.mark.parametrize("plain_name", ["t", "timestamp", "stamp", "header.stamp"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("elapsed", "timedelta64[ns]"),
        ("__index_level_0__", "timedelta64[ns]"),
        ("__index_level_0__", "datetime64[ns]"),
    ],
)
def test_a_duration_is_time_without_plain_names(tmp_path, plain_name, name, kind) -> None:
    later = {name: (NS * 2).astype(kind)}

    both = parquet_of(tmp_path / "a.parquet", **{plain_name: NS / 1e9}, **later)

    alone = parquet_of(tmp_path / "b.parquet", **later)

    assert_same(read_trajectory(both))
    assert_same(read_trajectory(alone, rate=50.0))
    np.testing.assert_array_equal(read_trajectory(alone).times, NS * 2 / 1e9)


def test_a_missing_duration_is_a_lost_sample(tmp_path) -> None:
    durations = NS.astype("timedelta64[ns]")

    durations[5] = np.timedelta64("NaT")

    with pytest.warns(UserWarning, match=r"1 lost sample left out \(row 6\)"):
        read = read_trajectory(parquet_of(tmp_path / "a.parquet", time=durations))

    assert len(read.times) == len(NS) - 1


def test_a_nameless_pandas_index_is_the_time(tmp_path) -> None:
    columns = dict(zip(("px", "py", "pz", "qx", "qy", "qz", "qw"), POSES.T, strict=True))
    columns["__index_level_0__"] = (EPOCH + NS).astype("datetime64[ns]")
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")

    read = read_trajectory(tmp_path / "a.parquet")

    assert_same(read)
    assert read.epoch_ns == EPOCH


def test_parquet_of_lists_is_read(tmp_path) -> None:
    columns = {
        "t": NS / 1e9,
        "position": list(POSES[:, :3]),
        "quat_xyzw": list(POSES[:, 3:]),
        "name": ["a"] * COUNT,
    }

    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")

    assert_same(read_trajectory(tmp_path / "a.parquet"))


def test_an_index_beside_a_time_is_ambiguous(tmp_path) -> None:
    names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    times = pyarrow.array(EPOCH + NS, pyarrow.timestamp("ns"))
    columns = {
        **dict(zip(names, POSES.T, strict=True)),
        "sec": NS // 10**9,
        "__index_level_0__": times,
    }

    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")

    assert "more than one column may be t: sec, index time" in refusal(tmp_path / "a.parquet")

    del columns["__index_level_0__"]
    columns["elapsed"] = pyarrow.array(NS, pyarrow.duration("ns"))

    parquet.write_table(pyarrow.table(columns), tmp_path / "b.parquet")

    assert_same(read_trajectory(tmp_path / "b.parquet"))
