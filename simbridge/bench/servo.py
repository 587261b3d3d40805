"""Timing of the servo loop at 500 Hz, compared with ur_rtde's own pacing.

`python -m simbridge.bench.servo HOST SECONDS` streams servoJ as in ur_rtde's examples, in a process of its own.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings

import numpy as np

from simbridge.backends.servo_client import period_figures
from simbridge.backends.ursim_and_real import UrsimBackend
from simbridge.bench import Row
from simbridge.bench.measuring import client, timer
from simbridge.emulator.handle import Emulator
from simbridge.lifeline import end_with_parent
from simbridge.planning.options import Options
from simbridge.robot.load import load_robot

HOST = "127.0.0.42"
SECONDS = 60.0
PERIOD = 0.002
# As `--realtime-priority` takes it.
PRIORITY = 20
CONTROLLER_PRIORITY = 30
TIMER_PRIORITY = 40
# A setpoint sent later than this after its deadline misses its tick.
SLACK = 0.0016


def measure(seconds: float = SECONDS) -> list[Row]:
    """The servo loop for a minute, at real-time priority, and while the parent process computes."""
    rows = []
    for title, busy, priority in (
        ("ordinary priority", False, 0),
        ("real-time priority", False, PRIORITY),
        ("parent computing", True, 0),
    ):
        # A real controller is a separate real-time computer: the emulated one must not wait for our loop.
        with Emulator(
            "ur10e", polyscope="5.12", host=HOST, realtime_priority=CONTROLLER_PRIORITY
        ) as controller:
            # It runs in parallel, at real-time priority where that is granted.
            with timer(seconds, PERIOD, TIMER_PRIORITY) as bare:
                ours, refused = _ours(seconds, busy, priority)
                if refused:
                    rows.append(
                        (
                            f"setpoints, {title}",
                            "refused by the system",
                            "how to fix it",
                            "simbridge doctor",
                        )
                    )
                    continue
                due, woken = np.array(json.loads(bare.communicate()[0])).T
                late = woken - due
            theirs = (
                _theirs(controller.host, min(seconds, 20.0)) if not busy and not priority else None
            )
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
    with client("simbridge.bench.servo", host, seconds, quiet=True) as streaming:
        return period_figures(np.array(json.loads(streaming.communicate()[0].splitlines()[-1])))


def _rows(
    title: str, ours: dict[str, float | int], theirs: dict[str, float] | None, *, required: bool
) -> list[Row]:
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
    rows.append(
        (f"states, {title}: age", f"{1e3 * ours['state_age_mean_s']:.2f} ms", "the period", "2 ms")
    )
    return rows


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


if __name__ == "__main__":
    end_with_parent()
    _stream(sys.argv[1], float(sys.argv[2]))
