"""Fits an arm's kinematic chain to the TCP poses that its controller computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pinocchio as pin

from simbridge.identification.robust import spread_rows
from simbridge.identification.target_motion import NotIdentified
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_poses
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Joints that must move, and by how much, rad: with fewer some tool makes any chain fit.
MIN_JOINTS = 3
MIN_MOTION = 0.1
# Nominal kinematics that fit as well as this are the controller's, m; UR's calibrations leave 0.1
# to 5 mm.
MAX_NOMINAL_RESIDUAL = 2e-5
# A residual above this is worse than with any calibration, so it is another arm, m.
OTHER_ARM = 0.005
# An estimated chain must leave less than this fraction of what the nominal one leaves.
MAX_RESIDUAL_FRACTION = 0.5
# Most rows that are compared.
MAX_ROWS = 1500
# Most rows from which a calibration is estimated.
MAX_CALIBRATION_ROWS = 400
# Most rows that show the scatter of the tool.
MAX_SCATTER_ROWS = 50
# Blocks of rows of which every other one is held out.
HELD_OUT_BLOCKS = 20
# Steps of the estimation of a calibration.
CALIBRATION_STEPS = 5

# How far calibrations displace a frame along and about its axes, one standard deviation, m and rad.
OFFSET_DEVIATION = 1e-3
ROTATION_DEVIATION = 5e-3
# Each joint has four parameters: the other directions hardly change, m and rad.
FIXED_DEVIATIONS = (1e-5, 1e-4)
# The directions in which each frame is displaced.
DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")
DISPLACED = ("", "x y rx", "x rx ry", "x rx ry", "x y rx", "x y rx")
# The tool is not known beforehand: m and rad.
TOOL_DEVIATION = 1.0

# Noise of poses, m and rad: what is assumed first, and the least; then that of the residuals.
FIRST_NOISE = (3e-6, 1e-5)
LEAST_NOISE = (3e-7, 1e-6)
# Standard deviation of the distance from joint 5 to the flange, which cannot be separated from the
# tool's length, m; and of some arms.
FLANGE_DEVIATION = 6e-4
FLANGE_DEVIATIONS = {"ur3e": 9e-5, "ur5e": 9e-5}
# Half a turn about z: from the pendant's base, in which the controller gives poses, to base_link.
PENDANT_BASE = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0])


class OtherArm(NotIdentified):
    """The recording is of another arm."""


@dataclass(frozen=True, eq=False)
class Kinematics:
    """Poses of a chain, compared with the controller's.

    Attributes:
        residual: RMS distance of the TCP, m; of an estimated chain, in rows that it was not
            estimated from.
        tcp: The tool in the flange's frame: x y z (m) and a rotation vector (rad).
        tcp_deviation: One standard deviation of each of them (6,).
        source: Source of the chain.
    """

    residual: float
    tcp: Array
    tcp_deviation: Array
    source: Literal["nominal", "given", "estimated"]


def fit_kinematics(robot: Robot, q: Array, poses: Array, *, given: bool = False) -> Kinematics:
    """Compare poses, with the tool estimated from them.

    Args:
        robot: The arm, nominal or with its own calibration.
        q: Measured joint positions (T, n), rad.
        poses: The controller's TCP poses (T, 6) for them in the pendant's base: x y z (m) and a
            rotation vector (rad).
        given: Whether the robot's kinematics are this arm's own; otherwise they are estimated where
            they do not fit.

    Raises:
        NotIdentified: Too few joints move, or the recording is of another arm.
    """
    _check_motion(q)
    rows = spread_rows(len(q), MAX_ROWS)
    q = q[rows]
    measured = _in_base_link(poses[rows])

    # The robot's own chain.
    chain = _chain(robot)
    tool = _fit_tool(chain, robot, q, measured)
    residual = _rms_distance(chain, robot, q, measured=measured, tool=tool)
    if residual > OTHER_ARM:
        raise OtherArm(
            f"the tool is off by {1e3 * residual:.0f} mm RMS with the kinematics of a "
            f"{robot.title or robot.name}: this is a recording of another arm"
        )
    if given or residual < MAX_NOMINAL_RESIDUAL:
        tools = [
            _as_vector(_fit_tool(chain, robot, q[[i]], measured[[i]]))
            for i in spread_rows(len(q), MAX_SCATTER_ROWS)
        ]
        source: Literal["given", "nominal"] = "given" if given else "nominal"
        return Kinematics(residual, _as_vector(tool), np.std(tools, axis=0), source)

    # An estimated chain, judged by rows that it was not estimated from.
    used = spread_rows(len(q), MAX_CALIBRATION_ROWS)
    q = q[used]
    measured = measured[used]
    distances = []
    for fold in (0, 1):
        # Blocks, not every other row: neighbours are nearly equal.
        held_out = (np.arange(len(q)) * HELD_OUT_BLOCKS // len(q)) % 2 == fold
        calibrated, _ = _calibrate(chain, tool, robot, q=q[~held_out], measured=measured[~held_out])
        attained = tool_poses(calibrated, robot.prismatic, q[held_out])
        distances.append(np.linalg.norm(attained[:, :3] - measured[held_out, :3], axis=1))
    held_out_residual = float(np.sqrt(np.mean(np.concatenate(distances) ** 2)))

    # Flange and tool within the last frame cannot be distinguished: the nominal flange is
    # kept.
    calibrated, deviation = _calibrate(chain, tool, robot, q=q, measured=measured)
    tcp = _as_vector(np.linalg.inv(chain[-1]) @ calibrated[-1])
    flange_deviation = FLANGE_DEVIATIONS.get(robot.name, FLANGE_DEVIATION)
    deviation[2] = np.hypot(deviation[2], flange_deviation)
    if held_out_residual > MAX_RESIDUAL_FRACTION * residual:
        nominal_tcp = _as_vector(tool)
        deviation = np.hypot(deviation, nominal_tcp - tcp)
        return Kinematics(residual, nominal_tcp, deviation, "nominal")
    return Kinematics(held_out_residual, tcp, deviation, "estimated")


def nominal_residual(robot: Robot, q: Array, poses: Array) -> float:
    """Return the RMS distance of the TCP with a robot's own chain and the best tool, m.

    Args:
        robot: The arm, nominal or with its own calibration.
        q: Measured joint positions (T, n), rad.
        poses: The controller's TCP poses (T, 6) for them in the pendant's base: x y z (m) and a
            rotation vector (rad).

    Raises:
        NotIdentified: Too few joints move.
    """
    _check_motion(q)
    rows = spread_rows(len(q), MAX_CALIBRATION_ROWS)
    q = q[rows]
    measured = _in_base_link(poses[rows])
    chain = _chain(robot)
    tool = _fit_tool(chain, robot, q, measured)
    return _rms_distance(chain, robot, q, measured=measured, tool=tool)


def _check_motion(q: Array) -> None:
    """Refuse joint positions (T, n), rad, of which any chain fits with some tool."""
    moving = int((np.ptp(q, axis=0) > MIN_MOTION).sum())
    if moving < MIN_JOINTS:
        raise NotIdentified(
            f"{moving or 'no'} joint{'s' * (moving > 1)} moved by more than {MIN_MOTION} rad: "
            f"with {MIN_JOINTS - 1} or fewer, any chain fits if the tool is unknown"
        )


def _chain(robot: Robot) -> Array:
    """Return the placements (n + 1, 4, 4) of a robot's joints and of its flange."""
    return np.array(
        [*(joint.placement.homogeneous for joint in robot.joints), robot.tool0.homogeneous]
    )


def _in_base_link(poses: Array) -> Array:
    """Return a controller's poses (T, 6) in the pendant's base as poses (T, 7) in base_link."""
    return pose.compose(
        PENDANT_BASE, np.concatenate([poses[:, :3], pose.quaternions(poses[:, 3:])], axis=1)
    )


def _with_tool(chain: Array, tool: Array) -> Array:
    """Return a chain that ends with the tool (4, 4) instead of the flange."""
    return np.concatenate([chain[:-1], (chain[-1] @ tool)[None]])


def _fit_tool(chain: Array, robot: Robot, q: Array, measured: Array) -> Array:
    """Return the tool (4, 4) in the flange that fits best."""
    flange = tool_poses(chain, robot.prismatic, q)
    back = pose.conjugate(flange[:, 3:])
    turns = pose.multiply(back, measured[:, 3:])
    offset = np.mean(pose.rotate(back, measured[:, :3] - flange[:, :3]), axis=0)
    return pin.SE3(pin.Quaternion(pose.mean_rotation(turns)).toRotationMatrix(), offset).homogeneous


def _rms_distance(chain: Array, robot: Robot, q: Array, *, measured: Array, tool: Array) -> float:
    """Return the RMS distance of the TCP from the measured poses (T, 7), m."""
    attained = tool_poses(_with_tool(chain, tool), robot.prismatic, q)
    return float(np.sqrt(np.mean(np.sum((attained[:, :3] - measured[:, :3]) ** 2, axis=1))))


def _calibrate(
    chain: Array, tool: Array, robot: Robot, *, q: Array, measured: Array
) -> tuple[Array, Array]:
    """Displace each frame of a chain so that the poses fit: least squares with a prior.

    Args:
        chain: Placements of the frames (n + 1, 4, 4).
        tool: The tool in the flange's frame (4, 4).
        robot: The arm.
        q: Joint positions (T, n), rad.
        measured: Poses (T, 7) in base_link.

    Returns:
        The chain with its tool (n + 1, 4, 4), and one standard deviation (6,) of the tool in the
        flange: x y z (m) and its rotation vector (rad).
    """
    placements = _with_tool(chain, tool)
    count = len(placements)
    prior = _prior_deviations(count)
    displacements = np.zeros((count, 6))
    noise = np.array(FIRST_NOISE)
    for _ in range(CALIBRATION_STEPS):
        displaced = _displace(placements, displacements)
        attained = tool_poses(displaced, robot.prismatic, q)
        offset, rotation = pose.error(measured, attained)

        # Residuals and their derivatives, in units of the noise.
        units = np.repeat(noise, 3)
        residuals = (np.concatenate([offset, rotation], axis=1) / units).ravel()
        jacobian = _frame_jacobian(displaced, robot, q, attained)
        matrix = (jacobian / units[:, None]).reshape(-1, 6 * count)

        normal = matrix.T @ matrix + np.diag(prior**-2.0)
        pull = matrix.T @ residuals - displacements.ravel() * prior**-2.0
        step = np.linalg.solve(normal, pull)
        displacements += step.reshape(count, 6)

        remainder = (residuals - matrix @ step).reshape(-1, 2, 3) * noise[:, None]
        noise = np.maximum(np.sqrt(np.mean(remainder**2, axis=(0, 2))), LEAST_NOISE)

    # The deviation of the last frame, turned into the flange.
    calibrated = _displace(placements, displacements)
    covariance = np.linalg.inv(normal)[-6:, -6:]
    rotation_in_flange = np.linalg.inv(chain[-1])[:3, :3] @ calibrated[-1][:3, :3]
    to_flange = np.zeros((6, 6))
    to_flange[:3, :3] = rotation_in_flange
    to_flange[3:, 3:] = pin.Jlog3(rotation_in_flange)
    return calibrated, np.sqrt(np.diag(to_flange @ covariance @ to_flange.T))


def _prior_deviations(count: int) -> Array:
    """Return how far frames are displaced, one standard deviation (6 count,), m and rad."""
    usual = np.repeat([OFFSET_DEVIATION, ROTATION_DEVIATION], 3)
    fixed = np.repeat(FIXED_DEVIATIONS, 3)
    frames = [
        np.where(np.isin(DIRECTIONS, DISPLACED[min(i, 5)].split()), usual, fixed)
        for i in range(count)
    ]
    prior = np.concatenate(frames)
    prior[-6:] = TOOL_DEVIATION
    return prior


def _displace(placements: Array, displacements: Array) -> Array:
    """Return placements (N, 4, 4), each displaced in its own axes (N, 6), m and rad."""
    return np.array(
        [
            placement @ pin.exp6(pin.Motion(displacement)).homogeneous
            for placement, displacement in zip(placements, displacements, strict=True)
        ]
    )


def _frame_jacobian(placements: Array, robot: Robot, q: Array, attained: Array) -> Array:
    """Return the tool's displacement (T, 6, 6 (n + 1)) by a displacement of each frame's axes."""
    rows = len(q)
    count = len(placements)
    jacobian = np.zeros((rows, 6, 6 * count))
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
            jacobian[:, :3, 6 * i + k] = axis
            jacobian[:, :3, 6 * i + 3 + k] = (
                axis[:, [1, 2, 0]] * arm[:, [2, 0, 1]] - axis[:, [2, 0, 1]] * arm[:, [1, 2, 0]]
            )
            jacobian[:, 3:, 6 * i + 3 + k] = axis
    return jacobian


def _pose_of(matrix: Array) -> Array:
    """Return a placement (4, 4) as a pose (7,)."""
    return np.concatenate([matrix[:3, 3], pin.Quaternion(matrix[:3, :3]).coeffs()])


def _as_vector(matrix: Array) -> Array:
    """Return a placement (4, 4) as x y z, m, and a rotation vector, rad (6,)."""
    return np.concatenate([matrix[:3, 3], pin.log3(matrix[:3, :3])])
