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
from simbridge.ik.callable_solver import build_solver
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
            build_solver(self.robot, self.solver) if isinstance(self.solver, str) else self.solver
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

    finished = False
    slows_in_gaps = True
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
        self._motion = motion
        self._channel = channel
        self._period = period
        self._clock = clock
        self._timed = timed
        self._late = late
        self._other_payload = other_payload
        # How long this thread had to wait for a core.
        self._waiting = WaitingTime()
        motion.solving = channel.solving
        self._subjects = {name: index for index, name in reversed([*enumerate(motion.subjects)])}

        self.requests: deque[Request] = deque()
        # The number of the next period, from 0, and when the last one began, s.
        self._index = 0
        self._begun_at: float | None = None
        # How many steps in a row took longer than a period, and how long the last of them took, s.
        self._slow_steps = 0
        self._slow_duration = 0.0
        # Largest fraction of full speed: now, and as it was asked for.
        self._max_speed = 1.0
        self._wanted_max_speed = 1.0

    def rest_at(self, q: Array) -> None:
        """Begin at rest at joint positions q (n,), rad."""
        self._motion.rest_at(q)

    def next(self, rate: float) -> tuple[Array, float]:
        """See `Motion`: the setpoint (n,), rad, of the next period, and its index."""
        request = self.requests.popleft() if self.requests else Request(Order.NONE)
        return self._step(rate, request)

    def _step(self, rate: float, request: Request) -> tuple[Array, float]:
        """Make a period: take an order, step the motion, and record both; see `next`."""
        waited = self._waiting.seconds()
        begin = time.perf_counter()
        now = self._clock()
        self._take_order(request)
        rate *= self._ramp_max_speed()
        step = self._motion.step(now, rate, self._channel.newest())

        duration = time.perf_counter() - begin if self._timed else math.nan
        if duration > self._period:
            # A core that others used is no fault of the solver's.
            duration -= self._waiting.seconds() - waited

        step = step._replace(causes=self._add_causes(step.causes, now, duration, rate))
        self._begun_at = now
        if self._slow_steps >= SLOW_STEPS and step.phase is not LivePhase.IDLE:
            self.requests.appendleft(Request(Order.TOO_SLOW))
            self._slow_steps = 0

        index = self._index
        self._index += 1
        engagement = self._motion.engagement
        self._channel.write(
            index, now, rate, engagement, request.order, step, duration, self._subjects
        )
        return step.setpoint, float(index)

    def _take_order(self, request: Request) -> None:
        """Pass an order on to the motion, except that of the largest speed."""
        if request.order is Order.SPEED:
            self._wanted_max_speed = request.value
        elif request.order is not Order.NONE:
            self._motion.order(
                request.order,
                engagement=request.engagement,
                upto=request.upto,
                took=self._slow_duration,
            )

    def _ramp_max_speed(self) -> float:
        """Return the largest fraction of full speed, which changes as fast as a speed slider's."""
        change = SCALING_RAMP * self._period
        lowest = self._max_speed - change
        highest = self._max_speed + change
        self._max_speed = min(max(self._wanted_max_speed, lowest), highest)
        return self._max_speed

    def _add_causes(
        self, causes: tuple[LiveCause, ...], now: float, duration: float, rate: float
    ) -> tuple[LiveCause, ...]:
        """Return the causes of a period, with those that only the loop knows.

        Args:
            causes: The motion's.
            now: When the period began, s.
            duration: How long its step took, s; nan where that does not count.
            rate: Fraction of full speed.
        """
        if duration > self._period:
            self._slow_steps += 1
            self._slow_duration = duration
            causes = (LiveCause("solver", "", duration), *causes)
        else:
            self._slow_steps = 0
            interval = 0.0 if self._begun_at is None else now - self._begun_at
            if interval > STANDSTILL:
                causes = (LiveCause("loop", "", interval), *causes)

        # Late commands lower the speed, too, and then the slider is not to blame.
        if any(cause.name == "speed_slider" for cause in causes) and self._late():
            late = LiveCause("late_commands", "", rate)
            causes = tuple(late if cause.name == "speed_slider" else cause for cause in causes)

        payload = self._other_payload()
        if payload is not None:
            causes = (*causes, LiveCause("payload", "", payload))
        return causes

    def pause(self, q: Array) -> float:
        """See `StreamedMotion`: a pause at the pendant disengages."""
        order = Order.NONE if self._motion.phase is LivePhase.PAUSED else Order.PAUSE
        self._motion.rest_at(q)
        _, index = self._step(0.0, Request(order))
        return index

    def lead_back(self, q: Array, hold: Array, period: float) -> Array:
        """See `StreamedMotion`: the arm is held where it was stopped."""
        self.requests.clear()
        self.requests.append(Request(Order.RESUME))
        self._motion.rest_at(q)
        return q[np.newaxis]


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
