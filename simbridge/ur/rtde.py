"""A read-only client of UR's Real-Time Data Exchange; rtde_writer.py adds inputs to it.

It returns every state that the controller sends, complete and exactly once. ur_rtde returns the
newest value of each variable. Measurements need all values of the same state, and every state once;
and reading must not block forever on a silent port. Hence this small client.

Source: Universal Robots, "Real-Time Data Exchange (RTDE) Guide", protocol version 2.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from simbridge.ur.errors import ConnectionLost, ImplausibleState, UnsupportedController
from simbridge.ur.packages import MalformedNumber, MalformedPackage, PackageBuffer
from simbridge.ur.tables import RTDE, RTDE_FORMATS, RTDE_HEADER, RtdePackage, series_and_period

Package = dict[str, Any]

# Largest plausible number in a state: as seconds since the controller started, it is thirty years;
# positions in rad, currents in A and all else are far smaller.
LARGEST_VALUE = 1e9
# Largest package, bytes: its size is a 16-bit number.
MAX_PACKAGE_BYTES = 65535
# Bytes that are read at once.
RECEIVED_BYTES = 65536
# What the controller answers instead of the type of a variable that it does not have.
NO_SUCH_VARIABLE = "NOT_FOUND"
# The answer to a request that was granted.
ACCEPTED = b"\x01"
# Largest number of states that are handed over at a time: two seconds of them. A stream that never
# pauses must not keep `wait` for ever.
MAX_STATES = 1000
# Number of characters of an answer that an error message shows.
MAX_SHOWN_CHARACTERS = 200

# The types that variables are expected to have. Any other type would be read as another quantity,
# or not at all; the first one is named in messages.
EXPECTED_TYPES: dict[str, tuple[str, ...]] = {
    "timestamp": ("DOUBLE",),
    "speed_scaling": ("DOUBLE",),
    "target_speed_fraction": ("DOUBLE",),
    "payload": ("DOUBLE",),
    "payload_cog": ("VECTOR3D",),
    "payload_inertia": ("VECTOR6D",),
    "tcp_offset": ("VECTOR6D",),
    "actual_q": ("VECTOR6D",),
    "actual_qd": ("VECTOR6D",),
    "actual_current": ("VECTOR6D",),
    "target_q": ("VECTOR6D",),
    "target_qd": ("VECTOR6D",),
    "target_qdd": ("VECTOR6D",),
    "robot_mode": ("INT32", "UINT32"),
    "safety_mode": ("INT32", "UINT32"),
    "safety_status_bits": ("INT32", "UINT32"),
    "runtime_state": ("INT32", "UINT32"),
}


def frame(kind: int, payload: bytes = b"") -> bytes:
    """Return a package with its header."""
    return RTDE_HEADER.pack(RTDE_HEADER.size + len(payload), kind) + payload


class _Variable(NamedTuple):
    """A variable of a recipe.

    Attributes:
        name: Name of the variable.
        size: How many numbers it has.
        is_real: Whether they are doubles.
    """

    name: str
    size: int
    is_real: bool


class Recipe:
    """The layout of a data package.

    Args:
        names: Names of its variables.
        types: Types of the variables, as the controller reports them.
    """

    def __init__(self, names: Sequence[str], types: Sequence[str]) -> None:
        # Formats of the module struct, such as "6d".
        formats = [RTDE_FORMATS[type_name] for type_name in types]
        self._struct = struct.Struct(">" + "".join(formats))
        self._variables = []
        for name, code in zip(names, formats, strict=True):
            size = int(code[:-1] or 1)
            self._variables.append(_Variable(name, size, is_real=code[-1] == "d"))

    def unpack(self, payload: bytes) -> Package:
        """Return the variables by name; vectors are tuples.

        Raises:
            struct.error: The payload has another length.
            MalformedNumber: A number is NaN, or larger than any quantity of an arm.
        """
        numbers = self._struct.unpack(payload)
        package = {}
        begin = 0
        for name, size, is_real in self._variables:
            values = numbers[begin : begin + size]
            package[name] = values[0] if size == 1 else values
            if is_real and not all(-LARGEST_VALUE < value < LARGEST_VALUE for value in values):
                raise MalformedNumber(name, str(package[name]))
            begin += size
        return package


class RtdeClient:
    """A connection to port 30004 with version 2 of the protocol: requests and answers.

    A context manager.

    Args:
        host: Address of the controller.
        timeout: Longest time for connecting and for each answer, s.

    Attributes:
        host: Address of the controller.
        version: Version of the controller's software: major, minor, bugfix, build.

    Raises:
        ConnectionLost: Nothing listens, or no valid answer comes in time.
        UnsupportedController: The controller does not support version 2 of the protocol.
    """

    version: tuple[int, int, int, int]

    def __init__(self, host: str, timeout: float = 2.0) -> None:
        self.host = host
        self._timeout = timeout
        self._packages = PackageBuffer(RTDE_HEADER, MAX_PACKAGE_BYTES)
        # Packages (kind, payload) that came after the answer to the last request.
        self._waiting: list[tuple[int, bytes]] = []

        try:
            self._socket = socket.create_connection((host, RTDE), timeout=timeout)
        except OSError as error:
            reason = str(error.strerror or error)
            raise self._lost(reason, was_connected=False) from None
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._set_up()
        except BaseException:
            self.close()
            raise

    def __enter__(self: AnyRtdeClient) -> AnyRtdeClient:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection and release its inputs."""
        self._socket.close()

    def _lost(self, reason: str, *, was_connected: bool = True) -> ConnectionLost:
        """Return the error about this connection; see `ConnectionLost`."""
        return ConnectionLost(self.host, RTDE, reason, was_connected=was_connected)

    def _set_up(self) -> None:
        """Agree on the protocol, and ask for the version of the software."""
        if self.request(RtdePackage.PROTOCOL_VERSION, struct.pack(">H", 2)) != ACCEPTED:
            reason = "It does not support RTDE protocol version 2; update PolyScope."
            raise UnsupportedController(self.host, version="", reason=reason)

        answer = self.request(RtdePackage.CONTROLLER_VERSION)
        try:
            major, minor, bugfix, build = struct.unpack(">4I", answer)
        except struct.error:
            raise self._lost("the answer to the version request is malformed") from None
        self.version = (major, minor, bugfix, build)

    def request(self, kind: int, payload: bytes = b"") -> bytes:
        """Send a request and return its answer's payload.

        Packages that arrive before the answer are dropped; those after it are kept for `receive`.

        Args:
            kind: Type of the request, which is also the type of its answer.
            payload: The content of the request.

        Raises:
            ConnectionLost: No answer within the timeout, or the connection ended.
        """
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(frame(kind, payload))
        except OSError as error:
            raise self._lost(f"sending failed ({error.strerror or error})") from None

        deadline = time.monotonic() + self._timeout
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0.0:
                raise self._lost(f"no answer to request {chr(kind)} within {self._timeout:g} s")
            packages = self.receive(remaining)
            for index, (package_kind, content) in enumerate(packages):
                if package_kind == kind:
                    self._waiting = packages[index + 1 :]
                    return content

    def receive(self, timeout: float) -> list[tuple[int, bytes]]:
        """Return packages that have arrived, or arrive within a timeout (s); possibly none.

        Returns:
            Type and payload of each.

        Raises:
            ConnectionLost: The connection ended.
        """
        waiting = self._waiting
        self._waiting = []
        try:
            self._socket.settimeout(0.0 if waiting else max(timeout, 0.0))
            data = self._socket.recv(RECEIVED_BYTES)
        except (TimeoutError, BlockingIOError):
            return waiting
        except OSError as error:
            raise self._lost(f"reading failed ({error.strerror or error})") from None
        if not data:
            raise self._lost("the controller closed the connection")

        try:
            return waiting + self._packages.feed(data)
        except MalformedPackage as error:
            raise self._lost(f"the data received are not RTDE: {error.reason}") from None

    def output_types(self, names: Sequence[str], frequency: float) -> list[str]:
        """Set up the output recipe.

        Args:
            names: Names of the variables.
            frequency: States per second.

        Returns:
            The type of each variable, "NOT_FOUND" for one that this version does not have.
        """
        head = struct.pack(">d", frequency)
        _, types = self._request_recipe(RtdePackage.OUTPUTS, head, names)
        return types

    def input_types(self, names: Sequence[str]) -> list[str]:
        """Set up an input recipe and so claim its variables until the connection ends.

        Returns:
            The type of each variable, "IN_USE" or "NOT_FOUND".
        """
        _, types = self.request_inputs(names)
        return types

    def request_inputs(self, names: Sequence[str]) -> tuple[int, list[str]]:
        """Set up an input recipe and so claim its variables until the connection ends.

        Returns:
            The number of the recipe, 0 if it was refused; and the type of each variable, "IN_USE"
            or "NOT_FOUND".
        """
        return self._request_recipe(RtdePackage.INPUTS, b"", names)

    def _request_recipe(
        self, kind: int, head: bytes, names: Sequence[str]
    ) -> tuple[int, list[str]]:
        """Return the number and the types in the answer to a recipe."""
        answer = self.request(kind, head + ",".join(names).encode("ascii"))
        number = answer[0] if answer else 0
        return number, answer[1:].decode("ascii", errors="replace").split(",")


AnyRtdeClient = TypeVar("AnyRtdeClient", bound=RtdeClient)


class RtdeReader(RtdeClient):
    """Every state that a controller sends, from now until the connection is closed.

    Args:
        host: Address of the controller.
        variables: Output variables; those that the version does not have are dropped.
        frequency: States per second; None for all (125 with CB3, 500 with e-Series).
        timeout: Longest time for connecting and for each answer, s.

    Attributes:
        variables: Names of the variables that a state has.
        frequency: States per second.

    Raises:
        ConnectionLost: Nothing listens, or no valid answer comes in time.
        UnsupportedController: The controller does not support version 2 of the protocol.
    """

    frequency: float

    def __init__(
        self,
        host: str,
        variables: Iterable[str],
        frequency: float | None = None,
        timeout: float = 2.0,
    ) -> None:
        self.variables = tuple(variables)
        self._requested_frequency = frequency
        super().__init__(host, timeout)

    def _set_up(self) -> None:
        """Agree on the variables of a state, and start the stream."""
        super()._set_up()
        _, period = series_and_period(self.version[0])
        self.frequency = self._requested_frequency or 1.0 / period

        # Drop variables that this version does not have, and request the others again.
        types = self.output_types(self.variables, self.frequency)
        if len(types) == len(self.variables) and NO_SUCH_VARIABLE in types:
            known_variables = []
            for name, kind in zip(self.variables, types, strict=True):
                if kind != NO_SUCH_VARIABLE:
                    known_variables.append(name)
            self.variables = tuple(known_variables)
            types = self.output_types(self.variables, self.frequency)

        # Refuse types that cannot be decoded, or that a variable is not expected to have.
        if len(types) != len(self.variables) or not set(types) <= set(RTDE_FORMATS):
            answer = ",".join(types)[:MAX_SHOWN_CHARACTERS]
            raise self._lost(f"the answer to the list of variables is {answer}")
        for name, kind in zip(self.variables, types, strict=True):
            expected_kinds = EXPECTED_TYPES.get(name, (kind,))
            if kind not in expected_kinds:
                raise self._lost(f"it sends {name} as {kind} instead of {expected_kinds[0]}")

        self._recipe = Recipe(self.variables, types)
        self._claim_inputs()
        if self.request(RtdePackage.START) != ACCEPTED:
            raise self._lost("the controller refused to start its stream")

    def _claim_inputs(self) -> None:
        """Claim what the client writes, before the stream starts: a reader writes nothing."""

    def wait(self, timeout: float) -> list[Package]:
        """Return the states that came since the last call, oldest first.

        Args:
            timeout: Longest wait for a state, s.

        Raises:
            ConnectionLost: The connection ended, or what comes does not match the recipe.
            ImplausibleState: A number is NaN, or larger than any quantity of an arm.
        """
        states: list[Package] = []
        deadline = time.monotonic() + timeout
        while True:
            packages = self.receive(0.0 if states else deadline - time.monotonic())
            for kind, payload in packages:
                if kind == RtdePackage.DATA:
                    states.append(self._read_state(payload))

            all_read = bool(states) and not packages
            timed_out = not states and time.monotonic() >= deadline
            if all_read or timed_out or len(states) >= MAX_STATES:
                return states

    def _read_state(self, payload: bytes) -> Package:
        """Return the state in a data package; see `wait` for what it raises."""
        try:
            return self._recipe.unpack(payload[1:])
        except MalformedNumber as error:
            reason = "which is not possible for an arm"
            raise ImplausibleState(self.host, error.field, error.value, reason) from None
        except struct.error as error:
            raise self._lost(f"a state is malformed: {error}") from None

    def first(self) -> Package:
        """Return the first state.

        Raises:
            ConnectionLost: No state came within the timeout.
        """
        states = self.wait(self._timeout)
        if not states:
            raise self._lost(f"no state was received within {self._timeout:g} s")
        return states[0]
