"""Records a live session: rows of the log, each input, and each change of state."""

from __future__ import annotations

import math
import statistics
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
from simbridge.sessions.causes import NAMES, STOPS, cause_rows, index_subjects
from simbridge.sessions.channel import Period
from simbridge.sessions.inputs import Fate, Input
from simbridge.sessions.phases import LivePhase, Order
from simbridge.sessions.record import EVENTS, INPUTS, InputRecord, JsonLines

# Inputs that wait to be recorded, at most: half a minute at 1 kHz.
MAX_WAITING_INPUTS = 32_768
# Numbers that are recorded of an input that is refused, at most.
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

    Inputs may be added at any time by any thread; the rest is called by one thread at a time.

    Attributes:
        lost: Inputs and periods that were overwritten before they were recorded.
        phase: The newest.
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
        self.lost = 0
        self.phase = LivePhase.IDLE
        self.paused = False

        # Inputs and notes of the caller's threads, which the recorder has not seen: bounded, and
        # appended to without a lock.
        self._arrived: deque[InputRecord] = deque()
        self._notes: deque[dict[str, Any]] = deque(maxlen=MAX_WAITING_INPUTS)
        # Inputs that are not written yet, in order.
        self._unwritten: deque[InputRecord] = deque()

        # By the index of their period: periods whose state is expected, and the inputs that they
        # used first.
        self._waiting: dict[int, Period] = {}
        self._used: dict[int, InputRecord] = {}
        # Of the newest inputs, s.
        self._latencies: deque[float] = deque(maxlen=LATENCY_WINDOW)

        # How many samples were written, and the stamp of the last one, s.
        self._samples = 0
        self._stamp = -period
        # The present loop's first state: its timestamp and its stamp, s.
        self._first_timestamp: float | None = None
        self._first_stamp = 0.0
        # When the first state of the session arrived, s of the host's clock.
        self._begin: float | None = None
        # The index of each name that subjects of causes may have.
        self._subjects: dict[str, int] = {}

    @property
    def latency(self) -> float | None:
        """Median time from the newest inputs to their commands, s; None before the first."""
        return statistics.median(self._latencies) if self._latencies else None

    def add_input(self, record: InputRecord) -> None:
        """Add an input, to be recorded with the next periods; beyond the bound it is lost."""
        if len(self._arrived) >= MAX_WAITING_INPUTS:
            self.lost += 1
            return
        self._arrived.append(record)

    def begin_loop(self, now: float, subjects: tuple[str, ...]) -> None:
        """Record that a loop has begun, whose periods count from 0 again.

        The log has causes and their subjects by index.

        Args:
            now: The time, s of the host's monotonic clock.
            subjects: The names that subjects of causes may have.
        """
        self.event(now, "began", causes=list(NAMES), subjects=list(subjects))
        self._subjects = index_subjects(subjects)
        self._waiting.clear()
        # Their states will not come any more.
        for record in self._used.values():
            _forget_period(record)
        self._used.clear()
        self._first_timestamp = None

    def note(self, now: float, name: str, facts: Mapping[str, Any]) -> None:
        """Add a note of the caller's, at a time, s; it is recorded with the next periods."""
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
        # The period in which the arm has come to rest is the last of its engagement.
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
        elif period.causes:
            record.why = period.causes[0].text
        else:
            record.why = period.fate.name.lower()

    def _take_state(self, state: ArmState) -> None:
        """Write the sample of a state and its period."""
        index = round(state.plan_time / self._period)
        period = self._waiting.pop(index, None)

        # States come in order: those of earlier periods were missed.
        for missed in [i for i in self._waiting if i < index]:
            del self._waiting[missed]
            missed_input = self._used.pop(missed, None)
            if missed_input is not None:
                _forget_period(missed_input)
        if period is None:
            return

        # The input that this period used first has its sample, and its command was sent.
        used_input = self._used.pop(index, None)
        if used_input is not None:
            used_input.index = self._samples
            used_input.command = state.host_sent
            if np.isfinite(state.host_sent):
                self._latencies.append(state.host_sent - used_input.sent)

        self._log.write(self._sample(period, state))
        self._samples += 1

    def _stamp_of(self, state: ArmState) -> float:
        """Return the stamp of a state's sample, s.

        A loop that begins anew may be on another clock: its samples follow those before by the
        host's.
        """
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
        # All up to the last one whose fate is known: the loop takes the newest input, so those
        # before one that it took are superseded.
        settled_count = 0
        for i, record in enumerate(self._unwritten):
            # One without a number was refused at once.
            is_settled = record.received is not None or not record.number
            if final or is_settled:
                settled_count = i + 1

        # Of them, those before the first whose command has not been seen yet.
        for _ in range(settled_count):
            record = self._unwritten[0]
            awaits_state = record.index == AWAITS_STATE
            if not final and awaits_state and record.fate != "rejected":
                break
            if awaits_state:
                # A rejected input has no sample; nor has one whose state never came.
                record.index = None
            self._inputs.write(self._unwritten.popleft())
        self._inputs.flush()
        self._events.flush()

    def close(self) -> None:
        """Write what is left and close the files."""
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


def _cause_of_change(period: Period) -> str:
    """Return what led to a period's phase: what stopped the arm, an order, or an input."""
    if period.phase is LivePhase.TRACKING:
        return f"input {period.number}" if period.number else ""
    for cause in period.causes:
        if cause.name in STOPS:
            return cause.text
    return "" if period.order is Order.NONE else period.order.name.lower()


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

    Those that are not finite are None; all of it is None if it is no vector or table, or a huge
    one.
    """
    try:
        numbers = floats(raw_values)
    except ValueError:
        return None
    if numbers.ndim not in (1, 2) or numbers.size > MAX_RECORDED_NUMBERS:
        return None
    return [value if math.isfinite(value) else None for value in numbers.ravel().tolist()]
