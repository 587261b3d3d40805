"""URScript's functions that make handles, whose methods programs call.

They are of remote procedures, and of EtherNet/IP data.
"""

from __future__ import annotations

from typing import Any

from simbridge.emulator.ethernet_ip import Assembly
from simbridge.emulator.remote_procedures import RemoteServer
from simbridge.emulator.urscript.functions import FunctionGroup
from simbridge.emulator.urscript.values import MAX_ELEMENTS, short, to_text
from simbridge.errors import InvalidParameter


class HandleFunctions(FunctionGroup):
    """The factories of handles.

    The method do_NAME is URScript's function NAME; UR's script manual describes it and its
    arguments.
    """

    def do_rpc_factory(self, _thread: Any, type: str, url: str) -> RemoteServer:
        if type != "xmlrpc":
            raise InvalidParameter("type", short(type), '"xmlrpc"')
        has_scheme = "://" in str(url)
        return RemoteServer(str(url) if has_scheme else f"http://{url}")

    def do_eip_reader_factory(self, _thread: Any, instance_name: Any, data_size: int) -> Assembly:
        if not isinstance(data_size, int) or not 0 <= data_size <= MAX_ELEMENTS:
            needed = f"a whole number from 0 to {MAX_ELEMENTS}"
            raise InvalidParameter("data_size", short(data_size), needed)
        return Assembly(to_text(instance_name), data_size)

    do_eip_writer_factory = do_eip_reader_factory
