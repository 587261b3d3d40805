"""Timing of the servo loop at 500 Hz through each link, compared with ur_rtde's own pacing.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.backends.link_choice import is_ur_rtde_installed
from simbridge.backends.loop_timing import summarize_periods
from simbridge.backends.ursim_and_real import UrsimBackend
from simbridge.bench import Row
from simbridge.bench.link_call import measure_calls
from simbridge.bench.measuring import client, timer
from simbridge.emulator.handle import Emulator
from simbridge.emulator.record_file import Recorded
from simbridge.lifeline import end_with_parent
from simbridge.planning.link_choices import LinkName
from simbridge.planning.options import Options
from simbridge.robot.load import load_robot
from simbridge.robot.pose import Array

ROBOT = "ur10e"
HOST = "127.0.0.42"
SECONDS = 60.0
# ur_rtde's own pacing, and the calls that send setpoints, are measured for less, s.
MAX_RTDE_SECONDS = 20.0
MAX_CALL_SECONDS = 10.0
PERIOD = 0.002
# Real-time priorities, as `--realtime-priority` takes them.
PRIORITY = 20
CONTROLLER_PRIORITY = 30
TIMER_PRIORITY = 40
# A setpoint sent later than this after its deadline misses its tick, s.
SLACK = 0.0016
# Amplitude of the motion, rad.
AMPLITUDE = 0.1
# How long sending takes is shown by these fractions of the calls.
CALL_QUANTILES = (
    ("median", 0.5),
    ("p99.9", 0.999),
)
# A setpoint that is not in force within this many ticks after it was due counts as lost.
MAX_DELAY_TICKS = 10

Figures = Mapping[str, float | int]


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


@dataclass(frozen=True, eq=False)
class StreamedStates:
    """The states of a stream of setpoints.

    Attributes:
        loop: Figures as in summary.json's `loop`.
        commands: The setpoint of each state (T, n), rad.
        ticks: The controller's tick at which each setpoint was due (T,).
    """

    loop: Figures
    commands: Array
    ticks: Array


@dataclass(frozen=True, eq=False)
class LoopMeasurement:
    """The timing of the servo loop through one link, under one condition.

    Attributes:
        link: The link.
        loop: Figures as in summary.json's `loop`.
        late_setpoints: Number of setpoints that came into force after their tick, or never.
        timer_lateness: Lateness of a bare timer meanwhile (K,), s.
    """

    link: LinkName
    loop: Figures
    late_setpoints: int
    timer_lateness: Array


def measure(seconds: float = SECONDS) -> list[Row]:
    """Measure the servo loop at ordinary and real-time priority, and while the parent computes.

    Args:
        seconds: Duration of each of them through each link, s.
    """
    links: tuple[LinkName, ...] = ("ur_rtde", "rtde")
    if not is_ur_rtde_installed():
        links = ("rtde",)

    rows: list[Row] = []
    for condition in CONDITIONS:
        rows += _measure_condition(condition, links, seconds)
    with _emulator() as controller:
        rows += _call_rows(controller.host, links, min(seconds, MAX_CALL_SECONDS))
        if "ur_rtde" in links:
            rows += _own_pacing_rows(controller.host, min(seconds, MAX_RTDE_SECONDS))
    return rows


def _emulator() -> Emulator:
    """Return a controller that need not wait for our loop: a real one is another computer."""
    return Emulator(ROBOT, polyscope="5.12", host=HOST, realtime_priority=CONTROLLER_PRIORITY)


# The loop


def _measure_condition(
    condition: LoopCondition, links: Sequence[LinkName], seconds: float
) -> list[Row]:
    """Return the rows of one condition; the second link is compared with the first."""
    rows: list[Row] = []
    first: LoopMeasurement | None = None
    for link in links:
        measurement = _measure_loop(condition, link, seconds)
        if measurement is None:
            name = f"setpoints, {condition.title}"
            return [(name, "refused by the system", "how to fix it", "simbridge doctor")]
        rows += _rows(condition, measurement, first, seconds=seconds)
        first = first or measurement
    return rows


def _measure_loop(
    condition: LoopCondition, link: LinkName, seconds: float
) -> LoopMeasurement | None:
    """Measure the loop through one link; None if the system refuses the priority."""
    # The timer runs in parallel, at real-time priority where that is granted.
    with _emulator() as controller, timer(seconds, PERIOD, TIMER_PRIORITY) as bare:
        streamed = _run_loop(condition, link, seconds)
        if streamed is None:
            return None
        deadlines, wake_ups = np.array(json.loads(bare.communicate()[0])).T
        late_setpoints = count_late_setpoints(streamed, controller.record())

    return LoopMeasurement(link, streamed.loop, late_setpoints, wake_ups - deadlines)


def _run_loop(condition: LoopCondition, link: LinkName, seconds: float) -> StreamedStates | None:
    """Stream a slow sine with our loop; None if the system refuses the priority."""
    robot = load_robot(ROBOT)
    options = Options(host=HOST, link=link, realtime_priority=condition.priority)
    backend = UrsimBackend(robot, options)
    ended = threading.Event()
    commands = []
    timestamps = []
    with warnings.catch_warnings(record=True) as notes, backend as arm:
        start = arm.read().q
        # A motion that stays there: it starts the servo process and the control script, so that the
        # stream that is measured begins with both running.
        arm.move_to(start)

        times = np.arange(0.0, seconds, PERIOD)
        plan = start + AMPLITUDE * (1.0 - np.cos(times))[:, None] * np.ones(robot.n)

        if condition.is_busy:
            threading.Thread(target=_compute, args=(ended,)).start()
        try:
            for state in arm.stream(plan):
                commands.append(state.command)
                timestamps.append(state.timestamp)
        finally:
            ended.set()

    if any("real-time priority" in str(note.message) for note in notes):
        return None
    assert backend.loop is not None
    ticks = np.round(np.array(timestamps) / PERIOD).astype(int)
    return StreamedStates(backend.loop, np.array(commands), ticks)


def _compute(ended: threading.Event) -> None:
    """Keep one core busy, and with it Python's global interpreter lock."""
    while not ended.is_set():
        sum(range(1000))


def count_late_setpoints(streamed: StreamedStates, record: Recorded) -> int:
    """Return how many setpoints came into force later after their tick than usual, or never.

    Args:
        streamed: The setpoints, and when they were due.
        record: The controller's own record.
    """
    # Where in the record each setpoint was due; the record has every tick.
    due = streamed.ticks - record.tick[0]
    last = len(record.tick) - 1

    # By how many ticks each setpoint was delayed; a lost one by the most.
    delays = np.full(len(due), MAX_DELAY_TICKS)
    for delay in reversed(range(MAX_DELAY_TICKS)):
        in_force = record.setpoint[np.minimum(due + delay, last)]
        delays[(in_force == streamed.commands).all(axis=1)] = delay

    usual = np.median(delays)
    return int(np.sum(delays > usual))


# Figures of the period: name, text of the value, and what is required ("" for nothing).
PERIOD_FIGURES: tuple[tuple[str, Callable[[Figures], str], str], ...] = (
    ("rate", lambda figures: f"{1.0 / figures['period_mean_s']:.2f} Hz", "500.0 +- 0.1 Hz"),
    ("std", lambda figures: f"{1e3 * figures['period_std_s']:.3f} ms", "0.150 ms"),
    ("p99.9", lambda figures: f"{1e3 * figures['period_p999_s']:.2f} ms", "3.00 ms"),
    ("longest", lambda figures: f"{1e3 * figures['period_max_s']:.2f} ms", ""),
)


def _rows(
    condition: LoopCondition,
    measurement: LoopMeasurement,
    first: LoopMeasurement | None,
    *,
    seconds: float,
) -> list[Row]:
    """Return the rows of one link: the period, the states' age, and what was late or missed.

    A row is a figure, its value, what it is compared with, and the value of that. The period is
    compared with that of another link, or with what is required; nothing is required while the
    parent computes. What can be compared with nothing else is set against the control period.

    Args:
        condition: Under which the loop ran.
        measurement: The timing through the link.
        first: The timing through another link, with which it is compared; None for the first.
        seconds: How long the loop ran, s.
    """
    title = f"{condition.title}, {measurement.link}"
    rows: list[Row] = []
    for figure, text, limit in PERIOD_FIGURES:
        name = f"setpoints, {title}: {figure}"
        value = text(measurement.loop)
        if first is not None:
            rows.append((name, value, first.link, text(first.loop)))
        elif limit and not condition.is_busy:
            rows.append((name, value, "required", limit))
        else:
            rows.append((name, value, "the period", "2 ms"))

    age = f"{1e3 * measurement.loop['state_age_mean_s']:.2f} ms"
    rows.append((f"states, {title}: age", age, "the period", "2 ms"))

    # Late by the controller's record: a setpoint that the loop sent in time may still miss its tick
    # on the way to the controller. The deadlines that the loop itself missed follow below.
    count = round(seconds / PERIOD)
    late = str(measurement.late_setpoints)
    allowed = "0" if first is None else str(first.late_setpoints)
    compared_to = "ideal" if first is None else first.link
    rows.append((f"setpoints, {title}: late of {count}", late, compared_to, allowed))

    # A bare timer in parallel shows how late the system alone makes a process.
    late_wake_ups = np.sum(measurement.timer_lateness > SLACK)
    most_late = 1e3 * measurement.timer_lateness.max()
    bare = f"{late_wake_ups} times over {1e3 * SLACK:g} ms, at most {most_late:.1f} ms"
    missed = (
        f"{measurement.loop['missed_deadlines']} deadlines, "
        f"{measurement.loop['missed_states']} states"
    )
    rows.append((f"setpoints, {title}: missed of {count}", missed, "a bare timer was late", bare))
    return rows


# The calls that send, and ur_rtde's own pacing


def _call_rows(host: str, links: Sequence[LinkName], seconds: float) -> list[Row]:
    """Return the rows of how long each link takes to send a setpoint."""
    rows: list[Row] = []
    for link in links:
        durations = measure_calls(host, ROBOT, link, seconds)
        for figure, quantile in CALL_QUANTILES:
            value = f"{1e3 * np.quantile(durations, quantile):.3f} ms"
            rows.append((f"sending a setpoint, {link}: {figure}", value, "the period", "2 ms"))
    return rows


def _own_pacing_rows(host: str, seconds: float) -> list[Row]:
    """Return the rows of ur_rtde's own pacing, without simbridge."""
    with client("simbridge.bench.servo", host, seconds, quiet=True) as streaming:
        output, _ = streaming.communicate()
    # The periods are the last line: ur_rtde's compiled code may write lines of its own before.
    periods = json.loads(output.splitlines()[-1])
    figures = summarize_periods(np.array(periods))

    rows: list[Row] = []
    for figure, text, limit in PERIOD_FIGURES:
        name = f"ur_rtde's waitPeriod, without simbridge: {figure}"
        if limit:
            rows.append((name, text(figures), "required of simbridge", limit))
        else:
            rows.append((name, text(figures), "the period", "2 ms"))
    return rows


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
