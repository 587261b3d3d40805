"""Runs of a calibrated arm: plans, records, exports and repeats use its own kinematics."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from simbridge import load_robot
from simbridge.cli.command_line import main
from simbridge.errors import InputFileError
from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.repeat_command import repeat_command
from simbridge.report.settings_list import important_settings
from simbridge.robot.calibration import calibrate
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.kinematics import tool_path
from simbridge.robot.kinematics_source import with_kinematics
from simbridge.trajectory.files import read_trajectory
from tests.plain_kernels import plain_kernels
from tests.robot.test_calibration import dh_product

pytestmark = pytest.mark.shares_setup

FILE = Path(__file__).parents[1] / "data" / "ur10e_calibration.toml"
# A twentieth of the samples of the controller's cycle: too few for its servo law.
COARSE = ("--servo", "ideal", "--period", "0.04")


@pytest.fixture(scope="module")
def ur10e():
    return load_robot("ur10e")


@pytest.fixture(scope="module")
def ran(tmp_path_factory, run_without_page, line):
    """Runs `line` in PyBullet on a UR10e with more flags.

    Returns the exit status and the directory.
    """

    def call(*flags):
        out = tmp_path_factory.mktemp("runs") / "run"
        return run_without_page(line, "--robot", "ur10e", "--out", out, *flags), out

    return call


@pytest.fixture(scope="module")
def calibrated_run(ran):
    """A run on a calibrated UR10e."""
    with plain_kernels():
        status, out = ran("--kinematics", FILE, *COARSE)
    assert status == 0
    return out


def flange(joints):
    """Poses (K, 7) by the table of the file; the signs of the quaternions are arbitrary."""
    frames = dh_product(read_calibration(FILE)[0], joints).astype(float)
    return np.array([pin.SE3ToXYZQUAT(pin.SE3(frame)) for frame in frames])


def test_an_arms_own_kinematics_evaluate_its_run(calibrated_run, ur10e) -> None:
    run = Evaluation.of(RunDirectory.open(calibrated_run))
    for poses, joints in ((run.attained, run.log.position), (run.setpoint, run.log.setpoint)):
        expected = flange(joints)
        assert np.abs(poses[:, :3] - expected[:, :3]).max() < 1e-11
        assert np.abs(np.abs((poses[:, 3:] * expected[:, 3:]).sum(axis=1)) - 1.0).max() < 1e-12
    # The plan was solved for this arm: by the table it ends on the target; the nominal arm misses
    # it by 1 mm.
    misses = [
        poses[-1, :3] - run.reference[-1, :3]
        for poses in (run.setpoint, tool_path(ur10e, run.log.setpoint))
    ]

    assert np.linalg.norm(misses[0]) < 1e-4 < 5e-4 < np.linalg.norm(misses[1])


def test_exported_poses_follow_the_arms_kinematics(calibrated_run) -> None:
    run = Evaluation.of(RunDirectory.open(calibrated_run))

    assert main(["export", str(calibrated_run), "--to", "tum"]) == 0

    exported = read_trajectory(calibrated_run / "attained.tum")
    assert np.abs(exported.poses[:, :3] - flange(run.log.position)[:, :3]).max() < 1e-11


def test_settings_hold_the_table_exactly(calibrated_run, ur10e) -> None:
    table, _ = read_calibration(FILE)
    arm = with_kinematics(ur10e, calibrated_run)

    assert arm.calibration == table
    assert arm.checksum == calibrate(ur10e, table).checksum
    assert with_kinematics(ur10e, calibrated_run / "settings.toml").checksum == arm.checksum
    shown = dict(important_settings(RunDirectory.open(calibrated_run).settings(), 51))
    assert shown["Kinematics"].startswith("calibrated for this arm")


def test_a_replay_needs_the_runs_kinematics(ran, calibrated_run, capsys) -> None:
    status, again = ran("--plan", calibrated_run, "--kinematics", calibrated_run, *COARSE)

    assert status == 0

    plans = [np.load(run / "plan.npz")["setpoints"] for run in (calibrated_run, again)]
    assert np.array_equal(*plans)

    capsys.readouterr()
    status, _ = ran("--plan", calibrated_run, *COARSE)

    assert status == 2
    assert "--kinematics" in " ".join(capsys.readouterr().err.split())


def test_the_repeating_command_names_the_kinematics(calibrated_run) -> None:
    settings = RunDirectory.open(calibrated_run).settings()
    words = shlex.split(repeat_command(settings, calibrated_run) or "")

    assert words[words.index("--kinematics") + 1] == str(calibrated_run)


def test_a_nominal_run_fits_its_model_only(ran, ur10e) -> None:
    status, out = ran("--kinematics", "nominal", *COARSE)

    assert status == 0
    assert with_kinematics(ur10e, out) is ur10e
    with pytest.raises(
        InputFileError, match="that run is of a ur10e, but this arm is a ur10"
    ) as caught:
        with_kinematics(load_robot("ur10"), out)
    assert caught.value.field == "robot.name"


def test_check_takes_the_flag_too(cli, line, tmp_path) -> None:
    answer = cli("check", line, "--robot", "ur10e", "--kinematics", tmp_path / "none.toml")

    assert answer.status == 2
    assert "none.toml: file not found" in answer.message


CONF = """
[mounting]
delta_theta = [ 1e-06, 0.001, -0.0005, 0.0003, -7.0e-07, -6.0e-08]
delta_a = [ 0.00013, 0.0004, 0.0003, 0.00015, -3.6e-05, 0]
delta_d = [ 1.3e-06, 0.0002, -0.0001, 0.0003, 1.7e-05, 4.5e-05]
delta_alpha = [ -0.00085, -0.0004, 0.0009, -0.00033, 0.0015, 0]
joint_checksum = [ 0xb4200001, 0x00000002, 0x00000003, 0x00000004, 0x00000005, 0x00000006]
calibration_status = 2 # 0 == notInitialized / 1 == notLinearised / 2 == Linearised
"""


@pytest.mark.python_kernels
@pytest.mark.usefixtures("without_pages")
def test_a_controllers_own_file_is_a_calibration(tmp_path, cli, line) -> None:
    (tmp_path / "calibration.conf").write_text(CONF)
    (tmp_path / "lab.toml").write_text('robot = "ur5e"\ncalibration = "calibration.conf"\n')

    motion = (line, "--anchor", "start", *COARSE)
    answer = cli("run", *motion, "--cell", tmp_path / "lab.toml", "--out", tmp_path / "run")

    assert answer.status == 0
    recorded = RunDirectory.open(tmp_path / "run")
    assert recorded.summary()["kinematics"]["source"] == "given"
    assert recorded.summary()["kinematics"]["file"] == str(tmp_path / "calibration.conf")
    table = recorded.settings().kinematics.dh
    assert table["a"][1] == pytest.approx(-0.425 + 0.0004, abs=1e-12)
    assert table["d"][0] == pytest.approx(0.1625 + 1.3e-6, abs=1e-12)

    # The run keeps them without the file.
    (tmp_path / "calibration.conf").unlink()
    again = cli("check", *motion, "--robot", "ur5e", "--kinematics", tmp_path / "run")
    assert "calibrated for this arm (run)" in again.out
