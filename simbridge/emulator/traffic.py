"""All that clients and controller send each other, kept in a file and shown in words: `--record` and `--verbose`.

Whoever sends or receives only puts it into a queue; another thread writes: no tick waits for a disk or a terminal. The
file does not wait for the terminal either. Of what a controller sends periodically, only the first package of each kind
is shown.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import struct
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TextIO

from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.scripts import ScriptBuffer, program_name
from simbridge.errors import InputFileError, OutputError
from simbridge.ur.tables import (
    DASHBOARD,
    PORT_NAMES,
    REALTIME,
    RTDE,
    RTDE_FORMATS,
    RTDE_HEADER,
    Message,
    PrimaryPackage,
    RtdePackage,
    SafetyMode,
)

_MAX_QUEUED = 50_000  # exchanges that wait for the disk; further ones are lost, and counted
_PATIENCE = 1.0  # s until a terminal or pipe that takes no more misses lines
_END_TIMEOUT = 10.0  # s for the disk, at the end
_LONGEST = 1000  # characters of a line that is shown
_PRIMARY_HEADER = struct.Struct(">iB")
_PIECE = select.PIPE_BUF  # bytes that a pipe takes at once when it takes any

EventName = Literal["connected", "received", "sent", "disconnected"]


@dataclass(frozen=True)
class Exchange:
    """One line of the file, a JSON object with these names; bytes as two hexadecimal digits each.

    Attributes:
        clock: The controller's, s since its start.
        port: The standard number.
        client: Counted from 1, in the order in which clients connected to any port.
        event: As the controller sees it.
        bytes: What was received, as the network cut it, or sent: one or more messages.
    """

    clock: float
    port: int
    client: int
    event: EventName
    bytes: bytes = b""


class Traffic:
    """A context manager that keeps or shows what is exchanged while it is entered.

    Args:
        file: A new file for it; None keeps nothing.
        verbose: Whether it is printed in words.
        host: The controller's address, in each line that is printed.

    Attributes:
        lost: How many exchanges were neither kept nor shown, because the disk was too slow.
        not_shown: How many were not shown, because nobody read standard output.

    Raises:
        OutputError: On entering: the file exists already, or cannot be written; also on leaving.
    """

    def __init__(self, file: Path | None, verbose: bool, host: str = "127.0.0.1") -> None:
        self._path, self._verbose, self._host = file, verbose, host
        self.lost = self.not_shown = 0
        self._stuck = False
        self._file: TextIO | None = None
        self._queue: queue.SimpleQueue[Exchange | None] = queue.SimpleQueue()
        self._conversations: dict[int, Conversation] = {}
        self._error: OSError | None = None
        self._thread = threading.Thread(
            target=self._run, name="simbridge-emulator-traffic", daemon=True
        )

    def note(self, exchange: Exchange) -> None:
        """Keep and show it soon. One thread calls it at a time."""
        if self._queue.qsize() < _MAX_QUEUED:
            self._queue.put(exchange)
        else:
            self.lost += 1

    def __enter__(self) -> Traffic:
        try:
            if self._path is not None:
                self._file = self._path.open(
                    "x", encoding="ascii", buffering=1
                )  # complete lines, whatever ends us
        except OSError as error:
            raise OutputError(str(self._path), error.strerror or "", error.errno) from None
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        self._queue.put(None)
        self._thread.join(_END_TIMEOUT)
        for count, what in (
            (self.lost, "neither kept nor shown"),
            (self.not_shown, "not shown: nobody read them"),
        ):
            if count:
                print(f"{count} messages were {what}.", file=sys.stderr)
        if self._thread.is_alive():
            raise OutputError(
                str(self._path), f"it did not take what was to be written for {_END_TIMEOUT:g} s"
            )
        if self._error is not None:
            raise OutputError(
                str(self._path), self._error.strerror or "", self._error.errno
            ) from None
        with contextlib.suppress(OSError):
            if kind is not None and self._path is not None and not self._path.stat().st_size:
                self._path.unlink()  # of a controller that did not start; it would be in the way of the next one

    def _run(self) -> None:
        while (exchange := self._queue.get()) is not None:
            try:
                if self._verbose:
                    self._show(exchange)
            except OSError:
                self._verbose = False  # its reader has gone
            try:
                if self._file is not None and self._error is None:
                    row = {**asdict(exchange), "bytes": exchange.bytes.hex()}
                    self._file.write(json.dumps(row, separators=(",", ":")) + "\n")
            except OSError as error:
                self._error = error  # the disk is full: the controller goes on
        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            self._error = self._error or error

    def _show(self, exchange: Exchange) -> None:
        arrow = "<-" if exchange.event == "sent" else "->"
        head = f"{exchange.clock:9.3f} {self._host} client {exchange.client} {arrow} {PORT_NAMES[exchange.port]}"
        text = "".join(f"{head}: {line}\n" for line in self._in_words(exchange))
        data = text.encode(sys.stdout.encoding or "utf-8", errors="backslashreplace")
        output = sys.stdout.fileno()
        for begin in range(0, len(data), _PIECE):
            # Not by print: a thread that waits in it would also hold up the end of the process.
            if not select.select([], [output], [], 0.0 if self._stuck else _PATIENCE)[1]:
                self._stuck = True
                self.not_shown += 1
                return
            os.write(output, data[begin : begin + _PIECE])
            self._stuck = False

    def _in_words(self, exchange: Exchange) -> list[str]:
        """The lines about it; a bug in them must end neither `--verbose` nor `--record`."""
        if exchange.event == "disconnected":
            self._conversations.pop(exchange.client, None)
        if exchange.event not in ("sent", "received"):
            return [exchange.event]
        known = self._conversations.setdefault(exchange.client, Conversation(exchange.port))
        try:
            return (
                known.sent(exchange.bytes)
                if exchange.event == "sent"
                else known.received(exchange.bytes)
            )
        except Exception as error:
            return [
                f"{exchange.event} {len(exchange.bytes)} bytes without words ({type(error).__name__}: {error})"
            ]


def read_traffic(file: str | Path) -> Iterator[Exchange]:
    """What `simbridge emulate --record` kept, in the order in which it happened; else InputFileError."""
    path, number = Path(file), 0
    try:
        with path.open(encoding="ascii") as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007
                row = json.loads(line)
                yield Exchange(**{**row, "bytes": bytes.fromhex(row["bytes"])})
    except OSError as error:
        raise InputFileError(path, error.strerror or "it cannot be read") from None
    except (ValueError, TypeError, KeyError):
        raise InputFileError(
            path, "it is not a line of a recording of traffic", line=number or None
        ) from None


class Conversation:
    """What is said on one connection to a port, by its standard number."""

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
            return [
                self._request(kind, payload)
                for kind, payload in _frames(self._asked, data, RTDE_HEADER)
            ]
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
            lines = [
                self._package(kind, payload)
                for kind, payload in _frames(self._answered, data, _PRIMARY_HEADER)
            ]
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
        others: dict[int, str] = {
            RtdePackage.START: "start",
            RtdePackage.PAUSE: "pause",
            RtdePackage.TEXT: "says",
        }
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
            return self._once(
                kind, f"the first robot state of {len(payload) + _PRIMARY_HEADER.size} bytes"
            )
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
        return f"{Message(message).name.lower()} message {_text(body)}"  # text and version


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
    return (
        f"program {program_name(script)} of {count} lines" if count > 1 else _text(script.encode())
    )


def _text(data: bytes) -> str:
    """What can be printed of it, in one line."""
    text = data.decode("utf-8", errors="replace")[:_LONGEST]
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()
