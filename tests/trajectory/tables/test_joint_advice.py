"""A table that looks like joint positions gets the flag that reads them, in the file's order."""

from __future__ import annotations

import numpy as np
import pytest

import simbridge
from simbridge.errors import InputFileError
from simbridge.trajectory import read_trajectory
from tests.trajectory.tables.advice import follow_advice
from tests.trajectory.tables.joint_tables import JOINTS, TIMES, read, write_table

NUMBERS = range(1, 7)


@pytest.mark.slow
@pytest.mark.parametrize("time", ["t", "camera_stamp", None])
@pytest.mark.parametrize(
    "names",
    [
        [f"A{joint}" for joint in NUMBERS],
        [f"axis_{joint}" for joint in NUMBERS],
        [f"J{joint}_act" for joint in NUMBERS],
        ["base", "shoulder", "elbow", "wrist 1", "wrist 2", "wrist 3"],
        ["S", "L", "U", "R", "B", "T"],
    ],
    ids=lambda names: names[0],
)
def test_likely_joints_get_a_ready_flag(tmp_path, names, time):
    columns = [TIMES, JOINTS] if time else [JOINTS]
    if names[-1] == "T" and time != "t":
        pytest.skip("without a time, T is one")
    time_names = {"t": ["time"], None: []}.get(time, [time])
    path = write_table(tmp_path / "joints.csv", [*time_names, *names], columns)

    (motion,) = follow_advice(path)

    assert np.array_equal(motion.joints, JOINTS)
    assert motion.times == pytest.approx(TIMES)


def test_a_comment_that_names_likely_joints_is_no_remark(tmp_path):
    """Seven numbers a line below it are not a time, a position and a rotation vector."""
    path = tmp_path / "joints.txt"
    np.savetxt(path, np.column_stack([TIMES, JOINTS]), fmt="%.17g", header="t A1 A2 A3 A4 A5 A6")

    (motion,) = follow_advice(path)

    assert np.array_equal(motion.joints, JOINTS)


def test_two_sets_of_likely_joints_each_have_a_flag(tmp_path):
    names = [f"A{joint}_{which}" for which in ("act", "cmd") for joint in NUMBERS]
    path = write_table(tmp_path / "two.csv", ["t", *names], [TIMES, JOINTS, JOINTS + 0.1])

    actual, command = follow_advice(path)

    assert np.array_equal(actual.joints, JOINTS)
    assert np.array_equal(command.joints, JOINTS + 0.1)


def test_other_names_of_a_planar_arm_get_a_flag(tmp_path):
    path = write_table(tmp_path / "two.csv", ["t", "upper", "lower"], [TIMES, JOINTS[:, :2]])

    (motion,) = follow_advice(path, simbridge.load_robot("planar2r"))

    assert np.array_equal(motion.joints, JOINTS[:, :2])


def test_joints_of_a_larger_arm_get_no_flag(tmp_path):
    names = [f"A{joint}" for joint in NUMBERS]
    path = write_table(tmp_path / "six.csv", ["t", *names], [TIMES, JOINTS])

    assert follow_advice(path, simbridge.load_robot("planar2r")) == []

    with pytest.raises(InputFileError, match=r"its 6 joints are A1, .* are joint_1, joint_2"):
        read(path, simbridge.load_robot("planar2r"))


def test_a_table_without_joints_has_none_to_choose(tmp_path):
    names = ["t", "x", "y", "z", "qx", "qy", "qz", "qw"]
    path = write_table(tmp_path / "poses.csv", names, [TIMES, JOINTS, JOINTS[:, :1]])

    with pytest.raises(InputFileError, match=r"none of its columns, t, x, .* omit --from joints"):
        read(path, column="joints")


@pytest.mark.parametrize("pattern", ["q_{}", "A{}", "joint_position_{}"])
def test_where_poses_are_needed_joints_are_named(tmp_path, pattern):
    """As in `simbridge evaluate`, which compares measured poses."""
    names = [pattern.format(joint) for joint in NUMBERS]
    path = write_table(tmp_path / "joints.csv", ["t", *names], [TIMES, JOINTS])

    with pytest.raises(
        InputFileError, match=r"look like joint positions, but tool poses .* --robot"
    ):
        read_trajectory(path)
