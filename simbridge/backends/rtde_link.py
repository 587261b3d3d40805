"""The connection to a controller whose control script is sent and commanded through ur_rtde.

This is the only module that imports ur_rtde, and it does so within the servo process alone.

ur_rtde reconnects by itself and then continues streaming, which cannot be switched off. A process
that can open no further socket cannot reconnect: ur_rtde then reports the loss. So the limit on
open files is lowered as soon as the connection is up.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import stat
import time
from collections.abc import Callable
from typing import Any

from simbridge.backends.control_script import render_control_script
from simbridge.backends.low_latency import allow_new_files, forbid_new_files
from simbridge.backends.program_watch import ProgramOwner, ProgramWatch
from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.state_fields import OPTIONAL_FIELDS, STATE_FIELDS
from simbridge.backends.succession import is_number_corrupt
from simbridge.robot.pose import Array
from simbridge.ur import errors
from simbridge.ur.arm_state import find_stop, read_modes
from simbridge.ur.rtde import Package, RtdeReader
from simbridge.ur.tables import PROGRAM_RUNS, REALTIME, RTDE, RuntimeState

# How long a controller may take to send its first state.
IDLE_STATE_TIMEOUT_S = 1.0
# How long the control script may take to run once it was uploaded.
SCRIPT_TIMEOUT_S = 5.0
# How long a state is waited for while the control script starts.
START_POLL_S = 0.02

# servoJ takes a speed and an acceleration, which the controller does not use.
UNUSED_SPEED = 0.0
UNUSED_ACCELERATION = 0.0


def send_without_delay(port: int) -> None:
    """Let what this process sends to a port leave at once, before the last packet is acknowledged.

    ur_rtde asks for that, but before it connects, and boost then opens another socket without the
    option. After one late command, all others would wait for an acknowledgement, until after the
    cycle for which they were sent.

    Args:
        port: The port, to which this process is connected.
    """
    for name in os.listdir("/dev/fd"):
        descriptor = int(name)
        # The listing's own descriptor is closed by now.
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as connection:
                if connection.family == socket.AF_INET and connection.getpeername()[1] == port:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class RtdeLink:
    """The controller: commands through ur_rtde, states through our own RTDE reader.

    See `received_states.ControllerLink`. From here on this process opens no file and no socket.

    Args:
        config: The controller, and how it is used.

    Raises:
        ConnectionLost: The controller does not answer.
    """

    def __init__(self, config: ServoConfig) -> None:
        # Import it here, so that the parent's imports do not load ur_rtde.
        from rtde_control import RTDEControlInterface  # noqa: PLC0415

        self._config = config
        self._watch = ProgramWatch(config.number)
        # The newest state from which the program was followed.
        self._followed: Package | None = None

        frequency = 1.0 / config.period
        self._reader = RtdeReader(config.host, STATE_FIELDS, frequency)

        # The flags say that our control script will take the place of ur_rtde's, and that the
        # constructor does not wait for it.
        custom_script = int(RTDEControlInterface.FLAG_CUSTOM_SCRIPT)
        no_wait = int(RTDEControlInterface.FLAG_NO_WAIT)
        try:
            self._control = RTDEControlInterface(config.host, frequency, custom_script | no_wait)
        except Exception as error:  # ur_rtde raises RuntimeError and other types for any failure
            reason = f"ur_rtde could not connect: {str(error).strip()}"
            raise errors.ConnectionLost(config.host, RTDE, reason) from None
        send_without_delay(RTDE)

        # From here on ur_rtde cannot reconnect.
        forbid_new_files()

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
            ConnectionLost: ur_rtde could not send it.
        """
        config = self._config
        source = render_control_script(
            config.number,
            config.period,
            tcp=config.tcp,
            payload=config.payload,
            payload_cog=config.payload_cog,
        )

        # ur_rtde reads the script from a file; this one is in memory alone.
        with allow_new_files(), open(os.memfd_create("simbridge-script"), "w") as file:
            file.write(source)
            file.flush()
            self._watch = ProgramWatch(config.number, uploaded=True)
            try:
                self._control.setCustomScriptFile(f"/proc/self/fd/{file.fileno()}")
            except RuntimeError as error:
                reason = f"the script was not sent: {error}"
                raise errors.ConnectionLost(config.host, REALTIME, reason) from None

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

    def keep_alive(self) -> None:
        self._call(self._control.kickWatchdog)

    def states(self, timeout: float) -> list[Package]:
        """Return the states since the last call, oldest first.

        Args:
            timeout: How long to wait for a state, s.

        Raises:
            ProgramReplaced: Another program runs in place of the control script.
        """
        states = self._reader.wait(timeout)
        for state in states:
            # The loop and the record know the effort of a joint, here its current, A, and expect
            # nan for what an older controller does not report.
            state["effort"] = state["actual_current"]
            for name in OPTIONAL_FIELDS:
                state.setdefault(name, [math.nan] * len(state["actual_q"]))

            # A state with a corrupt number says nothing of the program; the loop refuses it.
            if self._followed is not None and is_number_corrupt(self._followed, state):
                continue
            self._followed = state
            if self._watch.follow(state) is ProgramOwner.OTHER:
                raise errors.ProgramReplaced(self._config.host, *read_modes(state))
        return states

    def servo(self, q: Array) -> bool:
        config = self._config
        return self._call(
            lambda: self._control.servoJ(
                q.tolist(),
                UNUSED_SPEED,
                UNUSED_ACCELERATION,
                config.period,
                config.lookahead,
                config.gain,
            )
        )

    def _call(self, command: Callable[[], Any]) -> bool:
        """Give a command to ur_rtde; return whether it was accepted.

        Raises:
            ConnectionLost: ur_rtde has lost the controller.
        """
        with contextlib.suppress(RuntimeError):
            accepted = command()
            # After a connection loss the return value is meaningless.
            if self._control.isConnected():
                return bool(accepted)

        reason = "the connection for commands has ended"
        raise errors.ConnectionLost(self._config.host, RTDE, reason)

    def stop(self) -> None:
        """End the script, which brings the arm to rest if it still moves."""
        self._control.stopScript()


def _is_paused(state: Package) -> bool:
    """Return whether a program is paused in a state, or about to be."""
    return state["runtime_state"] in (RuntimeState.PAUSING, RuntimeState.PAUSED)
