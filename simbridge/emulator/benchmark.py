"""How punctual the emulator is while the real client streams servoJ, alone and under hostile load.

`python -m simbridge.emulator.benchmark HOST SECONDS` is the client: a process of its own, for ur_rtde may end it.
"""

from __future__ import annotations

import contextlib
import os
import socket
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
    for title, duration, hostile in (("alone", seconds, False), ("hostile load", hostile_seconds, True)):
        with Emulator("ur10e", polyscope="5.12", host=HOST) as controller:
            client = subprocess.Popen([sys.executable, "-m", __name__, HOST, str(duration)])
            try:
                before = len(controller.do("timing")["work"])
                if hostile:
                    _harass(duration)
                client.wait(duration + 30.0)
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


if __name__ == "__main__":
    _stream(sys.argv[1], float(sys.argv[2]))
