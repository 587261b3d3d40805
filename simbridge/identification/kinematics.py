"""How well an arm's chain reproduces the TCP poses that its controller computed from the same joint positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pinocchio as pin

from simbridge.identification.servoj import NotIdentified, spread
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_poses
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Joints that must move, and by how much (rad): with fewer some tool makes any chain fit.
MIN_JOINTS, MIN_MOTION = 3, 0.1
# Nominal kinematics that fit as well as this (m) are the controller's; UR's calibrations leave 0.1 to 5 mm.
_NOMINAL = 2e-5
# Worse than any calibration: another arm, m.
OTHER_ARM = 0.005
# Rows that are used at most.
_ROWS, _CALIBRATING = 1500, 400
# How far calibrations displace each frame, one standard deviation: x y z (m) and rotations about them (rad). Each joint
# has four parameters, so the other directions hardly change.
_OFFSET, _ROTATION, _LITTLE = 1e-3, 5e-3, (1e-5, 1e-4)
_DISPLACED = ("", "x y rx", "x rx ry", "x rx ry", "x y rx", "x y rx")
# Noise of poses, m and rad: what is assumed first, and the least; then it is that of what the fit leaves.
_NOISE, _LEAST_NOISE = (3e-6, 1e-5), (3e-7, 1e-6)
# Standard deviation of the distance from joint 5 to the flange, which cannot be separated from the tool's length, m.
_FLANGE, _FLANGE_OF = 6e-4, {"ur3e": 9e-5, "ur5e": 9e-5}
# Half a turn about z: from the pendant's base, in which the controller gives poses, to base_link.
_BASE = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0])


class OtherArm(NotIdentified):
    """The recording is of another arm."""


@dataclass(frozen=True, eq=False)
class Kinematics:
    """The comparison of poses."""

    residual: float  # RMS distance of the TCP, m; of an estimated chain, in rows that it was not estimated from
    tcp: Array  # the tool in the flange's frame: x y z (m) and a rotation vector (rad)
    tcp_deviation: Array  # one standard deviation of each of them (6,)
    source: Literal["nominal", "given", "estimated"]  # of the chain


def fit_kinematics(robot: Robot, q: Array, poses: Array, *, given: bool = False) -> Kinematics:
    """Compare poses, with the tool estimated from them.

    Args:
        robot: The arm, nominal or with its own calibration.
        q: Measured joint positions (T, n), rad.
        poses: The controller's TCP poses (T, 6) for them in the pendant's base: x y z (m) and a rotation vector (rad).
        given: Whether the robot's kinematics are this arm's own; otherwise they are estimated where they do not fit.

    Raises:
        NotIdentified: Too few joints move, or it is another arm.
    """
    _check_motion(q)
    rows = spread(len(q), _ROWS)
    q, measured = q[rows], _in_base_link(poses[rows])
    chain = _chain(robot)
    tool = _tool(chain, robot, q, measured)
    residual = _rms(chain, robot, q, measured, tool)
    if residual > OTHER_ARM:
        raise OtherArm(
            f"the tool is off by {1e3 * residual:.0f} mm RMS with the kinematics of a {robot.title or robot.name}: "
            "this is a recording of another arm"
        )
    if given or residual < _NOMINAL:
        scatter = np.std(
            [_as_vector(_tool(chain, robot, q[[i]], measured[[i]])) for i in spread(len(q), 50)],
            axis=0,
        )
        return Kinematics(residual, _as_vector(tool), scatter, "given" if given else "nominal")
    few = spread(len(q), _CALIBRATING)
    q, measured = q[few], measured[few]
    left = np.empty(0)
    for fold in (0, 1):
        # Blocks, not every other row: neighbours are nearly equal.
        held_out = (np.arange(len(q)) * 20 // len(q)) % 2 == fold
        own, _ = _calibrated(chain, tool, robot, q[~held_out], measured[~held_out])
        attained = tool_poses(own, robot.prismatic, q[held_out])
        left = np.concatenate(
            [left, np.linalg.norm(attained[:, :3] - measured[held_out, :3], axis=1)]
        )
    best = float(np.sqrt(np.mean(left**2)))
    whole, deviation = _calibrated(chain, tool, robot, q, measured)
    # What of the last frame is flange and what tool cannot be told apart: the nominal flange is kept.
    tcp = _as_vector(np.linalg.inv(chain[-1]) @ whole[-1])
    deviation[2] = np.hypot(deviation[2], _FLANGE_OF.get(robot.name, _FLANGE))
    if best > 0.5 * residual:
        nominal = _as_vector(tool)
        return Kinematics(residual, nominal, np.hypot(deviation, nominal - tcp), "nominal")
    return Kinematics(best, tcp, deviation, "estimated")


def nominal_residual(robot: Robot, q: Array, poses: Array) -> float:
    """RMS distance (m) of the TCP with a robot's own chain and the tool that fits best; as for `fit_kinematics`."""
    _check_motion(q)
    rows = spread(len(q), _CALIBRATING)
    q, measured = q[rows], _in_base_link(poses[rows])
    chain = _chain(robot)
    return _rms(chain, robot, q, measured, _tool(chain, robot, q, measured))


def _check_motion(q: Array) -> None:
    moved = int((np.ptp(q, axis=0) > MIN_MOTION).sum())
    if moved < MIN_JOINTS:
        raise NotIdentified(
            f"{moved or 'no'} joint{'s' * (moved > 1)} moved by more than {MIN_MOTION} rad: with {MIN_JOINTS - 1} or "
            "fewer any chain fits with some tool"
        )


def _chain(robot: Robot) -> Array:
    return np.array(
        [*(joint.placement.homogeneous for joint in robot.joints), robot.tool0.homogeneous]
    )


def _in_base_link(poses: Array) -> Array:
    """A controller's poses (T, 6) in the pendant's base as poses (T, 7) in base_link."""
    return pose.compose(
        _BASE, np.concatenate([poses[:, :3], pose.quaternions(poses[:, 3:])], axis=1)
    )


def _with_tool(chain: Array, tool: Array) -> Array:
    return np.concatenate([chain[:-1], (chain[-1] @ tool)[None]])


def _tool(chain: Array, robot: Robot, q: Array, measured: Array) -> Array:
    """The tool (4, 4) in the flange that fits best."""
    flange = tool_poses(chain, robot.prismatic, q)
    back = pose.conjugate(flange[:, 3:])
    turns = pose.multiply(back, measured[:, 3:])
    offset = np.mean(pose.rotate(back, measured[:, :3] - flange[:, :3]), axis=0)
    return pin.SE3(pin.Quaternion(pose.mean_rotation(turns)).toRotationMatrix(), offset).homogeneous


def _rms(chain: Array, robot: Robot, q: Array, measured: Array, tool: Array) -> float:
    attained = tool_poses(_with_tool(chain, tool), robot.prismatic, q)
    return float(np.sqrt(np.mean(np.sum((attained[:, :3] - measured[:, :3]) ** 2, axis=1))))


def _calibrated(
    chain: Array, tool: Array, robot: Robot, q: Array, measured: Array
) -> tuple[Array, Array]:
    """The chain with its tool (n + 1, 4, 4), each frame displaced so that the poses fit: least squares with a prior.

    Also one standard deviation (6,) of the tool in the flange: x y z (m) and its rotation vector (rad).
    """
    placements = _with_tool(chain, tool)
    count = len(placements)
    moved = np.zeros((count, 6))
    names = ("x", "y", "z", "rx", "ry", "rz")
    usual, little = np.repeat([_OFFSET, _ROTATION], 3), np.repeat(_LITTLE, 3)
    prior = np.concatenate(
        [
            np.where(np.isin(names, _DISPLACED[min(i, 5)].split()), usual, little)
            for i in range(count)
        ]
    )
    # The tool is not known beforehand.
    prior[-6:] = 1.0
    noise = np.array(_NOISE)
    for _ in range(5):
        now = np.array(
            [
                p @ pin.exp6(pin.Motion(m)).homogeneous
                for p, m in zip(placements, moved, strict=True)
            ]
        )
        attained = tool_poses(now, robot.prismatic, q)
        offset, turn = pose.error(measured, attained)
        each = np.repeat(noise, 3)
        right = (np.concatenate([offset, turn], axis=1) / each).ravel()
        matrix = (_frame_jacobian(now, robot, q, attained) / each[:, None]).reshape(-1, 6 * count)
        normal = matrix.T @ matrix + np.diag(prior**-2.0)
        step = np.linalg.solve(normal, matrix.T @ right - moved.ravel() * prior**-2.0)
        moved += step.reshape(count, 6)
        left = (right - matrix @ step).reshape(-1, 2, 3) * noise[:, None]
        noise = np.maximum(np.sqrt(np.mean(left**2, axis=(0, 2))), _LEAST_NOISE)
    whole = np.array(
        [p @ pin.exp6(pin.Motion(m)).homogeneous for p, m in zip(placements, moved, strict=True)]
    )
    own = np.linalg.inv(normal)[-6:, -6:]
    turned = np.linalg.inv(chain[-1])[:3, :3] @ whole[-1][:3, :3]
    to_flange = np.zeros((6, 6))
    to_flange[:3, :3], to_flange[3:, 3:] = turned, pin.Jlog3(turned)
    return whole, np.sqrt(np.diag(to_flange @ own @ to_flange.T))


def _frame_jacobian(placements: Array, robot: Robot, q: Array, attained: Array) -> Array:
    """The tool's displacement (T, 6, 6 (n + 1)) for a displacement of each frame in its own axes."""
    rows, count = len(q), len(placements)
    found = np.zeros((rows, 6, 6 * count))
    for i in range(count):
        # The frame itself: the chain cut off there, its last joint unmoved.
        frame = (
            tool_poses(placements[: i + 1], robot.prismatic[:i], q[:, :i])
            if i
            else np.tile(_pose_of(placements[0]), (rows, 1))
        )
        arm = attained[:, :3] - frame[:, :3]
        for k in range(3):
            axis = pose.rotate(frame[:, 3:], np.eye(3)[k])
            found[:, :3, 6 * i + k] = axis
            found[:, :3, 6 * i + 3 + k] = (
                axis[:, [1, 2, 0]] * arm[:, [2, 0, 1]] - axis[:, [2, 0, 1]] * arm[:, [1, 2, 0]]
            )
            found[:, 3:, 6 * i + 3 + k] = axis
    return found


def _pose_of(matrix: Array) -> Array:
    return np.concatenate([matrix[:3, 3], pin.Quaternion(matrix[:3, :3]).coeffs()])


def _as_vector(matrix: Array) -> Array:
    return np.concatenate([matrix[:3, 3], pin.log3(matrix[:3, :3])])
