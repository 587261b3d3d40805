"""URScript's functions that make handles, whose methods programs call.

A handle stands for a server of remote procedures, or for EtherNet/IP data.
"""

from __future__ import annotations

from typing import Any

from simbridge.emulator.ethernet_ip import Assembly
from simbridge.emulator.remote_procedures import RemoteServer
from simbridge.emulator.urscript.functions import FunctionGroup, script_function
from simbridge.emulator.urscript.values import MAX_ELEMENTS, short, to_text
from simbridge.errors import InvalidParameter


class HandleFunctions(FunctionGroup):
    """The factories of handles."""

    @script_function
    def rpc_factory(self, _thread: Any, type: str, url: str) -> RemoteServer:
        if type != "xmlrpc":
            raise InvalidParameter("type", short(type), '"xmlrpc"')
        has_scheme = "://" in str(url)
        return RemoteServer(str(url) if has_scheme else f"http://{url}")

    @script_function
    def eip_reader_factory(self, _thread: Any, instance_name: Any, data_size: int) -> Assembly:
        if not isinstance(data_size, int) or not 0 <= data_size <= MAX_ELEMENTS:
            needed = f"a whole number from 0 to {MAX_ELEMENTS}"
            raise InvalidParameter("data_size", short(data_size), needed)
        return Assembly(to_text(instance_name), data_size)

    eip_writer_factory = eip_reader_factory
