"""Units that comments state are evidence, unless they contradict each other or the numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from simbridge.trajectory import read_trajectory
from tests.trajectory.tables.joint_tables import JOINTS, read
from tests.trajectory.tables.joint_tables import TIMES as JOINT_TIMES
from tests.trajectory.tables.motions import NS, POSES, TURNS, assert_same, refusal

TIMES = NS / 1e9
POSE = "t,x,y,z,qx,qy,qz,qw"
VECTOR = "t,x,y,z,rx,ry,rz"
MILLI = np.column_stack([TIMES, 1e2 * POSES[:, :3], POSES[:, 3:]]).tolist()
DEGREES = np.column_stack([TIMES, POSES[:, :3], np.degrees(TURNS)]).tolist()


@pytest.mark.parametrize(
    "comment",
    [
        *("# units: cm", "# Units: cm, s", "# positions in cm", "# length_unit = centimetres"),
        *("# TCP pose (cm, rad)", "# all values are in cm", "# error in mm, path in cm"),
        *("# cm units", "# units: position cm, time s", "# noise 0.1 (mm); x, y, z in cm"),
    ],
)
def test_a_commented_length_is_used(write_table, comment: str) -> None:
    assert_same(read_trajectory(write_table(MILLI, comment, POSE)))


@pytest.mark.parametrize(
    "comment", ["# units: m, deg", "# rotation vectors in degrees", "# [m] [deg]"]
)
def test_a_commented_angle_is_used(write_table, comment: str) -> None:
    assert_same(read_trajectory(write_table(DEGREES, comment, VECTOR)), 1e-9)


def test_a_commented_time_is_used(write_table) -> None:
    table = np.column_stack([NS / 1e3, POSES]).tolist()

    assert_same(read_trajectory(write_table(table, "# time in us", POSE)))


def test_commented_degrees_are_those_of_joints(write_table) -> None:
    table = np.column_stack([JOINT_TIMES, np.degrees(JOINTS)]).tolist()
    path = write_table(table, "# units: deg", "t,j1,j2,j3,j4,j5,j6")

    assert read(path).joints == pytest.approx(JOINTS, abs=1e-14)


@pytest.mark.parametrize(
    "comment",
    [
        *("# tool speed in mm/s", "# 8 mm spindle", "# a unit test", "# ATE (mm) 3.2"),
        *("# error in mm, path in m", "# residuals of the calibration in mm", "# delay 3 (ms)"),
        *("# cable 1200 [mm]", "# position noise in mm", "# units: m (errors in mm)"),
    ],
)
def test_other_words_are_no_units(write_table, comment: str) -> None:
    table = np.column_stack([TIMES, POSES]).tolist()

    assert_same(read_trajectory(write_table(table, comment, POSE)))


def test_a_name_goes_before_a_comment(write_table) -> None:
    table = np.column_stack([TIMES, 1e3 * POSES[:, :3], POSES[:, 3:]]).tolist()
    header = "t,x [mm],y [mm],z [mm],qx,qy,qz,qw"

    assert_same(read_trajectory(write_table(table, "# units: m", header)))


@pytest.mark.parametrize(
    "comments", [["# units: mm"], ["# units: mm", "# the positions are given in m"]], ids=len
)
def test_a_doubtful_length_gets_flags(write_table, comments) -> None:
    """Either less than 5 mm in all, or two units."""
    path = write_table(np.column_stack([TIMES, POSES]).tolist(), *comments, POSE)

    flags = re.findall(r"--columns (\S+)", refusal(path))

    assert flags == ["x[mm]", "x[m]"]
    assert_same(read_trajectory(path, columns="x[m]"))


def test_doubtful_degrees_get_flags(write_table) -> None:
    table = np.column_stack([TIMES, POSES[:, :3], TURNS]).tolist()
    path = write_table(table, "# units: m, deg", VECTOR)

    flags = re.findall(r"--columns (\S+)", refusal(path))

    assert flags == ["rx[deg]", "rx[rad]"]
    assert_same(read_trajectory(path, columns="rx[rad]"), 1e-9)
