"""A live session: an arm that follows what it is given, at any rate, within its limits, and records it all."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pinocchio as pin
from numpy.typing import ArrayLike

from simbridge.backends.backend import ArmState, cause_of
from simbridge.backends.ending import signals_wait
from simbridge.errors import Cause as EndCause
from simbridge.errors import Interrupted, InvalidParameter, SimbridgeError
from simbridge.ik.targets import Target, as_joints
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import SessionRecord
from simbridge.robot.arm_drawing import draw_arm
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.running.run_ending import (
    StoppedAtTheEnd,
    describe_rest,
    reportable_error,
    stop_at_the_end,
)
from simbridge.running.run_samples import log_facts
from simbridge.running.signals import (
    SignalReceived,
    describe_signal,
    end_on_signals,
    is_interrupt,
    signal_number,
)
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
_RECORD = 0.01
# For an order to be taken, and for the arm to come to rest, s.
_ENGAGE_TIMEOUT, _REST_TIMEOUT = 2.0, 10.0
# How often a wait looks whether the arm has been stopped, s.
WAIT_POLL_S = 0.01
NOT_BEGUN = "the session has not begun: use it as in `with simbridge.live(...) as session:`"


class NotEngaged(SimbridgeError, RuntimeError):
    """A live arm cannot be moved now; reason: why, such as "the session has ended"."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The arm is not engaged: {reason}.")


@dataclass(frozen=True)
class LiveStatus:
    """How a session is.

    Attributes:
        state: "idle", "engaged", "tracking", "braking", "holding", "paused" or "ended".
        causes: What slows the arm down or holds it, such as "joint_velocity wrist_3 0.90" or "stale 0.31 s".
        speed_factor: Share of the controller's full speed, 0 to 1.
        latency: Median time from the newest inputs to their commands, s; None before the first.
        input_age: How long ago the newest input was given, s; None before the first.
        error: What stopped the arm last; None once it is engaged again.
    """

    state: str
    causes: tuple[str, ...] = ()
    speed_factor: float = 1.0
    latency: float | None = None
    input_age: float | None = None
    error: SimbridgeError | None = None


class LiveSession:
    """A live session; `live` makes it. A context manager: leaving it brings the arm to rest and writes the report.

    Inputs return at once, and the newest counts: they may come from any thread, at any rate. One that is no pose, or
    not finite, raises InvalidParameter, and the arm goes on with the one before. Inputs to an arm that is not engaged
    move nothing; they are recorded as rejected.

    Attributes:
        robot: The arm.
        period: Control period, s.
        begins_at: Joint positions (n,), rad: where the arm was when the session was made.
        before_report: Called when the arm is at rest and the record is closed, before the summary and the report are
            made, which may take a while: to release a device, or to say what is being done.
    """

    def __init__(
        self,
        driver: LiveDriver,
        robot: Robot,
        record: Callable[[], SessionRecord],
        finish: Callable[[RunDirectory, BaseException | None, bool], None],
        out: Path | None,
        *,
        begins_at: Array,
        report: bool,
    ) -> None:
        self.robot = robot
        self.period = driver.period
        self.begins_at = begins_at
        self.before_report: Callable[[], object] = lambda: None
        self._driver = driver
        self._make_record = record
        self._finish = finish
        self._out = out
        self._report = report

        # Begins and ends the loop; nothing waits for a disk under it.
        self._control = threading.RLock()
        # Writes the record. Inputs take neither this nor the one before.
        self._recording = threading.RLock()
        # Between the caller's threads only.
        self._giving = threading.Lock()

        # The numbers of the newest input and of the engagement, from 1.
        self._number = 0
        self._engagement = 0
        # When the newest input was given, s.
        self._sent: float | None = None
        # The largest fraction of full speed that the caller allows.
        self._max_speed = 1.0
        # The clock of a stepped session, s.
        self._now = 0.0

        # The newest state of the arm, and what stopped it last.
        self._state: ArmState | None = None
        self._error: SimbridgeError | None = None
        # What made the record impossible: the arm must not go on without.
        self._failure: BaseException | None = None
        # The error of these that the caller was told last.
        self._raised: BaseException | None = None
        # Whether the session has ended, and what ended it early.
        self._ended = False
        self._ended_by: BaseException | None = None

        # The record, and the thread that keeps it up to date.
        self._record: LiveRecorder | None = None
        self._thread: threading.Thread | None = None
        self._stop_recording = threading.Event()

    @property
    def directory(self) -> Path:
        """The run directory."""
        return self._directory.path

    @property
    def _recorder(self) -> LiveRecorder:
        if self._record is None:
            raise NotEngaged(NOT_BEGUN)
        return self._record

    def __enter__(self) -> LiveSession:
        if self._record is not None:
            raise NotEngaged("a session can be entered once; create another")
        self._signals = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._signals)
            self._signals.enter_context(end_on_signals())
            # Reading them takes a while: not once the arm is under control.
            drawing = draw_arm(self.robot)
            self._driver.open()
            stack.callback(self._driver.end)
            record = self._make_record()
            self._directory = RunDirectory.create(self._out, record.scenario.name)
            self._directory.write_settings(record)
            self._directory.write_meshes(drawing)
            names = tuple(self.robot.joint_names)
            self._record = LiveRecorder(self._directory, names, self.period, log_facts(record))
            stack.pop_all()
        if not isinstance(self._driver, SteppedDriver):
            self._thread = threading.Thread(
                target=self._record_on, name="simbridge-recorder", daemon=True
            )
            self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with self._signals:
            try:
                # Whatever signals come: what has ended is complete.
                with signals_wait():
                    self._end_motion()
                    self._ended_by = self._ending_error(error)
                    self._close_record()
                    try:
                        self.before_report()
                    finally:
                        # Also where nobody reads what it prints, or a device cannot be closed.
                        self._finish(self._directory, self._ended_by, self._report)
            except SignalReceived as later:
                # One that had ended the session is known by then.
                if error is None:
                    raise self._interrupted(
                        later, "The session is complete.", "completed"
                    ) from None

            if isinstance(self._ended_by, StoppedAtTheEnd):
                raise self._ended_by from None
            if is_interrupt(error):
                words = f"The session was {describe_signal(error)}."
                if self._ended_by is not error:
                    words = f"{self._ended_by} Then it was {describe_signal(error)}."
                raise self._interrupted(
                    error, words, cause_of(self._ended_by, self._driver.ending)
                ) from None
            if isinstance(error, Exception) and not isinstance(error, SimbridgeError):
                raise self._unforeseen(error) from error
            if error is None and self._failure is not None:
                raise self._failure

    def _unforeseen(self, error: Exception) -> SimbridgeError:
        """Return the error that carries the end of a session that the caller's own error ended."""
        unforeseen = reportable_error(error, "session")
        unforeseen.aftermath = describe_rest(self._driver.ending)
        unforeseen.run_directory = self._directory.path
        return unforeseen

    def _end_motion(self) -> None:
        """Bring the arm to rest, first of all: the record may wait for a disk."""
        self._ended = True
        with self._control:
            self._driver.end()
        self._stop_recording.set()
        if self._thread is not None:
            self._thread.join()

    def _close_record(self) -> None:
        """Record what is left, and close the files."""
        # A record that failed has said so, and holds what was recorded until then.
        with (
            contextlib.suppress(SimbridgeError)
            if self._failure is not None
            else contextlib.nullcontext()
        ):
            self._drain()
            self._recorder.event(self._clock(), "ended", lost_in_log=self._recorder.lost)
            self._recorder.close()

    def _ending_error(self, error: BaseException | None) -> BaseException | None:
        """The error that ended the session early, or stopped the arm last, also while the session was being ended."""
        known = self._failure or self._error
        if known is None and (error is None or is_interrupt(error)):
            words = "" if error is None else f"The session was {describe_signal(error)}."
            known = self._error = stop_at_the_end(self._driver.ending, words)
        return known if is_interrupt(error) and known is not None else error or known

    def _interrupted(self, error: KeyboardInterrupt, words: str, cause: EndCause) -> Interrupted:
        """The error for a signal that ended the session, or came while it ended."""
        interrupted = Interrupted(
            f"{words} {describe_rest(self._driver.ending)}", signal_number(error)
        )
        interrupted.cause, interrupted.run_directory = cause, self._directory.path
        return interrupted

    def report(self) -> None:
        """Write summary.json and report.html, after the end of a session that was opened with report=False.

        Raises:
            OutputError: A file cannot be written.
        """
        self._finish(self._directory, self._ended_by, True)

    def _clock(self) -> float:
        return self._now if isinstance(self._driver, SteppedDriver) else time.monotonic()

    def engage(self) -> None:
        """Let inputs move the arm, which is at rest; after a stop, from its measured joints. On `real` this asks.

        Raises:
            NotEngaged: It is not possible now: the program is paused, or the session has ended.
            SimbridgeError: Why the arm may not move.
        """
        with self._control:
            if self._ended:
                raise NotEngaged("the session has ended")
            if self._failure is not None:
                raise self._failure
            if (
                self._recorder.paused
                and self._driver.asks
                and self._phase() is not LivePhase.PAUSED
            ):
                # A person paused it, and may be at the arm: what recovers from a stop asks.
                self._driver.end()
                self._driver.channel = None
            if not self._loops:
                self._driver.begin()
                with self._recording:
                    self._recorder.began(self._clock(), self._driver.subjects)
            if (last := self.newest) is not None and last.phase is LivePhase.PAUSED:
                raise NotEngaged("the program is paused at the pendant: resume it there first")
            self._engagement += 1
            self._error, self._recorder.paused = None, False
            if self._max_speed < 1.0:
                self._driver.order(Order.SPEED, value=self._max_speed)
            self._driver.order(Order.ENGAGE, self._engagement, self._number)
        try:
            self._await(
                lambda: self._phase() is not LivePhase.IDLE,
                _ENGAGE_TIMEOUT,
                "the loop did not answer",
            )
        except NotEngaged:
            # It may answer later, and must not move then.
            self._order(Order.DISENGAGE)
            raise

    def disengage(self) -> None:
        """Brake within limits, and return when the arm is at rest. Nothing moves until `engage`."""
        self._order(Order.DISENGAGE)
        if self._driver.channel is not None:
            self._await(
                lambda: self._phase() is LivePhase.IDLE,
                _REST_TIMEOUT,
                "the arm did not come to rest",
            )

    def halt(self, cause: str = "") -> None:
        """Brake within limits and hold; the next input of this engagement goes on. The record names the cause."""
        self._order(Order.HALT)
        self.note("halt", cause=cause)

    def slow_down(self, share: float) -> None:
        """Move at most at this share of full speed, 0 to 1, whatever the controller's slider says; at 0 the arm holds.

        Raises:
            InvalidParameter: It is no such share.
        """
        if not 0.0 <= share <= 1.0:
            raise InvalidParameter("share of full speed", share, "from 0 to 1")
        self._max_speed = share
        self._order(Order.SPEED, share)

    @property
    def _loops(self) -> bool:
        return self._driver.channel is not None and bool(self._driver.subjects)

    def _order(self, order: Order, value: float = 0.0) -> None:
        # Without a lock: nothing may keep an arm from being halted.
        if self._loops:
            self._driver.order(order, self._engagement, self._number, value)

    def _phase(self) -> LivePhase:
        last = self.newest
        return (
            last.phase
            if last is not None and last.engagement == self._engagement
            else LivePhase.IDLE
        )

    def _await(self, reached: Callable[[], bool], timeout: float, reason: str) -> None:
        """Wait for the loop; on a clock of the caller's it answers in the next period."""
        if isinstance(self._driver, SteppedDriver):
            return
        deadline = time.monotonic() + timeout
        while not reached():
            error = self._error or self._failure
            if error is not None:
                self._raised = error
                raise error
            if time.monotonic() > deadline:
                raise NotEngaged(f"{reason} within {timeout:g} s")
            time.sleep(0.5 * self.period)

    def pose(self, target: Target, *, relative: bool = False) -> None:
        """Go to a pose of the TCP in base_link; or, relative, to that pose from the one at `engage`."""
        self._give("pose", target, lambda: pose_values(target), relative=bool(relative))

    def twist(self, twist: ArrayLike, frame: TwistFrame = "base_link") -> None:
        """Move the TCP at a twist (6,), m/s and rad/s, in the axes of base_link, base (the pendant's) or the tool."""
        self._give("twist", twist, lambda: twist_values(twist, frame), frame=frame)

    def jog(self, velocity: ArrayLike) -> None:
        """Move the joints at velocities (n,), rad/s."""
        self._give("jog", velocity, lambda: jog_values(velocity, self.robot.n))

    def joints(self, q: ArrayLike) -> None:
        """Go to joint positions (n,), rad."""
        self._give("joints", q, lambda: as_joints(q, self.robot.n))

    def follow(self, times: ArrayLike, targets: Sequence[Target] | ArrayLike) -> None:
        """Follow a chunk: poses or joint positions due at times (K,), s from now; it replaces one before."""
        n, jump = self.robot.n, self._driver.setup.options.max_jump
        self._give(chunk_kind(targets, n), targets, lambda: chunk_values(times, targets, n, jump))

    def _give(
        self, kind: InputKind, given: Any, checked: Callable[[], Array], **facts: Any
    ) -> None:
        with self._giving:
            if self._ended:
                raise NotEngaged("the session has ended")
            sent = self._clock()
            try:
                values = checked()
            except SimbridgeError as error:
                self._recorder.given(
                    InputRecord(
                        kind,
                        sent,
                        plain_numbers(given),
                        fate="rejected",
                        why=str(error),
                        received=sent,
                    )
                )
                raise
            self._number, self._sent = self._number + 1, sent
            made = Input(kind, values, self._number, self._engagement, sent=sent, **facts)
            record, channel = input_record(made), self._driver.channel
            if channel is None:
                record.fate, record.why, record.received = "rejected", "not_engaged", sent
            self._recorder.given(record)
            if channel is not None:
                channel.post(made)

    def wait(self, seconds: float) -> None:
        """Let time pass: the wall's, or the clock of a session with realtime=False, which nothing else moves.

        That clock moves by whole periods, rounded up. Other threads may give inputs meanwhile. An
        error that has stopped the arm ends the wait, and is raised once.

        Args:
            seconds: s.

        Raises:
            InvalidParameter: It is no time, such as a negative one.
            NotEngaged: The session has not begun, or has ended meanwhile.
            SimbridgeError: What has stopped the arm, here or since the last call.
        """
        if not 0.0 <= seconds < math.inf:
            raise InvalidParameter("time", f"{seconds} s", "finite and not negative")

        if isinstance(self._driver, SteppedDriver):
            self._raise_end()
            # A time that is whole periods, up to rounding, is no period more.
            self._step(self._driver, math.ceil(seconds / self.period - 1e-6))
            self._raise_end()
            return

        deadline = time.monotonic() + seconds
        while True:
            self._raise_end()
            remaining = deadline - time.monotonic()
            if remaining <= 0.0:
                return
            time.sleep(min(remaining, WAIT_POLL_S))

    def _step(self, driver: SteppedDriver, count: int) -> None:
        """Move the clock by so many periods, or until something stops the arm."""
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
        """The newest state of the arm; None before the first engagement."""
        return self._state

    @property
    def newest(self) -> Period | None:
        """The newest period of the loop: target, solution, setpoint, causes; None before the first engagement."""
        channel, subjects = self._driver.channel, self._driver.subjects
        return channel.last(subjects) if channel is not None and subjects else None

    @property
    def tool(self) -> pin.SE3:
        """The TCP in base_link at the last setpoint; before the first engagement where the arm was (`begins_at`)."""
        last = self.newest
        return tool_frame(self.robot, self.begins_at if last is None else last.setpoint)

    @property
    def status(self) -> LiveStatus:
        """How the session is now."""
        age = None if self._sent is None else self._clock() - self._sent
        failed = self._failure if isinstance(self._failure, SimbridgeError) else None
        latency, error = self._recorder.latency, self._error or failed
        last = self.newest
        if self._ended or last is None:
            return LiveStatus("ended" if self._ended else "idle", (), 1.0, latency, age, error)
        standstill = self._standstill(last)
        if standstill is not None:
            # What the last period reported holds no more: nothing moves the arm until the loop goes on.
            at_rest = last.phase in (LivePhase.IDLE, LivePhase.ENGAGED, LivePhase.PAUSED)
            state = last.phase.shown if at_rest else LivePhase.HOLDING.shown
            return LiveStatus(state, (standstill.text,), last.rate, latency, age, error)
        causes = tuple(cause.text for cause in last.causes)
        return LiveStatus(last.phase.shown, causes, last.rate, latency, age, error)

    def _standstill(self, last: Period) -> LiveCause | None:
        """The standstill of a loop that has not gone on from its last period, in its solver or for another reason.

        The process may be halted, or does not get to run. A loop that has not begun, as while it compiles, has no last
        period.
        """
        channel = self._driver.channel
        if channel is None or isinstance(self._driver, SteppedDriver):
            return None
        duration = time.monotonic() - last.now
        if duration <= STANDSTILL:
            return None
        return LiveCause("solver" if channel.solving[0] else "loop", "", duration)

    def _record_on(self) -> None:
        while not self._stop_recording.wait(_RECORD):
            try:
                self._drain()
            except BaseException as error:  # a full disk, a bug: the arm must not go on unrecorded
                self._failure = error
                with self._control:
                    self._driver.end()
                    self._driver.channel = None
                return

    def _drain(self) -> None:
        """Take what has happened since the last time, what has stopped the arm too, and then record it."""
        with self._control:
            channel, ring, subjects = self._driver.channel, self._driver.ring, self._driver.subjects
            periods, states, stopped, failed = [], [], None, False
            if channel is not None and ring is not None and subjects:
                # States first: the period of each was written before it arrived.
                states, periods = (
                    list(ring.new_states(self.period)),
                    list(channel.periods(subjects)),
                )
                try:
                    stopped = None if self._ended else self._driver.poll(states)
                except SimbridgeError as error:
                    stopped, failed = error, True
                    states += ring.new_states(self.period)
                    periods += channel.periods(subjects)
                    self._driver.channel = self._driver.ring = None
                self._recorder.lost += channel.overwritten
                channel.overwritten = 0
            self._state, self._error = states[-1] if states else self._state, stopped or self._error
        with self._recording:
            self._recorder.take(periods, states)
            while self._driver.payload_changes:
                self._recorder.event(
                    self._clock(), "payload", **self._driver.payload_changes.pop(0)
                )
            if failed:
                self._recorder.phase = LivePhase.IDLE
            if stopped is not None:
                self._recorder.event(
                    self._clock(), "stopped", cause=stopped.cause, message=str(stopped)
                )
