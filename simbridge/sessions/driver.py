"""Drives the loop of a live session.

On a controller the loop runs in the servo process, in a simulation in a process of its own. A
session on the caller's clock runs it in this process, step by step.
"""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any

from simbridge.backends import backend_class
from simbridge.backends.backend import ArmState, Ask, Capabilities, Ending
from simbridge.backends.controller_backend import ControllerBackend
from simbridge.backends.error_events import reconstruct_error
from simbridge.backends.loop_process import START_TIMEOUT_S, LoopProcess, SilenceWatch
from simbridge.backends.loop_timing import LoopTiming
from simbridge.backends.servo_client import LiveProgram
from simbridge.backends.simulation import SimulationBackend
from simbridge.backends.state_ring import MAX_ROWS, StateRing
from simbridge.errors import GuardViolation, InvalidParameter, SimbridgeError
from simbridge.planning.options import Options
from simbridge.robot.robot import Robot
from simbridge.sessions.channel import LiveChannel
from simbridge.sessions.loop import OrderRequest
from simbridge.sessions.motion_setup import MotionSetup
from simbridge.sessions.phases import Order
from simbridge.sessions.stepped_arm import SteppedArm
from simbridge.ur.controller_facts import ControllerFacts
from simbridge.ur.errors import ScriptNotStarted, StaleState

# How long to wait between two looks at a loop that starts on a controller, s.
START_POLL_S = 0.001
# How long to wait for an event of a loop that starts in a simulation, s.
START_EVENT_WAIT_S = 0.1


class LiveDriver(ABC):
    """A loop that moves an arm in a live session.

    Attributes:
        setup: The parts of the session's motion.
        period: Control period, s.
        capabilities: Capabilities of the arm's backend.
        asks: Whether a person is asked before the arm moves.
        channel: Memory for inputs and periods; None while no loop runs.
        ring: Memory for the states of the arm; None while no loop runs.
        subjects: The names that subjects of causes may have; empty until the loop is ready.
        payload_changes: The payloads that were set on the controller, oldest first: `mass`, kg, and
            `cog` (3,), m; whoever reads them removes them.
    """

    capabilities: Capabilities
    asks = False

    def __init__(self, setup: MotionSetup) -> None:
        self.setup = setup
        self.period = setup.period
        self.channel: LiveChannel | None = None
        self.ring: StateRing | None = None
        self.subjects: tuple[str, ...] = ()
        self.payload_changes: list[dict[str, Any]] = []
        self._process: LoopProcess | None = None

    def open(self) -> None:  # noqa: B027 (only a controller has something to check)
        """Make the checks that are possible before the loop starts; on `real` ask.

        Raises:
            ControllerError: The controller cannot be used.
        """

    @abstractmethod
    def begin(self) -> None:
        """Start the loop, at rest; after a stop recover first, on `real` with a person.

        Raises:
            SimbridgeError: The loop cannot be started.
        """

    def order(self, order: Order, engagement: int = 0, upto: int = 0, value: float = 0.0) -> None:
        """Pass on an order; the numbers are those of `OrderRequest`."""
        assert self._process is not None
        self._process.send(OrderRequest(order, engagement, upto, value).as_message())

    @abstractmethod
    def poll(self, states: list[ArmState]) -> SimbridgeError | None:
        """Take what the loop has reported.

        Args:
            states: The states that have appeared in the ring since the last call.

        Returns:
            The error that has stopped the arm while the loop goes on; None if nothing has.

        Raises:
            SimbridgeError: The error that ended the loop; the arm has been stopped.
        """

    @abstractmethod
    def end(self) -> None:
        """Bring the arm to rest and end the loop."""

    def _silence_error(self, error: StaleState) -> StaleState:
        """Return the error for a loop that was silent for too long.

        It names the solver if the loop is in it.
        """
        if self.channel is None or not self.channel.solving[0]:
            return error
        process = (
            f"{error.source}, in a step of the solver {self.setup.solver_name} that has not "
            "returned,"
        )
        return StaleState(error.host, error.timestamp, error.waited, source=process)

    @property
    def ending(self) -> Ending | None:
        """See `Backend.ending`."""
        return Ending(arm_at_rest=True, script_ended=True)

    @property
    def loop(self) -> dict[str, float | int] | None:
        """See `Backend.loop`."""
        return None


def driver_for(
    backend: str,
    arm: Robot,
    options: Options,
    *,
    setup: MotionSetup,
    controller: ControllerFacts | None,
    ask: Ask | None,
    realtime: bool,
) -> LiveDriver:
    """Return the driver of a session with a backend.

    Args:
        backend: A name in `LIVE_BACKENDS`.
        arm: The arm.
        options: The options of the session.
        setup: The parts of the session's motion.
        controller: Facts of the controller; None in simulation.
        ask: Function that asks for confirmation: see `live`.
        realtime: Whether a simulation is paced by the wall clock.

    Raises:
        InvalidParameter: realtime is False, and the backend is a controller.
    """
    kind = backend_class(backend)
    if not issubclass(kind, ControllerBackend):
        if realtime:
            return SimulationDriver(setup, options.realtime_priority)
        return SteppedDriver(setup)

    if not realtime:
        raise InvalidParameter(
            "realtime", False, f"left out: a controller ({backend}) has its own clock"
        )
    # Feedforward is what a session calls lead: the servo process inverts the servo law.
    servo_options = replace(options, feedforward="on" if setup.options.lead else "off")
    controller_backend = kind(arm, servo_options, ask=ask)
    # The controller must still be the same when the loop begins.
    controller_backend.planned_for = controller
    return ControllerDriver(setup, controller_backend)


class ControllerDriver(LiveDriver):
    """A controller, whose loop is in the servo process."""

    capabilities = ControllerBackend.capabilities

    def __init__(self, setup: MotionSetup, backend: ControllerBackend) -> None:
        super().__init__(setup)
        self.asks = not backend.ursim
        self._backend = backend
        # Whether a loop has ended: the next `begin` recovers first.
        self._ended = False

    def open(self) -> None:
        self._backend.__enter__()

    def begin(self) -> None:
        if self._ended:
            self._backend.recover()
            self._ended = False

        try:
            self.subjects = ()
            self.ring, self._process = self._backend.begin_session(self._live_program())
            # The loop is ready once it has named its subjects.
            deadline = time.monotonic() + START_TIMEOUT_S
            while not self.subjects:
                for event in self._backend.follow_session(self.ring.new_states(self.period)):
                    self.subjects = tuple(event.get("subjects", self.subjects))
                if time.monotonic() > deadline:
                    raise ScriptNotStarted(self._backend.host, START_TIMEOUT_S)
                time.sleep(START_POLL_S)
        except BaseException:
            self.end()
            raise

    def _live_program(self) -> LiveProgram:
        """Return what the servo process runs for a live session."""

        def create_channel(path: Path) -> None:
            """Make the memory for inputs and periods, which the parent keeps open."""
            self.channel = LiveChannel.create(path, self._backend.robot.n)

        return LiveProgram("simbridge.sessions.process", self.setup.to_bytes(), create_channel)

    def poll(self, states: list[ArmState]) -> SimbridgeError | None:
        try:
            self._note_payloads(self._backend.follow_session(states))
        except SimbridgeError as error:
            # The backend has stopped the servo process.
            self._ended = True
            self._note_last_payloads()
            if isinstance(error, StaleState):
                raise self._silence_error(error) from None
            raise
        return None

    def end(self) -> None:
        self._ended = True
        self._backend.stop()
        self._note_last_payloads()

    def _note_last_payloads(self) -> None:
        """Keep the payloads that the servo process reported as its loop ended."""
        if self._process is not None:
            self._note_payloads(self._process.last_events)
            self._process.last_events.clear()

    def _note_payloads(self, events: list[dict[str, Any]]) -> None:
        """Keep the payloads that events of the servo process tell of."""
        for event in events:
            if event["event"] == "payload":
                self.payload_changes.append({"mass": event["mass"], "cog": event["cog"]})

    @property
    def ending(self) -> Ending | None:
        return self._backend.ending

    @property
    def loop(self) -> dict[str, float | int] | None:
        return self._backend.loop


class SimulationDriver(LiveDriver):
    """A simulated arm in a process of its own, paced by the wall clock."""

    capabilities = SimulationBackend.capabilities

    def __init__(self, setup: MotionSetup, priority: int = 0) -> None:
        super().__init__(setup)
        self._priority = priority
        self._timing = LoopTiming()
        self._silence = SilenceWatch()
        # The timestamp of the newest state, s.
        self._newest = 0.0

    def begin(self) -> None:
        if self._process is not None:
            return
        self.subjects = ()
        setup_bytes = self.setup.to_bytes()
        joints = self.setup.robot.n
        # The process's name in messages is "the simulation"; "simulation" is the module's argument.
        process = LoopProcess("simbridge.sessions.process", "the simulation", "simulation")
        self._process = process

        # The memory that both processes see.
        setup_file = process.create_memory("setup")
        channel_file = process.create_memory("channel")
        ring_file = process.create_memory("states")
        setup_file.write_bytes(setup_bytes)
        self.channel = LiveChannel.create(channel_file, joints)
        self.ring = StateRing.create(ring_file, joints, MAX_ROWS)
        process.send(
            {
                "live": str(setup_file),
                "channel": str(channel_file),
                "ring": str(ring_file),
                "rows": self.ring.rows,
                "priority": self._priority,
            }
        )
        process.keep_alive()

        # The loop is ready once it has named its subjects.
        deadline = time.monotonic() + START_TIMEOUT_S
        try:
            while not self.subjects:
                for event in process.events(START_EVENT_WAIT_S):
                    self.subjects = tuple(event.get("subjects", self.subjects))
                    for note in event.get("notes", ()):
                        warnings.warn(note, stacklevel=2)
                if time.monotonic() > deadline:
                    # The process would not answer a request to stop.
                    process.kill()
                    # There is no controller, so no host; and no state has come yet.
                    raise StaleState(
                        host="",
                        timestamp=0.0,
                        waited=START_TIMEOUT_S,
                        source="the process of the simulation",
                    )
        except BaseException:
            self.end()
            raise
        self._silence = SilenceWatch()

    def poll(self, states: list[ArmState]) -> SimbridgeError | None:
        for state in states:
            self._timing.add(state)
            self._silence.hear()
            self._newest = state.timestamp
        if self._process is None:
            return None

        stopped: SimbridgeError | None = None
        try:
            silence_s = self._silence.excess()
            if silence_s:
                # The process would not answer a request to stop.
                self._process.kill()
                silence = StaleState(
                    host="",
                    timestamp=self._newest,
                    waited=silence_s,
                    source="the process of the simulation",
                )
                raise self._silence_error(silence)
            for event in self._process.events():
                if event["event"] == "refused":
                    refusal = reconstruct_error(event)
                    stopped = refusal if isinstance(refusal, SimbridgeError) else None
        except SimbridgeError:
            self.end()
            raise
        return stopped

    def end(self) -> None:
        process = self._process
        self._process = None
        if process is not None:
            process.stop()
            self._timing.add_counts(process.counts)

    @property
    def loop(self) -> dict[str, float | int] | None:
        return self._timing.summary()


class SteppedDriver(LiveDriver):
    """A simulated arm in this process, on a clock that only `step` moves."""

    capabilities = SimulationBackend.capabilities

    def __init__(self, setup: MotionSetup) -> None:
        super().__init__(setup)
        self._arm: SteppedArm | None = None
        # What has stopped the arm, until `poll` has reported it.
        self._stopped: SimbridgeError | None = None

    def begin(self) -> None:
        if self._arm is not None:
            return
        motion = self.setup.motion()
        joints = self.setup.robot.n
        self.channel = LiveChannel(None, joints)
        self.ring = StateRing(None, joints, MAX_ROWS)
        self.subjects = motion.subjects
        self._arm = SteppedArm(self.setup, motion, self.channel, ring=self.ring).__enter__()

    @property
    def is_stopped(self) -> bool:
        """True while an error that has stopped the arm waits for `poll` to report it."""
        return self._stopped is not None

    def step(self) -> None:
        """Move the arm by one period.

        After a period in which the loop has failed nothing moves, until `poll` has reported that.
        """
        assert self._arm is not None
        if self._stopped is not None and not isinstance(self._stopped, GuardViolation):
            return
        try:
            self._arm.step()
        except SimbridgeError as error:
            self._stopped = error

    def order(self, order: Order, engagement: int = 0, upto: int = 0, value: float = 0.0) -> None:
        assert self._arm is not None
        self._arm.loop.requests.append(OrderRequest(order, engagement, upto, value))

    def poll(self, states: list[ArmState]) -> SimbridgeError | None:
        stopped = self._stopped
        self._stopped = None
        # Any other error than a refused setpoint means that the loop has failed, such as a custom
        # solver in it. The next loop begins with the arm at home.
        if stopped is not None and not isinstance(stopped, GuardViolation):
            self.end()
            raise stopped
        return stopped

    def end(self) -> None:
        if self._arm is not None:
            self._arm.__exit__()
        self._arm = None
