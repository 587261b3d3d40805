"""End a session with a controller: brake the arm, end our script, and see both in the states.

There is one way, `end_session`, whatever has happened. Its steps do not depend on the error; one
that fails is recorded, and the next one follows.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import numpy as np

from simbridge.backends.backend import Ending
from simbridge.backends.program_watch import ProgramOwner, ProgramWatch
from simbridge.backends.registers import Registers
from simbridge.backends.servo_client import ServoProcess
from simbridge.backends.session_state import SessionState
from simbridge.backends.state_fields import name_script_outputs, session_fields
from simbridge.backends.succession import MAX_STEP_S
from simbridge.ur.arm_state import find_stop
from simbridge.ur.controller_messages import is_script_refused
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import ControllerError, ProgramStopped
from simbridge.ur.polyscope_x import is_polyscope_x
from simbridge.ur.rtde import Package, RtdeReader
from simbridge.ur.tables import PRIMARY, RobotMode, RuntimeState, SafetyMode, mode_label

# A program that does nothing, and ends.
EMPTY_PROGRAM = b"def simbridge_end():\n  sync()\nend\n"
# How long our script may take to end by itself, s: its watchdog takes 0.1 s. After that the
# dashboard is asked to stop it, and is asked again at this interval.
WATCHDOG_TIME_S = 0.3
# How long the arm may take to come to rest, and our script to end, s.
VERIFY_TIMEOUT_S = 3.0
# How long to wait for a connection, or for its answers, s.
CONNECT_TIMEOUT_S = 1.0
# How long to wait for the next states, s.
FOLLOW_TIMEOUT_S = 0.02
# How long to wait for states that show whose program it is before it is stopped, s.
IDENTIFY_TIMEOUT_S = 0.05
# How long the controller may take to refuse a program, s.
ANSWER_TIME_S = 0.3
# How long to wait after a lost connection before the next attempt, s.
RECONNECT_PAUSE_S = 0.05
# A state older than this does not show the present, s.
MAX_STATE_AGE_S = 0.2
# How many states are kept besides the newest one.
KEPT_STATES = 100
# A joint slower than this is at rest, rad/s.
REST_SPEED = 0.01
# How long all joints must be at rest, s.
REST_TIME_S = 0.05


def end_session(
    host: str,
    process: ServoProcess,
    ending: Ending,
    *,
    number: int,
    registers: Registers,
    newest_timestamp: float,
) -> None:
    """End a session with a controller.

    Args:
        host: The controller.
        process: The servo process.
        ending: The account of the end, which is filled in here.
        number: The session's number, which the control script carries.
        registers: The registers of the session, which show the control script.
        newest_timestamp: The controller's newest timestamp so far, s.
    """
    watcher = _Watcher(
        host, process, ending, number=number, registers=registers, newest_timestamp=newest_timestamp
    )
    steps: tuple[tuple[str, Callable[[], object]], ...] = (
        # This comes first: the process brakes the arm while the other steps go on.
        ("ask the servo process to stop", process.ask_to_stop),
        ("watch the controller", watcher.connect),
        ("end the servo process", process.stop),
        ("see the arm at rest", watcher.await_rest),
        ("close the connection", watcher.close),
        ("judge what was seen", watcher.conclude),
    )
    for name, step in steps:
        try:
            step()
        except Exception as failure:
            ending.evidence.append(f"could not {name}: {failure}")

    # The evidence begins with what the process could not do itself.
    ending.evidence[:0] = process.failures


class _Watcher:
    """Follows the controller's states while a session ends, and stops our script if it stays.

    Args:
        host: The controller.
        process: The servo process.
        ending: The account of the end, which is filled in here.
        number: The session's number, which the control script carries.
        registers: The registers of the session, which show the control script.
        newest_timestamp: The controller's newest timestamp so far, s.
    """

    def __init__(
        self,
        host: str,
        process: ServoProcess,
        ending: Ending,
        *,
        number: int,
        registers: Registers,
        newest_timestamp: float,
    ) -> None:
        self._host = host
        self._process = process
        self._ending = ending
        self._number = number
        self._registers = registers
        self._newest_timestamp = newest_timestamp

        # The connection; None while there is none.
        self._reader: RtdeReader | None = None
        # The newest states, oldest first.
        self._states: list[Package] = []
        # When the newest state arrived, s (host clock).
        self._last_arrival = 0.0

        # What tells from the states whose program the controller has; None until the servo process
        # has ended.
        self._watch: ProgramWatch | None = None
        # Whose program the controller has in the newest state.
        self._program = ProgramOwner.UNKNOWN

    def connect(self) -> RtdeReader:
        """Return the connection, after making it if there is none.

        The states that come from then on are kept until they are read.
        """
        if self._reader is None:
            fields = session_fields(self._registers)
            self._reader = RtdeReader(self._host, fields, timeout=CONNECT_TIMEOUT_S)
        return self._reader

    def close(self) -> None:
        """Disconnect."""
        reader = self._reader
        self._reader = None
        if reader is not None:
            reader.close()

    def await_rest(self) -> None:
        """Wait until the arm is at rest and our program has gone.

        The dashboard is asked to stop our program if it stays.

        Raises:
            ControllerError: The controller could not be watched until then.
        """
        begin = time.monotonic()
        last_asked = begin
        # Why the last attempt failed, if it did: the connection may come back.
        failure: ControllerError | None = None
        while time.monotonic() - begin < VERIFY_TIMEOUT_S:
            try:
                # Begin to follow the program with the states from now on: the servo process has
                # followed the earlier ones itself.
                if self._watch is None:
                    self._follow(0.0)
                    self._watch = self._watch_program()
                self._follow(FOLLOW_TIMEOUT_S)
                failure = None

                if self._script_ended and self._at_rest:
                    return

                # Stop a program that is known to be ours; one of unknown owner is left alone.
                stays = self._script_ended is False
                if stays and time.monotonic() - last_asked > WATCHDOG_TIME_S:
                    last_asked = time.monotonic()
                    self._stop_our_program()
            except ControllerError as error:
                failure = error
                time.sleep(RECONNECT_PAUSE_S)
        if failure is not None:
            raise failure

    def conclude(self) -> None:
        """Note what the last states show; states that are too old do not show the present."""
        if not self._states:
            return

        silence = time.monotonic() - self._last_arrival
        if silence > MAX_STATE_AGE_S:
            self._ending.evidence.append(f"no state for {silence:.1f} s at the end")
            return

        self._ending.arm_at_rest = self._at_rest
        self._ending.script_ended = self._script_ended
        runtime_state = mode_label(self._states[-1]["runtime_state"], RuntimeState)
        self._ending.evidence.append(f"runtime state {runtime_state} at the end")

    # What the states show

    def _follow(self, timeout: float) -> None:
        """Take the states that have come, or wait for one.

        Args:
            timeout: How long to wait at most, s.

        Raises:
            ControllerError: The connection was lost, or there is none.
        """
        reader = self.connect()
        try:
            states = reader.wait(timeout)
        except ControllerError:
            # The next call connects again: the controller may be back soon.
            self.close()
            raise

        if states:
            self._last_arrival = time.monotonic()
        for state in states:
            name_script_outputs(state, self._registers)
            self._follow_state(state)

    def _follow_state(self, state: Package) -> None:
        """Follow the controller to its next state, and show what ends a session in it."""
        self._program = ProgramOwner.UNKNOWN if self._watch is None else self._watch.follow(state)
        self._follow_clock(state["timestamp"])
        self._states = [*self._states[-KEPT_STATES:], state]

        # A restart has ended the session: what the controller shows afterwards did not end it.
        if "controller_restarted" in self._ending.shown:
            return

        stop = find_stop(state)
        if stop is not None and stop is not ProgramStopped:
            safety_mode = mode_label(state["safety_mode"], SafetyMode)
            robot_mode = mode_label(state["robot_mode"], RobotMode)
            self._show(stop.cause, f"safety mode {safety_mode}, robot mode {robot_mode}")
        if self._program is ProgramOwner.OTHER and SessionState.UPLOADING in self._process.reached:
            self._show("program_replaced", "another program runs on the controller")

    def _follow_clock(self, timestamp: float) -> None:
        """Show a restart if the controller's clock, at a timestamp in s, went back.

        A timestamp that is far ahead of the state before may be corrupt: later ones are not
        compared with it.

        Args:
            timestamp: The controller's clock in the next state, s.
        """
        if timestamp < self._newest_timestamp:
            clause = f"its clock went from {self._newest_timestamp:.3f} s to {timestamp:.3f} s"
            self._show("controller_restarted", clause)

        if self._states and timestamp - self._states[-1]["timestamp"] <= MAX_STEP_S:
            self._newest_timestamp = timestamp

    def _show(self, cause: str, clause: str) -> None:
        """Add a cause that ends a session, with its evidence, unless it was shown before.

        Args:
            cause: The cause.
            clause: The evidence as a clause.
        """
        if cause not in self._ending.shown:
            self._ending.shown.append(cause)
            self._ending.evidence.append(clause)

    @property
    def _at_rest(self) -> bool | None:
        """True if the arm has been at rest for `REST_TIME_S`; None without states of that time."""
        if not self._states:
            return None

        # The states of that time; fewer than for half of it show nothing.
        newest = self._states[-1]["timestamp"]
        recent = [state for state in self._states if newest - state["timestamp"] <= REST_TIME_S]
        if recent[-1]["timestamp"] - recent[0]["timestamp"] < 0.5 * REST_TIME_S:
            return None

        # The joints and, where they are reported, their targets must rest.
        speeds = np.array([[*state["actual_qd"], *state.get("target_qd", ())] for state in recent])
        return bool(np.abs(speeds).max() < REST_SPEED)

    # The control script

    def _watch_program(self) -> ProgramWatch:
        """Begin to follow the program, with what the servo process saw of it until it ended.

        A process that was killed has not said what it saw: then the program counts as ours if our
        script had begun.
        """
        has_begun = SessionState.READY in self._process.reached
        may_begin = SessionState.UPLOADING in self._process.reached and not has_begun
        program = self._process.program
        if program is None:
            program = ProgramOwner.OURS if has_begun else ProgramOwner.UNKNOWN
        return ProgramWatch(self._number, uploaded=may_begin, program=program)

    @property
    def _script_ended(self) -> bool | None:
        """True if no program of ours runs or is paused; None if that is not known."""
        if not self._states or self._program is ProgramOwner.UNKNOWN:
            return None
        return self._program is not ProgramOwner.OURS

    def _stop_our_program(self) -> None:
        """Let the dashboard stop our program, or else send another in its place."""
        if self._reader is not None and is_polyscope_x(self._reader.version):
            self._note(
                "the control script had not ended, and PolyScope X has no dashboard that could "
                "stop it"
            )
            self._replace_our_program()
            return

        try:
            with DashboardClient(self._host, timeout=CONNECT_TIMEOUT_S) as dashboard:
                if self._is_still_ours():
                    dashboard.stop()
            return
        except ControllerError as failure:
            self._note(f"the dashboard did not stop the control script: {failure}")

        self._replace_our_program()

    def _replace_our_program(self) -> None:
        """Send a program that ends at once, if ours is still there."""
        address = (self._host, PRIMARY)
        try:
            with socket.create_connection(address, timeout=CONNECT_TIMEOUT_S) as connection:
                if not self._is_still_ours():
                    return
                connection.sendall(EMPTY_PROGRAM)
                is_refused = is_script_refused(connection, within=ANSWER_TIME_S)
        except OSError as failure:
            self._note(f"no program could be sent in place of the control script: {failure}")
            return

        if is_refused:
            self._note("the controller is in Local and refused a program in its place")
        else:
            self._note("an empty program was sent in its place, which has no effect in Local")

    def _is_still_ours(self) -> bool:
        """Return whether the program is ours now, not another that has begun meanwhile."""
        self._follow(IDENTIFY_TIMEOUT_S)
        return self._program is ProgramOwner.OURS

    def _note(self, clause: str) -> None:
        """Add a clause to the evidence, once."""
        if clause not in self._ending.evidence:
            self._ending.evidence.append(clause)
