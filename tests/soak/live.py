"""Random streams of inputs for one live session that stays open, on an emulated controller, judged
by its record.

Before each stream the arm goes to a posture of the stream's seed, is engaged anew, and after it a
good input must move it: a session that is stuck is a violation, like a limit that the arm exceeded.
Sliders move during some streams.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import numpy as np

from simbridge.errors import SimbridgeError
from simbridge.robot import load_robot
from simbridge.robot.collision import CollisionModel
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.law import ServojLaw
from simbridge.sessions import setup as live_setup
from simbridge.sessions.session import LiveSession
from simbridge.sessions.setup import live
from simbridge.ur.errors import ProgramStopped, StaleState
from tests.controllers import realtime_options
from tests.sessions.input_streams import input_stream, play
from tests.sessions.live_judgement import arm_violations, good_joints
from tests.soak.station import Station

AT_REST = ("idle", "engaged", "holding")
# A controller that stood still, or a loop that did, for so long ends the motion, s: that is this
# computer's doing.
_STOOD = 0.08
# The longest wait for rest, s: the longest chunk takes 4.3 s.
_REST = 8.0
# Largest difference of a joint from a posture that counts as reached, rad.
_THERE = 0.01
# Mean speed on the way to a posture, rad/s: a whole turn then takes less time than a chunk may.
_SPEED = 1.3
# Time between the stamps of that way, s.
_STAMP = 0.04
# Clear of everything at the beginning of a stream, m.
_CLEAR = 0.015


@dataclass
class Streamed:
    """The result of a stream.

    Attributes:
        stream: Its seed.
        robot: The arm.
        parts: What it consisted of.
        begin: Joint positions at its beginning (n,), rad.
        violations: What must not be.
        late: Share of the cycles in which more acceleration was allowed, because a command had been
            late.
        excused: An error that this computer's load explains; "" for none.
    """

    stream: int
    robot: str
    parts: tuple[str, ...]
    begin: list[float] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    late: float = 0.0
    excused: str = ""


class _Streams:
    """A session that stays open, and the controller on which it runs."""

    def __init__(self, station: Station, robot: Robot, session: LiveSession) -> None:
        self._station = station
        self._robot = robot
        self._session = session
        self._law = ServojLaw(robot.period)
        self._collisions = CollisionModel(robot)

    def run(self, seed: int) -> Streamed:
        """Give a stream, and judge it."""
        session = self._session
        chance = random.Random(seed)
        stream = input_stream(seed, self._robot)
        result = Streamed(seed, self._robot.name, stream.parts)
        tick = int(self._station.state()["tick"])
        self._station.do("slider", fraction=1.0)
        self._station.wait_for_full_speed()
        try:
            session.engage()
            self._go_to(self._posture(chance))
            session.disengage()
            session.engage()
            result.begin = self._at.tolist()
            changes = sorted(
                (chance.uniform(0.0, 2.0), chance.choice((0.0, 0.2, 0.6, 1.0))) for _ in range(3)
            )
            result.violations += play(
                stream, session, _Waits(self._station, changes if chance.random() < 0.3 else [])
            )
            self._station.do("slider", fraction=1.0)
            self._await(AT_REST)
            session.disengage()
            self._await(("idle",))
            self._station.wait_for_full_speed()
            session.engage()
            self._await(("engaged",))
            self._moves_on()
            session.disengage()
        except SimbridgeError as error:
            self._note(result, tick, error)
        except AssertionError as error:
            if session.status.error is None:
                self._note_stuck(result, error)
        if session.status.error is not None:
            self._note(result, tick, session.status.error)
        record = self._station.record(after=tick)
        violations, result.late = arm_violations(
            self._robot, record.target_q, record.setpoint, self._law
        )
        result.violations += violations
        return result

    @property
    def _at(self) -> Array:
        # The controller's word: on a busy computer the session's newest state may be a while
        # behind.
        return np.array(self._station.state()["target_q"])

    def _posture(self, chance: random.Random) -> Array:
        """Choose where a stream begins: at home, near it, or nearly straight in wrist or elbow."""
        while True:
            q = self._robot.home + np.array([chance.gauss(0.0, 0.3) for _ in range(self._robot.n)])
            joint, value = chance.choice(
                ((0, q[0]), (4, chance.gauss(0.0, 0.05)), (2, chance.gauss(0.2, 0.1)))
            )
            q[joint] = value
            if self._collisions.distances(q).min() > _CLEAR:
                return q

    def _go_to(self, q: Array) -> None:
        """Towards a posture; where something is in the way the stream begins there."""
        for goal in (q, self._robot.home, q):
            begin = self._at
            duration = max(float(np.abs(goal - begin).max()) / _SPEED, 0.1)
            times = np.arange(1, int(np.ceil(duration / _STAMP)) + 1) * _STAMP
            shares = np.minimum(times / duration, 1.0)
            smooth = shares**2 * (3.0 - 2.0 * shares)
            self._session.follow(times, begin + smooth[:, np.newaxis] * (goal - begin))
            time.sleep(duration + 0.1)
            self._await(AT_REST)
            if np.abs(self._at - q).max() < _THERE:
                return

    def _await(self, states: tuple[str, ...]) -> None:
        deadline = time.monotonic() + _REST
        while (status := self._session.status).state not in states:
            assert time.monotonic() < deadline and status.error is None, (
                f"not {' or '.join(states)}: {status}"
            )
            time.sleep(0.01)

    def _moves_on(self) -> None:
        there = good_joints(self._robot, self._collisions, self._at)
        for _ in range(40):
            self._session.joints(there)
            time.sleep(0.04)
            if np.abs(self._at - there).max() < 1e-3:
                return
        raise AssertionError(
            f"a good input does not move the arm: {self._at} to {there}, {self._session.status}"
        )

    def _note_stuck(self, result: Streamed, error: AssertionError) -> None:
        """Count a session that is stuck as a violation, unless this computer was too slow for it.

        After ten steps in a row that took longer than a period the session is idle, by design.
        """
        if any(cause.kind == "solver" for cause in self._session.status.causes):
            result.excused = f"too slow: {error}"
        else:
            result.violations.append(f"stuck: {error}")

    def _note(self, result: Streamed, tick: int, error: SimbridgeError) -> None:
        """Count an error as a violation, unless this computer stood still."""
        ticks = int(self._station.state()["tick"]) - tick
        stood = ticks > 0 and max(self._station.do("timing")["period"][-ticks:]) > _STOOD
        late = isinstance(error, StaleState | ProgramStopped)
        words = f"{type(error).__name__}: {error}"
        if stood or late:
            result.excused = words
        elif words not in result.violations:
            result.violations.append(words)


class _Waits:
    """Waits in a stream, and moves the speed slider meanwhile."""

    def __init__(self, station: Station, changes: list[tuple[float, float]]) -> None:
        self._station = station
        self._changes = changes
        self._begin = time.monotonic()

    def __call__(self, until: float) -> None:
        while self._changes and self._changes[0][0] <= until:
            at, fraction = self._changes.pop(0)
            self._sleep(at)
            self._station.do("slider", fraction=fraction)
        self._sleep(until)

    def _sleep(self, until: float) -> None:
        time.sleep(max(self._begin + until - time.monotonic(), 0.0))


def run_streams(
    seeds: Iterable[int], host: str, robot_name: str, results: Path, seconds: float
) -> list[str]:
    """Give streams to one session, and append a line for each to a file, until seeds or time are
    used up.

    Returns:
        What must not be.
    """
    robot = load_robot(robot_name)
    station = Station(host, robot_name)
    directory = Path(tempfile.mkdtemp(prefix="simbridge-live-"))
    found: list[Streamed] = []
    deadline = time.monotonic() + seconds
    remaining = iter(seeds)
    sessions = 0
    try:
        # A report of hours would take long, and nobody reads it.
        with mock.patch.object(live_setup, "finish_session", lambda *_: None):
            while time.monotonic() < deadline and (seed := next(remaining, None)) is not None:
                station.ready(network=False)
                sessions += 1
                out = directory / str(sessions)
                with live(
                    "ursim", robot=robot, host=station.host, out=out, **realtime_options()
                ) as session:
                    streams = _Streams(station, robot, session)
                    while seed is not None and time.monotonic() < deadline:
                        found.append(streams.run(seed))
                        _keep(found[-1], results)
                        # After an error a new session begins: `engage` goes on in this one, which
                        # other tests show.
                        seed = None if session.status.error is not None else next(remaining, None)
    finally:
        station.close()
    print(_summary(found, sessions))
    wrong = [f"stream {one.stream}: {it}" for one in found for it in one.violations]
    if not wrong:
        with contextlib.suppress(OSError):
            shutil.rmtree(directory)
    return wrong


def _keep(result: Streamed, results: Path) -> None:
    with results.open("a") as file:
        file.write(json.dumps(vars(result)) + "\n")
    if result.violations:
        print(f"stream {result.stream}: {'; '.join(result.violations)}", flush=True)


def _summary(found: list[Streamed], sessions: int) -> str:
    kinds = Counter(part.split(" Hz")[0].rpartition(" ")[0] for one in found for part in one.parts)
    bad = sum(bool(one.violations) for one in found)
    late = float(np.mean([one.late for one in found])) if found else 0.0
    excused = sum(bool(one.excused) for one in found)
    parts = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    return (
        f"{len(found)} streams in {sessions} sessions, {bad} with a violation; "
        f"{excused} ended because this computer stood still or was too slow; "
        f"{late:.1%} of the cycles within 0.3 s of a late command. Parts: {parts}."
    )
