"""Keys, decoded from the bytes that a terminal sends.

An ordinary terminal sends a byte for a key with a character, and an escape sequence for any other
key. A terminal with the kitty keyboard protocol
(https://sw.kovidgoyal.net/kitty/keyboard-protocol/) sends a sequence for each press, repeat and
release: `CSI code ; modifiers : event u`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

KeyAction = Literal["press", "repeat", "release"]

# A whole sequence: parameters and final byte. Where the cursor keys are those of applications, they
# come with an O in place of the bracket.
SEQUENCE = re.compile(rb"\x1b\[([\d;:<=>?]*)([@A-Za-z~])|\x1bO()([A-D])")
# The beginning of one.
UNFINISHED_SEQUENCE = re.compile(rb"\x1b(\[[\d;:<=>?]{0,60}|O)?")

# Keys by the final byte of their sequence.
FINAL_KEYS = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "I": "focus in",
    "O": "focus out",
}
# Keys by the number and the final byte of their sequence.
NUMBERED_KEYS = {
    "5~": "page up",
    "6~": "page down",
    "57421u": "page up",
    "57422u": "page down",
}
# Keys by their code: a byte, or the number before the final byte u.
CODED_KEYS = {
    9: "tab",
    13: "enter",
    27: "escape",
    32: "space",
    127: "backspace",
    57414: "enter",
    57417: "left",
    57418: "right",
    57419: "up",
    57420: "down",
}
# More digits than a code has.
MAX_CODE_DIGITS = 7

LINE_FEED = 10
CARRIAGE_RETURN = 13

# The bit of Ctrl in the modifiers, less one.
CONTROL_BIT = 4

# What happened to a key, by the number after its modifiers.
ACTIONS: dict[str, KeyAction] = {"": "press", "1": "press", "2": "repeat", "3": "release"}


@dataclass(frozen=True)
class Key:
    """A key, and what happened to it.

    Attributes:
        name: A character in lower case, or a name such as "enter", "up" or "ctrl+c".
        event: What happened.
    """

    name: str
    event: KeyAction = "press"


class KeyDecoder:
    """Makes keys of what a terminal sends; a sequence may come in parts."""

    def __init__(self) -> None:
        # The beginning of a sequence that is not complete.
        self._rest = b""

    def feed(self, data: bytes) -> list[Key]:
        """Return the keys that these bytes complete; unknown sequences are left out."""
        data = self._rest + data
        keys: list[Key] = []
        while data:
            sequence = SEQUENCE.match(data)
            if sequence is not None:
                parameters = sequence[1] or b""
                final = sequence[2] or sequence[4]
                keys += _decode_sequence(parameters.decode(), final.decode())
                data = data[sequence.end() :]
            elif UNFINISHED_SEQUENCE.fullmatch(data):
                break
            else:
                keys += _decode_byte(data[0])
                data = data[1:]
        self._rest = data
        return keys


def _decode_byte(byte: int) -> list[Key]:
    """Return the key of a byte that belongs to no sequence; none for one without a key."""
    code = CARRIAGE_RETURN if byte == LINE_FEED else byte
    if code in CODED_KEYS:
        return [Key(CODED_KEYS[code])]
    # Control characters are Ctrl and a letter.
    if 0 < byte < 27:
        return [Key(f"ctrl+{chr(byte + 96)}")]
    if _is_printable(byte):
        return [Key(chr(byte).lower())]
    return []


def _decode_sequence(parameters: str, final: str) -> list[Key]:
    """Return the key of a sequence; none for an unknown one.

    Args:
        parameters: Parameters of the sequence, such as "119;1:3": code, modifiers, what happened.
        final: Final byte of the sequence.
    """
    code, _, rest = parameters.partition(";")
    modifiers, _, action_number = rest.partition(";")[0].partition(":")
    action = ACTIONS.get(action_number)
    name = _key_name(code.partition(":")[0], final)
    if name is None or action is None:
        return []

    has_control = modifiers.isdecimal() and (int(modifiers[:4]) - 1) & CONTROL_BIT
    return [Key(f"ctrl+{name}" if has_control else name, action)]


def _key_name(number: str, final: str) -> str | None:
    """Return the name of the key with a number and a final byte; None for an unknown one."""
    name = NUMBERED_KEYS.get(number + final)
    if name is None and number in ("", "1"):
        name = FINAL_KEYS.get(final)
    if name is not None:
        return name

    if final != "u" or not number.isdecimal() or len(number) > MAX_CODE_DIGITS:
        return None
    code = int(number)
    if code in CODED_KEYS:
        return CODED_KEYS[code]
    return chr(code).lower() if _is_printable(code) else None


def _is_printable(code: int) -> bool:
    """Return whether a code is that of a visible character of ASCII."""
    return 32 < code < 127
