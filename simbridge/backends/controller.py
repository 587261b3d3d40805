"""URSim and real arms as a backend: through ur_rtde, which lives in the servo process.

Entering only reads: it makes sure that this is the controller and the arm that are meant, switches URSim on (and never
anything else), and asks before a real arm moves. The first motion starts the servo process, which uploads ur_rtde's
control script; every end of a motion is a decelerated stop and the end of that script.
"""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Generator, Iterable, Iterator
from types import TracebackType

import numpy as np

from simbridge.backends import preflight
from simbridge.backends.backend import ArmState, Backend, Capabilities
from simbridge.backends.loop_timing import LoopTiming
from simbridge.backends.operator_confirmation import Ask, agree
from simbridge.backends.power_control import power_up, stop_paused_program, unlock
from simbridge.backends.profiles import PROFILES, ControllerSettings, Profile
from simbridge.backends.servo_client import ServoProcess
from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.state_ring import StateRing
from simbridge.errors import SimbridgeError
from simbridge.planning.approach import plan_approach
from simbridge.planning.guard import ArmLimits
from simbridge.robot.cell import Cell
from simbridge.robot.obstacles import BARE_FLOOR, CollisionScene
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.ur.controller import read_controller, registers_taken
from simbridge.ur.errors import (
    ArmStopped,
    ConnectionLost,
    FullTurn,
    ProgramRunning,
    RegistersInUse,
    StaleState,
    StartNotReached,
)
from simbridge.ur.facts import ControllerFacts
from simbridge.ur.rtde import RtdeReader

__all__ = ["PROFILES", "ControllerSettings", "Profile", "RtdeBackend"]

STATE = ("timestamp", "actual_q", "actual_qd", "actual_current", "target_q", "speed_scaling", "target_speed_fraction",
         "robot_mode", "safety_mode", "runtime_state")  # fmt: skip

# How far the arm may be from a plan's first setpoint when the plan begins.
START_TOLERANCE = math.radians(1.0)
# On `real` a person is asked again before an approach on which a joint travels farther.
FAR = 1.0  # rad
# The servo process gives up after 100 ms without states; when it says nothing at all for so long, it is ended.
SILENCE = 0.8  # s
# How long an ending control script may still count as a running program.
SCRIPT_ENDS = 0.5  # s


class RtdeBackend(Backend):
    """An arm behind a UR controller.

    Args:
        robot: Its chain is what approaches are checked with.
        host: The controller's address.
        profile: URSim, or a real arm.
        period: Control period, s; must be the controller's. None for that.
        wishes: How the controller is to be used.
        cell: What the controller must agree with.
        surroundings: What the arm must not touch.
        plan_facts: What a person is shown of the plan before a real arm moves: names and values.
        ask: Asks a person; None when there is none.
    """

    capabilities = Capabilities(simulated_time=False, effort_unit="A")

    def __init__(
        self,
        robot: Robot,
        host: str,
        profile: Profile,
        *,
        period: float | None = None,
        wishes: ControllerSettings | None = None,
        cell: Cell | None = None,
        collision_scene: CollisionScene = BARE_FLOOR,
        plan_facts: Iterable[tuple[str, str]] = (),
        ask: Ask | None = None,
    ) -> None:
        self.robot, self.host, self.profile = robot, host, profile
        self.period = robot.period if period is None else period
        self._wishes, self._cell, self._surroundings = wishes or ControllerSettings(), cell, collision_scene
        self._plan_facts, self._ask = tuple(plan_facts), ask
        self._process: ServoProcess | None = None
        self._stopped_by: SimbridgeError | None = None
        self._last: ArmState | None = None
        self._timing = LoopTiming(self.period)

    @property
    def loop(self) -> dict[str, float | int] | None:
        return self._timing.summary()

    def __enter__(self) -> RtdeBackend:
        facts = self._checked()
        if self.profile.ursim:
            preflight.check_not_stopped(facts)
            power_up(facts, self.robot)
            facts = self._checked()
        preflight.check_ready(facts, follow_scaling=self._wishes.follow_scaling)
        if not self.profile.ursim:
            agree(facts, self.robot, self._cell, self._plan_facts, self._ask, yes=self._wishes.yes)
        return self

    def _checked(self) -> ControllerFacts:
        """The controller as it is now, once it is sure that it is the one that is meant and that it may be used."""
        facts = read_controller(self.host)
        preflight.check_identity(facts, self.robot, self._cell, ursim=self.profile.ursim)
        preflight.check_period(facts, self.period)
        preflight.check_remote_control(facts)
        preflight.check_idle(facts)
        taken = registers_taken(self.host)
        if taken:
            raise RegistersInUse(self.host, taken)
        return facts

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def read(self) -> ArmState:
        with RtdeReader(self.host, STATE, 1.0 / self.period) as reader:
            state = reader.first()
        q = _frozen(state["actual_q"])
        return ArmState(
            sequence=0,
            host_monotonic=time.monotonic(),
            timestamp=state["timestamp"],
            plan_time=0.0,
            q=q,
            qd=_frozen(state["actual_qd"]),
            effort=_frozen(state["actual_current"]),
            controller_target=_frozen(state["target_q"]),
            setpoint=q,
            speed_scaling=state["speed_scaling"] * state["target_speed_fraction"],
            robot_mode=state["robot_mode"],
            safety_mode=state["safety_mode"],
            runtime_state=state["runtime_state"],
        )

    def move_to(self, q: Array) -> None:
        self._refuse_if_stopped()
        goal = np.asarray(q, dtype=float)
        begin = self.read().q if self._process is None or self._last is None else self._last.setpoint
        way = self._approach(begin, goal)
        process = self._connected()
        # The servo trails its setpoints: it is given the time to come to the end of them.
        settling = math.ceil((0.2 + 10.0 * self._wishes.lookahead) / self.period)
        for _ in self._replayed(process, np.concatenate((way, np.repeat(way[-1:], settling, axis=0)))):
            pass
        self._check_start(goal)

    def _approach(self, begin: Array, goal: Array) -> Array:
        turns = np.round((begin - goal) / (2.0 * math.pi)).astype(int)
        if turns.any():
            joint = int(np.argmax(np.abs(turns)))
            raise FullTurn(self.host, self.robot.joint_names[joint], int(turns[joint]))
        way = plan_approach(
            self.robot,
            begin,
            goal,
            self.period,
            max_joint_speed=self.profile.approach_joint_speed,
            max_tool_speed=self.profile.approach_tool_speed,
            collision_scene=self._surroundings,
        )
        travel = np.abs(goal - begin)
        if not self.profile.ursim and travel.max() > FAR:
            joint = int(np.argmax(travel))
            shown = (("longest way", f"{self.robot.joint_names[joint]}: {math.degrees(travel[joint]):.0f} degrees"),
                     ("duration", f"{(len(way) - 1) * self.period:.0f} s"))  # fmt: skip
            agree(None, self.robot, self._cell, shown, self._ask, yes=False)
        return way

    def _check_start(self, goal: Array) -> None:
        measured = self.read().q if self._last is None else self._last.q
        off = np.abs(measured - goal)
        if off.max() > START_TOLERANCE:
            joint = int(np.argmax(off))
            self.stop()
            raise StartNotReached(self.host, self.robot.joint_names[joint], float(off[joint]))

    def stream(self, setpoints: Iterable[Array]) -> Generator[ArmState, None, None]:
        """See `Backend.stream`. An array (T, n) is a replay: it is mapped whole before its first setpoint leaves, and
        the state of every setpoint is given. Anything else is live: one setpoint is taken from it a period, and the
        state given with it is the newest, which belongs to the setpoint before.

        Raises:
            ControllerError: One of its subclasses: what ended the stream. Nothing moves again before `recover`.
            TargetsStopped: A live source gave nothing for 100 ms.
        """
        self._refuse_if_stopped()
        process = self._connected()
        self._timing = LoopTiming(self.period)
        try:
            if isinstance(setpoints, np.ndarray):
                self._check_start(setpoints[0])
                # Closed here and now, not whenever its memory is collected: closing stops the arm.
                with contextlib.closing(self._replayed(process, setpoints)) as states:
                    for state in states:
                        self._timing.add(state)
                        yield state
            else:
                yield from self._live(process, iter(setpoints))
        finally:
            self.stop()

    def _connected(self) -> ServoProcess:
        """The servo process, with the control script running and the tool set and verified."""
        if self._process is not None:
            return self._process
        wishes = self._wishes
        orders = ServoConfig(
            host=self.host,
            period=self.period,
            limits=ArmLimits.told(self.robot),
            lookahead=wishes.lookahead,
            gain=wishes.gain,
            tcp=None if wishes.tcp is None else list(wishes.tcp),
            payload=wishes.payload,
            payload_cog=None if wishes.payload_cog is None else list(wishes.payload_cog),
            follow_scaling=wishes.follow_scaling,
            priority=wishes.priority,
        )
        self._check_again()
        self._last = None
        self._process = ServoProcess(orders)
        with self._ending():
            for note in self._process.connect()["notes"]:
                warnings.warn(note, stacklevel=2)
            if wishes.tcp is not None or wishes.payload is not None:
                preflight.check_tool(read_controller(self.host), wishes.tcp, wishes.payload, wishes.payload_cog)
        return self._process

    def _check_again(self) -> None:
        """Right before the control script is sent: a person may have taken long to answer, and ur_rtde's constructor
        would stop a program that was begun meanwhile."""
        deadline = time.monotonic() + SCRIPT_ENDS
        while True:
            facts = read_controller(self.host)
            try:
                preflight.check_idle(facts)
                break
            except ProgramRunning:
                # It may be the script of the motion before, which is just ending.
                if time.monotonic() > deadline:
                    raise
        preflight.check_identity(facts, self.robot, self._cell, ursim=self.profile.ursim)
        preflight.check_remote_control(facts)
        preflight.check_ready(facts, follow_scaling=self._wishes.follow_scaling)

    def _replayed(self, process: ServoProcess, setpoints: Array) -> Generator[ArmState, None, None]:
        """The states of a plan, as they come."""
        with self._ending():
            ring = process.replay(setpoints)
            done, heard = False, time.monotonic()
            try:
                while not done:
                    events = process.events(5.0 * self.period)
                    done = any(event["event"] == "done" for event in events)
                    for event in events:
                        self._timing.hear(event)
                    # What was written before the end was reported is all there is.
                    for state in ring.new_states(self.period):
                        self._last = state
                        yield state
                        # Only now: a reader that takes its time is no silence of the servo process.
                        heard = time.monotonic()
                    self._check_silence(heard)
            finally:
                ring.close()

    def _live(self, process: ServoProcess, setpoints: Iterator[Array]) -> Iterator[ArmState]:
        with self._ending():
            ring: StateRing | None = None
            try:
                for setpoint in setpoints:
                    if ring is None:
                        ring = process.live(setpoint)
                        number = ring.posted
                    else:
                        number = ring.post(setpoint)
                    self._await(process, ring, number)
                    for state in ring.new_states(self.period):
                        self._last = state
                        self._timing.add(state)
                    assert self._last is not None
                    yield self._last
            finally:
                if ring is not None:
                    ring.close()

    def _await(self, process: ServoProcess, ring: StateRing, number: int) -> None:
        """Until a live setpoint was sent and, for the first, its state has come."""
        begin = time.monotonic()
        while ring.taken < number or not ring.written:
            process.events(self.period / 10.0)
            self._check_silence(begin)

    def _check_silence(self, heard: float) -> None:
        silent = time.monotonic() - heard
        if silent > SILENCE:
            timestamp = 0.0 if self._last is None else self._last.timestamp
            raise StaleState(self.host, timestamp, silent, said_by="the process on this computer that sends setpoints")

    @contextlib.contextmanager
    def _ending(self) -> Iterator[None]:
        """Whatever goes wrong inside ends the servo process, and is remembered until `recover`."""
        try:
            yield
        except SimbridgeError as error:
            self._stopped_by = error
            if isinstance(error, (StaleState, ConnectionLost)) and self._process is not None:
                self._process.end_soon()
            self.stop()
            if isinstance(error, ArmStopped):
                # The paused script must not go on where it was when someone presses play.
                stop_paused_program(self.host)
            raise
        except BaseException:
            self.stop()
            raise

    def _refuse_if_stopped(self) -> None:
        if self._stopped_by is not None:
            raise self._stopped_by

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def recover(self) -> None:
        """After a stop: make sure that the arm may move again. Nothing moves before the next command, which plans a new
        approach from where the arm is then. A real arm is never unlocked from here, and a person is asked.

        Raises:
            ControllerError: One of its subclasses: what still keeps the arm.
        """
        self.stop()
        stop_paused_program(self.host)
        if self.profile.ursim:
            self._checked()
            unlock(self.host)
            facts = self._checked()
            preflight.check_not_stopped(facts)
            power_up(facts, self.robot)
        facts = self._checked()
        preflight.check_ready(facts, follow_scaling=self._wishes.follow_scaling)
        if not self.profile.ursim:
            shown = (("stopped by", str(self._stopped_by or "nothing")),)
            agree(facts, self.robot, self._cell, shown, self._ask, yes=False)
        self._stopped_by = None
        self._last = None


def _frozen(values: Iterable[float]) -> Array:
    array = np.array(list(values), dtype=float)
    array.setflags(write=False)
    return array
