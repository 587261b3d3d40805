"""Commands reach a controller without delay."""

from __future__ import annotations

import contextlib
import os
import socket

from simbridge.backends.ur_rtde_link import send_without_delay


def test_commands_do_not_wait_for_acknowledgements():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        port = server.getsockname()[1]
        with (
            socket.create_connection(("127.0.0.1", port)) as commands,
            socket.create_connection(other.getsockname()) as unrelated,
            contextlib.ExitStack() as of_this_computer,
        ):
            # Their peers have no port.
            for end in socket.socketpair():
                of_this_computer.enter_context(end)
            before = os.listdir("/dev/fd")

            send_without_delay(port)

            assert os.listdir("/dev/fd") == before
            assert commands.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert not unrelated.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            commands.sendall(b"still connected")
