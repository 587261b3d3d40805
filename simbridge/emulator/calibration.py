"""The kinematics of one very arm, as its controller would tell them, from a TOML file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from simbridge.errors import InputFileError
from simbridge.robot.dh import DhTable
from simbridge.robot.load import read_text

_ROWS = 6


class _Calibration(msgspec.Struct, forbid_unknown_fields=True):
    theta: list[float]
    a: list[float]
    d: list[float]
    alpha: list[float]
    checksum: list[int]


def read_calibration(path: Path) -> tuple[DhTable, tuple[int, ...]]:
    """The DH table and the checksum (6 numbers, not all ones: those say URSim) of a file.

    Raises:
        InputFileError: Names the field at fault.
    """
    try:
        data = msgspec.toml.decode(read_text(path), type=_Calibration)
    except msgspec.DecodeError as error:
        raise InputFileError(path, f"{error}") from None
    for field in ("theta", "a", "d", "alpha", "checksum"):
        if len(getattr(data, field)) != _ROWS:
            raise InputFileError(path, f"{_ROWS} values are needed, one a joint", field=field)
    if not all(0 <= c < 2**32 for c in data.checksum) or set(data.checksum) == {2**32 - 1}:
        raise InputFileError(path, "these must be 32-bit numbers, and not all ones, which says URSim", field="checksum")
    return DhTable(tuple(data.theta), tuple(data.a), tuple(data.d), tuple(data.alpha)), tuple(data.checksum)
