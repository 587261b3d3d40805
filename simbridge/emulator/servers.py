"""The five servers of a controller: sockets around the pure protocols, and one thread that reads and answers."""

from __future__ import annotations

import errno
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import cast

from simbridge.emulator import primary
from simbridge.emulator.connections import Client, Port, Session
from simbridge.emulator.dashboard import GREETING, Dashboard, DashboardConnection
from simbridge.emulator.emulated_controller import Controller
from simbridge.emulator.errors import CannotListen, ProtocolViolation
from simbridge.emulator.primary import ScriptSession
from simbridge.emulator.rtde import RtdeConnection
from simbridge.emulator.rtde_recipes import RtdeRegistry
from simbridge.emulator.rtde_variables import input_variables
from simbridge.emulator.state import Event
from simbridge.emulator.traffic import EventName, Exchange
from simbridge.errors import UnknownName
from simbridge.ur.tables import DASHBOARD, PORT_NAMES, PRIMARY, REALTIME, RTDE, SECONDARY

MAX_CLIENTS = 64  # per port
IDLE = 10.0  # s without a byte in either direction, after which a client of a full port makes room for another
# A chunk is handled with the lock held; it is small so that no client can delay a tick.
CHUNK = 1024
_REST = 0.001  # s after a full chunk: a flood must not delay the controller's thread
_SEND_BUFFER = 1 << 17  # bytes that wait for a client that does not read
_KEEPALIVE = 30  # s of silence before a peer is probed


class Servers:
    """Dashboard, primary, secondary, real-time and RTDE server of one controller.

    A thread accepts, reads and answers; it holds the lock only while a message is handled. Periodic packages are sent
    by `tick`, straight from the controller's own thread. The fault methods (`drop`, `mute`, `refuse`, `delay`) take the
    standard number of a port, are called without the lock held, and have taken effect when they return.

    Args:
        lock: Held whenever the controller is accessed.
        ports: Other numbers to listen on, by the standard number; 0 is any free one.
        on_exchange: Called, with the lock held, with all that clients and controller send each other.

    Attributes:
        address: On which it listens, as a number.
        ports: The port numbers in use, by the standard number.
        fault: A bug in the emulator that a client's message triggered (the client was disconnected).
    """

    def __init__(
        self,
        controller: Controller,
        lock: AbstractContextManager[object],
        host: str = "127.0.0.1",
        ports: Mapping[int, int] | None = None,
        on_exchange: Callable[[Exchange], None] | None = None,
    ) -> None:
        self._controller, self._lock, self._host = controller, lock, host
        self.ports = {number: (ports or {}).get(number, number) for number in PORT_NAMES}
        self.fault: Exception | None = None
        self._on_exchange = on_exchange
        self._connected = 0
        self._registry = RtdeRegistry(controller)
        dashboard = Dashboard(controller)
        connect: dict[int, Callable[[], tuple[Session, bytes]]] = {
            DASHBOARD: lambda: (DashboardConnection(dashboard), f"{GREETING}\n".encode()),
            PRIMARY: lambda: (ScriptSession(controller), primary.version_message(controller)),
            SECONDARY: lambda: (ScriptSession(controller), primary.version_message(controller)),
            REALTIME: lambda: (ScriptSession(controller), b""),
            RTDE: lambda: (RtdeConnection(controller, self._registry), b""),
        }
        self._ports = {number: Port(number, make) for number, make in connect.items()}
        self._state_every = max(1, round(primary.PERIOD / controller.profile.period))
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        for end in (self._wake_in, self._wake_out):
            end.setblocking(False)
        self._awake = False
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="simbridge-emulator-io", daemon=True)

    def start(self) -> None:
        """Listen and answer from now on; CannotListen if a port is in use, or the address not this computer's."""
        try:
            for port in self._ports.values():
                self._listen(port)
        except CannotListen:
            self._release()
            raise
        self._selector.register(self._wake_in, selectors.EVENT_READ)
        self._thread.start()

    def stop(self) -> None:
        """Close everything, and raise `fault` when there is one. Called without the lock."""
        if self._thread.is_alive():
            self._stopping = True
            self._wake()
            self._thread.join()
        self._release()
        if self.fault is not None:
            raise self.fault

    def _release(self) -> None:
        with self._lock:
            for port in self._ports.values():
                for client in list(port.clients):
                    self._close(client)
                if port.listener is not None:
                    port.listener.close()
        self._wake_in.close()
        self._wake_out.close()
        self._selector.close()

    # What the controller's thread calls, with the lock held

    def tick(self, tick: int, passed: int = 1) -> None:
        """Send what was due in this tick or those passed since the last call. The lock is held."""
        for client in self._ports[RTDE].clients:
            package = cast(RtdeConnection, client.session).output(tick, passed)
            if package:
                client.offer(package)
        if self._ports[REALTIME].clients:
            self._offer(REALTIME, primary.realtime_package(self._controller))
        if tick % self._state_every < passed and (
            self._ports[PRIMARY].clients or self._ports[SECONDARY].clients
        ):
            state = primary.robot_state(self._controller)
            self._offer(PRIMARY, state)
            self._offer(SECONDARY, state)

    def broadcast_message(self, message: bytes) -> None:
        """Send a message to the primary interface's clients. The lock is held."""
        for client in self._ports[PRIMARY].clients:
            client.send(message)

    def take_inputs(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Claim RTDE inputs as another client would, until `release_inputs`: others get IN_USE. The lock is held.

        Returns:
            Those that a client has claimed already; then none is claimed.
        """
        known = input_variables(self._controller.profile)
        for name in names:
            if name not in known:
                raise UnknownName("RTDE input", name, known)
        types, _ = self._registry.input_recipe(names, self)
        return tuple(name for name, kind in zip(names, types, strict=True) if kind == "IN_USE")

    def release_inputs(self) -> None:
        """Release the inputs of `take_inputs`. The lock is held."""
        self._registry.release(self)

    def _offer(self, number: int, package: bytes) -> None:
        for client in self._ports[number].clients:
            client.offer(package)

    def clients(self, number: int) -> int:
        """How many are connected to a port."""
        with self._lock:
            return len(self._ports[number].clients)

    def drop(self, port: int, client: int | None = None) -> None:
        """Cut every connection of a port, or one of them: 0 is the oldest."""
        if client is not None and client < 0:
            raise ValueError(f"client is {client}, it must not be negative")
        with self._lock:
            clients = self._port(port).clients
            for one in list(clients) if client is None else clients[client : client + 1]:
                self._close(one)

    def mute(self, port: int, muted: bool = True) -> None:
        """Accept connections, but read and send nothing; what arrives meanwhile is answered afterwards."""
        found = self._port(port)
        with self._lock:
            found.muted = muted
            for client in list(found.clients):
                self._serve(client)
        self._wake()

    def refuse(self, port: int, refused: bool = True) -> None:
        """Refuse new connections; existing ones stay. CannotListen if another program has taken the port meanwhile."""
        found = self._port(port)
        with self._lock:
            if not refused and found.listener is None:
                self._listen(found)
            elif refused and found.listener is not None:
                self._selector.unregister(found.listener)
                found.listener.close()
                found.listener = None

    def delay(self, port: int, seconds: float, jitter: float = 0.0) -> None:
        """Delay everything sent on a port by `seconds`, plus or minus `jitter`; the order is kept."""
        found = self._port(port)
        with self._lock:
            found.delay, found.jitter = seconds, jitter

    def _port(self, number: int) -> Port:
        if number not in self._ports:
            raise ValueError(
                f"the controller has no port {number}; it has {', '.join(map(str, self._ports))}"
            )
        return self._ports[number]

    # The I/O thread

    def _listen(self, port: Port) -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((self._host, self.ports[port.number]))
            sock.listen(128)
        except OSError as error:
            sock.close()
            reason = (
                errno.EADDRNOTAVAIL
                if isinstance(error, socket.gaierror)
                else error.errno or errno.EINVAL
            )
            raise CannotListen(self._host, self.ports[port.number], reason) from None
        sock.setblocking(False)
        port.listener = sock
        self.address, self.ports[port.number] = sock.getsockname()
        for local in ("127.0.0.1", "localhost"):
            self._controller.own_ports[local, port.number] = self.address, self.ports[port.number]
        self._selector.register(sock, selectors.EVENT_READ, port)

    def _wake(self) -> None:
        if not self._awake:
            self._awake = True
            with suppress(
                OSError
            ):  # the pipe is full, so the thread is awake; or the servers have stopped
                self._wake_out.send(b"\x00")

    def _run(self) -> None:
        while not self._stopping:
            for key, events in self._selector.select(self._timeout()):
                if key.fileobj is self._wake_in:
                    # In this order: a wake-up between the two sets the flag again, and its cause is handled below.
                    self._wake_in.recv(CHUNK)
                    self._awake = False
                elif isinstance(key.data, Port):
                    self._accept(key.data)
                else:
                    if events & selectors.EVENT_READ:
                        self._read(key.data)
                    if events & selectors.EVENT_WRITE:
                        key.data.blocked = False
            with self._lock:
                for client in self._waiting():
                    self._serve(client)

    def _waiting(self) -> list[Client]:
        """The clients with unsent data, and those to be closed."""
        clients = [client for port in self._ports.values() for client in port.clients]
        return [
            client for client in clients if client.waiting or client.dead or client.session.finished
        ]

    def _timeout(self) -> float | None:
        with self._lock:
            due = [
                client.due
                for client in self._waiting()
                if client.due is not None and not client.port.muted
            ]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _accept(self, port: Port) -> None:
        listener = port.listener
        if listener is None:
            return
        try:
            sock, _ = listener.accept()
        except OSError:  # the client has gone, or the listener was closed meanwhile
            return
        with self._lock:
            silent = min(port.clients, key=lambda client: client.active, default=None)
            if silent is not None and len(port.clients) >= MAX_CLIENTS:
                if time.monotonic() - silent.active < IDLE:
                    sock.close()
                    return
                self._close(silent)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE)
        with self._lock:
            session, greeting = port.connect()
            self._connected += 1
            client = Client(sock, port, session, self._connected, self._wake, self._exchange)
            port.clients.append(client)
            self._exchange("connected", client)
            client.send(greeting)
            self._serve(client)

    def _read(self, client: Client) -> None:
        if client.sock.fileno() < 0:
            return
        try:
            data = client.sock.recv(CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        with self._lock:
            if not data or client.dead:
                self._close(client)
                return
            client.active = time.monotonic()
            self._exchange("received", client, data)
            try:
                client.guard.check(data)
                client.send(client.session.receive(data))
            except ProtocolViolation as error:
                self._controller.on_event(Event("unknown", str(error), data=data))
                self._close(client)
            except Exception as error:
                # A bug in the emulator must not end the other clients' connections; `stop` raises it.
                self.fault = self.fault or error
                self._close(client)
        if len(data) == CHUNK:
            time.sleep(_REST)

    def _exchange(self, event: EventName, client: Client, data: bytes = b"") -> None:
        if self._on_exchange is not None:
            clock = self._controller.state.timestamp
            self._on_exchange(Exchange(clock, client.port.number, client.number, event, data))

    def _serve(self, client: Client) -> None:
        """Send a client's unsent data, read from it or not, close it."""
        client.release(time.monotonic())
        if client.dead or (client.session.finished and not client.waiting):
            self._close(client)
            return
        events = 0 if client.port.muted or client.session.finished else selectors.EVENT_READ
        if client.blocked and not client.port.muted:
            events |= selectors.EVENT_WRITE
        self._watch(client, events)

    def _watch(self, client: Client, events: int) -> None:
        registered = client.sock in self._selector.get_map()
        if not events:
            if registered:
                self._selector.unregister(client.sock)
        elif not registered:
            self._selector.register(client.sock, events, client)
        elif self._selector.get_key(client.sock).events != events:
            self._selector.modify(client.sock, events, client)

    def _close(self, client: Client) -> None:
        if client not in client.port.clients:
            return
        client.port.clients.remove(client)
        self._exchange("disconnected", client)
        self._watch(client, 0)
        client.session.close()
        client.sock.close()
