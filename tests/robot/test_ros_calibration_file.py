"""ROS's my_robot_calibration.yaml, read and refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simbridge import load_robot
from simbridge.errors import InputFileError
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.kinematics_source import with_kinematics
from simbridge.robot.ros_calibration_file import read_ros_calibration
from tests import ros_calibration as ros

pytestmark = pytest.mark.shares_setup

TABLE, _ = read_calibration(Path(__file__).parents[1] / "data" / "ur10e_calibration.toml")


@pytest.fixture(scope="module")
def ur10e():
    return load_robot("ur10e")


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "words"),
    [
        ("kinematics:", "kinematic:", None, "kinematics", "ur_calibration"),
        ("  forearm:", "  fore_arm:", None, "kinematics.forearm", "x, y, z, roll, pitch, yaw"),
        ("    roll: 1.5", "    rol: 1.5", None, "kinematics.upper_arm.roll", "missing"),
        (
            "    roll: 1.5",
            "    roll: one and 1.5",
            None,
            "kinematics.upper_arm.roll",
            "expected a number, got one and",
        ),
        ("    roll: 1.5", "    roll: .nan #", None, "kinematics.upper_arm.roll", "finite"),
        ("    roll: 1.5", "    roll: [1.5", None, None, "not YAML"),
        ("    roll: 1.5", "\troll: 1.5", 13, None, "not YAML"),
        ("    roll: 1.5", "    x: 1.5", 13, None, 'duplicate key "x"'),
        ("    roll: 1.5", "    roll: !degrees 1.5", 13, None, "not YAML"),
    ],
)
def test_a_faulty_file_is_refused_with_the_field(
    tmp_path, ur10e, old, new, line, field, words
) -> None:
    path = ros.write(tmp_path / "arm.yaml", ros.rows_of(TABLE))
    path.write_text(path.read_text().replace(old, new))

    with pytest.raises(InputFileError) as caught:
        with_kinematics(ur10e, path)

    assert caught.value.path == path
    assert caught.value.field == field
    assert words in caught.value.reason
    assert line is None or caught.value.line == line


@pytest.mark.parametrize("text", ["", "calibration", "- 1", "kinematics: 3", "# nothing"])
def test_yaml_that_is_no_calibration_is_refused(tmp_path, ur10e, text) -> None:
    (tmp_path / "arm.yaml").write_text(text)

    with pytest.raises(
        InputFileError, match="kinematics: this is not a file written by ROS's ur_calibration"
    ):
        with_kinematics(ur10e, tmp_path / "arm.yaml")


def test_numbers_are_read_however_yaml_writes_them(tmp_path) -> None:
    rows = np.zeros((6, 6))
    path = ros.write(tmp_path / "arm.yaml", rows, name="")
    path.write_text(
        path.read_text()
        .replace("x: 0", "x: 1e-05")
        .replace("y: 0", "y: -0")
        .replace("z: 0", "z: +2.5E-1")
    )

    calibration = read_ros_calibration(path)

    assert calibration.frames == ((1e-05, 0.0, 0.25, 0.0, 0.0, 0.0),) * 6
    assert calibration.hash == ""


def test_what_ros_does_not_read_is_ignored(tmp_path) -> None:
    path = ros.write(tmp_path / "arm.yaml", ros.rows_of(TABLE))
    plain = read_ros_calibration(path)
    path.write_text(
        path.read_text().replace("    x:", "    comment: 3 # by hand\n    x:")
        + "\n  note: a\nother: [1]\n"
    )

    assert read_ros_calibration(path) == plain
