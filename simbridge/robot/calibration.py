"""The kinematics of one individual arm: a Denavit-Hartenberg table, or joint frames of ROS.

A Denavit-Hartenberg table has to put each joint's frame at the common normal of two axes. The axes
of shoulder, elbow and first wrist joint of a real arm are parallel except for a few milliradians:
their common normals are hundreds of metres away. But along and about its own axis a joint's frame
is free: T_i = (A_i R(q_i) A_i^-1) T_i for every A_i that slides along and turns about that axis. So
each frame is moved back to where the nominal arm has it, and the axes and the tool move by rounding
only.

ROS's ur_calibration prints each joint's rotation as R = Rx(roll) Ry(pitch) Rz(yaw) (Eigen's
eulerAngles(0, 1, 2)); ur_description puts the same three numbers into a URDF, where they mean
R = Rz(yaw) Ry(pitch) Rx(roll). So the arm of ROS's URDF is not quite the arm that was measured: 2
to 50 um and 2 to 135 urad off at the tool, on seven real arms. The chain used here is that of the
URDF, as in every ROS program with this file; the other reading only decides whether the file
belongs to the arm behind a controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter
from simbridge.robot.parts import DhTable, RosCalibration
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# What differs less is the same, m and rad: URSim reports the nominal table with nine digits.
SAME = 1e-9
# Arms of one model differ by a few mm and mrad; the most alike models, the UR3 and the UR3e, by
# 19 mm.
MAX_DISTANCE_M = 0.01
MAX_ANGLE_RAD = 0.1


@dataclass(frozen=True)
class Deviation:
    """Deviation of a calibrated frame from the nominal one, both relative to the previous frame.

    Attributes:
        name: Name of the joint whose frame it is, or "tool0".
        distance: Distance between the origins, m.
        angle: Angle between the orientations, rad.
    """

    name: str
    distance: float
    angle: float

    @property
    def relative(self) -> float:
        """The larger of both, as a fraction of what it may be for an arm of the same model."""
        return max(self.distance / MAX_DISTANCE_M, self.angle / MAX_ANGLE_RAD)


def nominal_dh(robot: Robot) -> DhTable:
    """Return the table of an arm whose chain consists of such transforms (every robots/*.toml)."""
    frames = [joint.placement for joint in robot.joints[1:]]
    frames.append(robot.tool0)
    return DhTable(
        theta=(0.0,) * robot.n,
        a=tuple(float(frame.translation[0]) for frame in frames),
        d=tuple(float(frame.translation[2]) for frame in frames),
        alpha=tuple(float(np.arctan2(f.rotation[2, 1], f.rotation[1, 1])) for f in frames),
    )


def with_dh(robot: Robot, table: DhTable) -> Robot:
    """Return the arm with another table.

    Kinematics only, so for poses but not for dynamics or collisions.
    """
    return _with_chain(robot, [robot.joints[0].placement, *_dh_frames(table)])


def calibrate(robot: Robot, calibration: DhTable | RosCalibration) -> Robot:
    """Return the arm with its axes and flange as calibrated.

    Its links are where the nominal arm has them: shapes, masses, joint limits, `home` and
    `file_home` stay as they are, in frames within a few mm of the nominal ones. Joint positions
    mean the same as to the controller that reported the calibration.

    Args:
        robot: The nominal arm.
        calibration: Calibration of the individual arm.

    Returns:
        The arm; `robot` itself for a calibration that is nominal to the ninth digit.

    Raises:
        InvalidParameter: The calibration is that of another model, or the arm has another one.
    """
    if robot.calibration == calibration:
        return robot
    if robot.calibration is not None:
        raise InvalidParameter("robot", "a calibrated one", "an arm with nominal kinematics")

    rows = len(calibration.d if isinstance(calibration, DhTable) else calibration.frames)
    if rows != robot.n or robot.prismatic.any():
        needed = f"for the {robot.n} joints of {robot.name}"
        raise InvalidParameter("kinematic table", f"one for {rows} joints", needed)
    if isinstance(calibration, DhTable) and _is_nominal(calibration, nominal_dh(robot)):
        return robot

    # The chain, with each joint's frame where the nominal arm has it.
    first, *others = calibrated_chain(calibration)
    chain = anchor_chain([_base(robot) * first, *others], _chain(robot))
    arm = _with_chain(robot, chain)

    worst = max(deviations(robot, arm), key=lambda deviation: deviation.relative)
    if worst.relative > 1.0:
        distance = f"{worst.distance * 1e3:.0f} mm"
        angle = f"{np.degrees(worst.angle):.1f} degrees"
        raise InvalidParameter(
            "kinematic table",
            f"{distance} and {angle} off at {worst.name}",
            f"that of a {robot.title or robot.name}, within {MAX_DISTANCE_M * 1e3:.0f} mm of the "
            "nominal one",
        )
    if worst.distance <= SAME and worst.angle <= SAME:
        return robot
    return replace(arm, calibration=calibration)


def _is_nominal(table: DhTable, nominal: DhTable) -> bool:
    """Return whether a table is the nominal one to the ninth digit."""
    columns = zip(vars(table).values(), vars(nominal).values(), strict=True)
    return all(
        np.allclose(column, nominal_column, rtol=0.0, atol=SAME)
        for column, nominal_column in columns
    )


def deviations(nominal: Robot, arm: Robot) -> tuple[Deviation, ...]:
    """Return how an arm differs from another of its model.

    Returns:
        The deviation of each joint's frame, then of tool0, in the previous joint's frame.
    """
    return chain_deviations((*nominal.joint_names, "tool0"), _chain(nominal), _chain(arm))


def chain_deviations(
    names: Sequence[str], nominal: Sequence[pin.SE3], chain: Sequence[pin.SE3]
) -> tuple[Deviation, ...]:
    """Return how far each frame of a chain is from that of a nominal one.

    Args:
        names: Names of the frames.
        nominal: The nominal frames, each in the previous one.
        chain: The frames, the same.
    """
    frame_deviations = []
    for name, nominal_frame, frame in zip(names, nominal, chain, strict=True):
        difference = nominal_frame.actInv(frame)
        distance = float(np.linalg.norm(difference.translation))
        angle = float(np.linalg.norm(pin.log3(difference.rotation)))
        frame_deviations.append(Deviation(name, distance, angle))
    return tuple(frame_deviations)


def chain_from_base(robot: Robot) -> list[pin.SE3]:
    """Return the chain of an arm, n + 1 frames as of `calibrated_chain`."""
    if robot.calibration is not None:
        return calibrated_chain(robot.calibration)
    first, *others = _chain(robot)
    return [_base(robot).inverse() * first, *others]


def calibrated_chain(calibration: DhTable | RosCalibration) -> list[pin.SE3]:
    """Return the chain that a calibration states.

    Returns:
        n + 1 frames, each in the one before it, from the pendant's base to tool0.
    """
    if isinstance(calibration, RosCalibration):
        return [*joint_frames(calibration), pin.SE3.Identity()]
    return [pin.SE3.Identity(), *_dh_frames(calibration)]


def joint_frames(calibration: RosCalibration, *, as_printed: bool = False) -> list[pin.SE3]:
    """Return each joint's frame at position zero in the previous joint's frame.

    The first is in the pendant's base.

    Args:
        calibration: The frames of the file.
        as_printed: False for the frames of ROS's URDF, True for those that ur_calibration printed
            (see the module).
    """
    frames = []
    for x, y, z, roll, pitch, yaw in calibration.frames:
        about_x = pin.utils.rotate("x", roll)
        about_y = pin.utils.rotate("y", pitch)
        about_z = pin.utils.rotate("z", yaw)
        turns = (about_x, about_y, about_z) if as_printed else (about_z, about_y, about_x)
        first, second, third = turns
        rotation = first @ second @ third
        frames.append(pin.SE3(rotation, np.array([x, y, z])))
    return frames


def anchor_chain(chain: list[pin.SE3], nominal: list[pin.SE3]) -> list[pin.SE3]:
    """Return the same chain, with its frames where the nominal arm has them.

    Each joint's frame is moved along and about its own axis.

    Args:
        chain: n + 1 frames, each in the one before it.
        nominal: The nominal arm's n + 1 frames, each in the one before it.
    """
    frames = []
    # The frame as the chain has it, in the frame where it was moved to.
    moved_back = pin.SE3.Identity()
    for i, nominal_frame in enumerate(nominal[:-1]):
        frame = moved_back * chain[i]
        offset = nominal_frame.translation - frame.translation
        slide = _along_z(float(frame.rotation[:, 2] @ offset))
        turn = _about_z(_link_turn(slide.inverse() * chain[i + 1], nominal[i + 1]))
        anchor = slide * turn
        frames.append(frame * anchor)
        moved_back = anchor.inverse()
    return [*frames, moved_back * chain[-1]]


def _link_turn(actual: pin.SE3, nominal: pin.SE3) -> float:
    """Return the angle of a link about its joint's axis, rad.

    Args:
        actual: The next joint's frame, anywhere on its axis.
        nominal: The nominal arm's next joint frame.
    """
    axis = actual.rotation[:, 2]
    nominal_axis = nominal.rotation[:, 2]
    # The next axis is inclined to the joint's: it points as the nominal one does.
    if np.hypot(*nominal_axis[:2]) > 0.5:
        return _angle_about_z(nominal_axis, axis)

    is_offset = np.hypot(*nominal.translation[:2]) > 1e-3
    if is_offset and abs(axis[2]) > 0.5:
        # Nearly parallel axes: the next one passes the nominal point's height in its direction.
        rise = (nominal.translation[2] - actual.translation[2]) / axis[2]
        return _angle_about_z(nominal.translation, actual.translation + rise * axis)

    # Nearly one axis: the links are turned alike.
    difference = actual.rotation @ nominal.rotation.T
    sine = difference[1, 0] - difference[0, 1]
    cosine = difference[0, 0] + difference[1, 1]
    return float(np.arctan2(sine, cosine))


def _angle_about_z(start: Array, end: Array) -> float:
    """Return the angle from one vector (3,) to another, both projected along z, rad."""
    return float(np.arctan2(start[0] * end[1] - start[1] * end[0], start[:2] @ end[:2]))


def _base(robot: Robot) -> pin.SE3:
    """Return the pendant's base in base_link, of a nominal arm.

    A URDF's first joint may be above it.
    """
    first = robot.joints[0].placement
    return first * _along_z(first.inverse().translation[2])


def _chain(robot: Robot) -> list[pin.SE3]:
    """Return the frame of each joint in the one before it, then tool0 in the last."""
    return [*(joint.placement for joint in robot.joints), robot.tool0]


def _with_chain(robot: Robot, chain: list[pin.SE3]) -> Robot:
    """Return the arm with another chain, as of `_chain`."""
    placements = zip(robot.joints, chain[:-1], strict=True)
    joints = tuple(replace(joint, placement=placement) for joint, placement in placements)
    return replace(robot, joints=joints, tool0=chain[-1])


def _dh_frames(table: DhTable) -> list[pin.SE3]:
    """Return the frame after each joint at position zero, in the joint's own.

    There are n of them; the last is tool0.
    """
    frames = []
    for theta, a, d, alpha in zip(table.theta, table.a, table.d, table.alpha, strict=True):
        onward = pin.SE3(pin.utils.rotate("x", alpha), np.array([a, 0.0, d]))
        frames.append(_about_z(theta) * onward)
    return frames


def _along_z(distance: float) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array([0.0, 0.0, distance]))


def _about_z(angle: float) -> pin.SE3:
    return pin.SE3(pin.utils.rotate("z", angle), np.zeros(3))
