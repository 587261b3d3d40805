"""What may be set on an emulated controller: by options at its start, and by tests while it runs (`controller.set`)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
import numpy as np

from simbridge.emulator.state import LARGEST, PROFILES, Profile
from simbridge.errors import InputFileError, InvalidParameter, UnknownName
from simbridge.robot.calibration import printed_table
from simbridge.robot.calibration_file import (
    is_ros_calibration,
    read_calibration,
    read_ros_calibration,
    with_kinematics,
)
from simbridge.robot.parts import DhTable
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.ur.tables import URSIM_CHECKSUM

_Six = tuple[float, float, float, float, float, float]
_Bits = dict[Annotated[int, msgspec.Meta(ge=0, le=17)], bool]
# Parts of the state that may be set, too; programs and clients change some of them. Digital inputs and outputs by their
# bits: 0-7 standard, 8-15 configurable, 16-17 of the tool; analog inputs: 0 and 1 standard, 2 and 3 of the tool.
# The type of each as JSON has it, and in words.
STATE: dict[str, tuple[Any, str]] = {
    "payload": (Annotated[float, msgspec.Meta(ge=0.0)], "a number of kg, not negative"),
    "payload_cog": (tuple[float, float, float], "three numbers, m"),
    "payload_inertia": (_Six, "six numbers, kg m^2"),
    "tcp_offset": (_Six, "six numbers, m and rad"),
    "digital_inputs": (_Bits, 'true or false by the bits\' numbers, 0 to 17, such as {"3": true}'),
    "digital_outputs": (_Bits, 'true or false by the bits\' numbers, 0 to 17, such as {"3": true}'),
    "analog_inputs": (
        dict[Annotated[int, msgspec.Meta(ge=0, le=3)], float],
        'numbers, A or V, by those of the inputs, 0 to 3, such as {"0": 0.012}',
    ),
}


@dataclass(frozen=True)
class Settings:
    """The settings of a controller; a new one is a field here, with its default, and what reads it.

    Attributes:
        on_protective_stop: What becomes of the running program: it pauses, or it stops, as one recording of URSim
            shows.
        unlock_delay: From a protective stop until the dashboard unlocks it, s.
        servoj_follows_slider: Whether the speed slider slows servoj, as UR's description of its ROS driver says without
            a formula. By default servoj keeps to real time at any slider, as the bridge reckons.
        table: Height of a table that the tool can touch, m, in the pendant's base; None without one.
        tool_force_limit: The force on the tool that stops the arm, N. UR's default is not known; its safety presets are
            from 100 to 250 N.
        joint_speed_limit: Of the safety system, one for each joint, rad/s; None for UR's own (`Controller`).
    """

    on_protective_stop: Literal["pause", "stop"] = "pause"
    unlock_delay: float = 5.0
    servoj_follows_slider: bool = False
    table: float | None = None
    tool_force_limit: float = 150.0
    joint_speed_limit: tuple[float, float, float, float, float, float] | None = None

    def __post_init__(self) -> None:
        """Raises InvalidParameter: A limit is not a positive number, the table's height not one within 1e6, or a delay
        negative."""
        if not 0.0 <= self.unlock_delay < inf:
            raise InvalidParameter("unlock_delay", self.unlock_delay, "a number from 0, s")
        if self.table is not None and not abs(self.table) <= LARGEST:
            raise InvalidParameter(
                "table", self.table, f"a height from {-LARGEST:g} to {LARGEST:g} m"
            )
        if not self.tool_force_limit > 0.0:
            raise InvalidParameter(
                "tool_force_limit", self.tool_force_limit, "a positive number, N"
            )
        if not all(0.0 < limit < inf for limit in self.joint_speed_limit or ()):
            raise InvalidParameter(
                "joint_speed_limit", self.joint_speed_limit, "six positive numbers, rad/s"
            )

    def changed(self, values: Mapping[str, Any]) -> Settings:
        """These settings with some of them changed by name, all or none, to values as JSON has them.

        Raises:
            UnknownName: There is no such setting.
            InvalidParameter: A value is of another type, or not one of those possible.
        """
        types, found = get_type_hints(type(self)), asdict(self)
        for name, value in values.items():
            if name not in types:
                raise UnknownName("setting", name, [*types, *STATE])
            try:
                found[name] = msgspec.convert(value, types[name])
            except msgspec.ValidationError:
                needed = str(types[name]).replace("typing.", "")
                raise InvalidParameter(name, repr(value)[:100], f"a value of {needed}") from None
        return Settings(**found)


def state_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that are parts of the state (`STATE`), with the types that they have there.

    Raises:
        InvalidParameter: One is of another type, or not possible.
    """
    found: dict[str, Any] = {}
    for name in [name for name in values if name in STATE]:
        kind, needed = STATE[name]
        try:
            found[name] = msgspec.convert(values[name], kind, str_keys=True)
        except msgspec.ValidationError:
            raise InvalidParameter(name, repr(values[name])[:100], needed) from None
        value = found[name]
        numbers = value.values() if isinstance(value, dict) else np.atleast_1d(value)
        if not all(abs(number) <= LARGEST for number in numbers):
            raise InvalidParameter(
                name, repr(values[name])[:100], f"{needed}, none above {LARGEST:g}"
            )
    return found


URSIM_START = (
    -1.6007,
    -1.7271,
    -2.203,
    -0.808,
    1.5951,
    -0.031,
)  # where URSim's arm stands at the start, rad


def check_pair(arm: Robot, software: Profile) -> None:
    """Raise InvalidParameter if the robot is not a UR arm, or its controllers do not run this version."""
    if arm.n != 6:
        raise InvalidParameter(
            "emulated arm", arm.name, f"a UR arm: it has {arm.n} joints, and they have six"
        )
    fitting = [name for name, other in PROFILES.items() if other.series == arm.series]
    if fitting and software.series != arm.series:
        *others, last = fitting
        versions = f"{', '.join(others)} or {last}" if others else last
        needed = f"{versions} for the {arm.title} with its {arm.series} controller (--polyscope)"
        raise InvalidParameter("PolyScope version", software.polyscope, needed)


def start_joints(arm: Robot, name: str) -> Array:
    """Joint positions (6,), rad, of "home", "ursim" or six numbers within the joints' range; else InvalidParameter."""
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
    """The joint speed limits (n,), rad/s, of one number for all joints, or of one for each; else InvalidParameter."""
    try:
        limits = tuple(float(number) for number in text.split(","))
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
        raise InputFileError(
            path, "all ones say that this is URSim, without a calibration", field="checksum"
        )
    return table, checksum
