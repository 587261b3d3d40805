"""The server of the control socket: a JSON object per line, and one as the answer."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from typing import Any

from simbridge.emulator.browser_guard import BrowserGuard
from simbridge.emulator.control import Control
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.running import RunningController
from simbridge.emulator.servers import MAX_CLIENTS
from simbridge.emulator.state import ControllerEvent

MAX_LINE_BYTES = 1 << 16
# Interval at which the server checks whether it is to end, s.
SHUTDOWN_POLL_S = 0.05


class ControlServer(socketserver.ThreadingTCPServer):
    """Serves the control socket in its own threads.

    It takes commands even while the controller is frozen.

    Args:
        running: The controller that the commands are for.
        host: The address on which the server listens.
        port: The port on which the server listens.

    Raises:
        OSError: The port cannot be opened.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, running: RunningController, host: str, port: int) -> None:
        self._running = running
        self.control = Control(running)
        # The clients' sockets, the oldest first.
        self._connected: list[Any] = []
        super().__init__((host, port), ControlHandler)

    def __enter__(self) -> ControlServer:
        threading.Thread(
            target=self.serve_forever,
            args=(SHUTDOWN_POLL_S,),
            name="simbridge-emulator-control",
            daemon=True,
        ).start()
        return self

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a new client in a thread; if there are too many, disconnect the oldest.

        So clients that stay connected in silence cannot keep others out.
        """
        self._connected = [client for client in self._connected if client.fileno() >= 0]
        if len(self._connected) >= MAX_CLIENTS:
            oldest = self._connected.pop(0)
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)

        self._connected.append(request)
        super().process_request(request, client_address)

    def log_violation(self, violation: ProtocolViolation, data: bytes) -> None:
        """Log that a client was disconnected, and what it sent."""
        with self._running.lock:
            self._running.controller.on_event(ControllerEvent("unknown", str(violation), data=data))

    def __exit__(self, *_exception: object) -> None:
        self.shutdown()
        self.server_close()


class ControlHandler(socketserver.StreamRequestHandler):
    """Answers a client of the control socket, line by line."""

    server: ControlServer

    def handle(self) -> None:
        """Answer until the client leaves, or turns out to be a browser."""
        guard = BrowserGuard("control socket")
        # A client may leave before its answer.
        with contextlib.suppress(OSError):
            while True:
                line = self.rfile.readline(MAX_LINE_BYTES)
                if not line:
                    return

                try:
                    guard.check(line)
                except ProtocolViolation as violation:
                    self.server.log_violation(violation, line)
                    return
                answer = self.server.control.answer(line)
                self.wfile.write(json.dumps(answer).encode() + b"\n")
