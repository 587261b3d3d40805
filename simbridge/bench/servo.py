"""Timing of the servo loop at 500 Hz, compared with ur_rtde's own pacing.

`python -m simbridge.bench.servo HOST SECONDS` streams servoJ as in ur_rtde's examples, in a process
of its own.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from simbridge.backends.loop_timing import summarize_periods
from simbridge.backends.ursim_and_real import UrsimBackend
from simbridge.bench import Row
from simbridge.bench.measuring import client, timer
from simbridge.emulator.handle import Emulator
from simbridge.lifeline import end_with_parent
from simbridge.planning.options import Options
from simbridge.robot.load import load_robot
from simbridge.robot.pose import Array

HOST = "127.0.0.42"
SECONDS = 60.0
# ur_rtde's own pacing is measured for less, s.
MAX_RTDE_SECONDS = 20.0
PERIOD = 0.002
# Real-time priorities, as `--realtime-priority` takes them.
PRIORITY = 20
CONTROLLER_PRIORITY = 30
TIMER_PRIORITY = 40
# A setpoint sent later than this after its deadline misses its tick, s.
SLACK = 0.0016
# Amplitude of the motion, rad.
AMPLITUDE = 0.1


@dataclass(frozen=True)
class LoopCondition:
    """A condition under which the servo loop is measured.

    Attributes:
        title: Title of the table.
        is_busy: Whether the parent process computes meanwhile.
        priority: The loop's real-time priority; 0 for the ordinary scheduler.
    """

    title: str
    is_busy: bool = False
    priority: int = 0


CONDITIONS = (
    LoopCondition("ordinary priority"),
    LoopCondition("real-time priority", priority=PRIORITY),
    LoopCondition("parent computing", is_busy=True),
)


def measure(seconds: float = SECONDS) -> list[Row]:
    """Measure the servo loop at ordinary and real-time priority, and while the parent computes.

    Args:
        seconds: Duration of each of them, s.
    """
    rows = []
    for condition in CONDITIONS:
        rows += _measure_condition(condition, seconds)
    return rows


def _measure_condition(condition: LoopCondition, seconds: float) -> list[Row]:
    """Return the rows of one condition."""
    rtde_figures = None
    # A real controller is a separate real-time computer: the emulated one must not wait for our
    # loop.
    with Emulator(
        "ur10e", polyscope="5.12", host=HOST, realtime_priority=CONTROLLER_PRIORITY
    ) as controller:
        # The timer runs in parallel, at real-time priority where that is granted.
        with timer(seconds, PERIOD, TIMER_PRIORITY) as bare:
            loop_figures, is_refused = _run_loop(condition, seconds)
            if is_refused:
                name = f"setpoints, {condition.title}"
                return [(name, "refused by the system", "how to fix it", "simbridge doctor")]
            deadlines, wake_ups = np.array(json.loads(bare.communicate()[0])).T

        if not condition.is_busy and not condition.priority:
            rtde_figures = _run_ur_rtde(controller.host, min(seconds, MAX_RTDE_SECONDS))

    return [
        *_rows(condition, loop_figures, rtde_figures),
        _missed_row(condition, loop_figures, wake_ups - deadlines, seconds=seconds),
    ]


def _run_loop(condition: LoopCondition, seconds: float) -> tuple[dict[str, float | int], bool]:
    """Return the figures of our loop, and whether the system refused the priority."""
    robot = load_robot("ur10e")
    options = Options(host=HOST, realtime_priority=condition.priority)
    backend = UrsimBackend(robot, options)
    ended = threading.Event()
    with warnings.catch_warnings(record=True) as notes, backend as arm:
        begin = arm.read().q
        arm.move_to(begin)
        times = np.arange(0.0, seconds, PERIOD)
        plan = begin + AMPLITUDE * (1.0 - np.cos(times))[:, None] * np.ones(robot.n)

        if condition.is_busy:
            threading.Thread(target=_compute, args=(ended,)).start()
        try:
            for _ in arm.stream(plan):
                pass
        finally:
            ended.set()

    assert backend.loop is not None
    is_refused = any("real-time priority" in str(note.message) for note in notes)
    return backend.loop, is_refused


def _compute(ended: threading.Event) -> None:
    """Keep one core busy, and with it Python's global interpreter lock."""
    while not ended.is_set():
        sum(range(1000))


def _run_ur_rtde(host: str, seconds: float) -> dict[str, float]:
    """Return the same figures for ur_rtde's own pacing."""
    with client("simbridge.bench.servo", host, seconds, quiet=True) as streaming:
        output, _ = streaming.communicate()
    periods = json.loads(output.splitlines()[-1])
    return summarize_periods(np.array(periods))


Figures = Mapping[str, float | int]

# Figures of the period: name, text of the value, and what is required ("" for nothing).
PERIOD_FIGURES: tuple[tuple[str, Callable[[Figures], str], str], ...] = (
    ("rate", lambda figures: f"{1.0 / figures['period_mean_s']:.2f} Hz", "500.0 +- 0.1 Hz"),
    ("std", lambda figures: f"{1e3 * figures['period_std_s']:.3f} ms", "0.150 ms"),
    ("p99.9", lambda figures: f"{1e3 * figures['period_p999_s']:.2f} ms", "3.00 ms"),
    ("longest", lambda figures: f"{1e3 * figures['period_max_s']:.2f} ms", ""),
)


def _rows(condition: LoopCondition, loop: Figures, rtde: Figures | None) -> list[Row]:
    """Return the rows of the period, and of the states' age.

    Nothing is required while the parent computes.

    Args:
        condition: Under which the loop ran.
        loop: Figures of our loop.
        rtde: Figures of ur_rtde's own pacing, if they were measured.
    """
    rows = []
    for figure, text, limit in PERIOD_FIGURES:
        name = f"setpoints, {condition.title}: {figure}"
        is_required = bool(limit) and not condition.is_busy
        if is_required:
            rows.append((name, text(loop), "required", limit))
        if rtde is not None:
            rows.append((name, text(loop), "ur_rtde's waitPeriod", text(rtde)))
        elif not is_required:
            rows.append((name, text(loop), "the period", "2 ms"))

    age = f"{1e3 * loop['state_age_mean_s']:.2f} ms"
    rows.append((f"states, {condition.title}: age", age, "the period", "2 ms"))
    return rows


def _missed_row(condition: LoopCondition, loop: Figures, lateness: Array, *, seconds: float) -> Row:
    """Return the row of the deadlines that were missed.

    Args:
        condition: Under which the loop ran.
        loop: Figures of our loop.
        lateness: Lateness of the bare timer (K,), s.
        seconds: How long the loop ran, s.
    """
    late_count = np.sum(lateness > SLACK)
    timer_lateness = (
        f"{late_count} times over {1e3 * SLACK:g} ms, at most {1e3 * lateness.max():.1f} ms"
    )
    missed = f"{loop['missed_deadlines']} deadlines, {loop['missed_states']} states"
    name = f"setpoints, {condition.title}: missed of {round(seconds / PERIOD)}"
    return (name, missed, "a bare timer was late", timer_lateness)


def _stream(host: str, seconds: float) -> None:
    """Stream a slow sine as ur_rtde's examples do: initPeriod, servoJ, waitPeriod."""
    # Only in the client's own process: it may crash.
    from rtde_control import RTDEControlInterface  # noqa: PLC0415
    from rtde_receive import RTDEReceiveInterface  # noqa: PLC0415 (likewise)

    receive = RTDEReceiveInterface(host)
    control = RTDEControlInterface(host)
    start = np.array(receive.getActualQ())

    send_times = []
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        period = control.initPeriod()
        now = time.monotonic()
        send_times.append(now)
        q = start + AMPLITUDE * (1.0 - np.cos(now - begin))
        # Speed and acceleration, which servoj ignores; then its duration, lookahead and gain.
        control.servoJ(q.tolist(), 0.0, 0.0, PERIOD, 0.03, 2000.0)
        control.waitPeriod(period)

    control.servoStop()
    control.stopScript()
    print(json.dumps(np.diff(send_times).tolist()))
    # Skips its destructors, which take half a second.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    end_with_parent()
    _stream(sys.argv[1], float(sys.argv[2]))
