"""What a column of a table of poses can be."""

from __future__ import annotations

POSITION = ("x", "y", "z")
QUATERNION = ("qx", "qy", "qz", "qw")
ROTATION_VECTOR = ("rx", "ry", "rz")
# A rotation matrix, row by row.
MATRIX = tuple(f"m{row}{column}" for row in range(3) for column in range(3))

# What `--columns` can choose.
ROLES = ("t", *POSITION, *QUATERNION, *ROTATION_VECTOR)

# What a table needs, for messages.
NEEDED = (
    "'t x y z qx qy qz qw' or 't x y z rx ry rz' (s, m, unit quaternion or rotation vector in rad)"
)
NO_ROTATION = (
    "Rotations are read as quaternions or rotation vectors, and as matrices in KITTI's files and "
    "npz: convert roll, pitch and yaw first (with scipy: "
    "Rotation.from_euler('xyz', angles).as_quat()), and give positions alone a constant quaternion"
)
