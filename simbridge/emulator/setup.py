"""What `simbridge emulate` is told about its arm: a controller's software, where the arm stands, its calibration."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import numpy as np

from simbridge.emulator.state import PROFILES, Profile
from simbridge.errors import InputFileError, InvalidParameter
from simbridge.robot.calibration import read_calibration, with_kinematics
from simbridge.robot.parts import DhTable
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.robot.ros_calibration import is_ros_calibration, printed_table, read_ros_calibration
from simbridge.ur.tables import URSIM_CHECKSUM

URSIM_START = (-1.6007, -1.7271, -2.203, -0.808, 1.5951, -0.031)  # where URSim's arm stands at the start, rad


def check_pair(arm: Robot, software: Profile) -> None:
    """Check that such a controller exists.

    Raises:
        InvalidParameter: The robot is not a UR arm, or its controllers do not run this version.
    """
    if arm.n != 6:
        raise InvalidParameter("emulated arm", arm.name, f"a UR arm: it has {arm.n} joints, and they have six")
    fitting = [name for name, other in PROFILES.items() if other.series == arm.series]
    if fitting and software.series != arm.series:
        needed = f"{' or '.join(fitting)} for the {arm.title}, whose controller is of the {arm.series} (--polyscope)"
        raise InvalidParameter("PolyScope version", software.polyscope, needed)


def start_joints(arm: Robot, name: str) -> Array:
    """Joint positions (6,), rad, of "home", "ursim" or six numbers.

    Raises:
        InvalidParameter: It is none of them, or outside of the joints' range.
    """
    if name in ("home", "ursim"):
        return arm.home if name == "home" else np.array(URSIM_START)
    needed = f"home, ursim, or {arm.n} numbers within the joints' range, rad, separated by commas"
    try:
        q = np.array([float(number) for number in name.split(",")])
    except ValueError:
        raise InvalidParameter("start pose", name, needed) from None
    if q.shape != (arm.n,) or not ((q >= arm.position_min) & (q <= arm.position_max)).all():
        raise InvalidParameter("start pose", name, needed)
    return q


def speed_limits(arm: Robot, text: str) -> tuple[float, ...]:
    """The joint speed limits (n,), rad/s, of one number for all joints, or of one for each.

    Raises:
        InvalidParameter: It is neither.
    """
    numbers = text.split(",")
    try:
        limits = tuple(float(number) for number in numbers)
    except ValueError:
        limits = ()
    if len(limits) not in (1, arm.n):
        needed = f"a number, or {arm.n} numbers separated by commas, rad/s"
        raise InvalidParameter("joint speed limit", text, needed)
    return limits * (arm.n // len(limits))


def kinematics_of(arm: Robot, path: Path) -> tuple[DhTable, tuple[int, ...]]:
    """The table and checksum of a calibration file; that of ROS has no checksum, and is given one.

    Raises:
        InputFileError: The file is not a calibration, its checksum is URSim's, or it is ROS's of another model.
    """
    if is_ros_calibration(path):
        with_kinematics(arm, path)
        calibration = read_ros_calibration(path)
        digest = hashlib.sha256(repr(calibration).encode()).digest()
        try:
            return printed_table(calibration), struct.unpack(">6I", digest[:24])
        except InvalidParameter as error:
            raise InputFileError(path, str(error)) from None
    table, checksum = read_calibration(path)
    if tuple(checksum) == URSIM_CHECKSUM:
        raise InputFileError(path, "all ones say that this is URSim, without a calibration", field="checksum")
    return table, checksum
