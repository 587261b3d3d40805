"""The control script that the installed ur_rtde uploads to a minimal controller."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

from tests.controllers import loopback
from tests.patience import PATIENCE

HOST = loopback(19)
VERSIONS = {"3.15": (3, 15, 8, 106339), "5.12": (5, 12, 6, 1102099), "5.25": (5, 25, 1, 1103299)}


def catch_script(version: tuple[int, int, int, int]) -> str:
    """Return the script that ur_rtde uploads to a minimal controller.

    ur_rtde runs in a separate process, which is then killed.
    """
    received = bytearray()
    complete = threading.Event()

    def script_port(connection: socket.socket) -> None:
        while data := connection.recv(65536):
            received.extend(data)
            if received.rstrip().endswith(b"\nend"):
                complete.set()

    def dashboard(connection: socket.socket) -> None:
        connection.sendall(b"Connected: Universal Robots Dashboard Server\n")
        answers = {"PolyscopeVersion": f"URSoftware {'.'.join(map(str, version))} (Sep 21 2023)"}
        answers |= {
            "get serial number": "20235500001",
            "is in remote control": "true",
            "stop": "Stopped",
        }
        for line in connection.makefile("r"):
            connection.sendall(f"{answers.get(line.strip(), '?')}\n".encode())

    listeners = [
        _listen(30004, lambda c: _rtde(c, version)),
        _listen(29999, dashboard),
        _listen(30003, script_port),
    ]
    client = f"import rtde_control; rtde_control.RTDEControlInterface({HOST!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", client], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        assert complete.wait(PATIENCE), "ur_rtde did not upload its control script"
    finally:
        process.kill()
        process.wait()
        for listener in listeners:
            # Without it the thread that accepts keeps the port.
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
    return received.decode()


def _listen(port: int, handler: Callable[[socket.socket], None]) -> socket.socket:
    listener = socket.create_server((HOST, port))

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            handler(connection)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


def _rtde(connection: socket.socket, version: tuple[int, int, int, int]) -> None:
    def send(kind: str, payload: bytes) -> None:
        connection.sendall(struct.pack(">HB", len(payload) + 3, ord(kind)) + payload)

    def stream(names: list[str]) -> None:
        values = struct.pack(
            ">B" + "".join(_TYPES[_type(name)] for name in names), 1, *map(_value, names)
        )
        with contextlib.suppress(OSError):
            while True:
                send("U", values)
                time.sleep(0.008)

    names: list[str] = []
    inputs = 0
    for kind, payload in _frames(connection):
        if kind == "V":
            send("V", b"\1")
        elif kind == "v":
            send("v", struct.pack(">4I", *version))
        elif kind == "O":
            names = _names(payload[8:])
            send("O", b"\1" + ",".join(map(_type, names)).encode())
        elif kind == "I":
            inputs += 1
            send("I", bytes([inputs]) + ",".join(map(_type, _names(payload))).encode())
        elif kind == "S":
            send("S", b"\1")
            threading.Thread(target=stream, args=(names,), daemon=True).start()


def _frames(connection: socket.socket) -> Iterator[tuple[str, bytes]]:
    reader = connection.makefile("rb")
    while header := reader.read(3):
        size, kind = struct.unpack(">HB", header)
        yield chr(kind), reader.read(size - 3)


def _names(payload: bytes) -> list[str]:
    return [name for name in payload.decode().split(",") if name]


_TYPES = {"DOUBLE": "d", "INT32": "i", "UINT32": "I", "UINT8": "B"}


def _type(name: str) -> str:
    if name in ("timestamp", "speed_slider_fraction") or "double_register" in name:
        return "DOUBLE"
    if "int_register" in name:
        return "INT32"
    return (
        "UINT32"
        if name.endswith("status_bits") or name in ("runtime_state", "speed_slider_mask")
        else "UINT8"
    )


def _value(name: str) -> int:
    """Powered, normal, and no program plays."""
    return 1 if name in ("robot_status_bits", "runtime_state") else 0
