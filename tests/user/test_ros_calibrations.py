"""Arms and runs with the calibration of ROS, and files that are no calibration of the arm."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge import load_robot
from simbridge.errors import InputFileError
from simbridge.recording.kinematics_record import (
    describe_kinematics,
    record_kinematics,
    summarize_kinematics,
)
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.settings_list import important_settings
from simbridge.resources import robot_files
from simbridge.robot.calibration import (
    calibrate,
    deviations,
    nominal_dh,
)
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.kinematics import tool_path
from simbridge.robot.kinematics_source import with_kinematics
from tests import ros_calibration as ros
from tests.plain_kernels import plain_kernels
from tests.properties import few_examples

pytestmark = pytest.mark.shares_setup
SOAK = pytest.mark.soak

TABLE, _ = read_calibration(Path(__file__).parents[1] / "data" / "ur10e_calibration.toml")


def difference(robot, frames, q):
    """Return the largest differences of the flange's poses from frames (K, 4, 4).

    Returns:
        Of a coordinate, m, and of an entry of the rotation matrix.
    """
    mine = np.array([pin.XYZQUATToSE3(pose).homogeneous for pose in tool_path(robot, q)])
    apart = np.abs(mine - frames)
    return apart[:, :3, 3].max(), apart[:, :3, :3].max()


def configurations(count, seed=0):
    return np.random.default_rng(seed).uniform(-np.pi, np.pi, (count, 6))


@pytest.fixture(scope="module")
def ur10e():
    return load_robot("ur10e")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ros")


@pytest.mark.parametrize(
    "eigen", [True, False], ids=["angles as Eigen chooses them", "smallest angles"]
)
@pytest.mark.parametrize(
    ("name", "table"),
    [("ur10e", TABLE), *((name, ros.deltas(name, 1)) for name in ("ur3", "ur5e", "ur10", "ur16e"))],
)
def test_the_tool_agrees_with_ross_urdf(folder, name, table, eigen) -> None:
    robot = load_robot(name)
    rows = ros.rows_of(table, eigen=eigen)
    q = configurations(300)
    arm = with_kinematics(robot, ros.write(folder / "arm.yaml", rows))

    assert max(difference(arm, ros.urdf_tools(rows, q), q)) < 1e-13
    # The nominal arm is not there: the file is a calibration.
    assert difference(robot, ros.urdf_tools(rows, q), q)[0] > 5e-4


@few_examples(10)
@given(st.sampled_from(["ur3e", "ur5", "ur20"]), st.integers(0, 2**32 - 1))
def test_files_are_converted_to_rounding(folder, name, seed) -> None:
    # Six free numbers a joint, as a URDF allows: not only what ur_calibration writes.
    rng = np.random.default_rng(seed)
    robot = load_robot(name)
    rows = ros.rows_of(nominal_dh(robot)) + rng.uniform(-1e-3, 1e-3, (6, 6))
    q = configurations(20, seed)

    arm = with_kinematics(robot, ros.write(folder / "any.yaml", rows))

    assert max(difference(arm, ros.urdf_tools(rows, q), q)) < 1e-13
    assert max(found.distance for found in deviations(robot, arm)) < 5e-3


def test_tool_and_mounting_of_the_arm_are_kept(folder, ur10e) -> None:
    rows = ros.rows_of(TABLE)
    q = configurations(50)
    tcp = pin.SE3(pin.exp3(np.array([0.1, 0.2, 0.3])), np.array([0.0, 0.05, 0.2]))

    arm = with_kinematics(
        ur10e.with_tcp(tcp).with_payload(3.0), ros.write(folder / "arm.yaml", rows)
    )

    assert max(difference(arm, ros.urdf_tools(rows, q) @ tcp.homogeneous, q)) < 1e-13
    assert arm.payload == 3.0
    assert np.array_equal(arm.home, ur10e.home)


def test_a_urdf_of_the_model_is_calibrated_alike(folder) -> None:
    own = load_robot("ur10")
    rows = ros.rows_of(ros.deltas("ur10", 2))
    q = configurations(50)
    urdf = load_robot(
        Path(__file__).parents[1] / "data" / "urdf" / "ur10_from_ros.urdf", home=own.home
    )

    file = ros.write(folder / "ur10.yaml", rows)

    # Its axes are rounded to nine digits.
    assert (
        np.abs(
            tool_path(with_kinematics(urdf, file), q) - tool_path(with_kinematics(own, file), q)
        ).max()
        < 1e-8
    )


# ---- files that are no calibration of this arm


@pytest.mark.parametrize("name", [name for name in robot_files() if name.startswith("ur")])
def test_a_nominal_file_gives_the_nominal_arm(tmp_path, name) -> None:
    robot = load_robot(name)
    rows = ros.rows_of(nominal_dh(robot))
    # URSim and ROS's default files print a right angle with nine digits.
    rows[[1, 4], 3] = 1.570796327

    with pytest.warns(
        UserWarning, match=rf"default\.yaml equals the nominal kinematics of the {robot.title}"
    ):
        assert with_kinematics(robot, ros.write(tmp_path / "default.yaml", rows)) is robot


def test_a_calibration_does_not_equal_nominal(tmp_path, ur10e) -> None:
    rows = ros.rows_of(nominal_dh(ur10e))
    rows[2, 0] += 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert with_kinematics(ur10e, ros.write(tmp_path / "arm.yml", rows)) is not ur10e


@pytest.mark.parametrize(
    ("own", "chosen"),
    [
        ("ur10e", "ur10"),
        pytest.param("ur3e", "ur3", marks=SOAK),
        ("ur3", "ur3e"),
        pytest.param("ur5", "ur5e", marks=SOAK),
    ],
)
def test_another_models_file_is_refused(tmp_path, own, chosen) -> None:
    file = ros.write(tmp_path / "arm.yaml", ros.rows_of(ros.deltas(own, 4)))

    with pytest.raises(
        InputFileError, match=rf"It matches a {own}.*: choose that with --robot"
    ) as caught:
        with_kinematics(load_robot(chosen), file)
    assert caught.value.path == file


@pytest.mark.parametrize(
    ("link", "field", "value"),
    [
        (2, 0, 0.6),
        (3, 2, 400.0),
        (1, 3, 0.0),
        pytest.param(4, 3, -1.57, marks=SOAK),
        pytest.param(2, 3, np.pi / 2, marks=SOAK),
        pytest.param(5, 4, 0.0, marks=SOAK),
        pytest.param(0, 4, 0.5, marks=SOAK),
    ],
)
def test_a_chain_of_no_arm_is_refused(tmp_path, ur10e, link, field, value) -> None:
    rows = ros.rows_of(TABLE)
    rows[link, field] = value

    with pytest.raises(InputFileError, match="not a plausible kinematic chain of a UR arm"):
        with_kinematics(ur10e, ros.write(tmp_path / "arm.yaml", rows))


def test_atan_for_atan2_gives_no_plausible_chain(tmp_path, ur10e) -> None:
    assert abs(TABLE.theta[1]) > np.pi / 2
    with pytest.raises(
        InputFileError,
        match=r"1\d\d\.\d degrees off at elbow_joint.* not a plausible kinematic chain of a UR arm",
    ):
        with_kinematics(ur10e, ros.write(tmp_path / "arm.yaml", ros.rows_of(TABLE, fixed=False)))


# ---- shown and recorded


@pytest.fixture(scope="module")
def run(tmp_path_factory, run_without_page, line):
    """The directory of a run in PyBullet with a file of ROS."""
    where = tmp_path_factory.mktemp("ros_run")
    file = ros.write(where / "my_robot_calibration.yaml", ros.rows_of(TABLE))
    arm = ["--robot", "ur10e", "--kinematics", str(file), "--period", "0.02"]
    with plain_kernels():
        assert run_without_page(line, *arm, "--out", where / "run") == 0
    return where / "run"


HASH = "calib_12345678901234567890"


@pytest.mark.python_kernels
def test_hash_and_source_are_shown_everywhere(run, cli, line) -> None:
    recorded = RunDirectory.open(run)
    file = str(run.parent / "my_robot_calibration.yaml")

    assert recorded.summary()["kinematics"] == {
        "source": "given",
        "calibrated": True,
        "file": file,
        "hash": HASH,
        "controller_difference": None,
    }
    assert recorded.settings().kinematics.ros.hash == HASH
    assert HASH in dict(important_settings(recorded.settings(), 1))["Kinematics"]

    check = ("check", line, "--robot", "ur10e", "--kinematics", file, "--period", "0.02")
    words = f"calibrated for this arm (my_robot_calibration.yaml, {HASH})"

    assert f"Kinematics: {words}." in cli(*check).out
    assert json.loads(cli(*check, "--json").out)["kinematics"]["hash"] == HASH
    assert describe_kinematics(recorded.summary()["kinematics"]) == words


def test_a_run_keeps_its_kinematics_exactly(run, ur10e) -> None:
    arm = with_kinematics(ur10e, run)

    assert arm.checksum == with_kinematics(ur10e, run.parent / "my_robot_calibration.yaml").checksum
    assert arm.calibration.hash == HASH

    poses = tool_path(arm, configurations(5))
    np.testing.assert_allclose(
        poses[:, :3], ros.urdf_tools(ros.rows_of(TABLE), configurations(5))[:, :3, 3], atol=1e-13
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace(f'hash = "{HASH}"', ""), "missing"),
        (lambda text: text.replace("frames = [", "frames = [[1.0],"), "6 values are needed"),
    ],
)
def test_a_damaged_record_is_refused(run, tmp_path, ur10e, change, words) -> None:
    (tmp_path / "settings.toml").write_text(change((run / "settings.toml").read_text()))

    with pytest.raises(InputFileError, match=words) as caught:
        with_kinematics(ur10e, tmp_path)
    assert caught.value.field.startswith("kinematics.ros")


def test_the_difference_from_the_controller_is_shown(folder, ur10e) -> None:
    file = ros.write(folder / "arm.yaml", ros.rows_of(TABLE))
    arm = with_kinematics(ur10e, file)
    found = summarize_kinematics(record_kinematics(arm, file, TABLE))
    small = found["controller_difference"]

    assert 1e-7 < small["position_m"] < 1e-4
    assert 1e-7 < small["rotation_rad"] < 2e-4
    assert "; at the tool, they differ by at most 0.0" in describe_kinematics(found)
    assert HASH in describe_kinematics(found)

    other = summarize_kinematics(record_kinematics(arm, file, nominal_dh(ur10e)))
    assert 5e-4 < other["controller_difference"]["position_m"] < 1e-2

    nominal = summarize_kinematics(record_kinematics(ur10e, "nominal", TABLE))
    assert (nominal["source"], nominal["file"], nominal["calibrated"]) == ("nominal", None, False)
    assert describe_kinematics(nominal).startswith("nominal; at the tool, they differ by at most ")

    own = summarize_kinematics(record_kinematics(calibrate(ur10e, TABLE), None, TABLE))
    assert (own["source"], own["controller_difference"]["position_m"]) == (
        "controller",
        pytest.approx(0.0, abs=1e-12),
    )
    assert describe_kinematics(own) == "calibrated for this arm"


# ---- real arms' files


MODELS = {
    "Scorpion_UR10_Noetic": "ur10e",
    "agimus-demos-ur3-pointing": "ur3",
    "haptic_ur5e": "ur5e",
    "tag_tracking": "ur5",
    "ur10e_controller": "ur10e",
    "ur3-tools": "ur3e",
    "ur3_ros": "ur3",
}


@pytest.fixture
def real_files():
    if "SIMBRIDGE_RECORDINGS" not in os.environ:
        pytest.skip("SIMBRIDGE_RECORDINGS names no folder with calibrations of real arms")
    return Path(os.environ["SIMBRIDGE_RECORDINGS"]) / "calibrations"


@pytest.mark.parametrize(("stem", "name"), MODELS.items())
def test_a_real_file_gives_ross_arm(real_files, stem, name) -> None:
    file = real_files / f"{stem}.yaml"
    robot = load_robot(name)
    # Read by its lines, not by a YAML parser.
    numbers = [line.split(":") for line in file.read_text().splitlines() if line.startswith("    ")]
    rows = np.array([float(value) for _, value in numbers]).reshape(6, 6)
    q = configurations(300)

    arm = with_kinematics(robot, file)

    assert arm.calibration.hash in file.read_text()
    assert arm.calibration.hash.startswith("calib_")
    assert max(difference(arm, ros.urdf_tools(rows, q), q)) < 1e-13
    assert max(found.distance for found in deviations(robot, arm)) < 2e-3


def test_the_nominal_one_among_them_is_named(real_files) -> None:
    with pytest.warns(UserWarning, match="equals the nominal kinematics of the UR10:"):
        with_kinematics(load_robot("ur10"), real_files / "UR_Reactive_Force.yaml")
