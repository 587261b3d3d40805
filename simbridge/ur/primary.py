"""A client of the primary interface: the arm's calibrated kinematics, limits, model and TCP.

Source: Universal Robots, "Client Interfaces". A package is an int32 size (which includes these four
bytes), a type and its content; a robot state's content is sub-packages of the same form, and a
message has a time stamp in microseconds, a source, a type and its text. Everything is big-endian.
Newer versions append to the sub-packages, so only their beginnings are read.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.robot.parts import DhTable, JointLimits
from simbridge.robot.pose import Array
from simbridge.ur.errors import ConnectionLost
from simbridge.ur.packages import MalformedPackage, PackageBuffer
from simbridge.ur.tables import PRIMARY, URSIM_CHECKSUM, Message, PrimaryPackage, StatePart

# Parts of a robot state without which there is no description, and what they hold.
NEEDED_PARTS = {StatePart.CARTESIAN: "TCP", StatePart.KINEMATICS: "kinematics"}
# Whatever a controller sends comes with its first states, ten a second.
MAX_STATES_AWAITED = 3

# Size and type of a package.
PACKAGE_HEADER = struct.Struct(">iB")
# A message begins with its time stamp, us, its source and its type.
MESSAGE_HEADER = struct.Struct(">QbB")
# A robot state has about 1.5 kB, the largest messages (a program's variables) about 10 kB.
MAX_PACKAGE_BYTES = 1 << 20
# Bytes that are read at once.
RECEIVED_BYTES = 1 << 16
# Where the robot type is in the configuration data, bytes.
ROBOT_TYPE_OFFSET = 432


def sub_packages(content: bytes) -> list[tuple[int, bytes]]:
    """Return type and content of each sub-package of a robot state, those of unknown types too.

    Raises:
        MalformedPackage: One reaches beyond the end, or is shorter than its own header.
    """
    buffer = PackageBuffer(PACKAGE_HEADER, MAX_PACKAGE_BYTES)
    packages = buffer.feed(content)
    if buffer.pending:
        raise MalformedPackage(
            f"a sub-package reaches beyond the end: only {len(buffer.pending)} bytes of it were "
            "received"
        )
    return packages


@dataclass(frozen=True, eq=False)
class ArmDescription:
    """The arm of a controller, as the controller describes it.

    Attributes:
        kinematics: The full DH table of this individual arm; the nominal one on URSim.
        checksum: The checksum of that table, six 32-bit numbers; all ones on URSim.
        limits: None if the controller sends no configuration.
        robot_type: 1 UR5, 2 UR10, 3 UR3, ... (the same for UR10 and UR10e); None without a
            configuration.
        tcp_offset: x y z (m) rx ry rz (rad) (6,) of the TCP in the flange.
        software: Major and minor version of the software; None if no message reported it.
    """

    kinematics: DhTable
    checksum: tuple[int, ...]
    limits: JointLimits | None
    robot_type: int | None
    tcp_offset: Array
    software: tuple[int, int] | None = None


def is_ursim(checksum: tuple[int, ...]) -> bool:
    """Return whether a kinematics checksum is URSim's: all ones."""
    return tuple(checksum) == URSIM_CHECKSUM


class DescriptionReader:
    """Bytes of the primary interface in, the arm's description out; no I/O."""

    def __init__(self) -> None:
        self._packages = PackageBuffer(PACKAGE_HEADER, MAX_PACKAGE_BYTES)
        # The newest content of each part of a robot state, by its type.
        self._parts: dict[int, bytes] = {}
        # Major and minor version, which the first message reports.
        self._software: tuple[int, int] | None = None
        # States since everything needed has come.
        self._states = 0

    @property
    def missing(self) -> list[str]:
        """Names of the needed parts that have not come yet."""
        return [name for kind, name in NEEDED_PARTS.items() if kind not in self._parts]

    @property
    def complete(self) -> bool:
        """True once everything has come that this controller can be expected to send."""
        has_configuration = StatePart.CONFIGURATION in self._parts
        return not self.missing and (has_configuration or self._states >= MAX_STATES_AWAITED)

    def receive(self, data: bytes) -> None:
        """Process the next bytes.

        Raises:
            MalformedPackage: The bytes cannot come from a primary interface.
        """
        for kind, content in self._packages.feed(data):
            if kind == PrimaryPackage.ROBOT_STATE:
                self._parts |= dict(sub_packages(content))
                if not self.missing:
                    self._states += 1
            elif kind == PrimaryPackage.ROBOT_MESSAGE:
                self._software = self._software or _read_version_message(content)

    def description(self) -> ArmDescription:
        """Return the description so far.

        Raises:
            MalformedPackage: Something needed is missing or malformed.
        """
        if self.missing:
            raise MalformedPackage(f"no {' and no '.join(self.missing)} was received")

        # The checksum, then theta, a, d and alpha of six joints.
        numbers = _unpack(">6I24d", self._parts[StatePart.KINEMATICS], "kinematics")
        checksum = numbers[:6]
        parameters = _as_finite(numbers[6:], "kinematics")
        theta, a, d, alpha = (tuple(column) for column in parameters.reshape(4, 6).tolist())

        # The pose of the TCP in base, then its offset in the flange.
        poses = _as_finite(_unpack(">12d", self._parts[StatePart.CARTESIAN], "TCP"), "TCP")
        _, tcp_offset = poses.reshape(2, 6)

        configuration = self._parts.get(StatePart.CONFIGURATION)
        return ArmDescription(
            kinematics=DhTable(theta=theta, a=a, d=d, alpha=alpha),
            checksum=tuple(int(word) for word in checksum),
            limits=None if configuration is None else _read_limits(configuration),
            robot_type=None if configuration is None else _read_robot_type(configuration),
            tcp_offset=tcp_offset,
            software=self._software,
        )


def read_arm_description(host: str, timeout: float = 2.0, port: int = PRIMARY) -> ArmDescription:
    """Read the description of a controller's arm; writes nothing.

    Args:
        host: The controller.
        timeout: Longest time for connecting and for the whole description, s.
        port: 30001, or 30002, which sends the same.

    Raises:
        ConnectionLost: Nothing listens there, nothing comes, the connection ends, or it is not a
            primary interface.
    """
    reader = DescriptionReader()
    try:
        ending = _listen(reader, host, port=port, timeout=timeout)
        if reader.missing:
            raise ConnectionLost(host, port, ending)
        return reader.description()
    except MalformedPackage as error:
        reason = f"what it sends is not UR's primary interface: {error.reason}"
        raise ConnectionLost(host, port, reason) from None


def _listen(reader: DescriptionReader, host: str, *, port: int, timeout: float) -> str:
    """Feed a reader until it is complete, the time is up or the connection ends.

    Returns:
        Why the listening ended, as a clause.

    Raises:
        ConnectionLost: No connection was made.
    """
    deadline = time.monotonic() + timeout
    try:
        connection = socket.create_connection((host, port), timeout=timeout)
    # A host name that cannot be encoded raises UnicodeError, which has no `strerror`.
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConnectionLost(host, port, reason, was_connected=False) from None

    try:
        with connection:
            while not reader.complete:
                remaining = deadline - time.monotonic()
                if remaining <= 0.0:
                    raise TimeoutError
                connection.settimeout(remaining)
                data = connection.recv(RECEIVED_BYTES)
                if not data:
                    return "it closed the connection before describing its arm"
                reader.receive(data)
    except TimeoutError:
        return f"within {timeout:g} s it sent no {' and no '.join(reader.missing)}"
    except OSError as error:
        return error.strerror or str(error)
    return "it described its arm"


def _unpack(layout: str, content: bytes, name: str) -> tuple[float, ...]:
    """Unpack the beginning of a part; its name is for the error."""
    if len(content) < struct.calcsize(layout):
        raise MalformedPackage(f"the {name} has {len(content)} bytes, which is too few")
    return struct.unpack_from(layout, content)


def _as_finite(numbers: Sequence[float], name: str) -> Array:
    """Return the numbers of a part as a read-only array; its name is for the error."""
    array = np.array(numbers)
    if not np.isfinite(array).all():
        raise MalformedPackage(f"the {name} holds numbers that are not finite")
    array.setflags(write=False)
    return array


def _read_limits(configuration: bytes) -> JointLimits:
    """Read the limits of six joints: their ranges, then velocity and acceleration of each."""
    numbers = _as_finite(_unpack(">24d", configuration, "joint limits"), "joint limits")
    ranges, rates = numbers.reshape(2, 6, 2)
    return JointLimits(
        position_min=ranges[:, 0],
        position_max=ranges[:, 1],
        max_velocity=rates[:, 0],
        max_acceleration=rates[:, 1],
    )


def _read_robot_type(configuration: bytes) -> int | None:
    """Read the robot type; None if the content ends earlier, as in older versions."""
    if len(configuration) < ROBOT_TYPE_OFFSET + 4:
        return None
    (robot_type,) = struct.unpack_from(">i", configuration, ROBOT_TYPE_OFFSET)
    return int(robot_type)


def _read_version_message(content: bytes) -> tuple[int, int] | None:
    """Return major and minor version from a message; None if it is another message.

    It holds the project's name after its length, one byte, then a byte for each of the two.
    """
    body = content[MESSAGE_HEADER.size :]
    if (
        len(content) < MESSAGE_HEADER.size
        or MESSAGE_HEADER.unpack_from(content)[2] != Message.VERSION
    ):
        return None
    name_length = body[0] if body else 0
    version = body[1 + name_length : 3 + name_length]
    return (version[0], version[1]) if len(version) == 2 else None
