"""The timing of a servo loop, as in summary.json's `loop`."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from simbridge.backends.backend import ArmState
from simbridge.robot.pose import Array


class LoopTiming:
    """Timing of a servo loop, collected from the states of a stream: 24 bytes a sample."""

    def __init__(self) -> None:
        # The index of each setpoint whose state has come.
        self._sequence = array("q")
        # When each of these setpoints was sent, s (host clock).
        self._sent = array("d")
        # When the state of each setpoint arrived, s (host clock).
        self._received = array("d")
        # Numbers of missed deadlines and states, as the process reports them.
        self._missed = {
            "missed_deadlines": 0,
            "missed_states": 0,
        }

    def add(self, state: ArmState) -> None:
        """Add a state."""
        self._sequence.append(state.sequence)
        self._sent.append(state.host_sent)
        self._received.append(state.host_monotonic)

    def add_counts(self, event: dict[str, Any]) -> None:
        """Take the counts of missed deadlines and states from an event of the servo process.

        Args:
            event: Any event; one without counts changes nothing.
        """
        for name in self._missed:
            if name in event:
                self._missed[name] = int(event[name])

    def summary(self) -> dict[str, float | int] | None:
        """Return the timing as in summary.json's `loop`.

        A period is the time between two consecutive setpoints. The age of a state is the time from
        its arrival to a setpoint that was sent when it was the newest one.

        Returns:
            None before the second setpoint that followed a state.
        """
        sequence = np.array(self._sequence)
        sent = np.array(self._sent)
        received = np.array(self._received)

        # Whether each setpoint follows directly on the one before: a setpoint whose state never
        # arrived is missing here, and the time between its neighbours is not one period.
        is_consecutive = np.diff(sequence) == 1
        # Index of the newest state when each setpoint after the first was sent; -1 for none.
        newest = np.searchsorted(received, sent[1:], side="right") - 1
        is_counted = is_consecutive & (newest >= 0)
        if not is_counted.any():
            return None

        ages = (sent[1:] - received[newest])[is_counted]
        return {
            **summarize_periods(np.diff(sent)[is_counted]),
            **self._missed,
            "state_age_mean_s": float(ages.mean()),
        }


def summarize_periods(periods: Array) -> dict[str, float]:
    """Return mean, deviation, 99.9 % and largest of periods, as in summary.json's `loop`.

    Args:
        periods: Measured periods (K,), s.
    """
    return {
        "period_mean_s": float(periods.mean()),
        "period_std_s": float(periods.std()),
        "period_p999_s": float(np.quantile(periods, 0.999)),
        "period_max_s": float(periods.max()),
    }
