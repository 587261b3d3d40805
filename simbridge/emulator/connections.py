"""A client's connection: its socket, what waits to be sent, and the faults of the port it came in on."""

from __future__ import annotations

import random
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from simbridge.emulator.commands import Machine
from simbridge.emulator.script_buffer import ScriptBuffer, is_secondary

MAX_WAITING = 1 << 20  # bytes of answers that wait for a client before it is given up


class Session(Protocol):
    """What a server says to one client: a pure protocol object."""

    @property
    def finished(self) -> bool:
        """Whether the client has taken its leave: it is disconnected when it has its answer."""

    def receive(self, data: bytes) -> bytes:
        """The answer.

        Raises:
            ProtocolViolation: The client must be disconnected.
        """

    def close(self) -> None:
        """The client is gone."""


class ScriptSession:
    """The receiving side of the ports 30001 to 30003: programs are run, nothing is answered.

    Args:
        machine: The controller; an e-Series that is not in remote control ignores programs silently.
    """

    finished = False

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._buffer = ScriptBuffer()

    def receive(self, data: bytes) -> bytes:
        programs = self._buffer.receive(data)
        if self._machine.profile.series == "CB3" or self._machine.remote_control:
            replacing = [i for i, program in enumerate(programs) if not is_secondary(program)]
            for i, program in enumerate(programs):
                # A program replaces the one before it. What is replaced in the same breath would never run a tick, and
                # compiling it would only cost time with the lock held.
                if i not in replacing[:-1]:
                    self._machine.load_script(program)
        return b""

    def close(self) -> None:
        """An unfinished program is forgotten."""


@dataclass
class Port:
    """One of the controller's five ports.

    Attributes:
        number: The standard one (30004), by which it is known whatever is really listened on.
        listener: None while connections are refused.
        connect: Makes the session of a new client, and what it is greeted with.
        muted: Clients may connect, but nothing is read and nothing is sent.
        delay, jitter: Everything is sent this many seconds late, give or take the jitter; the order is kept.
    """

    number: int
    listener: socket.socket | None
    connect: Callable[[], tuple[Session, bytes]]
    clients: list[Client] = field(default_factory=list)
    muted: bool = False
    delay: float = 0.0
    jitter: float = 0.0
    random: random.Random = field(default_factory=lambda: random.Random(0))


class Client:
    """One connection. Used with the controller's lock held.

    Args:
        sock: Non-blocking.
        port: Where it came in.
        session: Its protocol.
        attend: Called when the I/O thread must look at this client: something waits, or it is dead.

    Attributes:
        outgoing: What the system would not take yet.
        dead: To be closed.
    """

    def __init__(self, sock: socket.socket, port: Port, session: Session, attend: Callable[[Client], None]) -> None:
        self.sock, self.port, self.session = sock, port, session
        self.outgoing = bytearray()
        self.dead = False
        self._attend = attend
        self._late: deque[tuple[float, bytes]] = deque()
        self._late_size = 0

    @property
    def waiting(self) -> int:
        """Bytes that are not with the system yet."""
        return len(self.outgoing) + self._late_size

    @property
    def due(self) -> float | None:
        """When the next delayed piece is to be sent, by time.monotonic, s."""
        return self._late[0][0] if self._late else None

    def offer(self, package: bytes) -> None:
        """Send a periodic package. A client that has not taken the last one goes without, as on a controller."""
        if not (self.dead or self.port.muted or self.outgoing or self.waiting + len(package) > MAX_WAITING):
            self._put(package)

    def send(self, answer: bytes) -> None:
        """Send an answer; a client that lets a megabyte of them wait is given up."""
        if self.dead or not answer:
            return
        if self.waiting + len(answer) > MAX_WAITING:
            self.kill()
        else:
            self._put(answer)

    def kill(self) -> None:
        """Have the I/O thread close it."""
        self.dead = True
        self._attend(self)

    def release(self, now: float) -> None:
        """Pass on what was delayed until now, and what the system would not take before."""
        if self.port.muted:
            return
        if self.outgoing:
            waiting, self.outgoing = self.outgoing, bytearray()
            self._write(bytes(waiting))
        while self._late and self._late[0][0] <= now:
            _, data = self._late.popleft()
            self._late_size -= len(data)
            self._write(data)

    def _put(self, data: bytes) -> None:
        port = self.port
        if self._late or port.delay or port.jitter:
            due = time.monotonic() + max(0.0, port.delay + port.random.uniform(-port.jitter, port.jitter))
            if self._late:
                due = max(due, self._late[-1][0])
            self._late.append((due, data))
            self._late_size += len(data)
            self._attend(self)
        elif port.muted:
            self.outgoing += data
        else:
            self._write(data)

    def _write(self, data: bytes) -> None:
        taken = 0
        if not self.outgoing:
            try:
                taken = self.sock.send(data)
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                self.kill()
                return
        if taken < len(data):
            self.outgoing += memoryview(data)[taken:]
            self._attend(self)
