"""How a session with a controller ends: the arm is braked, our script ended, and both seen in the controller's states.

There is one way, `end_session`, whatever has happened. Its steps do not depend on the error; one that fails is
recorded, and the next one follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from simbridge.backends.backend import Ending
from simbridge.backends.control_script import Program, ProgramWatch
from simbridge.backends.servo_channel import STATE_FIELDS
from simbridge.backends.servo_client import ServoProcess
from simbridge.backends.session_state import State
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import ControllerError
from simbridge.ur.facts import safety_stop
from simbridge.ur.rtde import Package, RtdeReader
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode, mode_label

# How often Ctrl-C may interrupt a step before it is left out.
_INSISTENCE = 5
# For our script to end by itself: its watchdog takes 0.1 s. After that the dashboard is asked to stop it.
WATCHDOG_TIME = 0.3  # s
# For the arm to rest, and our script to have ended.
VERIFY_TIMEOUT = 3.0  # s
# A joint slower than this is at rest, rad/s; so it must be for the time after it, s.
AT_REST, FOR = 0.01, 0.05


def end_session(host: str, number: int, process: ServoProcess, last_seen: float, ending: Ending) -> None:
    """End a session with a controller.

    Args:
        host: The controller.
        number: The session's, which the control script carries.
        process: The servo process.
        last_seen: The controller's newest timestamp so far, s.
        ending: Takes what is seen.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed meanwhile; the session has ended nevertheless.
    """
    watcher = _Watcher(host, last_seen, ending)
    steps: tuple[tuple[str, Callable[[], None]], ...] = (
        # First: the process brakes the arm while the others go on.
        ("ask the servo process to stop", process.ask_to_stop),
        ("watch the controller", watcher.begin),
        ("end the servo process", process.stop),
        ("see the arm at rest", lambda: watcher.until_at_rest(_watch(number, process))),
        ("close the connection", watcher.close),
    )
    interrupted: KeyboardInterrupt | None = None
    for name, step in steps:
        for _ in range(_INSISTENCE):
            try:
                step()
                break
            except KeyboardInterrupt as error:
                # The arm comes first: the step is taken again.
                interrupted = interrupted or error
            except Exception as failure:
                ending.evidence.append(f"could not {name}: {failure}")
                break
    ending.evidence[:0] = [f"the servo process could not {failure}" for failure in process.failures]
    watcher.conclude()
    if interrupted is not None:
        raise interrupted


def _watch(number: int, process: ServoProcess) -> ProgramWatch:
    """Knows our program, also one that was uploaded and has not begun, as the process reported until it ended."""
    return ProgramWatch(number, uploaded=State.UPLOADING in process.reached, begun=State.READY in process.reached)


class _Watcher:
    """Follows the controller's states while a session ends, and stops our script if it does not end by itself."""

    def __init__(self, host: str, last_seen: float, ending: Ending) -> None:
        self._host, self._last_seen, self._ending = host, last_seen, ending
        self._watch = ProgramWatch(0)
        self._reader: RtdeReader | None = None
        self._states: list[Package] = []

    def begin(self) -> None:
        """Connect; what comes from now on is looked at later."""
        self._reader = RtdeReader(self._host, STATE_FIELDS, timeout=1.0).__enter__()

    def close(self) -> None:
        """Disconnect."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.__exit__()

    def _follow(self, timeout: float) -> None:
        if self._reader is None:
            self._reader = RtdeReader(self._host, STATE_FIELDS, timeout=1.0).__enter__()
        try:
            states = self._reader.wait(timeout)
        except ControllerError:
            # It may be back soon.
            self.close()
            raise
        for state in states:
            self._watch.follow(state)
            self._states = [*self._states[-100:], state]
            if state["timestamp"] < self._last_seen:
                self._show(
                    "controller_restarted", f"its clock went from {self._last_seen:.3f} s to {state['timestamp']:.3f} s"
                )
            self._last_seen = state["timestamp"]
            if "controller_restarted" in self._ending.shown:
                # What it shows now has not ended the session.
                continue
            stop = safety_stop(state["safety_mode"], state.get("safety_status_bits", 0))
            if stop is not None:
                self._show(stop.cause, f"safety mode {mode_label(state['safety_mode'], SafetyMode)}")
            elif state["robot_mode"] != RobotMode.RUNNING:
                self._show("power_off", f"robot mode {mode_label(state['robot_mode'], RobotMode)}")
            if self._watch.program is Program.OTHER:
                self._show("program_replaced", "another program runs on the controller")

    def _show(self, cause: str, words: str) -> None:
        if cause not in self._ending.shown:
            self._ending.shown.append(cause)
            self._ending.evidence.append(words)

    def until_at_rest(self, watch: ProgramWatch) -> None:
        """Wait until the arm is at rest and no program of ours is left; ask the dashboard to stop ours if it stays."""
        self._watch = watch
        begin = time.monotonic()
        asked = begin
        failure: ControllerError | None = None
        while time.monotonic() - begin < VERIFY_TIMEOUT:
            try:
                self._follow(0.02)
            except ControllerError as error:
                failure = error
                time.sleep(0.05)
                continue
            if self._script_ended and self._at_rest:
                return
            if self._script_ended is False and time.monotonic() - asked > WATCHDOG_TIME:
                self._stop_ours()
                asked = time.monotonic()
        if failure is not None and not self._states:
            raise failure

    def _stop_ours(self) -> None:
        try:
            with DashboardClient(self._host, timeout=1.0) as dashboard:
                # Once more, so that another program that has begun meanwhile is left alone.
                self._follow(0.05)
                if self._watch.program is Program.OURS:
                    dashboard.stop()
        except Exception as failure:
            note = f"the dashboard did not stop the control script: {failure}"
            if note not in self._ending.evidence:
                self._ending.evidence.append(note)

    @property
    def _at_rest(self) -> bool | None:
        if not self._states:
            return None
        recent = [s for s in self._states if self._states[-1]["timestamp"] - s["timestamp"] <= FOR]
        if recent[-1]["timestamp"] - recent[0]["timestamp"] < 0.5 * FOR:
            return None
        speeds = np.array([[*state["actual_qd"], *state["target_qd"]] for state in recent])
        return bool(np.abs(speeds).max() < AT_REST)

    @property
    def _script_ended(self) -> bool | None:
        if not self._states or self._watch.program is Program.UNKNOWN:
            return None
        return self._watch.program is not Program.OURS

    def conclude(self) -> None:
        """Note what was seen last."""
        self._ending.arm_at_rest, self._ending.script_ended = self._at_rest, self._script_ended
        if self._states:
            state = mode_label(self._states[-1]["runtime_state"], RuntimeState)
            self._ending.evidence.append(f"runtime state {state} at the end")
