"""What is recorded of a live session: rows of the log, each input, and each change of state."""

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
from simbridge.running.recorder import measured_fields
from simbridge.sessions.causes import NAMES, STOPS, cause_row
from simbridge.sessions.channel import Period
from simbridge.sessions.inputs import Fate, Input
from simbridge.sessions.phases import LivePhase, Order
from simbridge.sessions.record import EVENTS, INPUTS, InputRecord, JsonLines

# Inputs that wait to be recorded, at most: half a minute at 1 kHz.
MAX_WAITING_INPUTS = 32_768
# How many of the newest inputs count for the latency that is shown.
LATENCY_WINDOW = 100

# The fate of an input, as it is recorded.
_FATES = {
    Fate.ACCEPTED: "accepted",
    Fate.LATE: "late",
    Fate.NOT_ENGAGED: "rejected",
    Fate.TOO_FAR: "rejected",
}


class LiveRecorder:
    """The record of a live session. Inputs may be given to it at any time by any thread; the rest by one at a time.

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
        # Between the caller's threads and the recorder: bounded, and appended to without a lock.
        self._given: deque[InputRecord] = deque()
        self._open: deque[InputRecord] = deque()
        self._waiting: dict[int, Period] = {}
        self._used: dict[int, InputRecord] = {}
        self._latencies: deque[float] = deque(maxlen=LATENCY_WINDOW)
        self._samples, self._base, self._stamp = 0, 0.0, -period
        self._first: float | None = None
        self._host_first: float | None = None
        self._subjects: dict[str, int] = {}
        self._notes: deque[dict[str, Any]] = deque(maxlen=MAX_WAITING_INPUTS)
        self.lost = 0
        self.phase, self.paused = LivePhase.IDLE, False

    @property
    def latency(self) -> float | None:
        """Median time from the newest inputs to their commands, s; None before the first."""
        return statistics.median(self._latencies) if self._latencies else None

    def given(self, record: InputRecord) -> None:
        """An input was given."""
        if len(self._given) >= MAX_WAITING_INPUTS:
            self.lost += 1
            return
        self._given.append(record)

    def began(self, at: float, subjects: tuple[str, ...]) -> None:
        """A loop has begun, at s: its periods count from 0 again. The log has causes and their subjects by index."""
        self.event(at, "began", causes=list(NAMES), subjects=list(subjects))
        self._subjects = {name: index for index, name in reversed([*enumerate(subjects)])}
        self._waiting.clear()
        # Their states will not come any more.
        for record in self._used.values():
            record.index = record.command = None
        self._used.clear()
        self._first = None

    def note(self, at: float, name: str, facts: Mapping[str, Any]) -> None:
        """Something that the caller has to say, at s; recorded with the next periods."""
        self._notes.append({"at": at, "event": "note", "note": name, "facts": dict(facts)})

    def event(self, at: float, name: str, **facts: Any) -> None:
        """Something happened at an instant, s of the host's monotonic clock."""
        self._events.write({"at": at, "event": name, **facts})

    def take(self, periods: list[Period], states: list[ArmState]) -> None:
        """Record what has appeared since the last call."""
        while self._given:
            self._open.append(self._given.popleft())
        for period in periods:
            self._take_period(period)
        for state in states:
            self._take_state(state)
        while self._notes:
            self._events.write(self._notes.popleft())
        self._flush_inputs(final=False)

    def _take_period(self, period: Period) -> None:
        # The period in which the arm has come to rest is the last of its engagement.
        rested = period.phase is self.phase is LivePhase.IDLE
        if not rested or period.order is not Order.NONE:
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
        if not period.number:
            return
        for record in self._open:
            if record.number == period.number:
                record.fate, record.received = _FATES[period.fate], period.now
                if record.fate == "rejected":
                    record.why = (
                        period.causes[0].text if period.causes else period.fate.name.lower()
                    )
                else:
                    self._used[period.index] = record
                record.index = -1
                break

    def _take_state(self, state: ArmState) -> None:
        index = round(state.plan_time / self._period)
        period = self._waiting.pop(index, None)
        # States of earlier periods will not come any more.
        for missed in [i for i in self._waiting if i < index]:
            del self._waiting[missed]
            if (record := self._used.pop(missed, None)) is not None:
                record.command = record.index = None
        if period is None:
            return
        if (record := self._used.pop(index, None)) is not None:
            record.index, record.command = self._samples, state.host_sent
            if np.isfinite(state.host_sent):
                self._latencies.append(state.host_sent - record.sent)
        self._log.write(self._sample(period, state))
        self._samples += 1

    def _sample(self, period: Period, state: ArmState) -> LiveSample:
        if self._first is None:
            # A loop that begins anew may be on another clock: its samples follow those before by the host's.
            self._host_first = (
                state.host_monotonic if self._host_first is None else self._host_first
            )
            passed = round((state.host_monotonic - self._host_first) / self._period) * self._period
            self._base, self._first = max(passed, self._stamp + self._period), state.timestamp
        self._stamp = (
            self._base + round((state.timestamp - self._first) / self._period) * self._period
        )
        causes = [cause_row(cause, self._subjects) for cause in period.causes]
        causes += [(-1.0, -1.0, 0.0)] * (3 - len(causes))
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
        """Write the inputs whose fate is known, in order; those before one that was taken are superseded."""
        settled = [
            i
            for i, record in enumerate(self._open)
            if record.received is not None or not record.number
        ]
        count = len(self._open) if final else (settled[-1] + 1 if settled else 0)
        for _ in range(count):
            record = self._open[0]
            if not final and record.index == -1 and record.fate != "rejected":
                # Its command has not been seen yet.
                break
            record.index = None if record.index == -1 else record.index
            self._inputs.write(self._open.popleft())
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


def _cause_of_change(period: Period) -> str:
    """What led to the phase of a period that another preceded: what stopped the arm, an order, or an input."""
    if period.phase is LivePhase.TRACKING:
        return f"input {period.number}" if period.number else ""
    stopped = next((cause.text for cause in period.causes if cause.name in STOPS), "")
    return stopped or ("" if period.order is Order.NONE else period.order.name.lower())


def input_record(given: Input) -> InputRecord:
    """The record of an input, before its fate is known."""
    return InputRecord(
        given.kind,
        given.sent,
        given.values.tolist(),
        given.number,
        given.engagement,
        given.frame,
        given.relative,
    )


def plain_numbers(given: Any) -> Any:
    """What was given, as plain numbers for the record; None where it is none."""
    try:
        numbers = floats(given)
    except ValueError:
        return None
    finite = numbers.ndim in (1, 2) and numbers.size <= 4096
    return (
        [None if not math.isfinite(v) else v for v in numbers.ravel().tolist()] if finite else None
    )
