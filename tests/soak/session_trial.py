"""A trial with a live session: its loop or this process is halted, or its solver does what no
solver should.

Whatever happens, these hold afterwards: the session goes on by itself or names a cause that fits
the fault; a fault of a solver names the solver; once the cause is named, the arm is at rest and
stays there until it is engaged again, which works; and on the controller's own record no joint was
beyond its range, velocity or acceleration.
"""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

from simbridge.errors import SimbridgeError
from simbridge.planning.link_choices import LinkName, RegisterRange
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import load_robot
from simbridge.running import run_ending
from simbridge.servo.law import ServojLaw
from simbridge.sessions.session import LiveSession
from simbridge.sessions.setup import live
from tests.controllers import realtime_options
from tests.sessions.live_judgement import arm_violations
from tests.soak import hostile_solver
from tests.soak.result import Result
from tests.soak.station import Station

SESSION = "live session"
# A joint slower than this is at rest, rad/s.
REST_VELOCITY = 1e-3
# The arm is watched for so long after an end, s of the controller's clock.
WATCHED_REST_S = 0.5
# The longest wait for something that must happen, s.
PATIENCE_S = 30.0
# Between two inputs, s.
INPUT_INTERVAL_S = 0.01
# The tool goes to and fro at this speed, m/s, with this period, s.
TOOL_SPEED = 0.08
SWING_PERIOD_S = 1.0
# The loop's process takes so many steps before the session begins.
WARM_UP_STEPS = 100


@dataclass(frozen=True)
class SessionFault:
    """A fault of a live session.

    Attributes:
        name: Its name.
        outcomes: Causes with which it may stop the arm; "goes on": the arm tracks again by itself;
            "too slow": it is
            disengaged, and the status names the solver.
        halt: Which process stands still: "loop" or "parent"; "" for none.
        halt_range: For how long at least and at most, s.
        hostile: What the solver does, of `hostile_solver`; "" for a good one.
        names_solver: Whether the error must name the solver.
    """

    name: str
    outcomes: tuple[str, ...]
    halt: str = ""
    halt_range: tuple[float, float] = (0.0, 0.0)
    hostile: str = ""
    names_solver: bool = False


GOES_ON = "goes on"
TOO_SLOW = "too slow"
# What a late command may lead to: the script's watchdog ends the script after 0.1 s.
_LATE = ("stale_state", "program_stopped")

SESSION_FAULTS = [
    SessionFault("session: loop halted briefly", (GOES_ON, *_LATE), "loop", (0.01, 0.08)),
    SessionFault("session: loop halted", (GOES_ON, *_LATE), "loop", (0.15, 0.7)),
    SessionFault("session: loop halted for ever", _LATE, "loop", (60.0, 60.0)),
    SessionFault("session: parent halted briefly", (GOES_ON, *_LATE), "parent", (0.05, 0.6)),
    SessionFault("session: parent halted", ("parent_lost", *_LATE), "parent", (1.3, 2.5)),
    *(
        SessionFault(f"session: {hostile}", ("refused",), hostile=hostile, names_solver=True)
        for hostile in (
            hostile_solver.NAN,
            hostile_solver.SHORT,
            hostile_solver.RAISES,
            hostile_solver.EXITS,
        )
    ),
    SessionFault(
        f"session: {hostile_solver.HANGS}",
        ("stale_state",),
        hostile=hostile_solver.HANGS,
        names_solver=True,
    ),
    SessionFault(
        f"session: {hostile_solver.DIES}",
        ("servo_process_lost", *_LATE),
        hostile=hostile_solver.DIES,
    ),
    SessionFault(
        f"session: {hostile_solver.SLOW}", (GOES_ON, TOO_SLOW, *_LATE), hostile=hostile_solver.SLOW
    ),
]


def run_session_trial(
    seed: int,
    chance: random.Random,
    station: Station,
    robot_name: str,
    link: LinkName,
    directory: Path,
) -> Result:
    """One live session with one random fault."""
    fault = chance.choice(SESSION_FAULTS)
    registers: RegisterRange = chance.choice(("lower", "upper"))
    result = Result(seed, robot_name, link, registers, SESSION, [fault.name])
    station.ready(network=False)
    begin = int(station.state()["tick"])

    solver = _solver(fault, chance, robot_name, directory)
    try:
        with (
            mock.patch.object(run_ending, "write_report", lambda *_: None),
            live(
                "real" if station.is_polyscope_x else "ursim",
                ask=lambda _facts, _question: True,
                robot=robot_name,
                solver=solver,
                host=station.host,
                link=link,
                registers=registers,
                out=directory / "run",
                **realtime_options(),
            ) as session,
        ):
            trial = _SessionTrial(result, fault, chance, station, session)
            trial.run(solver)
            servo_process = session._driver._process
    except SimbridgeError as error:
        # At its end, too, a session may name what has stopped the arm.
        result.evidence.append(str(error))
        if error.cause not in fault.outcomes:
            result.violations.append(f"the session ended with {type(error).__name__}: {error}")
        servo_process = None

    _judge_end(result, fault, station, directory / "run")
    if servo_process is not None and Path(f"/proc/{servo_process.pid}").exists():
        result.violations.append("the servo process is left")
    _judge_record(result, station, begin)
    return result


def _solver(fault: SessionFault, chance: random.Random, robot_name: str, directory: Path) -> str:
    """The name of the trial's solver, which may be hostile after 0.1 to 1.2 s."""
    if not fault.hostile:
        return "damped-least-squares"
    period = load_robot(robot_name).period
    good_steps = WARM_UP_STEPS + round(chance.uniform(0.1, 1.2) / period)
    seconds = chance.uniform(0.5, 10.0) * period
    return hostile_solver.hostile_solver(
        directory, robot_name, fault.hostile, good_steps=good_steps, seconds=seconds
    )


class _SessionTrial:
    """A session that is driven, and its fault."""

    def __init__(
        self,
        result: Result,
        fault: SessionFault,
        chance: random.Random,
        station: Station,
        session: LiveSession,
    ) -> None:
        self._result = result
        self._fault = fault
        self._chance = chance
        self._station = station
        self._session = session

    def run(self, solver: str) -> None:
        """Engage, drive, let the fault come, and judge its outcome; in half of the trials go on
        after it.
        """
        self._session.engage()
        if not self._fault.hostile:
            self._drive(self._chance.uniform(0.2, 1.0), lambda: self._stopped)
            self._halt()
        outcome = self._outcome()

        if outcome not in self._fault.outcomes:
            self._result.violations.append(f"the outcome is {outcome}: {self._session.status}")
        error = self._session.status.error
        if error is not None:
            self._result.cause = error.cause
            self._result.evidence.append(str(error))
            self._judge_rest()
        if error is not None and self._fault.names_solver and solver not in str(error):
            self._result.violations.append(f"the error does not name the solver: {error}")

        if error is not None and self._chance.random() < 0.5:
            self._engage_again()

    @property
    def _stopped(self) -> bool:
        return self._session.status.error is not None or self._session.status.state == "idle"

    def _halt(self) -> None:
        """Let a process stand still."""
        seconds = self._chance.uniform(*self._fault.halt_range)
        if self._fault.halt == "parent":
            # Whoever stands still cannot wake up by itself.
            halt = f"kill -STOP {os.getpid()}; sleep {seconds}; kill -CONT {os.getpid()}"
            subprocess.run(["sh", "-c", halt], check=True)
            return

        process = self._session._driver._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        self._drive(seconds, lambda: self._stopped)
        try:
            os.kill(process.pid, signal.SIGCONT)
        except ProcessLookupError:
            # The session has given it up.
            return

    def _outcome(self) -> str:
        """Drive until it is known what came of the fault."""
        goes_on = GOES_ON in self._fault.outcomes
        seconds = 3.0 if goes_on else PATIENCE_S
        self._drive(seconds, lambda: self._stopped)

        status = self._session.status
        if status.error is not None:
            return status.error.cause
        if status.state == "idle" and any(cause.kind == "solver" for cause in status.causes):
            return TOO_SLOW
        return GOES_ON if status.state == "tracking" else status.state

    def _drive(self, seconds: float, done: Callable[[], bool]) -> None:
        """Give inputs for a time, or until something has happened."""
        begin = time.monotonic()
        while time.monotonic() < begin + seconds and not done():
            phase = 2.0 * math.pi * (time.monotonic() - begin) / SWING_PERIOD_S
            self._session.twist([0.0, TOOL_SPEED * math.cos(phase), 0.0, 0.0, 0.0, 0.0])
            time.sleep(INPUT_INTERVAL_S)

    def _judge_rest(self) -> None:
        """The arm is at rest when the cause is named, and inputs do not move it."""
        begin = int(self._station.state()["tick"])
        self._drive(WATCHED_REST_S, lambda: False)
        record = self._station.record(after=begin)
        period = self._session.robot.period
        speed = np.abs(np.diff(record.target_q, axis=0)).max(initial=0.0) / period
        if speed > REST_VELOCITY:
            self._result.violations.append(f"the arm moved at {speed:.3f} rad/s after the error")

    def _engage_again(self) -> None:
        """After the fault the session can be engaged, and follows inputs."""
        self._session.engage()
        self._drive(PATIENCE_S, lambda: self._session.status.state == "tracking")
        if self._session.status.state != "tracking":
            self._result.violations.append(f"not engaged again: {self._session.status}")
        # A hostile solver is hostile again.
        self._result.cause = None


def _judge_end(result: Result, fault: SessionFault, station: Station, out: Path) -> None:
    """Judge by the summary, and by what is left on the controller."""
    try:
        ended_by = RunDirectory.open(out).summary()["ended_by"]
    except (SimbridgeError, OSError, KeyError) as error:
        result.violations.append(f"no summary says what ended the session: {error}")
        return
    if result.cause is not None and ended_by["cause"] != result.cause:
        result.violations.append(f"the error said {result.cause}, the summary {ended_by['cause']}")
    if ended_by["cause"] not in {"completed", *fault.outcomes}:
        result.violations.append(f"the cause in the summary is {ended_by['cause']}")
    result.cause = ended_by["cause"]
    if not ended_by["arm_at_rest"]:
        result.violations.append("the arm was not seen at rest")
    if station.state()["runtime_state"] != "STOPPED":
        result.violations.append(f"a program is left: {station.state()['runtime_state']}")


def _judge_record(result: Result, station: Station, begin: int) -> None:
    """Judge by the controller's record after a tick."""
    robot = load_robot(result.robot)
    end = int(station.state()["tick"])
    while int(station.state()["tick"]) < end + WATCHED_REST_S / robot.period:
        time.sleep(0.05)

    record = station.record(after=begin)
    violations, _ = arm_violations(robot, record.target_q, record.setpoint, ServojLaw(robot.period))
    result.violations += violations
    after_end = record.tick > end
    speed = np.abs(np.diff(record.target_q[after_end], axis=0)).max(initial=0.0) / robot.period
    if speed > REST_VELOCITY:
        result.violations.append("the arm moves after the end")
