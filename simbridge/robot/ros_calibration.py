"""ROS's calibration file of one UR arm, my_robot_calibration.yaml: what ur_calibration writes and ur_description reads.

ur_calibration prints each joint's rotation as R = Rx(roll) Ry(pitch) Rz(yaw) (Eigen's eulerAngles(0, 1, 2));
ur_description puts the same three numbers into a URDF, where they mean R = Rz(yaw) Ry(pitch) Rx(roll). So the arm of
ROS's URDF is not quite the arm that was measured: 2 to 50 um and 2 to 135 urad off at the tool, on seven real arms.
The chain used here is that of the URDF, as in every ROS program with this file; the other reading only decides whether
the file belongs to the arm behind a controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.errors import InputFileError, InvalidParameter
from simbridge.robot.files import read_yaml
from simbridge.robot.parts import DhTable, RosCalibration

# The links that follow the joints, as the file names them, and the fields of each.
LINKS = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")
# Axes within this angle are taken for parallel; those of real arms are milliradians apart.
_PARALLEL = 1e-9  # rad, and m
FIELDS = ("x", "y", "z", "roll", "pitch", "yaw")


def is_ros_calibration(path: Path) -> bool:
    """Whether a calibration file is one of ROS, by its name; ours are TOML."""
    return path.suffix.lower() in {".yaml", ".yml"}


def read_ros_calibration(path: Path) -> RosCalibration:
    """The joint frames and the hash of a calibration file of ROS.

    Fields that ROS does not read are ignored, as it ignores them.

    Raises:
        InputFileError: The file cannot be read, is not YAML, or a number is missing or not finite; names the field.
    """
    tables = _document(path).get("kinematics")
    if not isinstance(tables, Mapping):
        reason = "this is not what ROS's ur_calibration writes: the table is missing, or is not one"
        raise InputFileError(path, reason, field="kinematics")
    frames = []
    for link in LINKS:
        table = tables.get(link)
        if not isinstance(table, Mapping):
            reason = f"missing: a table of {', '.join(FIELDS)} is needed for each of {', '.join(LINKS)}"
            raise InputFileError(path, reason, field=f"kinematics.{link}")
        x, y, z, roll, pitch, yaw = (_number(path, table, link, name) for name in FIELDS)
        frames.append((x, y, z, roll, pitch, yaw))
    return RosCalibration(tuple(frames), str(tables.get("hash") or ""))


def joint_frames(calibration: RosCalibration, *, as_printed: bool = False) -> list[pin.SE3]:
    """Each joint's frame at position zero in the previous joint's frame; the first in the pendant's base.

    Args:
        calibration: The file's content.
        as_printed: False for the frames of ROS's URDF; True for those that ur_calibration printed (see the module).
    """
    frames = []
    for x, y, z, roll, pitch, yaw in calibration.frames:
        turns = [pin.utils.rotate(axis, by) for axis, by in (("x", roll), ("y", pitch), ("z", yaw))]
        first, second, third = turns if as_printed else reversed(turns)
        frames.append(pin.SE3(first @ second @ third, np.array([x, y, z])))
    return frames


def printed_table(calibration: RosCalibration) -> DhTable:
    """The Denavit-Hartenberg table of the arm that was measured: of the frames as they were printed.

    Each row follows from the common normal of two axes. The table need not be the one that ur_calibration read: other
    ones describe the same arm.

    Raises:
        InvalidParameter: The first axis is not that of the base, so that no table begins there.
    """
    origins = np.array([frame[:3] for frame in calibration.frames])
    first, *others = joint_frames(calibration, as_printed=True)
    if max(abs(first.rotation[:2, 2]).max(), abs(origins[0, :2]).max()) > _PARALLEL:
        given = f"{origins[0, 0]:.3g} {origins[0, 1]:.3g} m beside it, or tilted"
        raise InvalidParameter("first joint's axis", given, "the z axis of the base")
    # The frame of a table's row: on the axis, where the previous row ends.
    here, actual, rows = pin.SE3.Identity(), first, []
    for frame in others:
        actual, z = actual * frame, here.rotation[:, 2]
        onward, between = actual.rotation[:, 2], actual.translation - here.translation
        normal = np.cross(z, onward)
        parallel = np.linalg.norm(normal) < _PARALLEL
        normal = between - (z @ between) * z if parallel else normal
        normal = normal / np.linalg.norm(normal)
        # The smaller of the two turns about z that lead along the normal.
        normal *= np.copysign(1.0, normal @ here.rotation[:, 0])
        theta = np.arctan2(normal @ here.rotation[:, 1], normal @ here.rotation[:, 0])
        alpha = np.arctan2(np.cross(z, onward) @ normal, z @ onward)
        d, a = 0.0, normal @ between
        if not parallel:
            d, a, _ = np.linalg.solve(np.column_stack([z, normal, -onward]), between)
        rows.append((theta, a, d, alpha))
        turn = pin.utils.rotate("z", theta)
        here = here * pin.SE3(turn @ pin.utils.rotate("x", alpha), turn @ np.array([a, 0.0, d]))
    last = here.actInv(actual)
    rows.append((np.arctan2(last.rotation[1, 0], last.rotation[0, 0]), 0.0, last.translation[2], 0.0))
    return DhTable(*(tuple(map(float, column)) for column in zip(*rows, strict=True)))


def _document(path: Path) -> Mapping[str, Any]:
    document = read_yaml(path)
    return document if isinstance(document, Mapping) else {}


def _number(path: Path, table: Mapping[str, Any], link: str, name: str) -> float:
    field, value = f"kinematics.{link}.{name}", table.get(name)
    if value is None:
        raise InputFileError(path, "this field is missing", field=field)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputFileError(path, f"expected a number, got {value!s:.40}", field=field)
    if not abs(value) < 1e300:  # a whole number may be too large for a double
        raise InputFileError(path, f"this must be a finite number, not {value!s:.40}", field=field)
    return float(value)
