"""A pseudo-terminal that answers as terminals do."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import termios
import threading
import time

import pytest

from tests.patience import PATIENCE

# Answers to the question for the kitty keyboard protocol and for the terminal's attributes.
ORDINARY = b"\x1b[?62;22c"
KITTY = b"\x1b[?0u\x1b[?62;22c"
MUTE = b""


class Pty:
    """A terminal that answers a question for its abilities, and keeps what it was sent.

    Attributes:
        ours: The end of whoever types.
        theirs: The end of the program.
        seen: What the program has sent.
    """

    def __init__(self, answer: bytes, rows: int = 24, columns: int = 80) -> None:
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        self._answer = answer
        self.seen = b""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._answer_questions)
        self._thread.start()

    def _answer_questions(self) -> None:
        os.set_blocking(self.ours, False)
        while not self._end.wait(0.002):
            with contextlib.suppress(BlockingIOError):
                part = os.read(self.ours, 4096)
                self.seen += part
                if b"\x1b[c" in part:
                    os.write(self.ours, self._answer)

    def type(self, text: bytes) -> None:
        """Type a text, and wait until the program can read it."""
        os.write(self.ours, text)
        # The kernel passes it on by and by.
        assert not text or select.select([self.theirs], [], [], PATIENCE)[0]

    def wait_for(self, text: bytes) -> None:
        """Wait until the program has sent a text."""
        end = time.monotonic() + PATIENCE
        while text not in self.seen and time.monotonic() < end:
            time.sleep(0.002)
        assert text in self.seen

    @property
    def modes(self):
        """The terminal's modes, as termios gives them."""
        return termios.tcgetattr(self.theirs)

    def close(self) -> None:
        """Close both ends."""
        self._end.set()
        self._thread.join()
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def terminal():
    """Make pseudo-terminals, and close them at the end."""
    terminals = []

    def make(*arguments, **size) -> Pty:
        terminals.append(Pty(*arguments, **size))
        return terminals[-1]

    yield make
    for console in terminals:
        console.close()
