"""Checks of an arm's kinematics: which pass, and how the others are reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.doctor.calibration_checks import (
    check_calibration,
    check_calibration_file,
    check_ros_calibration_file,
    check_table_of_file,
)
from simbridge.robot.calibration import with_dh
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.parts import RosCalibration
from tests import ros_calibration
from tests.doctor.surveys import CALIBRATION, READ, UR10, UR10E, assert_verdict, with_arm


def test_nominal_kinematics_do_not_deviate():
    finding = check_calibration(READ, UR10E)

    assert_verdict(finding, "pass", "URSim", "0 mm")

    assert finding.table == ()


def test_calibration_is_reported_joint_by_joint():
    table, checksum = read_calibration(CALIBRATION)
    finding = check_calibration(with_arm(kinematics=table, checksum=checksum), UR10E)

    assert_verdict(finding, "pass", "calibrated")

    assert [row[0] for row in finding.table[1:]] == [*UR10E.joint_names, "tool0"]

    # Computed from the table itself, with offsets of hundreds of metres, by pinocchio's forward
    # kinematics.
    apart = flange(UR10E).actInv(flange(with_dh(UR10E, table)))
    off = float(np.linalg.norm(apart.translation))

    assert 1e-3 < off < 2e-2
    assert f"{off * 1e3:.3g} mm" in finding.seen
    assert f"{np.degrees(np.linalg.norm(pin.log3(apart.rotation))):.3g} deg" in finding.seen


def flange(robot):
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, UR10E.home)
    return data.oMf[robot.model.getFrameId("tool0")]


def test_the_kinematics_of_another_model_fail():
    assert_verdict(check_calibration(READ, UR10), "fail", "UR10", "--robot")


def test_a_calibration_file_must_be_the_controllers():
    mine = with_arm(checksum=(1, 2, 3, 4, 5, 6))

    assert_verdict(
        check_calibration_file(mine, CALIBRATION, (1, 2, 3, 4, 5, 6)),
        "pass",
        CALIBRATION.name,
    )
    assert_verdict(
        check_calibration_file(mine, CALIBRATION, (1, 2, 3, 4, 5, 7)),
        "fail",
        "checksum",
    )


def test_a_ros_calibration_must_match_the_controller():
    table, checksum = read_calibration(CALIBRATION)
    file = RosCalibration(
        tuple(map(tuple, ros_calibration.printed(table.theta, table.a, table.d, table.alpha)))
    )
    path = Path("my_robot_calibration.yaml")

    mine = with_arm(kinematics=table, checksum=checksum)

    assert_verdict(
        check_ros_calibration_file(mine, path, file),
        "pass",
        path.name,
        "within 0 mm and 0 mrad",
    )
    assert_verdict(
        check_ros_calibration_file(READ, path, file),
        "fail",
        "mm and",
        "mrad at the flange",
        "ur_calibration",
    )


def test_differences_must_give_the_controllers_table():
    table, checksum = read_calibration(CALIBRATION)
    path = Path("calibration.conf")

    mine = check_table_of_file(with_arm(kinematics=table, checksum=checksum), path, table)
    other = check_table_of_file(READ, path, table)

    assert_verdict(mine, "pass", path.name, "within 0 mm and 0 mrad")
    assert_verdict(other, "fail", "mrad at the flange", "copy the controller's file")
