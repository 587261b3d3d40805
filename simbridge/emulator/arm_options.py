"""Reads the options of an emulated arm: software, posture, speed limits and calibration."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from simbridge.emulator.state import PROFILES, Profile
from simbridge.errors import InputFileError, InvalidParameter
from simbridge.robot.arm_models import describe_versions, find_model
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.controller_calibration_file import (
    add_to_nominal,
    is_controller_calibration,
    read_controller_calibration,
)
from simbridge.robot.kinematics_source import with_kinematics
from simbridge.robot.parts import DhTable, RosCalibration
from simbridge.robot.pose import Array
from simbridge.robot.printed_table import printed_table
from simbridge.robot.robot import Robot
from simbridge.robot.ros_calibration_file import is_ros_calibration, read_ros_calibration
from simbridge.ur.tables import URSIM_CHECKSUM

UR_JOINTS = 6

# Joint positions of URSim's arm at its start, rad.
URSIM_START = (-1.6007, -1.7271, -2.203, -0.808, 1.5951, -0.031)


def check_pair(arm: Robot, software: Profile) -> None:
    """Refuse an arm that is not UR's, and software that does not drive it.

    Raises:
        InvalidParameter: The pair does not exist.
    """
    if arm.n != UR_JOINTS:
        needed = f"a UR arm, with six joints: it has {arm.n} joints"
        raise InvalidParameter("emulated arm", arm.name, needed)

    series = {profile.series for profile in PROFILES.values()}
    if arm.series not in series or _drives(software, arm):
        return

    fitting = [name for name, profile in PROFILES.items() if _drives(profile, arm)]
    versions = f"{_alternatives(fitting)} (--polyscope)" if fitting else "newer than those emulated"
    model = find_model(arm.ur_model)
    if model is None:
        needed = f"{versions} for the {arm.title} with its {arm.series} controller"
    else:
        needed = f"{versions} for the {arm.ur_model}, which needs {describe_versions(model)}"
    raise InvalidParameter("PolyScope version", software.polyscope, needed)


def _drives(software: Profile, arm: Robot) -> bool:
    """Return whether software is of an arm's series, and not older than the arm."""
    model = find_model(arm.ur_model)
    is_new_enough = model is None or model.runs_on(software.version[:2])
    return software.series == arm.series and is_new_enough


def _alternatives(names: Sequence[str]) -> str:
    """Return names as alternatives in a sentence: "a", "a or b", "a, b or c"."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def start_joints(arm: Robot, posture: str) -> Array:
    """Return the joint positions (6,), rad, at which an arm starts.

    Args:
        arm: The arm, with its home and the joints' ranges.
        posture: "home", "ursim", or six numbers, rad, separated by commas.

    Raises:
        InvalidParameter: The text is not one of these, or the positions are out of the joints'
            range.
    """
    if posture == "home":
        return arm.home
    if posture == "ursim":
        return np.array(URSIM_START)

    needed = f"home, ursim, or {arm.n} numbers within the joints' range, rad, separated by commas"
    try:
        q = np.array([float(number) for number in posture.split(",")])
    except ValueError:
        raise InvalidParameter("start pose", posture, needed) from None
    if q.shape != (arm.n,) or not ((q >= arm.position_min) & (q <= arm.position_max)).all():
        raise InvalidParameter("start pose", posture, needed)
    return q


def speed_limits(arm: Robot, text: str) -> tuple[float, ...]:
    """Return the joint speed limits (n,), rad/s, that a text gives.

    Args:
        arm: The arm, with n joints.
        text: A number for all joints, or one for each, separated by commas.

    Raises:
        InvalidParameter: The text is neither.
    """
    try:
        limits = tuple(float(number) for number in text.split(","))
    except ValueError:
        limits = ()
    if len(limits) not in (1, arm.n):
        needed = f"a number, or {arm.n} numbers separated by commas, rad/s"
        raise InvalidParameter("joint speed limit", text, needed)
    return limits * (arm.n // len(limits))


def kinematics_of(arm: Robot, path: Path) -> tuple[DhTable, tuple[int, ...]]:
    """Return the table and the checksum of a calibration file.

    A calibration of ROS has no checksum, and gets one from its numbers; UR's calibration.conf has
    those of its joints.

    Raises:
        InputFileError: The file is not a calibration, its checksum is that of URSim, or it is a ROS
            calibration of another model.
    """
    if is_ros_calibration(path):
        # Refuse the calibration of another model.
        with_kinematics(arm, path)
        calibration = read_ros_calibration(path)
        try:
            return printed_table(calibration), _checksum_of(calibration)
        except InvalidParameter as error:
            raise InputFileError(path, str(error)) from None

    if is_controller_calibration(path):
        # Refuse the calibration of another model.
        with_kinematics(arm, path)
        controller_calibration = read_controller_calibration(path)
        table = add_to_nominal(path, controller_calibration, arm)
        checksum = controller_calibration.checksum or _checksum_of(table)
    else:
        table, checksum = read_calibration(path)
    if tuple(checksum) == URSIM_CHECKSUM:
        reason = "all ones mean URSim, without a calibration"
        raise InputFileError(path, reason, field="checksum")
    return table, checksum


def _checksum_of(calibration: DhTable | RosCalibration) -> tuple[int, ...]:
    """Return a checksum (6) of the numbers of a calibration whose file has none."""
    digest = hashlib.sha256(repr(calibration).encode()).digest()
    return struct.unpack(">6I", digest[:24])
