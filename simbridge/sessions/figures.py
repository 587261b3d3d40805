"""What a live session was given, and how it answered: its states, its inputs, its latency, what slowed it down.

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
from simbridge.sessions.causes import NAMES, LiveCause
from simbridge.sessions.inputs import Fate
from simbridge.sessions.phases import LivePhase, Order
from simbridge.sessions.record import InputRecord, latencies

# Of these causes a smaller number is worse.
_LEAST = {"joint_limit", "singularity", "obstacle", "speed_slider"}
# Intervals of a cause less than this apart are one, s.
_GAP = 0.1


class Spread(TypedDict):
    median: float
    p99: float


class Age(TypedDict):
    median: float
    max: float


class Inputs(TypedDict):
    """How many inputs a session was given, and what became of them; received = accepted + rejected + superseded.

    `late` ones are accepted, too; `lost_in_log` were overwritten before they were recorded, None where the session was
    killed; `age_s` is that of the input in force while the arm tracks, None where nothing was tracked.
    """

    received: int
    accepted: int
    rejected: int
    superseded: int
    late: int
    lost_in_log: int | None
    age_s: Age | None


class CommandToArm(TypedDict):
    """From sending a command to the arm being there, s: by the servo law, and by correlation; None where unknown."""

    servo_law: float | None
    correlation: float | None


class Latency(TypedDict):
    """From an input to the arm, s. `sum_s` is with the correlation, or the servo law where that is None."""

    input_to_command_s: Spread | None
    command_to_arm_s: CommandToArm
    sum_s: Spread | None


@dataclass(frozen=True, eq=False)
class Hindrance:
    """A cause with its most extreme number, and from when to when it acted (K, 2), as stamps in s."""

    worst: LiveCause
    spans: Array

    @property
    def duration(self) -> float:
        """How long it acted in all, s."""
        return float(np.diff(self.spans).sum())


@dataclass(frozen=True, eq=False)
class Session:
    """A live session, read back: `Evaluation.session`."""

    log: LogColumns  # its log
    period: float  # control period, s
    inputs: Sequence[InputRecord]  # as they were given
    events: Sequence[Mapping[str, Any]]  # changes of state with their causes, stops, notes

    @property
    def missing_periods(self) -> int:
        """How many periods of its loops are not in the log, because the states that belong to them never arrived."""
        if not len(self.log.stamp):
            return 0
        live, steps = self.log.live, np.diff(self.log.live["period"])
        # Idle periods are not logged; an engagement and a pause begin at the measured joints, whatever was before.
        anew = np.isin(live["order"][1:], (Order.ENGAGE, Order.PAUSE)) | (
            live["phase"][:-1] == LivePhase.IDLE
        )
        return int((steps[~anew & (steps > 1)] - 1).sum())

    @property
    def phases(self) -> list[tuple[float, float, str]]:
        """The states of the session: from when to when, as stamps in s, and what; between engagements it is idle."""
        found: list[tuple[float, float, str]] = []
        if not len(self.log.stamp):
            return found
        for stamp, phase in zip(
            self.log.stamp.tolist(), self.log.live["phase"].tolist(), strict=True
        ):
            shown, end = LivePhase(phase).shown, stamp + self.period
            if found and stamp - found[-1][1] > 0.5 * self.period:
                found.append((found[-1][1], stamp, LivePhase.IDLE.shown))
            if found and found[-1][2] == shown:
                found[-1] = (found[-1][0], end, shown)
            else:
                found.append((stamp, end, shown))
        return found

    @property
    def hindrances(self) -> list[Hindrance]:
        """What slowed the arm down, held it or refused its inputs; the longest first."""
        if not len(self.log.stamp):
            return []
        names, subjects, values = np.moveaxis(self.log.live["causes"].reshape(-1, 3, 3), 2, 0)
        began: Mapping[str, Any] = next(
            (event for event in self.events if event["event"] == "began"), {}
        )
        # The names behind the numbers of the log.
        causes, known = began.get("causes") or NAMES, began.get("subjects", ())
        found = []
        for name, subject in sorted(
            set(zip(names[names >= 0].tolist(), subjects[names >= 0].tolist(), strict=True))
        ):
            here = (names == name) & (subjects == subject)
            word = causes[int(name)]
            worst = float((np.min if word in _LEAST else np.max)(values[here]))
            whom = known[int(subject)] if 0 <= subject < len(known) else ""
            found.append(Hindrance(LiveCause(word, whom, worst), self._spans(here.any(axis=1))))
        return sorted(found, key=lambda one: -one.duration)

    def _spans(self, marked: NDArray[np.bool_]) -> Array:
        begins = self.log.stamp[marked]
        apart = np.flatnonzero(np.diff(begins) > _GAP) + 1
        first, last = np.concatenate([[0], apart]), np.concatenate([apart, [len(begins)]]) - 1
        return np.stack([begins[first], begins[last] + self.period], axis=1)

    def stamps(self, at: Sequence[float]) -> Array:
        """Instants (K,) of the clock of inputs and events as stamps of the log, s."""
        times = np.array(at, dtype=float)
        now, stamp = self.log.live.get("now", np.empty(0)), self.log.stamp
        if not len(now):
            return times - times[:1]
        ends = np.where(
            times < now[0], times - now[0], np.where(times > now[-1], times - now[-1], 0.0)
        )
        return np.asarray(np.interp(times, now, stamp) + ends)

    def input_counts(self) -> Inputs:
        """The part `inputs` of summary.json."""
        fates = Counter(record.fate for record in self.inputs)
        ended = next((event for event in reversed(self.events) if event["event"] == "ended"), None)
        return {
            "received": len(self.inputs),
            "accepted": fates["accepted"] + fates["late"],
            "rejected": fates["rejected"],
            "superseded": fates["superseded"],
            "late": fates["late"],
            "lost_in_log": None if ended is None else int(ended["lost_in_log"]),
            "age_s": self._age(),
        }

    def _age(self) -> Age | None:
        if not len(self.log.stamp):
            return None
        live, rows = self.log.live, np.arange(len(self.log.stamp))
        taken = np.isin(live["fate"], (Fate.ACCEPTED, Fate.LATE))
        # The row of the input in force.
        newest = np.maximum.accumulate(np.where(taken, rows, -1))
        tracking = (live["phase"] == LivePhase.TRACKING) & (newest >= 0)
        if not tracking.any():
            return None
        ages = live["now"][tracking] - live["now"][newest[tracking]]
        return {"median": float(np.median(ages)), "max": float(ages.max())}

    def latency(self, arm: CommandToArm) -> Latency:
        """The part `latency` of summary.json."""
        inside, own = np.array(latencies([*self.inputs])), arm["correlation"]
        own = arm["servo_law"] if own is None else own
        return {
            "input_to_command_s": _spread(inside),
            "command_to_arm_s": arm,
            "sum_s": None if own is None else _spread(inside + own),
        }


def _spread(times: Array) -> Spread | None:
    if not len(times):
        return None
    return {"median": float(np.median(times)), "p99": float(np.quantile(times, 0.99))}
