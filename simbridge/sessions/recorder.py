"""Records a live session: rows of the log, each input, and each change of state."""

from __future__ import annotations

import math
import statistics
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from simbridge.backends.backend import ArmState
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.samples import LiveSample
from simbridge.robot.conversion import floats
from simbridge.running.run_samples import measured_fields
from simbridge.sessions.causes import (
    KINDS,
    REFUSALS,
    STOPS,
    CauseRecord,
    cause_rows,
    index_subjects,
)
from simbridge.sessions.channel import Period
from simbridge.sessions.inputs import Fate, Input
from simbridge.sessions.phases import LivePhase, Order
from simbridge.sessions.record import EVENTS, INPUTS, InputRecord, JsonLines

# The most inputs that may wait to be recorded: half a minute at 1 kHz; and the most notes.
MAX_WAITING = 32_768
# The most numbers that are recorded of an input that is refused.
MAX_RECORDED_NUMBERS = 4096
# How many of the newest inputs count for the latency that is shown.
LATENCY_WINDOW = 100
# The index of an input's record until the state of its period has arrived.
AWAITS_STATE = -1

# The fate of an input, as it is recorded.
_FATES = {
    Fate.ACCEPTED: "accepted",
    Fate.LATE: "late",
    Fate.NOT_ENGAGED: "rejected",
    Fate.TOO_FAR: "rejected",
}


class LiveRecorder:
    """The record of a live session.

    Inputs and notes may be added at any time by any thread; the rest is called by one thread at a
    time.

    Args:
        directory: The session's run directory, into which it is recorded.
        joint_names: The joints' names (n), for the log.
        period: Control period, s.
        metadata: Facts about the session, for the log.

    Attributes:
        phase: The phase of the newest period.
        paused: Whether the program was paused since this was last set to False.
    """

    def __init__(
        self,
        directory: RunDirectory,
        joint_names: tuple[str, ...],
        period: float,
        metadata: Mapping[str, str],
    ) -> None:
        self._period = period
        self._log = LogWriter(
            directory.new_log_file(),
            joint_names=joint_names,
            period=period,
            metadata=metadata,
            live=True,
        )
        self._inputs = JsonLines(directory.path / INPUTS)
        self._events = JsonLines(directory.path / EVENTS)
        self.phase = LivePhase.IDLE
        self.paused = False

        # Inputs and notes that the caller's threads have added, and that the recorder has not taken
        # yet. Adding takes no lock, and is refused beyond `MAX_WAITING`: `add_input` and `note`.
        self._arrived: deque[InputRecord] = deque()
        self._notes: deque[dict[str, Any]] = deque()
        # How many inputs, notes and periods the record lacks. The lock is held only to count.
        self._lost = 0
        self._count_lock = threading.Lock()
        # Inputs that were taken and are not written yet, in order.
        self._unwritten: deque[InputRecord] = deque()

        # Period's index -> the period, while its state is expected.
        self._waiting: dict[int, Period] = {}
        # Period's index -> the input that was new in the period, while the period's state is
        # expected. Later periods use the same input until the next one.
        self._used: dict[int, InputRecord] = {}
        # Times from the newest inputs to their commands, s.
        self._latencies: deque[float] = deque(maxlen=LATENCY_WINDOW)

        # How many samples were written.
        self._samples = 0
        # The stamp of the last sample, s; a period before the first one's.
        self._stamp = -period
        # The controller's timestamp of the present loop's first state, s; None before it.
        self._first_timestamp: float | None = None
        # The stamp that this state got in the log, s.
        self._first_stamp = 0.0
        # When the first state of the session arrived, s of the host's clock; None before it.
        self._begin: float | None = None
        # The index of each name that subjects of causes may have.
        self._subjects: dict[str, int] = {}

    @property
    def lost(self) -> int:
        """Number of inputs, notes and periods that the record lacks, as it could not keep up."""
        return self._lost

    def count_lost(self, count: int) -> None:
        """Count inputs, notes or periods that the record lacks."""
        with self._count_lock:
            self._lost += count

    @property
    def latency(self) -> float | None:
        """Median time from the newest inputs to their commands, s; None before the first."""
        return statistics.median(self._latencies) if self._latencies else None

    def add_input(self, record: InputRecord) -> None:
        """Add an input, to be recorded with the next periods; where too many wait, it is lost."""
        if len(self._arrived) >= MAX_WAITING:
            self.count_lost(1)
            return
        self._arrived.append(record)

    def begin_loop(self, now: float, subjects: tuple[str, ...]) -> None:
        """Record that a loop has begun, whose periods count from 0 again.

        The event lists the kinds of causes and their subjects, which the log has by index.

        Args:
            now: When the loop began, s of the host's monotonic clock.
            subjects: The names that subjects of causes may have.
        """
        self.event(now, "began", causes=list(KINDS), subjects=list(subjects))
        self._subjects = index_subjects(subjects)

        # The states of the last loop's periods will no longer come.
        self._waiting.clear()
        for record in self._used.values():
            _forget_period(record)
        self._used.clear()
        self._first_timestamp = None

    def note(self, now: float, name: str, facts: Mapping[str, Any]) -> None:
        """Add a note of the caller's, to be recorded with the next periods.

        If too many wait, it is lost.

        Args:
            now: When the note was made, s of the session's clock.
            name: What is noted.
            facts: Further values of the note.
        """
        if len(self._notes) >= MAX_WAITING:
            self.count_lost(1)
            return
        self._notes.append({"at": now, "event": "note", "note": name, "facts": dict(facts)})

    def event(self, now: float, name: str, **facts: Any) -> None:
        """Record what happened at an instant, s of the host's monotonic clock."""
        self._events.write({"at": now, "event": name, **facts})

    def take(self, periods: list[Period], states: list[ArmState]) -> None:
        """Record what has appeared since the last call."""
        while self._arrived:
            self._unwritten.append(self._arrived.popleft())
        for period in periods:
            self._take_period(period)
        for state in states:
            self._take_state(state)
        while self._notes:
            self._events.write(self._notes.popleft())
        self._flush_inputs(final=False)

    def _take_period(self, period: Period) -> None:
        """Expect the state of a period; record its change of phase, and the fate of its input."""
        # Periods of an idle arm are not logged, but for the first: in it the arm came to rest.
        stays_idle = period.phase is self.phase is LivePhase.IDLE
        if not stays_idle or period.order is not Order.NONE:
            self._waiting[period.index] = period

        if period.phase is not self.phase:
            self.event(
                period.now,
                "state",
                before=self.phase.shown,
                after=period.phase.shown,
                cause=_cause_of_change(period),
            )
            self.phase = period.phase
            self.paused |= period.phase is LivePhase.PAUSED

        if period.number:
            for record in self._unwritten:
                if record.number == period.number:
                    self._settle_input(record, period)
                    break

    def _settle_input(self, record: InputRecord, period: Period) -> None:
        """Note what became of an input in the period that took it."""
        record.fate = _FATES[period.fate]
        record.received = period.now
        record.index = AWAITS_STATE
        if record.fate != "rejected":
            self._used[period.index] = record
        else:
            refusals = [cause for cause in period.causes if cause.kind in REFUSALS]
            record.reject(refusals[0])

    def _take_state(self, state: ArmState) -> None:
        """Write the sample of a state and its period."""
        index = round(state.plan_time / self._period)
        period = self._waiting.pop(index, None)

        # States come in order: the states of earlier periods that still wait were missed.
        missed_indices = [i for i in self._waiting if i < index]
        for missed in missed_indices:
            del self._waiting[missed]
            missed_input = self._used.pop(missed, None)
            if missed_input is not None:
                _forget_period(missed_input)
        if period is None:
            return

        # An input that was new in this period has its sample, and its command was sent.
        used_input = self._used.pop(index, None)
        if used_input is not None:
            used_input.index = self._samples
            used_input.command = state.host_sent
            if np.isfinite(state.host_sent):
                self._latencies.append(state.host_sent - used_input.sent)

        self._log.write(self._sample(period, state))
        self._samples += 1

    def _stamp_of(self, state: ArmState) -> float:
        """Return the stamp of a state's sample, s from the session's first state.

        Within a loop it follows the states' own clock. Each loop may have another one: the time
        between two loops is measured by the host's.
        """
        # The first state of a loop.
        if self._first_timestamp is None:
            if self._begin is None:
                self._begin = state.host_monotonic
            elapsed = round((state.host_monotonic - self._begin) / self._period) * self._period
            self._first_stamp = max(elapsed, self._stamp + self._period)
            self._first_timestamp = state.timestamp

        count = round((state.timestamp - self._first_timestamp) / self._period)
        return self._first_stamp + count * self._period

    def _sample(self, period: Period, state: ArmState) -> LiveSample:
        """Return the sample of a period and its state."""
        self._stamp = self._stamp_of(state)
        causes = cause_rows(period.causes, self._subjects)
        return LiveSample(
            index=self._samples,
            stamp=self._stamp,
            plan_time=self._stamp,
            target=period.target,
            solution=period.solution,
            setpoint=period.setpoint,
            limited=not np.array_equal(period.solution, period.setpoint),
            **measured_fields(state),
            period=period.index,
            input=period.number,
            now=period.now,
            rate=period.rate,
            speed=period.speed,
            solver=period.solver,
            engagement=period.engagement,
            order=int(period.order),
            fate=int(period.fate),
            phase=int(period.phase),
            causes=np.array(causes).ravel(),
        )

    def _flush_inputs(self, *, final: bool) -> None:
        """Write the inputs whose fate is known, in order.

        Args:
            final: Whether nothing follows, so that all are written.
        """
        # Count the inputs at the beginning whose fate is known. The control loop takes only the
        # newest input, so that all inputs before one that it took are superseded. An input without
        # a number was refused when it was given, which says nothing about the inputs before it.
        settled_count = 0
        for i, record in enumerate(self._unwritten):
            was_taken = record.number > 0 and record.received is not None
            follows_settled_ones = record.number == 0 and settled_count == i
            if final or was_taken or follows_settled_ones:
                settled_count = i + 1

        # Write these inputs, but wait for the state that shows an input's command.
        for _ in range(settled_count):
            record = self._unwritten[0]
            awaits_state = record.index == AWAITS_STATE
            if not final and awaits_state and record.fate != "rejected":
                break
            if awaits_state:
                # A rejected input has no sample; nor has an input whose state never came.
                record.index = None
            self._inputs.write(self._unwritten.popleft())
        self._inputs.flush()
        self._events.flush()

    def close(self) -> None:
        """Write what is not written yet, and close the files."""
        try:
            self.take([], [])
            self._flush_inputs(final=True)
        finally:
            self._inputs.close()
            self._events.close()
            self._log.close()


def _forget_period(record: InputRecord) -> None:
    """Note that the state of the period that used an input first will not come."""
    record.index = None
    record.command = None


def _cause_of_change(period: Period) -> CauseRecord | None:
    """Return what led to a period's phase: an input, what stopped the arm, or an order.

    Returns:
        The cause of a stop; or the kind "input" with the input's number as its value; or an order
        as a kind without a value; None if nothing of that is known.
    """
    if period.phase is LivePhase.TRACKING:
        if not period.number:
            return None
        text = f"input {period.number}"
        return CauseRecord(kind="input", subject="", value=period.number, unit="", text=text)

    for cause in period.causes:
        if cause.kind in STOPS:
            return cause.record()

    if period.order is Order.NONE:
        return None
    order = period.order.name.lower()
    return CauseRecord(kind=order, subject="", value=None, unit="", text=order)


def input_record(item: Input) -> InputRecord:
    """Return the record of an input, before its fate is known."""
    return InputRecord(
        item.kind,
        item.sent,
        item.values.tolist(),
        item.number,
        item.engagement,
        item.frame,
        item.relative,
    )


def plain_numbers(raw_values: Any) -> list[float | None] | None:
    """Return what a caller passed as plain numbers for the record.

    Numbers that are not finite become None. The result is None if the values are neither a vector
    nor a table, or more than `MAX_RECORDED_NUMBERS`.
    """
    try:
        numbers = floats(raw_values)
    except ValueError:
        return None
    if numbers.ndim not in (1, 2) or numbers.size > MAX_RECORDED_NUMBERS:
        return None
    return [value if math.isfinite(value) else None for value in numbers.ravel().tolist()]
