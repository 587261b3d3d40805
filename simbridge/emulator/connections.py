"""A client's connection: its socket, its output queue, and the injected faults of its port."""

from __future__ import annotations

import random
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from simbridge.emulator.browser_guard import BrowserGuard
from simbridge.emulator.dashboard import DashboardConnection
from simbridge.emulator.robot_api import RobotApiConnection
from simbridge.emulator.rtde import RtdeConnection
from simbridge.emulator.script_session import ScriptSession
from simbridge.emulator.traffic import EventName
from simbridge.ur.tables import PORT_NAMES, REST

# Bytes of unsent answers before a client is disconnected.
MAX_WAITING = 1 << 20

# The server's side of a connection, a pure protocol object: `receive` returns the answer, or raises
# ProtocolViolation. One that is `finished` has said goodbye, and is disconnected after its answer.
Session: TypeAlias = ScriptSession | DashboardConnection | RtdeConnection | RobotApiConnection


@dataclass
class Port:
    """One of the controller's ports.

    Attributes:
        number: The standard number (30004), which identifies it whatever the actual port number.
        connect: Makes the session of a new client and its greeting.
        listener: Accepts clients; None while connections are refused.
        clients: Connected clients, the oldest first.
        muted: True if clients may connect, but nothing is read or sent.
        delay: Time by which everything is sent late, s; the order is kept.
        jitter: Largest variation of the delay to either side, s.
        random: Draws the jitter.
    """

    number: int
    connect: Callable[[], tuple[Session, bytes]]
    listener: socket.socket | None = None
    clients: list[Client] = field(default_factory=list)
    muted: bool = False
    delay: float = 0.0
    jitter: float = 0.0
    random: random.Random = field(default_factory=lambda: random.Random(0))


class Client:
    """One connection, by a non-blocking socket. Used with the controller's lock held.

    Args:
        sock: A non-blocking socket.
        port: Port to which it is connected.
        session: Answers what it sends.
        number: Number of the client, counted from 1 in the order of connecting, whatever the port.
        wake: Called when the I/O thread must serve this client: it has unsent data, or is dead.
        exchange: Called with "sent", the client and what is sent to it.

    Attributes:
        sock: The socket.
        port: Port to which it is connected.
        session: Answers what it sends.
        number: Number of the client, counted from 1 in the order of connecting, whatever the port.
        guard: Checks what the client sends before the session gets it; None if HTTP requests are
            answered.
        active: The time at which it last sent or took a byte, by time.monotonic, s.
        waiting: Number of unsent bytes.
        blocked: True while the system accepts no more bytes, as far as the I/O thread knows.
        dead: True once the connection is to be closed.
    """

    def __init__(
        self,
        sock: socket.socket,
        port: Port,
        session: Session,
        *,
        number: int,
        wake: Callable[[], None],
        exchange: Callable[[EventName, Client, bytes], None],
    ) -> None:
        self.sock = sock
        self.port = port
        self.session = session
        self.number = number
        self.guard = None if port.number == REST else BrowserGuard(PORT_NAMES[port.number])
        self.active = time.monotonic()
        self.waiting = 0
        self.blocked = False
        self.dead = False

        self._wake = wake
        self._exchange = exchange
        # Unsent pieces, and when each is to be sent, by time.monotonic, s.
        self._queue: deque[tuple[float, bytes]] = deque()

    @property
    def due(self) -> float | None:
        """Time at which the next piece is to be sent, by time.monotonic, s.

        None if there is none, or it cannot be sent.
        """
        return self._queue[0][0] if self._queue and not self.blocked else None

    def offer(self, package: bytes) -> None:
        """Send a periodic package.

        A client that has not received the last one misses it, as on a controller.
        """
        cannot_send = self.dead or self.port.muted or self.blocked
        if not cannot_send and self.waiting + len(package) <= MAX_WAITING:
            self._put(package)

    def send(self, answer: bytes) -> None:
        """Send an answer. A client with a megabyte of unread answers is disconnected."""
        if self.dead or not answer:
            return
        if self.waiting + len(answer) > MAX_WAITING:
            # The I/O thread closes it.
            self.dead = True
            self._wake()
        else:
            self._put(answer)

    def release(self, now: float) -> None:
        """Send what was delayed until now, and what the system accepts again.

        Args:
            now: Present time by time.monotonic, s.
        """
        if self.port.muted:
            return
        while self._queue and not self.blocked and self._queue[0][0] <= now:
            _, data = self._queue.popleft()
            self.waiting -= len(data)
            self._write(data)

    def _put(self, data: bytes) -> None:
        """Send data now, or queue it behind what was sent before."""
        port = self.port
        self._exchange("sent", self, data)

        due = 0.0
        if port.delay or port.jitter:
            delay = max(0.0, port.delay + port.random.uniform(-port.jitter, port.jitter))
            due = time.monotonic() + delay

        if not self._queue and not due and not port.muted:
            self._write(data)
            return

        # The order is kept even where the jitter would change it.
        if self._queue:
            due = max(due, self._queue[-1][0])
        self._queue.append((due, data))
        self.waiting += len(data)
        self._wake()

    def _write(self, data: bytes) -> None:
        """Give data to the system; what it does not accept stays first in the queue."""
        try:
            sent = self.sock.send(data)
            data = data[sent:]
            self.active = time.monotonic()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            # The client has gone, perhaps right after it sent something. That is read first; then
            # its end is noticed.
            self._queue.clear()
            self.waiting = 0
            return

        if data:
            self._queue.appendleft((0.0, data))
            self.waiting += len(data)
            self.blocked = True
            self._wake()
