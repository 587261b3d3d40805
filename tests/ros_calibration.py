"""ROS's files and transforms for a UR arm's Denavit-Hartenberg table.

They are written from ROS's sources and not from simbridge's.

`printed` follows ur_calibration (Calibration::correctChain and toYaml), `urdf` follows
ur_description (ur_macro.xacro).
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.robot.calibration import nominal_dh
from simbridge.robot.load import load_robot
from simbridge.robot.parts import DhTable

LINKS = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")
JOINTS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")


def _z(angle, d=0.0):
    c = np.cos(angle)
    s = np.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, d], [0, 0, 0, 1]], float)


def _x(angle, a=0.0):
    c = np.cos(angle)
    s = np.sin(angle)
    return np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]], float)


def frames(theta, a, d, alpha, *, fixed=True):
    """ur_calibration's chain (6 of (4, 4)) from the parameters (6 each): far frames are pulled back
    along their axes.

    Its version for ROS 1 took atan for atan2: not `fixed`.
    """
    turns = [_z(*row) for row in zip(theta, d, strict=True)]
    links = [_x(*row) for row in zip(alpha, a, strict=True)]
    for i in (1, 2):
        if turns[i][2, 3] == 0.0:
            continue
        root = turns[i] @ links[i]
        direction = root[:3, 2]
        along = -root[2, 3] / direction[2]
        point = root[:3, 3] + along * direction
        new = np.arctan2(point[1], point[0]) - np.pi if fixed else np.arctan(point[1] / point[0])
        links[i] = _z(theta[i] - new) @ _x(alpha[i])
        links[i][0, 3] = -np.linalg.norm(point)
        turns[i] = _z(new)
        turns[i + 1][2, 3] -= along
    return [turns[0], *(links[i] @ turns[i + 1] for i in range(5))]


def angles(rotation, *, eigen=True):
    """R = Rx(roll) Ry(pitch) Rz(yaw); with `eigen`, roll is from 0 to pi, as Eigen chooses it."""
    roll = np.arctan2(-rotation[1, 2], rotation[2, 2])
    pitch = np.arcsin(np.clip(rotation[0, 2], -1.0, 1.0))
    yaw = np.arctan2(-rotation[0, 1], rotation[0, 0])
    if eigen and roll < 0.0:
        roll = roll + np.pi
        pitch = np.pi - pitch
        yaw = yaw - np.copysign(np.pi, yaw)
        pitch -= 2.0 * np.pi * (pitch > np.pi)
    return roll, pitch, yaw


def printed(theta, a, d, alpha, *, eigen=True, fixed=True):
    """x, y, z, roll, pitch, yaw of the six links (6, 6), as in my_robot_calibration.yaml."""
    return np.array(
        [
            [*f[:3, 3], *angles(f[:3, :3], eigen=eigen)]
            for f in frames(theta, a, d, alpha, fixed=fixed)
        ]
    )


def write(path: Path, rows, name="calib_12345678901234567890") -> Path:
    """A file as yaml-cpp writes it."""
    lines = ["kinematics:"]
    for link, row in zip(LINKS, rows, strict=True):
        lines.append(f"  {link}:")
        fields = zip(("x", "y", "z", "roll", "pitch", "yaw"), row, strict=True)
        lines += [f"    {field}: {value:.17g}" for field, value in fields]
    path.write_text("\n".join([*lines, *([f"  hash: {name}"] if name else [])]))
    return path


def urdf(rows) -> str:
    """The URDF that ur_description makes of such a file: its kinematics."""
    links = [
        "base_link",
        "base_link_inertia",
        *(f"{link}_link" for link in LINKS),
        "flange",
        "tool0",
    ]
    half = np.pi / 2
    text = [f'<link name="{link}"/>' for link in links]
    fixed = [
        ("base_link-base_link_inertia", "base_link", "base_link_inertia", (0, 0, np.pi)),
        ("wrist_3-flange", "wrist_3_link", "flange", (0, -half, -half)),
        ("flange-tool0", "flange", "tool0", (half, 0, half)),
    ]
    for joint, parent, child, rpy in fixed:
        text.append(_joint(joint, "fixed", parent, child, (0, 0, 0), rpy))
    for joint, parent, child, row in zip(JOINTS, links[1:], links[2:], rows, strict=False):
        text.append(_joint(f"{joint}_joint", "continuous", parent, child, row[:3], row[3:]))
    return "\n".join(['<robot name="ur">', *text, "</robot>"])


def _joint(name, kind, parent, child, xyz, rpy):
    xyz, rpy = (" ".join(f"{value:.17g}" for value in values) for values in (xyz, rpy))
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 0 1"/></joint>'
    )


def urdf_tools(rows, q):
    """tool0 in base_link (K, 4, 4) at joint positions (K, 6), by pinocchio on ROS's URDF."""
    model = pin.buildModelFromXML(urdf(rows))
    data = model.createData()
    frame = model.getFrameId("tool0")
    poses = []
    for joints in q:
        # A continuous joint of pinocchio is a cosine and a sine.
        turns = np.column_stack([np.cos(joints), np.sin(joints)]).ravel()
        pin.framesForwardKinematics(model, data, turns)
        poses.append(data.oMf[frame].homogeneous)
    return np.array(poses)


ROWS = ("theta", "a", "d", "alpha")


def rows_of(table, **choices):
    """The rows that ur_calibration prints of a Denavit-Hartenberg table."""
    return printed(*(getattr(table, name) for name in ROWS), **choices)


@functools.cache
def _nominal(name):
    return nominal_dh(load_robot(name))


def deltas(name, seed, angle=1e-3, length=1e-3):
    """A table that differs from the nominal one in every parameter that ur_calibration keeps."""
    rng = np.random.default_rng(seed)
    nominal = _nominal(name)
    table = {row: np.array(getattr(nominal, row)) for row in ROWS}
    for row, by in zip(ROWS, (angle, length, length, angle), strict=True):
        table[row] = table[row] + rng.uniform(-by, by, 6)
    table["a"][5] = 0.0
    table["alpha"][5] = 0.0
    return DhTable(**{row: tuple(values.tolist()) for row, values in table.items()})
