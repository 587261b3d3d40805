"""Trajectory files read back bit for bit, and every error names line and column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from evo.tools import file_interface
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from simbridge.errors import InvalidTrajectory, UnknownName
from simbridge.robot import pose
from simbridge.trajectory import read_trajectory, square, write_csv, write_tum
from tests.properties import few_examples
from tests.trajectory.tables.motions import (
    COUNT,
    NS,
    assert_same,
    refusal,
    refused,
    rows,
    text,
)


@st.composite
def samples(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    count = draw(st.integers(1, 8))
    times = np.unique(draw(arrays(float, count, elements=st.floats(-2e9, 2e9))))
    assume((np.diff(times - times[0]) > 0.0).all())
    positions = draw(
        arrays(float, (len(times), 3), elements=st.floats(allow_nan=False, allow_infinity=False))
    )
    quaternions = draw(arrays(float, (len(times), 4), elements=st.floats(-1.0, 1.0)))
    assume((np.linalg.norm(quaternions, axis=1) > 1e-3).all())
    return times, np.column_stack([positions, pose.normalize(quaternions)])


@pytest.mark.slow
@few_examples(20)
@given(samples())
def test_what_is_written_reads_back(tmp_path_factory, motion) -> None:
    times, poses = motion
    file = tmp_path_factory.getbasetemp() / "motion.tum"
    write_tum(file, times, poses)

    again = read_trajectory(file)

    assert again.times.tobytes() == times.tobytes()
    assert again.poses.tobytes() == poses.tobytes()


def test_evo_reads_the_same_doubles(tmp_path: Path) -> None:
    trajectory = square(speed=0.3)
    write_tum(tmp_path / "square.tum", trajectory.times, trajectory.poses)

    seen = file_interface.read_tum_trajectory_file(tmp_path / "square.tum")

    np.testing.assert_array_equal(seen.timestamps, trajectory.times)
    np.testing.assert_array_equal(seen.positions_xyz, trajectory.poses[:, :3])
    np.testing.assert_array_equal(
        np.roll(seen.orientations_quat_wxyz, -1, axis=1), trajectory.poses[:, 3:]
    )


def test_a_file_written_by_evo_is_read(tmp_path: Path) -> None:
    trajectory = square()
    write_tum(tmp_path / "square.tum", trajectory.times, trajectory.poses)
    seen = file_interface.read_tum_trajectory_file(tmp_path / "square.tum")

    file_interface.write_tum_trajectory_file(tmp_path / "evo.tum", seen)

    np.testing.assert_allclose(
        read_trajectory(tmp_path / "evo.tum").poses, trajectory.poses, atol=1e-9
    )


def test_one_line_is_written_a_sample(tmp_path: Path) -> None:
    write_tum(tmp_path / "two.tum", [0.0, 0.1], [[0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0]] * 2)

    assert (tmp_path / "two.tum").read_text() == (
        "0.0 0.1 0.2 0.3 0.0 0.0 0.0 1.0\n0.1 0.1 0.2 0.3 0.0 0.0 0.0 1.0\n"
    )


def test_unequal_lengths_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidTrajectory, match=r"\(3,\) and \(2, 7\)"):
        write_tum(tmp_path / "x.tum", np.arange(3.0), np.zeros((2, 7)))

    assert not (tmp_path / "x.tum").exists()


def test_pendant_poses_come_out_in_base_link(write_text) -> None:
    # Half a turn about z: x and y change their signs, and the tool rotates with them.
    path = write_text("0 -0.5 0.1 0.3 0 0 0\n")

    np.testing.assert_array_equal(
        read_trajectory(path, frame="base").poses, [[0.5, -0.1, 0.3, 0.0, 0.0, 1.0, 0.0]]
    )
    np.testing.assert_array_equal(
        read_trajectory(path, frame="base_link").poses, [[-0.5, 0.1, 0.3, 0.0, 0.0, 0.0, 1.0]]
    )


def test_an_unknown_frame_is_refused(write_text) -> None:
    with pytest.raises(UnknownName, match="base_link or base"):
        read_trajectory(write_text(text()), frame="world")  # type: ignore[arg-type]


def test_a_trajectory_knows_its_file(write_text) -> None:
    path = write_text(text())

    assert read_trajectory(path).source == str(path)
    assert read_trajectory(str(path)).source == str(path)


def test_binary_files_are_refused(write_text) -> None:
    assert "binary" in str(refused(write_text(b"\x89MCAP0\r\n\0\0\0\1")))
    assert "UTF-16" in str(refused(write_text(text().encode("utf-16"))))


def test_another_encoding_is_refused_by_line(write_text) -> None:
    fault = refused(write_text(text().encode() + "# \u00b5m".encode("latin-1")))

    assert fault.line == 4
    assert "UTF-8" in str(fault)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "file not found" in str(refused(tmp_path / "nowhere.csv"))


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert "is a directory" in str(refused(tmp_path))


def test_an_unreadable_file_is_refused(write_text, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_text(text())

    def forbidden(_: Path, mode: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)

    assert "cannot be read: Permission denied" in str(refused(path))


def test_a_csv_file_reads_back_with_units(tmp_path: Path) -> None:
    trajectory = square()

    write_csv(tmp_path / "square.csv", trajectory.times, trajectory.poses)

    assert (tmp_path / "square.csv").read_text().startswith("t [s],x [m],y [m],z [m],qx,qy,qz,qw\n")

    again = read_trajectory(tmp_path / "square.csv")

    np.testing.assert_array_equal(again.times, trajectory.times)
    np.testing.assert_array_equal(again.poses, trajectory.poses)


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_a_long_files_poses_keep_their_instants(tmp_path, count) -> None:
    file = tmp_path / "long.tum"
    file.write_text("".join(f"{k}e-3 0.{k % 1000:03} 0.1 0.3 0 1 0 0\n" for k in range(count)))

    long = read_trajectory(file)

    np.testing.assert_array_equal(long.times, np.arange(count) / 1e3)
    np.testing.assert_array_equal(long.poses[:, 0], (np.arange(count) % 1000) / 1e3)
    assert (long.poses[:, 1:] == [0.1, 0.3, 0.0, 1.0, 0.0, 0.0]).all()


def test_a_table_may_begin_with_any_column(write_table) -> None:
    for name in ("motion.json", "motion.mat", "motion.toml"):
        assert_same(read_trajectory(write_table(rows(NS / 1e9), "t,x,y,z,qx,qy,qz,qw", name=name)))

    path = write_table(rows(np.arange(COUNT)), "t,x,y,z,qx,qy,qz,qw", name="motion.json")

    assert "omit --rate" in refusal(path, rate=50.0)

    table = [[1, *row] for row in rows(NS / 1e9)]

    for first in ("joints", "devices", "trajectories"):
        assert_same(read_trajectory(write_table(table, f"{first},t,x,y,z,qx,qy,qz,qw")))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.npy", "save CSV, Parquet or npz"),
        ("a.xlsx", "save CSV"),
        ("arm.urdf", "--robot FILE"),
        ("c.toml", "--cell"),
        ("a.csv.gz", "decompress"),
    ],
)
def test_other_kinds_are_refused_with_advice(tmp_path, name: str, words: str) -> None:
    (tmp_path / name).write_bytes(b"content")

    assert words in refusal(tmp_path / name)


def test_a_fault_under_another_suffix_is_named(write_table, tmp_path) -> None:
    table = rows(NS / 1e9)
    table[3][2] = "oops"

    path = write_table(table, "t,x,y,z,qx,qy,qz,qw").rename(tmp_path / "a.json")

    assert "line 5, y: 'oops' is not a number" in refusal(path)
