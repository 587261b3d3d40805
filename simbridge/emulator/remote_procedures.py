"""Calls of remote procedures by XML-RPC: `h = rpc_factory("xmlrpc", url)`, then `h.method(...)`.

A call waits for its answer in a thread of its own while the program yields, so no tick waits for
the network. A pose is sent and received as UR does it: a struct of x, y, z, rx, ry, rz.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Generator
from typing import Any
from urllib.parse import urlsplit
from xmlrpc.client import Fault, ProtocolError, ServerProxy, Transport

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.values import (
    Pose,
    Struct,
    check_size,
    check_string,
    short,
    wrap,
)
from simbridge.errors import InvalidParameter

# Longest time of a call, s.
CALL_TIMEOUT_S = 60.0
# The largest answer of a remote procedure.
MAX_ANSWER_BYTES = 1 << 20
# The method that ends a connection: here each call has a connection of its own.
CLOSE_CONNECTION = "closeXMLRPCClientConnection"
POSE_MEMBERS = ("x", "y", "z", "rx", "ry", "rz")


class RemoteServer:
    """The handle of a server of remote procedures.

    Args:
        url: The server's address, such as "http://127.0.0.1:8000/RPC2".

    Attributes:
        kind: Kind of this value, for messages to programs.
        url: The server's address.

    Raises:
        InvalidParameter: The url is not one of HTTP.
    """

    kind = "a remote procedure handle"

    def __init__(self, url: str) -> None:
        try:
            ServerProxy(url)
            is_http = urlsplit(url).scheme.lower() == "http"
        except (OSError, ValueError):
            is_http = False
        if not is_http:
            needed = "an address such as http://127.0.0.1:8000 (without https)"
            raise InvalidParameter("url", short(url), needed)
        self.url = url

    def call(
        self, _thread: Any, name: str, arguments: tuple[Any, ...]
    ) -> Generator[None, None, Any]:
        """Call a method of the server, and yield once a tick until it has answered.

        Args:
            name: Name of the method; `closeXMLRPCClientConnection` does nothing.
            arguments: Values of URScript.

        Returns:
            The answer, as a value of URScript.

        Raises:
            RuntimeFault: The server cannot be reached, refuses, or does not answer in time.
        """
        if name == CLOSE_CONNECTION:
            return None
        if name.startswith("_"):
            raise RuntimeFault(
                f"There is no remote procedure '{name}': its name begins with an underscore."
            )

        transport = AbortableTransport()
        deadline = time.monotonic() + CALL_TIMEOUT_S
        # The thread appends the answer, or an exception.
        results: list[Any] = []
        sent = [to_remote(argument) for argument in arguments]
        threading.Thread(
            target=self._request,
            args=(transport, name, sent, results),
            name="simbridge-rpc",
            daemon=True,
        ).start()

        failed = f"The remote procedure {name} of {self.url} failed"
        try:
            while not results:
                if time.monotonic() > deadline:
                    raise RuntimeFault(f"{failed}: there was no answer within {CALL_TIMEOUT_S:g} s")
                yield
        finally:
            # This also holds for a program that ends: the thread must not wait for a server that
            # never finishes.
            transport.abort()

        result = results[0]
        if isinstance(result, Exception):
            raise RuntimeFault(f"{failed}: {short(str(result))}")
        return result

    def _request(
        self, transport: AbortableTransport, name: str, arguments: list[Any], results: list[Any]
    ) -> None:
        """Call a method of the server, and append its answer or an exception to the results."""
        try:
            with ServerProxy(self.url, transport=transport) as server:
                # An attribute of a `ServerProxy` is the remote procedure of that name.
                answer = getattr(server, name)(*arguments)
                results.append(from_remote(answer))
        except RecursionError:
            results.append(OSError("the answer is nested too deep"))
        except Fault as error:
            results.append(OSError(error.faultString))
        except ProtocolError as error:
            results.append(OSError(f"{error.errcode} {error.errmsg}"))
        except Exception as error:
            results.append(error)


class AbortableTransport(Transport):
    """A connection that can be aborted, and that limits the size of answers."""

    accept_gzip_encoding = False

    def __init__(self) -> None:
        super().__init__()
        # The socket of the connection; None before there is one.
        self._socket: socket.socket | None = None
        self._is_aborted = False

    def abort(self) -> None:
        """End the connection, even while another thread waits for it."""
        self._is_aborted = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def parse_response(self, response: Any) -> Any:
        """Read and parse an answer.

        Raises:
            OSError: It is too large.
        """
        content = response.read(MAX_ANSWER_BYTES + 1)
        if len(content) > MAX_ANSWER_BYTES:
            raise OSError(f"the answer has more than {MAX_ANSWER_BYTES} bytes")

        parser, unmarshaller = self.getparser()
        parser.feed(content)
        parser.close()
        return unmarshaller.close()

    def make_connection(self, host: Any) -> Any:
        """Connect to a server.

        Raises:
            OSError: That is not possible, or the transport was aborted.
        """
        connection = super().make_connection(host)
        connection.timeout = CALL_TIMEOUT_S
        connection.connect()
        self._socket = connection.sock
        if self._is_aborted:
            # It was ended before there was a connection to shut down.
            raise OSError("it was ended")
        return connection


def to_remote(value: Any) -> Any:
    """Return a value of URScript as XML-RPC has it."""
    if isinstance(value, Pose):
        return dict(zip(POSE_MEMBERS, value, strict=True))
    if isinstance(value, Struct):
        return {name: to_remote(member) for name, member in value.members.items()}
    if isinstance(value, tuple):
        return [to_remote(element) for element in value]
    return value


def from_remote(value: Any) -> Any:
    """Return a received value as a value of URScript.

    Raises:
        RuntimeFault: URScript has no such values, or they are too large.
    """
    if type(value) is int:
        return wrap(value)
    if type(value) is str:
        return check_string(value)
    if isinstance(value, dict):
        if set(value) == set(POSE_MEMBERS):
            return Pose([value[name] for name in POSE_MEMBERS])
        return Struct({name: from_remote(member) for name, member in value.items()})
    if isinstance(value, list):
        elements = tuple(from_remote(element) for element in value)
        check_size(elements)
        return elements
    if type(value) not in (bool, float):
        raise RuntimeFault(f"URScript has no values of the kind {type(value).__name__}.")
    return value
