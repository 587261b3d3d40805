"""A motion that tests write as other programs do, and what they compare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from simbridge.errors import InputFileError
from simbridge.robot import pose
from simbridge.trajectory import Trajectory, read_trajectory
from simbridge.trajectory.files import read_recording
from simbridge.trajectory.read_options import ReadOptions

COUNT = 40
STEP = 20_000_000
EPOCH = 1_764_097_182_123_456_789
NS = np.arange(COUNT) * STEP
TURNS = np.column_stack(
    [np.linspace(0.1, 1.0, COUNT), np.linspace(0.5, -0.3, COUNT), np.full(COUNT, 2.0)]
)
POSES = np.column_stack(
    [
        0.7 + 0.004 * np.arange(COUNT),
        0.1 - 0.001 * np.arange(COUNT),
        np.full(COUNT, 0.3),
        pose.quaternions(TURNS),
    ]
)
# What `rostopic echo -p` of a PoseStamped writes.
ECHO = (
    "%time,field.header.seq,field.header.stamp,field.header.frame_id,field.pose.position.x,"
    "field.pose.position.y,field.pose.position.z,field.pose.orientation.x,field.pose.orientation.y,"
    "field.pose.orientation.z,field.pose.orientation.w"
)


def rows(times, poses=POSES, order=range(7)):
    return [[time, *row] for time, row in zip(times, poses[:, list(order)].tolist(), strict=True)]


def assert_same(read: Trajectory, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(read.elapsed, NS / 1e9, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(read.poses, POSES, rtol=0.0, atol=tolerance)


def refusal(path, **options) -> str:
    with pytest.raises(InputFileError) as caught:
        read_recording(path, ReadOptions(**options))
    return str(caught.value)


same_directory = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15
)


TABLE = [
    ["0.0", "0.5", "-0.1", "0.3", "1.0", "0.0", "0.0", "0.0"],
    ["0.01", "0.51", "-0.1", "3e-1", "0.0", "1.0", "0.0", "0.0"],
    ["0.02", "0.52", "-0.1", "0.3", "0.0", "0.0", "-1.0", "0.0"],
]


EXPECTED = np.array(TABLE, dtype=float)


def text(separator: str = " ", rows: list[list[str]] = TABLE) -> str:
    return "".join(separator.join(row) + "\n" for row in rows)


def assert_is_the_table(trajectory: Trajectory) -> None:
    np.testing.assert_array_equal(np.column_stack([trajectory.times, trajectory.poses]), EXPECTED)


def refused(path: Path, **kwargs) -> InputFileError:
    with pytest.raises(InputFileError) as caught:
        read_trajectory(path, **kwargs)
    assert caught.value.path == path
    assert str(path) in str(caught.value)
    if caught.value.line is not None:
        assert f"line {caught.value.line}" in str(caught.value)
    return caught.value


def table_with(row: int, column: int, word: str) -> list[list[str]]:
    rows = [list(line) for line in TABLE]
    rows[row][column] = word
    return rows
