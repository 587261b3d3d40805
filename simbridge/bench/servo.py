"""The timing of the servo loop at 500 Hz, compared with ur_rtde's own pacing, on the emulated controller.

`python -m simbridge.bench.servo HOST SECONDS` is the rival: a loop as in ur_rtde's examples. Without HOST it is a bare
timer, at real-time priority where that is granted, which runs in parallel with our loop: it shows how often the
computer itself was late.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator

import numpy as np

from simbridge.backends.controller import UrsimBackend
from simbridge.backends.servo_channel import ControllerSettings
from simbridge.bench import Row
from simbridge.emulator.handle import Emulator
from simbridge.robot.load import load_robot
from simbridge.scheduling import ask_for_priority

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
        with Emulator("ur10e", polyscope="5.12", host=HOST, realtime_priority=CONTROLLER_PRIORITY) as controller:
            with _bare_timer(seconds) as timer:
                ours, refused = _ours(seconds, busy, priority)
                if refused:
                    rows.append((f"setpoints, {title}", "refused by the system", "how to fix it", "simbridge doctor"))
                    continue
                late, longest = json.loads(timer.communicate()[0])
            theirs = _theirs(controller.host, min(seconds, 20.0)) if not busy and not priority else None
        rows += _rows(title, seconds, ours, theirs, required=not busy)
        lateness = f"{late} times over {1e3 * SLACK:g} ms, at most {1e3 * longest:.1f} ms"
        missed = f"{ours['missed_deadlines']} deadlines, {ours['missed_states']} states"
        title = f"setpoints, {title}: missed of {round(seconds / PERIOD)}"
        rows.append((title, missed, "a bare timer was late", lateness))
    return rows


def _ours(seconds: float, busy: bool, priority: int) -> tuple[dict[str, float | int], bool]:
    """The figures of our loop, and whether the system refused the priority."""
    robot = load_robot("ur10e")
    backend = UrsimBackend(robot, HOST, settings=ControllerSettings(priority=priority))
    ended = threading.Event()
    with warnings.catch_warnings(record=True) as notes, backend as arm:
        begin = arm.read().q
        arm.move_to(begin)
        times = np.arange(0.0, seconds, PERIOD)
        plan = begin + 0.1 * (1.0 - np.cos(times))[:, None] * np.ones(robot.n)
        worker = threading.Thread(target=_compute, args=(ended,)) if busy else None
        if worker is not None:
            worker.start()
        try:
            for _ in arm.stream(plan):
                pass
        finally:
            ended.set()
    assert backend.loop is not None
    return backend.loop, any("real-time priority" in str(note.message) for note in notes)


def _compute(ended: threading.Event) -> None:
    """Keep one core busy, and with it Python's global interpreter lock."""
    total = 0
    while not ended.is_set():
        total += sum(range(1000))


def _theirs(host: str, seconds: float) -> dict[str, float]:
    """The same figures for ur_rtde's own pacing."""
    found = subprocess.run(
        [sys.executable, "-m", "simbridge.bench.servo", host, str(seconds)], capture_output=True, text=True
    )
    periods = np.array(json.loads(found.stdout.splitlines()[-1]))
    return {
        "period_mean_s": float(periods.mean()),
        "period_std_s": float(periods.std()),
        "period_p999_s": float(np.quantile(periods, 0.999)),
        "period_max_s": float(periods.max()),
    }


@contextlib.contextmanager
def _bare_timer(seconds: float) -> Iterator[subprocess.Popen[str]]:
    """The bare timer, for the duration of one run."""
    command = [sys.executable, "-m", "simbridge.bench.servo", str(seconds)]
    timer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield timer
    finally:
        timer.kill()
        timer.wait()


def _wait_bare(seconds: float) -> None:
    """Wake up every period and do nothing else, at a high priority where the system allows it."""
    ask_for_priority(TIMER_PRIORITY)
    late, longest = 0, 0.0
    due = time.monotonic()
    end = due + seconds
    while due < end:
        due += PERIOD
        time.sleep(max(due - time.monotonic(), 0.0))
        lateness = time.monotonic() - due
        late += lateness > SLACK
        longest = max(longest, lateness)
        # Several missed periods count as one delay.
        due = max(due, time.monotonic() - PERIOD)
    print(json.dumps([late, longest]))


def _rows(
    title: str, seconds: float, ours: dict[str, float | int], theirs: dict[str, float] | None, required: bool
) -> list[Row]:
    limits = {"rate": "500.0 +- 0.1 Hz", "std": "0.150 ms", "p99.9": "3.00 ms"} if required else {}
    figures = {
        "rate": (lambda found: f"{1.0 / found['period_mean_s']:.2f} Hz"),
        "std": (lambda found: f"{1e3 * found['period_std_s']:.3f} ms"),
        "p99.9": (lambda found: f"{1e3 * found['period_p999_s']:.2f} ms"),
        "longest": (lambda found: f"{1e3 * found['period_max_s']:.2f} ms"),
    }
    rows = []
    for name, shown in figures.items():
        if name in limits:
            rows.append((f"setpoints, {title}: {name}", shown(ours), "required", limits[name]))
        if theirs is not None:
            rows.append((f"setpoints, {title}: {name}", shown(ours), "ur_rtde's waitPeriod", shown(theirs)))
        elif name not in limits:
            rows.append((f"setpoints, {title}: {name}", shown(ours), "the period", "2 ms"))
    rows.append((f"states, {title}: age", f"{1e3 * ours['state_age_mean_s']:.2f} ms", "the period", "2 ms"))
    return rows


def _stream(host: str, seconds: float) -> None:
    """A slow sine as ur_rtde's examples send it: initPeriod, servoJ, waitPeriod."""
    from rtde_control import RTDEControlInterface  # only in the rival's own process: it may crash
    from rtde_receive import RTDEReceiveInterface  # likewise

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
    if len(sys.argv) > 2:
        _stream(sys.argv[1], float(sys.argv[2]))
    else:
        _wait_bare(float(sys.argv[1]))
