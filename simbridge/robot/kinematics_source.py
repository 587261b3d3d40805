"""The kinematics that --kinematics names: a calibration file, or those of a run.

The file is simbridge's, ROS's my_robot_calibration.yaml, or UR's calibration.conf.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import msgspec

from simbridge.errors import InputFileError, InvalidParameter
from simbridge.files.reading import read_text
from simbridge.files.toml_file import TomlFile, decode_toml
from simbridge.resources import robot_files
from simbridge.robot.calibration import (
    anchor_chain,
    calibrate,
    calibrated_chain,
    chain_deviations,
)
from simbridge.robot.calibration_file import ROWS, TableOfFile, read_calibration
from simbridge.robot.controller_calibration_file import (
    add_to_nominal,
    is_controller_calibration,
    read_controller_calibration,
)
from simbridge.robot.parts import DhTable, RosCalibration
from simbridge.robot.robot import Robot
from simbridge.robot.robot_file import read_robot_file
from simbridge.robot.ros_calibration_file import (
    FIELDS,
    is_ros_calibration,
    read_ros_calibration,
)


class RosFramesOfRun(msgspec.Struct):
    """ROS's joint frames in settings.toml; see `RosCalibration`."""

    frames: list[list[float]]
    hash: str

    def check(self, file: TomlFile) -> RosCalibration:
        """Return the calibration; refuse another number of values, and what is not finite."""
        file.check_length("kinematics.ros.frames", self.frames, ROWS)
        for i, frame in enumerate(self.frames):
            file.check_length(f"kinematics.ros.frames[{i}]", frame, len(FIELDS))
            file.check_finite(f"kinematics.ros.frames[{i}]", frame)
        frames = tuple((x, y, z, roll, pitch, yaw) for x, y, z, roll, pitch, yaw in self.frames)
        return RosCalibration(frames, self.hash)


class KinematicsOfRun(msgspec.Struct):
    """The table `kinematics` of settings.toml: of both, at most one is there."""

    dh: TableOfFile | None = None
    ros: RosFramesOfRun | None = None


class RobotOfRun(msgspec.Struct):
    """The table `robot` of settings.toml."""

    name: str


class SettingsOfRun(msgspec.Struct):
    """The tables of settings.toml that say which kinematics a run used."""

    robot: RobotOfRun
    kinematics: KinematicsOfRun


def with_kinematics(robot: Robot, source: str | os.PathLike[str]) -> Robot:
    """Return the arm with the kinematics that `--kinematics` names.

    Args:
        robot: The nominal arm.
        source: "nominal"; a calibration file, also ROS's (.yaml) or UR's own (.conf); or a run (its
            directory or its settings.toml), for the run's kinematics.

    Raises:
        InputFileError: The file cannot be read, or it is for another model, or for none; or the arm
            has another calibration already.
        InvalidParameter: The source is "nominal", and the arm is calibrated.
    """
    if source == "nominal":
        if robot.calibration is not None:
            needed = "an arm with nominal kinematics"
            raise InvalidParameter("robot", "a calibrated one", needed)
        return robot

    path = Path(source)
    if path.is_dir():
        path = path / "settings.toml"
    calibration = _read_source(path, robot)
    if calibration is None:
        return robot

    try:
        arm = calibrate(robot, calibration)
    except InvalidParameter as error:
        # An arm with another calibration is refused whatever the file's model is.
        hint = "" if robot.calibration is not None else f" {_model_hint(path, calibration)}"
        raise InputFileError(path, f"{error}{hint}") from None

    # `calibrate` returns the arm itself for the calibration that it has already, and for a nominal
    # one.
    if arm is robot and robot.calibration is None:
        warnings.warn(
            f"{path.name} equals the nominal kinematics of the {robot.title or robot.name}: it "
            "comes from URSim or is a default, and does not describe an individual arm.",
            stacklevel=2,
        )
    return arm


def _read_source(path: Path, robot: Robot) -> DhTable | RosCalibration | None:
    """Read the calibration in a file of any of the known kinds.

    Args:
        path: The file.
        robot: The nominal arm.

    Returns:
        The calibration; None if the file is that of a run with nominal kinematics.
    """
    # The two kinds of UR's and ROS's files have a form of their own.
    if is_ros_calibration(path):
        return read_ros_calibration(path)
    if is_controller_calibration(path):
        return add_to_nominal(path, read_controller_calibration(path), robot)

    # Of the two kinds of TOML files, only that of a run has a table [kinematics]. What is not TOML
    # is refused, with the line, by `read_calibration`.
    try:
        is_of_run = "kinematics" in decode_toml(read_text(path))
    except ValueError:
        is_of_run = False
    if not is_of_run:
        table, _ = read_calibration(path)
        return table

    # The settings of a run.
    file = TomlFile(path)
    settings = file.decode(SettingsOfRun)
    if settings.robot.name != robot.name:
        reason = f"that run is of a {settings.robot.name}, but this arm is a {robot.name}"
        file.refuse("robot.name", reason)
    if settings.kinematics.ros is not None:
        return settings.kinematics.ros.check(file)
    if settings.kinematics.dh is not None:
        return settings.kinematics.dh.check(file, "kinematics.dh.")
    return None


def _model_hint(path: Path, calibration: DhTable | RosCalibration) -> str:
    """Return sentences about the models in robots/ that the calibration in a file is for.

    Args:
        path: The file.
        calibration: The calibration that was read from it for another model.
    """
    # UR's own file states differences from the nominal table of its model. For each model that is
    # tried, they are added to that model's table instead.
    differences: DhTable | None = None
    if not is_ros_calibration(path) and is_controller_calibration(path):
        differences = read_controller_calibration(path).differences

    names = []
    for name, file in robot_files().items():
        _, data = read_robot_file(file)
        model = data.kinematics
        if len(model.d) != ROWS:
            continue
        zeros = (0.0,) * ROWS
        nominal = DhTable(zeros, tuple(model.a), tuple(model.d), tuple(model.alpha))
        table = calibration if differences is None else nominal.plus(differences)
        if _is_plausible(table, nominal):
            names.append(name)

    origin = ""
    if differences is not None:
        origin = "The file states differences, which were added to the nominal table. "
    if names:
        return f"{origin}It matches a {' or a '.join(names)}: choose that with --robot."
    return (
        f"{origin}It matches none of the arms in robots/: it is not a plausible kinematic "
        "chain of a UR arm."
    )


def _is_plausible(calibration: DhTable | RosCalibration, nominal: DhTable) -> bool:
    """Return whether a calibration can be that of an arm with a nominal table."""
    chain = calibrated_chain(calibration)
    nominal_chain = calibrated_chain(nominal)
    anchored = anchor_chain(chain, nominal_chain)
    deviations = chain_deviations([""] * len(chain), nominal_chain, anchored)
    return all(deviation.relative <= 1.0 for deviation in deviations)
