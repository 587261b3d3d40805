"""A live session: an arm follows inputs of any rate within its limits, and all is recorded."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pinocchio as pin
from numpy.typing import ArrayLike

from simbridge.backends.backend import ArmState
from simbridge.backends.signal_shield import shield_from_signals
from simbridge.errors import Interrupted, InvalidParameter, SimbridgeError, UnforeseenError
from simbridge.ik.targets import Target, as_joints
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import SessionRecord
from simbridge.recording.servo_description import extrapolated_gain
from simbridge.robot.arm_drawing import draw_arm
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.running.run_ending import (
    EarlyEnd,
    StoppedAtTheEnd,
    describe_rest,
    explain_early_end,
    stop_at_the_end,
)
from simbridge.running.run_samples import log_facts
from simbridge.running.signals import (
    SignalReceived,
    end_on_signals,
    is_interrupt,
    signal_number,
)
from simbridge.servo.extrapolation import describe_extrapolation
from simbridge.sessions.causes import STANDSTILL, LiveCause
from simbridge.sessions.channel import Period
from simbridge.sessions.driver import LiveDriver, SteppedDriver
from simbridge.sessions.inputs import (
    Input,
    InputKind,
    TwistFrame,
    chunk_kind,
    chunk_values,
    jog_values,
    pose_values,
    twist_values,
)
from simbridge.sessions.phases import LivePhase, Order
from simbridge.sessions.record import InputRecord
from simbridge.sessions.recorder import LiveRecorder, input_record, plain_numbers

# How often the record is brought up to date, s.
RECORD_INTERVAL_S = 0.01
# How long the loop may take to answer an engagement, s.
ENGAGE_TIMEOUT_S = 2.0
# How long the arm may take to come to rest, s.
REST_TIMEOUT_S = 10.0
# How often a wait checks whether the arm has been stopped, s.
WAIT_POLL_S = 0.01
# A wait may exceed whole periods by this fraction of one without taking one more: rounding.
PERIOD_ROUNDING = 1e-6
NOT_BEGUN = "the session has not started: use it as in `with simbridge.live(...) as session:`"
# Phases in which an arm rests, also where its loop stands still.
PHASES_AT_REST = (LivePhase.IDLE, LivePhase.ENGAGED, LivePhase.PAUSED)


class NotEngaged(SimbridgeError, RuntimeError):
    """A live arm cannot be moved now.

    Attributes:
        reason: Why, such as "the session has ended".
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The arm is not engaged: {reason}.")


@dataclass(frozen=True)
class LiveStatus:
    """The state of a live session at one moment.

    Attributes:
        state: "idle", "engaged", "tracking", "braking", "holding", "paused" or "ended".
        causes: What slows the arm down, holds it or refuses its inputs, the strongest first.
            `str(cause)` is the cause in words, such as "stale 0.31 s".
        speed_factor: Fraction of the controller's full speed, 0 to 1.
        latency: Median time from the newest inputs to their commands, s; None before the first.
        input_age: How long ago the newest input was given, s; None before the first.
        error: What stopped the arm last; None once it is engaged again.
    """

    state: str
    causes: tuple[LiveCause, ...] = ()
    speed_factor: float = 1.0
    latency: float | None = None
    input_age: float | None = None
    error: SimbridgeError | None = None


@dataclass
class _News:
    """The states and periods of the loop since the last look, and its stop if there was one.

    Attributes:
        states: The states of the arm, oldest first.
        periods: The periods of the loop, oldest first.
        stop: The error that has stopped the arm; None if nothing did.
        loop_ended: Whether that error has ended the loop, too.
    """

    states: list[ArmState] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    stop: SimbridgeError | None = None
    loop_ended: bool = False


class LiveSession:
    """A live session; `live` makes it.

    A context manager: leaving it brings the arm to rest and writes the report.

    Inputs return at once, and the newest counts: they may come from any thread, at any rate. An
    input that is not a pose, or not finite, raises InvalidParameter, and the arm goes on with the
    input before. Inputs to an arm that is not engaged move nothing; they are recorded as rejected.

    Attributes:
        robot: The arm.
        period: Control period, s.
        begins_at: Joint positions (n,), rad: where the arm was when the session was made.
        servo_extrapolation: Once the session has begun, a sentence on the gain at which the law of
            its simulated servoj is extrapolated; "" where it is not.
        before_report: Function that is called when the arm is at rest and the record is closed,
            before the summary and the report are made, which may take a while: to release a
            device, or to say what is being done.
    """

    def __init__(
        self,
        driver: LiveDriver,
        robot: Robot,
        *,
        record: Callable[[], SessionRecord],
        finish: Callable[[RunDirectory, EarlyEnd | None, bool], None],
        out: Path | None,
        begins_at: Array,
        report: bool,
    ) -> None:
        self.robot = robot
        self.period = driver.period
        self.begins_at = begins_at
        self.servo_extrapolation = ""
        self.before_report: Callable[[], object] = lambda: None
        self._driver = driver
        self._make_record = record
        self._finish = finish
        self._out = out
        self._report = report

        # Held while the loop begins or ends; who holds it never waits for a disk.
        self._control_lock = threading.RLock()
        # Held while the record is written. Who gives an input takes neither of these two.
        self._record_lock = threading.RLock()
        # Held while an input is posted: the caller's threads take turns.
        self._input_lock = threading.Lock()

        # Number of the newest input, from 1; 0 before the first.
        self._number = 0
        # Number of the present engagement, from 1; 0 before the first.
        self._engagement = 0
        # When the newest input was given, s of the session's clock; None before the first.
        self._sent: float | None = None
        # The largest fraction of full speed that the caller allows.
        self._max_speed = 1.0
        # The clock of a stepped session, s.
        self._now = 0.0

        # The newest state of the arm; None before the first.
        self._state: ArmState | None = None
        # The error that stopped the arm last; None once it is engaged again.
        self._error: SimbridgeError | None = None
        # The error that made the record impossible: the arm must not go on without one.
        self._failure: BaseException | None = None
        # The one of these two errors that was raised last: each is raised to the caller once.
        self._raised: BaseException | None = None
        # Whether the session has ended.
        self._ended = False
        # What ended the session early, or stopped the arm last; None if nothing did.
        self._early_end: EarlyEnd | None = None

        # The record; None before the session begins.
        self._record: LiveRecorder | None = None
        # The thread that keeps the record up to date; None in a stepped session.
        self._thread: threading.Thread | None = None
        # Set when that thread is to end.
        self._stop_recording = threading.Event()

    def __repr__(self) -> str:
        if self._record is None:
            return f"<LiveSession of {self.robot.name}: not begun>"
        return f"<LiveSession of {self.robot.name}: {self.status.state}, in {self.directory}>"

    @property
    def directory(self) -> Path:
        """The run directory."""
        return self._directory.path

    @property
    def _recorder(self) -> LiveRecorder:
        """The record of a session that has begun; raises NotEngaged before."""
        if self._record is None:
            raise NotEngaged(NOT_BEGUN)
        return self._record

    def __enter__(self) -> LiveSession:
        if self._record is not None:
            raise NotEngaged("a session can be entered once; create another")
        # Signals end the session from here on, until `__exit__` has written everything.
        self._signals = contextlib.ExitStack()

        # If a step fails, the steps before it are undone.
        with contextlib.ExitStack() as undo:
            undo.enter_context(self._signals)
            self._signals.enter_context(end_on_signals())

            # Read the meshes first: that takes a while, in which no arm should be under control.
            drawing = draw_arm(self.robot)
            self._driver.open()
            undo.callback(self._driver.end)

            # The run directory, with what is known before the arm moves.
            record = self._make_record()
            self._directory = RunDirectory.create(self._out, record.scenario.name)
            self._directory.write_settings(record)
            self._directory.write_meshes(drawing)
            names = tuple(self.robot.joint_names)
            self._record = LiveRecorder(self._directory, names, self.period, log_facts(record))
            gain = extrapolated_gain(record.backend)
            if gain is not None:
                self.servo_extrapolation = describe_extrapolation([gain])

            # All steps have succeeded: there is nothing to undo.
            undo.pop_all()

        # A stepped session is recorded by what moves its clock.
        if not isinstance(self._driver, SteppedDriver):
            self._thread = threading.Thread(
                target=self._keep_recording, name="simbridge-recorder", daemon=True
            )
            self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # Leaving this block gives the signals back to the program.
        with self._signals:
            try:
                # Signals that come in this inner block are raised at its end as SignalReceived, so
                # that the record and the report are always completed.
                with shield_from_signals():
                    self._end_motion()
                    self._early_end = self._explain_end(error)
                    self._close_record()
                    try:
                        self.before_report()
                    finally:
                        # The summary is written even if the caller's function fails, for example
                        # because its output goes to a closed pipe, or a device cannot be closed.
                        self._finish(self._directory, self._early_end, self._report)
            except SignalReceived as signal:
                # If an earlier signal ended the session, that one is `error`: it is reported below.
                if error is None:
                    raise self._interrupted_end(signal) from None
            self._raise_reported(error)

    def _end_motion(self) -> None:
        """Bring the arm to rest, first of all: the record may wait for a disk."""
        self._ended = True
        with self._control_lock:
            self._driver.end()
        self._stop_recording.set()
        if self._thread is not None:
            self._thread.join()

    def _explain_end(self, error: BaseException | None) -> EarlyEnd | None:
        """Tell what ended the session early, or stopped the arm last; None if nothing did.

        Args:
            error: What left the session's block; None if that was left at its end.
        """
        stop = self._failure or self._error
        if error is None:
            # The controller may also have stopped the arm while the session was being ended.
            error = stop or stop_at_the_end(self._driver.ending, "")
            if error is None:
                return None

        # An error of the block is what ended the session, whatever had stopped the arm before.
        before = stop if is_interrupt(error) else None
        end = explain_early_end(
            error, self._driver.ending, self._directory, subject="session", before=before
        )
        if isinstance(end.error, StoppedAtTheEnd):
            self._error = end.error
        return end

    def _close_record(self) -> None:
        """Record what is left, and close the files."""
        try:
            self._drain()
            self._recorder.event(self._clock(), "ended", lost_in_log=self._recorder.lost)
            self._recorder.close()
        except SimbridgeError:
            # A record that failed has said so, and holds what was recorded until then.
            if self._failure is None:
                raise

    def _interrupted_end(self, signal: SignalReceived) -> Interrupted:
        """Return the error for a signal that came while the session ended."""
        ending = self._driver.ending
        interrupted = Interrupted(
            f"The session is complete. {describe_rest(ending)}", signal_number(signal)
        )
        interrupted.cause = "completed"
        interrupted.run_directory = self._directory.path
        return interrupted

    def _raise_reported(self, error: BaseException | None) -> None:
        """Raise the error that carries the session's end, unless the one that left its block does.

        Args:
            error: What left the session's block; None if that was left at its end.
        """
        end = self._early_end
        if end is None or end.reported is error:
            return
        # What had stopped the arm was raised then, and the caller has left the block nevertheless.
        if (
            error is None
            and end.error is self._error
            and not isinstance(end.error, StoppedAtTheEnd)
        ):
            return
        # The program is being ended, as by sys.exit.
        if error is not None and not isinstance(error, (Exception, KeyboardInterrupt)):
            return
        is_foreign = isinstance(end.reported, UnforeseenError)
        raise end.reported from (end.error if is_foreign else None)

    def report(self) -> None:
        """Write summary.json and report.html of a session that was opened with report=False.

        After its end.

        Raises:
            OutputError: A file cannot be written.
        """
        self._finish(self._directory, self._early_end, True)

    def _clock(self) -> float:
        """Return the time, s, of the host's monotonic clock or of a stepped session's."""
        return self._now if isinstance(self._driver, SteppedDriver) else time.monotonic()

    def engage(self) -> None:
        """Let inputs move the arm, which is at rest; after a stop, from its measured joints.

        On `real` this asks.

        Raises:
            NotEngaged: Engaging is not possible now: the program is paused, or the session has
                ended.
            SimbridgeError: One of its subclasses: why the arm may not move.
        """
        with self._control_lock:
            if self._ended:
                raise NotEngaged("the session has ended")
            if self._failure is not None:
                raise self._failure

            # The person who had paused the program may be at the arm. Where somebody is asked, end
            # the loop: the next one begins as after a stop, which asks for confirmation.
            was_paused = self._recorder.paused and self._phase() is not LivePhase.PAUSED
            if was_paused and self._driver.asks:
                self._driver.end()
                self._driver.channel = None

            # Begin a loop, before the first engagement and after one that has ended.
            if not self._has_loop:
                self._driver.begin()
                with self._record_lock:
                    self._recorder.begin_loop(self._clock(), self._driver.subjects)

            newest = self.newest
            if newest is not None and newest.phase is LivePhase.PAUSED:
                raise NotEngaged("the program is paused at the pendant: resume it there first")

            # Order the engagement, first at the speed that the caller allows. A new loop does not
            # know that, and inputs up to now are ignored.
            self._engagement += 1
            self._error = None
            self._recorder.paused = False
            if self._max_speed < 1.0:
                self._driver.order(Order.SPEED, value=self._max_speed)
            self._driver.order(Order.ENGAGE, self._engagement, self._number)

        # Wait until the loop has taken the order.
        try:
            self._await_loop(
                lambda: self._phase() is not LivePhase.IDLE,
                ENGAGE_TIMEOUT_S,
                "the loop did not answer",
            )
        except NotEngaged:
            # The loop may answer later, and the arm must not move then.
            self._order(Order.DISENGAGE)
            raise

    def disengage(self) -> None:
        """Brake within limits, and return when the arm is at rest. Nothing moves until `engage`."""
        self._order(Order.DISENGAGE)
        if self._driver.channel is not None:
            self._await_loop(
                lambda: self._phase() is LivePhase.IDLE,
                REST_TIMEOUT_S,
                "the arm did not come to rest",
            )

    def halt(self, cause: str = "") -> None:
        """Brake within limits and hold; the next input of this engagement goes on.

        Args:
            cause: Why, for the record.
        """
        self._order(Order.HALT)
        self.note("halt", cause=cause)

    def slow_down(self, share: float) -> None:
        """Move at most at a fraction of full speed, whatever the controller's slider says.

        Args:
            share: The fraction, 0 to 1; at 0 the arm holds.

        Raises:
            InvalidParameter: The fraction is not between 0 and 1.
        """
        if not 0.0 <= share <= 1.0:
            raise InvalidParameter("share of full speed", share, "from 0 to 1")
        self._max_speed = share
        self._order(Order.SPEED, share)

    @property
    def _has_loop(self) -> bool:
        """True once a loop has begun that takes orders."""
        return self._driver.channel is not None and bool(self._driver.subjects)

    def _order(self, order: Order, value: float = 0.0) -> None:
        """Pass an order on to the loop, if there is one."""
        # Without a lock: nothing may keep an arm from being halted.
        if self._has_loop:
            self._driver.order(order, self._engagement, self._number, value)

    def _phase(self) -> LivePhase:
        """Return the phase of the present engagement; idle until the loop has taken it."""
        newest = self.newest
        if newest is None or newest.engagement != self._engagement:
            return LivePhase.IDLE
        return newest.phase

    def _await_loop(self, is_reached: Callable[[], bool], timeout: float, reason: str) -> None:
        """Wait until the loop has done what it was asked for.

        Args:
            is_reached: Function that returns whether the wait is over.
            timeout: How long to wait, s.
            reason: What `NotEngaged` says has failed if it takes longer.

        Raises:
            NotEngaged: The loop took longer.
            SimbridgeError: The error that has stopped the arm meanwhile.
        """
        # A stepped session's loop answers in the next period, which only the caller begins.
        if isinstance(self._driver, SteppedDriver):
            return

        deadline = time.monotonic() + timeout
        while not is_reached():
            error = self._error or self._failure
            if error is not None:
                self._raised = error
                raise error
            if time.monotonic() > deadline:
                raise NotEngaged(f"{reason} within {timeout:g} s")
            time.sleep(0.5 * self.period)

    def pose(self, target: Target, *, relative: bool = False) -> None:
        """Go to a pose of the TCP.

        Args:
            target: The pose in base_link.
            relative: Whether it is relative to the pose at `engage` instead.
        """
        self._post("pose", target, lambda: pose_values(target), relative=bool(relative))

    def twist(self, twist: ArrayLike, frame: TwistFrame = "base_link") -> None:
        """Move the TCP at a twist.

        Args:
            twist: Velocity and angular velocity of the TCP (6,), m/s and rad/s.
            frame: Axes of the twist: those of base_link, base (the pendant's) or the tool.
        """
        self._post("twist", twist, lambda: twist_values(twist, frame), frame=frame)

    def jog(self, velocity: ArrayLike) -> None:
        """Move the joints at velocities (n,), rad/s."""
        self._post("jog", velocity, lambda: jog_values(velocity, self.robot.n))

    def joints(self, q: ArrayLike) -> None:
        """Go to joint positions (n,), rad."""
        self._post("joints", q, lambda: as_joints(q, self.robot.n))

    def follow(self, times: ArrayLike, targets: Sequence[Target] | ArrayLike) -> None:
        """Follow a chunk; it replaces one before.

        Args:
            times: When the targets are due (K,), s from now.
            targets: K poses, or joint positions (K, n), rad.
        """
        n = self.robot.n
        max_jump = self._driver.setup.options.max_jump
        self._post(
            chunk_kind(targets, n), targets, lambda: chunk_values(times, targets, n, max_jump)
        )

    def _post(
        self, kind: InputKind, raw_values: Any, convert: Callable[[], Array], **facts: Any
    ) -> None:
        """Post an input to the loop, and record it.

        Args:
            kind: The kind of the input.
            raw_values: The values as the caller passed them.
            convert: Function that returns the values as numbers, or raises the error that refuses
                them.
            facts: Further fields of `Input`.

        Raises:
            NotEngaged: The session has ended.
            SimbridgeError: The values are refused; that is recorded, too.
        """
        with self._input_lock:
            if self._ended:
                raise NotEngaged("the session has ended")

            # Refuse values that are not an input of this kind; the record says so.
            sent = self._clock()
            try:
                values = convert()
            except SimbridgeError as error:
                refused = InputRecord(
                    kind,
                    sent,
                    plain_numbers(raw_values),
                    fate="rejected",
                    why=str(error),
                    received=sent,
                )
                self._recorder.add_input(refused)
                raise

            self._number += 1
            self._sent = sent
            item = Input(kind, values, self._number, self._engagement, sent=sent, **facts)
            record = input_record(item)

            # If no loop runs that would refuse the input, it is refused here.
            channel = self._driver.channel
            if channel is None:
                record.reject(LiveCause.of("not_engaged"))
                record.received = sent

            # Record it before it is posted: the loop may take it at once, and the recorder then
            # looks for its record.
            self._recorder.add_input(record)
            if channel is not None:
                channel.post(item)

    def wait(self, seconds: float) -> None:
        """Let time pass, on the wall clock or on that of a session with realtime=False.

        Only this moves the clock of a session with realtime=False: by whole periods, rounded up.
        Other threads may give inputs meanwhile. An error that has stopped the arm ends the wait,
        and is raised once.

        Args:
            seconds: How long, s.

        Raises:
            InvalidParameter: The time is negative or not finite.
            NotEngaged: The session has not begun, or has ended meanwhile.
            SimbridgeError: The error that has stopped the arm, here or since the last call.
        """
        if not 0.0 <= seconds < math.inf:
            raise InvalidParameter("time", f"{seconds} s", "finite and not negative")

        # Without realtime: move the session's clock.
        if isinstance(self._driver, SteppedDriver):
            self._raise_end()
            period_count = math.ceil(seconds / self.period - PERIOD_ROUNDING)
            self._step(self._driver, period_count)
            self._raise_end()
            return

        # By the wall clock: sleep in short pieces, so that an error ends the wait.
        deadline = time.monotonic() + seconds
        while True:
            self._raise_end()
            remaining = deadline - time.monotonic()
            if remaining <= 0.0:
                return
            time.sleep(min(remaining, WAIT_POLL_S))

    def _step(self, driver: SteppedDriver, count: int) -> None:
        """Move the clock by a number of periods, or until something stops the arm."""
        # Without a loop there is no arm to move.
        if driver.channel is None:
            self._now += count * self.period
            return

        for _ in range(count):
            driver.step()
            self._now += self.period
            if driver.is_stopped:
                break
        self._drain()

    def _raise_end(self) -> None:
        """Raise that the session has not begun or has ended, or what has stopped the arm, once."""
        if self._record is None:
            raise NotEngaged(NOT_BEGUN)
        if self._ended:
            raise NotEngaged("the session has ended")

        error = self._failure or self._error
        if error is not None and error is not self._raised:
            self._raised = error
            raise error

    def note(self, name: str, **facts: Any) -> None:
        """Add an event of the caller's to the record, such as a button that was pressed."""
        self._recorder.note(self._clock(), name, facts)

    @property
    def state(self) -> ArmState | None:
        """The newest state of the arm; None until one has come after the first engagement."""
        return self._state

    @property
    def newest(self) -> Period | None:
        """The newest period of the loop: target, solution, setpoint, causes.

        None before the first engagement.
        """
        channel = self._driver.channel
        subjects = self._driver.subjects
        return channel.last(subjects) if channel is not None and subjects else None

    @property
    def tool(self) -> pin.SE3:
        """The TCP in base_link at the last setpoint; before the first one, at `begins_at`."""
        newest = self.newest
        return tool_frame(self.robot, self.begins_at if newest is None else newest.setpoint)

    @property
    def status(self) -> LiveStatus:
        """The state of the session now."""
        input_age = None if self._sent is None else self._clock() - self._sent
        latency = self._recorder.latency
        error = self._error
        if error is None and isinstance(self._failure, SimbridgeError):
            error = self._failure

        # The clock is read first: else a pause of this thread between the two would count as the
        # loop's.
        now = time.monotonic()
        newest = self.newest
        if self._ended or newest is None:
            state = "ended" if self._ended else "idle"
            causes: tuple[LiveCause, ...] = ()
            speed_factor = 1.0
        else:
            state = newest.phase.shown
            causes = newest.causes
            speed_factor = newest.rate
            standstill = self._standstill(newest, now)
            if standstill is not None:
                # The causes of the last period no longer hold: nothing moves the arm until the loop
                # goes on.
                causes = (standstill,)
                if newest.phase not in PHASES_AT_REST:
                    state = LivePhase.HOLDING.shown
        return LiveStatus(state, causes, speed_factor, latency, input_age, error)

    def _standstill(self, newest: Period, now: float) -> LiveCause | None:
        """Return the cause `solver` or `loop` if the loop has not gone on from its last period.

        The loop may be in its solver; or its process is halted, or does not get to run. A loop that
        has not begun, as while it compiles, has no last period.

        Args:
            newest: The last period.
            now: A time just before the last period was read, s (`time.monotonic`).

        Returns:
            The cause with how long the loop has stood still, s; None while the loop goes on.
        """
        channel = self._driver.channel
        if channel is None or isinstance(self._driver, SteppedDriver):
            return None
        duration = now - newest.now
        if duration <= STANDSTILL:
            return None
        return LiveCause.of("solver" if channel.solving[0] else "loop", "", duration)

    def _keep_recording(self) -> None:
        """Keep the record up to date until the session ends (the recorder's thread)."""
        while not self._stop_recording.wait(RECORD_INTERVAL_S):
            try:
                self._drain()
            except BaseException as error:  # a full disk, a bug: the arm must not go on unrecorded
                self._failure = error
                with self._control_lock:
                    self._driver.end()
                    self._driver.channel = None
                return

    def _drain(self) -> None:
        """Record what has happened since the last call."""
        with self._control_lock:
            news = self._take_news()
            if news.states:
                self._state = news.states[-1]
            if news.stop is not None:
                self._error = news.stop

        with self._record_lock:
            self._recorder.take(news.periods, news.states)
            while self._driver.payload_changes:
                change = self._driver.payload_changes.pop(0)
                self._recorder.event(self._clock(), "payload", **change)
            if news.loop_ended:
                self._recorder.phase = LivePhase.IDLE
            if news.stop is not None:
                self._recorder.event(
                    self._clock(), "stopped", cause=news.stop.cause, message=str(news.stop)
                )

    def _take_news(self) -> _News:
        """Collect new states and periods of the loop from the shared memory, and the arm's stop."""
        news = _News()
        channel = self._driver.channel
        ring = self._driver.ring
        subjects = self._driver.subjects
        if channel is None or ring is None or not subjects:
            return news

        # Take the states first: the period of each state was written before the state arrived, so
        # that none of them lacks its period.
        news.states += ring.new_states(self.period)
        news.periods += channel.periods(subjects)
        try:
            if not self._ended:
                news.stop = self._driver.poll(news.states)
        except SimbridgeError as error:
            # The loop has ended; take what it left until then.
            news.stop = error
            news.loop_ended = True
            news.states += ring.new_states(self.period)
            news.periods += channel.periods(subjects)
            self._driver.channel = None
            self._driver.ring = None
        self._recorder.count_lost(channel.overwritten)
        channel.overwritten = 0
        return news
