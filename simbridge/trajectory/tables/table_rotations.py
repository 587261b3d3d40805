"""The rotations of a table's rows as quaternions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.errors import InputFileError
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.trajectory.tables.roles import QUATERNION, ROTATION_VECTOR
from simbridge.trajectory.tables.table import Table
from simbridge.trajectory.tables.unit_comments import commented_unit
from simbridge.trajectory.tables.units import UNITS

# A rotation vector longer than a full turn, by more than rounding, is in degrees.
MAX_ANGLE = 2.0 * math.pi + 1e-3
# How far R R^T may be from the identity.
MATRIX_TOLERANCE = 1e-2


def quaternions_of(path: str | Path, table: Table) -> tuple[Array, str]:
    """Return the rotations of a table as quaternions (T, 4), and what they were, in words.

    Raises:
        InputFileError: A rotation vector is longer than a full turn, or a matrix is not a rotation.
    """
    roles = table.columns.roles[3:]
    if roles == QUATERNION:
        in_file = sorted(zip(table.columns.indices[3:], QUATERNION, strict=True))
        return table.values[:, 3:], "".join(role[1] for _, role in in_file)
    if roles == ROTATION_VECTOR:
        return _of_rotation_vectors(path, table)
    return _of_matrices(path, table)


def _of_rotation_vectors(path: str | Path, table: Table) -> tuple[Array, str]:
    """Return the quaternions of rotation vectors."""
    numbers = table.values[:, 3:]
    units = list(table.columns.units[3:])
    if not any(units):
        is_turn = np.linalg.norm(numbers, axis=1).max(initial=0.0) <= MAX_ANGLE
        stated = table.columns.commented_units.get("angle")
        implausible = ["deg"] if is_turn else ["rad"]
        unit = commented_unit(path, stated, "rx", implausible=implausible) or "rad"
        units = [unit] * len(units)
    vectors = numbers / np.array([UNITS[unit] for unit in units])
    angles = np.linalg.norm(vectors, axis=1)
    too_long = np.flatnonzero(angles > MAX_ANGLE)
    if len(too_long):
        reason = (
            f"a rotation of {angles[too_long[0]]:.6g} rad is more than a full turn; rx ry rz are "
            "in rad, not in degrees, unless --columns rx[deg] or their names say so"
        )
        line = table.line(too_long[0])
        raise InputFileError(path, reason, line=line, field="rotation vector")
    return pose.quaternions(vectors), f"rotation vector in {', '.join(dict.fromkeys(units))}"


def _of_matrices(path: str | Path, table: Table) -> tuple[Array, str]:
    """Return the quaternions of rows of matrices, m00 m01 ... m22."""
    matrices = table.values[:, 3:].reshape(-1, 3, 3)
    products = matrices @ matrices.transpose(0, 2, 1)
    deviations = np.abs(products - np.eye(3)).max(axis=(1, 2), initial=0.0)
    is_wrong = (deviations > MATRIX_TOLERANCE) | (np.linalg.det(matrices) < 0.0)
    wrong = np.flatnonzero(is_wrong)
    if len(wrong):
        reason = "its 12 numbers are not a rotation matrix and a translation"
        raise InputFileError(path, reason, line=table.line(wrong[0]))
    quaternions = [pin.Quaternion(matrix).normalized().coeffs() for matrix in matrices]
    return np.array(quaternions).reshape(-1, 4), "rotation matrices"
