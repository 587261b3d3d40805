"""The table of the arm that a calibration file of ROS was measured on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simbridge import load_robot
from simbridge.errors import InvalidParameter
from simbridge.robot.calibration import (
    nominal_dh,
)
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.printed_table import printed_table
from simbridge.robot.ros_calibration_file import read_ros_calibration
from tests import ros_calibration as ros
from tests.robot.test_calibration import dh_product

pytestmark = pytest.mark.shares_setup

TABLE, _ = read_calibration(Path(__file__).parents[1] / "data" / "ur10e_calibration.toml")


def configurations(count, seed=0):
    return np.random.default_rng(seed).uniform(-np.pi, np.pi, (count, 6))


@pytest.fixture(scope="module")
def ur10e():
    return load_robot("ur10e")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ros")


@pytest.mark.parametrize(
    "table",
    [TABLE, *(ros.deltas("ur10e", seed) for seed in range(5)), nominal_dh(load_robot("ur5e"))],
)
def test_the_table_is_that_of_the_printed_arm(folder, table) -> None:
    printed = printed_table(
        read_ros_calibration(ros.write(folder / "arm.yaml", ros.rows_of(table)))
    )

    q = configurations(200)

    assert np.abs(dh_product(printed, q) - dh_product(table, q)).max() < 1e-10


def test_another_first_axis_has_no_table(folder) -> None:
    for field in (0, 4):
        rows = ros.rows_of(TABLE)
        rows[0, field] += 1e-6

        with pytest.raises(InvalidParameter, match="first joint's axis"):
            printed_table(read_ros_calibration(ros.write(folder / "arm.yaml", rows)))
