"""The part of a connection to a controller that does not depend on who sends the commands.

States come through our own RTDE reader, and the control script is the same. A subclass says how the
script and its commands are sent.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod

from simbridge.backends.control_script import render_control_script
from simbridge.backends.program_watch import ProgramOwner, ProgramWatch
from simbridge.backends.registers import REGISTERS
from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.state_fields import OPTIONAL_FIELDS, name_script_outputs
from simbridge.backends.succession import is_number_corrupt
from simbridge.robot.pose import Array
from simbridge.ur import errors
from simbridge.ur.arm_state import find_stop, read_modes
from simbridge.ur.rtde import Package, RtdeReader
from simbridge.ur.tables import PROGRAM_RUNS, RTDE, RuntimeState

# How long a controller may take to send its first state.
IDLE_STATE_TIMEOUT_S = 1.0
# How long the control script may take to run once it was uploaded.
SCRIPT_TIMEOUT_S = 5.0
# How long a state is waited for while the control script starts.
START_POLL_S = 0.02


class ControllerLink(ABC):
    """A connection to a controller, on which its control script is sent and commanded.

    It is a `ServoLink` once the script runs.

    Args:
        config: The controller, and how it is used.
        reader: The stream of the controller's states, with `session_fields`.
    """

    def __init__(self, config: ServoConfig, reader: RtdeReader) -> None:
        self._config = config
        self._reader = reader
        self._registers = REGISTERS[config.registers]
        self._watch = ProgramWatch(config.number)
        # The newest state from which the program was followed.
        self._followed: Package | None = None

    @property
    def program(self) -> ProgramOwner:
        """The owner of the controller's program in the newest state that `states` has returned."""
        return self._watch.program

    def check_idle(self) -> Package:
        """Return the newest state, in which no program runs.

        Raises:
            ConnectionLost: The controller is silent.
            ProgramRunning: A program runs or is paused.
        """
        states = self._reader.wait(IDLE_STATE_TIMEOUT_S)
        if not states:
            reason = f"no state was received within {IDLE_STATE_TIMEOUT_S:g} s"
            raise errors.ConnectionLost(self._config.host, RTDE, reason)

        newest = states[-1]
        if newest["runtime_state"] in PROGRAM_RUNS:
            raise errors.ProgramRunning(self._config.host, newest["runtime_state"])
        return newest

    def upload(self) -> None:
        """Upload the control script.

        Raises:
            ConnectionLost: It could not be sent.
        """
        config = self._config
        source = render_control_script(
            config.number,
            config.period,
            registers=self._registers,
            tcp=config.tcp,
            payload=config.payload,
            payload_cog=config.payload_cog,
        )
        self._watch = ProgramWatch(config.number, uploaded=True)
        self._send_script(source)

    @abstractmethod
    def _send_script(self, source: str) -> None:
        """Send a script, which the controller then runs.

        Raises:
            ConnectionLost: It could not be sent.
        """

    def await_script(self) -> None:
        """Wait until the control script runs.

        Raises:
            ArmStopped: The arm was stopped meanwhile, or another program runs.
            ScriptNotStarted: It does not run.
        """
        host = self._config.host
        deadline = time.monotonic() + SCRIPT_TIMEOUT_S
        has_played = False
        while time.monotonic() < deadline:
            for state in self.states(START_POLL_S):
                stop = self._find_stop_at_start(state, has_played=has_played)
                if stop is not None:
                    raise stop(host, *read_modes(state))

                has_played = has_played or state["runtime_state"] == RuntimeState.PLAYING
                # A pause may last: the time counts from its end.
                if _is_paused(state):
                    deadline = time.monotonic() + SCRIPT_TIMEOUT_S

            # The script obeys only after a first command: send one that moves nothing.
            if self.program is ProgramOwner.OURS:
                self.keep_alive()
                return
        raise errors.ScriptNotStarted(host, SCRIPT_TIMEOUT_S)

    def _find_stop_at_start(
        self, state: Package, *, has_played: bool
    ) -> type[errors.ArmStopped] | None:
        """Return the error for what keeps the control script from running; None if nothing does.

        Args:
            state: A state since it was uploaded.
            has_played: Whether a program has run since then. Until then the script has not begun,
                and its absence does not count as a stop.
        """
        stop = find_stop(state)
        if stop is errors.ProgramStopped and not has_played:
            return None
        if stop is None and _is_paused(state) and not self._config.wait_in_pause:
            return errors.ProgramPaused
        return stop

    @abstractmethod
    def keep_alive(self) -> None:
        """See `ServoLink.keep_alive`."""

    def states(self, timeout: float) -> list[Package]:
        """Return the states since the last call, oldest first.

        Args:
            timeout: How long to wait for a state, s.

        Raises:
            ProgramReplaced: Another program runs in place of the control script.
        """
        states = self._reader.wait(timeout)
        for state in states:
            # Add the script's number and counter under names that no register has.
            name_script_outputs(state, self._registers)
            # The loop and the record know the effort of a joint, here its current, A, and expect
            # nan for what an older controller does not report.
            state["effort"] = state["actual_current"]
            for name in OPTIONAL_FIELDS:
                state.setdefault(name, [math.nan] * len(state["actual_q"]))

            # The control script writes the session's number, which identifies the running program.
            # The loop refuses a state with a corrupt number.
            if self._followed is not None and is_number_corrupt(self._followed, state):
                continue
            self._followed = state
            if self._watch.follow(state) is ProgramOwner.OTHER:
                raise errors.ProgramReplaced(self._config.host, *read_modes(state))
        return states

    @abstractmethod
    def servo(self, q: Array) -> bool:
        """See `ServoLink.servo`."""

    @abstractmethod
    def stop(self) -> None:
        """End the script, which brings the arm to rest if it still moves."""


def _is_paused(state: Package) -> bool:
    """Return whether a program is paused in a state, or about to be."""
    return state["runtime_state"] in (RuntimeState.PAUSING, RuntimeState.PAUSED)
