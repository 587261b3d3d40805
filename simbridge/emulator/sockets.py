"""URScript's socket functions: a program connects to a server and talks to it.

Every function blocks as URScript's does, by yielding once a tick until its data has arrived or its
timeout is over, so that no tick is delayed. A timeout counts controller time, and one of 0 or less
waits forever, as on a controller.

What a read returns without a value (after its timeout, without a connection, when the server has
closed it, or when the data are of another form) is in UR's script manual: not-a-numbers for
`socket_read_ascii_float`, -1 for integers and bytes, "" for strings, and 0 for `socket_get_var`.
"""

from __future__ import annotations

import contextlib
import errno
import math
import re
import socket
import struct
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any

from simbridge.emulator.urscript.arguments import text_of
from simbridge.emulator.urscript.functions import CALL_COST, FunctionGroup, Wait, script_function
from simbridge.emulator.urscript.values import short, to_text, wrap
from simbridge.errors import InvalidParameter

# Longest time to resolve a name, to connect, or to send, s.
NETWORK_TIMEOUT = 2.0
MAX_SOCKETS = 16
# Received bytes that a connection holds. They are searched in every tick in which a program waits
# for the end of a text.
MAX_BUFFER = 1 << 17
# Bytes that are read at once.
CHUNK = 65536
# Largest count of numbers that URScript reads at once.
MAX_NUMBERS = 30

_CONNECTING = (errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK)
_CONNECTED = (0, errno.EISCONN)

# A list of numbers in brackets, and one of them.
_ASCII_LIST = re.compile(rb"\(([^()]*)\)")
_ASCII_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf)")
# An answer to socket_get_var: a name and an integer of at most 32 bits.
_VARIABLE = re.compile(r"(?P<name>\S+)\s+(?P<value>[+-]?[0-9]{1,10})")
# A backslash sequence, or what is between two of them.
_ESCAPES = re.compile(r"\\.|[^\\]+|\\$")
_ESCAPED = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}


class ProgramSocket:
    """A connection of a program, and what has arrived on it.

    Attributes:
        sock: A non-blocking socket.
        received: Bytes that have arrived, and were not read by the program.
        closed: Whether the server has closed it.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.received = bytearray()
        self.closed = False

    def fill(self) -> None:
        """Read what has arrived."""
        while len(self.received) < MAX_BUFFER and not self.closed:
            try:
                data = self.sock.recv(CHUNK)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            self.closed = not data
            self.received += data

    def take(self, count: int) -> bytes:
        """Remove and return the first `count` received bytes."""
        data = bytes(self.received[:count])
        del self.received[:count]
        return data


class SocketFunctions(FunctionGroup):
    """The socket functions of one program.

    Args:
        period: Duration of a tick, s.
        own_ports: Addresses and ports of the controller's own servers, by those that a program on
            the controller itself would use (127.0.0.1, 30003).
    """

    def __init__(
        self, period: float, own_ports: Mapping[tuple[str, int], tuple[str, int]] | None = None
    ) -> None:
        self._period = period
        self._own_ports = own_ports or {}
        # The open connections by their names in the program.
        self._open: dict[str, ProgramSocket] = {}

    def close(self) -> None:
        """Close all connections: the program has ended."""
        for connection in self._open.values():
            connection.sock.close()
        self._open.clear()

    def _ticks(self, timeout: float) -> Generator[None, None, None]:
        """Yield once per tick until the timeout, s."""
        remaining = float("inf") if timeout <= 0.0 else timeout
        while remaining > 0.0:
            yield
            remaining -= self._period

    # Connecting

    @script_function
    def socket_open(
        self, _thread: Any, address: str, port: int, socket_name: str = "socket_0"
    ) -> Wait:
        self.socket_close(_thread, socket_name)
        if len(self._open) >= MAX_SOCKETS:
            allowed = f"at most {MAX_SOCKETS}"
            raise InvalidParameter("number of sockets", len(self._open) + 1, allowed)

        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        is_connected = False
        try:
            is_connected = yield from self._connect(sock, str(address), int(port))
        except (OSError, OverflowError):
            return False
        finally:
            # This also closes the socket of a program that ends while it connects.
            if not is_connected:
                sock.close()
        if not is_connected:
            return False

        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open[socket_name] = ProgramSocket(sock)
        return True

    def _connect(self, sock: socket.socket, address: str, port: int) -> Generator[None, None, bool]:
        """Connect to a server; return whether that succeeded in time."""
        # The controller's own ports may be served elsewhere than the program believes.
        target = self._own_ports.get((address, port))
        if target is None:
            numeric_address = yield from self._resolve(address)
            target = (numeric_address, port)

        code = errno.EINPROGRESS
        for _ in self._ticks(NETWORK_TIMEOUT):
            code = sock.connect_ex(target)
            if code not in _CONNECTING:
                break
            yield
        return code in _CONNECTED

    def _resolve(self, address: str) -> Generator[None, None, str]:
        """Return the numeric address of a host, after as many ticks as finding it takes.

        A name is resolved in another thread, so that the controller's ticks go on meanwhile; at
        each yield the program waits for the next tick.

        Args:
            address: The name or the address of the host.

        Raises:
            OSError: The host was not found in time.
        """
        with contextlib.suppress(OSError, ValueError):
            # The address as the system has understood it: it also accepts "127.0.0.1 name", and
            # connecting to that text would ask a name server.
            return socket.inet_ntoa(socket.inet_aton(address))

        # The thread appends the address, if it finds one, and then "": one of the two ends the
        # waiting.
        results: list[str] = []

        def resolve() -> None:
            with contextlib.suppress(OSError, ValueError, TypeError):
                results.append(socket.gethostbyname(address))
            results.append("")

        threading.Thread(target=resolve, name="simbridge-resolve", daemon=True).start()
        for _ in self._ticks(NETWORK_TIMEOUT):
            if results:
                break
            yield
        if not results or not results[0]:
            raise OSError(f"the host {short(address)} was not found")
        return results[0]

    @script_function
    def socket_close(self, _thread: Any, socket_name: str = "socket_0") -> None:
        connection = self._open.pop(socket_name, None)
        if connection is not None:
            connection.sock.close()

    # Sending

    def _send(self, socket_name: str, data: bytes) -> Wait:
        """Send data; return whether all of it was sent in time.

        Args:
            socket_name: The connection; without one nothing is sent.
            data: The bytes to send.
        """
        connection = self._open.get(socket_name)
        if connection is None:
            return False

        # Send as much as the system takes in each tick.
        unsent = memoryview(data)
        for _ in self._ticks(NETWORK_TIMEOUT):
            try:
                sent_bytes = connection.sock.send(unsent)
                unsent = unsent[sent_bytes:]
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                return False
            if not len(unsent):
                return True
            yield
        return False

    @script_function
    def socket_send_string(self, thread: Any, str: Any, socket_name: str = "socket_0") -> Wait:
        return (yield from self._send(socket_name, text_of(thread, str).encode()))

    @script_function
    def socket_send_line(self, thread: Any, str: Any, socket_name: str = "socket_0") -> Wait:
        return (yield from self._send(socket_name, text_of(thread, str).encode() + b"\n"))

    @script_function
    def socket_send_byte(self, _thread: Any, value: int, socket_name: str = "socket_0") -> Wait:
        return (yield from self._send(socket_name, bytes([int(value) & 0xFF])))

    @script_function
    def socket_send_int(self, _thread: Any, value: int, socket_name: str = "socket_0") -> Wait:
        return (yield from self._send(socket_name, struct.pack(">i", int(value))))

    @script_function
    def socket_set_var(
        self, thread: Any, name: str, value: int, socket_name: str = "socket_0"
    ) -> Wait:
        request = f"SET {text_of(thread, name)} {int(value)}\n"
        return (yield from self._send(socket_name, request.encode()))

    @script_function
    def socket_get_var(self, thread: Any, name: str, socket_name: str = "socket_0") -> Wait:
        yield from self._send(socket_name, f"GET {text_of(thread, name)}\n".encode())
        line = yield from self.socket_read_line(thread, socket_name)

        # The answer is the name and the value.
        answer = _VARIABLE.fullmatch(line.strip())
        if answer is None or answer["name"] != to_text(name):
            return 0
        return wrap(int(answer["value"]))

    # Reading

    def _read(
        self, socket_name: str, timeout: float, extract: Callable[[ProgramSocket], Any]
    ) -> Generator[None, None, Any]:
        """Wait until what has arrived is complete.

        Args:
            socket_name: The connection; without one the result is None at once.
            timeout: Longest time to wait, s.
            extract: Takes a complete value from what has arrived, and returns it; None if it is not
                complete.

        Returns:
            The value; None after the timeout, or when the server has closed the connection.
        """
        connection = self._open.get(socket_name)
        if connection is None:
            return None

        for _ in self._ticks(timeout):
            connection.fill()
            value = extract(connection)
            if value is not None or connection.closed:
                return value
            yield
        return None

    @script_function
    def socket_read_line(
        self, _thread: Any, socket_name: str = "socket_0", timeout: float = 2.0
    ) -> Wait:
        def extract_line(connection: ProgramSocket) -> str | None:
            end = connection.received.find(b"\n")
            if end < 0:
                return None
            return connection.take(end + 1).decode(errors="replace").rstrip("\r\n")

        return (yield from self._read(socket_name, timeout, extract_line)) or ""

    @script_function
    def socket_read_string(
        self,
        thread: Any,
        socket_name: str = "socket_0",
        prefix: str = "",
        suffix: str = "",
        interpret_escape: bool = False,
        timeout: float = 2.0,
    ) -> Wait:
        # The work for two characters of an escaped text is about one unit of the budget.
        cost = (len(prefix) + len(suffix)) // 2
        if interpret_escape and cost > CALL_COST:
            thread.charge(cost)
        begin = _unescape(prefix) if interpret_escape else prefix.encode()
        end = _unescape(suffix) if interpret_escape else suffix.encode()

        def extract_text(connection: ProgramSocket) -> str | None:
            first = connection.received.find(begin)
            if first < 0 or not connection.received:
                return None
            first += len(begin)

            # Without a suffix everything that has arrived is the text.
            last = connection.received.find(end, first) if end else len(connection.received)
            if last < 0:
                return None
            return connection.take(last + len(end))[first:last].decode(errors="replace")

        return (yield from self._read(socket_name, timeout, extract_text)) or ""

    @script_function
    def socket_read_byte_list(
        self, _thread: Any, number: int, socket_name: str = "socket_0", timeout: float = 2.0
    ) -> Wait:
        return (yield from self._read_integers(socket_name, timeout, number, letter="B"))

    @script_function
    def socket_read_binary_integer(
        self, _thread: Any, number: int, socket_name: str = "socket_0", timeout: float = 2.0
    ) -> Wait:
        return (yield from self._read_integers(socket_name, timeout, number, letter="i"))

    def _read_integers(self, socket_name: str, timeout: float, number: int, *, letter: str) -> Wait:
        """Read integers; return them with their count.

        Args:
            socket_name: The connection.
            timeout: Longest time to wait, s.
            number: Number of integers.
            letter: Format of the integers in `struct`.
        """
        layout = struct.Struct(f">{_check_count(number)}{letter}")

        def extract_numbers(connection: ProgramSocket) -> list[int] | None:
            if len(connection.received) < layout.size:
                return None
            return list(layout.unpack(connection.take(layout.size)))

        values = yield from self._read(socket_name, timeout, extract_numbers)
        return _with_count(values, number, padding=-1)

    @script_function
    def socket_read_ascii_float(
        self, _thread: Any, number: int, socket_name: str = "socket_0", timeout: float = 2.0
    ) -> Wait:
        count = _check_count(number)

        def extract_numbers(connection: ProgramSocket) -> list[float] | None:
            match = _ASCII_LIST.search(connection.received)
            if match is None:
                return None

            words = [word.strip() for word in match[1].split(b",")]
            connection.take(match.end())
            if len(words) != count or not all(_ASCII_NUMBER.fullmatch(word) for word in words):
                return []
            return [float(word) for word in words]

        values = yield from self._read(socket_name, timeout, extract_numbers)
        return _with_count(values, count, padding=math.nan)


def _check_count(number: Any) -> int:
    """Return a count of numbers to be read, checked.

    Raises:
        InvalidParameter: It is not a whole number from 1 to 30.
    """
    if not isinstance(number, int) or not 1 <= number <= MAX_NUMBERS:
        allowed = f"a whole number from 1 to {MAX_NUMBERS}"
        raise InvalidParameter("number to read", short(number), allowed)
    return number


def _with_count(values: list[Any] | None, count: int, *, padding: float) -> list[Any]:
    """Return numbers in URScript's form: how many were read, then the values.

    Args:
        values: The numbers; none where the read has failed, which counts as 0.
        count: Number of values that were asked for.
        padding: Value in the place of each number after a failed read.
    """
    return [len(values), *values] if values else [0, *[padding] * count]


def _unescape(text: str) -> bytes:
    """Return a text with its backslash sequences replaced; an unknown one stays as it is."""
    pieces = []
    for piece in _ESCAPES.findall(text):
        is_sequence = piece.startswith("\\")
        unchanged = piece.encode()
        pieces.append(_ESCAPED.get(piece[1], unchanged) if is_sequence else unchanged)
    return b"".join(pieces)
