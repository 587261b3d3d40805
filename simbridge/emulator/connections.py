"""A client's connection: its socket, its output queue, and the injected faults of its port."""

from __future__ import annotations

import random
import re
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from simbridge.emulator.controller import Controller
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.scripts import ScriptBuffer, is_secondary
from simbridge.emulator.state import Event

# How urx sets an output, undocumented, too.
_SET_OUTPUT = re.compile(r"\Adigital_out\[(\d+)\]\s*=\s*(True|False)\s*\Z")
_SET_SPEED = re.compile(r"set speed (\d*\.?\d+)")
_ENDS_PROGRAM = ("stop program", "power off")
MAX_WAITING = 1 << 20  # bytes of unsent answers before a client is disconnected


class Session(Protocol):
    """The server's side of one connection: a pure protocol object."""

    @property
    def finished(self) -> bool:
        """Whether the client has said goodbye: it is disconnected after its answer."""

    def receive(self, data: bytes) -> bytes:
        """The answer.

        Raises:
            ProtocolViolation: The client must be disconnected.
        """

    def close(self) -> None:
        """The client has disconnected."""


class ScriptSession:
    """The receiving side of the ports 30001 to 30003: programs are run, nothing is answered.

    Args:
        controller: The controller; an e-Series that is not in remote control ignores programs.
    """

    finished = False

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._buffer = ScriptBuffer()
        # Words instead of a program. UR does not document them; its own client library, and others that control real
        # arms ("set speed"), send them.
        self._commands: dict[str, Callable[[], object]] = {
            "power on": controller.power_on,
            "power off": controller.power_off,
            "set robotmode run": controller.brake_release,
            "set unlock protective stop": controller.release_protective_stop,
            "stop program": controller.stop_program,
        }

    def receive(self, data: bytes) -> bytes:
        try:
            programs = self._buffer.receive(data)
        except ProtocolViolation:
            self._buffer = ScriptBuffer()  # said once: `close` finds nothing unfinished
            raise
        if self._controller.profile.series == "CB3" or self._controller.remote_control:
            # The main program. One that is replaced or stopped at once would never run a tick, and compiling it would
            # cost time with the lock held.
            main = ""
            for program in programs:
                text = program.strip()
                if command := self._commands.get(text):
                    main = "" if text in _ENDS_PROGRAM else main
                    command()
                elif speed := _SET_SPEED.fullmatch(text):
                    self._controller.set_speed_slider(float(speed[1]))
                elif is_secondary(program):
                    self._load(program)
                else:
                    main = program
            if main:
                self._load(main)
        elif programs:
            self._ignored("the robot is not in remote control", data)
        return b""

    def _load(self, program: str) -> None:
        self._controller.load_script(_SET_OUTPUT.sub(r"set_digital_out(\1, \2)", program))

    def close(self) -> None:
        """An unfinished program is dropped."""
        if rest := self._buffer.rest.strip():
            self._ignored("the client left before its end (a line end, or the `end` of a block, is missing)", rest)

    def _ignored(self, reason: str, data: bytes) -> None:
        self._controller.on_event(Event("unknown", f"script: a program is ignored: {reason}", data=data))


@dataclass
class Port:
    """One of the controller's five ports.

    Attributes:
        number: The standard one (30004), which identifies it whatever the actual port number.
        listener: None while connections are refused.
        connect: Makes the session of a new client and its greeting.
        muted: Clients may connect, but nothing is read or sent.
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
        port: The port that it connected to.
        session: Its protocol.
        attend: Called when the I/O thread must serve this client: it has unsent data, or is dead.
        on_sent: Called with everything that is sent.

    Attributes:
        number: Counted from 1 in the order of connecting, whatever the port.
        active: When it last sent or took a byte, by time.monotonic, s.
        waiting: Number of unsent bytes.
        blocked: The system accepts no more for now.
        dead: To be closed.
    """

    def __init__(
        self,
        sock: socket.socket,
        port: Port,
        session: Session,
        attend: Callable[[Client], None],
        on_sent: Callable[[Client, bytes], None] | None = None,
    ) -> None:
        self.sock, self.port, self.session, self._on_sent = sock, port, session, on_sent
        self.number = 0
        self.active = time.monotonic()
        self.waiting = 0
        self.blocked = self.dead = False
        self._attend = attend
        # Unsent pieces, and when each is to be sent, by time.monotonic, s.
        self._queue: deque[tuple[float, bytes]] = deque()

    @property
    def due(self) -> float | None:
        """When the next piece is to be sent, by time.monotonic, s; None if there is none, or it cannot be sent."""
        return self._queue[0][0] if self._queue and not self.blocked else None

    def offer(self, package: bytes) -> None:
        """Send a periodic package. A client that has not received the last one misses it, as on a controller."""
        if not (self.dead or self.port.muted or self.blocked or self.waiting + len(package) > MAX_WAITING):
            self._put(package)

    def send(self, answer: bytes) -> None:
        """Send an answer. A client with a megabyte of unread answers is disconnected."""
        if self.dead or not answer:
            return
        if self.waiting + len(answer) > MAX_WAITING:
            self._kill()
        else:
            self._put(answer)

    def release(self, now: float) -> None:
        """Send what was delayed until now, and what the system did not accept before."""
        if self.port.muted:
            return
        self.blocked = False
        while self._queue and not self.blocked and self._queue[0][0] <= now:
            _, data = self._queue.popleft()
            self.waiting -= len(data)
            self._write(data)

    def _put(self, data: bytes) -> None:
        port = self.port
        if self._on_sent is not None:
            self._on_sent(self, data)
        due = 0.0
        if port.delay or port.jitter:
            due = time.monotonic() + max(0.0, port.delay + port.random.uniform(-port.jitter, port.jitter))
        if self._queue or due or port.muted:
            self._queue.append((max(due, self._queue[-1][0]) if self._queue else due, data))
            self.waiting += len(data)
            self._attend(self)
        else:
            self._write(data)

    def _write(self, data: bytes) -> None:
        try:
            data = data[self.sock.send(data) :]
            self.active = time.monotonic()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            # It has gone, maybe right after it sent something, which is still to be read; then its end is found.
            self._queue.clear()
            self.waiting = 0
            return
        if data:
            self._queue.appendleft((0.0, data))
            self.waiting += len(data)
            self.blocked = True
            self._attend(self)

    def _kill(self) -> None:
        """Let the I/O thread close it."""
        self.dead = True
        self._attend(self)
