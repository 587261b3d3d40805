"""URScript's socket functions: a program connects to a server and talks to it without delaying a tick.

Every function blocks as URScript's does, by yielding once a tick until its data has arrived or its timeout is over. A
timeout counts controller time, and one of 0 or less waits forever, as on a controller.
"""

from __future__ import annotations

import contextlib
import errno
import re
import socket
import struct
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any

from simbridge.emulator.urscript.arguments import text_of
from simbridge.emulator.urscript.functions import CALL_COST, FunctionGroup, Wait
from simbridge.emulator.urscript.values import short, wrap
from simbridge.errors import InvalidParameter

CONNECT_TIMEOUT = 2.0  # s
_MAX_SOCKETS = 16
# What a connection holds of what has arrived, bytes: it is searched in every tick in which a program waits for its end.
_MAX_BUFFER = 1 << 17
_MAX_NUMBERS = 30  # URScript reads no more at once
_ASCII_LIST = re.compile(rb"\(([^()]*)\)")
# A backslash sequence, or what is between two of them.
_ESCAPES = re.compile(r"\\.|[^\\]+|\\$")


class _Connection:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.received = bytearray()
        self.closed = False

    def fill(self) -> None:
        """Read what has arrived."""
        while len(self.received) < _MAX_BUFFER and not self.closed:
            try:
                data = self.sock.recv(65536)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            self.closed = not data
            self.received += data

    def take(self, count: int) -> bytes:
        taken = bytes(self.received[:count])
        del self.received[:count]
        return taken


class SocketFunctions(FunctionGroup):
    """The socket functions of one program.

    Args:
        own: Where the controller's own ports are, by address and port as on the controller itself (127.0.0.1, 30003).
    """

    def __init__(
        self, period: float, own: Mapping[tuple[str, int], tuple[str, int]] | None = None
    ) -> None:
        self._period, self._own = period, own or {}
        self._open: dict[str, _Connection] = {}

    def close(self) -> None:
        """Close all connections: the program has ended."""
        for connection in self._open.values():
            connection.sock.close()
        self._open.clear()

    def _ticks(self, timeout: float) -> Generator[None, None, None]:
        """One yield per tick until the timeout."""
        left = float("inf") if timeout <= 0.0 else timeout
        while left > 0.0:
            yield
            left -= self._period

    def do_socket_open(
        self, _thread: Any, address: str, port: int, socket_name: str = "socket_0"
    ) -> Wait:
        self.do_socket_close(_thread, socket_name)
        if len(self._open) >= _MAX_SOCKETS:
            raise InvalidParameter(
                "number of sockets", len(self._open) + 1, f"at most {_MAX_SOCKETS}"
            )
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        code = errno.EINPROGRESS
        try:
            wanted = str(address), int(port)
            place = self._own.get(wanted) or ((yield from self._resolved(wanted[0])), wanted[1])
            for _ in self._ticks(CONNECT_TIMEOUT):
                code = sock.connect_ex(place)
                if code not in (errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK):
                    break
                yield
        except (OSError, OverflowError):
            return False
        finally:
            if code not in (0, errno.EISCONN):
                sock.close()
        if code not in (0, errno.EISCONN):
            return False
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open[socket_name] = _Connection(sock)
        return True

    def _resolved(self, address: str) -> Generator[None, None, str]:
        """The numeric address of a host; names are resolved in another thread, which may take long."""
        with contextlib.suppress(OSError, ValueError):
            # As it was understood: "127.0.0.1 name" is taken, too, and connecting to that would ask a name server.
            return socket.inet_ntoa(socket.inet_aton(address))
        found: list[str] = []

        def resolve() -> None:
            with contextlib.suppress(OSError, ValueError, TypeError):
                found.append(socket.gethostbyname(address))
            found.append("")

        threading.Thread(target=resolve, name="simbridge-resolve", daemon=True).start()
        for _ in self._ticks(CONNECT_TIMEOUT):
            if found:
                break
            yield
        if not found or not found[0]:
            raise OSError(f"the host {short(address)} was not found")
        return found[0]

    def do_socket_close(self, _thread: Any, socket_name: str = "socket_0") -> None:
        connection = self._open.pop(socket_name, None)
        if connection is not None:
            connection.sock.close()

    # Sending

    def _send(self, socket_name: str, data: bytes) -> Wait:
        connection = self._open.get(socket_name)
        if connection is None:
            return False
        rest = memoryview(data)
        for _ in self._ticks(CONNECT_TIMEOUT):
            try:
                rest = rest[connection.sock.send(rest) :]
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                return False
            if not len(rest):
                return True
            yield
        return False

    def do_socket_send_string(self, thread: Any, str: Any, socket_name: str = "socket_0") -> Wait:
        return (yield from self._send(socket_name, text_of(thread, str).encode()))

    def do_socket_send_line(self, thread: Any, str: Any, socket_name: str = "socket_0") -> Wait:
        return (yield from self._send(socket_name, text_of(thread, str).encode() + b"\n"))

    def do_socket_send_byte(self, _thread: Any, value: int, socket_name: str = "socket_0") -> Wait:
        return (yield from self._send(socket_name, bytes([int(value) & 0xFF])))

    def do_socket_send_int(self, _thread: Any, value: int, socket_name: str = "socket_0") -> Wait:
        return (yield from self._send(socket_name, struct.pack(">i", int(value))))

    def do_socket_set_var(
        self, thread: Any, name: str, value: int, socket_name: str = "socket_0"
    ) -> Wait:
        return (
            yield from self._send(
                socket_name, f"SET {text_of(thread, name)} {int(value)}\n".encode()
            )
        )

    def do_socket_get_var(self, thread: Any, name: str, socket_name: str = "socket_0") -> Wait:
        yield from self._send(socket_name, f"GET {text_of(thread, name)}\n".encode())
        line = yield from self.do_socket_read_line(thread, socket_name)
        words = line.split()
        return wrap(int(words[1])) if len(words) == 2 and words[0] == name else -1

    # Reading

    def _until(
        self, socket_name: str, timeout: float, found: Callable[[_Connection], Any]
    ) -> Generator[None, None, Any]:
        """What `found` returns for the bytes received so far, once that is not None; None after the timeout."""
        connection = self._open.get(socket_name)
        if connection is None:
            return None
        for _ in self._ticks(timeout):
            connection.fill()
            result = found(connection)
            if result is not None or connection.closed:
                return result
            yield
        return None

    def do_socket_read_line(
        self, _thread: Any, socket_name: str = "socket_0", timeout: float = 2.0
    ) -> Wait:
        def line(connection: _Connection) -> str | None:
            end = connection.received.find(b"\n")
            return (
                None
                if end < 0
                else connection.take(end + 1).decode(errors="replace").rstrip("\r\n")
            )

        return (yield from self._until(socket_name, timeout, line)) or ""

    def do_socket_read_string(
        self, thread: Any, socket_name: str = "socket_0", prefix: str = "", suffix: str = "",
        interpret_escape: bool = False, timeout: float = 2.0,
    ) -> Wait:  # fmt: skip
        cost = (len(prefix) + len(suffix)) >> 1
        if interpret_escape and cost > CALL_COST:
            thread.charge(cost)
        begin, end = (
            _escaped(text) if interpret_escape else text.encode() for text in (prefix, suffix)
        )

        def text(connection: _Connection) -> str | None:
            first = connection.received.find(begin)
            if first < 0 or not connection.received:
                return None
            first += len(begin)
            last = connection.received.find(end, first) if end else len(connection.received)
            if last < 0:
                return None
            return connection.take(last + len(end))[first:last].decode(errors="replace")

        return (yield from self._until(socket_name, timeout, text)) or ""

    def do_socket_read_byte_list(
        self, _thread: Any, number: int, socket_name: str = "socket_0", timeout: float = 2.0
    ) -> Wait:
        return (yield from self._numbers(socket_name, number, "B", timeout))

    def do_socket_read_binary_integer(
        self, _thread: Any, number: int, socket_name: str = "socket_0", timeout: float = 2.0
    ) -> Wait:
        return (yield from self._numbers(socket_name, number, "i", timeout))

    def do_socket_read_ascii_float(
        self, _thread: Any, number: int, socket_name: str = "socket_0", timeout: float = 2.0
    ) -> Wait:
        count = _count(number)

        def numbers(connection: _Connection) -> list[float] | None:
            match = _ASCII_LIST.search(connection.received)
            if match is None:
                return None
            inside = match[1]
            connection.take(match.end())
            try:
                values = [float(word) for word in inside.split(b",")]
            except ValueError:
                return []
            return values if len(values) == count else []

        return _counted((yield from self._until(socket_name, timeout, numbers)) or [], number)

    def _numbers(self, socket_name: str, number: int, kind: str, timeout: float) -> Wait:
        layout = struct.Struct(f">{_count(number)}{kind}")

        def enough(connection: _Connection) -> list[int] | None:
            complete = len(connection.received) >= layout.size
            return list(layout.unpack(connection.take(layout.size))) if complete else None

        return _counted((yield from self._until(socket_name, timeout, enough)) or [], number)


def _count(number: Any) -> int:
    if not isinstance(number, int) or not 1 <= number <= _MAX_NUMBERS:
        raise InvalidParameter(
            "number to read", short(number), f"a whole number from 1 to {_MAX_NUMBERS}"
        )
    return number


def _counted(values: list[Any], number: int) -> list[Any]:
    """URScript's form: how many were read, then the values; after a short read 0 and padding."""
    return [len(values), *values] if values else [0, *[-1] * number]


def _escaped(text: str) -> bytes:
    """The text with its backslash sequences replaced."""
    named = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}
    return b"".join(
        named.get(part[1], part.encode()) if part.startswith("\\") else part.encode()
        for part in _ESCAPES.findall(text)
    )
