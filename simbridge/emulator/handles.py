"""Handles whose methods programs call: of remote procedures, and of EtherNet/IP data.

`h = rpc_factory("xmlrpc", url)`, then `h.method(...)`. A call waits for its answer in a thread of its own while the
program yields, so no tick waits for the network. A pose is sent and received as UR does it: a struct of x, y, z, rx,
ry, rz. Handles for EtherNet/IP are labels in memory, without a fieldbus; what is read is zero.
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
from simbridge.emulator.urscript.arguments import text_of
from simbridge.emulator.urscript.functions import FunctionGroup
from simbridge.emulator.urscript.values import (
    COPY_COST_SHIFT,
    MAX_ELEMENTS,
    Pose,
    Struct,
    check_size,
    check_string,
    short,
    to_text,
    wrap,
)
from simbridge.errors import InvalidParameter

TIMEOUT = 60.0  # s of one call
MAX_ANSWER = 1 << 20  # bytes, the largest answer of a remote procedure
_POSE = ("x", "y", "z", "rx", "ry", "rz")


class HandleFunctions(FunctionGroup):
    """The factories of handles."""

    def do_rpc_factory(self, _thread: Any, type: str, url: str) -> RemoteServer:
        if type != "xmlrpc":
            raise InvalidParameter("type", short(type), '"xmlrpc"')
        return RemoteServer(str(url) if "://" in str(url) else f"http://{url}")

    def do_eip_reader_factory(self, _thread: Any, instance_name: Any, data_size: int) -> Assembly:
        if not isinstance(data_size, int) or not 0 <= data_size <= MAX_ELEMENTS:
            raise InvalidParameter(
                "data_size", short(data_size), f"a whole number from 0 to {MAX_ELEMENTS}"
            )
        return Assembly(to_text(instance_name), data_size)

    do_eip_writer_factory = do_eip_reader_factory


class RemoteServer:
    """The handle of a server, by its address such as "http://127.0.0.1:8000/RPC2"."""

    kind = "a remote procedure handle"

    def __init__(self, url: str) -> None:
        try:
            ServerProxy(url)
            known = urlsplit(url).scheme.lower() == "http"
        except (OSError, ValueError):
            known = False
        if not known:
            raise InvalidParameter(
                "url", short(url), "an address such as http://127.0.0.1:8000 (without https)"
            )
        self.url = url

    def call(
        self, _thread: Any, name: str, arguments: tuple[Any, ...]
    ) -> Generator[None, None, Any]:
        """Call a method of the server and wait for the answer; `closeXMLRPCClientConnection` does nothing."""
        if name == "closeXMLRPCClientConnection":
            return None
        if name.startswith("_"):
            raise RuntimeFault(
                f"There is no remote procedure '{name}': its name begins with an underscore."
            )
        results: list[Any] = []
        transport, deadline = _Transport(), time.monotonic() + TIMEOUT
        request = transport, name, [_sent(argument) for argument in arguments], results
        threading.Thread(
            target=self._request, args=request, name="simbridge-rpc", daemon=True
        ).start()
        failed = f"The remote procedure {name} of {self.url} failed"
        try:
            while not results:
                if time.monotonic() > deadline:
                    raise RuntimeFault(f"{failed}: there was no answer within {TIMEOUT:g} s")
                yield
        finally:  # also where the program has ended: the thread must not wait for a server that never finishes
            transport.abort()
        if isinstance(results[0], Exception):
            raise RuntimeFault(f"{failed}: {short(str(results[0]))}")
        return results[0]

    def _request(
        self, transport: _Transport, name: str, arguments: list[Any], results: list[Any]
    ) -> None:
        try:
            with ServerProxy(self.url, transport=transport) as server:
                results.append(_received(getattr(server, name)(*arguments)))
        except RecursionError:
            results.append(OSError("the answer is nested too deep"))
        except Fault as error:
            results.append(OSError(error.faultString))
        except ProtocolError as error:
            results.append(OSError(f"{error.errcode} {error.errmsg}"))
        except Exception as error:
            results.append(error)


class _Transport(Transport):
    """A connection that can be given up, and takes answers of limited size."""

    accept_gzip_encoding = False
    _socket: Any = None
    _aborted = False

    def abort(self) -> None:
        """End it, also while another thread waits for it."""
        self._aborted = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def parse_response(self, response: Any) -> Any:
        content = response.read(MAX_ANSWER + 1)
        if len(content) > MAX_ANSWER:
            raise OSError(f"the answer has more than {MAX_ANSWER} bytes")
        parser, unmarshaller = self.getparser()
        parser.feed(content)
        parser.close()
        return unmarshaller.close()

    def make_connection(self, host: Any) -> Any:
        connection = super().make_connection(host)
        connection.timeout = TIMEOUT
        connection.connect()
        self._socket = connection.sock
        if self._aborted:  # before there was something to shut down
            raise OSError("it was ended")
        return connection


def _sent(value: Any) -> Any:
    if isinstance(value, Pose):
        return dict(zip(_POSE, value, strict=True))
    if isinstance(value, Struct):
        return {name: _sent(item) for name, item in value.members.items()}
    return [_sent(item) for item in value] if isinstance(value, tuple) else value


def _received(value: Any) -> Any:
    """What was received as a value of URScript."""
    if type(value) is int:
        return wrap(value)
    if type(value) is str:
        return check_string(value)
    if isinstance(value, dict):
        if set(value) == set(_POSE):
            return Pose([value[name] for name in _POSE])
        return Struct({name: _received(item) for name, item in value.items()})
    if isinstance(value, list):
        items = tuple(_received(item) for item in value)
        check_size(items)
        return items
    if type(value) not in (bool, float):
        raise RuntimeFault(f"URScript has no values of the kind {type(value).__name__}.")
    return value


_ZEROS = {
    "bit": False,
    "uint8": 0,
    "uint16": 0,
    "int16": 0,
    "int32": 0,
    "float32": 0.0,
    "string": "",
}
_MAX_LABELS = 1000
_READ_COST = 10  # of a label, in units of a tick's budget
_OTHERS = ("clear", "set_watchdog", "start_watchdog", "stop_watchdog", "close")


class Assembly:
    """An instance of EtherNet/IP with data of some bytes: its methods define labels, read and write them."""

    kind = "an EtherNet/IP handle"

    def __init__(self, name: str, size: int) -> None:
        self.name, self._size = name, size
        # Of each label its zero, and how many of them an array has.
        self._labels: dict[str, tuple[Any, int | None]] = {}

    def call(
        self, thread: Any, name: str, arguments: tuple[Any, ...]
    ) -> Generator[None, None, Any]:
        yield from ()
        word, _, rest = name.partition("_")
        zero = rest.removesuffix("_array")
        if word == "define" and zero in _ZEROS and len(arguments) >= 2:
            label = arguments[1 if len(arguments) == 2 else 2]
            if len(self._labels) >= _MAX_LABELS:
                raise RuntimeFault(f"An EtherNet/IP instance has at most {_MAX_LABELS} labels.")
            length = None
            if rest.endswith("_array"):
                length = arguments[1]
                if not isinstance(length, int) or not 0 <= length <= self._size:
                    needed = f"a whole number from 0 to {self._size}, the size of the data"
                    raise InvalidParameter("length of the array", short(length), needed)
            self._labels[text_of(thread, label)] = _ZEROS[zero], length
            return None
        if name == "read" and len(arguments) == 1:
            if isinstance(arguments[0], tuple):
                return Struct(
                    {to_text(label): self._value(thread, label) for label in arguments[0]}
                )
            return self._value(thread, arguments[0])
        if name == "write" and len(arguments) == 1 and isinstance(arguments[0], Struct):
            for label in arguments[0].members:
                self._value(thread, label)
            return None
        if name not in _OTHERS:
            raise RuntimeFault(
                f"There is no method '{name}' of an EtherNet/IP handle with these arguments."
            )
        return None

    def _value(self, thread: Any, label: Any) -> Any:
        thread.charge(_READ_COST)
        if label not in self._labels:
            raise RuntimeFault(
                f"The EtherNet/IP instance {self.name} has no label '{short(label)}'."
            )
        zero, length = self._labels[label]
        if length is None:
            return zero
        thread.charge(length >> COPY_COST_SHIFT)
        return (zero,) * length
