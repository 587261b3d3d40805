"""What a controller says while a session goes on: the messages of its primary interface.

Source: Universal Robots, "Client Interfaces". A message has a time stamp in microseconds, a source, a type and its
text; everything is big-endian.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque

from simbridge.ur.packages import MalformedPackage, PackageBuffer
from simbridge.ur.tables import PRIMARY, Message, PrimaryPackage

_PACKAGE, _HEAD = struct.Struct(">iB"), struct.Struct(">QbB")
_MAX_BYTES = 1 << 20
# The newest ones are kept, so many and of so many characters.
_KEPT, _LENGTH = 20, 200
_TIMEOUT = 1.0  # s


def message_words(content: bytes) -> str | None:
    """A robot message as a clause; None for one that says nothing about the program.

    Args:
        content: Of the package, without its size and type.
    """
    with contextlib.suppress(struct.error, IndexError):
        _, _, kind = _HEAD.unpack_from(content)
        rest = content[_HEAD.size :]
        if kind == Message.RUNTIME_EXCEPTION:
            line, column = struct.unpack_from(">2i", rest)
            return f"the program's error in line {line}, column {column}: {_text(rest[8:])}"
        if kind == Message.KEY:
            # Behind a code and an argument: the length of the title, the title, the text.
            title = rest[9 : 9 + rest[8]]
            return f"message {_text(title)}: {_text(rest[9 + rest[8] :])}"
    return None


def _text(data: bytes) -> str:
    return " ".join(data.decode(errors="replace").split())[:_LENGTH]


class ControllerMessages:
    """Listens to a controller's messages from now on, in a thread, until `close`.

    Args:
        host: The controller's address.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._closed = threading.Event()
        self._words: deque[str] = deque(maxlen=_KEPT)
        self._thread = threading.Thread(target=self._listen, name="simbridge-messages", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        # Without this interface a run can do, and whether it is lost others say.
        with contextlib.suppress(OSError, MalformedPackage):
            self._receive()

    def _receive(self) -> None:
        packages = PackageBuffer(_PACKAGE, _MAX_BYTES)
        with socket.create_connection((self._host, PRIMARY), timeout=_TIMEOUT) as connection:
            connection.settimeout(0.05)
            while not self._closed.is_set():
                with contextlib.suppress(TimeoutError):
                    data = connection.recv(1 << 16)
                    if not data:
                        return
                    for kind, content in packages.feed(data):
                        words = message_words(content) if kind == PrimaryPackage.ROBOT_MESSAGE else None
                        if words is not None:
                            self._words.append(words)

    def close(self) -> list[str]:
        """Stop listening; the newest messages as clauses, oldest first."""
        self._closed.set()
        self._thread.join(_TIMEOUT)
        return list(self._words)
