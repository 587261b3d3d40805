"""A terminal that gives each key at once, and what it is asked and told for that.

A terminal with the kitty keyboard protocol (https://sw.kovidgoyal.net/kitty/keyboard-protocol/)
reports releases of keys. The protocol is asked for by `CSI ? u`; every terminal answers the
question for its attributes, `CSI c`, that follows.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import termios
import time
import tty
from collections.abc import Iterator

from simbridge.teleop.device import DeviceError

# The name of the device in messages.
KEYBOARD = "keyboard"

QUERY = b"\x1b[?u\x1b[c"
HAS_KITTY = re.compile(rb"\x1b\[\?\d+u")
ATTRIBUTES = re.compile(rb"\x1b\[\?[\d;]*c")

# Disambiguate (1), report events (2) and all keys as escape codes (8). And report when the window
# loses the focus: of releases after that nothing is heard.
KITTY_ON = b"\x1b[>11u\x1b[?1004h"
KITTY_OFF = b"\x1b[?1004l\x1b[<u"

# How long a terminal may take to say what it can do, s: over a slow connection, too.
MAX_ANSWER_S = 0.5

MAX_READ_BYTES = 4096


class KeyTerminal:
    """A terminal that gives each key at once, without showing it. A context manager.

    Ctrl-C and the like stay signals, and output is unchanged, so lines can be printed as usual.

    Args:
        source: File descriptor of its input.
        sink: File descriptor of its output.

    Attributes:
        releases: Whether it reports releases of keys.
    """

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self.releases = False

    def __enter__(self) -> KeyTerminal:
        self._modes_before = termios.tcgetattr(self._source)
        try:
            tty.setcbreak(self._source)
            self.releases = self._ask_for_kitty()
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
            termios.tcsetattr(self._source, termios.TCSAFLUSH, self._modes_before)

    @contextlib.contextmanager
    def suspend(self) -> Iterator[None]:
        """Give the terminal back for a question; what was typed until then is dropped."""
        self._write(KITTY_OFF)
        termios.tcsetattr(self._source, termios.TCSAFLUSH, self._modes_before)
        try:
            yield
        finally:
            tty.setcbreak(self._source, termios.TCSAFLUSH)
            self._write(KITTY_ON)

    def receive(self) -> bytes:
        """Return what was typed since the last call; b"" if nothing.

        Raises:
            OSError: The terminal was closed.
        """
        if not self._wait_for_input(0.0):
            return b""
        data = os.read(self._source, MAX_READ_BYTES)
        if not data:
            raise OSError("the terminal was closed")
        return data

    def _wait_for_input(self, seconds: float) -> bool:
        """Wait for something typed, for a time at most, s; return whether there is."""
        readable, _, _ = select.select([self._source], [], [], seconds)
        return bool(readable)

    def _write(self, command: bytes) -> None:
        """Send a command of the protocol, to a terminal that knows it."""
        if self.releases:
            os.write(self._sink, command)

    def _ask_for_kitty(self) -> bool:
        """Ask the terminal whether it knows the protocol.

        Raises:
            DeviceError: The terminal was closed.
        """
        os.write(self._sink, QUERY)
        end = time.monotonic() + MAX_ANSWER_S

        answer = b""
        # The terminal's attributes come last.
        while not ATTRIBUTES.search(answer):
            remaining = end - time.monotonic()
            if remaining <= 0.0:
                break
            if self._wait_for_input(remaining):
                data = os.read(self._source, MAX_READ_BYTES)
                if not data:
                    raise DeviceError(KEYBOARD, "the terminal was closed.")
                answer += data
        return bool(HAS_KITTY.search(answer))
