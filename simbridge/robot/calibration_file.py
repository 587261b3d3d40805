"""Calibration files of one individual arm: its Denavit-Hartenberg table, as TOML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from simbridge.files.toml_file import TomlFile
from simbridge.files.writing import write_file
from simbridge.robot.parts import DhTable

# Joints of a UR arm, words of a controller's checksum.
ROWS = 6
# The first lines of a calibration file.
HEADER = (
    "# The kinematics of one individual UR arm, as its controller reports them: "
    "Denavit-Hartenberg parameters, rad and m.\n"
    "# T_i = Rz(q_i + theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i); "
    "d2 to d4 are large where axes are nearly parallel.\n"
)


class TableOfFile(msgspec.Struct):
    """The columns of a Denavit-Hartenberg table in a file; see `DhTable`."""

    theta: list[float]
    a: list[float]
    d: list[float]
    alpha: list[float]

    def check(self, file: TomlFile, prefix: str = "") -> DhTable:
        """Return the table; refuse another number of rows, and what is not finite.

        Args:
            file: The file that it is from.
            prefix: Path of the table in the file, as "kinematics.dh.".
        """
        columns = {"theta": self.theta, "a": self.a, "d": self.d, "alpha": self.alpha}
        for name, values in columns.items():
            file.check_length(f"{prefix}{name}", values, ROWS)
            file.check_finite(f"{prefix}{name}", values)
        return DhTable(tuple(self.theta), tuple(self.a), tuple(self.d), tuple(self.alpha))


class CalibrationOfFile(TableOfFile, forbid_unknown_fields=True):
    """A calibration file: the table, and the controller's checksum over it."""

    checksum: list[int]


def read_calibration(path: Path) -> tuple[DhTable, tuple[int, ...]]:
    """Read a calibration file.

    Returns:
        The table, and the controller's checksum over it (6; all ones from URSim).

    Raises:
        InputFileError: The file cannot be read, or a field is wrong; names the field.
    """
    file = TomlFile(path)
    data = file.decode(CalibrationOfFile)
    table = data.check(file)
    file.check_length("checksum", data.checksum, ROWS)
    for i, word in enumerate(data.checksum):
        if not 0 <= word < 2**32:
            file.refuse(f"checksum[{i}]", f"this must be a 32-bit number, not {word}")
    return table, tuple(data.checksum)


def write_calibration(path: Path, table: DhTable, checksum: Sequence[int]) -> None:
    """Write a calibration file that reads back to the last bit.

    Args:
        path: The file.
        table: Table of the arm.
        checksum: The controller's over it (6).

    Raises:
        OutputError: The file cannot be written.
    """
    lines = [f"{name} = {list(map(float, values))!r}\n" for name, values in asdict(table).items()]
    numbers = [int(word) for word in checksum]
    text = "".join([HEADER, *lines, f"checksum = {numbers}\n"])
    write_file(path, text.encode())
