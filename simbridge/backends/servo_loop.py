"""The servo loop: one checked setpoint per control period, locked to the controller's clock.

Everything that decides what is sent is here, without sockets or ur_rtde: the loop runs against a
`ServoLink`. What is sent comes from a `StreamedMotion`: a plan that is replayed, or a live
session.

Time. A state with the controller's timestamp t arrives; at a fixed phase after it the setpoint for
t + period is sent. The deadlines advance by exactly one period and are pulled slowly towards that
phase, so that network jitter does not become jitter of the loop. The state stamped t + period
belongs to the sample: reference, setpoint and attained then refer to one instant of the
controller's clock.

Speed. The plan advances by the controller's speed scaling, which it follows within a quarter of a
second. While the program is paused it stands still, and what is sent is where the controller has
stopped its targets; after that a slow motion leads from there back to the plan, which goes on from
rest.

States. When none arrive, a few more setpoints are sent at most, and after 100 ms the motion ends. A
replay goes on at its speed after a short gap between setpoints, and from rest after a long one, in
which the arm has come to rest. A motion of which half is such gaps ends, too (state_supply.py). A
state that cannot follow the one before is refused (succession.py): no time or position in a state
may decide how much is computed here.
"""

from __future__ import annotations

import time
from collections import deque

import numpy as np

from simbridge.backends.motion_samples import MotionSamples, Record, SentSetpoint
from simbridge.backends.predicted_targets import MAX_PREDICTED_CYCLES, PredictedTargets
from simbridge.backends.received_states import HostClock, ReceivedStates
from simbridge.backends.servo_link import ServoLink
from simbridge.backends.streamed_motion import StreamedMotion
from simbridge.backends.tool_watch import ToolWatch
from simbridge.planning.guard import Guard
from simbridge.robot.pose import Array
from simbridge.servo.feedforward import BRAKING, SCALING_RAMP
from simbridge.servo.inverse import InverseServoj
from simbridge.servo.law import ServojLaw
from simbridge.ur.arm_state import FULL_SPEED, find_stop, read_modes, speed_factor
from simbridge.ur.errors import ArmStopped, ProgramPaused, ProgramStopped, SpeedScaled
from simbridge.ur.rtde import Package
from simbridge.ur.tables import RuntimeState

# After this time without a setpoint, the script's watchdog has probably ended the script: 0.1 s,
# less the uncertainty.
WATCHDOG_S = 0.09
# How long setpoints are sent without a newer state: the newest one is due at most this long after
# the newest state.
AHEAD_S = 0.008
# After this time without setpoints the arm is at rest, and the plan continues from rest.
FORGET_S = 0.03
# A program that ends within this time after a gap in the setpoints ended because of it.
WATCHDOG_EFFECT_S = 0.5
# A setpoint is sent this fraction of a period after the arrival of the state it responds to.
PHASE = 0.2
# Fraction of a deadline's phase error that is corrected per period.
PHASE_CORRECTION = 0.02
# Two setpoints sent within this fraction of a period may arrive in one tick of the controller,
# which uses only one.
CROWDED_FRACTION = 0.85
# A joint target slower than this is at rest, rad/s.
REST_SPEED = 1e-4


class ServoLoop:
    """Sends the setpoints of a motion, one per period, and records the state at which each was due.

    Args:
        link: The connection to the controller.
        guard: Checks every setpoint right before it is sent.
        host: The controller's address, for messages.
        law: The law of the controller's servoj; its cycle is the control period.
        follow_scaling: Whether to follow the controller's speed scaling; otherwise it is refused.
        wait_in_pause: Whether to wait while the program is paused at the pendant; otherwise the
            motion ends.
        tool: Compares the controller's tool with that of the motion; None compares it with the
            first state's.
        clock: The host's clock.

    Attributes:
        tool: Compares the controller's tool with that of the motion.
        missed_deadlines: Periods of the controller in which no setpoint was sent although one was
            due.
        slowed: Whether the motion is slower than the controller's speed scaling after periods
            without a setpoint.

    Raises:
        StaleState: No state came.
    """

    def __init__(  # noqa: PLR0913 (the later ones by keyword)
        self,
        link: ServoLink,
        guard: Guard,
        host: str,
        law: ServojLaw,
        *,
        follow_scaling: bool = True,
        wait_in_pause: bool = True,
        tool: ToolWatch | None = None,
        clock: HostClock = time,
    ) -> None:
        self._link = link
        self._guard = guard
        self._host = host
        self._law = law
        self._period = law.cycle
        self._follow_scaling = follow_scaling
        self._wait_in_pause = wait_in_pause
        self.tool = tool or ToolWatch(host)
        self._clock = clock

        # The motion whose setpoints are sent; None at rest.
        self._motion: StreamedMotion | None = None
        # The setpoint (n,), rad, that is sent at rest; None before the first motion.
        self._hold: Array | None = None
        # Where the controller has stopped its targets in a pause (n,), rad; None otherwise.
        self._stopped_at: Array | None = None
        # The setpoints (n,), rad, that lead back to the motion after a pause.
        self._return_path: deque[Array] = deque()

        # Fraction of a period by which the motion advances in each period.
        self._rate = 1.0
        # Number of setpoints of the motion that were sent.
        self._sequence = 0
        # Position in the plan of the last setpoint that was sent, in periods.
        self._position = 0.0
        self.slowed = False

        # Whether commands come from the inverse of the servo law, instead of the setpoints.
        self._feedforward = False
        # The inverse of the servo law; None before the first setpoint with feedforward, and after a
        # pause.
        self._inverse: InverseServoj | None = None
        # Where the commands bring the controller's targets.
        self._targets = PredictedTargets(law)

        # Number of successive periods in which the last command was due after the newest state.
        self._ahead_periods = 0
        # Largest number of ticks that a command may be due after the newest state.
        self._max_ahead = max(1, round(AHEAD_S / law.cycle))
        self.missed_deadlines = 0

        # When the last setpoint was sent, s (host clock).
        self._last_sent = 0.0
        # Length of the last gap in which the script's watchdog may have ended the script, s; 0 if
        # there was none.
        self._watchdog_gap = 0.0
        # When this gap ended, s (host clock).
        self._watchdog_gap_end = 0.0
        # Length of the present gap between setpoints, s; 0 outside of gaps.
        self._gap = 0.0
        # The motion's rate before the present gap.
        self._rate_before_gap = 1.0

        self._states = ReceivedStates(
            link, host, law.cycle, max_velocity=guard.max_velocity, clock=clock
        )
        self._states.await_first()
        # When the next setpoint is to be sent, s (host clock). The first state is not responded to:
        # the first setpoint responds to the state that is expected a period later.
        self._deadline = self._states.arrival + (1.0 + PHASE) * self._period

    @property
    def state(self) -> Package:
        """The newest state."""
        return self._states.newest

    @property
    def measured(self) -> Array:
        """Joint positions (n,), rad, of the newest state."""
        return np.array(self._states.newest["actual_q"])

    @property
    def paused(self) -> bool:
        """True while a motion waits for its program to be resumed."""
        return self._motion is not None and not self._is_playing()

    @property
    def missed_states(self) -> int:
        """Setpoints of the motion whose state never arrived."""
        return self._states.samples.missed

    @property
    def idle(self) -> bool:
        """True once the motion is over and all its states have come; its last setpoint is held."""
        return self._motion is None and not self._states.samples.waiting

    def play(self, motion: StreamedMotion, record: Record, *, feedforward: bool = False) -> None:
        """Start a motion.

        Its first setpoint must be within one step of the held one, or of the arm at rest.

        Args:
            motion: The setpoints; with feedforward the motion that the arm is to make, which begins
                at rest.
            record: Takes the state at which each setpoint was due.
            feedforward: Whether to send what makes the arm follow the motion, by the inverse of the
                servo law.
        """
        # Before the first motion nothing has been sent: the arm rests where it is measured. Later
        # ones follow on the setpoint that is held.
        if self._hold is None:
            self._guard.reset(self.measured)
            self._targets.rest(self.measured)

        self._motion = motion
        self._states.samples = MotionSamples(record)

        # The inverse begins at the first setpoint, from rest.
        self._feedforward = feedforward
        self._inverse = None

        # A pause of the last motion is over: there is nothing to be led back from.
        self._stopped_at = None

        # The motion begins at full speed, with its first setpoint, and outside of a gap.
        self._rate = 1.0
        self._sequence = 0
        self._position = 0.0
        self._gap = 0.0
        self._rate_before_gap = 1.0

        # Missed deadlines are counted for each motion.
        self.missed_deadlines = 0

    def run_period(self) -> None:
        """Run one control period.

        Wait for the deadline, check the newest state, send the setpoint that is due.

        Raises:
            ControllerError, GuardViolation: The arm must be stopped; nothing was sent in this
                period.
        """
        self._wait()
        self._check_state()
        self._check_tool()

        # Before the first motion there is no setpoint to send: only the link is kept alive.
        if self._motion is None and self._hold is None:
            self._link.keep_alive()
            return

        # Do not run ahead of a controller from which nothing new has come.
        ticks_ahead = self._targets.due - self._states.tick()
        if ticks_ahead > self._max_ahead:
            if self._motion is not None:
                self.missed_deadlines += 1
            self._extend_gap(self._period)
            self._count_period(lacks_state=True)
            return

        # Leave out a setpoint that might arrive in one tick with the last one. That is a missed
        # deadline, unless it is the first one of a motion: before that none is due.
        if not self._would_crowd(ticks_ahead):
            self._send()
        elif self._motion is not None and self._sequence > 0:
            self.missed_deadlines += 1
        self._count_period(lacks_state=False)

    def brake(self) -> None:
        """Bring a moving arm to rest, straight on and all joints in proportion, and hold it there.

        While the program is paused nothing is sent: the controller has braked the arm.

        Raises:
            ControllerError: The arm has stopped by itself, or no states arrive.
        """
        if self._hold is None or self._motion is None or not self._is_playing():
            return

        self._motion = None
        self._states.is_braking = True
        inverse = InverseServoj(self._law, self._targets.q)
        is_resting = False
        while not is_resting:
            self._wait()
            self._check_state()

            # Brake from where the commands so far bring the controller's targets, anew in each
            # period: only the first setpoint of the braking motion is sent. Once the targets rest,
            # a last setpoint holds the arm there.
            due = self._next_due()
            q, qd = self._targets.until(due)
            is_resting = bool(np.abs(qd).max() < REST_SPEED)
            inverse.reset(q, qd)
            setpoint = inverse.braking(BRAKING)[0]
            self._hold = self._guard.within_range(inverse.command(setpoint))
            self._send_command(self._hold, due)

    # Time

    def _wait(self) -> None:
        """Sleep until the deadline, which a new state pulls to its phase, and set the next one."""
        while True:
            remaining = self._deadline - self._clock.monotonic()
            if remaining <= 0.0:
                break

            # Pull the deadline towards its phase after this state's arrival. A state that seems to
            # be more than half a period too early came too late for the last deadline: its error
            # counts from that one, and moves the deadlines later.
            if self._states.receive(remaining):
                phase_error = self._states.arrival + PHASE * self._period - self._deadline
                if phase_error <= -0.5 * self._period:
                    phase_error = phase_error + self._period
                self._deadline += PHASE_CORRECTION * phase_error
                self._clock.sleep(max(self._deadline - self._clock.monotonic(), 0.0))
                break
        self._states.receive(0.0)
        self._deadline += self._period

        # If this process was so late itself that the next deadline has passed, too, skip deadlines
        # up to now.
        lateness = self._clock.monotonic() - self._deadline
        if lateness > 0.0:
            skipped = int(lateness / self._period) + 1
            # Before the first setpoint of a motion none is due.
            if self._motion is not None and self._sequence:
                self.missed_deadlines += skipped
            self._deadline += skipped * self._period
            self._extend_gap(skipped * self._period)

    def _would_crowd(self, ticks_ahead: int) -> bool:
        """Return whether a setpoint sent now might arrive in one tick with the last one.

        One of the two would be lost. That is possible only if the newest state has been answered,
        and the next one is not overdue. Then either the last setpoint was sent late, and this one
        would follow too closely; or the newest state came late, and this setpoint is on time. If
        the latter persists, the controller's clock has shifted against ours by a tick: one setpoint
        is skipped, and until then samples belong to the state before their own.

        Args:
            ticks_ahead: How many ticks the newest command is due after the newest state.
        """
        now = self._clock.monotonic()
        is_answered = ticks_ahead > 0 and now - self._states.arrival < self._period
        self._ahead_periods = self._ahead_periods + 1 if ticks_ahead > 0 else 0

        is_close = now - self._last_sent < CROWDED_FRACTION * self._period
        has_shifted = self._ahead_periods > self._max_ahead
        return is_answered and (is_close or has_shifted)

    def _extend_gap(self, growth: float) -> None:
        """Extend the present gap between setpoints, and slow the motion as the gap slows the arm.

        The longer the gap, the smaller is the fraction of its speed that the arm still has. A
        replay keeps its rate through a short gap, which only makes it take longer; with feedforward
        it keeps to the clock.

        Args:
            growth: Growth of the gap since the last call, s.
        """
        self._gap += growth
        if self._motion is None or self._feedforward:
            return

        remaining_speed = max(1.0 - self._gap / FORGET_S, 0.0)
        if self._motion.slows_in_gaps:
            self._slow_down(self._rate_before_gap * remaining_speed)
        elif remaining_speed == 0.0:
            self._slow_down(0.0)

    def _slow_down(self, rate: float) -> None:
        """Lower the rate at once, as the arm has been braked."""
        self._guard.scale_speed(rate / self._rate if self._rate else 0.0)
        self._rate = rate
        self.slowed = True

    def _count_period(self, *, lacks_state: bool) -> None:
        """Count a period of a motion, unless the controller has stopped it.

        Args:
            lacks_state: Whether nothing could be sent in it because the newest state was too old.

        Raises:
            LateStates: Too many periods lacked a state.
        """
        is_moving = self._motion is not None and self._is_playing()
        if is_moving and speed_factor(self._states.newest) > 0.0:
            self._states.supply.count(lacks_state=lacks_state)

    # The state of the arm

    def _is_playing(self) -> bool:
        """Return whether the program runs, and is not paused."""
        return bool(self._states.newest["runtime_state"] == RuntimeState.PLAYING)

    def _check_state(self) -> None:
        """Raise if states are stale, the arm has stopped, or its speed is scaled unexpectedly."""
        # Remember a gap in which the script's watchdog may have ended the script: the error will
        # name the gap.
        gap = self._clock.monotonic() - self._last_sent
        if self._hold is not None and gap > WATCHDOG_S:
            self._watchdog_gap = gap
            self._watchdog_gap_end = self._clock.monotonic()

        self._states.check_fresh()
        if self._states.stop is not None:
            raise self._stop_error()

        if self._motion is None:
            return
        if not self._is_playing() and not self._wait_in_pause:
            # The pause counts as what has stopped the arm.
            self._states.stop = self._states.newest
            raise self._stop_error()
        scaling = speed_factor(self._states.newest)
        if not self._follow_scaling and scaling < FULL_SPEED:
            raise SpeedScaled(self._host, scaling)

    def _check_tool(self) -> None:
        """Raise `ToolChanged` if the controller's tool is no longer that of the motion."""
        may_change = self._motion is not None and self._motion.payload_may_change
        self.tool.follow(self._states.newest, payload_may_change=may_change)

    def _stop_error(self) -> ArmStopped:
        """Return the error for the stop that was seen."""
        state = self._states.await_cause()
        is_paused = state["runtime_state"] in (RuntimeState.PAUSING, RuntimeState.PAUSED)
        kind = find_stop(state) or (ProgramPaused if is_paused else ProgramStopped)

        # The script's watchdog ends the script when setpoints stay away: name the gap if there was
        # one just before.
        if kind is ProgramStopped and self._watchdog_gap:
            if self._clock.monotonic() - self._watchdog_gap_end < WATCHDOG_EFFECT_S:
                return ProgramStopped(self._host, *read_modes(state), unsent=self._watchdog_gap)
        return kind(self._host, *read_modes(state))

    # What is sent

    def _next_due(self) -> int:
        """Return the controller's tick at which the next command is due."""
        return max(self._states.tick(), self._targets.due) + 1

    def _send(self) -> None:
        """Send the next setpoint of the motion, or the held one again if there is no motion."""
        if self.paused:
            self._wait_where_stopped()
            return

        # With feedforward the arm moves on for a while when a command is late. So the motion keeps
        # to the clock: it advances by all periods since the last command, and only the last of
        # their setpoints is sent.
        scaling = speed_factor(self._states.newest)
        due = self._next_due()
        periods = 1
        if self._feedforward and self._sequence:
            periods = min(due - self._targets.due, MAX_PREDICTED_CYCLES)

        # The setpoints that are not sent pass the guard and the inverse, too: both follow the
        # motion from period to period. The last setpoint of a motion is sent in any case.
        for _ in range(periods):
            setpoint, position = self._next(scaling)
            checked = self._guard.check(setpoint, self.measured)
            command = self._command_for(checked)
            if self._motion is None or self._motion.finished:
                break

        self._send_command(command, due)
        self._keep_sent(checked, command, due=due, position=position, scaling=scaling)

    def _command_for(self, setpoint: Array) -> Array:
        """Return the checked command that brings the arm to a setpoint, joint positions (n,), rad.

        Without feedforward it is the setpoint itself.

        Args:
            setpoint: The setpoint (n,), rad, as the guard passed it.
        """
        if not self._feedforward:
            return setpoint
        if self._inverse is None:
            self._inverse = InverseServoj(self._law, setpoint)
        return self._guard.check_command(self._inverse.command(setpoint), setpoint)

    def _next(self, scaling: float) -> tuple[Array, float]:
        """Return the setpoint (n,), rad, of the next cycle, and its position in the plan, periods.

        Args:
            scaling: The controller's speed scaling.
        """
        # After a pause, first lead the arm from where it was stopped back to the motion.
        if self._stopped_at is not None:
            assert self._hold is not None and self._motion is not None
            path = self._motion.lead_back(self._stopped_at, self._hold, self._period)
            self._return_path = deque(path)
            self._stopped_at = None
        if self._return_path:
            return self._return_path.popleft(), self._position

        # The rate follows the speed scaling by a ramp. It was slowed by a gap until it gets there.
        largest_change = SCALING_RAMP * self._period
        self._rate = max(
            min(scaling, self._rate + largest_change), self._rate - largest_change, 0.0
        )
        self.slowed = self.slowed and self._rate < scaling

        # Without a motion, hold the last setpoint.
        if self._motion is None:
            assert self._hold is not None
            return self._hold, self._position
        return self._motion.next(self._rate)

    def _wait_where_stopped(self) -> None:
        """Send, in a pause, the joint positions at which the controller has stopped its targets.

        A paused controller takes commands without following them. Sent like this, the command
        equals the targets, so that nothing jumps when the program is resumed.
        """
        assert self._motion is not None
        # The guard allows a step from the last setpoint that is possible from rest, so the command
        # may take a few periods to arrive.
        stop = np.array(self._states.newest["target_q"])
        self._slow_down(0.0)
        command = self._guard.check(self._guard.towards(stop), self.measured)

        # From here a slow motion leads back to the held setpoint after the pause. If none is held
        # yet, the program was paused before the first setpoint: there is nowhere to lead back to.
        self._stopped_at = command
        if self._hold is None:
            self._hold = command

        # The arm rests, so the inverse begins anew after the pause, and the targets stay where they
        # are whatever is sent.
        self._inverse = None
        due = self._next_due()
        self._send_command(command, due)
        self._targets.stop(stop)

        # The motion learns that it is paused, and says at which position in the plan it waits.
        position = self._motion.pause(command)
        self._keep_sent(command, command, due=due, position=position, scaling=0.0)

    def _send_command(self, command: Array, due: int) -> None:
        """Send a command, if the guard permits the motion that it causes.

        Args:
            command: Joint positions (n,), rad.
            due: The controller's tick at which it is due.

        Raises:
            GuardViolation: The command would move the arm too fast; it was not sent.
            ArmStopped: The link no longer takes commands.
        """
        predicted = self._targets.predict(command, due)
        if self._motion is not None and self._is_playing():
            self._guard.check_predicted(predicted.qd[0])
            if self._feedforward:
                self._guard.check_acceleration(predicted.qdd[0])

        self._last_sent = self._clock.monotonic()
        if not self._link.servo(command):
            # The next states show the cause.
            raise self._stop_error()

        # The command was sent: the targets move as predicted, and a gap is over.
        self._targets.advance(command, due, predicted)
        self._gap = 0.0
        self._rate_before_gap = self._rate

    def _keep_sent(
        self, setpoint: Array, command: Array, *, due: int, position: float, scaling: float
    ) -> None:
        """Expect the state at which a setpoint that was sent is due.

        Args:
            setpoint: The setpoint (n,), rad, as the guard passed it: it is held after the motion.
            command: The command (n,), rad, that was sent for it.
            due: The controller's tick at which it is due.
            position: Position of the setpoint in the plan, in periods.
            scaling: The controller's speed scaling.
        """
        if self._stopped_at is None and not self._return_path:
            self._hold = setpoint
        if self._motion is None:
            return

        expected = SentSetpoint(
            due=due,
            sequence=self._sequence,
            position=position,
            sent=self._last_sent,
            command=command,
            scaling=scaling,
        )
        self._states.samples.waiting.append(expected)
        self._sequence += 1
        self._position = position
        if self._motion.finished:
            self._motion = None
