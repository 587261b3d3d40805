"""An arm is completed by what its controller reports."""

from __future__ import annotations

import pytest

from simbridge.backends.controller_arm import complete_arm
from simbridge.planning.options import Options
from simbridge.robot.calibration_file import read_calibration
from simbridge.ur.errors import ModelMismatch
from tests import ros_calibration
from tests.backends.controller_facts import FACTS, UR10E, URSIM, facts_with_arm
from tests.controllers import CALIBRATION


@pytest.fixture
def ros_arm(tmp_path):
    """The arm with a calibration file of ROS."""
    table, _ = read_calibration(CALIBRATION)
    rows = ros_calibration.printed(table.theta, table.a, table.d, table.alpha)
    file = ros_calibration.write(tmp_path / "my_robot_calibration.yaml", rows)
    return Options(kinematics=file).equip(UR10E)


def complete(arm, facts):
    return complete_arm(arm, facts, chooses_kinematics=True, warns_of_nominal=True)


def test_a_file_of_ros_may_be_that_of_the_real_arm(ros_arm):
    table, checksum = read_calibration(CALIBRATION)
    # As it was printed: ROS's URDF is micrometres off.
    facts = facts_with_arm(kinematics=table, checksum=checksum)

    with pytest.warns(UserWarning, match="joint limits"):
        arm = complete(ros_arm, facts)

    assert arm.checksum == ros_arm.checksum


def test_a_file_of_ros_of_another_arm_is_refused(ros_arm):
    message = r"calibration .* up to .* mm and .* mrad at the flange"
    with pytest.raises(ModelMismatch, match=message) as refused:
        complete(ros_arm, FACTS)

    assert refused.value.what == "calibration"
    assert "calib_1234" in refused.value.expected


def test_ursim_stands_for_any_arm(ros_arm):
    with pytest.warns(UserWarning, match="joint limits"):
        complete(ros_arm, URSIM)
