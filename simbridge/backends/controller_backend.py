"""UR controllers as backends: through a link to them, which runs in the servo process.

Entering checks that this is the intended controller and arm, and asks for confirmation before a
real arm moves. The first motion starts the servo process, which uploads the control script; every
motion ends with a decelerated stop and the end of that script.
"""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from abc import abstractmethod
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from simbridge.backends import preflight
from simbridge.backends.backend import ArmState, Ask, Backend, Capabilities, Ending, Facts
from simbridge.backends.control_script import draw_session_number
from simbridge.backends.controller_arm import complete_arm
from simbridge.backends.controller_options import controller_host, resolve_options, servo_config
from simbridge.backends.ending import end_session
from simbridge.backends.loop_process import SilenceWatch
from simbridge.backends.loop_timing import LoopTiming
from simbridge.backends.registers import REGISTERS
from simbridge.backends.servo_client import LiveProgram, ServoProcess
from simbridge.backends.signal_shield import shield_from_signals
from simbridge.backends.state_fields import STATE_FIELDS, state_at_rest
from simbridge.backends.state_ring import StateRing
from simbridge.errors import SimbridgeError
from simbridge.planning.approach import plan_approach
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.ur.controller_facts import ControllerFacts
from simbridge.ur.controller_messages import ControllerMessages
from simbridge.ur.errors import ProgramRunning, StaleState, StartNotReached
from simbridge.ur.rtde import RtdeReader
from simbridge.ur.survey import read_controller
from simbridge.ur.tables import REST

if TYPE_CHECKING:  # loads the solvers
    from simbridge.planning.options import Options

# How far a joint may be from a plan's first setpoint when the plan begins, rad.
START_TOLERANCE = math.radians(1.0)
# The servo lags behind its setpoints: how long the last one of an approach is held until the arm
# has caught up, s, and how many lookahead times in addition.
SETTLING_S = 0.2
SETTLING_LOOKAHEADS = 10.0
# How long a control script that is ending may still count as a running program, s.
SCRIPT_END_S = 0.5
# How long to wait for events of the servo process before the states are read, in periods.
EVENT_WAIT_PERIODS = 5.0


class ControllerBackend(Backend):
    """An arm behind a UR controller; `UrsimBackend` and `RealBackend` say which kind.

    Attributes:
        host: The controller's address.
        ursim: Whether the controller must be URSim, and may be powered on.
        default_host: The controller's address if none is given.
        tool_speed_limit: Largest speed of the tool in the plan, m/s, if the options give none; None
            for the robot's.
    """

    capabilities = Capabilities(simulated_time=False, effort_unit="A")
    ursim: ClassVar[bool]
    default_host: ClassVar[str | None] = None
    tool_speed_limit: ClassVar[float | None] = None

    @classmethod
    def resolve(cls, robot: Robot, options: Options) -> tuple[ControllerFacts, Robot, Options]:
        """See `Backend.resolve`: the arm as its controller describes it."""
        host = controller_host(options.host, cls.default_host)
        cell = options.cell
        facts = preflight.identify_controller(
            host,
            robot,
            cell,
            period=options.period,
            ursim=cls.ursim,
            rest_port=options.rest_port or REST,
        )

        # Kinematics that the user chose take the place of the controller's, and of a cell's. If
        # nominal ones replace a cell's calibration, the options have already warned of it.
        cell_is_calibrated = cell is not None and cell.calibration is not None
        arm = complete_arm(
            robot,
            facts,
            chooses_kinematics=options.kinematics_source is not None,
            warns_of_nominal=not cell_is_calibrated,
        )
        resolved_options = resolve_options(facts, options, cls.tool_speed_limit)
        preflight.check_registers(servo_config(host, arm, resolved_options))
        return facts, arm, resolved_options

    def __init__(
        self, robot: Robot, options: Options, *, plan_facts: Facts = (), ask: Ask | None = None
    ) -> None:
        super().__init__(robot, options, plan_facts=plan_facts, ask=ask)
        self.host = controller_host(options.host, self.default_host)
        # How the servo process uses the controller.
        self._config = servo_config(self.host, robot, options)
        # The installation around the arm; None without a cell file.
        self._cell = options.cell
        # Whether the cell file confirms for the operator.
        self._cell_confirms = options.yes

        # The servo process; None between sessions.
        self._process: ServoProcess | None = None
        # The messages that the controller reports during a session.
        self._messages: ControllerMessages
        # The error that ended the last session: nothing moves before `recover`.
        self._stopped_by: SimbridgeError | None = None
        # How the last session ended; None before that.
        self._ending: Ending | None = None

        # The newest state of a session; None before the first.
        self._newest: ArmState | None = None
        # The ring in which the session's states appear; None before its first motion.
        self._ring: StateRing | None = None
        # The controller's clock when the controller was checked last, s.
        self._checked_at = 0.0
        # The controller's clock at the session's first state, s; None before it.
        self._first_timestamp: float | None = None
        # How well the loop has kept its time in the last stream.
        self._timing = LoopTiming()
        # How long nothing has been heard from the servo process.
        self._silence = SilenceWatch()

    @property
    def loop(self) -> dict[str, float | int] | None:
        return self._timing.summary()

    @property
    def ending(self) -> Ending | None:
        return self._ending

    # Before anything moves

    def __enter__(self) -> ControllerBackend:
        facts = self._ensure_ready()
        if self.planned_for is None:
            self.planned_for = facts
        self._confirm(facts, self._plan_facts, cell_confirms=self._cell_confirms)
        return self

    @abstractmethod
    def _confirm(self, facts: ControllerFacts, more_facts: Facts, *, cell_confirms: bool) -> None:
        """Have someone confirm that the arm may move, if that is required.

        Args:
            facts: Facts of the controller.
            more_facts: Further facts to display.
            cell_confirms: Let the cell file confirm for the operator.
        """

    def _identify(self) -> ControllerFacts:
        """Read the controller, check that it may be used, and return its facts."""
        facts = preflight.identify_controller(
            self.host,
            self.robot,
            self._cell,
            period=self.period,
            ursim=self.ursim,
            rest_port=self._config.rest_port,
        )
        preflight.check_registers(self._config)
        return facts

    def _ensure_ready(self) -> ControllerFacts:
        """Identify the controller, check that its arm can move, and return its facts."""
        facts = self._identify()
        preflight.check_ready(facts, follow_scaling=self._config.follow_scaling)
        return facts

    def _refuse_if_stopped(self) -> None:
        """Raise what ended the last session, unless the backend has recovered from it."""
        if self._stopped_by is not None:
            raise self._stopped_by

    def recover(self) -> None:
        """Check after a stop that the arm may move again.

        Nothing moves before the next command, which plans a new approach from the arm's position
        then. URSim is unlocked; a real arm never is, and the operator must confirm.

        Raises:
            ControllerError: One of its subclasses: why the arm still may not move.
            NotConfirmed: The operator did not confirm.
        """
        self.stop()
        facts = self._ensure_ready()
        stopped_by = str(self._stopped_by or "nothing")
        self._confirm(facts, (("stopped by", stopped_by),), cell_confirms=False)
        self._stopped_by = None
        self._newest = None

    # Plans

    def read(self) -> ArmState:
        with RtdeReader(self.host, STATE_FIELDS, 1.0 / self.period) as reader:
            state = reader.first()
        return state_at_rest(state)

    def move_to(self, q: Array) -> None:
        self._ending = None
        self._refuse_if_stopped()
        goal = np.asarray(q, dtype=float)

        # The motion begins at the last command of a session, or else where the arm is.
        if self._process is None or self._newest is None:
            begin = self.read().q
        else:
            begin = self._newest.command
        path = self._plan_approach(begin, goal)

        process = self._ensure_process()
        settling_time = SETTLING_S + SETTLING_LOOKAHEADS * self._config.lookahead
        hold = np.repeat(path[-1:], math.ceil(settling_time / self.period), axis=0)
        # The arm moves while its states are taken.
        for _ in self._replay(process, np.concatenate((path, hold))):
            pass
        self._check_start(goal)

    def _plan_approach(self, begin: Array, goal: Array) -> Array:
        """Return the setpoints (T, n), rad, of a checked motion between joint positions (n,)."""
        preflight.check_turns(self.host, self.robot, begin, goal)
        return plan_approach(
            self.robot,
            begin,
            goal,
            self.period,
            max_joint_speed=self.approach_joint_speed,
            max_tool_speed=self.approach_tool_speed,
            collision_scene=self.collision_scene,
        )

    def _check_start(self, goal: Array) -> None:
        """Stop and raise `StartNotReached` unless the arm is at joint positions (n,), rad."""
        measured = self.read().q if self._newest is None else self._newest.q
        deviation = np.abs(measured - goal)
        if deviation.max() > START_TOLERANCE:
            joint = int(np.argmax(deviation))
            self.stop()
            raise StartNotReached(self.host, self.robot.joint_names[joint], float(deviation[joint]))

    def stream(self, setpoints: Array) -> Generator[ArmState, None, None]:
        """See `Backend.stream`.

        The servo process gets the whole plan, as a file that it maps into its memory, before it
        sends the first setpoint.

        Raises:
            ControllerError: One of its subclasses: what ended the stream. Nothing moves again
                before `recover`.
        """
        self._refuse_if_stopped()
        process = self._ensure_process()
        self._timing = LoopTiming()
        try:
            self._check_start(setpoints[0])
            states = self._replay(process, setpoints, feedforward=self._config.feedforward)
            # Closed explicitly, not by the garbage collector: closing stops the arm.
            with contextlib.closing(states):
                for state in states:
                    self._timing.add(state)
                    yield state
        finally:
            self.stop()

    def _replay(
        self, process: ServoProcess, setpoints: Array, *, feedforward: bool = False
    ) -> Generator[ArmState, None, None]:
        """Let the servo process send setpoints (T, n), rad, and yield the states as they arrive."""
        with self._stop_on_error():
            ring = process.replay(setpoints, feedforward=feedforward)
            self._ring = ring
            self._silence = SilenceWatch()

            is_done = False
            while not is_done:
                events = []
                failure: SimbridgeError | None = None
                try:
                    events = process.events(EVENT_WAIT_PERIODS * self.period)
                except SimbridgeError as error:
                    # The states that were recorded until then come first.
                    failure = error
                is_done = any(event["event"] == "done" for event in events)
                for event in events:
                    self._timing.add_counts(event)

                # All states were written before the end was reported.
                for state in ring.new_states(self.period):
                    self._keep(state)
                    yield state
                    # A slow consumer is not silence of the servo process.
                    self._silence.hear()

                if failure is not None:
                    raise failure
                self._check_silence()

    def unread(self) -> Iterator[ArmState]:
        """See `Backend.unread`."""
        if self._ring is not None:
            yield from self._ring.new_states(self.period)

    # Live sessions

    def begin_session(self, program: LiveProgram) -> tuple[StateRing, ServoProcess]:
        """Start the loop of a live session, which waits at rest to be engaged.

        Returns:
            The ring in which states appear, and the loop's process.
        """
        self._refuse_if_stopped()
        process = self._ensure_process(program)
        with self._stop_on_error():
            path = process.create_memory("live")
            program.create_channel(path)
            self._ring = process.begin_session(path)

        # The start may take long on a busy computer: silence counts from here.
        self._timing = LoopTiming()
        self._silence = SilenceWatch()
        return self._ring, process

    def follow_session(self, states: Iterable[ArmState]) -> list[dict[str, Any]]:
        """Return what the loop of a live session has reported since the last call.

        Args:
            states: The arm's states that have arrived since the last call.

        Raises:
            ControllerError: One of its subclasses: what ended the session.
        """
        assert self._process is not None
        with self._stop_on_error():
            for state in states:
                self._keep(state)
                self._timing.add(state)
            events = self._process.events()
            try:
                self._check_silence()
            except StaleState:
                # It would not answer a request to stop; the script's watchdog has braked the arm.
                self._process.kill()
                raise
        return events

    # The servo process

    def _ensure_process(self, program: LiveProgram | None = None) -> ServoProcess:
        """Return the servo process; without one, a session with the controller begins.

        The control script then runs, and the tool is configured and verified.

        Args:
            program: What makes the setpoints of a live session; None for plans.
        """
        if self._process is not None:
            return self._process

        self._ending = None
        self._check_again(payload_may_change=program is not None)
        self._newest = None
        self._ring = None
        self._first_timestamp = None
        config = replace(self._config, number=draw_session_number())
        self._config = config

        with self._stop_on_error():
            # `stop` ends both: there is never one without the other.
            with shield_from_signals():
                process = ServoProcess(config, program)
                messages = ControllerMessages(self.host)
                self._process = process
                self._messages = messages
            for note in process.connect()["notes"]:
                warnings.warn(note, stacklevel=2)
            if config.tcp is not None or config.payload is not None:
                facts = read_controller(self.host, rest_port=self._config.rest_port)
                preflight.check_tool(facts, config.tcp, config.payload, config.payload_cog)
        return process

    def _check_again(self, *, payload_may_change: bool) -> None:
        """Repeat the checks right before the control script is sent.

        The confirmation may have taken long, and ur_rtde's constructor would stop a program that
        was started meanwhile. All must be as it was when the plan was made.

        Args:
            payload_may_change: Whether the payload may differ: a gripper sets it during a live
                session, which may be engaged again after a stop.

        Raises:
            ControllerError: One of its subclasses: what is not as it was, or not ready.
        """
        facts = self._await_idle()
        config = self._config
        if self.planned_for is not None:
            preflight.check_unchanged(
                facts,
                self.planned_for,
                sets_tcp=config.tcp is not None,
                sets_payload=payload_may_change or config.payload is not None,
            )
        preflight.check_identity(facts, self.robot, self._cell, ursim=self.ursim)
        preflight.check_remote_control(facts)
        preflight.check_ready(facts, follow_scaling=config.follow_scaling)
        self._checked_at = facts.state.timestamp

        if facts.pendant.program:
            warnings.warn(
                f"The control script replaces the loaded program {facts.pendant.program}; load "
                "it again at the pendant afterwards.",
                stacklevel=2,
            )

    def _await_idle(self) -> ControllerFacts:
        """Wait until no program runs on the controller, and return its facts.

        Raises:
            ProgramRunning: One still runs after `SCRIPT_END_S`.
        """
        deadline = time.monotonic() + SCRIPT_END_S
        while True:
            facts = read_controller(self.host, rest_port=self._config.rest_port)
            try:
                preflight.check_idle(facts)
            except ProgramRunning:
                # It may be the script of the previous motion, which is just ending.
                if time.monotonic() > deadline:
                    raise
            else:
                return facts

    def _keep(self, state: ArmState) -> None:
        """Remember a state that has arrived."""
        self._newest = state
        self._first_timestamp = self._first_timestamp or state.timestamp
        self._silence.hear()

    def _check_silence(self) -> None:
        """Raise `StaleState` if the servo process has been silent for too long."""
        silence = self._silence.excess()
        if silence:
            timestamp = 0.0 if self._newest is None else self._newest.timestamp
            raise StaleState(
                self.host,
                timestamp,
                silence,
                source="the process on this computer that sends setpoints",
            )

    # The end of a session

    @contextlib.contextmanager
    def _stop_on_error(self) -> Iterator[None]:
        """End the session with whatever leaves the block; keep our own errors until `recover`."""
        try:
            yield
        except SimbridgeError as error:
            self._stopped_by = error
            self.stop()
            raise
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Bring the arm to rest and end the session, as `Backend.stop` describes.

        However a session ends, `end_session` ends it, and no signal interrupts that.
        """
        process = self._process
        if process is None:
            return

        # Before the first motion no state has come from the session: the newest one is that of the
        # checks.
        newest_timestamp = self._checked_at
        if self._newest is not None:
            newest_timestamp = self._newest.timestamp

        with shield_from_signals():
            self._ending = Ending(at_s=self._time_of_setpoints())
            end_session(
                self.host,
                process,
                self._ending,
                number=self._config.number,
                registers=REGISTERS[self._config.registers],
                newest_timestamp=newest_timestamp,
            )
            self._ending.evidence += self._messages.close()
            self._timing.add_counts(process.counts)
            self._process = None

    def _time_of_setpoints(self) -> float | None:
        """Return the time from the session's first setpoint to its last, s; None without any."""
        if self._first_timestamp is None or self._newest is None or self._ring is None:
            return None
        last_timestamp = max(self._ring.last_timestamp, self._newest.timestamp)
        return last_timestamp - self._first_timestamp
