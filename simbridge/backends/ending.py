"""How a session with a controller ends: the arm is braked, our script ended, and both seen in the controller's states.

There is one way, `end_session`, whatever has happened. Its steps do not depend on the error; one that fails is
recorded, and the next one follows.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from simbridge.backends.backend import Ending
from simbridge.backends.control_script import ProgramOwner, ProgramWatch
from simbridge.backends.servo_client import ServoProcess
from simbridge.backends.session_state import SessionState
from simbridge.backends.state_fields import STATE_FIELDS
from simbridge.backends.succession import MAX_STEP_S
from simbridge.ur.arm_state import find_stop
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import ControllerError, ProgramStopped
from simbridge.ur.rtde import Package, RtdeReader
from simbridge.ur.tables import REALTIME, RobotMode, RuntimeState, SafetyMode, mode_label

_NOTHING = b"def simbridge_end():\n  sync()\nend\n"
# For our script to end by itself: its watchdog takes 0.1 s. After that the dashboard is asked to stop it.
WATCHDOG_TIME = 0.3  # s
# For the arm to rest, and our script to have ended.
VERIFY_TIMEOUT = 3.0  # s
# An older state does not show the present, s.
PRESENT = 0.2
# A joint slower than this is at rest, rad/s; so it must be for the time after it, s.
AT_REST, FOR = 0.01, 0.05


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """Signals that end the program, and come within the block, take effect at its end. Only the main thread has any."""
    pending: list[int] = []
    numbers: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)
    before: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in numbers:
                handler = signal.getsignal(number)
                if callable(handler) or (handler is signal.SIG_DFL and number != signal.SIGTSTP):
                    before[number] = handler
                    signal.signal(number, lambda received, _: pending.append(received))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if pending:
            signal.raise_signal(pending[0])


def end_session(
    host: str, number: int, process: ServoProcess, last_seen: float, ending: Ending
) -> None:
    """End a session with a controller.

    Args:
        host: The controller.
        number: The session's, which the control script carries.
        process: The servo process.
        last_seen: The controller's newest timestamp so far, s.
        ending: Takes what is seen.
    """
    watcher = _Watcher(host, number, process, last_seen, ending)
    steps: tuple[tuple[str, Callable[[], object]], ...] = (
        # First: the process brakes the arm while the others go on.
        ("ask the servo process to stop", process.ask_to_stop),
        ("watch the controller", watcher.connected),
        ("end the servo process", process.stop),
        ("see the arm at rest", watcher.until_at_rest),
        ("close the connection", watcher.close),
        ("judge what was seen", watcher.conclude),
    )
    for name, step in steps:
        try:
            step()
        except Exception as failure:
            ending.evidence.append(f"could not {name}: {failure}")
    ending.evidence[:0] = process.failures


class _Watcher:
    """Follows the controller's states while a session ends, and stops our script if it does not end by itself."""

    def __init__(
        self, host: str, number: int, process: ServoProcess, last_seen: float, ending: Ending
    ) -> None:
        self._host, self._number, self._process = host, number, process
        self._last_seen, self._ending = last_seen, ending
        self._watch: ProgramWatch | None = None
        self._program = ProgramOwner.UNKNOWN
        self._reader: RtdeReader | None = None
        self._states: list[Package] = []
        self._seen_at = 0.0

    def connected(self) -> RtdeReader:
        """The connection; what comes from now on is looked at later."""
        self._reader = self._reader or RtdeReader(self._host, STATE_FIELDS, timeout=1.0)
        return self._reader

    def close(self) -> None:
        """Disconnect."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _follow(self, timeout: float) -> None:
        reader = self.connected()
        try:
            states = reader.wait(timeout)
        except ControllerError:
            # It may be back soon.
            self.close()
            raise
        if states:
            self._seen_at = time.monotonic()
        for state in states:
            self._program = (
                ProgramOwner.UNKNOWN if self._watch is None else self._watch.follow(state)
            )
            self._follow_clock(state["timestamp"])
            self._states = [*self._states[-100:], state]
            if "controller_restarted" in self._ending.shown:
                # What it shows now has not ended the session.
                continue
            stop = find_stop(state)
            if stop is not None and stop is not ProgramStopped:
                self._show(
                    stop.cause,
                    f"safety mode {mode_label(state['safety_mode'], SafetyMode)}, "
                    f"robot mode {mode_label(state['robot_mode'], RobotMode)}",
                )
            if (
                self._program is ProgramOwner.OTHER
                and SessionState.UPLOADING in self._process.reached
            ):
                self._show("program_replaced", "another program runs on the controller")

    def _follow_clock(self, timestamp: float) -> None:
        """Show a restart if the controller's clock, at a timestamp in s, went back.

        A timestamp that is far ahead of the state before may be a corrupt one: those after it are not measured by it.
        """
        if timestamp < self._last_seen:
            words = f"its clock went from {self._last_seen:.3f} s to {timestamp:.3f} s"
            self._show("controller_restarted", words)

        if self._states and timestamp - self._states[-1]["timestamp"] <= MAX_STEP_S:
            self._last_seen = timestamp

    def _show(self, cause: str, words: str) -> None:
        if cause not in self._ending.shown:
            self._ending.shown.append(cause)
            self._ending.evidence.append(words)

    def _watch_program(self) -> ProgramWatch:
        """Begins with what the servo process saw of the program until it ended. One that was killed says nothing: then
        it is ours, once it was."""
        reached, program = self._process.reached, self._process.program
        begun = SessionState.READY in reached
        if program is None:
            program = ProgramOwner.OURS if begun else ProgramOwner.UNKNOWN
        return ProgramWatch(
            self._number, uploaded=SessionState.UPLOADING in reached and not begun, program=program
        )

    def until_at_rest(self) -> None:
        """Wait until the arm is at rest and no program of ours is left; ask the dashboard to stop ours if it stays.

        Raises:
            ControllerError: The controller could not be watched until then.
        """
        begin = asked = time.monotonic()
        failure: ControllerError | None = None
        while time.monotonic() - begin < VERIFY_TIMEOUT:
            try:
                if self._watch is None:
                    # What came while the process was ending, it has seen itself.
                    self._follow(0.0)
                    self._watch = self._watch_program()
                self._follow(0.02)
                failure = None
                if self._script_ended and self._at_rest:
                    return
                if self._script_ended is False and time.monotonic() - asked > WATCHDOG_TIME:
                    asked = time.monotonic()
                    self._stop_ours()
            except ControllerError as error:
                failure = error
                time.sleep(0.05)
        if failure is not None:
            raise failure

    def _stop_ours(self) -> None:
        try:
            with DashboardClient(self._host, timeout=1.0) as dashboard:
                if self._is_ours():
                    dashboard.stop()
            return
        except ControllerError as failure:
            self._note(f"the dashboard did not stop the control script: {failure}")
        try:
            with socket.create_connection((self._host, REALTIME), timeout=1.0) as connection:
                if self._is_ours():
                    # A program that does nothing takes its place, and ends.
                    connection.sendall(_NOTHING)
                    connection.shutdown(socket.SHUT_WR)
        except OSError as failure:
            self._note(f"no program could be sent in place of the control script: {failure}")

    def _is_ours(self) -> bool:
        """Whether the program is ours right now, and not another that has begun meanwhile."""
        self._follow(0.05)
        return self._program is ProgramOwner.OURS

    def _note(self, words: str) -> None:
        if words not in self._ending.evidence:
            self._ending.evidence.append(words)

    @property
    def _at_rest(self) -> bool | None:
        if not self._states:
            return None
        recent = [s for s in self._states if self._states[-1]["timestamp"] - s["timestamp"] <= FOR]
        if recent[-1]["timestamp"] - recent[0]["timestamp"] < 0.5 * FOR:
            return None
        speeds = np.array([[*state["actual_qd"], *state.get("target_qd", ())] for state in recent])
        return bool(np.abs(speeds).max() < AT_REST)

    @property
    def _script_ended(self) -> bool | None:
        if not self._states or self._program is ProgramOwner.UNKNOWN:
            return None
        return self._program is not ProgramOwner.OURS

    def conclude(self) -> None:
        """Note what was seen last; states that are too old show nothing."""
        silent = time.monotonic() - self._seen_at
        if self._states and silent > PRESENT:
            self._ending.evidence.append(f"no state for {silent:.1f} s at the end")
        elif self._states:
            self._ending.arm_at_rest, self._ending.script_ended = self._at_rest, self._script_ended
            state = mode_label(self._states[-1]["runtime_state"], RuntimeState)
            self._ending.evidence.append(f"runtime state {state} at the end")
