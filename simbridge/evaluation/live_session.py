"""What a live session was given, and how it answered: its states, its inputs, its latency, what slowed it down.

Everything comes from the session's directory: log.mcap, inputs.jsonl and events.jsonl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.tracking import part_delays
from simbridge.planning.live.phase import NAMES, Cause, Fate, Order, Phase
from simbridge.recording.live_record import InputRecord, counted, latencies, read_events, read_inputs
from simbridge.recording.log import LogColumns
from simbridge.robot.pose import Array

# Of these causes a smaller number is worse.
_LEAST = {"joint_limit", "singularity", "obstacle", "speed_slider"}
# Intervals of a cause less than this apart are one, s.
_GAP = 0.1


class Spread(TypedDict):
    """Of a time, s."""

    median: float
    p99: float


class Age(TypedDict):
    """Of the input in force, while the arm tracks it, s."""

    median: float
    max: float


class Inputs(TypedDict):
    """How many inputs a session was given, and what became of them; received = accepted + rejected + superseded.

    `late` ones are accepted, too; `lost_in_log` were overwritten before they were recorded, None where the session was
    killed; `age_s` is None where nothing was tracked.
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
    """A cause, over a whole session.

    Attributes:
        worst: The cause with its most extreme number.
        spans: From when to when it acted (K, 2), as stamps in s.
    """

    worst: Cause
    spans: Array

    @property
    def duration(self) -> float:
        """How long it acted in all, s."""
        return float(np.diff(self.spans).sum())


@dataclass(frozen=True, eq=False)
class Session:
    """A live session, read back.

    Attributes:
        run: Its directory, read back.
        inputs: As they were given.
        events: Changes of state with their causes, stops, notes.
    """

    run: Evaluation
    inputs: Sequence[InputRecord]
    events: Sequence[Mapping[str, Any]]

    @property
    def log(self) -> LogColumns:
        """Its log."""
        return self.run.log

    @property
    def period(self) -> float:
        """Control period, s."""
        return self.run.plan.period

    @property
    def missing_periods(self) -> int:
        """How many periods of its loops are not in the log, because the states that belong to them never arrived."""
        if not len(self.log.stamp):
            return 0
        live, steps = self.log.live, np.diff(self.log.live["period"])
        # Idle periods are not logged; an engagement and a pause begin at the measured joints, whatever was before.
        anew = np.isin(live["order"][1:], (Order.ENGAGE, Order.PAUSE)) | (live["phase"][:-1] == Phase.IDLE)
        return int((steps[~anew & (steps > 1)] - 1).sum())

    @property
    def phases(self) -> list[tuple[float, float, str]]:
        """The states of the session: from when to when, as stamps in s, and what; between engagements it is idle."""
        found: list[tuple[float, float, str]] = []
        if not len(self.log.stamp):
            return found
        for stamp, phase in zip(self.log.stamp.tolist(), self.log.live["phase"].tolist(), strict=True):
            shown, end = Phase(phase).shown, stamp + self.period
            if found and stamp - found[-1][1] > 0.5 * self.period:
                found.append((found[-1][1], stamp, Phase.IDLE.shown))
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
        causes, known = self._known("causes") or NAMES, self._known("subjects")
        found = []
        for name, subject in sorted(set(zip(names[names >= 0].tolist(), subjects[names >= 0].tolist(), strict=True))):
            here = (names == name) & (subjects == subject)
            word = causes[int(name)]
            worst = float((np.min if word in _LEAST else np.max)(values[here]))
            whom = known[int(subject)] if 0 <= subject < len(known) else ""
            found.append(Hindrance(Cause(word, whom, worst), self._spans(here.any(axis=1))))
        return sorted(found, key=lambda one: -one.duration)

    def _known(self, what: str) -> Sequence[str]:
        """The names behind the numbers of the log."""
        return next((event.get(what, ()) for event in self.events if event["event"] == "began"), ())

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
        ends = np.where(times < now[0], times - now[0], np.where(times > now[-1], times - now[-1], 0.0))
        return np.asarray(np.interp(times, now, stamp) + ends)

    def input_counts(self) -> Inputs:
        """The part `inputs` of summary.json."""
        ended = next((event for event in reversed(self.events) if event["event"] == "ended"), None)
        lost = None if ended is None else int(ended["lost_in_log"])
        return {**counted([*self.inputs]), "lost_in_log": lost, "age_s": self._age()}  # type: ignore[typeddict-item]

    def _age(self) -> Age | None:
        if not len(self.log.stamp):
            return None
        live, rows = self.log.live, np.arange(len(self.log.stamp))
        taken = np.isin(live["fate"], (Fate.ACCEPTED, Fate.LATE))
        # The row of the input in force.
        newest = np.maximum.accumulate(np.where(taken, rows, -1))
        tracking = (live["phase"] == Phase.TRACKING) & (newest >= 0)
        if not tracking.any():
            return None
        ages = live["now"][tracking] - live["now"][newest[tracking]]
        return {"median": float(np.median(ages)), "max": float(ages.max())}

    def latency(self) -> Latency:
        """The part `latency` of summary.json. A command leaves a period before the instant to which it belongs."""
        law = correlation = None
        if self.run.servo is not None:
            trail = 0.0 if self.run.settings["live"]["lead"] else self.run.servo.lag
            law = self.period + trail + self.run.settings["backend"]["joint_lag"]
        if self.run.has_samples:
            tracking = self.run.tracking
            found = part_delays(tracking, tracking["delay_of"]).plant
            # Where nothing moved it counts as 0.
            correlation = self.period + found if found else None
        inside, own = latencies([*self.inputs]), correlation if correlation is not None else law
        spread = _spread(np.array(inside)) if inside else None
        whole = _spread(np.array(inside) + own) if inside and own is not None else None
        arm: CommandToArm = {"servo_law": law, "correlation": correlation}
        return {"input_to_command_s": spread, "command_to_arm_s": arm, "sum_s": whole}


def session_of(run: Evaluation) -> Session | None:
    """A live session; None for a replay.

    Raises:
        NotARun: inputs.jsonl or events.jsonl is missing or broken.
    """
    if "live" not in run.settings:
        return None
    return Session(run, read_inputs(run.directory.path), read_events(run.directory.path))


def _spread(times: Array) -> Spread:
    return {"median": float(np.median(times)), "p99": float(np.quantile(times, 0.99))}
