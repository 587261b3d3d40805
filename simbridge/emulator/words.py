"""The five protocols in words: a sentence for each message, as `--verbose` prints them.

Of what a controller sends periodically, only the first package of each kind is shown.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.scripts import ScriptBuffer, program_name
from simbridge.ur.tables import (
    DASHBOARD,
    REALTIME,
    RTDE,
    RTDE_FORMATS,
    RTDE_HEADER,
    Message,
    PrimaryPackage,
    RtdePackage,
    SafetyMode,
)

_LONGEST = 1000  # characters of a line that is shown


class Conversation:
    """What is said on one connection.

    Args:
        port: The standard number.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._asked, self._answered = bytearray(), bytearray()
        self._scripts = ScriptBuffer()
        self._version = self._wanted_version = 1  # of RTDE's protocol
        self._periodic: set[int] = set()  # kinds of packages that were shown
        self._wanted: list[list[str]] = []  # names of input recipes that have no number yet
        self._inputs: dict[int, tuple[list[str], struct.Struct]] = {}

    def received(self, data: bytes) -> list[str]:
        """The sentences for the messages that these bytes of the client complete."""
        if self._port == RTDE:
            return [self._request(kind, payload) for kind, payload in _frames(self._asked, data, RTDE_HEADER)]
        if self._port == DASHBOARD:
            return _lines(self._asked, data)
        try:
            return [_program(script) for script in self._scripts.receive(data)]
        except ProtocolViolation as error:
            return [str(error)]

    def sent(self, data: bytes) -> list[str]:
        """The sentences for the messages of the controller in these bytes."""
        if self._port == DASHBOARD:
            return _lines(self._answered, data)
        if self._port == RTDE:
            frames = _frames(self._answered, data, RTDE_HEADER)
            lines = [self._reply(kind, payload) for kind, payload in frames]
        elif self._port == REALTIME:
            lines = [self._once(0, f"the first package of {len(data)} bytes")]
        else:
            lines = [self._package(kind, payload) for kind, payload in _frames(self._answered, data, _PRIMARY_HEADER)]
        return [line for line in lines if line]

    def _once(self, kind: int, line: str) -> str:
        shown = kind in self._periodic
        self._periodic.add(kind)
        return "" if shown else line

    def _request(self, kind: int, payload: bytes) -> str:
        if kind == RtdePackage.PROTOCOL_VERSION and len(payload) == 2:
            self._wanted_version = int.from_bytes(payload, "big")
            return f"asks for version {self._wanted_version} of the protocol"
        if kind == RtdePackage.CONTROLLER_VERSION:
            return "asks for the controller's version"
        if kind == RtdePackage.OUTPUTS:
            self._periodic.clear()
            if self._version == 1 or len(payload) < 8:
                return f"wants {_text(payload)}"
            return f"wants, {struct.unpack_from('>d', payload)[0]:g} times a second: {_text(payload[8:])}"
        if kind == RtdePackage.INPUTS:
            names = payload.decode("utf-8", errors="replace").rstrip(",").split(",")
            self._wanted.append(names)
            return f"will write: {_text(', '.join(names).encode())}"
        if kind == RtdePackage.DATA:
            return self._data(payload)
        others: dict[int, str] = {RtdePackage.START: "start", RtdePackage.PAUSE: "pause", RtdePackage.TEXT: "says"}
        return f"{others.get(kind, f'package of type {kind}')} {_text(payload)}".strip()

    def _data(self, payload: bytes) -> str:
        names, layout = self._inputs.get(payload[0] if payload else 0, ([], None))
        if layout is None or layout.size != len(payload) - 1:
            return f"data that fit no recipe: {payload[:_LONGEST].hex()}"
        values = [f"{value:g}" for value in layout.unpack(payload[1:])]
        if len(values) != len(names):
            return f"{', '.join(names)} = {', '.join(values)}"
        return ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))

    def _reply(self, kind: int, payload: bytes) -> str:
        if kind == RtdePackage.DATA:
            return self._once(kind, f"the first data package of {len(payload)} bytes")
        if kind == RtdePackage.CONTROLLER_VERSION:
            return "version " + ".".join(map(str, struct.unpack(">4I", payload)))
        if kind == RtdePackage.INPUTS:
            names, types = self._wanted.pop(0) if self._wanted else [], payload[1:].decode()
            if payload[0]:
                formats = "".join(RTDE_FORMATS[name] for name in types.split(","))
                self._inputs[payload[0]] = names, struct.Struct(">" + formats)
            return f"input recipe {payload[0]}: {_text(types.encode())}"
        if kind == RtdePackage.OUTPUTS:
            return f"outputs: {_text(payload if self._version == 1 else payload[1:])}"
        accepted = payload == b"\x01"
        if accepted and kind == RtdePackage.PROTOCOL_VERSION:
            self._version = self._wanted_version
        return "accepted" if accepted else "refused"

    def _package(self, kind: int, payload: bytes) -> str:
        if kind == PrimaryPackage.ROBOT_STATE:
            return self._once(kind, f"the first robot state of {len(payload) + _PRIMARY_HEADER.size} bytes")
        message, body = payload[9], payload[10:]
        if message == Message.SAFETY_MODE:
            return f"safety mode {SafetyMode(body[8]).name}"
        if message == Message.RUNTIME_EXCEPTION:
            line, column = struct.unpack_from(">2i", body)
            return f"runtime exception in line {line}, column {column}: {_text(body[8:])}"
        if message == Message.ERROR_CODE:
            code, argument = struct.unpack_from(">2i", body)
            return f"error C{code}A{argument}: {_text(body[20:])}"
        if message == Message.KEY:
            return f"{_text(body[9 : 9 + body[8]])} {_text(body[9 + body[8] :])}"
        start = {Message.TEXT: 0, Message.POPUP: 7, Message.VERSION: 0}.get(Message(message), 0)
        return f"{Message(message).name.lower().replace('_', ' ')} message {_text(body[start:])}"


_PRIMARY_HEADER = struct.Struct(">iB")


def _frames(buffer: bytearray, data: bytes, header: struct.Struct) -> Iterator[tuple[int, bytes]]:
    """Type and content of the packages that are complete now."""
    buffer += data
    while len(buffer) >= header.size:
        size, kind = header.unpack_from(buffer)
        if len(buffer) < size or size < header.size:
            return
        yield kind, bytes(buffer[header.size : size])
        del buffer[:size]


def _lines(buffer: bytearray, data: bytes) -> list[str]:
    buffer += data
    *lines, rest = bytes(buffer).split(b"\n")
    buffer[:] = rest
    return [_text(line) for line in lines]


def _program(script: str) -> str:
    count = len(script.splitlines())
    return f"program {program_name(script)} of {count} lines" if count > 1 else _text(script.encode())


def _text(data: bytes) -> str:
    """What can be printed of it, in one line."""
    text = data.decode("utf-8", errors="replace")[:_LONGEST]
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()
