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

# Answers to the question for the kitty keyboard protocol and for the terminal's attributes.
ORDINARY, KITTY, MUTE = b"\x1b[?62;22c", b"\x1b[?0u\x1b[?62;22c", b""


class Pty:
    """A terminal that answers a question for its abilities like this, and what it was sent."""

    def __init__(self, answer: bytes, rows: int = 24, columns: int = 80) -> None:
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        self._answer, self.seen = answer, b""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._answers)
        self._thread.start()

    def _answers(self) -> None:
        os.set_blocking(self.ours, False)
        while not self._end.wait(0.002):
            with contextlib.suppress(BlockingIOError):
                self.seen += (part := os.read(self.ours, 4096))
                if b"\x1b[c" in part:
                    os.write(self.ours, self._answer)

    def type(self, text: bytes) -> None:
        os.write(self.ours, text)
        # The kernel passes it on by and by.
        assert not text or select.select([self.theirs], [], [], 10.0)[0]

    def wait_for(self, text: bytes) -> None:
        """Until it was sent this."""
        end = time.monotonic() + 10.0
        while text not in self.seen and time.monotonic() < end:
            time.sleep(0.002)
        assert text in self.seen

    @property
    def modes(self):
        return termios.tcgetattr(self.theirs)

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        os.close(self.ours)
        os.close(self.theirs)
