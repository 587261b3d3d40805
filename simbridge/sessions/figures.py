"""Figures of a live session: its states, inputs and latency, and what slowed it down.

Everything comes from the session's directory: log.mcap, inputs.jsonl and events.jsonl.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from simbridge.recording.samples import LogColumns
from simbridge.robot.pose import Array
from simbridge.sessions.causes import KINDS, MAX_CAUSES, NUMBERS_PER_CAUSE, LiveCause
from simbridge.sessions.inputs import Fate
from simbridge.sessions.phases import LivePhase, Order
from simbridge.sessions.record import InputRecord, latencies

# Causes whose worst number is the smallest.
WORST_IF_SMALL = {"joint_limit", "singularity", "obstacle", "speed_slider"}
# Two spans of a cause with a shorter gap between them are one, s.
MAX_GAP_S = 0.1


class DelaySpread(TypedDict):
    """Median and 99th percentile of a time, s."""

    median: float
    p99: float


class Age(TypedDict):
    """Median and largest age of the input in force, s."""

    median: float
    max: float


class Inputs(TypedDict):
    """The inputs of a session, counted by what became of them.

    received = accepted + rejected + superseded.

    Attributes:
        received: Number of inputs that came.
        accepted: Number of inputs that were used.
        rejected: Number of inputs that were refused.
        superseded: Number of inputs that a later one replaced before they were used.
        late: Number of accepted inputs that came after their timeout.
        lost_in_log: Number of inputs, periods and notes that came faster than they could be
            recorded; None if the session was killed.
        age_s: Age of the input in force while the arm tracks; None if nothing was tracked.
    """

    received: int
    accepted: int
    rejected: int
    superseded: int
    late: int
    lost_in_log: int | None
    age_s: Age | None


class CommandToArm(TypedDict):
    """Time from sending a command to the arm being there, s; None if unknown.

    Attributes:
        servo_law: This time as the servo law gives it.
        correlation: This time as the correlation of commands and measured joints gives it.
    """

    servo_law: float | None
    correlation: float | None


class Latency(TypedDict):
    """Time from an input to the arm, s.

    Attributes:
        input_to_command_s: Time from an input to its command.
        command_to_arm_s: Time from a command to the arm being there.
        sum_s: Sum of both, with the correlation's time, or the servo law's where that is None.
    """

    input_to_command_s: DelaySpread | None
    command_to_arm_s: CommandToArm
    sum_s: DelaySpread | None


@dataclass(frozen=True, eq=False)
class Hindrance:
    """A cause that slowed the arm down or held it.

    Attributes:
        worst: The cause with the worst of its numbers.
        spans: Beginning and end (K, 2) of each span in which it acted, as stamps in s.
    """

    worst: LiveCause
    spans: Array

    @property
    def duration(self) -> float:
        """Total time for which the cause acted, s."""
        return float(np.diff(self.spans).sum())


@dataclass(frozen=True, eq=False)
class SessionFigures:
    """A live session, read back: `Evaluation.session`.

    Attributes:
        log: The session's log.
        period: Control period, s.
        inputs: The inputs in the order in which they were given.
        events: The changes of state with their causes, the stops, and the notes.
    """

    log: LogColumns
    period: float
    inputs: Sequence[InputRecord]
    events: Sequence[Mapping[str, Any]]

    @property
    def missing_periods(self) -> int:
        """Number of periods of the session's loops that are not in the log.

        The states that belong to them never arrived.
        """
        if not len(self.log.stamp):
            return 0
        live = self.log.live
        steps = np.diff(live["period"])

        # Idle periods are not logged; an engagement and a pause begin at the measured joints,
        # whatever was before.
        begins_anew = np.isin(live["order"][1:], (Order.ENGAGE, Order.PAUSE))
        after_idle = live["phase"][:-1] == LivePhase.IDLE
        lacks_periods = ~(begins_anew | after_idle) & (steps > 1)
        return int((steps[lacks_periods] - 1).sum())

    @property
    def phases(self) -> list[tuple[float, float, str]]:
        """The states of the session: beginning and end of each, as stamps in s, and its name.

        Between engagements the session is idle.
        """
        phases: list[tuple[float, float, str]] = []
        if not len(self.log.stamp):
            return phases

        numbers = self.log.live["phase"].tolist()
        for stamp, number in zip(self.log.stamp.tolist(), numbers, strict=True):
            name = LivePhase(number).shown
            end = stamp + self.period

            # Idle periods are not logged: a gap in the log lies between two engagements.
            if phases:
                _, last_end, _ = phases[-1]
                if stamp - last_end > 0.5 * self.period:
                    phases.append((last_end, stamp, LivePhase.IDLE.shown))

            # A sample in the same state as the one before prolongs it.
            if phases and phases[-1][2] == name:
                begin, _, _ = phases[-1]
                phases[-1] = (begin, end, name)
            else:
                phases.append((stamp, end, name))
        return phases

    @property
    def hindrances(self) -> list[Hindrance]:
        """The causes that slowed the arm down, held it or refused its inputs; the longest first."""
        if not len(self.log.stamp):
            return []

        # The log holds kinds and subjects by their indices in the lists that the first loop began
        # with.
        began: Mapping[str, Any] = {}
        for event in self.events:
            if event["event"] == "began":
                began = event
                break
        kinds = began.get("causes") or KINDS
        subject_names = began.get("subjects", ())

        # The causes of each of T samples: index of the kind, index of the subject, and value, each
        # (T, MAX_CAUSES).
        causes = self.log.live["causes"].reshape(-1, MAX_CAUSES, NUMBERS_PER_CAUSE)
        kind_indices = causes[:, :, 0]
        subject_indices = causes[:, :, 1]
        values = causes[:, :, 2]

        # The pairs of kind and subject that occur; a negative index stands for no cause.
        is_cause = kind_indices >= 0
        pairs = zip(
            kind_indices[is_cause].tolist(), subject_indices[is_cause].tolist(), strict=True
        )

        # Make one hindrance of each pair.
        hindrances = []
        for kind_index, subject_index in sorted(set(pairs)):
            acts = (kind_indices == kind_index) & (subject_indices == subject_index)
            kind = kinds[int(kind_index)]
            subject = ""
            if 0 <= subject_index < len(subject_names):
                subject = subject_names[int(subject_index)]
            extreme = np.min if kind in WORST_IF_SMALL else np.max
            worst = LiveCause.of(kind, subject, float(extreme(values[acts])))
            hindrances.append(Hindrance(worst, self._spans(acts.any(axis=1))))
        return sorted(hindrances, key=lambda hindrance: -hindrance.duration)

    def _spans(self, is_marked: NDArray[np.bool_]) -> Array:
        """Return beginning and end (K, 2) of the spans of marked samples, as stamps in s.

        Args:
            is_marked: The mark of each sample (T,).
        """
        stamps = self.log.stamp[is_marked]

        # A span begins with the first marked sample, and with each one after a gap.
        after_gaps = np.flatnonzero(np.diff(stamps) > MAX_GAP_S) + 1
        first = np.concatenate([[0], after_gaps])
        last = np.concatenate([after_gaps, [len(stamps)]]) - 1

        # A sample lasts for a period.
        return np.stack([stamps[first], stamps[last] + self.period], axis=1)

    def stamps(self, instants: Sequence[float]) -> Array:
        """Return instants (K,), s of the clock of inputs and events, as stamps of the log, s.

        Between samples they are interpolated; outside of the log both clocks run alike. Without a
        sample the stamps count from the first instant.
        """
        times = np.array(instants, dtype=float)
        now = self.log.live.get("now", np.empty(0))
        if not len(now):
            return times - times[:1]

        # How far an instant is before the first sample (negative) or after the last one, s; 0
        # between them. Interpolation alone holds the first and the last stamp there.
        outside = np.zeros(len(times))
        is_before = times < now[0]
        outside[is_before] = times[is_before] - now[0]
        is_after = times > now[-1]
        outside[is_after] = times[is_after] - now[-1]
        return np.asarray(np.interp(times, now, self.log.stamp) + outside)

    def input_counts(self) -> Inputs:
        """Return the part `inputs` of summary.json."""
        fates = Counter(record.fate for record in self.inputs)

        # Only the event of the session's end says how many were lost.
        lost_in_log = None
        for event in self.events:
            if event["event"] == "ended":
                lost_in_log = int(event["lost_in_log"])

        return {
            "received": len(self.inputs),
            "accepted": fates["accepted"] + fates["late"],
            "rejected": fates["rejected"],
            "superseded": fates["superseded"],
            "late": fates["late"],
            "lost_in_log": lost_in_log,
            "age_s": self._age(),
        }

    def _age(self) -> Age | None:
        """Return the age of the input in force while the arm tracks; None if it never did."""
        if not len(self.log.stamp):
            return None
        live = self.log.live
        rows = np.arange(len(self.log.stamp))

        # The row in which the input in force was taken; -1 before the first.
        is_taken = np.isin(live["fate"], (Fate.ACCEPTED, Fate.LATE))
        newest = np.maximum.accumulate(np.where(is_taken, rows, -1))
        tracks = (live["phase"] == LivePhase.TRACKING) & (newest >= 0)
        if not tracks.any():
            return None
        ages = live["now"][tracks] - live["now"][newest[tracks]]
        return {"median": float(np.median(ages)), "max": float(ages.max())}

    def latency(self, command_to_arm: CommandToArm) -> Latency:
        """Return the part `latency` of summary.json."""
        to_command = np.array(latencies([*self.inputs]))
        to_arm = command_to_arm["correlation"]
        if to_arm is None:
            to_arm = command_to_arm["servo_law"]
        return {
            "input_to_command_s": _spread(to_command),
            "command_to_arm_s": command_to_arm,
            "sum_s": None if to_arm is None else _spread(to_command + to_arm),
        }


def _spread(times: Array) -> DelaySpread | None:
    """Return the spread of times (K,), s; None for none."""
    if not len(times):
        return None
    return {"median": float(np.median(times)), "p99": float(np.quantile(times, 0.99))}
