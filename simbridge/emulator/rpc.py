"""URScript's remote procedure calls: `h = rpc_factory("xmlrpc", url)`, then `h.method(...)`.

A call waits for its answer in a thread of its own while the program yields, so no tick waits for the network. A pose is
sent and received as UR does it: a struct of x, y, z, rx, ry, rz.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any
from xmlrpc.client import Fault, ProtocolError, ServerProxy, Transport

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.library import FunctionGroup
from simbridge.emulator.urscript.values import Pose, Struct, value_of
from simbridge.errors import InvalidParameter

TIMEOUT = 60.0  # s of one call
_POSE = ("x", "y", "z", "rx", "ry", "rz")


class RpcFunctions(FunctionGroup):
    """rpc_factory."""

    def do_rpc_factory(self, _thread: Any, type: str, url: str) -> RemoteServer:
        if type != "xmlrpc":
            raise InvalidParameter("type", type, '"xmlrpc"')
        return RemoteServer(url if "://" in str(url) else f"http://{url}")


class RemoteServer:
    """The handle of a server.

    Args:
        url: Such as "http://127.0.0.1:8000/RPC2"; "127.0.0.1:8000" is short for http.
    """

    kind = "a remote procedure handle"

    def __init__(self, url: str) -> None:
        try:
            ServerProxy(url)
        except OSError as error:
            raise InvalidParameter("url", url, f"an address such as http://127.0.0.1:8000 ({error})") from None
        self.url = url

    def call(self, _thread: Any, name: str, arguments: tuple[Any, ...]) -> Generator[None, None, Any]:
        """Call a method of the server and wait for the answer; `closeXMLRPCClientConnection` does nothing.

        Raises:
            RuntimeFault: It could not be reached, or answered with an error.
        """
        if name == "closeXMLRPCClientConnection":
            return None
        results: list[Any] = []
        sent = [_sent(argument) for argument in arguments]
        threading.Thread(target=self._request, args=(name, sent, results), name="simbridge-rpc", daemon=True).start()
        while not results:
            yield
        if isinstance(results[0], Exception):
            raise RuntimeFault(f"The remote procedure {name} of {self.url} failed: {results[0]}")
        return results[0]

    def _request(self, name: str, arguments: list[Any], results: list[Any]) -> None:
        try:
            with ServerProxy(self.url, transport=_Transport()) as server:
                results.append(_received(getattr(server, name)(*arguments)))
        except Fault as error:
            results.append(OSError(error.faultString))
        except ProtocolError as error:
            results.append(OSError(f"{error.errcode} {error.errmsg}"))
        except Exception as error:
            results.append(error)


class _Transport(Transport):
    """A connection that gives up after a while."""

    def make_connection(self, host: Any) -> Any:
        connection = super().make_connection(host)
        connection.timeout = TIMEOUT
        return connection


def _sent(value: Any) -> Any:
    if isinstance(value, Pose):
        return dict(zip(_POSE, value, strict=True))
    if isinstance(value, Struct):
        return {name: _sent(item) for name, item in value.members.items()}
    return [_sent(item) for item in value] if isinstance(value, tuple) else value


def _received(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == set(_POSE):
            return Pose([value[name] for name in _POSE])
        return Struct({name: _received(item) for name, item in value.items()})
    return value_of([_received(item) for item in value]) if isinstance(value, list) else value
