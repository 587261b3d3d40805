"""A client of the primary interface: the arm's calibrated kinematics, limits, model and TCP; and messages.

Source: Universal Robots, "Client Interfaces". A package is an int32 size (which includes these four bytes), a type and
its content; a robot state's content is sub-packages of the same form, and a message has a time stamp in microseconds, a
source, a type and its text. Everything is big-endian. Newer versions append to the sub-packages, so only their
beginnings are read.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.robot.parts import DhTable, JointLimits
from simbridge.robot.pose import Array
from simbridge.ur.errors import ConnectionLost
from simbridge.ur.packages import MalformedPackage, PackageBuffer
from simbridge.ur.tables import PRIMARY, URSIM_CHECKSUM, Message, PrimaryPackage, StatePart

_NEEDED = {StatePart.CARTESIAN: "TCP", StatePart.KINEMATICS: "kinematics"}
# Whatever a controller sends comes with its first states, ten a second.
_STATES_AWAITED = 3

_HEADER, _MESSAGE = struct.Struct(">iB"), struct.Struct(">QbB")
# A robot state has about 1.5 kB, the largest messages (a program's variables) about 10 kB.
_MAX_BYTES = 1 << 20
# The newest messages are kept, so many and of so many characters.
_KEPT, _LENGTH = 20, 200


def sub_packages(content: bytes) -> list[tuple[int, bytes]]:
    """Type and content of each sub-package of a robot state, those of unknown types too.

    Raises:
        MalformedPackage: One reaches beyond the end, or is shorter than its own header.
    """
    buffer = PackageBuffer(_HEADER, _MAX_BYTES)
    found = buffer.feed(content)
    if buffer.pending:
        raise MalformedPackage(
            f"a sub-package reaches beyond the end: only {len(buffer.pending)} bytes of it are there"
        )
    return found


@dataclass(frozen=True, eq=False)
class ArmDescription:
    """The arm of a controller, as the controller describes it.

    Attributes:
        kinematics: The full DH table of this individual arm; the nominal one on URSim.
        checksum: Six 32-bit numbers over it; all ones on URSim.
        limits: None if the controller sends no configuration.
        robot_type: 1 UR5, 2 UR10, 3 UR3, ... (the same for UR10 and UR10e); None without a configuration.
        tcp_offset: x y z (m) rx ry rz (rad) (6,) of the TCP in the flange.
    """

    kinematics: DhTable
    checksum: tuple[int, ...]
    limits: JointLimits | None
    robot_type: int | None
    tcp_offset: Array


def is_ursim(checksum: tuple[int, ...]) -> bool:
    """Whether a kinematics checksum is URSim's: all ones."""
    return tuple(checksum) == URSIM_CHECKSUM


class DescriptionReader:
    """Bytes of the primary interface in, the arm's description out; no I/O."""

    def __init__(self) -> None:
        self._packages = PackageBuffer(_HEADER, _MAX_BYTES)
        self._parts: dict[int, bytes] = {}
        self._states = 0

    @property
    def missing(self) -> list[str]:
        """Names of the needed parts that have not come yet."""
        return [name for kind, name in _NEEDED.items() if kind not in self._parts]

    @property
    def complete(self) -> bool:
        """Whether everything has come that this controller can be expected to send."""
        return not self.missing and (
            StatePart.CONFIGURATION in self._parts or self._states >= _STATES_AWAITED
        )

    def receive(self, data: bytes) -> None:
        """Process the next bytes.

        Raises:
            MalformedPackage: They cannot come from a primary interface.
        """
        for kind, content in self._packages.feed(data):
            if kind == PrimaryPackage.ROBOT_STATE:
                self._parts |= dict(sub_packages(content))
                self._states += 0 if self.missing else 1

    def description(self) -> ArmDescription:
        """The description so far.

        Raises:
            MalformedPackage: Something needed is missing or malformed.
        """
        if self.missing:
            raise MalformedPackage(f"no {' and no '.join(self.missing)} came")
        numbers = _unpack(">6I24d", self._parts[StatePart.KINEMATICS], 0, "kinematics")
        table = (tuple(row) for row in _finite(numbers[6:], "kinematics").reshape(4, 6).tolist())
        poses = _finite(_unpack(">12d", self._parts[StatePart.CARTESIAN], 0, "TCP"), "TCP")
        configuration = self._parts.get(StatePart.CONFIGURATION)
        return ArmDescription(
            kinematics=DhTable(*table),
            checksum=tuple(int(word) for word in numbers[:6]),
            limits=None if configuration is None else _limits(configuration),
            robot_type=None if configuration is None else _robot_type(configuration),
            tcp_offset=poses[6:],
        )


def read_arm_description(host: str, timeout: float = 2.0, port: int = PRIMARY) -> ArmDescription:
    """Read the description of a controller's arm within a timeout (in total, s); writes nothing.

    Args:
        port: 30001, or 30002, which sends the same.

    Raises:
        ConnectionLost: Nothing listens there, nothing comes, the connection ends, or it is not a primary interface.
    """
    reader = DescriptionReader()
    try:
        ended = _listen(reader, host, port, timeout)
        if reader.missing:
            raise ConnectionLost(host, port, ended)
        return reader.description()
    except MalformedPackage as error:
        raise ConnectionLost(
            host, port, f"what it sends is not UR's primary interface: {error.reason}"
        ) from None


def _listen(reader: DescriptionReader, host: str, port: int, timeout: float) -> str:
    """Feed the reader until it is complete, the time is up or the connection ends; return why it ended, as a clause."""
    deadline = time.monotonic() + timeout
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            while not reader.complete:
                left = deadline - time.monotonic()
                if left <= 0.0:
                    raise TimeoutError
                connection.settimeout(left)
                data = connection.recv(1 << 16)
                if not data:
                    return "it closed the connection before it had described its arm"
                reader.receive(data)
    except TimeoutError:
        return f"within {timeout:g} s it sent no {' and no '.join(reader.missing)}"
    except ConnectionRefusedError:
        return "no connection (Connection refused)"
    except (OSError, UnicodeError) as error:
        return getattr(error, "strerror", None) or str(error)
    return "it described its arm"


def _unpack(layout: str, content: bytes, at: int, what: str) -> tuple[float, ...]:
    if len(content) < at + struct.calcsize(layout):
        raise MalformedPackage(f"the {what} has {len(content)} bytes, which is too few")
    return struct.unpack_from(layout, content, at)


def _finite(numbers: Sequence[float], what: str) -> Array:
    """The numbers as a read-only array."""
    array = np.array(numbers)
    if not np.isfinite(array).all():
        raise MalformedPackage(f"the {what} holds numbers that are not finite")
    array.setflags(write=False)
    return array


def _limits(content: bytes) -> JointLimits:
    ranges, rates = _finite(_unpack(">24d", content, 0, "joint limits"), "joint limits").reshape(
        2, 6, 2
    )
    return JointLimits(ranges[:, 0], ranges[:, 1], rates[:, 0], rates[:, 1])


def _robot_type(content: bytes) -> int | None:
    """None if the content ends earlier, as in older versions."""
    return int(struct.unpack_from(">i", content, 432)[0]) if len(content) >= 436 else None


# What a controller says while a session goes on


def message_words(content: bytes) -> str | None:
    """The content of a message as a clause; None for one that says nothing about the program."""
    with contextlib.suppress(struct.error, IndexError):
        _, _, kind = _MESSAGE.unpack_from(content)
        rest = content[_MESSAGE.size :]
        if kind == Message.RUNTIME_EXCEPTION:
            line, column = struct.unpack_from(">2i", rest)
            return f"the program's error in line {line}, column {column}: {_text(rest[8:])}"
        if kind == Message.KEY:
            # Behind a code and an argument: the length of the title, the title, the text.
            title = rest[9 : 9 + rest[8]]
            return f"message {_text(title)}: {_text(rest[9 + rest[8] :])}"
    return None


def _text(data: bytes) -> str:
    return " ".join(data.decode(errors="replace").split())[:_LENGTH]


class ControllerMessages:
    """Listens to a controller's messages from now on, in a thread, until `close`."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._closed = threading.Event()
        self._words: deque[str] = deque(maxlen=_KEPT)
        self._thread = threading.Thread(target=self._run, name="simbridge-messages", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # Without this interface a run can do, and whether it is lost others say.
        with contextlib.suppress(OSError, MalformedPackage):
            self._listen()

    def _listen(self) -> None:
        packages = PackageBuffer(_HEADER, _MAX_BYTES)
        with socket.create_connection((self._host, PRIMARY), timeout=1.0) as connection:
            connection.settimeout(0.05)
            while not self._closed.is_set():
                with contextlib.suppress(TimeoutError):
                    data = connection.recv(1 << 16)
                    if not data:
                        return
                    for kind, content in packages.feed(data):
                        words = (
                            message_words(content) if kind == PrimaryPackage.ROBOT_MESSAGE else None
                        )
                        if words is not None:
                            self._words.append(words)

    def close(self) -> list[str]:
        """Stop listening; the newest messages as clauses, oldest first."""
        self._closed.set()
        self._thread.join(1.0)
        return list(self._words)
