"""A live session at 500 Hz with a busy caller, compared with a bare timer in the same run.

`python -m simbridge.bench.live HOST SECONDS OUT PRIORITY` is the session in a process of its own.
It gives poses that come at 20 Hz with jitter, while another thread of the process holds Python's
interpreter lock a tenth of the time.
"""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin

import simbridge
from simbridge.bench import Row
from simbridge.bench.measuring import client, timer
from simbridge.emulator.handle import Emulator
from simbridge.lifeline import end_with_parent
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot.pose import Array
from simbridge.sessions.record import latencies, read_inputs

HOST = "127.0.0.43"
PERIOD = 0.002
# A real controller is a separate real-time computer: the emulated one must not wait for what is
# measured.
CONTROLLER_PRIORITY = 30
# As `--realtime-priority` takes it.
PRIORITY = 20

# The caller: for how long it holds the interpreter lock, and how often, s.
LOCK_HELD_S = 0.01
LOCK_INTERVAL_S = 0.1

# Inputs: their mean interval, and the largest deviation from it, s.
INPUT_INTERVAL_S = 0.05
INPUT_JITTER_S = 0.02
# The circle on which they lie: radius, m, and rate, rad/s.
RADIUS = 0.05
CIRCLING_RATE = 1.5

# A period that begins later than this part of itself is missed; one that begins earlier than this
# belongs to the one before.
LATE_PART = 0.5
EARLY_PART = 0.25
# Over a window of so many periods deadlines may drift with the controller's clock.
DRIFT_PERIODS = 500
# Fraction of the periods that may be missed in addition to a bare timer's.
ALLOWED_MISSED = 0.001


def measure(minutes: float = 0.5) -> list[Row]:
    """Measure the loop's deadlines and the delay of its inputs.

    Args:
        minutes: Duration at each priority, min.
    """
    return [
        *_measure_session("live, ordinary priority", minutes, 0),
        *_measure_session("live, real-time priority", minutes, PRIORITY),
    ]


def emulator() -> Emulator:
    """Return a controller that need not wait for what is measured."""
    return Emulator("ur10e", polyscope="5.12", host=HOST, realtime_priority=CONTROLLER_PRIORITY)


def _measure_session(title: str, minutes: float, priority: int) -> list[Row]:
    """Return the rows of a session, and of a timer in the same time.

    Args:
        title: Title of the rows.
        minutes: How long, min.
        priority: Real-time priority of both; 0 for the ordinary scheduler.
    """
    seconds = 60.0 * minutes
    with tempfile.TemporaryDirectory() as directory, emulator() as controller:
        out = Path(directory) / "session"
        with client("simbridge.bench.live", controller.host, seconds, out, priority) as session:
            # The session says when it is engaged, or that the system refuses the priority.
            assert session.stdout is not None
            if "refused" in session.stdout.readline():
                session.wait()
                return [(title, "refused by the system", "how to fix it", "simbridge doctor")]

            # The timer runs while the session does.
            with timer(seconds, PERIOD, priority) as bare:
                output, _ = bare.communicate()
            if session.wait() != 0:
                raise RuntimeError("the session of the benchmark failed: see above")

        # The timer has printed each of its deadlines, and when it woke.
        _, wake_ups = np.array(json.loads(output)).T
        return _rows(title, RunDirectory.open(out), wake_ups)


def _rows(title: str, run: RunDirectory, wake_ups: Array) -> list[Row]:
    """Return the rows of a session.

    Args:
        title: Title of the rows.
        run: Directory of the session.
        wake_ups: When the bare timer woke (K,), s.
    """
    # When each period began, s, and the delay of each input, ms. Idle periods are not logged, but
    # this session is never idle between its first order, which engages it, and its last one: so a
    # gap in its log shows missed periods.
    begun = run.log().live["now"]
    delays = 1e3 * np.array(latencies(read_inputs(run.path)))

    summary = run.summary()
    loop = summary["loop"]
    ended_by = summary["ended_by"]

    period_count = round((begun[-1] - begun[0]) / PERIOD)
    missed = missed_fraction(begun)
    allowed = missed_fraction(wake_ups) + ALLOWED_MISSED
    rows = [
        (
            f"{title}: missed of {period_count} periods",
            f"{missed:.2%}",
            "a bare timer's, and 0.1 %",
            f"{allowed:.2%}",
        ),
        (
            f"{title}: longest period",
            _milliseconds(np.diff(begun).max()),
            "a bare timer's",
            _milliseconds(np.diff(wake_ups).max()),
        ),
        (
            f"{title}: input to command, median",
            f"{np.median(delays):.2f} ms",
            "required, at most",
            "3.00 ms",
        ),
        (
            f"{title}: input to command, p99",
            f"{np.quantile(delays, 0.99):.2f} ms",
            "the period",
            "2 ms",
        ),
        (
            f"{title}: states missed",
            str(loop["missed_states"]),
            "setpoints not sent",
            str(loop["missed_deadlines"]),
        ),
    ]
    if ended_by["cause"] != "completed":
        rows.insert(0, (f"{title}: ended early", ended_by["cause"], "should be", "completed"))
    return rows


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms"


def missed_fraction(begun: Array, period: float = PERIOD) -> float:
    """Return the fraction of periods that began over half a period late, or not at all.

    Args:
        begun: When periods began (K,), s.
        period: Duration of a period, s.
    """
    positions = begun / period

    # Where in the period they usually begin: the deadlines drift with the controller's clock.
    phasors = np.exp(2j * math.pi * positions)
    window = np.ones(min(DRIFT_PERIODS, len(phasors)))
    phases = np.angle(np.convolve(phasors, window, mode="same"))
    usual = np.unwrap(phases) / (2.0 * math.pi)

    # Which period each of them is, and how late.
    offsets = positions - usual
    numbers = np.floor(offsets + EARLY_PART)
    in_time = np.unique(numbers[offsets - numbers <= LATE_PART])
    return 1.0 - len(in_time) / (numbers[-1] - numbers[0] + 1.0)


def _run_session(host: str, seconds: float, out: str, priority: int) -> None:
    """Give poses on a circle while this process holds its interpreter lock.

    If the system refuses the priority, the session ends at once.

    Args:
        host: Address of an emulated controller.
        seconds: How long, s.
        out: The run directory to create.
        priority: Real-time priority of the loop.
    """
    # A thread that computes keeps the lock until it has finished.
    sys.setswitchinterval(1.0)
    ended = threading.Event()
    with simbridge.live(
        "ursim", robot="ur10e", host=host, out=out, realtime_priority=priority
    ) as session:
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            session.engage()
        is_refused = any("real-time priority" in str(note.message) for note in notes)
        print("refused" if is_refused else "engaged", flush=True)
        if is_refused:
            session.disengage()
            return

        holder = threading.Thread(target=_hold_the_lock, args=(ended,))
        holder.start()
        try:
            _circle(session, seconds)
        finally:
            ended.set()
            holder.join()
        session.disengage()


def _circle(session: simbridge.LiveSession, seconds: float) -> None:
    """Give poses on a circle, in the tool's orientation, at uneven intervals."""
    chance = random.Random(0)
    begin = time.monotonic()
    centre = session.tool
    elapsed = 0.0
    while elapsed < seconds:
        angle = CIRCLING_RATE * elapsed
        offset = RADIUS * np.array([math.cos(angle) - 1.0, math.sin(angle), 0])
        session.pose(centre * pin.SE3(np.eye(3), offset))
        time.sleep(INPUT_INTERVAL_S + chance.uniform(-INPUT_JITTER_S, INPUT_JITTER_S))
        elapsed = time.monotonic() - begin


def _hold_the_lock(ended: threading.Event) -> None:
    """Compute again and again, until the event is set."""
    while not ended.wait(LOCK_INTERVAL_S - LOCK_HELD_S):
        begin = time.perf_counter()
        while time.perf_counter() - begin < LOCK_HELD_S:
            pass


if __name__ == "__main__":
    end_with_parent()
    _run_session(sys.argv[1], float(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
