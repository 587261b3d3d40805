"""Describes the messages of a connection in sentences, for `simbridge emulate --verbose`."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.http_requests import HttpRequest, RequestBuffer
from simbridge.emulator.scripts import ScriptBuffer, program_name
from simbridge.ur.tables import (
    DASHBOARD,
    REALTIME,
    REST,
    RTDE,
    RTDE_FORMATS,
    RTDE_HEADER,
    Message,
    PrimaryPackage,
    RtdePackage,
    SafetyMode,
)

# Characters that are shown of a text.
MAX_LINE = 1000
# The end of a line in HTTP.
CRLF = b"\r\n"
# Size and type of a primary package.
_PRIMARY_HEADER = struct.Struct(">iB")


class Conversation:
    """Describes the messages of one connection.

    Args:
        port: Standard number of its port.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        # Bytes of messages that are not complete, in either direction.
        self._received = bytearray()
        self._sent = bytearray()
        self._scripts = ScriptBuffer()
        self._requests = RequestBuffer()
        # Kinds of periodic packages that were shown.
        self._shown_kinds: set[int] = set()

        # The version of RTDE's protocol that both sides have agreed on.
        self._version = 1
        # The version that the client has asked for, until the controller accepts it.
        self._requested_version = 1
        # Names of input recipes that have no number yet.
        self._pending_inputs: list[list[str]] = []
        # Names and layout of input recipes, by their number.
        self._inputs: dict[int, tuple[list[str], struct.Struct]] = {}

    def received(self, data: bytes) -> list[str]:
        """Return the sentences for the messages that these bytes of the client complete."""
        if self._port == RTDE:
            frames = _frames(self._received, data, RTDE_HEADER)
            return [self._describe_request(kind, payload) for kind, payload in frames]

        if self._port == DASHBOARD:
            return _lines(self._received, data)

        try:
            if self._port == REST:
                return [_describe_http(request) for request in self._requests.receive(data)]
            return [_describe_program(script) for script in self._scripts.receive(data)]
        except ProtocolViolation as error:
            return [str(error)]

    def sent(self, data: bytes) -> list[str]:
        """Return the sentences for the messages of the controller in these bytes."""
        if self._port == DASHBOARD:
            return _lines(self._sent, data)
        if self._port == REST:
            # The status, and the content behind the headers.
            return [f"{_text(data.partition(CRLF)[0])} {_text(data.partition(2 * CRLF)[2])}"]

        if self._port == RTDE:
            frames = _frames(self._sent, data, RTDE_HEADER)
            lines = [self._describe_reply(kind, payload) for kind, payload in frames]
        elif self._port == REALTIME:
            lines = [self._first_only(0, f"the first package of {len(data)} bytes")]
        else:
            frames = _frames(self._sent, data, _PRIMARY_HEADER)
            lines = [self._describe_package(kind, payload) for kind, payload in frames]
        return [line for line in lines if line]

    def _first_only(self, kind: int, line: str) -> str:
        """Return a line about a periodic package the first time, then ""."""
        is_shown = kind in self._shown_kinds
        self._shown_kinds.add(kind)
        return "" if is_shown else line

    # RTDE

    def _describe_request(self, kind: int, payload: bytes) -> str:
        """Return the sentence for a package of a client."""
        match kind:
            case RtdePackage.PROTOCOL_VERSION if len(payload) == 2:
                self._requested_version = int.from_bytes(payload, "big")
                return f"asks for version {self._requested_version} of the protocol"

            case RtdePackage.CONTROLLER_VERSION:
                return "asks for the controller's version"

            case RtdePackage.OUTPUTS:
                self._shown_kinds.clear()
                if self._version == 1 or len(payload) < 8:
                    return f"wants {_text(payload)}"
                (frequency,) = struct.unpack_from(">d", payload)
                return f"wants, {frequency:g} times a second: {_text(payload[8:])}"

            case RtdePackage.INPUTS:
                names = payload.decode("utf-8", errors="replace").rstrip(",").split(",")
                self._pending_inputs.append(names)
                return f"will write: {_text(', '.join(names).encode())}"

            case RtdePackage.DATA:
                return self._describe_inputs(payload)

            case RtdePackage.START:
                verb = "start"
            case RtdePackage.PAUSE:
                verb = "pause"
            case RtdePackage.TEXT:
                verb = "says"
            case _:
                verb = f"package of type {kind}"
        return f"{verb} {_text(payload)}".strip()

    def _describe_inputs(self, payload: bytes) -> str:
        """Return the sentence for a package of inputs."""
        names, layout = self._inputs.get(payload[0] if payload else 0, ([], None))
        if layout is None or layout.size != len(payload) - 1:
            return f"data that fit no recipe: {payload[:MAX_LINE].hex()}"

        values = [f"{value:g}" for value in layout.unpack(payload[1:])]
        # A vector has several values.
        if len(values) != len(names):
            return f"{', '.join(names)} = {', '.join(values)}"
        return ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))

    def _describe_reply(self, kind: int, payload: bytes) -> str:
        """Return the sentence for a package of the controller; "" if it is not shown."""
        match kind:
            case RtdePackage.DATA:
                return self._first_only(kind, f"the first data package of {len(payload)} bytes")

            case RtdePackage.CONTROLLER_VERSION:
                return "version " + ".".join(map(str, struct.unpack(">4I", payload)))

            case RtdePackage.INPUTS:
                number = payload[0]
                types = payload[1:].decode()
                names = self._pending_inputs.pop(0) if self._pending_inputs else []
                # 0 refuses the recipe.
                if number:
                    formats = "".join(RTDE_FORMATS[type_name] for type_name in types.split(","))
                    self._inputs[number] = names, struct.Struct(">" + formats)
                return f"input recipe {number}: {_text(types.encode())}"

            case RtdePackage.OUTPUTS:
                # From version 2 on, the number of the recipe comes before the types.
                types_sent = payload if self._version == 1 else payload[1:]
                return f"outputs: {_text(types_sent)}"

        # The replies to PROTOCOL_VERSION, START and PAUSE are one byte, which is 1 if accepted.
        is_accepted = payload == b"\x01"
        if is_accepted and kind == RtdePackage.PROTOCOL_VERSION:
            self._version = self._requested_version
        return "accepted" if is_accepted else "refused"

    # The primary and secondary interface

    def _describe_package(self, kind: int, payload: bytes) -> str:
        """Return the sentence for a state or a message; "" if it is not shown."""
        if kind == PrimaryPackage.ROBOT_STATE:
            size = len(payload) + _PRIMARY_HEADER.size
            return self._first_only(kind, f"the first robot state of {size} bytes")

        # A time stamp of eight bytes, a source, and the type of the message.
        message = payload[9]
        body = payload[10:]
        match message:
            case Message.SAFETY_MODE:
                return f"safety mode {SafetyMode(body[8]).name}"
            case Message.RUNTIME_EXCEPTION:
                line, column = struct.unpack_from(">2i", body)
                return f"runtime exception in line {line}, column {column}: {_text(body[8:])}"
            case Message.ERROR_CODE:
                code, argument = struct.unpack_from(">2i", body)
                return f"error C{code}A{argument}: {_text(body[20:])}"
            case Message.KEY:
                title_end = 9 + body[8]
                return f"{_text(body[9:title_end])} {_text(body[title_end:])}"
        # Text and version.
        return f"{Message(message).name.lower()} message {_text(body)}"


def _frames(buffer: bytearray, data: bytes, header: struct.Struct) -> Iterator[tuple[int, bytes]]:
    """Yield type and content of the packages that are complete now.

    Args:
        buffer: Bytes that came before; an incomplete package stays in it.
        data: Bytes that have come now.
        header: Size and type of a package.
    """
    buffer += data
    while len(buffer) >= header.size:
        size, kind = header.unpack_from(buffer)
        if len(buffer) < size or size < header.size:
            return
        yield kind, bytes(buffer[header.size : size])
        del buffer[:size]


def _lines(buffer: bytearray, data: bytes) -> list[str]:
    """Return the lines that are complete now; see `_frames`."""
    buffer += data
    *lines, rest = bytes(buffer).split(b"\n")
    buffer[:] = rest
    return [_text(line) for line in lines]


def _describe_program(script: str) -> str:
    """Return the sentence for a program; a program of one line is quoted as it is."""
    count = len(script.splitlines())
    if count > 1:
        return f"program {program_name(script)} of {count} lines"
    return _text(script.encode())


def _describe_http(request: HttpRequest) -> str:
    """Return the sentence for a request to the Robot API."""
    return f"{request.method} {_text(request.path.encode())} {_text(request.body)}".strip()


def _text(data: bytes) -> str:
    """Return the printable part of a text, in one line."""
    text = data.decode("utf-8", errors="replace")[:MAX_LINE]
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()
