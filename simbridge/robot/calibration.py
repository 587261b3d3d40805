"""The kinematics of one very arm in a TOML file, and in the settings.toml of a run that was made with them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from simbridge.errors import InputFileError, InvalidParameter, OutputDirectoryError
from simbridge.robot.calibrated import calibrated
from simbridge.robot.dh import DhTable
from simbridge.robot.load import read_text
from simbridge.robot.robot import Robot
from simbridge.robot.toml_checks import Checker
from simbridge.robot.toml_decoding import decoded

_ROWS = 6
_HEADER = """\
# The kinematics of one very UR arm, as its controller tells them: full Denavit-Hartenberg parameters, rad and m.
# T_i = Rz(q_i + theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i); d2 to d4 are far where axes are nearly parallel.
"""


class _Table(msgspec.Struct):
    theta: list[float]
    a: list[float]
    d: list[float]
    alpha: list[float]

    def checked(self, check: Checker, prefix: str = "") -> DhTable:
        rows = {name: getattr(self, name) for name in ("theta", "a", "d", "alpha")}
        for name, values in rows.items():
            check.length(f"{prefix}{name}", values, _ROWS)
            check.finite(f"{prefix}{name}", values)
        return DhTable(**{name: tuple(values) for name, values in rows.items()})


class _Calibration(_Table, forbid_unknown_fields=True):
    checksum: list[int]


class _RecordedRobot(msgspec.Struct):
    name: str


class _RecordedKinematics(msgspec.Struct):
    dh: _Table | None = None


class _Recorded(msgspec.Struct):
    robot: _RecordedRobot
    kinematics: _RecordedKinematics


def read_calibration(path: Path) -> tuple[DhTable, tuple[int, ...]]:
    """The table of a calibration file and the controller's checksum over it (6; all ones where URSim told it).

    Raises:
        InputFileError: Names the line and the field at fault.
    """
    check = Checker(path, read_text(path))
    data = decoded(check, _Calibration)
    table = data.checked(check)
    check.length("checksum", data.checksum, _ROWS)
    for i, word in enumerate(data.checksum):
        if not 0 <= word < 2**32:
            check.refuse(f"checksum[{i}]", f"this must be a 32-bit number, not {word}")
    return table, tuple(data.checksum)


def write_calibration(path: Path, table: DhTable, checksum: Sequence[int]) -> None:
    """Write a calibration file that reads back to the last bit.

    Raises:
        OutputDirectoryError: It cannot be written.
    """
    rows = {name: [float(v) for v in getattr(table, name)] for name in ("theta", "a", "d", "alpha")}
    lines = [f"{name} = {values!r}\n" for name, values in rows.items()] + [f"checksum = {[int(w) for w in checksum]}\n"]
    try:
        path.write_text(_HEADER + "".join(lines), encoding="utf-8")
    except OSError as error:
        raise OutputDirectoryError(path.parent, f"{path.name}: {error.strerror or error}") from None


def kinematics_of(robot: Robot, source: str | os.PathLike[str]) -> Robot:
    """The arm with the kinematics that `--kinematics` names.

    Args:
        robot: The nominal arm.
        source: "nominal"; a calibration file; or a run (its directory or its settings.toml), for what it was made with.

    Raises:
        InputFileError: The file cannot be read, or it is for another model.
        InvalidParameter: The arm has other kinematics already.
    """
    if source == "nominal":
        if robot.calibration is not None:
            raise InvalidParameter("robot", "calibrated already", "given with its nominal kinematics")
        return robot
    path = Path(source)
    path = path / "settings.toml" if path.is_dir() else path
    text = read_text(path)
    table = _recorded(path, text, robot) if _is_recorded(text) else read_calibration(path)[0]
    try:
        return robot if table is None else calibrated(robot, table)
    except InvalidParameter as error:
        raise InputFileError(path, str(error)) from None


def _is_recorded(text: str) -> bool:
    try:
        return "kinematics" in msgspec.toml.decode(text)
    except msgspec.DecodeError:
        # Read as a calibration, it is refused with the line at fault.
        return False


def _recorded(path: Path, text: str, robot: Robot) -> DhTable | None:
    """The table in a run's settings.toml; None when it was made with nominal kinematics."""
    check = Checker(path, text)
    data = decoded(check, _Recorded)
    if data.robot.name != robot.name:
        check.refuse("robot.name", f"that run was made with a {data.robot.name}, and this one is for a {robot.name}")
    return None if data.kinematics.dh is None else data.kinematics.dh.checked(check, "kinematics.dh.")
