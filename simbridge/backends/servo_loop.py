"""The servo loop: one checked setpoint a control period, paced by absolute deadlines that are locked to the controller.

Everything that decides what reaches the wire is here, and nothing of sockets or ur_rtde: it runs against a `Link`.

Time. A state with the controller's timestamp t arrives; at a fixed phase after it the setpoint for t + period leaves.
The deadlines advance by exactly one period, and are drawn slowly towards that phase, so the network's jitter does not
become the loop's. The state stamped t + period, when it comes, is the sample's: reference, setpoint and attained
belong to one instant of the controller's clock.

Speed. The plan advances by the controller's own speed scaling: at once when it slows down, ramped when it speeds up,
and not at all while its program is paused. When states stay out, at most a few setpoints go on; then the loop waits,
and after 100 ms it gives up.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from simbridge.backends.motions import Motion
from simbridge.planning.guard import Guard
from simbridge.robot.pose import Array
from simbridge.ur.errors import ArmNotReady, ArmStopped, ProgramStopped, SpeedScaled, StaleState
from simbridge.ur.rtde import Package
from simbridge.ur.stops import FULL_SPEED, scaling_of, stop_of

STALE = 0.1  # s without a newer state
# After so long without a setpoint it is likely that the script's watchdog has ended it: 0.1 s, less what is uncertain.
WATCHDOG = 0.09  # s
# How long setpoints go on without a newer state: so far ahead may the arm's target be when the controller wakes.
AHEAD = 0.008  # s
# When the controller speeds up again: from rest to full speed in a quarter of a second.
RAMP = 4.0  # 1/s
# After so long without setpoints the arm has come to rest, and the plan goes on from there.
FORGET = 0.03  # s
# A setpoint leaves this part of a period after the state it answers has come.
_PHASE = 0.2
# Two setpoints that leave within so much of a period may meet in one tick of the controller, which takes one.
_CROWDED = 0.85
# Of the difference between where a deadline is and where it should be, so much is made up a period.
_PULL = 0.02
# How long a stop that was noticed by its effects is given to say its name.
_REASON_TIMEOUT = 0.1  # s
# A program that ends so soon after a gap has ended because of it.
_CAUSE = 0.5  # s
# For the first state, and for the control script to be seen running.
_FIRST_TIMEOUT = 1.0  # s


class Link(Protocol):
    """The way to a controller whose control script runs."""

    def states(self, timeout: float) -> list[Package]:
        """The states since the last call, oldest first; waits at most `timeout` s for one."""
        ...

    def servo(self, q: Array) -> bool:
        """Send a setpoint (n,), rad; False when the controller no longer takes any."""
        ...


class Clock(Protocol):
    """The host's clock; tests have their own."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class Sent(NamedTuple):
    """A setpoint on its way: which state will be its own."""

    due: int  # the controller's tick
    sequence: int
    position: float
    sent: float
    setpoint: Array
    scaling: float


Record = Callable[[tuple[float, ...], tuple[Array, ...]], None]


class ServoLoop:
    """Sends what a motion gives, one setpoint a period, and records the state in which each was due.

    Args:
        link: The way to the controller.
        guard: The last look at every setpoint.
        host: The controller's name, for messages.
        period: Control period, s.
        follow_scaling: Follow the controller's speed scaling; otherwise refuse it.
        clock: The host's.

    Attributes:
        state: The newest state.
        missed_deadlines: Periods of the controller in which no setpoint left although one was due.
        missed_states: Setpoints whose own state never came.
    """

    def __init__(
        self, link: Link, guard: Guard, host: str, period: float, *, follow_scaling: bool = True, clock: Clock = time
    ) -> None:
        self._link, self._guard, self._host, self._period = link, guard, host, period
        self._follow, self._clock = follow_scaling, clock
        self._motion: Motion | None = None
        self._record: Record | None = None
        self._hold: Array | None = None
        self._rate = 1.0
        self._sequence = 0
        self._last_due = -1
        self._ahead_for = 0
        # When the last setpoint left; the last gap that was long enough for the script's watchdog, and when it ended.
        self._sent = self._unsent = self._unsent_until = 0.0
        self._pending: deque[Sent] = deque()
        self._stopped: Package | None = None
        self.missed_deadlines = self.missed_states = 0
        self._most_ahead = max(1, round(AHEAD / period))
        self._await_first_state()

    def _await_first_state(self) -> None:
        """The newest state, in which the control script runs; those from before it ran have piled up meanwhile."""
        begin = self._clock.monotonic()
        state: Package = {}
        while (not state or stop_of(state) is ProgramStopped) and self._clock.monotonic() - begin < _FIRST_TIMEOUT:
            state = (self._link.states(STALE) or [state])[-1]
        if not state:
            raise StaleState(self._host, 0.0, self._clock.monotonic() - begin)
        self._keep(state)
        self._arrival = self._clock.monotonic()
        self._deadline = self._arrival + (1.0 + _PHASE) * self._period

    @property
    def measured(self) -> Array:
        """Joint positions (n,), rad, of the newest state."""
        return np.array(self.state["actual_q"])

    @property
    def idle(self) -> bool:
        """Whether the motion is over and all its states have come, so that its last setpoint is only held."""
        return self._motion is None and not self._pending

    def play(self, motion: Motion, record: Record) -> None:
        """Begin a motion. Its first setpoint must be within one step of what is held, or of the arm at rest."""
        if self._hold is None:
            self._guard.reset(self.measured)
        self._motion, self._record = motion, record
        self._sequence = 0
        self._pending.clear()
        self._rate = 1.0
        self.missed_deadlines = self.missed_states = 0

    def slot(self) -> None:
        """One control period: wait for the deadline, look at the newest state, send what is due.

        Raises:
            ControllerError, GuardViolation, TargetsStopped: The arm must be stopped; nothing was sent in this period.
        """
        self._wait()
        self._look()
        if self._motion is None and self._hold is None:
            return
        ahead = self._last_due - self._tick(self.state)
        if ahead > self._most_ahead:
            # Not to run away from a controller that sleeps.
            self.missed_deadlines += self._motion is not None
            self._rate = max(self._rate - self._period / FORGET, 0.0)
            return
        if self._would_crowd(ahead):
            self.missed_deadlines += self._motion is not None and self._sequence > 0
            return
        self._send()

    def _would_crowd(self, ahead: int) -> bool:
        """Whether a setpoint now might meet the last one in one tick, so that one of the two had no effect.

        The newest state has been answered, and the next is not overdue. Either the answer was late, or that state was,
        and then this setpoint is on time. When that goes on, the controller's clock has shifted against ours by a tick:
        one is left out, and until then samples belong to the state before their own.
        """
        now = self._clock.monotonic()
        answered = ahead > 0 and now - self._arrival < self._period
        self._ahead_for = self._ahead_for + 1 if ahead > 0 else 0
        return answered and (now - self._sent < _CROWDED * self._period or self._ahead_for > self._most_ahead)

    def _wait(self) -> None:
        """Sleep until the deadline, with an ear for states, and set the next one."""
        while (left := self._deadline - self._clock.monotonic()) > 0.0:
            if self._take(self._link.states(left)):
                self._deadline += self._correction()
                self._clock.sleep(max(self._deadline - self._clock.monotonic(), 0.0))
                break
        self._take(self._link.states(0.0))
        self._deadline += self._period
        late = self._clock.monotonic() - self._deadline
        if late > 0.0:
            skipped = int(late / self._period) + 1
            # Before a motion's first setpoint none was due.
            self.missed_deadlines += skipped if self._motion is not None and self._sequence else 0
            self._deadline += skipped * self._period
            if late > FORGET:
                self._rate = 0.0

    def _correction(self) -> float:
        """How much this deadline is moved towards its phase after the state that just came."""
        off = self._arrival + _PHASE * self._period - self._deadline
        # A state that came after its own deadline asks for a later one, not for the one before.
        return _PULL * (off if off > -0.5 * self._period else off + self._period)

    def _tick(self, state: Package) -> int:
        return round(state["timestamp"] / self._period)

    def _take(self, states: list[Package]) -> bool:
        """Keep the newest of these states; whether one was newer than the last."""
        newer = [state for state in states if state["timestamp"] > self.state["timestamp"]]
        if newer:
            self._arrival = self._clock.monotonic()
        for state in newer:
            self._keep(state)
            self._settle(state)
        return bool(newer)

    def _keep(self, state: Package) -> None:
        """Make this the newest state, and remember the one that shows a stop, for by the next one it may be over."""
        self.state = state
        if stop_of(state) is not None and not self._reason_known:
            self._stopped = state

    @property
    def _reason_known(self) -> bool:
        """Whether a stop was seen that has a name of its own: a safety stop also ends the program."""
        return self._stopped is not None and stop_of(self._stopped) not in (ProgramStopped, ArmNotReady)

    def _settle(self, state: Package) -> None:
        """Give a state to the setpoint it belongs to."""
        tick = self._tick(state)
        while self._pending and self._pending[0].due <= tick:
            sent = self._pending.popleft()
            if sent.due < tick:
                self.missed_states += 1
            elif self._record is not None:
                self._write(sent, state)

    def _write(self, sent: Sent, state: Package) -> None:
        assert self._record is not None
        scalars = (
            float(sent.sequence),
            sent.position,
            sent.sent,
            self._arrival,
            state["timestamp"],
            sent.scaling,
            float(state["robot_mode"]),
            float(state["safety_mode"]),
            float(state["runtime_state"]),
        )
        q, qd, effort = state["actual_q"], state["actual_qd"], state["effort"]
        self._record(scalars, (np.array(q), np.array(qd), np.array(effort), np.array(state["target_q"]), sent.setpoint))

    def _look(self) -> None:
        """Whether all is well with the arm."""
        gap = self._clock.monotonic() - self._sent
        if self._hold is not None and gap > WATCHDOG:
            self._unsent, self._unsent_until = gap, self._clock.monotonic()
        quiet = self._clock.monotonic() - self._arrival
        if quiet > STALE:
            raise StaleState(self._host, self.state["timestamp"], quiet)
        if self._stopped is not None:
            raise self._stop()
        scaling = scaling_of(self.state)
        if self._motion is not None and not self._follow and scaling < FULL_SPEED:
            raise SpeedScaled(self._host, scaling)

    def _stop(self) -> ArmStopped:
        """The stop that was seen, or by whose effects it was noticed: its own name may come a bit later."""
        end = self._clock.monotonic() + _REASON_TIMEOUT
        while not self._reason_known and (left := end - self._clock.monotonic()) > 0.0:
            self._take(self._link.states(left))
        state = self._stopped or self.state
        kind = stop_of(state) or ProgramStopped
        if kind is ProgramStopped and self._unsent and self._clock.monotonic() - self._unsent_until < _CAUSE:
            return ProgramStopped(
                self._host, state["robot_mode"], state["safety_mode"], state["runtime_state"], self._unsent
            )
        return kind(self._host, state["robot_mode"], state["safety_mode"], state["runtime_state"])

    def _send(self) -> None:
        scaling = scaling_of(self.state)
        self._rate = min(scaling, self._rate + RAMP * self._period)
        position = 0.0
        if self._motion is None:
            assert self._hold is not None
            setpoint = self._hold
        else:
            setpoint, position = self._motion.next(self._rate)
        checked = self._guard.check(setpoint, self.measured)
        now = self._clock.monotonic()
        self._sent = now
        if not self._link.servo(checked):
            # Its next states say why.
            raise self._stop()
        self._hold = checked
        self._last_due = max(self._tick(self.state), self._last_due) + 1
        if self._motion is not None:
            self._pending.append(Sent(self._last_due, self._sequence, position, now, checked, scaling))
            self._sequence += 1
            if self._motion.finished:
                self._motion = None
