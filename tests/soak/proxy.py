"""A faulty network: a process between a controller and its clients that holds back, discards, adds
or changes bytes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import selectors
import socket
import struct
import time
from collections import Counter
from multiprocessing.connection import Connection
from typing import Any

from simbridge.scheduling import ask_for_priority
from simbridge.ur.tables import (
    DASHBOARD,
    PRIMARY,
    REALTIME,
    REST,
    RTDE,
    RTDE_HEADER,
    SECONDARY,
    RtdePackage,
)

_SPAWN = multiprocessing.get_context("spawn")
# Where a state's first variable is, its timestamp: after the header and the recipe's number.
_TIMESTAMP = RTDE_HEADER.size + 1


class Proxy:
    """`with Proxy(host, controller) as proxy:` makes a controller's ports reachable at another
    loopback address.

    Args:
        host: The address.
        controller: The controller's address.
        priority: Real-time priority; 0 for none.
    """

    def __init__(self, host: str, controller: str, priority: int = 0) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(
            target=_serve, args=(host, controller, priority, theirs), daemon=True
        )

    def __enter__(self) -> Proxy:
        self._process.start()
        self._pipe.recv()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._process.kill()
        self._process.join()

    def hold(self, seconds: float) -> None:
        """Pass nothing on for a time, then everything, as a network does that loses packets."""
        self._pipe.send(("hold", seconds))

    def cut(self, *, to_client: bool, to_controller: bool) -> None:
        """From now on discard what is sent in a direction; no connection is closed."""
        self._pipe.send(("cut", (to_client, to_controller)))

    def bursts(self, interval: float) -> None:
        """From now on pass states on only every so many seconds, all that have come until then."""
        self._pipe.send(("bursts", interval))

    def shift_clock(self, seconds: float, states: int) -> None:
        """Add seconds, which need not be finite, to the timestamps of the next states of each
        connection.
        """
        self._pipe.send(("shift_clock", (seconds, states)))

    def garbage(self, port: int, *, to_client: bool, seed: int) -> None:
        """Add random bytes to every connection of a port, in one direction."""
        self._pipe.send(("garbage", (port, to_client, seed)))

    def mend(self) -> None:
        """Close all connections, and be a good network again."""
        self._pipe.send(("mend", None))


class _Network:
    def __init__(self, host: str, controller: str) -> None:
        self._controller = controller
        self._selector = selectors.DefaultSelector()
        # For each socket: its port, the other end, and whether it is the client's.
        self._ends: dict[socket.socket, tuple[int, socket.socket, bool]] = {}
        self._held_until = 0.0
        self._cut = (False, False)
        # States pass only every so many seconds (0: at once), next at this time, s.
        self._burst_interval = 0.0
        self._next_burst = 0.0
        # What is added to the timestamps of the next states, s, and of how many.
        self._clock_shift = 0.0
        # How many states of each connection are shifted, and how many of each were (by the
        # controller's end).
        self._states_to_shift = 0
        self._shifted_states: Counter[socket.socket] = Counter()
        for port in (REST, DASHBOARD, PRIMARY, SECONDARY, REALTIME, RTDE):
            listener = socket.create_server((host, port))
            self._selector.register(listener, selectors.EVENT_READ, port)

    def step(self) -> None:
        left = self._held_until - time.monotonic()
        if left > 0.0:
            time.sleep(min(left, 0.001))
            return
        burst = time.monotonic() >= self._next_burst
        holding = False
        for key, _ in self._selector.select(0.001):
            if isinstance(key.data, int):
                self._connect(*key.fileobj.accept(), key.data)  # type: ignore[union-attr]
            elif key.fileobj in self._ends:
                if self._burst_interval and not burst and self._sends_states(key.fileobj):
                    holding = True
                else:
                    self._pass_on(key.fileobj)  # type: ignore[arg-type]
        if self._burst_interval and burst:
            self._next_burst = time.monotonic() + self._burst_interval
        if holding:
            time.sleep(0.0005)

    def _sends_states(self, end: Any) -> bool:
        """Return whether a socket is the controller's end of a connection to port 30004."""
        port, _, is_client = self._ends[end]
        return port == RTDE and not is_client

    def _connect(self, client: socket.socket, _address: Any, port: int) -> None:
        try:
            controller = socket.create_connection((self._controller, port), timeout=2.0)
        except OSError:
            client.close()
            return
        for end, other, is_client in ((client, controller, True), (controller, client, False)):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.settimeout(0.2)
            self._ends[end] = port, other, is_client
            self._selector.register(end, selectors.EVENT_READ)

    def _pass_on(self, end: socket.socket) -> None:
        _, other, is_client = self._ends[end]
        try:
            data = end.recv(65536)
            if self._shifted_states[end] < self._states_to_shift and self._sends_states(end):
                data = self._with_shifted_clock(end, data)
            if data and not self._cut[is_client]:
                other.sendall(data)
        except OSError:
            data = b""
        if not data:
            self._close(end)

    def _with_shifted_clock(self, end: socket.socket, data: bytes) -> bytes:
        """Whole packages as they were received, the timestamps of the states among them shifted."""
        changed = bytearray(data)
        begin = 0
        while (
            begin + _TIMESTAMP + 8 <= len(changed)
            and self._shifted_states[end] < self._states_to_shift
        ):
            size, kind = RTDE_HEADER.unpack_from(changed, begin)
            if size < RTDE_HEADER.size:
                break
            if kind == RtdePackage.DATA:
                (timestamp,) = struct.unpack_from(">d", changed, begin + _TIMESTAMP)
                struct.pack_into(">d", changed, begin + _TIMESTAMP, timestamp + self._clock_shift)
                self._shifted_states[end] += 1
            begin += size
        return bytes(changed)

    def _close(self, end: socket.socket) -> None:
        _, other, _ = self._ends[end]
        for either in (end, other):
            self._selector.unregister(either)
            del self._ends[either]
            either.close()

    def act(self, what: str, how: Any) -> None:
        if what == "hold":
            self._held_until = time.monotonic() + how
        elif what == "cut":
            self._cut = how
        elif what == "bursts":
            self._burst_interval = how
        elif what == "shift_clock":
            self._clock_shift, self._states_to_shift = how
            self._shifted_states.clear()
        elif what == "garbage":
            wanted, to_client, seed = how
            for end, (port, _, is_client) in list(self._ends.items()):
                if port == wanted and is_client == to_client:
                    with contextlib.suppress(OSError):
                        end.sendall(random.Random(seed).randbytes(1 + seed % 300))
        else:
            self._held_until = 0.0
            self._cut = (False, False)
            self._burst_interval = 0.0
            self._states_to_shift = 0
            while self._ends:
                self._close(next(iter(self._ends)))


def _serve(host: str, controller: str, priority: int, pipe: Connection) -> None:
    if priority:
        ask_for_priority(priority)
    network = _Network(host, controller)
    pipe.send("ready")
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            network.step()
            while pipe.poll():
                network.act(*pipe.recv())
