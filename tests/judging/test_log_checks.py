"""Logs whose numbers cannot be what they are read as are refused."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import InputFileError, UnusableSamples
from simbridge.judging.read_log import LogOptions, read_log
from simbridge.robot.load import load_robot

TIMES = 0.008 * np.arange(50)
Q = np.sin(TIMES)[:, None] * np.ones(6)


def write_recording(path, times, values, name="actual_q"):
    header = ["timestamp", *(f"{name}_{i}" for i in range(values.shape[1]))]
    table = np.column_stack([times, values])
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="")
    return path


@pytest.mark.parametrize(
    ("factor", "unit"), [(1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")]
)
def test_times_in_other_units_are_refused(tmp_path, factor, unit):
    path = write_recording(tmp_path / "a.csv", factor * TIMES, Q)

    with pytest.raises(InputFileError, match=unit) as refusal:
        read_log(path)
    assert refusal.value.field == "time"


def test_positions_in_degrees_are_refused(tmp_path):
    path = write_recording(tmp_path / "a.csv", TIMES, 100.0 * Q)

    with pytest.raises(InputFileError, match="degrees"):
        read_log(path)


def test_targets_in_degrees_are_named(tmp_path):
    path = tmp_path / "a.csv"
    names = ["actual_q", "target_q"]
    header = ["timestamp", *(f"{name}_{i}" for name in names for i in range(6))]
    table = np.column_stack([TIMES, Q, 100.0 * Q])
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="")

    with pytest.raises(InputFileError, match="degrees") as refusal:
        read_log(path)
    assert refusal.value.field == "target_q"


def test_a_wrist_may_turn_often(tmp_path):
    q = Q.copy()
    q[:, 5] += 12.6

    assert np.allclose(read_log(write_recording(tmp_path / "a.csv", TIMES, q)).q, q)


def test_the_joints_of_another_arm_are_refused(tmp_path):
    path = write_recording(tmp_path / "a.csv", TIMES, Q)

    with pytest.raises(InputFileError, match="3; name the right robot") as refusal:
        read_log(path, LogOptions(robot=load_robot("planar3r")))
    assert refusal.value.field == "joints"


def test_a_log_of_poses_alone_has_no_joints(tmp_path):
    path = write_recording(tmp_path / "a.csv", TIMES, Q, name="actual_TCP_pose")

    log = read_log(path)

    with pytest.raises(UnusableSamples, match="neither actual_q nor target_q"):
        _ = log.q


def test_joints_that_may_be_measured_or_targets_are_refused(tmp_path):
    path = write_recording(tmp_path / "a.csv", TIMES, Q, name="q")

    with pytest.raises(InputFileError, match="--columns time,actual_q") as refusal:
        read_log(path)
    assert refusal.value.field == "q"


def test_a_prefix_for_a_table_is_refused(tmp_path):
    path = write_recording(tmp_path / "a.csv", TIMES, Q)

    with pytest.raises(InputFileError, match="--prefix"):
        read_log(path, LogOptions(prefix="left_"))


def test_text_without_joints_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello world\nno log\n")

    with pytest.raises(InputFileError, match="no joints of a UR controller"):
        read_log(path)


def test_a_directory_of_a_bag_without_metadata_is_refused(tmp_path):
    (tmp_path / "part.db3").touch()

    with pytest.raises(InputFileError, match=r"metadata\.yaml"):
        read_log(tmp_path)
