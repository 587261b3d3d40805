"""The largest differences between the tool poses that two calibrations give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from simbridge import load_robot
from simbridge.robot.calibration import (
    calibrate,
    calibrated_chain,
    chain_from_base,
    nominal_dh,
)
from simbridge.robot.calibration_difference import largest_difference, ros_difference
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.kinematics_source import with_kinematics
from simbridge.robot.ros_calibration_file import read_ros_calibration
from tests import ros_calibration as ros

pytestmark = pytest.mark.shares_setup

TABLE, _ = read_calibration(Path(__file__).parents[1] / "data" / "ur10e_calibration.toml")


@pytest.fixture(scope="module")
def ur10e():
    return load_robot("ur10e")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ros")


@pytest.mark.parametrize("table", [TABLE, ros.deltas("ur10e", 3)], ids=["real", "random"])
def test_the_printed_file_is_the_controllers_table(folder, ur10e, table) -> None:
    rows = ros.rows_of(table)

    file = read_ros_calibration(ros.write(folder / "arm.yaml", rows))

    assert max(ros_difference(file, table)) < 1e-9

    apart = largest_difference(
        chain_from_base(calibrate(ur10e, file)), calibrated_chain(table), pin.SE3.Identity()
    )

    assert 1e-7 < apart[0] < 2e-3
    # Another arm of the model, and this file with four digits only.
    assert ros_difference(file, ros.deltas("ur10e", 9))[0] > 5e-4

    rounded = read_ros_calibration(ros.write(folder / "rounded.yaml", np.round(rows, 6)))

    assert 1e-9 < max(ros_difference(rounded, table)) < 2e-5


def test_the_largest_difference_is_that_of_pinocchios_poses(folder, ur10e) -> None:
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (4000, 6))
    rows = ros.rows_of(TABLE)
    nominal_rows = ros.rows_of(nominal_dh(ur10e))
    pairs = zip(ros.urdf_tools(rows, q), ros.urdf_tools(nominal_rows, q), strict=True)
    apart = [pin.SE3(a).actInv(pin.SE3(b)) for a, b in pairs]
    expected = [
        max(np.linalg.norm(step.translation) for step in apart),
        max(angle(step) for step in apart),
    ]
    arm = with_kinematics(ur10e, ros.write(folder / "arm.yaml", rows))

    difference = largest_difference(
        chain_from_base(arm), chain_from_base(ur10e), pin.SE3.Identity()
    )

    assert difference == pytest.approx(expected, rel=1e-9)


def angle(step):
    return np.linalg.norm(pin.log3(step.rotation))
