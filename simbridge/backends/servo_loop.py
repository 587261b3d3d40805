"""The servo loop: one checked setpoint per control period, paced by absolute deadlines locked to the controller.

Everything that decides what is sent is here, without sockets or ur_rtde: the loop runs against a `Link`. What is sent
comes from a `Motion` (streamed_motion.py): a plan that is replayed, or a live session.

Time. A state with the controller's timestamp t arrives; at a fixed phase after it the setpoint for t + period is sent.
The deadlines advance by exactly one period and are pulled slowly towards that phase, so that network jitter does not
become jitter of the loop. The state stamped t + period belongs to the sample: reference, setpoint and attained then
refer to one instant of the controller's clock.

Speed. The plan advances by the controller's speed scaling, which it follows within a quarter of a second. While the
program is paused it stands still, and what is sent is where the controller has stopped its targets; after that a slow
motion leads from there back to the plan, which goes on from rest.

States. When none arrive, a few more setpoints are sent at most, and after 100 ms the motion ends. A replay goes on at
its speed after a short gap between setpoints, and from rest after a long one, in which the arm has come to rest. A
motion of which half is such gaps ends, too (state_supply.py). A state that cannot follow the one before is refused
(succession.py): no time or position in a state may decide how much is computed here.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Protocol

import numpy as np

from simbridge.backends.state_supply import StateSupply
from simbridge.backends.streamed_motion import Motion, Record, Samples, Sent
from simbridge.backends.succession import MAX_STEP, check_state, check_succession
from simbridge.backends.tool_watch import ToolWatch
from simbridge.planning.guard import Guard
from simbridge.robot.pose import Array
from simbridge.servo.feedforward import BRAKING, SCALING_RAMP
from simbridge.servo.inverse import InverseServoj
from simbridge.servo.law import ServojLaw
from simbridge.ur.arm_state import FULL_SPEED, find_stop, read_modes, speed_factor
from simbridge.ur.errors import (
    ArmNotReady,
    ArmStopped,
    ImplausibleState,
    ProgramPaused,
    ProgramStopped,
    SpeedScaled,
    StaleState,
)
from simbridge.ur.rtde import Package
from simbridge.ur.tables import RuntimeState

STALE = 0.1  # s without a newer state
# After this time without a setpoint, the script's watchdog has probably ended it: 0.1 s, less the uncertainty.
WATCHDOG = 0.09  # s
# How long setpoints are sent without a newer state: the arm's target is at most this far ahead of the controller.
AHEAD = 0.008  # s
# After this time without setpoints the arm is at rest, and the plan continues from rest.
FORGET = 0.03  # s
# A setpoint is sent this fraction of a period after the arrival of the state it responds to.
_PHASE = 0.2
# Two setpoints sent within this fraction of a period may arrive in one tick of the controller, which uses only one.
_CROWDED = 0.85
# Fraction of a deadline's phase error that is corrected per period.
_PULL = 0.02
# How long to wait for the cause of a stop when only its effects have been seen.
_REASON_TIMEOUT = 0.1  # s
# A program that ends within this time after a gap in the setpoints ended because of it.
_CAUSE = 0.5  # s
# A joint target slower than this is at rest.
_REST = 1e-4  # rad/s
# For the first state, and for the control script to run.
_FIRST_TIMEOUT = 1.0  # s
# So many cycles without a command are predicted at most: by then the arm is at rest, and the script has ended. More
# would need a compiler, which this process may not load.
_MAX_PREDICTED_CYCLES = 100


class Link(Protocol):
    """The connection to a controller whose control script runs."""

    def states(self, timeout: float) -> list[Package]:
        """The states since the last call, oldest first; waits at most `timeout` s for one."""

    def keep_alive(self) -> None:
        """Feed the control script's watchdog without a setpoint."""

    def servo(self, q: Array) -> bool:
        """Send a setpoint (n,), rad; False when the controller no longer accepts any."""


class Clock(Protocol):
    """The host's clock."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class ServoLoop:
    """Sends the setpoints of a motion, one per period, and records the state at which each was due.

    Args:
        link: The connection to the controller.
        guard: Checks every setpoint right before it is sent.
        host: The controller's address, for messages.
        law: Of the controller's servoj; its cycle is the control period.
        follow_scaling, wait_in_pause: See `ServoConfig`.
        tool: Compares the controller's tool with that of the motion; None compares it with the first state's.

    Attributes:
        state: The newest state.
        missed_deadlines: Periods of the controller in which no setpoint was sent although one was due.
        slowed: Whether the motion is slower than the controller's speed scaling after periods without a setpoint.
    """

    def __init__(
        self,
        link: Link,
        guard: Guard,
        host: str,
        law: ServojLaw,
        *,
        follow_scaling: bool = True,
        wait_in_pause: bool = True,
        tool: ToolWatch | None = None,
        clock: Clock = time,
    ) -> None:
        self.tool = tool or ToolWatch(host)
        self._supply = StateSupply(host, law.cycle)
        self._max_velocity = guard.max_velocity
        self._link, self._guard, self._host, self._law, self._period = (
            link,
            guard,
            host,
            law,
            law.cycle,
        )
        self._inverse: InverseServoj | None = None
        self._feedforward = False
        self._follow, self._wait_in_pause, self._clock = follow_scaling, wait_in_pause, clock
        self._motion: Motion | None = None
        self._hold: Array | None = None
        # Where the controller has stopped its targets in a pause, and after it the way back to the plan.
        self._stopped_at: Array | None = None
        self._way_back: deque[Array] = deque()
        # Where the commands so far bring the controller's targets, rad and rad/s, and the newest of them. The link's
        # delay is not in it: it shifts the whole motion, and bends none of it.
        self._q = self._qd = self._command = np.empty(0)
        self._rate, self._sequence, self._position = 1.0, 0, 0.0
        self._last_due, self._ahead_for = -1, 0
        # When the last setpoint was sent; the last gap long enough for the script's watchdog, and when it ended.
        self._sent = self._unsent = self._unsent_until = 0.0
        self._samples = Samples()
        self._stopped: Package | None = None
        # How long no setpoint has been sent in the present gap, s, and the motion's rate before it.
        self._gap = 0.0
        self._rate_before_gap = 1.0
        # While the arm is braked, states that cannot be used are skipped instead of refused.
        self._braking = False
        self.missed_deadlines, self.slowed = 0, False
        self._most_ahead = max(1, round(AHEAD / law.cycle))
        self._await_first_state()

    def _await_first_state(self) -> None:
        """Wait for a state in which the control script runs; older states are skipped."""
        begin = self._clock.monotonic()
        state: Package = {}
        while (
            not state or find_stop(state) is ProgramStopped
        ) and self._clock.monotonic() - begin < _FIRST_TIMEOUT:
            state = (self._link.states(STALE) or [state])[-1]
        if not state:
            raise StaleState(self._host, 0.0, self._clock.monotonic() - begin)
        check_state(self._host, state)
        self._keep(state)
        self._arrival = self._clock.monotonic()
        self._deadline = self._arrival + (1.0 + _PHASE) * self._period

    @property
    def measured(self) -> Array:
        """Joint positions (n,), rad, of the newest state."""
        return np.array(self.state["actual_q"])

    @property
    def paused(self) -> bool:
        """Whether a replay waits for its program to be resumed."""
        return self._motion is not None and not self._playing

    @property
    def missed_states(self) -> int:
        """Setpoints of the motion whose state never arrived."""
        return self._samples.missed

    @property
    def idle(self) -> bool:
        """Whether the motion is over and all its states have arrived; its last setpoint is held."""
        return self._motion is None and not self._samples.waiting

    def play(self, motion: Motion, record: Record, *, feedforward: bool = False) -> None:
        """Start a motion. Its first setpoint must be within one step of the held one, or of the arm at rest.

        Args:
            motion: The setpoints; with feedforward the motion that the arm is to make, which begins at rest.
            record: Takes the state at which each setpoint was due.
            feedforward: Send what makes the arm follow the motion, by the inverse of the servo law.
        """
        if self._hold is None:
            self._guard.reset(self.measured)
            self._q, self._qd, self._command = (
                self.measured,
                np.zeros_like(self.measured),
                self.measured,
            )
        self._inverse, self._feedforward, self._stopped_at = None, feedforward, None
        self._motion, self._samples = motion, Samples(record)
        self._rate, self._sequence, self._position = 1.0, 0, 0.0
        self._gap = 0.0
        self._rate_before_gap = 1.0
        self.missed_deadlines = 0

    def slot(self) -> None:
        """One control period: wait for the deadline, check the newest state, send the setpoint that is due.

        Raises:
            ControllerError, GuardViolation: The arm must be stopped; nothing was sent in this period.
        """
        self._wait()
        self._check_state()
        self._check_tool()
        if self._motion is None and self._hold is None:
            self._link.keep_alive()
            return

        # Do not run ahead of a controller from which nothing new has come.
        ahead = self._last_due - self._tick(self.state)
        if ahead > self._most_ahead:
            self.missed_deadlines += self._motion is not None
            self._go_on_after_gap(self._period)
            self._count_period(sent=False)
            return

        if self._would_crowd(ahead):
            self.missed_deadlines += self._motion is not None and self._sequence > 0
        else:
            self._send()
        self._count_period(sent=True)

    def _check_tool(self) -> None:
        """Raise `ToolChanged` if the controller's tool is no longer that of the motion."""
        may_change = self._motion is not None and self._motion.payload_may_change
        self.tool.follow(self.state, payload_may_change=may_change)

    def _count_period(self, *, sent: bool) -> None:
        """Count a period of a motion, unless the controller itself has stopped it; raises `LateStates`."""
        if self._motion is not None and self._playing and speed_factor(self.state) > 0.0:
            self._supply.count(sent=sent)

    def brake(self) -> None:
        """Bring a moving arm to rest, straight on and all joints in proportion, and hold it there.

        While the program is paused nothing is sent: the controller has braked the arm.

        Raises:
            ControllerError: The arm has stopped by itself, or no states arrive.
        """
        if self._hold is None or self._motion is None or not self._playing:
            return
        self._motion = None
        self._braking = True
        inverse = InverseServoj(self._law, self._q)
        resting = False
        while not resting:
            self._wait()
            self._check_state()
            due = max(self._tick(self.state), self._last_due) + 1
            q, qd = self._held_until(due)
            resting = bool(np.abs(qd).max() < _REST)
            inverse.reset(q, qd)
            self._hold = self._guard.within_range(inverse.command(inverse.braking(BRAKING)[0]))
            self._put(self._hold, due)

    def _held_until(self, due: int) -> tuple[Array, Array]:
        """Where the controller's targets are before a tick, rad and rad/s; until then the last command holds."""
        missed = min(due - self._last_due - 1, _MAX_PREDICTED_CYCLES)
        if missed < 1 or self._last_due < 0:
            return self._q, self._qd
        motion = self._law.follow(
            np.repeat(self._command[np.newaxis], missed, axis=0), q=self._q, qd=self._qd
        )
        return motion.q[-1], motion.qd[-1]

    def _put(self, command: Array, due: int) -> None:
        """Send a command (n,), rad, that is due at a tick, if the guard takes what it does to the arm."""
        q, qd = self._held_until(due)
        motion = self._law.follow(command[np.newaxis], q=q, qd=qd)
        if self._motion is not None and self._playing:
            self._guard.check_predicted(motion.qd[0])
            if self._feedforward:
                self._guard.check_acceleration(motion.qdd[0])
        self._sent = self._clock.monotonic()
        if not self._link.servo(command):
            # The next states show the cause.
            raise self._stop()
        self._q, self._qd, self._command, self._last_due = motion.q[0], motion.qd[0], command, due
        self._gap = 0.0
        self._rate_before_gap = self._rate

    def _would_crowd(self, ahead: int) -> bool:
        """Whether a setpoint sent now might arrive in the same tick as the last one, so that one of them is lost.

        The newest state has been responded to, and the next is not overdue. Either the response was late, or that state
        was, and then this setpoint is on time. If that persists, the controller's clock has shifted against ours by a
        tick: one setpoint is skipped, and until then samples belong to the state before their own.
        """
        now = self._clock.monotonic()
        answered = ahead > 0 and now - self._arrival < self._period
        self._ahead_for = self._ahead_for + 1 if ahead > 0 else 0
        return answered and (
            now - self._sent < _CROWDED * self._period or self._ahead_for > self._most_ahead
        )

    def _wait(self) -> None:
        """Sleep until the deadline, which a new state pulls to its phase after it, and set the next one."""
        while (left := self._deadline - self._clock.monotonic()) > 0.0:
            if self._take(self._received(left)):
                off = self._arrival + _PHASE * self._period - self._deadline
                # A state that arrived after its deadline moves that deadline later, not the previous one earlier.
                self._deadline += _PULL * (off if off > -0.5 * self._period else off + self._period)
                self._clock.sleep(max(self._deadline - self._clock.monotonic(), 0.0))
                break
        self._take(self._received(0.0))
        self._deadline += self._period

        # This process was late itself.
        late = self._clock.monotonic() - self._deadline
        if late > 0.0:
            skipped = int(late / self._period) + 1
            # No setpoint is due before a motion's first.
            self.missed_deadlines += skipped if self._motion is not None and self._sequence else 0
            self._deadline += skipped * self._period
            self._go_on_after_gap(skipped * self._period)

    def _received(self, timeout: float) -> list[Package]:
        """States that come within a timeout, s; while the arm is braked, without those that cannot be used."""
        try:
            return self._link.states(timeout)
        except ImplausibleState:
            if not self._braking:
                raise
            return []

    def _go_on_after_gap(self, more: float) -> None:
        """Let the motion go on at the speed that a gap between setpoints, now longer by `more` s, has left the arm.

        The arm is braked by a share of the speed that it has. A replay keeps its rate through a short gap, which then
        only extends it; with feedforward it keeps the time.
        """
        self._gap += more
        if self._motion is None or self._feedforward:
            return
        speed_left = max(1.0 - self._gap / FORGET, 0.0)
        if self._motion.slows_in_gaps:
            self._slow_down(self._rate_before_gap * speed_left)
        elif speed_left == 0.0:
            self._slow_down(0.0)

    def _slow_down(self, rate: float) -> None:
        """Lower the rate at once, as the arm has been braked."""
        self._guard.scale_speed(rate / self._rate if self._rate else 0.0)
        self._rate, self.slowed = rate, True

    def _tick(self, state: Package) -> int:
        return round(state["timestamp"] / self._period)

    def _take(self, states: list[Package]) -> bool:
        """Process received states; returns whether one was newer than the last.

        Raises:
            ImplausibleState: One cannot follow the last, and the arm is not being braked.
            StaleState: Likewise, and so much time has passed on this computer, too.
        """
        arrival = self._clock.monotonic()
        quiet = arrival - self._arrival
        newer = False
        for state in states:
            if not state["timestamp"] > self.state["timestamp"]:
                continue
            if not self._can_follow(state, quiet):
                continue
            newer = True
            self._arrival = arrival
            self._keep(state)
            self._samples.match(self._tick(state), state, arrival)
        if newer:
            self._supply.arrived(arrival)
        return newer

    def _can_follow(self, state: Package, quiet: float) -> bool:
        """Whether a newer state, before which none came for `quiet` s, is used; see `_take` for what it raises."""
        try:
            check_succession(self._host, self.state, state, self._max_velocity)
        except ImplausibleState:
            # A stop that was seen before is the cause of the end.
            if self._braking or self._stopped is not None:
                return False
            # Both computers may have stood still, as when one is a virtual machine on the other.
            step = state["timestamp"] - self.state["timestamp"]
            if quiet > STALE and MAX_STEP < step < quiet + STALE:
                raise StaleState(self._host, self.state["timestamp"], quiet) from None
            raise
        return True

    def _keep(self, state: Package) -> None:
        """Make this the newest state, and remember the state that shows a stop: in the next one it may be over."""
        self.state = state
        if find_stop(state) is not None and not self._reason_known:
            self._stopped = state

    @property
    def _reason_known(self) -> bool:
        """Whether the cause of a stop was seen: a safety stop also ends the program."""
        return self._stopped is not None and find_stop(self._stopped) not in (
            None,
            ProgramStopped,
            ArmNotReady,
        )

    def _check_state(self) -> None:
        """Raise if states are stale, the arm has stopped, or its speed is scaled against the settings."""
        gap = self._clock.monotonic() - self._sent
        if self._hold is not None and gap > WATCHDOG:
            self._unsent, self._unsent_until = gap, self._clock.monotonic()
        quiet = self._clock.monotonic() - self._arrival
        if quiet > STALE:
            raise StaleState(self._host, self.state["timestamp"], quiet)
        if self._stopped is not None:
            raise self._stop()
        if self._motion is None:
            return
        if not self._playing and not self._wait_in_pause:
            self._stopped = self.state
            raise self._stop()
        scaling = speed_factor(self.state)
        if not self._follow and scaling < FULL_SPEED:
            raise SpeedScaled(self._host, scaling)

    @property
    def _playing(self) -> bool:
        """Whether the program runs, and is not paused."""
        return bool(self.state["runtime_state"] == RuntimeState.PLAYING)

    def _stop(self) -> ArmStopped:
        """The error for the stop that was seen; its cause may become visible a little later than its effects."""
        end = self._clock.monotonic() + _REASON_TIMEOUT
        while not self._reason_known and (left := end - self._clock.monotonic()) > 0.0:
            self._take(self._received(left))
        state = self._stopped or self.state
        paused = state["runtime_state"] in (RuntimeState.PAUSING, RuntimeState.PAUSED)
        kind = find_stop(state) or (ProgramPaused if paused else ProgramStopped)
        if (
            kind is ProgramStopped
            and self._unsent
            and self._clock.monotonic() - self._unsent_until < _CAUSE
        ):
            return ProgramStopped(self._host, *read_modes(state), self._unsent)
        return kind(self._host, *read_modes(state))

    def _send(self) -> None:
        if self.paused:
            self._wait_where_stopped()
            return
        scaling = speed_factor(self.state)
        due = max(self._tick(self.state), self._last_due) + 1
        # With feedforward the arm moves on for a while when a command is late, so the motion keeps the time.
        elapsed = (
            min(due - self._last_due, _MAX_PREDICTED_CYCLES)
            if self._feedforward and self._sequence
            else 1
        )
        for _ in range(elapsed):
            setpoint, position = self._next(scaling)
            checked = command = self._guard.check(setpoint, self.measured)
            if self._feedforward:
                self._inverse = self._inverse or InverseServoj(self._law, checked)
                command = self._guard.check_command(self._inverse.command(checked), checked)
            if self._motion is None or self._motion.finished:
                break
        self._put(command, due)
        self._keep_sent(checked, command, due, position, scaling)

    def _keep_sent(
        self, checked: Array, command: Array, due: int, position: float, scaling: float
    ) -> None:
        if self._stopped_at is None and not self._way_back:
            self._hold = checked
        if self._motion is not None:
            self._samples.waiting.append(
                Sent(due, self._sequence, position, self._sent, command, scaling)
            )
            self._sequence += 1
            self._position = position
            if self._motion.finished:
                self._motion = None

    def _wait_where_stopped(self) -> None:
        """While the program is paused: go with the command to where the controller has stopped its targets. That moves
        nothing, and when the program is resumed, nothing jumps."""
        target = np.array(self.state["target_q"])
        self._slow_down(0.0)
        here = self._stopped_at = self._guard.check(self._guard.towards(target), self.measured)
        self._hold = here if self._hold is None else self._hold
        due = max(self._tick(self.state), self._last_due) + 1
        self._inverse = None
        self._put(here, due)
        self._q, self._qd = target, np.zeros_like(target)
        position = self._position if self._motion is None else self._motion.paused(here)
        self._keep_sent(here, here, due, position, 0.0)

    def _next(self, scaling: float) -> tuple[Array, float]:
        """The setpoint of the next cycle, and its position within the plan."""
        change = SCALING_RAMP * self._period
        if self._stopped_at is not None:
            assert self._hold is not None and self._motion is not None
            self._way_back = deque(self._motion.resumed(self._stopped_at, self._hold, self._period))
            self._stopped_at = None
        if self._way_back:
            return self._way_back.popleft(), self._position
        self._rate = max(min(scaling, self._rate + change), self._rate - change, 0.0)
        self.slowed = self.slowed and self._rate < scaling
        if self._motion is None:
            assert self._hold is not None
            return self._hold, self._position
        return self._motion.next(self._rate)
