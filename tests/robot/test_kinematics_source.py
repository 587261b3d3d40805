"""The kinematics that --kinematics names."""

from __future__ import annotations

from pathlib import Path

import pytest

from simbridge import load_robot
from simbridge.errors import InputFileError, InvalidParameter
from simbridge.robot.calibration import nominal_dh
from simbridge.robot.calibration_file import write_calibration
from simbridge.robot.kinematics_source import with_kinematics

pytestmark = pytest.mark.shares_setup

FILE = Path(__file__).parents[1] / "data" / "ur10e_calibration.toml"


@pytest.fixture(scope="module")
def ur10e():
    return load_robot("ur10e")


def test_the_table_of_ursim_gives_the_nominal_arm(tmp_path, ur10e) -> None:
    write_calibration(tmp_path / "ursim.toml", nominal_dh(ur10e), (0xFFFFFFFF,) * 6)

    with pytest.warns(UserWarning, match=r"ursim\.toml equals the nominal kinematics of the UR10e"):
        assert with_kinematics(ur10e, tmp_path / "ursim.toml") is ur10e


def test_nominal_kinematics_are_the_robots_own(ur10e) -> None:
    assert with_kinematics(ur10e, "nominal") is ur10e

    with pytest.raises(InvalidParameter, match="a calibrated one"):
        with_kinematics(with_kinematics(ur10e, FILE), "nominal")


def test_another_models_calibration_is_refused_with_its_file() -> None:
    with pytest.raises(InputFileError, match="shoulder_lift_joint") as caught:
        with_kinematics(load_robot("ur10"), FILE)

    assert caught.value.path == FILE


def test_a_missing_file_is_named(ur10e, tmp_path) -> None:
    with pytest.raises(InputFileError, match="file not found"):
        with_kinematics(ur10e, tmp_path / "arm.toml")

    with pytest.raises(InputFileError, match=r"settings\.toml: file not found"):
        with_kinematics(ur10e, tmp_path)
