"""Timing of the emulated controller's ticks at 500 Hz: with a streaming client, and under attack.

`python -m benchmarks.emulator HOST SECONDS` takes every tick of a controller, in a process of its
own; it is the client under hostile load, where any program that is sent replaces the running one.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

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

# Number of arms that move at once.
ARMS = 4
# How many times faster than real time an arm should move.
SPEED = 10.0
# How long a client may take to end after its time, s.
CLIENT_TIMEOUT_S = 30.0
# Connections that an attack keeps open at most.
MAX_CONNECTIONS = 100

# URScript that moves the arm until it is stopped.
MOVES = """def moves():
  while True:
    movej([0, -1.5, 1.5, -1.5, -1.5, 0], a=1.4, v=1.0)
    movej([0.5, -1.2, 1.8, -2.1, -1.5, 0.3], a=1.4, v=1.0)
    movel(pose_add(get_actual_tcp_pose(), p[0, 0, 0.1, 0, 0, 0]), a=1.2, v=0.25)
  end
end
"""

PORTS = (*BRIDGE_PORTS, SECONDARY)
# What an attack sends: random, truncated and oversized frames, and excessive programs.
RANDOM_BYTES = b""
ATTACKS = (
    RANDOM_BYTES,
    b"\x00\x16O",
    b"\xff\xffO" + bytes(65532),
    b"x" * 100_000,
    b"def f():\n  while True:\n  end\nend\n",
    b"def f(n=0):\n  f(n + 1)\nend\nf()\n",
    b"def f():\n" + b"f()" * 30_000 + b"\nend\n",
)


def measure(seconds: float = SECONDS, hostile_seconds: float = HOSTILE_SECONDS) -> list[Row]:
    """Measure the ticks while ur_rtde streams servoJ, under hostile load, and of moving arms.

    Args:
        seconds: While servoJ is streamed, s.
        hostile_seconds: For each of the others, s.
    """
    return [
        *_idle_rows(),
        *_streaming_rows(seconds),
        *_hostile_rows(hostile_seconds),
        *_moving_rows(hostile_seconds),
    ]


def _idle_rows() -> list[Row]:
    """Measure what this computer allows."""
    periods = 1e3 * np.diff([woken for _, woken in wake_ups(IDLE_SECONDS, PERIOD)])
    deviation = f"{periods.std():.3f} ms"
    longest = f"{periods.max():.2f} ms"
    return [
        ("an empty loop here: period std", deviation, "required of ticks", "0.2 ms"),
        ("an empty loop here: longest", longest, "the period", "2 ms"),
    ]


def _streaming_rows(seconds: float) -> list[Row]:
    """Measure the ticks while ur_rtde streams servoJ."""
    with (
        Emulator("ur10e", polyscope="5.12", host=HOST) as controller,
        _streaming(HOST, seconds) as streaming,
    ):
        before = len(controller.do("timing")["work"])
        streaming.communicate(timeout=seconds + CLIENT_TIMEOUT_S)
        timing = controller.do("timing")
    return _tick_rows("servoJ", timing, before)


def _hostile_rows(seconds: float) -> list[Row]:
    """Measure the ticks under hostile load, and those that another client misses."""
    with (
        Emulator("ur10e", polyscope="5.12", host=HOST) as controller,
        _counting(HOST, seconds) as counting,
    ):
        before = len(controller.do("timing")["work"])
        _attack(seconds)
        output, _ = counting.communicate(timeout=seconds + CLIENT_TIMEOUT_S)
        timing = controller.do("timing")

    received, missing = output.split()
    return [
        *_tick_rows("hostile load", timing, before),
        ("another client, hostile load: ticks missing", missing, "ticks received", received),
    ]


def _tick_rows(title: str, timing: Mapping[str, Sequence[float]], before: int) -> list[Row]:
    """Return the rows of a controller's ticks.

    Args:
        title: For the table.
        timing: The durations of all ticks, s.
        before: Number of ticks that came before the measurement.
    """
    period = 1e3 * np.array(timing["period"][before:])
    work = 1e3 * np.array(timing["work"][before:])
    name = f"ticks, {title}"
    p999 = f"{np.percentile(period, 99.9):.2f} ms"
    work_p99 = f"{np.percentile(work, 99):.3f} ms"
    return [
        (f"{name}: rate", f"{1e3 / period.mean():.2f} Hz", "e-Series", "500.0 Hz"),
        (f"{name}: period std", f"{period.std():.3f} ms", "required, at most", "0.2 ms"),
        (f"{name}: period p99.9", p999, "the period", "2 ms"),
        (f"{name}: longest", f"{period.max():.2f} ms", "the period", "2 ms"),
        (f"{name}: work, mean", f"{work.mean():.3f} ms", "required, at most", "0.5 ms"),
        (f"{name}: work, p99", work_p99, "the period", "2 ms"),
    ]


def _moving_rows(seconds: float) -> list[Row]:
    """Measure the ticks of arms that move, and how fast their time may pass."""
    one = _late_ticks(1, seconds)
    several = _late_ticks(ARMS, seconds)
    return [
        ("one arm that moves: ticks a period late", f"{one:.2%}", "of all", "0 %"),
        (
            f"{ARMS} arms that move: ticks a period late",
            f"{several:.2%}",
            "required, at most",
            f"{one + 0.01:.2%}",
        ),
        (
            f"--speed {SPEED:g}, moves: reached",
            f"{_speed(seconds):.1f}",
            "required",
            f"{SPEED:g}",
        ),
    ]


def _late_ticks(count: int, seconds: float) -> float:
    """Return the fraction of late ticks of arms that move.

    Args:
        count: Number of arms; each has a client that takes every tick.
        seconds: How long, s.
    """
    with contextlib.ExitStack() as stack:
        hosts = [str(ipaddress.ip_address(HOST) + i) for i in range(count)]
        arms = [
            stack.enter_context(Emulator("ur10e", polyscope="5.12", host=host)) for host in hosts
        ]
        before = []
        for arm in arms:
            arm.do("run_script", source=MOVES)
            before.append(len(arm.do("timing")["work"]))
        clients = [stack.enter_context(_counting(host, seconds)) for host in hosts]
        for counting in clients:
            counting.communicate(timeout=seconds + CLIENT_TIMEOUT_S)
        periods = [
            arm.do("timing")["period"][first:] for arm, first in zip(arms, before, strict=True)
        ]
    return float(np.mean(np.concatenate(periods) > 2.0 * PERIOD))


def _speed(seconds: float) -> float:
    """Return how many times faster than real time an arm moves, with one client."""
    with (
        Emulator("ur10e", polyscope="5.12", host=HOST, speed=SPEED) as arm,
        _counting(HOST, seconds) as counting,
    ):
        arm.do("run_script", source=MOVES)
        begin = time.monotonic()
        controller_begin = arm.state()["timestamp"]
        counting.communicate(timeout=seconds + CLIENT_TIMEOUT_S)
        controller_time: float = arm.state()["timestamp"] - controller_begin
        return controller_time / (time.monotonic() - begin)


def _attack(seconds: float) -> None:
    """Send frames and programs to every port, and leave many connections half open."""
    rng = np.random.default_rng(0)
    connections: list[socket.socket] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for port in PORTS:
            with contextlib.suppress(OSError):
                connection = socket.create_connection((HOST, port), timeout=1.0)
                connection.settimeout(0.1)
                connections.append(connection)
                attack = ATTACKS[int(rng.integers(len(ATTACKS)))]
                if attack == RANDOM_BYTES:
                    attack = rng.bytes(int(rng.integers(1, 2000)))
                connection.sendall(attack)
        while len(connections) > MAX_CONNECTIONS:
            connections.pop(0).close()
        time.sleep(0.02)
    for connection in connections:
        connection.close()


def _streaming(
    host: str, seconds: float
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """Run a client that streams servoJ as in ur_rtde's examples."""
    return client("simbridge.bench.servo", host, seconds, quiet=True)


def _counting(
    host: str, seconds: float
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """Run a client that takes every tick."""
    return client("benchmarks.emulator", host, seconds, quiet=True)


def _count(host: str, seconds: float) -> None:
    """Take the timestamp of every tick, and print how many were received, and how many missing."""
    ticks: list[int] = []
    with RtdeReader(host, ["timestamp"], timeout=10.0) as reader:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ticks += [round(state["timestamp"] / PERIOD) for state in reader.wait(1.0)]
    print(len(ticks), ticks[-1] - ticks[0] + 1 - len(ticks))


if __name__ == "__main__":
    end_with_parent()
    _count(sys.argv[1], float(sys.argv[2]))
