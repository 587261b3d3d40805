"""The calibration file of ROS, my_robot_calibration.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simbridge.errors import InputFileError
from simbridge.files.reading import read_yaml
from simbridge.robot.parts import RosCalibration

# The links that follow the joints, and the fields of each.
LINKS = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")
FIELDS = ("x", "y", "z", "roll", "pitch", "yaw")
# A larger number, such as a whole number of many digits, is not finite as a double.
MAX_NUMBER = 1e300


def is_ros_calibration(path: Path) -> bool:
    """Return whether a calibration file is one of ROS, by its name; ours are TOML."""
    return path.suffix.lower() in {".yaml", ".yml"}


def read_ros_calibration(path: Path) -> RosCalibration:
    """Read the file that ur_calibration writes and ur_description reads.

    Fields that ROS does not read are ignored, as it ignores them.

    Returns:
        The joint frames and the hash.

    Raises:
        InputFileError: The file cannot be read, or a field is missing or wrong; names the field.
    """
    document = read_yaml(path)
    tables = document.get("kinematics") if isinstance(document, Mapping) else None
    if not isinstance(tables, Mapping):
        reason = (
            "this is not a file written by ROS's ur_calibration: the table is missing or "
            "is not a table"
        )
        raise InputFileError(path, reason, field="kinematics")

    frames = []
    for link in LINKS:
        table = tables.get(link)
        if not isinstance(table, Mapping):
            fields = ", ".join(FIELDS)
            reason = f"missing: a table of {fields} is needed for each of {', '.join(LINKS)}"
            raise InputFileError(path, reason, field=f"kinematics.{link}")
        x, y, z, roll, pitch, yaw = (_read_number(path, table, link=link, name=n) for n in FIELDS)
        frames.append((x, y, z, roll, pitch, yaw))
    return RosCalibration(tuple(frames), str(tables.get("hash") or ""))


def _read_number(path: Path, table: Mapping[str, Any], *, link: str, name: str) -> float:
    """Return a field of a link's table; refuse what is not a finite number."""
    field = f"kinematics.{link}.{name}"
    value = table.get(name)
    if value is None:
        raise InputFileError(path, "the field is missing", field=field)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputFileError(path, f"expected a number, got {value!s:.40}", field=field)
    if not abs(value) < MAX_NUMBER:
        raise InputFileError(path, f"must be a finite number, not {value!s:.40}", field=field)
    return float(value)
