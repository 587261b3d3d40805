"""Calibration files of one individual arm, ours and ROS's."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from simbridge.errors import InputFileError, InvalidParameter
from simbridge.files.reading import read_text, read_yaml
from simbridge.files.toml_file import TomlFile, decode_toml
from simbridge.files.writing import write_file
from simbridge.resources import robot_files
from simbridge.robot.calibration import (
    anchored,
    calibrated,
    calibrated_chain,
    chain_deviations,
)
from simbridge.robot.parts import DhTable, RosCalibration
from simbridge.robot.robot import Robot
from simbridge.robot.robot_file import RobotFile

_ROWS = 6
_HEADER = """\
# The kinematics of one individual UR arm, as its controller reports them: Denavit-Hartenberg parameters, rad and m.
# T_i = Rz(q_i + theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i); d2 to d4 are large where axes are nearly parallel.
"""
# Of ROS's file: the links that follow the joints, and the fields of each.
LINKS = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")
FIELDS = ("x", "y", "z", "roll", "pitch", "yaw")


class _Table(msgspec.Struct):
    theta: list[float]
    a: list[float]
    d: list[float]
    alpha: list[float]

    def checked(self, file: TomlFile, prefix: str = "") -> DhTable:
        rows = {name: tuple(getattr(self, name)) for name in ("theta", "a", "d", "alpha")}
        for name, values in rows.items():
            file.check_length(f"{prefix}{name}", values, _ROWS)
            file.check_finite(f"{prefix}{name}", values)
        return DhTable(**rows)


class _Calibration(_Table, forbid_unknown_fields=True):
    checksum: list[int]


class _RosTable(msgspec.Struct):
    frames: list[list[float]]
    hash: str

    def checked(self, file: TomlFile) -> RosCalibration:
        file.check_length("kinematics.ros.frames", self.frames, _ROWS)
        for i, frame in enumerate(self.frames):
            file.check_length(f"kinematics.ros.frames[{i}]", frame, len(FIELDS))
            file.check_finite(f"kinematics.ros.frames[{i}]", frame)
        frames = tuple((x, y, z, roll, pitch, yaw) for x, y, z, roll, pitch, yaw in self.frames)
        return RosCalibration(frames, self.hash)


class _RecordedKinematics(msgspec.Struct):
    dh: _Table | None = None
    ros: _RosTable | None = None


class _RecordedRobot(msgspec.Struct):
    name: str


class _Recorded(msgspec.Struct):
    """What of settings.toml says which kinematics a run used."""

    robot: _RecordedRobot
    kinematics: _RecordedKinematics


def read_calibration(path: Path) -> tuple[DhTable, tuple[int, ...]]:
    """The table of a calibration file and the controller's checksum over it (6; all ones from URSim)."""
    file = TomlFile(path)
    data = file.decode(_Calibration)
    table = data.checked(file)
    file.check_length("checksum", data.checksum, _ROWS)
    for i, word in enumerate(data.checksum):
        if not 0 <= word < 2**32:
            file.refuse(f"checksum[{i}]", f"this must be a 32-bit number, not {word}")
    return table, tuple(data.checksum)


def write_calibration(path: Path, table: DhTable, checksum: Sequence[int]) -> None:
    """Write a calibration file that reads back to the last bit; OutputError if it cannot be written."""
    lines = [f"{name} = {list(map(float, values))!r}\n" for name, values in asdict(table).items()]
    write_file(
        path, "".join([_HEADER, *lines, f"checksum = {[int(w) for w in checksum]}\n"]).encode()
    )


def is_ros_calibration(path: Path) -> bool:
    """Whether a calibration file is one of ROS, by its name; ours are TOML."""
    return path.suffix.lower() in {".yaml", ".yml"}


def read_ros_calibration(path: Path) -> RosCalibration:
    """The joint frames and the hash of my_robot_calibration.yaml, what ur_calibration writes and ur_description reads.

    Fields that ROS does not read are ignored, as it ignores them.
    """
    document = read_yaml(path)
    tables = document.get("kinematics") if isinstance(document, Mapping) else None
    if not isinstance(tables, Mapping):
        reason = "this is not what ROS's ur_calibration writes: the table is missing, or is not one"
        raise InputFileError(path, reason, field="kinematics")
    frames = []
    for link in LINKS:
        table = tables.get(link)
        if not isinstance(table, Mapping):
            reason = (
                f"missing: a table of {', '.join(FIELDS)} is needed for each of {', '.join(LINKS)}"
            )
            raise InputFileError(path, reason, field=f"kinematics.{link}")
        x, y, z, roll, pitch, yaw = (_number(path, table, link, name) for name in FIELDS)
        frames.append((x, y, z, roll, pitch, yaw))
    return RosCalibration(tuple(frames), str(tables.get("hash") or ""))


def _number(path: Path, table: Mapping[str, Any], link: str, name: str) -> float:
    field, value = f"kinematics.{link}.{name}", table.get(name)
    if value is None:
        raise InputFileError(path, "this field is missing", field=field)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputFileError(path, f"expected a number, got {value!s:.40}", field=field)
    if not abs(value) < 1e300:  # a whole number may be too large for a double
        raise InputFileError(path, f"this must be a finite number, not {value!s:.40}", field=field)
    return float(value)


def with_kinematics(robot: Robot, source: str | os.PathLike[str]) -> Robot:
    """The arm with the kinematics that `--kinematics` names.

    Args:
        robot: The nominal arm.
        source: "nominal"; a calibration file, also ROS's (.yaml); or a run (its directory or its settings.toml), for
            the run's kinematics.

    Raises:
        InputFileError: The file cannot be read, or it is for another model, or for none.
        InvalidParameter: The arm is calibrated already.
    """
    if source == "nominal":
        if robot.calibration is not None:
            raise InvalidParameter(
                "robot", "calibrated already", "given with its nominal kinematics"
            )
        return robot
    path = Path(source)
    path = path / "settings.toml" if path.is_dir() else path
    calibration = _read(path, robot)
    if calibration is None:
        return robot
    try:
        arm = calibrated(robot, calibration)
    except InvalidParameter as error:
        hint = "" if robot.calibration is not None else f" {_model_hint(calibration)}"
        raise InputFileError(path, f"{error}{hint}") from None
    if arm is robot and robot.calibration is None:
        warnings.warn(
            f"{path.name} equals the nominal kinematics of the {robot.title or robot.name}: it comes from URSim or is "
            "a default, and describes no individual arm.",
            stacklevel=2,
        )
    return arm


def _read(path: Path, robot: Robot) -> DhTable | RosCalibration | None:
    """The calibration in a file; None for nominal kinematics, which a run may have."""
    if is_ros_calibration(path):
        return read_ros_calibration(path)
    text = read_text(path)
    try:
        is_of_run = "kinematics" in decode_toml(text)
    except ValueError:
        is_of_run = False  # `read_calibration` refuses it with the line.
    if not is_of_run:
        return read_calibration(path)[0]
    file = TomlFile(path)
    data = file.decode(_Recorded)
    if data.robot.name != robot.name:
        file.refuse(
            "robot.name", f"that run is of a {data.robot.name}, this one is for a {robot.name}"
        )
    if data.kinematics.ros is not None:
        return data.kinematics.ros.checked(file)
    return (
        None if data.kinematics.dh is None else data.kinematics.dh.checked(file, "kinematics.dh.")
    )


def _model_hint(calibration: DhTable | RosCalibration) -> str:
    """A sentence that says which model in robots/ a calibration is for."""
    chain = calibrated_chain(calibration)
    for name, path in robot_files().items():
        model = TomlFile(path).decode(RobotFile).kinematics
        table = DhTable((0.0,) * len(model.d), tuple(model.a), tuple(model.d), tuple(model.alpha))
        nominal = calibrated_chain(table)
        if len(nominal) == len(chain):
            apart = chain_deviations([""] * len(chain), nominal, anchored(chain, nominal))
            if all(each.relative <= 1.0 for each in apart):
                return f"It fits a {name}: choose that with --robot."
    return "It fits none of the arms in robots/: it is no plausible chain of a UR arm."
