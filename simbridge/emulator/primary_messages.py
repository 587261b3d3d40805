"""Messages on the primary interface: the version at connect, and what a program or an operator should know.

Source: Universal Robots, "Client Interfaces": a message is a package of type 20 with a time stamp in microseconds, a
source and its own type.
"""

from __future__ import annotations

import struct

from simbridge.emulator.commands import Machine
from simbridge.emulator.primary import package

ROBOT_MESSAGE = 20
TEXT, POPUP, VERSION, KEY, RUNTIME_EXCEPTION = 0, 2, 3, 7, 10
_CONTROLLER, _PROGRAM = -2, -1  # sources
MAX_TEXT = 4096


def _message(machine: Machine, source: int, kind: int, payload: bytes) -> bytes:
    return package(ROBOT_MESSAGE, struct.pack(">QbB", int(machine.state.timestamp * 1e6), source, kind) + payload)


def _text(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")[:MAX_TEXT]


def _title(title: str) -> bytes:
    encoded = _text(title)[:255]
    return bytes([len(encoded)]) + encoded


def version_message(machine: Machine) -> bytes:
    """Sent once, first of all, to every client of ports 30001 and 30002."""
    major, minor, bugfix, build = machine.profile.version
    name = _title("URControl")
    date = machine.profile.date.encode("ascii")
    return _message(machine, _CONTROLLER, VERSION, name + struct.pack(">2B2i", major, minor, bugfix, build) + date)


def text_message(machine: Machine, text: str) -> bytes:
    """What `textmsg` writes into the log."""
    return _message(machine, _PROGRAM, TEXT, _text(text))


def popup_message(machine: Machine, text: str, title: str = "Popup", *, error: bool = False) -> bytes:
    """What `popup` shows."""
    flags = struct.pack(">IB3?", 0, 0, False, error, False)
    return _message(machine, _PROGRAM, POPUP, flags + _title(title) + _text(text))


def key_message(machine: Machine, title: str, text: str, code: int = 0, argument: int = 0) -> bytes:
    """An event by its key, such as PROGRAM_XXX_STARTED and PROGRAM_XXX_STOPPED with the program's name as text."""
    return _message(machine, _CONTROLLER, KEY, struct.pack(">2i", code, argument) + _title(title) + _text(text))


def runtime_exception(machine: Machine, line: int, column: int, text: str) -> bytes:
    """A program's fault, where it is and what it is."""
    return _message(machine, _PROGRAM, RUNTIME_EXCEPTION, struct.pack(">2i", line, column) + _text(text))
