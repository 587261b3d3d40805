"""The kinematics of one individual arm: a Denavit-Hartenberg table or joint frames, the file, and the arm made with it.

A Denavit-Hartenberg table has to put each joint's frame at the common normal of two axes. The axes of shoulder, elbow
and first wrist joint of a real arm are parallel except for a few milliradians: their common normals are hundreds of
metres away. But along and about its own axis a joint's frame is free: T_i = (A_i R(q_i) A_i^-1) T_i for every A_i that
slides along and turns about that axis. So each frame is moved back to where the nominal arm has it, and the axes and
the tool move by rounding only.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import pinocchio as pin

from simbridge.errors import InputFileError, InvalidParameter
from simbridge.resources import robot_files
from simbridge.robot.files import TomlFile, decode_toml, read_text, write_file
from simbridge.robot.parts import DhTable, RosCalibration
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.robot.robot_file import RobotFile
from simbridge.robot.ros_calibration import FIELDS, is_ros_calibration, joint_frames, read_ros_calibration

# URSim reports the nominal table with nine digits.
_SAME = 1e-9
# Arms of one model differ by a few mm and mrad; the most alike models, the UR3 and the UR3e, by 19 mm.
_MAX_DISTANCE = 0.01  # m
_MAX_ANGLE = 0.1  # rad

_ROWS = 6
_HEADER = """\
# The kinematics of one individual UR arm, as its controller reports them: Denavit-Hartenberg parameters, rad and m.
# T_i = Rz(q_i + theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i); d2 to d4 are large where axes are nearly parallel.
"""


@dataclass(frozen=True)
class Deviation:
    """How far a frame is from where the nominal arm has it, relative to the previous frame.

    Attributes:
        name: The joint's, or "tool0".
        distance: Of the origins, m.
        angle: Between the orientations, rad.
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
    placements = [robot.joints[0].placement, *_dh_frames(table)]
    joints = tuple(replace(j, placement=p) for j, p in zip(robot.joints, placements[:-1], strict=True))
    return replace(robot, joints=joints, tool0=placements[-1])


def calibrated(robot: Robot, calibration: DhTable | RosCalibration) -> Robot:
    """The arm with its axes and flange as calibrated, and its links where the nominal arm has them.

    Shapes, masses, joint limits, `home` and `file_home` stay as they are, in frames within a few mm of the nominal
    ones. Joint positions mean the same as to the controller that reported the calibration.

    Args:
        robot: The nominal arm.
        calibration: Its own; d2 to d4 of a table may be large. One that is nominal to the ninth digit gives `robot`
            itself.

    Raises:
        InvalidParameter: The calibration is for another model or number of joints, or the arm has one already.
    """
    if robot.calibration == calibration:
        return robot
    if robot.calibration is not None:
        raise InvalidParameter("robot", "calibrated already", "given with its nominal kinematics")
    rows = len(calibration.d if isinstance(calibration, DhTable) else calibration.frames)
    if rows != robot.n or robot.prismatic.any():
        raise InvalidParameter("kinematic table", f"for {rows} joints", f"for the {robot.n} joints of {robot.name}")
    if isinstance(calibration, DhTable) and _nearly_equal(calibration, nominal_dh(robot)):
        return robot
    first, *others = calibrated_chain(calibration)
    *placements, tool0 = _anchored([_base(robot) * first, *others], _chain(robot))
    joints = tuple(replace(joint, placement=p) for joint, p in zip(robot.joints, placements, strict=True))
    arm = replace(robot, joints=joints, tool0=tool0, calibration=calibration)
    worst = max(deviations(robot, arm), key=lambda found: found.relative)
    if worst.relative > 1.0:
        raise InvalidParameter(
            "kinematic table",
            f"{worst.distance * 1e3:.0f} mm and {np.degrees(worst.angle):.1f} degrees off at {worst.name}",
            f"that of a {robot.title or robot.name}, within {_MAX_DISTANCE * 1e3:.0f} mm of the nominal one",
        )
    return robot if worst.distance <= _SAME and worst.angle <= _SAME else arm


def deviations(nominal: Robot, other: Robot) -> tuple[Deviation, ...]:
    """How an arm differs from another of its model: for each joint, then tool0, relative to the previous joint."""
    names = (*nominal.joint_names, "tool0")
    return tuple(_deviation(*frames) for frames in zip(names, _chain(nominal), _chain(other), strict=True))


def _deviation(name: str, nominal: pin.SE3, frame: pin.SE3) -> Deviation:
    apart = nominal.actInv(frame)
    return Deviation(name, float(np.linalg.norm(apart.translation)), float(np.linalg.norm(pin.log3(apart.rotation))))


def chain_from_base(robot: Robot) -> list[pin.SE3]:
    """The chain of an arm, n + 1 frames as of `calibrated_chain`."""
    if robot.calibration is not None:
        return calibrated_chain(robot.calibration)
    first, *others = _chain(robot)
    return [_base(robot).inverse() * first, *others]


def largest_difference(one: Sequence[pin.SE3], other: Sequence[pin.SE3], tcp: pin.SE3) -> tuple[float, float]:
    """How far two chains of revolute joints place the same tool apart, at worst over 4000 random joint positions.

    Args:
        one, other: n + 1 frames each, as of `calibrated_chain`.
        tcp: The tool centre point, in tool0.

    Returns:
        Distance in m, and angle in rad; not necessarily at the same joint positions.
    """
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (4000, len(one) - 1))
    tools = []
    for chain in (one, other):
        turns = np.zeros((*q.shape, 4, 4))
        turns[..., 0, 0] = turns[..., 1, 1] = np.cos(q)
        turns[..., 1, 0] = np.sin(q)
        turns[..., 0, 1] = -turns[..., 1, 0]
        turns[..., 2, 2] = turns[..., 3, 3] = 1.0
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

    The file is read as it was printed or as ROS's URDF reads it, whichever is nearer (see `ros_calibration`).
    """
    flange, reported = pin.SE3.Identity(), calibrated_chain(table)
    readings = [[*joint_frames(calibration, as_printed=printed), flange] for printed in (True, False)]
    return min(largest_difference(chain, reported, flange) for chain in readings)


def _base(robot: Robot) -> pin.SE3:
    """The pendant's base in base_link, of a nominal arm: a URDF's first joint may be above it."""
    first = robot.joints[0].placement
    return first * _along_z(first.inverse().translation[2])


def _nearly_equal(table: DhTable, other: DhTable) -> bool:
    return all(
        np.allclose(getattr(table, row), getattr(other, row), rtol=0.0, atol=_SAME)
        for row in ("theta", "a", "d", "alpha")
    )


def _chain(robot: Robot) -> list[pin.SE3]:
    return [*(joint.placement for joint in robot.joints), robot.tool0]


def _dh_frames(table: DhTable) -> list[pin.SE3]:
    """The frame after each joint at position zero, in the joint's own: n of them, the last is tool0."""
    return [
        _about_z(theta) * pin.SE3(pin.utils.rotate("x", alpha), np.array([a, 0.0, d]))
        for theta, a, d, alpha in zip(table.theta, table.a, table.d, table.alpha, strict=True)
    ]


def calibrated_chain(calibration: DhTable | RosCalibration) -> list[pin.SE3]:
    """The chain as it is given: n + 1 frames, each in the one before it, from the pendant's base to tool0."""
    if isinstance(calibration, RosCalibration):
        return [*joint_frames(calibration), pin.SE3.Identity()]
    return [pin.SE3.Identity(), *_dh_frames(calibration)]


def _anchored(chain: list[pin.SE3], nominal: list[pin.SE3]) -> list[pin.SE3]:
    """The same chain, with each joint's frame moved along and about its own axis to where the nominal arm has it."""
    anchored, back = [], pin.SE3.Identity()
    for i, wanted in enumerate(nominal[:-1]):
        here = back * chain[i]
        slide = _along_z(float(here.rotation[:, 2] @ (wanted.translation - here.translation)))
        anchor = slide * _about_z(_turn(slide.inverse() * chain[i + 1], nominal[i + 1]))
        anchored.append(here * anchor)
        back = anchor.inverse()
    return [*anchored, back * chain[-1]]


def _along_z(distance: float) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array([0.0, 0.0, distance]))


def _about_z(angle: float) -> pin.SE3:
    return pin.SE3(pin.utils.rotate("z", angle), np.zeros(3))


def _turn(actual: pin.SE3, nominal: pin.SE3) -> float:
    """The angle of a link about its joint's axis, from where the next axis is, rad.

    Args:
        actual, nominal: The next frame, as it is (anywhere on its axis) and as the nominal arm has it.
    """
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


class _Table(msgspec.Struct):
    theta: list[float]
    a: list[float]
    d: list[float]
    alpha: list[float]

    def checked(self, file: TomlFile, prefix: str = "") -> DhTable:
        rows = {name: getattr(self, name) for name in ("theta", "a", "d", "alpha")}
        for name, values in rows.items():
            file.check_length(f"{prefix}{name}", values, _ROWS)
            file.check_finite(f"{prefix}{name}", values)
        return DhTable(**{name: tuple(values) for name, values in rows.items()})


class _Calibration(_Table, forbid_unknown_fields=True):
    checksum: list[int]


class _RecordedRobot(msgspec.Struct):
    name: str


class _RosTable(msgspec.Struct):
    frames: list[list[float]]
    hash: str

    def checked(self, file: TomlFile) -> RosCalibration:
        file.check_length("kinematics.ros.frames", self.frames, _ROWS)
        for i, frame in enumerate(self.frames):
            file.check_length(f"kinematics.ros.frames[{i}]", frame, len(FIELDS))
            file.check_finite(f"kinematics.ros.frames[{i}]", frame)
        frames = tuple((x, y, z, roll, pitch, yaw) for x, y, z, roll, pitch, yaw in self.frames)
        return RosCalibration(frames, self.hash)


class _RecordedKinematics(msgspec.Struct):
    dh: _Table | None = None
    ros: _RosTable | None = None


class _Recorded(msgspec.Struct):
    robot: _RecordedRobot
    kinematics: _RecordedKinematics


def read_calibration(path: Path) -> tuple[DhTable, tuple[int, ...]]:
    """The table of a calibration file and the controller's checksum over it (6; all ones from URSim).

    Raises:
        InputFileError: Names the wrong field.
    """
    file = TomlFile(path)
    data = file.decode(_Calibration)
    table = data.checked(file)
    file.check_length("checksum", data.checksum, _ROWS)
    for i, word in enumerate(data.checksum):
        if not 0 <= word < 2**32:
            file.refuse(f"checksum[{i}]", f"this must be a 32-bit number, not {word}")
    return table, tuple(data.checksum)


def write_calibration(path: Path, table: DhTable, checksum: Sequence[int]) -> None:
    """Write a calibration file that reads back to the last bit.

    Raises:
        OutputError: It cannot be written.
    """
    rows = {name: [float(v) for v in getattr(table, name)] for name in ("theta", "a", "d", "alpha")}
    lines = [f"{name} = {values!r}\n" for name, values in rows.items()] + [f"checksum = {[int(w) for w in checksum]}\n"]
    write_file(path, (_HEADER + "".join(lines)).encode())


def with_kinematics(robot: Robot, source: str | os.PathLike[str]) -> Robot:
    """The arm with the kinematics that `--kinematics` names.

    Args:
        robot: The nominal arm.
        source: "nominal"; a calibration file, also ROS's (.yaml, see `ros_calibration`); or a run (its directory or its
            settings.toml), for the run's kinematics.

    Raises:
        InputFileError: The file cannot be read, or it is for another model, or for none.
        InvalidParameter: The arm is calibrated already.
    """
    if source == "nominal":
        if robot.calibration is not None:
            raise InvalidParameter("robot", "calibrated already", "given with its nominal kinematics")
        return robot
    path = Path(source)
    path = path / "settings.toml" if path.is_dir() else path
    calibration = _read(path, robot)
    if calibration is None:
        return robot
    try:
        arm = calibrated(robot, calibration)
    except InvalidParameter as error:
        if robot.calibration is not None:
            raise InputFileError(path, str(error)) from None
        raise InputFileError(path, f"{error} {_model_hint(calibration)}") from None
    if arm is robot and robot.calibration is None:
        warnings.warn(
            f"{path.name} equals the nominal kinematics of the {robot.title or robot.name}: it comes from URSim or is "
            "a default, and describes no individual arm.",
            stacklevel=2,
        )
    return arm


def _read(path: Path, robot: Robot) -> DhTable | RosCalibration | None:
    """The calibration in a file; None for nominal kinematics, which a run may have."""
    if is_ros_calibration(path):
        return read_ros_calibration(path)
    return _recorded(path, robot) if _is_recorded(read_text(path)) else read_calibration(path)[0]


def _model_hint(calibration: DhTable | RosCalibration) -> str:
    """A sentence that says which model in robots/ a calibration is for."""
    chain = calibrated_chain(calibration)
    for name, path in robot_files().items():
        model = TomlFile(path).decode(RobotFile).kinematics
        table = DhTable((0.0,) * len(model.d), tuple(model.a), tuple(model.d), tuple(model.alpha))
        nominal = calibrated_chain(table)
        if len(nominal) != len(chain):
            continue
        frames = zip(nominal, _anchored(chain, nominal), strict=True)
        if all(_deviation(name, *pair).relative <= 1.0 for pair in frames):
            return f"It fits a {name}: choose that with --robot."
    return "It fits none of the arms in robots/: it is no plausible chain of a UR arm."


def _is_recorded(text: str) -> bool:
    try:
        return "kinematics" in decode_toml(text)
    except ValueError:
        # `read_calibration` refuses it with the line.
        return False


def _recorded(path: Path, robot: Robot) -> DhTable | RosCalibration | None:
    """The calibration in a run's settings.toml; None for nominal kinematics."""
    file = TomlFile(path)
    data = file.decode(_Recorded)
    if data.robot.name != robot.name:
        file.refuse("robot.name", f"that run is of a {data.robot.name}, this one is for a {robot.name}")
    if data.kinematics.ros is not None:
        return data.kinematics.ros.checked(file)
    return None if data.kinematics.dh is None else data.kinematics.dh.checked(file, "kinematics.dh.")
