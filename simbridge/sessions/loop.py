"""A live motion as the source of setpoints of a loop: each period is timed and recorded.

The loop is the servo loop, or that of a simulated arm (stepped_arm.py). Orders and inputs go in.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from simbridge.robot.pose import Array
from simbridge.scheduling import WaitingTime
from simbridge.servo.feedforward import SCALING_RAMP
from simbridge.sessions.causes import STANDSTILL, LiveCause, index_subjects
from simbridge.sessions.channel import LiveChannel, Period
from simbridge.sessions.motion import LiveMotion
from simbridge.sessions.phases import LivePhase, Order

# The arm brakes and holds after this many periods in a row whose step took longer than a period.
SLOW_STEPS = 10


class OrderRequest(NamedTuple):
    """An order with its numbers.

    Attributes:
        order: What is asked of the motion.
        engagement: Number of the engagement that begins, with `ENGAGE`.
        upto: Number of the last input that is ignored from then on.
        value: Largest fraction of full speed, with `SPEED`.
    """

    order: Order
    engagement: int = 0
    upto: int = 0
    value: float = 0.0

    def as_message(self) -> dict[str, Any]:
        """Return the request as the loop's process is sent it."""
        return {"do": "order", **self._asdict(), "order": int(self.order)}

    @classmethod
    def of_message(cls, message: dict[str, Any]) -> OrderRequest:
        """Return the request of a message that `as_message` has made."""
        return cls(
            Order(message["order"]), message["engagement"], message["upto"], message["value"]
        )


class LiveLoop:
    """The periods of a live session, as a `StreamedMotion` of the servo loop or of a simulation.

    Args:
        motion: The live motion.
        channel: Memory from which inputs come, and in which periods are recorded.
        period: Control period, s.
        clock: Function that returns the loop's time, s.
        timed: Whether the time that a step takes counts.
        late: Function that returns whether the speed is lower than the controller's because
            commands were late.
        other_payload: Function that returns the controller's payload, kg, while it differs from
            that at the beginning of the session; else None.

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
        # The motion marks in the channel that its solver is at work, for the parent to see.
        motion.solving = channel.solving
        # The index of each name that subjects of causes may have.
        self._subjects = index_subjects(motion.subjects)

        self.requests: deque[OrderRequest] = deque()
        # Index of the next period, from 0.
        self._index = 0
        # When the last period began, s of the loop's clock; None before the first.
        self._begun_at: float | None = None
        # How many steps in a row took longer than a period.
        self._slow_steps = 0
        # How long the last of them took, s.
        self._slow_duration = 0.0
        # Largest fraction of full speed that an order allows.
        self._requested_max_speed = 1.0
        # Largest fraction of full speed now, which follows the order by a ramp.
        self._max_speed = 1.0

    def rest_at(self, q: Array) -> None:
        """Begin at rest at joint positions q (n,), rad."""
        self._motion.rest_at(q)

    def next(self, rate: float) -> tuple[Array, float]:
        """See `StreamedMotion`: the setpoint (n,), rad, of the next period, and its index."""
        request = self.requests.popleft() if self.requests else OrderRequest(Order.NONE)
        return self._step(rate, request)

    def _step(self, rate: float, request: OrderRequest) -> tuple[Array, float]:
        """Make a period: take an order, step the motion, and record both.

        Args:
            rate: Fraction of full speed.
            request: The order.

        Returns:
            The setpoint (n,), rad, and the period's index.
        """
        # Step the motion, and measure how long that takes.
        waited_before = self._waiting.seconds()
        begin = time.perf_counter()
        now = self._clock()
        self._take_order(request)
        rate *= self._ramp_max_speed()
        # Late commands lower the speed, too, and then the slider is not to blame.
        rate_cause = "late_commands" if self._late() else "speed_slider"
        step = self._motion.step(now, rate, self._channel.newest(), rate_cause=rate_cause)
        duration = time.perf_counter() - begin if self._timed else math.nan

        # A step that seems too long may have waited while other threads used the core, which is not
        # the solver's fault.
        if duration > self._period:
            duration -= self._waiting.seconds() - waited_before

        # Find the causes, before this period becomes the last one.
        causes = self._add_causes(step.causes, now, duration)
        self._begun_at = now

        # Stop the arm, first of all orders, if several steps in a row take too long.
        self._count_slow_step(duration)
        if self._slow_steps >= SLOW_STEPS and step.phase is not LivePhase.IDLE:
            self.requests.appendleft(OrderRequest(Order.TOO_SLOW))
            self._slow_steps = 0

        # Record the period.
        index = self._index
        self._index += 1
        period = Period(
            index=index,
            now=now,
            rate=rate,
            engagement=self._motion.engagement,
            order=request.order,
            number=step.number,
            fate=step.fate,
            phase=step.phase,
            speed=step.speed,
            solver=duration,
            causes=causes,
            target=step.target,
            solution=step.solution,
            setpoint=step.setpoint,
        )
        self._channel.write(period, self._subjects)
        return step.setpoint, float(index)

    def _take_order(self, request: OrderRequest) -> None:
        """Pass an order on to the motion, except that of the largest speed."""
        if request.order is Order.SPEED:
            self._requested_max_speed = request.value
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
        self._max_speed = min(max(self._requested_max_speed, lowest), highest)
        return self._max_speed

    def _count_slow_step(self, duration: float) -> None:
        """Count a step if it took longer than a period; else begin anew.

        Args:
            duration: How long the step took, s; nan if that does not count.
        """
        if duration > self._period:
            self._slow_steps += 1
            self._slow_duration = duration
        else:
            self._slow_steps = 0

    def _add_causes(
        self, causes: tuple[LiveCause, ...], now: float, duration: float
    ) -> tuple[LiveCause, ...]:
        """Return the causes of a period, with those that only the loop knows.

        Args:
            causes: The causes that the motion knows.
            now: When the period began, s.
            duration: How long its step took, s; nan if that does not count.
        """
        if duration > self._period:
            causes = (LiveCause.of("solver", "", duration), *causes)
        else:
            interval = 0.0 if self._begun_at is None else now - self._begun_at
            if interval > STANDSTILL:
                causes = (LiveCause.of("loop", "", interval), *causes)

        payload = self._other_payload()
        if payload is not None:
            causes = (*causes, LiveCause.of("payload", "", payload))
        return causes

    def pause(self, q: Array) -> float:
        """See `StreamedMotion`: a pause at the pendant disengages."""
        order = Order.NONE if self._motion.phase is LivePhase.PAUSED else Order.PAUSE
        self._motion.rest_at(q)
        _, index = self._step(0.0, OrderRequest(order))
        return index

    def lead_back(self, q: Array, hold: Array, period: float) -> Array:
        """See `StreamedMotion`: the arm is held where it was stopped."""
        self.requests.clear()
        self.requests.append(OrderRequest(Order.RESUME))
        self._motion.rest_at(q)
        return q[np.newaxis]
