"""The keyboard of a terminal.

An ordinary terminal reports no release of a key, so there each press is one bounded step, and a key that is held
repeats it. A terminal with the kitty keyboard protocol (https://sw.kovidgoyal.net/kitty/keyboard-protocol/) reports
presses, repeats and releases: there a held key is a velocity. The protocol is asked for by `CSI ? u`; every terminal
answers the question for its attributes, `CSI c`, that follows.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from simbridge.teleop.device import (
    AT_REST,
    NO_STEP,
    Device,
    DeviceError,
    Reading,
    Request,
    TeleopOptions,
)

# For each axis the keys that move along it, or about it, forwards and backwards.
_PAIRS = (
    *((0, "w", "s"), (1, "a", "d"), (2, "r", "f"), (3, "l", "j"), (4, "i", "k"), (5, "u", "o")),
    *((0, "up", "down"), (1, "left", "right"), (2, "page up", "page down")),
)
_MOTIONS = {
    key: (axis, sign) for axis, *keys in _PAIRS for key, sign in zip(keys, (1, -1), strict=True)
}
_REQUESTS: dict[str, Request] = {"enter": "engage", "x": "disengage", "space": "halt", "q": "quit"}
_BUTTONS = frozenset("123456789")

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

_ANSWER_TIME = 0.5
"""How long a terminal may take to say what it can do, s: over a slow connection, too."""

SILENCE = 1.0
"""A held key repeats itself well within this time, s: a key of which nothing is heard so long counts as released."""


@dataclass(frozen=True)
class Key:
    """What happened to a key: a character in lower case, or a name such as "enter", "up" or "ctrl+c"."""

    name: str
    event: Event = "press"


class Keyboard(Device):
    """The keys of a terminal.

    Args:
        receive: Returns what was typed since the last call, b"" if nothing; raises OSError when the terminal is closed.
        releases: Whether the terminal reports releases of keys.
        suspended: A context manager that gives the terminal back for the time of a question.
        clock: Monotonic, s.
    """

    name = "keyboard"
    dead_man = "the key"

    def __init__(
        self,
        receive: Callable[[], bytes],
        options: TeleopOptions,
        *,
        releases: bool,
        suspended: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._receive, self._releases, self._clock = receive, releases, clock
        self._suspended = suspended
        self._decoder = Decoder()
        self._held: set[str] = set()
        self._heard = 0.0
        self._kept: tuple[Request, ...] = ()
        self.guide = _guide(options, releases)

    @classmethod
    @contextlib.contextmanager
    def open(cls, options: TeleopOptions) -> Iterator[Keyboard]:
        """The terminal's keyboard at standard input; the terminal is as before at the end, whatever happens.

        Raises:
            DeviceError: Standard input or output is no terminal.
        """
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise DeviceError(
                cls.name, "it is read from a terminal, and standard input or error is none."
            )
        with Terminal(sys.stdin.fileno(), sys.stderr.fileno()) as terminal:
            yield cls(
                terminal.receive, options, releases=terminal.releases, suspended=terminal.suspended
            )

    def read(self) -> Reading:
        keys = self._keys()
        requests = [*self._kept, *(_REQUESTS[key.name] for key in keys if _is_request(key))]
        self._kept = ()
        if self._clock() - self._heard > SILENCE:
            self._held.clear()
        steps, axes = list(NO_STEP), list(AT_REST)
        if not self._releases:
            for key in keys:
                if key.name in _MOTIONS:
                    axis, sign = _MOTIONS[key.name]
                    # The newest of each axis: repeats that came in meanwhile are one step, not many.
                    steps[axis] = sign
        for axis, sign in (_MOTIONS[name] for name in self._held & _MOTIONS.keys()):
            axes[axis] += sign
        return Reading(
            axes=tuple(axes),
            held=bool(self._held & _MOTIONS.keys()),
            steps=tuple(steps),
            buttons=frozenset(self._held & _BUTTONS),
            requests=tuple(requests),
        )

    def _keys(self) -> list[Key]:
        """What was typed since the last call; keeps account of what is held.

        Raises:
            KeyboardInterrupt: Ctrl-C, which a terminal with the protocol sends as a key.
        """
        keys = self._decoder.feed(self._receive())
        if keys:
            self._heard = self._clock()
        if not self._releases:
            # A button is down for one reading.
            self._held = {key.name for key in keys if key.name in _BUTTONS}
        for key in keys:
            if key.name == "ctrl+c":
                raise KeyboardInterrupt
            if key.name == "focus out":
                self._held.clear()
            elif self._releases and key.event == "release":
                # Ctrl may have been pressed meanwhile.
                self._held.discard(key.name.removeprefix("ctrl+"))
            elif self._releases:
                self._held.add(key.name)
        return keys

    def engaged(self) -> None:
        """What was typed meanwhile is dropped, except a stop."""
        self._kept = tuple(
            _REQUESTS[key.name] for key in self._keys() if _is_request(key) and key.name != "enter"
        )

    def suspended(self) -> contextlib.AbstractContextManager[None]:
        return self._suspended()


def _is_request(key: Key) -> bool:
    return key.name in _REQUESTS and key.event == "press"


def _guide(options: TeleopOptions, releases: bool) -> tuple[str, ...]:
    how = (
        f"This terminal reports releases of keys: a held key moves the tool, at {options.translation_speed:g} m/s or "
        f"{options.rotation_speed:g} rad/s; when it is released, the arm holds."
        if releases
        else f"This terminal reports no release of a key: each press is one step of {1e3 * options.step:g} mm or "
        f"{math.degrees(options.step_angle):.6g} degrees."
    )
    return (
        how,
        f"Keys, in the axes of {options.frame}:",
        "  Enter engages   x disengages   Space stops   q ends",
        "  w s  x +-   a d  y +-   r f  z +-   (or arrows and Page Up, Page Down)",
        "  l j  about x +-   i k  about y +-   u o  about z +-",
        "  1 to 9 are the buttons of --on-button",
    )


class Terminal:
    """A terminal that gives each key at once, without showing it. A context manager.

    Ctrl-C and the like stay signals, and output is as before, so lines can be printed as ever.

    Args:
        source, sink: File descriptors of its input and output.

    Attributes:
        releases: Whether it reports releases of keys.
    """

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self.releases = False

    def __enter__(self) -> Terminal:
        self._before = termios.tcgetattr(self._source)
        try:
            tty.setcbreak(self._source)
            self.releases = self._ask()
            self._write(KITTY_ON)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # A terminal that was closed cannot be restored, and need not be.
        with contextlib.suppress(OSError, termios.error):
            self._write(KITTY_OFF)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._source, termios.TCSAFLUSH, self._before)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """The terminal as it was before, for a question; what was typed until then is dropped."""
        self._write(KITTY_OFF)
        termios.tcsetattr(self._source, termios.TCSAFLUSH, self._before)
        try:
            yield
        finally:
            tty.setcbreak(self._source, termios.TCSAFLUSH)
            self._write(KITTY_ON)

    def receive(self) -> bytes:
        """What was typed since the last call; b"" if nothing.

        Raises:
            OSError: The terminal was closed.
        """
        if not select.select([self._source], [], [], 0.0)[0]:
            return b""
        data = os.read(self._source, 4096)
        if not data:
            raise OSError("the terminal was closed")
        return data

    def _write(self, command: bytes) -> None:
        if self.releases:
            os.write(self._sink, command)

    def _ask(self) -> bool:
        os.write(self._sink, QUERY)
        said, end = b"", time.monotonic() + _ANSWER_TIME
        # Its attributes come last.
        while not _ATTRIBUTES.search(said) and (left := end - time.monotonic()) > 0.0:
            if select.select([self._source], [], [], left)[0]:
                data = os.read(self._source, 4096)
                if not data:
                    raise DeviceError(Keyboard.name, "the terminal was closed.")
                said += data
        return bool(_HAS_KITTY.search(said))


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
        name = _CODES.get(int(number)) or (
            chr(int(number)).lower() if 32 < int(number) < 127 else None
        )
    if name is None or happened is None:
        return []
    if modifiers.isdecimal() and (int(modifiers[:4]) - 1) & _CONTROL:
        name = f"ctrl+{name}"
    return [Key(name, happened)]
