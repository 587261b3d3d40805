"""UR's calibration.conf: differences that are added to the nominal table of its model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simbridge import load_robot
from simbridge.errors import InputFileError
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.controller_calibration_file import read_controller_calibration
from simbridge.robot.kinematics import tool_path
from simbridge.robot.kinematics_source import with_kinematics

pytestmark = pytest.mark.shares_setup

# The table of an individual arm, as its controller reports it.
TABLE = Path(__file__).parents[1] / "data" / "ur10e_calibration.toml"
# The nominal table of the UR10e, as UR publishes it.
NOMINAL = {
    "theta": [0.0] * 6,
    "a": [0.0, -0.6127, -0.57155, 0.0, 0.0, 0.0],
    "d": [0.1807, 0.0, 0.0, 0.17415, 0.11985, 0.11655],
    "alpha": [np.pi / 2, 0.0, 0.0, np.pi / 2, -np.pi / 2, 0.0],
}


def differences():
    """Return the lines of a calibration.conf of the arm, by their names."""
    table, _ = read_calibration(TABLE)
    lines = {}
    for column, nominal in NOMINAL.items():
        values = np.subtract(getattr(table, column), nominal)
        lines[f"delta_{column}"] = f"[ {', '.join(map(repr, values.tolist()))}]"
    lines["joint_checksum"] = "[ 0xb4200001, 0xB4400002, 0xb5500003, 0xb4100004, 5, 0x6]"
    lines["calibration_status"] = "2 # 0 == notInitialized / 1 == notLinearised / 2 == Linearised"
    return lines


def written(folder, name="calibration.conf", **changes):
    """Write a calibration.conf with changed lines, and return its path; None leaves one out."""
    lines = {**differences(), **changes}
    path = folder / name
    text = "".join(f"{key} = {value}\n" for key, value in lines.items() if value is not None)
    path.write_text(f"# kinematics\n[mounting]\n{text}")
    return path


@pytest.fixture(scope="module")
def ur10e():
    return load_robot("ur10e")


def test_differences_give_the_controllers_arm(tmp_path, ur10e) -> None:
    postures = np.random.default_rng(1).uniform(-3.0, 3.0, (50, 6))

    arm = with_kinematics(ur10e, written(tmp_path))

    expected = tool_path(with_kinematics(ur10e, TABLE), postures)
    assert np.allclose(tool_path(arm, postures), expected, rtol=0.0, atol=1e-10)
    assert not np.allclose(tool_path(ur10e, postures), expected, rtol=0.0, atol=1e-4)


@pytest.mark.parametrize("name", ["calibration.conf", "lab_ur10e.txt", "CALIBRATION.CONF"])
def test_name_or_content_tells_the_file(tmp_path, ur10e, name) -> None:
    assert with_kinematics(ur10e, written(tmp_path, name)).calibration is not None


def test_hexadecimal_checksums_are_read(tmp_path) -> None:
    calibration = read_controller_calibration(written(tmp_path))

    assert calibration.checksum == (0xB4200001, 0xB4400002, 0xB5500003, 0xB4100004, 5, 6)


def test_a_list_may_span_lines(tmp_path) -> None:
    values = differences()["delta_a"].replace(", ", ",  # m\n    ")

    calibration = read_controller_calibration(written(tmp_path, delta_a=values))

    assert calibration == read_controller_calibration(written(tmp_path))


@pytest.mark.parametrize(
    ("changes", "field", "line", "reason"),
    [
        ({"delta_a": None}, "delta_a", None, "delta_a is missing in UR.s file of differences"),
        ({"delta_d": "[ 1, 2, 3]"}, "delta_d", 5, "not a list of 6 finite numbers"),
        ({"delta_d": "[ 1, 2, 3, 4, 5, nan]"}, "delta_d", 5, "not a list of 6 finite numbers"),
        ({"delta_d": "[ 1, 2, 3, 4, 5, 6"}, "delta_d", 5, "not a list of 6 finite numbers"),
        ({"joint_checksum": "[ 0x1, 0x2]"}, "joint_checksum", 7, "6 32-bit numbers"),
        ({"calibration_status": "0 # none"}, "calibration_status", 8, "0 .not initialized."),
        ({"calibration_status": "1"}, "calibration_status", 8, "1 .not linearised."),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, changes, field, line, reason) -> None:
    path = written(tmp_path, **changes)

    with pytest.raises(InputFileError, match=reason) as caught:
        read_controller_calibration(path)

    assert (caught.value.field, caught.value.line) == (field, line)


def test_an_entry_that_is_there_twice_is_refused(tmp_path) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text() + "delta_a = [0, 0, 0, 0, 0, 0]\n")

    with pytest.raises(InputFileError, match="delta_a occurs twice"):
        read_controller_calibration(path)


def test_another_models_differences_name_the_model(tmp_path) -> None:
    models = "a ur10 or a ur10e or a ur12e"

    with pytest.raises(InputFileError, match=f"states differences.*It matches {models}: "):
        with_kinematics(load_robot("ur3e"), written(tmp_path))


def test_an_arm_without_a_table_is_refused(tmp_path, ur10e) -> None:
    (tmp_path / "arm.urdf").write_text(ur10e.urdf)
    path = written(tmp_path)

    with pytest.raises(InputFileError, match="has no such table of six rows"):
        with_kinematics(load_robot("planar3r"), path)

    # The same arm as a URDF has the table.
    with pytest.warns(UserWarning, match="no home"):
        arm = with_kinematics(load_robot(tmp_path / "arm.urdf", tip="tool0"), path)
    assert arm.calibration is not None
