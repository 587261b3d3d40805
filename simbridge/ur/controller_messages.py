"""Listen to what a controller reports on its primary interface during a session."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import deque

from simbridge.ur.packages import MalformedPackage, PackageBuffer
from simbridge.ur.primary import MAX_PACKAGE_BYTES, MESSAGE_HEADER, PACKAGE_HEADER
from simbridge.ur.tables import PRIMARY, READ_ONLY_CODE, Message, PrimaryPackage

# A runtime exception begins with its line and its column.
ERROR_HEAD = struct.Struct(">2i")
# An error begins with its code.
CODE = struct.Struct(">i")
# Code and argument of a key message, bytes.
KEY_HEAD_SIZE = 8
# The newest messages that are kept, and characters of each.
MAX_MESSAGES = 20
MAX_MESSAGE_LENGTH = 200

CONNECT_TIMEOUT_S = 1.0
# Bytes that are read at once.
RECEIVED_BYTES = 1 << 16
# The most that is read in search of the answer to a script, bytes.
MAX_ANSWER_BYTES = 1 << 20
# Interval at which the thread checks whether it is to end, s.
POLL_S = 0.05


def describe_message(content: bytes) -> str | None:
    """Return what a message reports, as a clause.

    Returns:
        The clause; None if the message is not about the program, or is malformed.
    """
    with contextlib.suppress(struct.error, IndexError):
        _, _, kind = MESSAGE_HEADER.unpack_from(content)
        body = content[MESSAGE_HEADER.size :]
        if kind == Message.RUNTIME_EXCEPTION:
            line, column = ERROR_HEAD.unpack_from(body)
            text = _as_text(body[ERROR_HEAD.size :])
            return f"the program's error in line {line}, column {column}: {text}"
        if kind == Message.KEY:
            # The body: a code and an argument, the length of the title, the title, and the text.
            title_length = body[KEY_HEAD_SIZE]
            title_start = KEY_HEAD_SIZE + 1
            title_end = title_start + title_length
            title = _as_text(body[title_start:title_end])
            return f"message {title}: {_as_text(body[title_end:])}"
    return None


def is_refusal(kind: int, content: bytes) -> bool:
    """Return whether a package of the primary interface refuses a script in local control.

    Args:
        kind: Type of the package.
        content: Content of the package.
    """
    if kind != PrimaryPackage.ROBOT_MESSAGE or len(content) < MESSAGE_HEADER.size + CODE.size:
        return False
    _, _, message = MESSAGE_HEADER.unpack_from(content)
    (code,) = CODE.unpack_from(content, MESSAGE_HEADER.size)
    return message == Message.ERROR_CODE and code == READ_ONLY_CODE


def is_script_refused(primary: socket.socket, *, within: float) -> bool:
    """Return whether a primary interface refuses a script because it is in local control.

    PolyScope X says so with the error C210.

    Args:
        primary: The connection on which the script was sent. A controller that still sends when it
            is closed may discard the script; so it is read here.
        within: How long to wait for the answer, s.
    """
    packages = PackageBuffer(PACKAGE_HEADER, MAX_PACKAGE_BYTES)
    received = 0
    deadline = time.monotonic() + within
    with contextlib.suppress(OSError, MalformedPackage):
        while received < MAX_ANSWER_BYTES:
            # After the deadline, only what has arrived already is read.
            primary.settimeout(max(deadline - time.monotonic(), 0.0))
            data = primary.recv(RECEIVED_BYTES)
            if not data:
                break
            received += len(data)
            if any(is_refusal(kind, content) for kind, content in packages.feed(data)):
                return True
    return False


def _as_text(data: bytes) -> str:
    """Return the text in bytes, in one short line."""
    return " ".join(data.decode(errors="replace").split())[:MAX_MESSAGE_LENGTH]


class ControllerMessages:
    """Listens to a controller's messages from now on, in a thread, until `close`.

    Args:
        host: The controller.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._closed = threading.Event()
        # The newest messages, as clauses.
        self._clauses: deque[str] = deque(maxlen=MAX_MESSAGES)
        self._thread = threading.Thread(target=self._run, name="simbridge-messages", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # A run can do without this interface; other connections notice if the controller is lost.
        with contextlib.suppress(OSError, MalformedPackage):
            self._listen()

    def _listen(self) -> None:
        """Keep the messages that come until `close`, or until the connection ends."""
        packages = PackageBuffer(PACKAGE_HEADER, MAX_PACKAGE_BYTES)
        address = (self._host, PRIMARY)
        with socket.create_connection(address, timeout=CONNECT_TIMEOUT_S) as connection:
            connection.settimeout(POLL_S)
            while not self._closed.is_set():
                try:
                    data = connection.recv(RECEIVED_BYTES)
                except TimeoutError:
                    continue
                if not data:
                    return
                for kind, content in packages.feed(data):
                    if kind == PrimaryPackage.ROBOT_MESSAGE:
                        clause = describe_message(content)
                        if clause is not None:
                            self._clauses.append(clause)

    def close(self) -> list[str]:
        """Stop listening, and return the newest messages as clauses, oldest first."""
        self._closed.set()
        self._thread.join(1.0)
        return list(self._clauses)
