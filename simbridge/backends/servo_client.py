"""The parent's end of the servo process: start it, send requests, receive events, end it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from simbridge.backends.loop_process import START_TIMEOUT_S, LoopProcess
from simbridge.backends.program_watch import ProgramOwner
from simbridge.backends.registers import REGISTERS
from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.session_state import SessionState
from simbridge.backends.state_ring import MAX_ROWS, StateRing
from simbridge.planning.link_choices import LinkName
from simbridge.robot.pose import Array
from simbridge.ur.controller_facts import Survey
from simbridge.ur.errors import (
    ConnectionLost,
    ControllerError,
    RegistersInUse,
    ScriptNotStarted,
    ServoProcessLost,
)
from simbridge.ur.polyscope_x import REMOTE_REMEDY, remote_control_disabled
from simbridge.ur.survey import claimed_registers, survey
from simbridge.ur.tables import PRIMARY, REALTIME

# The port to which each link sends the control script.
SCRIPT_PORTS: Mapping[LinkName, int] = {
    "ur_rtde": REALTIME,
    "rtde": PRIMARY,
}
# How long the process may take to connect and to start the control script, s: several steps have
# timeouts of up to five seconds.
CONNECT_TIMEOUT_S = 15.0

# The ring has room for this many states per setpoint of a plan, as a controller that scales the
# speed takes more periods than the plan has; ...
STATES_PER_SETPOINT = 4
# ... and for this many more, as of a pause.
EXTRA_STATES = 4096


@dataclass(frozen=True)
class LiveProgram:
    """A program that makes setpoints within the servo process, from inputs in shared memory.

    Attributes:
        module: Main module of the program, which runs as `python -m MODULE servo`.
        setup: The pickled `MotionSetup` of which it is made.
        create_channel: Function that creates the channel of inputs in the file at a path.
    """

    module: str
    setup: bytes
    create_channel: Callable[[Path], object]


class ServoProcess(LoopProcess):
    """A running servo process.

    Args:
        config: The controller, and how it is used.
        live: The program that makes the setpoints of a live session; None for plans.

    Attributes:
        reached: The states of the session that the process has reported.
        program: Whose program the controller had when the process ended; None before.
    """

    def __init__(self, config: ServoConfig, live: LiveProgram | None = None) -> None:
        if live is None:
            super().__init__("simbridge.backends.servo_process", config.host)
        else:
            super().__init__(live.module, config.host, "servo")
        self._config = config
        self._live = live
        self.reached = {SessionState.CONNECTING}
        self.program: ProgramOwner | None = None

    def connect(self) -> dict[str, Any]:
        """Give the servo process its configuration, and wait until it has connected.

        It is connected to the controller once the control script runs.

        Returns:
            The event `ready`: joint positions `q`, and `notes` about scheduling that the system
            refused.

        Raises:
            ControllerError: One of its subclasses: why the process could not connect.
        """
        config = self._config
        # In a live session the process makes the setpoints itself, by this setup.
        if self._live is not None:
            setup_file = self.create_memory("setup")
            setup_file.write_bytes(self._live.setup)
            config = replace(config, live=str(setup_file))
        self.send(msgspec.to_builtins(config))

        # From here on a thread sends heartbeats: without them the process ends its session.
        self.keep_alive()

        try:
            return self._await_ready()
        except (ConnectionLost, ScriptNotStarted) as error:
            # The process may have claimed the registers that `_find_cause` tries to claim: while it
            # lives, they count as those of another client.
            self._process.kill()
            cause = self._find_cause(error)
            if cause is None:
                raise
            raise cause from None

    def _await_ready(self) -> dict[str, Any]:
        """Return the event that the control script runs.

        Raises:
            ServoProcessLost: The process did not load what it needs in time.
            ConnectionLost: The control script did not run in time after that.
        """
        is_prepared = False
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0.0:
                break
            for event in self.events(remaining):
                if event["event"] == "ready":
                    return event
                if event["event"] == "prepared":
                    is_prepared = True
                    deadline = time.monotonic() + CONNECT_TIMEOUT_S

        host = self._config.host
        if not is_prepared:
            self._process.kill()
            raise ServoProcessLost(host, f"had not started after {START_TIMEOUT_S:g} s")
        reason = f"the control script did not start within {CONNECT_TIMEOUT_S:g} s"
        raise ConnectionLost(host, SCRIPT_PORTS[self._config.link], reason)

    def _find_cause(self, error: ControllerError) -> ControllerError | None:
        """Return why the process could not connect, as the controller's ports show it.

        Args:
            error: The error with which it ended.

        Returns:
            The cause; None if the ports show none.
        """
        host = self._config.host

        # ur_rtde does not report which of its connections failed, so the ports are tried. Our own
        # link can do without the real-time port.
        ports = survey(host, rest_port=self._config.rest_port)
        for port in ports.needed_ports:
            is_needed = port != REALTIME or self._config.link == "ur_rtde"
            if port in ports.lost and is_needed:
                return ports.lost[port]

        # A controller in local control ignores a script that is uploaded, and reports nothing.
        version = None if ports.state is None else ports.state.version
        remote_control = None if ports.pendant is None else ports.pendant.remote_control
        if version is not None and remote_control is False:
            return remote_control_disabled(host, version)

        # The link cannot write registers that another client has claimed.
        inputs = REGISTERS[self._config.registers].inputs_of(self._config.link)
        occupied = claimed_registers(host, inputs)
        if occupied:
            return RegistersInUse(host, occupied)

        return suspect_local_control(error, ports)

    def replay(self, setpoints: Array, *, feedforward: bool = False) -> StateRing:
        """Send setpoints, one a period.

        Args:
            setpoints: Joint positions (T, n), rad.
            feedforward: Whether to send what makes the arm follow them, by the inverse of the servo
                law.

        Returns:
            The ring in which the state of each setpoint appears.
        """
        plan = self.create_memory("setpoints")
        plan.write_bytes(np.ascontiguousarray(setpoints, dtype=np.float64).tobytes())
        states = STATES_PER_SETPOINT * len(setpoints) + EXTRA_STATES
        return self._play(states, do="replay", plan=str(plan), feedforward=feedforward)

    def begin_session(self, channel: Path) -> StateRing:
        """Begin a live session, in which the process makes the setpoints; it waits to be engaged.

        Args:
            channel: The file with the channel of inputs.

        Returns:
            The ring in which states appear.
        """
        return self._play(MAX_ROWS, do="session", channel=str(channel))

    def _play(self, states: int, **request: Any) -> StateRing:
        """Send a request for a motion, with a new ring for its states.

        Args:
            states: Number of states that the motion may have.
            request: The fields of the request, apart from those of the ring.
        """
        path = self.create_memory("states")
        ring = StateRing.create(path, len(self._config.limits.joint_names), states)
        self.send({**request, "ring": str(path), "rows": ring.rows})
        return ring

    def _note(self, event: dict[str, Any]) -> None:
        super()._note(event)
        if event["event"] == "state":
            self.reached.add(SessionState(event["state"]))
        elif event["event"] == "stopped":
            self.program = ProgramOwner(event["program"])


def suspect_local_control(error: ControllerError, ports: Survey) -> ScriptNotStarted | None:
    """Return an error that asks whether the controller is in Local, if that cannot be read.

    Args:
        error: The error with which the servo process ended.
        ports: The controller's answers on its ports.

    Returns:
        The error; None if something else than the start of the script failed, or if the controller
        reports whether it is in Local.
    """
    if not isinstance(error, ScriptNotStarted) or not ports.is_polyscope_x:
        return None
    if ports.pendant is None or ports.pendant.remote_control is not None:
        return None

    reason = ports.pendant.remote_control_obstacle
    question = (
        "Is it in Remote? In Local a controller ignores the script, and here that cannot be read: "
        f"{reason}. {REMOTE_REMEDY}"
    )
    return ScriptNotStarted(ports.host, error.waited, question)
