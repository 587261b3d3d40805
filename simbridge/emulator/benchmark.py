"""How punctual the emulator is while the real client streams servoJ, and under hostile load.

`python -m simbridge.emulator.benchmark CLIENT HOST SECONDS` is a client, in a process of its own: "servo" streams
servoJ with ur_rtde, which may end its process; "count" takes every tick and says how many came and how many were
missing. Under hostile load it is "count", for whoever sends a program replaces the one that runs, as on a controller.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
import time

import numpy as np
from numpy.typing import NDArray

from simbridge.emulator.handle import Emulator

HOST = "127.0.0.41"
SECONDS = 60.0
BARE_SECONDS = 5.0
HOSTILE_SECONDS = 20.0
_PORTS = (29999, 30001, 30002, 30003, 30004)
_ATTACKS = (
    b"",  # random bytes in its place
    b"\x00\x16O",
    b"\xff\xffO" + bytes(65532),
    b"x" * 100_000,
    b"def f():\n  while True:\n  end\nend\n",
    b"def f(n=0):\n  f(n + 1)\nend\nf()\n",
    b"def f():\n" + b"f()" * 30_000 + b"\nend\n",
)


def measure(seconds: float = SECONDS, hostile_seconds: float = HOSTILE_SECONDS) -> list[tuple[str, str, str, str]]:
    """Rows for the table of `simbridge bench`: figure, value, what it is compared to, its value."""
    bare = _bare_loop(BARE_SECONDS)
    rows = [
        ("an empty loop here: period std", f"{bare.std():.3f} ms", "required of ticks", "0.2 ms"),
        ("an empty loop here: longest", f"{bare.max():.2f} ms", "the period", "2 ms"),
    ]
    for title, duration, kind in (("servoJ", seconds, "servo"), ("hostile load", hostile_seconds, "count")):
        with Emulator("ur10e", polyscope="5.12", host=HOST) as controller:
            command = [sys.executable, "-m", __name__, kind, HOST, str(duration)]
            client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            try:
                before = len(controller.do("timing")["work"])
                if kind == "count":
                    _harass(duration)
                said, _ = client.communicate(timeout=duration + 30.0)
            finally:
                client.kill()
                client.wait()
            timing = controller.do("timing")
            period = 1e3 * np.array(timing["period"][before:])
            work = 1e3 * np.array(timing["work"][before:])
        rows += [
            (f"ticks, {title}: rate", f"{1e3 / period.mean():.2f} Hz", "e-Series", "500.0 Hz"),
            (f"ticks, {title}: period std", f"{period.std():.3f} ms", "required, at most", "0.2 ms"),
            (f"ticks, {title}: period p99.9", f"{np.percentile(period, 99.9):.2f} ms", "the period", "2 ms"),
            (f"ticks, {title}: longest", f"{period.max():.2f} ms", "the period", "2 ms"),
            (f"ticks, {title}: work, mean", f"{work.mean():.3f} ms", "required, at most", "0.5 ms"),
            (f"ticks, {title}: work, p99", f"{np.percentile(work, 99):.3f} ms", "the period", "2 ms"),
        ]
    came, missing = said.split()
    rows.append(("another client, hostile load: ticks missing", missing, "ticks that came", came))
    return rows


def _bare_loop(seconds: float) -> NDArray[np.float64]:
    """Periods (K,), ms, of a loop that does nothing but sleep to 2 ms deadlines: what this machine allows."""
    deadline = time.monotonic()
    woken = []
    for _ in range(round(seconds / 0.002)):
        deadline += 0.002
        time.sleep(max(0.0, deadline - time.monotonic()))
        woken.append(time.monotonic())
    return 1e3 * np.diff(woken)


def _harass(seconds: float) -> None:
    """Random, cut-off and oversized frames, programs that want too much, half-open connections and a crowd.

    On every port, for a bounded time.
    """
    rng = np.random.default_rng(0)
    crowd: list[socket.socket] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for port in _PORTS:
            with contextlib.suppress(OSError):
                connection = socket.create_connection((HOST, port), timeout=1.0)
                connection.settimeout(0.1)
                crowd.append(connection)
                connection.sendall(_ATTACKS[int(rng.integers(len(_ATTACKS)))] or rng.bytes(int(rng.integers(1, 2000))))
        while len(crowd) > 100:
            crowd.pop(0).close()
        time.sleep(0.02)
    for connection in crowd:
        connection.close()


def _stream(host: str, seconds: float) -> None:
    """Stream a slow sine to all joints with ur_rtde, by absolute deadlines."""
    from rtde_control import RTDEControlInterface
    from rtde_receive import RTDEReceiveInterface

    receive = RTDEReceiveInterface(host)
    control = RTDEControlInterface(host)
    start = np.array(receive.getActualQ())
    begin = time.monotonic()
    deadline = begin
    while deadline - begin < seconds:
        deadline += 0.002
        time.sleep(max(0.0, deadline - time.monotonic()))
        q = start + 0.1 * (1.0 - np.cos(deadline - begin))
        control.servoJ(q.tolist(), 0.0, 0.0, 0.002, 0.03, 2000.0)
    control.servoStop()
    control.stopScript()
    # Its destructors would take half a second and add nothing.
    sys.stdout.flush()
    os._exit(0)


def _count(host: str, seconds: float) -> None:
    """Take the timestamp of every tick; print how many came, and how many were missing between them."""
    ticks = []
    with socket.create_connection((host, 30004), timeout=10.0) as connection, connection.makefile("rb") as file:
        for kind, payload in ((86, b"\x00\x02"), (79, struct.pack(">d", 500.0) + b"timestamp"), (83, b"")):
            connection.sendall(struct.pack(">HB", 3 + len(payload), kind) + payload)
            file.read(int.from_bytes(file.read(2), "big") - 2)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            *_, timestamp = struct.unpack(">HBBd", file.read(12))
            ticks.append(round(500.0 * timestamp))
    print(len(ticks), ticks[-1] - ticks[0] + 1 - len(ticks))


if __name__ == "__main__":
    {"servo": _stream, "count": _count}[sys.argv[1]](sys.argv[2], float(sys.argv[3]))
