"""Keys as a terminal sends them: plain text, escape sequences, and the kitty keyboard protocol.

The protocol (https://sw.kovidgoyal.net/kitty/keyboard-protocol/) is asked for by `CSI ? u`; a terminal that has it
reports presses, repeats and releases. Every terminal answers the question for its attributes, `CSI c`, that follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

QUERY = b"\x1b[?u\x1b[c"
# Disambiguate (1), report events (2) and all keys as escape codes (8). And report when the window loses the focus: of
# releases after that nothing is heard.
KITTY_ON, KITTY_OFF = b"\x1b[>11u\x1b[?1004h", b"\x1b[?1004l\x1b[<u"

_HAS_KITTY, _ATTRIBUTES = re.compile(rb"\x1b\[\?\d+u"), re.compile(rb"\x1b\[\?[\d;]*c")
# Where the cursor keys are those of applications, they come with an O.
_SEQUENCE = re.compile(rb"\x1b\[([\d;:<=>?]*)([@A-Za-z~])|\x1bO()([A-D])")
_UNFINISHED = re.compile(rb"\x1b(\[[\d;:<=>?]{0,60}|O)?")


_FINAL = {"A": "up", "B": "down", "C": "right", "D": "left", "I": "focus in", "O": "focus out"}
_NUMBERED = {"5~": "page up", "6~": "page down", "57421u": "page up", "57422u": "page down"}
_CODES = {9: "tab", 13: "enter", 27: "escape", 32: "space", 127: "backspace", 57414: "enter"}
_CODES |= {57417: "left", 57418: "right", 57419: "up", 57420: "down"}
_CONTROL = 4

Event = Literal["press", "repeat", "release"]
_EVENTS: dict[str, Event] = {"": "press", "1": "press", "2": "repeat", "3": "release"}


@dataclass(frozen=True)
class Key:
    """What happened to a key: a character in lower case, or a name such as "enter", "up" or "ctrl+c"."""

    name: str
    event: Event = "press"


def has_answered(data: bytes) -> bool:
    """Whether a terminal's answer to QUERY is complete."""
    return bool(_ATTRIBUTES.search(data))


def has_protocol(data: bytes) -> bool:
    """Whether a terminal has the protocol, by its answer to QUERY."""
    return bool(_HAS_KITTY.search(data))


class Decoder:
    """Makes keys of what a terminal sends; a sequence may come in parts."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Key]:
        """The keys that these bytes complete; unknown sequences are left out."""
        data, keys = self._rest + data, []
        while data:
            if found := _SEQUENCE.match(data):
                parameters, final = found[1] or b"", found[2] or found[4]
                keys += _sequence(parameters.decode(), final.decode())
                data = data[found.end() :]
            elif _UNFINISHED.fullmatch(data):
                break
            else:
                keys += _plain(data[0])
                data = data[1:]
        self._rest = data
        return keys


def _plain(byte: int) -> list[Key]:
    name = _CODES.get(13 if byte == 10 else byte)
    if name is None and 0 < byte < 27:
        name = f"ctrl+{chr(byte + 96)}"
    if name is None and 32 < byte < 127:
        name = chr(byte).lower()
    return [] if name is None else [Key(name)]


def _sequence(parameters: str, final: str) -> list[Key]:
    code, _, rest = parameters.partition(";")
    modifiers, _, event = rest.partition(";")[0].partition(":")
    happened = _EVENTS.get(event)
    number = code.partition(":")[0]
    name = _NUMBERED.get(number + final) or (_FINAL.get(final) if number in ("", "1") else None)
    if name is None and final == "u" and number.isdecimal() and len(number) < 8:
        name = _CODES.get(int(number)) or (chr(int(number)).lower() if 32 < int(number) < 127 else None)
    if name is None or happened is None:
        return []
    if modifiers.isdecimal() and (int(modifiers[:4]) - 1) & _CONTROL:
        name = f"ctrl+{name}"
    return [Key(name, happened)]
