"""A live motion as the source of setpoints of a loop: orders and inputs go in, each period is timed and recorded.

The loop is the servo loop, or that of a simulated arm, which is here.
"""

from __future__ import annotations

import math
import os
import pickle
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from simbridge.backends import SIMULATION, backend_class
from simbridge.backends.backend import ArmState
from simbridge.backends.servo_channel import StateRing
from simbridge.errors import GuardViolation, InvalidParameter
from simbridge.ik.callable_solver import named_solver
from simbridge.ik.solver import Solver
from simbridge.planning.options import Options
from simbridge.robot.collision import CollisionModel
from simbridge.robot.obstacles import CollisionScene
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.scheduling import WaitingTime
from simbridge.servo.feedforward import SCALING_RAMP
from simbridge.servo.law import ServojLaw
from simbridge.sessions.causes import STANDSTILL, LiveCause
from simbridge.sessions.channel import LiveChannel
from simbridge.sessions.inputs import Input
from simbridge.sessions.motion import LiveMotion
from simbridge.sessions.options import LiveOptions
from simbridge.sessions.phases import LivePhase, Order

if TYPE_CHECKING:  # the registry imports it
    from simbridge.backends.pybullet import PyBulletBackend

# After so many periods in a row whose step took longer than a period, the arm brakes and holds.
SLOW_STEPS = 10
_IMPORTABLE = (
    "module:function, or an object that pickle can send to the loop's process: define it in a module of its own, not "
    "in the program that is run"
)


@dataclass(frozen=True)
class LiveSetup:
    """What a live motion is made of, in the process of its loop.

    Attributes:
        robot: The arm.
        solver: Made for it, or the name `module:function` of a custom one.
        period: Control period, s.
        options: How inputs are treated.
        law: The servo law; None for an ideal servo.
        phase: See `LiveMotion`.
        collision_scene: Obstacles.
        max_tool_speed: m/s; the robot's by default.
        preview: See `LiveMotion`.
        start: Where the simulated arm begins (n,), rad; None for home, and on a controller.
        run_options: Of the simulated arm; None on a controller.
        directory, paths: Where modules are imported from.
    """

    robot: Robot
    solver: Solver | str
    period: float
    options: LiveOptions
    law: ServojLaw | None
    phase: float
    collision_scene: CollisionScene
    max_tool_speed: float | None
    preview: bool
    start: Array | None = None
    run_options: Options | None = None
    directory: str = field(default_factory=os.getcwd)
    paths: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))

    @property
    def solver_name(self) -> str:
        """The solver's name, as in messages."""
        return self.solver if isinstance(self.solver, str) else self.solver.name

    def pickled(self) -> bytes:
        """For another process.

        Raises:
            InvalidParameter: The solver cannot be sent to another process.
        """
        solver = self.solver
        own = "" if isinstance(solver, str) else type(solver).__module__
        function = getattr(solver, "_function", None)
        if "__main__" in (own, getattr(function, "__module__", "")):
            raise InvalidParameter("solver", getattr(solver, "name", solver), _IMPORTABLE)
        try:
            return pickle.dumps((self.directory, self.paths, pickle.dumps(self)))
        except Exception as error:  # what cannot be pickled fails in many ways
            reason = f"{_IMPORTABLE} ({type(error).__name__}: {error})"
            raise InvalidParameter("solver", getattr(solver, "name", solver), reason) from None

    def motion(self) -> LiveMotion:
        """The motion, compiled: its first period takes no longer than the others."""
        solver = (
            named_solver(self.robot, self.solver) if isinstance(self.solver, str) else self.solver
        )
        made = self._made(solver)
        made.order(Order.ENGAGE, engagement=1)
        home = made.step(0.0).target
        turn = np.zeros(6)
        for k, (kind, values) in enumerate(
            (("pose", home), ("twist", turn), ("joints", self.robot.home))
        ):
            given = Input(kind, values, k + 1, 1)  # type: ignore[arg-type]
            for _ in range(3):
                made.step(0.1 * k, 1.0, given)
        return self._made(solver)

    def _made(self, solver: Solver) -> LiveMotion:
        return LiveMotion(
            solver,
            self.period,
            self.options,
            law=self.law,
            phase=self.phase,
            collisions=CollisionModel(self.robot, self.collision_scene),
            max_tool_speed=self.max_tool_speed,
            preview=self.preview,
        )


def unpickled(data: bytes) -> LiveSetup:
    """The setup that another process sent, which imports from the same places as that one.

    Raises:
        InvalidParameter: The solver's module cannot be imported here.
    """
    directory, paths, setup = pickle.loads(data)
    sys.path.extend(path for path in paths if path not in sys.path)
    os.chdir(directory)
    try:
        found: LiveSetup = pickle.loads(setup)
    except Exception as error:  # importing foreign code may fail in any way
        reason = f"{_IMPORTABLE} ({type(error).__name__}: {error})"
        raise InvalidParameter("solver", "the given one", reason) from None
    return found


class Request(NamedTuple):
    """An order with its numbers: see `LiveMotion.order`; with `SPEED` the largest share of full speed."""

    order: Order
    engagement: int = 0
    upto: int = 0
    value: float = 0.0

    def sent(self) -> dict[str, Any]:
        """As the loop's process is sent it."""
        return {"do": "order", **self._asdict(), "order": int(self.order)}

    @classmethod
    def received(cls, request: dict[str, Any]) -> Request:
        """As it has arrived there."""
        return cls(
            Order(request["order"]), request["engagement"], request["upto"], request["value"]
        )


class LiveLoop:
    """The periods of a live session, as a `Motion` of the servo loop, or of a simulation.

    Args:
        motion: The live motion.
        channel: Inputs come from it, and periods are recorded in it.
        clock: The loop's clock, s.
        timed: Whether the time that a step takes counts.
        late: Whether the speed is lower than the controller's because commands were late.
        other_payload: The controller's payload, kg, while it is another than at the begin of the session; else None.

    Attributes:
        requests: Orders, one of which is taken in each period.
    """

    finished, slows_in_gaps = False, True
    payload_may_change = True

    def __init__(
        self,
        motion: LiveMotion,
        channel: LiveChannel,
        period: float,
        clock: Callable[[], float],
        *,
        timed: bool = True,
        late: Callable[[], bool] = lambda: False,
        other_payload: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._other_payload = other_payload
        self._late, self._waiting = late, WaitingTime()
        self._motion, self._channel, self._period, self._clock, self._timed = (
            motion,
            channel,
            period,
            clock,
            timed,
        )
        motion.solving = channel.solving
        # When the last period began, s.
        self._begun_at: float | None = None
        self._subjects = {name: index for index, name in reversed([*enumerate(motion.subjects)])}
        self.requests: deque[Request] = deque()
        self._index, self._slow, self._slowest = 0, 0, 0.0
        self._share = self._wanted_share = 1.0

    def rest_at(self, q: Array) -> None:
        """Begin at rest at joint positions q (n,), rad."""
        self._motion.rest_at(q)

    def next(self, rate: float) -> tuple[Array, float]:
        """See `Motion`: the setpoint (n,), rad, of the next period, and its index."""
        return self._stepped(
            rate, self.requests.popleft() if self.requests else Request(Order.NONE)
        )

    def _stepped(self, rate: float, request: Request) -> tuple[Array, float]:
        waited, begun, now = self._waiting.seconds(), time.perf_counter(), self._clock()
        if request.order is Order.SPEED:
            self._wanted_share = request.value
        elif request.order is not Order.NONE:
            self._motion.order(
                request.order, engagement=request.engagement, upto=request.upto, took=self._slowest
            )
        change = SCALING_RAMP * self._period
        self._share = min(max(self._wanted_share, self._share - change), self._share + change)
        rate *= self._share
        step = self._motion.step(now, rate, self._channel.newest())
        took = time.perf_counter() - begun if self._timed else math.nan
        if took > self._period:
            # A core that others used is no fault of the solver's.
            took -= self._waiting.seconds() - waited
        self._slow = self._slow + 1 if took > self._period else 0
        if took > self._period:
            self._slowest = took
            step = step._replace(causes=(LiveCause("solver", "", took), *step.causes))
        elif self._begun_at is not None and now - self._begun_at > STANDSTILL:
            step = step._replace(causes=(LiveCause("loop", "", now - self._begun_at), *step.causes))
        self._begun_at = now
        if self._slow >= SLOW_STEPS and step.phase is not LivePhase.IDLE:
            self.requests.appendleft(Request(Order.TOO_SLOW))
            self._slow = 0
        if any(cause.name == "speed_slider" for cause in step.causes) and self._late():
            late = LiveCause("late_commands", "", rate)
            step = step._replace(
                causes=tuple(late if c.name == "speed_slider" else c for c in step.causes)
            )
        payload = self._other_payload()
        if payload is not None:
            step = step._replace(causes=(*step.causes, LiveCause("payload", "", payload)))
        engagement = self._motion.engagement
        self._channel.write(
            self._index, now, rate, engagement, request.order, step, took, self._subjects
        )
        self._index += 1
        return step.setpoint, float(self._index - 1)

    def paused(self, at: Array) -> float:
        """See `Motion`: a pause at the pendant disengages."""
        order = Order.NONE if self._motion.phase is LivePhase.PAUSED else Order.PAUSE
        self._motion.rest_at(at)
        return self._stepped(0.0, Request(order))[1]

    def resumed(self, at: Array, hold: Array, period: float) -> Array:
        """See `Motion`: the arm is held where it was stopped."""
        self.requests.clear()
        self.requests.append(Request(Order.RESUME))
        self._motion.rest_at(at)
        return at[np.newaxis]


class SimulatedArm:
    """A simulated arm that a live loop (`loop`, which takes orders) moves, one period at a time. A context manager.

    Args:
        setup: Of the session.
        motion: Made of it.
        channel: Inputs and periods.
        ring: Takes the states.
        clock: The loop's, s; None for the simulation's own.
    """

    def __init__(
        self,
        setup: LiveSetup,
        motion: LiveMotion,
        channel: LiveChannel,
        ring: StateRing,
        clock: Callable[[], float] | None = None,
    ) -> None:
        made = backend_class(SIMULATION)(setup.robot, setup.run_options or Options())
        self._backend = cast("PyBulletBackend", made)
        self._ring, self._count, self._start = ring, 0, setup.start
        self._clock = clock or (lambda: self._count * setup.period)
        self.loop = LiveLoop(motion, channel, setup.period, self._clock, timed=clock is not None)
        self._states: Generator[ArmState, None, None] | None = None

    def __enter__(self) -> SimulatedArm:
        self._backend.__enter__()
        if self._start is not None:
            self._backend.place(self._start)
        self.loop.rest_at(self._backend.read().q)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._states is not None:
            # Closing the stream brakes the arm.
            self._states.close()
        self._backend.__exit__()

    def _setpoints(self) -> Iterator[Array]:
        while True:
            setpoint, self._position = self.loop.next(1.0)
            self._sent = self._clock()
            yield setpoint

    def step(self) -> None:
        """One period.

        Raises:
            GuardViolation: A setpoint was refused; the arm is at rest and must be engaged again.
        """
        self._count += 1
        if self._states is None:
            self._states = self._backend.stream(self._setpoints())
        try:
            state = next(self._states)
        except GuardViolation:
            self._states = None
            self._backend.recover()
            self.loop.rest_at(self._backend.read().q)
            raise
        unknown = state.q * math.nan
        modes = (state.robot_mode, state.safety_mode, state.runtime_state)
        times = (
            state.sequence,
            self._position,
            self._sent,
            self._clock(),
            self._count * self._backend.period,
        )
        targets = (
            state.controller_target,
            state.controller_target_velocity,
            state.controller_target_acceleration,
        )
        self._ring.write(
            (*times, 1.0, *modes),
            (
                state.q,
                state.qd,
                state.effort,
                *(unknown if v is None else v for v in targets),
                state.command,
            ),
        )
