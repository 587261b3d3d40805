"""The Denavit-Hartenberg table of the arm that a calibration file of ROS was measured on."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter
from simbridge.robot.calibration import joint_frames
from simbridge.robot.parts import DhTable, RosCalibration

# Axes within this angle, rad, or distance, m, are taken for parallel, or for one; those of real
# arms are milliradians apart.
PARALLEL = 1e-9


def printed_table(calibration: RosCalibration) -> DhTable:
    """Return the table of the arm that was measured: of the frames as they were printed.

    Each row follows from the common normal of two axes. The table need not be the one that
    ur_calibration read: other ones describe the same arm.

    Raises:
        InvalidParameter: The first axis is not that of the base, so that no table begins there.
    """
    origins = np.array([frame[:3] for frame in calibration.frames])
    first, *others = joint_frames(calibration, as_printed=True)
    tilt = abs(first.rotation[:2, 2]).max()
    offset = abs(origins[0, :2]).max()
    if max(tilt, offset) > PARALLEL:
        value = f"{origins[0, 0]:.3g} {origins[0, 1]:.3g} m beside it, or tilted"
        raise InvalidParameter("first joint's axis", value, "the z axis of the base")

    rows = []
    # The frame of a table's row: on the axis, where the previous row ends.
    row_frame = pin.SE3.Identity()
    # The joint's frame as it is.
    joint_frame = first
    for frame in others:
        joint_frame = joint_frame * frame
        z = row_frame.rotation[:, 2]
        next_z = joint_frame.rotation[:, 2]
        between = joint_frame.translation - row_frame.translation

        # The common normal of this axis and the next.
        normal = np.cross(z, next_z)
        is_parallel = np.linalg.norm(normal) < PARALLEL
        if is_parallel:
            normal = between - (z @ between) * z
        normal = normal / np.linalg.norm(normal)
        # The smaller of the two turns about z that lead along the normal.
        normal *= np.copysign(1.0, normal @ row_frame.rotation[:, 0])

        theta = np.arctan2(normal @ row_frame.rotation[:, 1], normal @ row_frame.rotation[:, 0])
        alpha = np.arctan2(np.cross(z, next_z) @ normal, z @ next_z)
        if is_parallel:
            d = 0.0
            a = normal @ between
        else:
            d, a, _ = np.linalg.solve(np.column_stack([z, normal, -next_z]), between)
        rows.append((theta, a, d, alpha))

        turn = pin.utils.rotate("z", theta)
        onward = turn @ np.array([a, 0.0, d])
        row_frame = row_frame * pin.SE3(turn @ pin.utils.rotate("x", alpha), onward)

    # What is left to the last joint's frame is a turn about its axis and a shift along it.
    last = row_frame.actInv(joint_frame)
    theta = np.arctan2(last.rotation[1, 0], last.rotation[0, 0])
    rows.append((theta, 0.0, last.translation[2], 0.0))

    columns = [tuple(map(float, column)) for column in zip(*rows, strict=True)]
    return DhTable(*columns)
