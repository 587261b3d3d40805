"""Compares an arm's kinematic chain with the TCP poses that its controller computed.

The tool is not known, so it is estimated from the poses. If the chain does not fit them, the arm's
calibration is estimated as well.
"""

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

# Number of joints that must move: with fewer, any chain fits if the tool is unknown.
MIN_JOINTS = 3
# Range of a joint's positions from which on it moves, rad.
MIN_MOTION = 0.1
# RMS distance of the TCP up to which the nominal chain is the controller's, m. Under a nominal
# chain the calibrations of UR arms leave 0.1 to 5 mm.
MAX_NOMINAL_RESIDUAL = 2e-5
# RMS distance of the TCP, m, above which the recording is of another arm: calibrations leave less.
OTHER_ARM_RESIDUAL = 0.005
# Largest residual of an estimated chain, as a fraction of the nominal chain's.
MAX_RESIDUAL_FRACTION = 0.5
# Largest number of rows that are compared.
MAX_ROWS = 1500
# Largest number of rows from which a calibration is estimated.
MAX_CALIBRATION_ROWS = 400
# Largest number of rows that show the scatter of the tool.
MAX_SCATTER_ROWS = 50
# Number of blocks of rows, half of which are held out.
HELD_OUT_BLOCKS = 20
# Number of Gauss-Newton steps in the estimation of a calibration.
CALIBRATION_STEPS = 5

# Standard deviation of the displacement of a frame along an axis by a calibration, m.
OFFSET_DEVIATION = 1e-3
# Standard deviation of the rotation of a frame about an axis by a calibration, rad.
ROTATION_DEVIATION = 5e-3
# Standard deviations in the directions that a calibration hardly changes, m and rad.
FIXED_DEVIATIONS = (1e-5, 1e-4)
# Names of the directions in which a frame can be displaced.
DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")
# Directions in which a calibration displaces the frame of each joint.
DISPLACED = ("", "x y rx", "x rx ry", "x rx ry", "x y rx", "x y rx")
# Standard deviation of the tool, which is not known beforehand, m and rad.
TOOL_DEVIATION = 1.0

# Noise of the poses that is assumed in the first step, m and rad; later it is that of the
# residuals.
FIRST_NOISE = (3e-6, 1e-5)
# Smallest noise of the poses, m and rad.
LEAST_NOISE = (3e-7, 1e-6)
# Standard deviation of the distance from joint 5 to the flange, which a recording cannot separate
# from the length of the tool, m.
FLANGE_DEVIATION = 6e-4
# Standard deviation of that distance for arms that are made more accurately, m.
FLANGE_DEVIATIONS = {"ur3e": 9e-5, "ur5e": 9e-5}
# The pose (7,) of the pendant's base in base_link: half a turn about z. Controllers give poses in
# the pendant's base.
PENDANT_BASE = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
# Index of the z component in a tool as a vector: along the flange's axis.
TOOL_Z = 2


class OtherArm(NotIdentified):
    """The recording is of another arm."""


@dataclass(frozen=True, eq=False)
class Kinematics:
    """Result of the comparison of a chain's TCP poses with the controller's.

    Attributes:
        residual: RMS distance of the TCP, m; for an estimated chain, in rows that it was not
            estimated from.
        tcp: The tool in the flange's frame (6,): x y z (m) and a rotation vector (rad).
        tcp_deviation: One standard deviation of each component of the tool (6,), m and rad.
        source: Source of the chain: "given" for a calibrated robot's own, "nominal" for the robot
            type's, "estimated" for one that was calibrated from the poses.
    """

    residual: float
    tcp: Array
    tcp_deviation: Array
    source: Literal["nominal", "given", "estimated"]


def fit_kinematics(
    robot: Robot, q: Array, poses: Array, *, is_calibrated: bool = False
) -> Kinematics:
    """Fit the tool, and the calibration if necessary, to the TCP poses of a controller.

    Args:
        robot: The arm, with nominal kinematics or with its calibration.
        q: Measured joint positions (T, n), rad.
        poses: TCP poses that the controller computed from these positions (T, 6), in the pendant's
            base: x y z (m) and a rotation vector (rad).
        is_calibrated: Whether the robot has the calibration of this very arm; otherwise one is
            estimated if the nominal chain does not fit.

    Raises:
        NotIdentified: Too few joints move, or the recording is of another arm.
    """
    _check_motion(q)
    rows = spread_rows(len(q), MAX_ROWS)
    q = q[rows]
    measured = _in_base_link(poses[rows])

    # Compare the robot's chain, with the tool that fits best.
    chain = _chain(robot)
    tool = _fit_tool(chain, robot, q, measured)
    residual = _rms_distance(chain, robot, q, measured=measured, tool=tool)
    if residual > OTHER_ARM_RESIDUAL:
        raise OtherArm(
            f"the tool is off by {1e3 * residual:.0f} mm RMS with the kinematics of a "
            f"{robot.title or robot.name}: this is a recording of another arm"
        )
    if not is_calibrated and residual >= MAX_NOMINAL_RESIDUAL:
        return _fit_calibration(chain, tool, robot, q=q, measured=measured, residual=residual)

    # The chain fits: each row alone gives a tool, and their scatter is the uncertainty.
    tools = [
        _as_vector(_fit_tool(chain, robot, q[[i]], measured[[i]]))
        for i in spread_rows(len(q), MAX_SCATTER_ROWS)
    ]
    source: Literal["given", "nominal"] = "given" if is_calibrated else "nominal"
    return Kinematics(residual, _as_vector(tool), np.std(tools, axis=0), source)


def _fit_calibration(
    chain: Array, tool: Array, robot: Robot, *, q: Array, measured: Array, residual: float
) -> Kinematics:
    """Estimate a calibration, and use it if it fits clearly better than the nominal chain.

    Args:
        chain: Nominal placements of the frames (n + 1, 4, 4).
        tool: The tool in the flange's frame (4, 4) that fits best with this chain.
        robot: The arm.
        q: Joint positions (T, n), rad.
        measured: Poses (T, 7) in base_link.
        residual: RMS distance of the TCP with this chain and tool, m.
    """
    # The recording cannot tell the flange from the tool, since both move with the last joint. So
    # the nominal flange is kept, and its uncertainty becomes the tool's.
    rows = spread_rows(len(q), MAX_CALIBRATION_ROWS)
    q = q[rows]
    measured = measured[rows]
    calibrated, deviation = _calibrate(chain, tool, robot, q=q, measured=measured)
    tcp = _as_vector(np.linalg.inv(chain[-1]) @ calibrated[-1])
    flange_deviation = FLANGE_DEVIATIONS.get(robot.name, FLANGE_DEVIATION)
    deviation[TOOL_Z] = np.hypot(deviation[TOOL_Z], flange_deviation)

    # A calibration must also fit rows that it was not estimated from. If it hardly fits these
    # better than the nominal chain does, keep that chain; the difference between the two tools
    # counts as uncertainty.
    held_out_residual = _held_out_residual(chain, tool, robot, q=q, measured=measured)
    if held_out_residual > MAX_RESIDUAL_FRACTION * residual:
        nominal_tcp = _as_vector(tool)
        deviation = np.hypot(deviation, nominal_tcp - tcp)
        return Kinematics(residual, nominal_tcp, deviation, "nominal")
    return Kinematics(held_out_residual, tcp, deviation, "estimated")


def nominal_residual(robot: Robot, q: Array, poses: Array) -> float:
    """Return the RMS distance of the TCP with a robot's chain and the tool that fits best, m.

    Args:
        robot: The arm, with nominal kinematics or with its calibration.
        q: Measured joint positions (T, n), rad.
        poses: TCP poses that the controller computed from these positions (T, 6), in the pendant's
            base: x y z (m) and a rotation vector (rad).

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


def estimate_tool(robot: Robot, q: Array, poses: Array) -> pin.SE3:
    """Return the tool in the flange's frame with which a robot's chain fits TCP poses best.

    Args:
        robot: The arm, with nominal kinematics or with its calibration.
        q: Measured joint positions (T, n), rad.
        poses: TCP poses that the controller computed from these positions (T, 6), in the pendant's
            base: x y z (m) and a rotation vector (rad).
    """
    rows = spread_rows(len(q), MAX_CALIBRATION_ROWS)
    return pin.SE3(_fit_tool(_chain(robot), robot, q[rows], _in_base_link(poses[rows])))


def _held_out_residual(
    chain: Array, tool: Array, robot: Robot, *, q: Array, measured: Array
) -> float:
    """Return the RMS distance of the TCP in rows that a calibration is not estimated from, m.

    Each half of the rows is predicted by a calibration that is estimated from the other half.

    Args:
        chain: Nominal placements of the frames (n + 1, 4, 4).
        tool: The tool in the flange's frame (4, 4).
        robot: The arm.
        q: Joint positions (T, n), rad.
        measured: Poses (T, 7) in base_link.
    """
    # The halves consist of blocks: single rows would be nearly equal to their neighbours in the
    # other half.
    block = np.arange(len(q)) * HELD_OUT_BLOCKS // len(q)

    distances = []
    for half in (0, 1):
        held_out = block % 2 == half
        calibrated, _ = _calibrate(chain, tool, robot, q=q[~held_out], measured=measured[~held_out])
        attained = tool_poses(calibrated, robot.prismatic, q[held_out])
        distances.append(np.linalg.norm(attained[:, :3] - measured[held_out, :3], axis=1))
    return float(np.sqrt(np.mean(np.concatenate(distances) ** 2)))


def _check_motion(q: Array) -> None:
    """Refuse joint positions (T, n), rad, in which too few joints move to judge a chain."""
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
    """Return the tool in the flange's frame (4, 4) that fits measured poses (T, 7) best."""
    # The tool of each row in the flange's frame: offsets (T, 3) and rotations (T, 4).
    flange = tool_poses(chain, robot.prismatic, q)
    to_flange = pose.conjugate(flange[:, 3:])
    offsets = pose.rotate(to_flange, measured[:, :3] - flange[:, :3])
    rotations = pose.multiply(to_flange, measured[:, 3:])

    rotation = pin.Quaternion(pose.mean_rotation(rotations)).toRotationMatrix()
    return pin.SE3(rotation, np.mean(offsets, axis=0)).homogeneous


def _rms_distance(chain: Array, robot: Robot, q: Array, *, measured: Array, tool: Array) -> float:
    """Return the RMS distance of the TCP from the measured poses (T, 7), m."""
    attained = tool_poses(_with_tool(chain, tool), robot.prismatic, q)
    return float(np.sqrt(np.mean(np.sum((attained[:, :3] - measured[:, :3]) ** 2, axis=1))))


def _calibrate(
    chain: Array, tool: Array, robot: Robot, *, q: Array, measured: Array
) -> tuple[Array, Array]:
    """Displace each frame of a chain so that the poses fit, by least squares with a prior.

    Args:
        chain: Nominal placements of the frames (n + 1, 4, 4).
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
    prior_weights = _prior_deviations(count) ** -2.0
    displacements = np.zeros((count, 6))
    noise = np.array(FIRST_NOISE)
    for _ in range(CALIBRATION_STEPS):
        displaced = _displace(placements, displacements)
        attained = tool_poses(displaced, robot.prismatic, q)
        offset, rotation = pose.error(measured, attained)

        # The residuals (6 T,) and their derivatives (6 T, 6 (n + 1)), in units of the noise.
        units = np.repeat(noise, 3)
        residuals = (np.concatenate([offset, rotation], axis=1) / units).ravel()
        jacobian = _frame_jacobian(displaced, robot, q, attained)
        matrix = (jacobian / units[:, None]).reshape(-1, 6 * count)

        # The normal equations, in which the prior pulls the displacements towards zero.
        normal = matrix.T @ matrix + np.diag(prior_weights)
        right_side = matrix.T @ residuals - displacements.ravel() * prior_weights
        step = np.linalg.solve(normal, right_side)
        displacements += step.reshape(count, 6)

        # The noise is the RMS of the residuals that remain after the step, of translation and of
        # rotation.
        remainder = (residuals - matrix @ step).reshape(-1, 2, 3) * noise[:, None]
        noise = np.maximum(np.sqrt(np.mean(remainder**2, axis=(0, 2))), LEAST_NOISE)

    # The covariance of all displacements is the inverse of the normal matrix; the tool's six are
    # the last.
    calibrated = _displace(placements, displacements)
    tool_covariance = np.linalg.inv(normal)[-6:, -6:]
    rotation_in_flange = np.linalg.inv(chain[-1])[:3, :3] @ calibrated[-1][:3, :3]
    return calibrated, _tool_deviations(tool_covariance, rotation_in_flange)


def _tool_deviations(covariance: Array, rotation: Array) -> Array:
    """Return one standard deviation (6,) of the tool in the flange: x y z, m, rotation vector, rad.

    Args:
        covariance: Covariance of the tool's displacement along and about its own axes (6, 6).
        rotation: Rotation of the tool in the flange (3, 3).
    """
    # The derivatives of x y z and of the rotation vector with respect to that displacement.
    derivatives = np.zeros((6, 6))
    derivatives[:3, :3] = rotation
    derivatives[3:, 3:] = pin.Jlog3(rotation)
    return np.asarray(np.sqrt(np.diag(derivatives @ covariance @ derivatives.T)))


def _prior_deviations(count: int) -> Array:
    """Return the standard deviations of the displacements of frames (6 count,), m and rad."""
    usual_deviations = np.repeat([OFFSET_DEVIATION, ROTATION_DEVIATION], 3)
    fixed_deviations = np.repeat(FIXED_DEVIATIONS, 3)
    frames = [
        np.where(
            np.isin(DIRECTIONS, DISPLACED[min(i, 5)].split()), usual_deviations, fixed_deviations
        )
        for i in range(count)
    ]
    prior = np.concatenate(frames)
    prior[-6:] = TOOL_DEVIATION
    return prior


def _displace(placements: Array, displacements: Array) -> Array:
    """Displace placements (N, 4, 4), each along and about its axes (N, 6), m and rad."""
    return np.array(
        [
            placement @ pin.exp6(pin.Motion(displacement)).homogeneous
            for placement, displacement in zip(placements, displacements, strict=True)
        ]
    )


def _frame_jacobian(placements: Array, robot: Robot, q: Array, attained: Array) -> Array:
    """Return the derivatives (T, 6, 6 N) of the tool's pose with respect to frame displacements.

    Args:
        placements: Placements of the frames (N, 4, 4), the last one the tool's.
        robot: The arm.
        q: Joint positions (T, n), rad.
        attained: Poses of the tool at these positions (T, 7).
    """
    rows = len(q)
    count = len(placements)
    jacobian = np.zeros((rows, 6, 6 * count))
    for i in range(count):
        # The poses of the frame (T, 7) before its own joint moves it.
        if i == 0:
            frame = np.tile(_pose_of(placements[0]), (rows, 1))
        else:
            frame = tool_poses(placements[: i + 1], robot.prismatic[:i], q[:, :i])

        # A rotation about an axis of the frame moves the tool by axis x lever.
        lever = attained[:, :3] - frame[:, :3]
        for k in range(3):
            axis = pose.rotate(frame[:, 3:], np.eye(3)[k])
            jacobian[:, :3, 6 * i + k] = axis
            jacobian[:, :3, 6 * i + 3 + k] = (
                axis[:, [1, 2, 0]] * lever[:, [2, 0, 1]] - axis[:, [2, 0, 1]] * lever[:, [1, 2, 0]]
            )
            jacobian[:, 3:, 6 * i + 3 + k] = axis
    return jacobian


def _pose_of(matrix: Array) -> Array:
    """Return a placement (4, 4) as a pose (7,)."""
    return np.concatenate([matrix[:3, 3], pin.Quaternion(matrix[:3, :3]).coeffs()])


def _as_vector(matrix: Array) -> Array:
    """Return a placement (4, 4) as x y z, m, and a rotation vector, rad (6,)."""
    return np.concatenate([matrix[:3, 3], pin.log3(matrix[:3, :3])])
