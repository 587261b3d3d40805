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
from simbridge.sessions.causes import MAX_CAUSES, NAMES, NUMBERS_PER_CAUSE, LiveCause
from simbridge.sessions.inputs import Fate
from simbridge.sessions.phases import LivePhase, Order
from simbridge.sessions.record import InputRecord, latencies

# Of these causes a smaller number is worse.
WORST_IF_SMALL = {"joint_limit", "singularity", "obstacle", "speed_slider"}
# Intervals of a cause less than this apart are one, s.
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
        accepted: Number of those that were used.
        rejected: Number of those that were refused.
        superseded: Number of those that a later one replaced before they were used.
        late: How many of the accepted ones came after their timeout.
        lost_in_log: Overwritten before they were recorded; None where the session was killed.
        age_s: Of the input in force while the arm tracks; None where nothing was tracked.
    """

    received: int
    accepted: int
    rejected: int
    superseded: int
    late: int
    lost_in_log: int | None
    age_s: Age | None


class CommandToArm(TypedDict):
    """Time from sending a command to the arm being there, s; None where unknown.

    Attributes:
        servo_law: By the servo law.
        correlation: By correlation of commands and measured joints.
    """

    servo_law: float | None
    correlation: float | None


class Latency(TypedDict):
    """Time from an input to the arm, s.

    Attributes:
        input_to_command_s: From an input to its command.
        command_to_arm_s: From there to the arm.
        sum_s: Of both, with the correlation, or the servo law where that is None.
    """

    input_to_command_s: DelaySpread | None
    command_to_arm_s: CommandToArm
    sum_s: DelaySpread | None


@dataclass(frozen=True, eq=False)
class Hindrance:
    """A cause that slowed the arm down or held it.

    Attributes:
        worst: With its most extreme number.
        spans: From when to when it acted (K, 2), as stamps in s.
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
        log: Its log.
        period: Control period, s.
        inputs: As they were given.
        events: Changes of state with their causes, stops, notes.
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
        """The states of the session: from when to when, as stamps in s, and its name.

        Between engagements it is idle.
        """
        phases: list[tuple[float, float, str]] = []
        if not len(self.log.stamp):
            return phases

        numbers = self.log.live["phase"].tolist()
        for stamp, number in zip(self.log.stamp.tolist(), numbers, strict=True):
            name = LivePhase(number).shown
            end = stamp + self.period

            # Idle periods are not logged: a gap is one between two engagements.
            if phases and stamp - phases[-1][1] > 0.5 * self.period:
                phases.append((phases[-1][1], stamp, LivePhase.IDLE.shown))

            # A sample in the last state prolongs it.
            if phases and phases[-1][2] == name:
                phases[-1] = (phases[-1][0], end, name)
            else:
                phases.append((stamp, end, name))
        return phases

    @property
    def hindrances(self) -> list[Hindrance]:
        """The causes that slowed the arm down, held it or refused its inputs; the longest first."""
        if not len(self.log.stamp):
            return []

        # The log holds names by their indices in the lists that the first loop began with.
        began: Mapping[str, Any] = {}
        for event in self.events:
            if event["event"] == "began":
                began = event
                break
        cause_names = began.get("causes") or NAMES
        subject_names = began.get("subjects", ())

        # The causes of each of T samples: indices of name and subject, and values (T, MAX_CAUSES).
        causes = self.log.live["causes"].reshape(-1, MAX_CAUSES, NUMBERS_PER_CAUSE)
        name_indices = causes[:, :, 0]
        subject_indices = causes[:, :, 1]
        values = causes[:, :, 2]
        is_cause = name_indices >= 0
        pairs = zip(
            name_indices[is_cause].tolist(), subject_indices[is_cause].tolist(), strict=True
        )

        # One hindrance for each name with a subject.
        hindrances = []
        for name_index, subject_index in sorted(set(pairs)):
            acts = (name_indices == name_index) & (subject_indices == subject_index)
            name = cause_names[int(name_index)]
            subject = ""
            if 0 <= subject_index < len(subject_names):
                subject = subject_names[int(subject_index)]
            extreme = np.min if name in WORST_IF_SMALL else np.max
            worst = LiveCause(name, subject, float(extreme(values[acts])))
            hindrances.append(Hindrance(worst, self._spans(acts.any(axis=1))))
        return sorted(hindrances, key=lambda hindrance: -hindrance.duration)

    def _spans(self, is_marked: NDArray[np.bool_]) -> Array:
        """Return begin and end (K, 2) of the spans of marked samples (T,), as stamps in s."""
        stamps = self.log.stamp[is_marked]

        # The marked samples before which there is a gap; a sample lasts for a period.
        after_gaps = np.flatnonzero(np.diff(stamps) > MAX_GAP_S) + 1
        first = np.concatenate([[0], after_gaps])
        last = np.concatenate([after_gaps, [len(stamps)]]) - 1
        return np.stack([stamps[first], stamps[last] + self.period], axis=1)

    def stamps(self, instants: Sequence[float]) -> Array:
        """Return instants (K,), s of the clock of inputs and events, as stamps of the log, s."""
        times = np.array(instants, dtype=float)
        now = self.log.live.get("now", np.empty(0))
        if not len(now):
            return times - times[:1]

        # Before the log and after it both clocks run alike.
        before = times - now[0]
        after = times - now[-1]
        outside = np.where(times < now[0], before, np.where(times > now[-1], after, 0.0))
        return np.asarray(np.interp(times, now, self.log.stamp) + outside)

    def input_counts(self) -> Inputs:
        """Return the part `inputs` of summary.json."""
        fates = Counter(record.fate for record in self.inputs)

        # Only the end of the session says how many were lost.
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
