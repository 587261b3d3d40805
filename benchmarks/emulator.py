"""Timing of the emulated controller's ticks at 500 Hz: with a client that streams, and under hostile load.

`python -m benchmarks.emulator HOST SECONDS` takes every tick of a controller, in a process of its own; it is the client
under hostile load, where any program that is sent replaces the running one.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import subprocess
import sys
import time

import numpy as np

from simbridge.bench import Row
from simbridge.bench.measuring import client, wake_ups
from simbridge.emulator.handle import Emulator
from simbridge.lifeline import end_with_parent
from simbridge.ur.rtde import RtdeReader
from simbridge.ur.tables import BRIDGE_PORTS, SECONDARY

HOST = "127.0.0.42"
SECONDS = 60.0
HOSTILE_SECONDS = 20.0
IDLE_SECONDS = 5.0
PERIOD = 0.002

ARMS, SPEED = 4, 10.0
_MOVES = """def moves():
  while True:
    movej([0, -1.5, 1.5, -1.5, -1.5, 0], a=1.4, v=1.0)
    movej([0.5, -1.2, 1.8, -2.1, -1.5, 0.3], a=1.4, v=1.0)
    movel(pose_add(get_actual_tcp_pose(), p[0, 0, 0.1, 0, 0, 0]), a=1.2, v=0.25)
  end
end
"""

_PORTS = (*BRIDGE_PORTS, SECONDARY)
_ATTACKS = (
    b"",  # random bytes in its place
    b"\x00\x16O",
    b"\xff\xffO" + bytes(65532),
    b"x" * 100_000,
    b"def f():\n  while True:\n  end\nend\n",
    b"def f(n=0):\n  f(n + 1)\nend\nf()\n",
    b"def f():\n" + b"f()" * 30_000 + b"\nend\n",
)


def measure(seconds: float = SECONDS, hostile_seconds: float = HOSTILE_SECONDS) -> list[Row]:
    """The emulator's ticks while ur_rtde streams servoJ, and under hostile load."""
    # What this computer allows.
    idle = 1e3 * np.diff([woken for _, woken in wake_ups(IDLE_SECONDS, PERIOD)])
    rows = [
        ("an empty loop here: period std", f"{idle.std():.3f} ms", "required of ticks", "0.2 ms"),
        ("an empty loop here: longest", f"{idle.max():.2f} ms", "the period", "2 ms"),
    ]
    for title, duration, other_client in (
        ("servoJ", seconds, _streaming),
        ("hostile load", hostile_seconds, _counting),
    ):
        with (
            Emulator("ur10e", polyscope="5.12", host=HOST) as controller,
            other_client(HOST, duration) as other,
        ):
            before = len(controller.do("timing")["work"])
            if other_client is _counting:
                _attack(duration)
            output, _ = other.communicate(timeout=duration + 30.0)
            timing = controller.do("timing")
        period, work = (1e3 * np.array(timing[name][before:]) for name in ("period", "work"))
        rows += [
            (f"ticks, {title}: rate", f"{1e3 / period.mean():.2f} Hz", "e-Series", "500.0 Hz"),
            (
                f"ticks, {title}: period std",
                f"{period.std():.3f} ms",
                "required, at most",
                "0.2 ms",
            ),
            (
                f"ticks, {title}: period p99.9",
                f"{np.percentile(period, 99.9):.2f} ms",
                "the period",
                "2 ms",
            ),
            (f"ticks, {title}: longest", f"{period.max():.2f} ms", "the period", "2 ms"),
            (f"ticks, {title}: work, mean", f"{work.mean():.3f} ms", "required, at most", "0.5 ms"),
            (
                f"ticks, {title}: work, p99",
                f"{np.percentile(work, 99):.3f} ms",
                "the period",
                "2 ms",
            ),
        ]
    received, missing = output.split()
    rows.append(
        ("another client, hostile load: ticks missing", missing, "ticks received", received)
    )
    one, several = (_late_ticks(count, hostile_seconds) for count in (1, ARMS))
    rows += [
        ("one arm that moves: ticks a period late", f"{one:.2%}", "of all", "0 %"),
        (
            f"{ARMS} arms that move: ticks a period late",
            f"{several:.2%}",
            "required, at most",
            f"{one + 0.01:.2%}",
        ),
        (
            f"--speed {SPEED:g}, moves: reached",
            f"{_speed(hostile_seconds):.1f}",
            "required",
            f"{SPEED:g}",
        ),
    ]
    return rows


def _late_ticks(count: int, seconds: float) -> float:
    """The share of late ticks of so many arms that move, each with a client that takes every tick."""
    with contextlib.ExitStack() as stack:
        hosts = [str(ipaddress.ip_address(HOST) + i) for i in range(count)]
        arms = [
            stack.enter_context(Emulator("ur10e", polyscope="5.12", host=host)) for host in hosts
        ]
        before = []
        for arm in arms:
            arm.do("run_script", source=_MOVES)
            before.append(len(arm.do("timing")["work"]))
        clients = [stack.enter_context(_counting(host, seconds)) for host in hosts]
        for each in clients:
            each.communicate(timeout=seconds + 30.0)
        periods = [
            arm.do("timing")["period"][first:] for arm, first in zip(arms, before, strict=True)
        ]
    return float(np.mean(np.concatenate(periods) > 2.0 * PERIOD))


def _speed(seconds: float) -> float:
    """How many times faster than real time an arm moves, with one client."""
    with (
        Emulator("ur10e", polyscope="5.12", host=HOST, speed=SPEED) as arm,
        _counting(HOST, seconds) as other,
    ):
        arm.do("run_script", source=_MOVES)
        begin, clock = time.monotonic(), arm.state()["timestamp"]
        other.communicate(timeout=seconds + 30.0)
        taken: float = arm.state()["timestamp"] - clock
        return taken / (time.monotonic() - begin)


def _attack(seconds: float) -> None:
    """Random, truncated and oversized frames, excessive programs, and many half-open connections, on every port."""
    rng = np.random.default_rng(0)
    connections: list[socket.socket] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for port in _PORTS:
            with contextlib.suppress(OSError):
                connection = socket.create_connection((HOST, port), timeout=1.0)
                connection.settimeout(0.1)
                connections.append(connection)
                connection.sendall(
                    _ATTACKS[int(rng.integers(len(_ATTACKS)))]
                    or rng.bytes(int(rng.integers(1, 2000)))
                )
        while len(connections) > 100:
            connections.pop(0).close()
        time.sleep(0.02)
    for connection in connections:
        connection.close()


def _streaming(
    host: str, seconds: float
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """A client that streams servoJ as in ur_rtde's examples."""
    return client("simbridge.bench.servo", host, seconds, quiet=True)


def _counting(
    host: str, seconds: float
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """A client that takes every tick."""
    return client("benchmarks.emulator", host, seconds, quiet=True)


def _count(host: str, seconds: float) -> None:
    """Take the timestamp of every tick; print how many were received, and how many were missing between them."""
    ticks: list[int] = []
    with RtdeReader(host, ["timestamp"], timeout=10.0) as reader:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ticks += [round(state["timestamp"] / PERIOD) for state in reader.wait(1.0)]
    print(len(ticks), ticks[-1] - ticks[0] + 1 - len(ticks))


if __name__ == "__main__":
    end_with_parent()
    _count(sys.argv[1], float(sys.argv[2]))
