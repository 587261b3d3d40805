"""A viser server that only those reach whom a gate admits.

viser has no public hook for the handshake of its web socket: it passes its own `process_request` to
websockets' `serve`, for its pages, and accepts every web socket. While such a server starts,
`serve` is therefore replaced by a function that puts the gate before viser's `process_request`.
That covers pages and web sockets alike. If viser should start its server in another way, nothing is
guarded, and that is an error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import threading
from collections.abc import Awaitable, Callable, Iterator
from http import HTTPStatus
from typing import Any

import viser
import websockets.asyncio.server
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from simbridge.errors import SimbridgeError
from simbridge.report.page_gate import PageGate, split_path

ProcessRequest = Callable[[ServerConnection, Request], Awaitable[Response | None] | Response | None]

# Held while websockets' `serve` is replaced: there is only one for the whole process.
_STARTING = threading.Lock()


class UnguardedServer(SimbridgeError, RuntimeError):
    """viser started its server without asking for the gate.

    Attributes:
        version: The version of viser.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        super().__init__(
            f"viser {version} starts its server in a way that simbridge cannot guard, so that any "
            "page could use it. It was stopped. Install another version of viser; see the "
            "dependencies of simbridge."
        )


class GuardedViserServer(viser.ViserServer):
    """A viser server behind a gate. It prints nothing.

    Args:
        gate: The gate that admits or refuses each request.
        host: The address on which it listens.
        port: The port; viser takes the next free one if it is in use.
        label: The label of its panel.

    Raises:
        UnguardedServer: The gate is not asked. The server has ended, and had no content.
    """

    def __init__(self, gate: PageGate, host: str, port: int, label: str | None = None) -> None:
        with guarded_handshakes(gate) as guarded, contextlib.redirect_stdout(io.StringIO()):
            super().__init__(host, port, label, verbose=False)
        if not guarded.is_set():
            self.stop()
            raise UnguardedServer(viser.__version__)

    def stop(self) -> None:
        """End the server, without a message."""
        with contextlib.redirect_stdout(io.StringIO()):
            super().stop()

    def request_share_url(self, verbose: bool = True) -> None:
        """Do nothing: any page could otherwise open a tunnel by which the server is public."""


@contextlib.contextmanager
def guarded_handshakes(gate: PageGate) -> Iterator[threading.Event]:
    """Put a gate before a viser server that starts within the block.

    Within it, `websockets.asyncio.server.serve` is replaced for the whole process, since viser
    starts its server in a thread of its own. Only viser's servers get the gate. Servers that start
    within two such blocks at once would get each other's gates, so that a second block waits.

    Args:
        gate: The gate that admits or refuses each request.

    Yields:
        An event that is set once a server of viser has started behind the gate.
    """
    guarded = threading.Event()

    def guarded_serve(
        handler: Any, *arguments: Any, **options: Any
    ) -> websockets.asyncio.server.serve:
        # The handler is a function of the server's: it tells viser from other users of websockets
        # in this process, whose servers stay as they are.
        if getattr(handler, "__module__", "").partition(".")[0] == "viser":
            options["process_request"] = behind_gate(gate, options.get("process_request"))
            guarded.set()
        return original_serve(handler, *arguments, **options)

    with _STARTING:
        original_serve = websockets.asyncio.server.serve
        websockets.asyncio.server.serve = guarded_serve  # type: ignore[assignment,misc]
        try:
            yield guarded
        finally:
            websockets.asyncio.server.serve = original_serve  # type: ignore[misc]


def behind_gate(gate: PageGate, process_request: ProcessRequest | None) -> ProcessRequest:
    """Return a `process_request` of websockets that asks a gate first.

    Args:
        gate: The gate that admits or refuses each request.
        process_request: The function that answers an admitted request, whose path it sees without
            the token; None to accept every admitted request.
    """

    def process_guarded_request(
        connection: ServerConnection, request: Request
    ) -> Awaitable[Response | None] | Response | None:
        hosts = request.headers.get_all("Host")
        origins = request.headers.get_all("Origin")
        refusal = gate.refusal(request.path, hosts, origins)
        if refusal:
            return connection.respond(HTTPStatus.FORBIDDEN, f"{refusal}\n")

        if process_request is None:
            return None
        _, path = split_path(request.path)
        return process_request(connection, dataclasses.replace(request, path=path))

    return process_guarded_request
