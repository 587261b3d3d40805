"""Timing at 500 Hz: of the servo loop, compared with ur_rtde's own pacing, and of the emulated controller's ticks.

`python -m simbridge.bench.real_time CLIENT HOST SECONDS` runs a client in a separate process. "ur_rtde" streams servoJ
as in ur_rtde's examples. "count" takes every tick of a controller; it is the client under hostile load, where any
program that is sent replaces the running one.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import socket
import subprocess
import sys
import threading
import time
import warnings

import numpy as np

from simbridge.backends.servo_client import period_figures
from simbridge.backends.ursim_and_real import UrsimBackend
from simbridge.bench import Row
from simbridge.bench.measuring import client, timer, wake_ups
from simbridge.emulator.handle import Emulator
from simbridge.planning.options import Options
from simbridge.robot.load import load_robot
from simbridge.ur.rtde import RtdeReader
from simbridge.ur.tables import BRIDGE_PORTS, SECONDARY

HOST = "127.0.0.42"
SECONDS, HOSTILE_SECONDS, IDLE_SECONDS = 60.0, 20.0, 5.0
PERIOD = 0.002
# As `--realtime-priority` takes it.
PRIORITY = 20
CONTROLLER_PRIORITY = 30
TIMER_PRIORITY = 40
# A setpoint sent later than this after its deadline misses its tick.
SLACK = 0.0016

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


def measure_servo(seconds: float = SECONDS) -> list[Row]:
    """The servo loop for a minute, at real-time priority, and while the parent process computes."""
    rows = []
    for title, busy, priority in (
        ("ordinary priority", False, 0),
        ("real-time priority", False, PRIORITY),
        ("parent computing", True, 0),
    ):
        # A real controller is a separate real-time computer: the emulated one must not wait for our loop.
        with Emulator("ur10e", polyscope="5.12", host=HOST, realtime_priority=CONTROLLER_PRIORITY) as controller:
            # It runs in parallel, at real-time priority where that is granted.
            with timer(seconds, PERIOD, TIMER_PRIORITY) as bare:
                ours, refused = _ours(seconds, busy, priority)
                if refused:
                    rows.append((f"setpoints, {title}", "refused by the system", "how to fix it", "simbridge doctor"))
                    continue
                due, woken = np.array(json.loads(bare.communicate()[0])).T
                late = woken - due
            theirs = _theirs(controller.host, min(seconds, 20.0)) if not busy and not priority else None
        rows += _rows(title, ours, theirs, required=not busy)
        lateness = f"{np.sum(late > SLACK)} times over {1e3 * SLACK:g} ms, at most {1e3 * late.max():.1f} ms"
        missed = f"{ours['missed_deadlines']} deadlines, {ours['missed_states']} states"
        name = f"setpoints, {title}: missed of {round(seconds / PERIOD)}"
        rows.append((name, missed, "a bare timer was late", lateness))
    return rows


def _ours(seconds: float, busy: bool, priority: int) -> tuple[dict[str, float | int], bool]:
    """The figures of our loop, and whether the system refused the priority."""
    robot = load_robot("ur10e")
    backend = UrsimBackend(robot, Options(host=HOST, realtime_priority=priority))
    ended = threading.Event()
    with warnings.catch_warnings(record=True) as notes, backend as arm:
        begin = arm.read().q
        arm.move_to(begin)
        times = np.arange(0.0, seconds, PERIOD)
        plan = begin + 0.1 * (1.0 - np.cos(times))[:, None] * np.ones(robot.n)
        if busy:
            threading.Thread(target=_compute, args=(ended,)).start()
        try:
            for _ in arm.stream(plan):
                pass
        finally:
            ended.set()
    assert backend.loop is not None
    return backend.loop, any("real-time priority" in str(note.message) for note in notes)


def _compute(ended: threading.Event) -> None:
    """Keep one core busy, and with it Python's global interpreter lock."""
    while not ended.is_set():
        sum(range(1000))


def _theirs(host: str, seconds: float) -> dict[str, float]:
    """The same figures for ur_rtde's own pacing."""
    with _client("ur_rtde", host, seconds) as streaming:
        return period_figures(np.array(json.loads(streaming.communicate()[0].splitlines()[-1])))


def _client(kind: str, host: str, seconds: float) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    return client("simbridge.bench.real_time", kind, host, seconds, quiet=True)


def _rows(title: str, ours: dict[str, float | int], theirs: dict[str, float] | None, *, required: bool) -> list[Row]:
    rows = []
    for name, shown, limit in (
        ("rate", lambda found: f"{1.0 / found['period_mean_s']:.2f} Hz", "500.0 +- 0.1 Hz"),
        ("std", lambda found: f"{1e3 * found['period_std_s']:.3f} ms", "0.150 ms"),
        ("p99.9", lambda found: f"{1e3 * found['period_p999_s']:.2f} ms", "3.00 ms"),
        ("longest", lambda found: f"{1e3 * found['period_max_s']:.2f} ms", ""),
    ):
        name = f"setpoints, {title}: {name}"
        if required and limit:
            rows.append((name, shown(ours), "required", limit))
        if theirs is not None:
            rows.append((name, shown(ours), "ur_rtde's waitPeriod", shown(theirs)))
        elif not (required and limit):
            rows.append((name, shown(ours), "the period", "2 ms"))
    rows.append((f"states, {title}: age", f"{1e3 * ours['state_age_mean_s']:.2f} ms", "the period", "2 ms"))
    return rows


def measure_emulator(seconds: float = SECONDS, hostile_seconds: float = HOSTILE_SECONDS) -> list[Row]:
    """The emulator's ticks while ur_rtde streams servoJ, and under hostile load."""
    # What this computer allows.
    idle = 1e3 * np.diff([woken for _, woken in wake_ups(IDLE_SECONDS, PERIOD)])
    rows = [
        ("an empty loop here: period std", f"{idle.std():.3f} ms", "required of ticks", "0.2 ms"),
        ("an empty loop here: longest", f"{idle.max():.2f} ms", "the period", "2 ms"),
    ]
    for title, duration, kind in (("servoJ", seconds, "ur_rtde"), ("hostile load", hostile_seconds, "count")):
        with Emulator("ur10e", polyscope="5.12", host=HOST) as controller, _client(kind, HOST, duration) as other:
            before = len(controller.do("timing")["work"])
            if kind == "count":
                _attack(duration)
            output, _ = other.communicate(timeout=duration + 30.0)
            timing = controller.do("timing")
        period, work = (1e3 * np.array(timing[name][before:]) for name in ("period", "work"))
        rows += [
            (f"ticks, {title}: rate", f"{1e3 / period.mean():.2f} Hz", "e-Series", "500.0 Hz"),
            (f"ticks, {title}: period std", f"{period.std():.3f} ms", "required, at most", "0.2 ms"),
            (f"ticks, {title}: period p99.9", f"{np.percentile(period, 99.9):.2f} ms", "the period", "2 ms"),
            (f"ticks, {title}: longest", f"{period.max():.2f} ms", "the period", "2 ms"),
            (f"ticks, {title}: work, mean", f"{work.mean():.3f} ms", "required, at most", "0.5 ms"),
            (f"ticks, {title}: work, p99", f"{np.percentile(work, 99):.3f} ms", "the period", "2 ms"),
        ]
    received, missing = output.split()
    rows.append(("another client, hostile load: ticks missing", missing, "ticks received", received))
    one, several = (_late_ticks(count, hostile_seconds) for count in (1, ARMS))
    rows += [
        ("one arm that moves: ticks a period late", f"{one:.2%}", "of all", "0 %"),
        (f"{ARMS} arms that move: ticks a period late", f"{several:.2%}", "required, at most", f"{one + 0.01:.2%}"),
        (f"--speed {SPEED:g}, moves: reached", f"{_speed(hostile_seconds):.1f}", "required", f"{SPEED:g}"),
    ]
    return rows


def _late_ticks(count: int, seconds: float) -> float:
    """The share of late ticks of so many arms that move, each with a client that takes every tick."""
    with contextlib.ExitStack() as stack:
        hosts = [str(ipaddress.ip_address(HOST) + i) for i in range(count)]
        arms = [stack.enter_context(Emulator("ur10e", polyscope="5.12", host=host)) for host in hosts]
        before = []
        for arm in arms:
            arm.do("run_script", source=_MOVES)
            before.append(len(arm.do("timing")["work"]))
        clients = [stack.enter_context(_client("count", host, seconds)) for host in hosts]
        for each in clients:
            each.communicate(timeout=seconds + 30.0)
        periods = [arm.do("timing")["period"][first:] for arm, first in zip(arms, before, strict=True)]
    return float(np.mean(np.concatenate(periods) > 2.0 * PERIOD))


def _speed(seconds: float) -> float:
    """How many times faster than real time an arm moves, with one client."""
    with Emulator("ur10e", polyscope="5.12", host=HOST, speed=SPEED) as arm, _client("count", HOST, seconds) as other:
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
                connection.sendall(_ATTACKS[int(rng.integers(len(_ATTACKS)))] or rng.bytes(int(rng.integers(1, 2000))))
        while len(connections) > 100:
            connections.pop(0).close()
        time.sleep(0.02)
    for connection in connections:
        connection.close()


def _stream(host: str, seconds: float) -> None:
    """A slow sine as ur_rtde's examples send it: initPeriod, servoJ, waitPeriod."""
    # Only in the client's own process: it may crash.
    from rtde_control import RTDEControlInterface  # noqa: PLC0415
    from rtde_receive import RTDEReceiveInterface  # noqa: PLC0415 (likewise)

    receive = RTDEReceiveInterface(host)
    control = RTDEControlInterface(host)
    start = np.array(receive.getActualQ())
    sent = []
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        period = control.initPeriod()
        sent.append(time.monotonic())
        q = start + 0.1 * (1.0 - np.cos(sent[-1] - begin))
        control.servoJ(q.tolist(), 0.0, 0.0, PERIOD, 0.03, 2000.0)
        control.waitPeriod(period)
    control.servoStop()
    control.stopScript()
    print(json.dumps(np.diff(sent).tolist()))
    # Skips its destructors, which take half a second.
    sys.stdout.flush()
    os._exit(0)


def _count(host: str, seconds: float) -> None:
    """Take the timestamp of every tick; print how many were received, and how many were missing between them."""
    ticks: list[int] = []
    with RtdeReader(host, ["timestamp"], timeout=10.0) as reader:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ticks += [round(state["timestamp"] / PERIOD) for state in reader.wait(1.0)]
    print(len(ticks), ticks[-1] - ticks[0] + 1 - len(ticks))


if __name__ == "__main__":
    {"ur_rtde": _stream, "count": _count}[sys.argv[1]](sys.argv[2], float(sys.argv[3]))
