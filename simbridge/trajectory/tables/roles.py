"""The roles that a column of a table of poses can have."""

from __future__ import annotations

import re

POSITION = ("x", "y", "z")
QUATERNION = ("qx", "qy", "qz", "qw")
# The quaternion in the order of EuRoC and ASL.
QUATERNION_W_FIRST = ("qw", "qx", "qy", "qz")
ROTATION_VECTOR = ("rx", "ry", "rz")
# A rotation matrix, row by row.
MATRIX = tuple(f"m{row}{column}" for row in range(3) for column in range(3))

# What `--columns` can choose of a pose.
ROLES = ("t", *POSITION, *QUATERNION, *ROTATION_VECTOR)
# The position of a joint, numbered from the base: j1, j2, ...
_JOINT_ROLE = re.compile(r"j[1-9]\d?")

# What a table needs, for messages.
NEEDED = (
    "'t x y z qx qy qz qw' or 't x y z rx ry rz' (s, m, unit quaternion or rotation vector in rad)"
)
NO_ROTATION = (
    "A pose needs a rotation, as a quaternion or a rotation vector (in KITTI's files and npz also "
    "as a matrix). Convert roll, pitch and yaw first (with SciPy: Rotation.from_euler('xyz', "
    "angles).as_quat(), with the convention of the file). If there are only positions, add a "
    "constant quaternion to the file, as four columns qx, qy, qz, qw: 1, 0, 0, 0 is a tool that "
    "points down"
)


def joint_roles(count: int) -> tuple[str, ...]:
    """Return the roles of the joints of an arm with `count` joints: j1, j2, ..."""
    return tuple(f"j{number}" for number in range(1, count + 1))


def is_joint_role(role: str) -> bool:
    """Return whether a role is the position of a joint."""
    return _JOINT_ROLE.fullmatch(role) is not None
