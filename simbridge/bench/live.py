"""A live session at 500 Hz with a busy caller, compared with a bare timer in the same run.

`python -m simbridge.bench.live HOST SECONDS OUT PRIORITY` is the session in a process of its own. It gives poses that
come at 20 Hz with jitter, while another thread of the process holds Python's interpreter lock a tenth of the time.
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
# A real controller is a separate real-time computer: the emulated one must not wait for what is measured.
CONTROLLER_PRIORITY = 30
# As `--realtime-priority` takes it.
PRIORITY = 20
# The caller: for how long it holds the interpreter lock, and how often, s.
_HELD, _EVERY = 0.01, 0.1
# Inputs: their mean interval, and the largest deviation from it, s; a circle of this radius, m, and rate, rad/s.
_INTERVAL, _JITTER, _RADIUS, _CIRCLING = 0.05, 0.02, 0.05, 1.5
# A period that begins later than this share of itself is missed; one that begins earlier than this belongs to the one
# before. Over a window of so many periods deadlines may drift with the controller's clock.
_LATE, _EARLY, _WINDOW = 0.5, 0.25, 500
_ALLOWED = 0.001


def measure(minutes: float = 0.5) -> list[Row]:
    """The loop's deadlines and the delay of its inputs, for so many minutes at each priority."""
    return [
        *_measured("ordinary priority", minutes, 0),
        *_measured("real-time priority", minutes, PRIORITY),
    ]


def emulator() -> Emulator:
    """A controller that need not wait for what is measured."""
    return Emulator("ur10e", polyscope="5.12", host=HOST, realtime_priority=CONTROLLER_PRIORITY)


def _measured(title: str, minutes: float, priority: int) -> list[Row]:
    seconds, title = 60.0 * minutes, f"live, {title}"
    with tempfile.TemporaryDirectory() as directory, emulator() as controller:
        out = Path(directory) / "session"
        with client("simbridge.bench.live", controller.host, seconds, out, priority) as session:
            # The session says when it is engaged: both are measured in the same time.
            assert session.stdout is not None
            refused = "refused" in session.stdout.readline()
            with timer(seconds, PERIOD, priority) as bare:
                woken = np.array(json.loads(bare.communicate()[0]))[:, 1]
            if session.wait() != 0:
                raise RuntimeError("the session of the benchmark failed: see above")
        if refused:
            return [(title, "refused by the system", "how to fix it", "simbridge doctor")]
        return _rows(title, RunDirectory.open(out), woken)


def _rows(title: str, run: RunDirectory, woken: Array) -> list[Row]:
    live_columns = run.log().live
    moving = live_columns["engagement"] > 0
    begun = live_columns["now"][moving]
    ours, theirs = missed_share(begun), missed_share(woken)
    delays = 1e3 * np.array(latencies(read_inputs(run.path)))
    summary = run.summary()
    loop, ended_by = summary["loop"], summary["ended_by"]
    count = round((begun[-1] - begun[0]) / PERIOD)
    rows = [
        (
            f"{title}: missed of {count} periods",
            f"{ours:.2%}",
            "a bare timer's, and 0.1 %",
            f"{theirs + _ALLOWED:.2%}",
        ),
        (
            f"{title}: longest period",
            _ms(np.diff(begun).max()),
            "a bare timer's",
            _ms(np.diff(woken).max()),
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


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms"


def missed_share(begun: Array, period: float = PERIOD) -> float:
    """The share of periods that began over half a period late, or not at all.

    Args:
        begun: When periods began (K,), s.
        period: Their duration, s.
    """
    places = begun / period
    # Where in the period they usually begin: the deadlines drift with the controller's clock.
    turns = np.exp(2j * math.pi * places)
    count = min(_WINDOW, len(turns))
    usual = np.unwrap(np.angle(np.convolve(turns, np.ones(count), mode="same"))) / (2.0 * math.pi)
    since = places - usual
    number = np.floor(since + _EARLY)
    in_time = np.unique(number[since - number <= _LATE])
    return 1.0 - len(in_time) / (number[-1] - number[0] + 1.0)


def _give(host: str, seconds: float, out: str, priority: int) -> None:
    """Poses on a circle, to an emulated controller, while this process holds its interpreter lock."""
    # A thread that computes keeps the lock until it has finished.
    sys.setswitchinterval(1.0)
    ended = threading.Event()
    chance = random.Random(0)
    with simbridge.live(
        "ursim", robot="ur10e", host=host, out=out, realtime_priority=priority
    ) as session:
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            session.engage()
        print(
            "refused"
            if any("real-time priority" in str(note.message) for note in notes)
            else "engaged",
            flush=True,
        )
        holder = threading.Thread(target=_hold_the_lock, args=(ended,))
        holder.start()
        try:
            begin, centre = time.monotonic(), session.tool
            while (elapsed := time.monotonic() - begin) < seconds:
                angle = _CIRCLING * elapsed
                session.pose(
                    centre
                    * pin.SE3(
                        np.eye(3), _RADIUS * np.array([math.cos(angle) - 1.0, math.sin(angle), 0])
                    )
                )
                time.sleep(_INTERVAL + chance.uniform(-_JITTER, _JITTER))
        finally:
            ended.set()
            holder.join()
        session.disengage()


def _hold_the_lock(ended: threading.Event) -> None:
    while not ended.wait(_EVERY - _HELD):
        begin = time.perf_counter()
        while time.perf_counter() - begin < _HELD:
            pass


if __name__ == "__main__":
    end_with_parent()
    _give(sys.argv[1], float(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
