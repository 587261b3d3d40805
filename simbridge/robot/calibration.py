"""The kinematics of one individual arm, a Denavit-Hartenberg table or joint frames of ROS, and the arm made with it.

A Denavit-Hartenberg table has to put each joint's frame at the common normal of two axes. The axes of shoulder, elbow
and first wrist joint of a real arm are parallel except for a few milliradians: their common normals are hundreds of
metres away. But along and about its own axis a joint's frame is free: T_i = (A_i R(q_i) A_i^-1) T_i for every A_i that
slides along and turns about that axis. So each frame is moved back to where the nominal arm has it, and the axes and
the tool move by rounding only.

ROS's ur_calibration prints each joint's rotation as R = Rx(roll) Ry(pitch) Rz(yaw) (Eigen's eulerAngles(0, 1, 2));
ur_description puts the same three numbers into a URDF, where they mean R = Rz(yaw) Ry(pitch) Rx(roll). So the arm of
ROS's URDF is not quite the arm that was measured: 2 to 50 um and 2 to 135 urad off at the tool, on seven real arms.
The chain used here is that of the URDF, as in every ROS program with this file; the other reading only decides whether
the file belongs to the arm behind a controller.
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

# URSim reports the nominal table with nine digits.
_SAME = 1e-9
# Arms of one model differ by a few mm and mrad; the most alike models, the UR3 and the UR3e, by 19 mm.
_MAX_DISTANCE, _MAX_ANGLE = 0.01, 0.1  # m, rad
# Axes within this angle are taken for parallel; those of real arms are milliradians apart.
_PARALLEL = 1e-9  # rad, and m


@dataclass(frozen=True)
class Deviation:
    """How far the frame of a joint, or of "tool0", is from where the nominal arm has it, in the previous frame.

    Between the origins, m, and between the orientations, rad.
    """

    name: str
    distance: float
    angle: float

    @property
    def relative(self) -> float:
        """The larger of both, as a fraction of what it may be for an arm of the same model."""
        return max(self.distance / _MAX_DISTANCE, self.angle / _MAX_ANGLE)


def nominal_dh(robot: Robot) -> DhTable:
    """The table of an arm whose chain consists of such transforms (as in every robots/*.toml)."""
    fixed = [*(joint.placement for joint in robot.joints[1:]), robot.tool0]
    return DhTable(
        theta=(0.0,) * robot.n,
        a=tuple(float(f.translation[0]) for f in fixed),
        d=tuple(float(f.translation[2]) for f in fixed),
        alpha=tuple(float(np.arctan2(f.rotation[2, 1], f.rotation[1, 1])) for f in fixed),
    )


def with_dh(robot: Robot, table: DhTable) -> Robot:
    """The arm with another table: kinematics only, so for poses but not for dynamics or collisions."""
    return _with_chain(robot, [robot.joints[0].placement, *_dh_frames(table)])


def calibrated(robot: Robot, calibration: DhTable | RosCalibration) -> Robot:
    """The arm with its axes and flange as calibrated, and its links where the nominal arm has them.

    Shapes, masses, joint limits, `home` and `file_home` stay as they are, in frames within a few mm of the nominal
    ones. Joint positions mean the same as to the controller that reported the calibration. One that is nominal to the
    ninth digit gives `robot` itself; one of another model, or a second one, is InvalidParameter.
    """
    if robot.calibration == calibration:
        return robot
    if robot.calibration is not None:
        raise InvalidParameter("robot", "calibrated already", "given with its nominal kinematics")
    rows = len(calibration.d if isinstance(calibration, DhTable) else calibration.frames)
    if rows != robot.n or robot.prismatic.any():
        raise InvalidParameter(
            "kinematic table", f"for {rows} joints", f"for the {robot.n} joints of {robot.name}"
        )
    if isinstance(calibration, DhTable) and all(
        np.allclose(row, nominal, rtol=0.0, atol=_SAME)
        for row, nominal in zip(
            vars(calibration).values(), vars(nominal_dh(robot)).values(), strict=True
        )
    ):
        return robot
    first, *others = calibrated_chain(calibration)
    arm = _with_chain(robot, anchored([_base(robot) * first, *others], _chain(robot)))
    worst = max(deviations(robot, arm), key=lambda found: found.relative)
    if worst.relative > 1.0:
        raise InvalidParameter(
            "kinematic table",
            f"{worst.distance * 1e3:.0f} mm and {np.degrees(worst.angle):.1f} degrees off at {worst.name}",
            f"that of a {robot.title or robot.name}, within {_MAX_DISTANCE * 1e3:.0f} mm of the nominal one",
        )
    if worst.distance <= _SAME and worst.angle <= _SAME:
        return robot
    return replace(arm, calibration=calibration)


def deviations(nominal: Robot, other: Robot) -> tuple[Deviation, ...]:
    """How an arm differs from another of its model: for each joint, then tool0, relative to the previous joint."""
    return chain_deviations((*nominal.joint_names, "tool0"), _chain(nominal), _chain(other))


def chain_deviations(
    names: Sequence[str], nominal: Sequence[pin.SE3], other: Sequence[pin.SE3]
) -> tuple[Deviation, ...]:
    """How far each frame of a chain is from that of a nominal one, both in the previous frame."""
    found = []
    for name, one, frame in zip(names, nominal, other, strict=True):
        apart = one.actInv(frame)
        distance, angle = (
            np.linalg.norm(apart.translation),
            np.linalg.norm(pin.log3(apart.rotation)),
        )
        found.append(Deviation(name, float(distance), float(angle)))
    return tuple(found)


def chain_from_base(robot: Robot) -> list[pin.SE3]:
    """The chain of an arm, n + 1 frames as of `calibrated_chain`."""
    if robot.calibration is not None:
        return calibrated_chain(robot.calibration)
    first, *others = _chain(robot)
    return [_base(robot).inverse() * first, *others]


def calibrated_chain(calibration: DhTable | RosCalibration) -> list[pin.SE3]:
    """The chain as it is given: n + 1 frames, each in the one before it, from the pendant's base to tool0."""
    if isinstance(calibration, RosCalibration):
        return [*joint_frames(calibration), pin.SE3.Identity()]
    return [pin.SE3.Identity(), *_dh_frames(calibration)]


def joint_frames(calibration: RosCalibration, *, as_printed: bool = False) -> list[pin.SE3]:
    """Each joint's frame at position zero in the previous joint's frame; the first in the pendant's base.

    `as_printed` is False for the frames of ROS's URDF, True for those that ur_calibration printed (see the module).
    """
    frames = []
    for x, y, z, roll, pitch, yaw in calibration.frames:
        turns = [pin.utils.rotate(axis, by) for axis, by in (("x", roll), ("y", pitch), ("z", yaw))]
        first, second, third = turns if as_printed else reversed(turns)
        frames.append(pin.SE3(first @ second @ third, np.array([x, y, z])))
    return frames


def largest_difference(
    one: Sequence[pin.SE3], other: Sequence[pin.SE3], tcp: pin.SE3
) -> tuple[float, float]:
    """How far two chains of revolute joints place the same tool apart, at worst over 4000 random joint positions.

    The chains are n + 1 frames each, as of `calibrated_chain`, the tool centre point is in tool0. Distance in m and
    angle in rad are not necessarily at the same joint positions.
    """
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (4000, len(one) - 1))
    turns = np.zeros((*q.shape, 4, 4))
    turns[..., 0, 0] = turns[..., 1, 1] = np.cos(q)
    turns[..., 1, 0] = np.sin(q)
    turns[..., 0, 1] = -turns[..., 1, 0]
    turns[..., 2, 2] = turns[..., 3, 3] = 1.0
    tools = []
    for chain in (one, other):
        tool = np.eye(4)
        for i, frame in enumerate(chain[:-1]):
            tool = tool @ frame.homogeneous @ turns[:, i]
        tools.append(tool @ (chain[-1] * tcp).homogeneous)
    apart = np.linalg.norm(tools[0][:, :3, 3] - tools[1][:, :3, 3], axis=1)
    # |R - S| (Frobenius) is 2 sqrt(2) sin(angle / 2): exact for small angles, too.
    turned = np.linalg.norm(tools[0][:, :3, :3] - tools[1][:, :3, :3], axis=(1, 2)) / np.sqrt(8.0)
    return float(apart.max()), float(2.0 * np.arcsin(min(turned.max(), 1.0)))


def ros_difference(calibration: RosCalibration, table: DhTable) -> tuple[float, float]:
    """How far a file of ROS places the flange from where a controller's table does, at worst: m and rad.

    The file is read as it was printed or as ROS's URDF reads it, whichever is nearer.
    """
    flange, reported = pin.SE3.Identity(), calibrated_chain(table)
    readings = [
        [*joint_frames(calibration, as_printed=printed), flange] for printed in (True, False)
    ]
    return min(largest_difference(chain, reported, flange) for chain in readings)


def printed_table(calibration: RosCalibration) -> DhTable:
    """The Denavit-Hartenberg table of the arm that was measured: of the frames as they were printed.

    Each row follows from the common normal of two axes. The table need not be the one that ur_calibration read: other
    ones describe the same arm. Where the first axis is not that of the base, so that no table begins there, it is
    InvalidParameter.
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
    rows.append(
        (np.arctan2(last.rotation[1, 0], last.rotation[0, 0]), 0.0, last.translation[2], 0.0)
    )
    return DhTable(*(tuple(map(float, column)) for column in zip(*rows, strict=True)))


def _base(robot: Robot) -> pin.SE3:
    """The pendant's base in base_link, of a nominal arm: a URDF's first joint may be above it."""
    first = robot.joints[0].placement
    return first * _along_z(first.inverse().translation[2])


def _chain(robot: Robot) -> list[pin.SE3]:
    return [*(joint.placement for joint in robot.joints), robot.tool0]


def _with_chain(robot: Robot, chain: list[pin.SE3]) -> Robot:
    joints = tuple(
        replace(joint, placement=p) for joint, p in zip(robot.joints, chain[:-1], strict=True)
    )
    return replace(robot, joints=joints, tool0=chain[-1])


def _dh_frames(table: DhTable) -> list[pin.SE3]:
    """The frame after each joint at position zero, in the joint's own: n of them, the last is tool0."""
    return [
        _about_z(theta) * pin.SE3(pin.utils.rotate("x", alpha), np.array([a, 0.0, d]))
        for theta, a, d, alpha in zip(table.theta, table.a, table.d, table.alpha, strict=True)
    ]


def anchored(chain: list[pin.SE3], nominal: list[pin.SE3]) -> list[pin.SE3]:
    """The same chain, with each joint's frame moved along and about its own axis to where the nominal arm has it."""
    frames, back = [], pin.SE3.Identity()
    for i, wanted in enumerate(nominal[:-1]):
        here = back * chain[i]
        slide = _along_z(float(here.rotation[:, 2] @ (wanted.translation - here.translation)))
        anchor = slide * _about_z(_turn(slide.inverse() * chain[i + 1], nominal[i + 1]))
        frames.append(here * anchor)
        back = anchor.inverse()
    return [*frames, back * chain[-1]]


def _along_z(distance: float) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array([0.0, 0.0, distance]))


def _about_z(angle: float) -> pin.SE3:
    return pin.SE3(pin.utils.rotate("z", angle), np.zeros(3))


def _turn(actual: pin.SE3, nominal: pin.SE3) -> float:
    """The angle of a link about its joint's axis, rad, from the next frame: as it is (anywhere on its axis), and as the
    nominal arm has it."""
    axis, nominal_axis = actual.rotation[:, 2], nominal.rotation[:, 2]
    if np.hypot(*nominal_axis[:2]) > 0.5:
        return _angle(nominal_axis, axis)
    if np.hypot(*nominal.translation[:2]) > 1e-3 and abs(axis[2]) > 0.5:
        # Nearly parallel axes: the point of the next one at the nominal height.
        rise = (nominal.translation[2] - actual.translation[2]) / axis[2]
        return _angle(nominal.translation, actual.translation + rise * axis)
    turned = actual.rotation @ nominal.rotation.T
    return float(np.arctan2(turned[1, 0] - turned[0, 1], turned[0, 0] + turned[1, 1]))


def _angle(start: Array, end: Array) -> float:
    """From one vector to another, both projected along z, rad."""
    return float(np.arctan2(start[0] * end[1] - start[1] * end[0], start[:2] @ end[:2]))
