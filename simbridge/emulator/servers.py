"""The servers of a controller: sockets around the pure protocols, and one thread that serves.

The protocols (rtde.py, dashboard.py, primary.py, robot_api.py) know no sockets: a session gets the
bytes that a client sent and returns the answer. `connections.py` holds what is not sent yet. This
file opens the ports, and runs the thread that accepts clients, reads from them, and sends what
could not be sent at once.
"""

from __future__ import annotations

import errno
import selectors
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import cast

from simbridge.emulator import primary
from simbridge.emulator.connections import Client, Port, Session
from simbridge.emulator.dashboard import GREETING, Dashboard, DashboardConnection
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import CannotListen, ProtocolViolation
from simbridge.emulator.realtime import realtime_package
from simbridge.emulator.robot_api import RobotApi, RobotApiConnection
from simbridge.emulator.rtde import RtdeConnection
from simbridge.emulator.rtde_recipes import RtdeRegistry
from simbridge.emulator.rtde_variables import input_variables
from simbridge.emulator.script_session import ScriptSession
from simbridge.emulator.services import controller_ports
from simbridge.emulator.state import ControllerEvent
from simbridge.emulator.traffic import EventName, Exchange
from simbridge.errors import UnknownName
from simbridge.ur.tables import DASHBOARD, PRIMARY, REALTIME, REST, RTDE, SECONDARY

# Clients of a port at the same time.
MAX_CLIENTS = 64
# Connections that wait to be accepted, per port.
MAX_BACKLOG = 128
# Silence in both directions after which a client of a full port makes room for another, s.
IDLE_S = 10.0
# Bytes that are read at once. A chunk is handled with the lock held; it is small so that no client
# can delay a tick.
CHUNK = 1024
# Rest after a full chunk, s: a flood must not delay the controller's thread.
REST_S = 0.001
# Bytes that wait in the system for a client that does not read.
SEND_BUFFER = 1 << 17
# Silence before the system probes whether a client is still there, s.
KEEPALIVE_S = 30


class Servers:
    """Dashboard, primary, secondary, real-time and RTDE server of one controller.

    A thread accepts, reads and answers; it holds the lock only while a message is handled. Periodic
    packages are sent by `send_due`, straight from the controller's own thread. The fault methods
    (`drop`, `mute`, `refuse`, `delay`) take the standard number of a port, are called without the
    lock held, and have taken effect when they return.

    Args:
        controller: The controller that the ports belong to.
        lock: Held whenever the controller is accessed.
        host: The address to listen on.
        ports: Other numbers to listen on, by the standard number; 0 is any free one.
        on_exchange: Called, with the lock held, with all that clients and controller send each
            other.
        closed: Standard numbers of the ports that refuse connections at the start.

    Attributes:
        address: Numeric address on which it listens; from `start` on.
        ports: The port numbers in use, by the standard number.
        fault: A bug in the emulator that a client's message triggered (the client was
            disconnected).
    """

    def __init__(
        self,
        controller: EmulatedController,
        lock: AbstractContextManager[object],
        *,
        host: str = "127.0.0.1",
        ports: Mapping[int, int] | None = None,
        on_exchange: Callable[[Exchange], None] | None = None,
        closed: Collection[int] = (),
    ) -> None:
        other_ports = ports or {}
        numbers = controller_ports(controller.profile)
        self.ports = {number: other_ports.get(number, number) for number in numbers}
        self.fault: Exception | None = None

        self._controller = controller
        self._lock = lock
        self._host = host
        self._on_exchange = on_exchange

        self._closed = closed
        self._registry = RtdeRegistry(controller)
        self._dashboard = Dashboard(controller)
        # Each port with its clients, by its standard number.
        self._ports: dict[int, Port] = {}
        session_makers = self._session_makers()
        for number in numbers:
            self._ports[number] = Port(number, session_makers[number])
        # The number of clients that have connected so far, to any port.
        self._client_count = 0
        # Ticks from one robot state to the next.
        self._state_divider = max(1, round(primary.PERIOD / controller.profile.period))

        self._selector = selectors.DefaultSelector()
        # A byte through these wakes the thread while it waits for clients.
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._wake_sender.setblocking(False)
        # True from the sending of such a byte until the thread has read it: one is enough.
        self._wake_pending = False
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="simbridge-emulator-io", daemon=True)

    def _session_makers(self) -> dict[int, Callable[[], tuple[Session, bytes]]]:
        """Return the function that makes a client's session and greeting, by port number."""
        controller = self._controller

        def dashboard_session() -> tuple[Session, bytes]:
            return DashboardConnection(self._dashboard), f"{GREETING}\n".encode()

        def script_session() -> tuple[Session, bytes]:
            return ScriptSession(controller), primary.version_message(controller)

        def realtime_session() -> tuple[Session, bytes]:
            return ScriptSession(controller), b""

        def rtde_session() -> tuple[Session, bytes]:
            return RtdeConnection(controller, self._registry), b""

        makers: dict[int, Callable[[], tuple[Session, bytes]]] = {
            DASHBOARD: dashboard_session,
            PRIMARY: script_session,
            SECONDARY: script_session,
            REALTIME: realtime_session,
            RTDE: rtde_session,
        }
        if controller.profile.api_version:
            api = RobotApi(controller)
            makers[REST] = lambda: (RobotApiConnection(api), b"")
        return makers

    def start(self) -> None:
        """Listen and answer from now on.

        Raises:
            CannotListen: A port is in use, or the address is not this computer's.
        """
        try:
            for port in self._ports.values():
                if port.number not in self._closed:
                    self._listen(port)
        except CannotListen:
            self._release()
            raise
        self._selector.register(self._wake_receiver, selectors.EVENT_READ)
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
        """Close all sockets."""
        with self._lock:
            for port in self._ports.values():
                for client in list(port.clients):
                    self._close(client)
                if port.listener is not None:
                    port.listener.close()
        self._wake_receiver.close()
        self._wake_sender.close()
        self._selector.close()

    # What the controller's thread calls, with the lock held

    def send_due(self, tick: int, ticks_passed: int = 1) -> None:
        """Send the periodic packages that are due. The caller holds the lock.

        Args:
            tick: Present tick of the controller.
            ticks_passed: Number of ticks since the last call. A package is sent if it was due in
                any of them.
        """
        for client in self._clients(RTDE):
            package = cast(RtdeConnection, client.session).output(tick, ticks_passed)
            if package:
                client.offer(package)

        if self._clients(REALTIME):
            self._offer(REALTIME, realtime_package(self._controller))

        # The robot state is due every `_state_divider` ticks.
        is_state_due = tick % self._state_divider < ticks_passed
        if is_state_due and (self._clients(PRIMARY) or self._clients(SECONDARY)):
            state = primary.robot_state(self._controller)
            self._offer(PRIMARY, state)
            self._offer(SECONDARY, state)

    def _offer(self, number: int, package: bytes) -> None:
        """Send a periodic package to all clients of a port."""
        for client in self._clients(number):
            client.offer(package)

    def _clients(self, number: int) -> Sequence[Client]:
        """Return the clients of a port; none if this version does not have it."""
        return self._ports[number].clients if number in self._ports else ()

    def broadcast_message(self, message: bytes) -> None:
        """Send a message to the primary interface's clients. The lock is held."""
        for client in self._clients(PRIMARY):
            client.send(message)

    def take_inputs(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Claim RTDE inputs as another client would, until `release_inputs`. The lock is held.

        Other clients get IN_USE meanwhile.

        Args:
            names: The inputs.

        Returns:
            The inputs that a client has claimed already; if there are any, none is claimed here.

        Raises:
            UnknownName: There is no such input.
        """
        known = input_variables(self._controller.profile)
        for name in names:
            if name not in known:
                raise UnknownName("RTDE input", name, known)
        types, _ = self._registry.input_recipe(names, self)
        return tuple(name for name, type in zip(names, types, strict=True) if type == "IN_USE")

    def release_inputs(self) -> None:
        """Release the inputs of `take_inputs`. The lock is held."""
        self._registry.release(self)

    # What others call, without the lock held: questions, and faults

    def clients(self, number: int) -> int:
        """Return how many clients are connected to a port, by its standard number."""
        with self._lock:
            return len(self._ports[number].clients)

    def drop(self, port: int, client: int | None = None) -> None:
        """Cut the connections of a port.

        Args:
            port: The standard number of the port.
            client: Index of the only client to cut: 0 is the oldest. All by default.

        Raises:
            ValueError: There is no such port, or the client is negative.
        """
        if client is not None and client < 0:
            raise ValueError(f"client must not be negative; got {client}")
        with self._lock:
            clients = self._port(port).clients
            dropped = list(clients) if client is None else clients[client : client + 1]
            for connected in dropped:
                self._close(connected)

    def mute(self, port: int, muted: bool = True) -> None:
        """Accept connections, but read and send nothing.

        What arrives meanwhile is answered afterwards.

        Args:
            port: The standard number of the port.
            muted: False ends it.
        """
        muted_port = self._port(port)
        with self._lock:
            muted_port.muted = muted
            for client in list(muted_port.clients):
                self._serve(client)
        self._wake()

    def refuse(self, port: int, refused: bool = True) -> None:
        """Refuse new connections; existing ones stay.

        Args:
            port: The standard number of the port.
            refused: False ends it.

        Raises:
            CannotListen: Another program has taken the port meanwhile.
        """
        refusing_port = self._port(port)
        with self._lock:
            listener = refusing_port.listener
            if not refused and listener is None:
                self._listen(refusing_port)
            elif refused and listener is not None:
                self._selector.unregister(listener)
                listener.close()
                refusing_port.listener = None

    def delay(self, port: int, seconds: float, jitter: float = 0.0) -> None:
        """Delay everything sent on a port; the order is kept.

        Args:
            port: The standard number of the port.
            seconds: The delay, s.
            jitter: Largest variation of the delay to either side, s.
        """
        delayed_port = self._port(port)
        with self._lock:
            delayed_port.delay = seconds
            delayed_port.jitter = jitter

    def _port(self, number: int) -> Port:
        """Return a port by its standard number."""
        if number not in self._ports:
            numbers = ", ".join(map(str, self._ports))
            raise ValueError(f"the controller has no port {number}; it has {numbers}")
        return self._ports[number]

    def _listen(self, port: Port) -> None:
        """Open a port.

        Raises:
            CannotListen: The port is in use, or the address is not this computer's.
        """
        number = self.ports[port.number]
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((self._host, number))
            sock.listen(MAX_BACKLOG)
        except OSError as error:
            sock.close()
            # An unknown host name (gaierror) has a number of another kind: it is reported as an
            # address that is not available.
            is_unknown_host = isinstance(error, socket.gaierror)
            reason = errno.EADDRNOTAVAIL if is_unknown_host else error.errno or errno.EINVAL
            raise CannotListen(self._host, number, reason) from None
        sock.setblocking(False)

        port.listener = sock
        self.address, self.ports[port.number] = sock.getsockname()
        # Programs connect to the controller's own ports as on the controller itself.
        for local_name in ("127.0.0.1", "localhost"):
            own_port = (self.address, self.ports[port.number])
            self._controller.own_ports[local_name, port.number] = own_port
        self._selector.register(sock, selectors.EVENT_READ, port)

    # The I/O thread

    def _wake(self) -> None:
        """Have the thread look after its clients now."""
        if not self._wake_pending:
            self._wake_pending = True
            # Sending fails where the sockets' buffer is full, which wakes the thread anyway, or
            # where the servers have stopped.
            with suppress(OSError):
                self._wake_sender.send(b"\x00")

    def _run(self) -> None:
        """Accept, read and send, until the servers are stopped."""
        while not self._stopping:
            for key, events in self._selector.select(self._timeout()):
                self._handle(key, events)
            with self._lock:
                for client in self._waiting_clients():
                    self._serve(client)

    def _handle(self, key: selectors.SelectorKey, events: int) -> None:
        """Handle what the system reports of a socket.

        Args:
            key: The socket, with its port if clients connect to it, or its client.
            events: Events of the selector.
        """
        if key.fileobj is self._wake_receiver:
            # First the byte, then the flag: whoever calls `_wake` between the two sends no byte,
            # but the cause is handled after all events of this round.
            self._wake_receiver.recv(CHUNK)
            self._wake_pending = False
        elif isinstance(key.data, Port):
            self._accept(key.data)
        else:
            if events & selectors.EVENT_READ:
                self._read(key.data)
            if events & selectors.EVENT_WRITE:
                key.data.blocked = False

    def _waiting_clients(self) -> list[Client]:
        """Return the clients with unsent data, and those to be closed."""
        clients = [client for port in self._ports.values() for client in port.clients]
        return [
            client for client in clients if client.waiting or client.dead or client.session.finished
        ]

    def _timeout(self) -> float | None:
        """Return the time until delayed data is to be sent, s; None if nothing is delayed."""
        with self._lock:
            due = [
                client.due
                for client in self._waiting_clients()
                if client.due is not None and not client.port.muted
            ]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _accept(self, port: Port) -> None:
        """Accept a client, unless the port is full of active ones."""
        listener = port.listener
        if listener is None:
            return
        try:
            sock, _ = listener.accept()
        except OSError:
            # The client has gone, or the listener was closed meanwhile.
            return

        with self._lock:
            has_room = self._make_room(port)
        if not has_room:
            sock.close()
            return

        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_S)

        with self._lock:
            session, greeting = port.connect()
            self._client_count += 1
            client = Client(
                sock,
                port,
                session,
                number=self._client_count,
                wake=self._wake,
                exchange=self._exchange,
            )
            port.clients.append(client)
            self._exchange("connected", client)
            client.send(greeting)
            self._serve(client)

    def _make_room(self, port: Port) -> bool:
        """Close the client of a full port that was silent longest; return whether there is room."""
        if len(port.clients) < MAX_CLIENTS:
            return True
        client = min(port.clients, key=lambda other: other.active)
        if time.monotonic() - client.active < IDLE_S:
            return False
        self._close(client)
        return True

    def _read(self, client: Client) -> None:
        """Read what a client has sent, and answer it."""
        # The client was closed after the selector had reported it.
        if client.sock.fileno() < 0:
            return
        try:
            data = client.sock.recv(CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""

        with self._lock:
            # Without data the client has left.
            if not data or client.dead:
                self._close(client)
                return
            client.active = time.monotonic()
            self._exchange("received", client, data)
            self._answer(client, data)

        if len(data) == CHUNK:
            time.sleep(REST_S)

    def _answer(self, client: Client, data: bytes) -> None:
        """Answer what a client has sent; disconnect one that violates its protocol."""
        try:
            if client.guard is not None:
                client.guard.check(data)
            client.send(client.session.receive(data))
        except ProtocolViolation as error:
            self._controller.on_event(ControllerEvent("unknown", str(error), data=data))
            self._close(client)
        except Exception as error:
            # A bug in the emulator must not end the other clients' connections; `stop` raises it.
            self.fault = self.fault or error
            self._close(client)

    def _exchange(self, event: EventName, client: Client, data: bytes = b"") -> None:
        """Report what a client and the controller send each other."""
        if self._on_exchange is not None:
            clock = self._controller.state.timestamp
            self._on_exchange(
                Exchange(clock, client.port.number, client.number, event=event, bytes=data)
            )

    def _serve(self, client: Client) -> None:
        """Send a client's unsent data, then wait for its events, or close it if it has finished."""
        client.release(time.monotonic())
        if client.dead or (client.session.finished and not client.waiting):
            self._close(client)
            return

        events = 0
        if not client.port.muted:
            if not client.session.finished:
                events |= selectors.EVENT_READ
            if client.blocked:
                events |= selectors.EVENT_WRITE
        self._watch(client, events)

    def _watch(self, client: Client, events: int) -> None:
        """Have the selector report these events of a client, and no others."""
        is_registered = client.sock in self._selector.get_map()
        if not events:
            if is_registered:
                self._selector.unregister(client.sock)
        elif not is_registered:
            self._selector.register(client.sock, events, client)
        elif self._selector.get_key(client.sock).events != events:
            self._selector.modify(client.sock, events, client)

    def _close(self, client: Client) -> None:
        """Close a client's connection, unless it is closed."""
        if client not in client.port.clients:
            return
        client.port.clients.remove(client)
        self._exchange("disconnected", client)
        self._watch(client, 0)
        client.session.close()
        client.sock.close()
