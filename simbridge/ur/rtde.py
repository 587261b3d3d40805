"""A read-only client of UR's Real-Time Data Exchange: every state that the controller sends, complete and exactly once.

ur_rtde returns the newest value of each variable. Measurements need all values of the same state, and every state once;
and reading must not block forever on a silent port. Hence this small client.

Source: Universal Robots, "Real-Time Data Exchange (RTDE) Guide", protocol version 2.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from simbridge.ur.errors import ConnectionLost, ImplausibleState, UnsupportedController
from simbridge.ur.packages import MalformedNumber, MalformedPackage, PackageBuffer
from simbridge.ur.tables import RTDE, RTDE_FORMATS, RTDE_HEADER, RtdePackage, series_and_period

Package = dict[str, Any]

# What a state holds is smaller: seconds since the controller started (this is thirty years), rad, A, ...
_LARGEST = 1e9
# States that are handed over at a time: two seconds of them. A stream that never pauses must not keep `wait` for ever.
_MAX_STATES = 1000
# Types other than these would be read as another quantity, or not at all.
_TYPES = {
    **dict.fromkeys(
        ("timestamp", "speed_scaling", "target_speed_fraction", "payload"), ("DOUBLE",)
    ),
    **dict.fromkeys(
        ("actual_q", "actual_qd", "actual_current", "target_q", "target_qd", "target_qdd"),
        ("VECTOR6D",),
    ),
    **dict.fromkeys(("tcp_offset", "payload_inertia"), ("VECTOR6D",)),
    **dict.fromkeys(
        ("robot_mode", "safety_mode", "safety_status_bits", "runtime_state"), ("INT32", "UINT32")
    ),
    "payload_cog": ("VECTOR3D",),
}


def frame(kind: int, payload: bytes = b"") -> bytes:
    """A package with its header."""
    return RTDE_HEADER.pack(RTDE_HEADER.size + len(payload), kind) + payload


class Recipe:
    """The layout of a data package: the names of its variables, and their types as the controller reports them."""

    def __init__(self, names: Sequence[str], types: Sequence[str]) -> None:
        formats = [RTDE_FORMATS[type_] for type_ in types]
        self._fields = [
            (n, int(code[:-1] or 1), code[-1] == "d")
            for n, code in zip(names, formats, strict=True)
        ]
        self._struct = struct.Struct(">" + "".join(formats))

    def unpack(self, payload: bytes) -> Package:
        """The variables by name; vectors are tuples.

        Raises:
            struct.error: The payload has another length.
            MalformedNumber: A number is none, or larger than any quantity of an arm.
        """
        values = self._struct.unpack(payload)
        package, at = {}, 0
        for name, count, real in self._fields:
            package[name] = values[at] if count == 1 else values[at : at + count]
            if real and not all(-_LARGEST < value < _LARGEST for value in values[at : at + count]):
                raise MalformedNumber(name, str(package[name]))
            at += count
        return package


class RtdeConnection:
    """A connection to port 30004 with version 2 of the protocol: requests and answers. A context manager.

    Args:
        host: The controller.
        timeout: For connecting and for each answer, s.

    Attributes:
        version: Of the controller's software: major, minor, bugfix, build.

    Raises:
        ConnectionLost: Nothing listens, or no valid answer comes in time.
        UnsupportedController: It does not support version 2 of the protocol.
    """

    def __init__(self, host: str, timeout: float = 2.0) -> None:
        self.host, self._timeout = host, timeout
        self._packages = PackageBuffer(RTDE_HEADER, 65535)
        self._waiting: list[tuple[int, bytes]] = []
        try:
            self._socket = socket.create_connection((host, RTDE), timeout=timeout)
        except OSError as error:
            raise self._lost(f"no connection ({error.strerror or error})") from None
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._set_up()
        except BaseException:
            self.close()
            raise

    def __enter__(self: Connection) -> Connection:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection and release its inputs."""
        self._socket.close()

    def _lost(self, reason: str) -> ConnectionLost:
        return ConnectionLost(self.host, RTDE, reason)

    def _set_up(self) -> None:
        if self.request(RtdePackage.PROTOCOL_VERSION, struct.pack(">H", 2)) != b"\x01":
            raise UnsupportedController(
                self.host, "", "It does not support RTDE protocol version 2; update PolyScope."
            )
        try:
            self.version: tuple[int, int, int, int] = struct.unpack(
                ">4I", self.request(RtdePackage.CONTROLLER_VERSION)
            )
        except struct.error:
            raise self._lost("the answer to the version request is malformed") from None

    def request(self, kind: int, payload: bytes = b"") -> bytes:
        """Send a request and wait for its answer's payload; data packages in between are dropped.

        Raises:
            ConnectionLost: No answer within the timeout, or the connection ended.
        """
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(frame(kind, payload))
        except OSError as error:
            raise self._lost(f"sending failed ({error.strerror or error})") from None
        deadline = time.monotonic() + self._timeout
        while (left := deadline - time.monotonic()) > 0.0:
            packages = self.receive(left)
            for index, (answered, content) in enumerate(packages):
                if answered == kind:
                    self._waiting = packages[index + 1 :]
                    return content
        raise self._lost(f"no answer to request {chr(kind)} within {self._timeout:g} s")

    def receive(self, timeout: float) -> list[tuple[int, bytes]]:
        """Packages (type, payload) that have arrived, or arrive within a timeout (s); possibly none.

        Raises:
            ConnectionLost: The connection ended.
        """
        kept, self._waiting = self._waiting, []
        try:
            self._socket.settimeout(max(timeout, 0.0) if not kept else 0.0)
            data = self._socket.recv(65536)
        except (TimeoutError, BlockingIOError):
            return kept
        except OSError as error:
            raise self._lost(f"reading failed ({error.strerror or error})") from None
        if not data:
            raise self._lost("the controller ended the connection")
        try:
            return kept + self._packages.feed(data)
        except MalformedPackage as error:
            raise self._lost(f"what came is not RTDE: {error.reason}") from None

    def output_types(self, names: Sequence[str], frequency: float) -> list[str]:
        """Set up the output recipe; the type of each variable, "NOT_FOUND" for one that this version does not have."""
        return self._types(RtdePackage.OUTPUTS, struct.pack(">d", frequency), names)

    def input_types(self, names: Sequence[str]) -> list[str]:
        """Set up an input recipe and so claim the variables until the connection ends: types, "IN_USE", "NOT_FOUND"."""
        return self._types(RtdePackage.INPUTS, b"", names)

    def _types(self, kind: int, head: bytes, names: Sequence[str]) -> list[str]:
        answer = self.request(kind, head + ",".join(names).encode("ascii"))
        return answer[1:].decode("ascii", errors="replace").split(",")


Connection = TypeVar("Connection", bound=RtdeConnection)


class RtdeReader(RtdeConnection):
    """Every state that a controller sends, from now until the connection is closed.

    Args:
        host: The controller.
        variables: Output variables; those that the version does not have are dropped.
        frequency: States per second; None for all (125 with CB3, 500 with e-Series).
        timeout: For connecting and for each answer, s.

    Raises:
        ConnectionLost, UnsupportedController: As `RtdeConnection`.
    """

    def __init__(
        self,
        host: str,
        variables: Iterable[str],
        frequency: float | None = None,
        timeout: float = 2.0,
    ) -> None:
        self.variables, self._frequency = tuple(variables), frequency
        super().__init__(host, timeout)

    def _set_up(self) -> None:
        super()._set_up()
        self.frequency = self._frequency or 1.0 / series_and_period(self.version[0])[1]
        types = self.output_types(self.variables, self.frequency)
        if len(types) == len(self.variables) and "NOT_FOUND" in types:
            self.variables = tuple(
                n for n, t in zip(self.variables, types, strict=True) if t != "NOT_FOUND"
            )
            types = self.output_types(self.variables, self.frequency)
        if len(types) != len(self.variables) or not set(types) <= set(RTDE_FORMATS):
            raise self._lost(f"the answer to the list of variables is {','.join(types)[:200]}")
        for name, kind in zip(self.variables, types, strict=True):
            if kind not in _TYPES.get(name, (kind,)):
                raise self._lost(f"it sends {name} as {kind}, which is {_TYPES[name][0]}")
        self._recipe = Recipe(self.variables, types)
        if self.request(RtdePackage.START) != b"\x01":
            raise self._lost("the controller refused to start its stream")

    def wait(self, timeout: float) -> list[Package]:
        """The states that came since the last call, oldest first; waits at most `timeout` s for one.

        Raises:
            ConnectionLost: The connection ended, or what comes does not match the recipe.
            ImplausibleState: A number is none, or larger than any quantity of an arm.
        """
        states: list[Package] = []
        deadline = time.monotonic() + timeout
        while True:
            packages = self.receive(0.0 if states else deadline - time.monotonic())
            states += [
                self._state(payload) for kind, payload in packages if kind == RtdePackage.DATA
            ]

            no_more = bool(states) and not packages
            in_vain = not states and time.monotonic() >= deadline
            if no_more or in_vain or len(states) >= _MAX_STATES:
                return states

    def _state(self, payload: bytes) -> Package:
        """The state in a data package; see `wait` for what it raises."""
        try:
            return self._recipe.unpack(payload[1:])
        except MalformedNumber as error:
            raise ImplausibleState(
                self.host, error.field, error.value, "which no arm has"
            ) from None
        except struct.error as error:
            raise self._lost(f"a state is malformed: {error}") from None

    def first(self) -> Package:
        """The first state.

        Raises:
            ConnectionLost: None came within the timeout.
        """
        states = self.wait(self._timeout)
        if not states:
            raise self._lost(f"no state came within {self._timeout:g} s")
        return states[0]
