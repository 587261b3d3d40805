"""How well a servo loop kept its time."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from simbridge.backends.backend import ArmState


class LoopTiming:
    """Gathers the loop's own figures from the states of a run: 20 bytes a sample.

    Args:
        period: Control period, s.
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._sequence, self._sent, self._received = array("q"), array("d"), array("d")
        self._missed = {"missed_deadlines": 0, "missed_states": 0}

    def add(self, state: ArmState) -> None:
        """Take note of a state."""
        self._sequence.append(state.sequence)
        self._sent.append(state.host_sent)
        self._received.append(state.host_monotonic)

    def hear(self, event: dict[str, Any]) -> None:
        """Take the loop's counts from its report."""
        self._missed |= {name: int(event[name]) for name in self._missed if name in event}

    def summary(self) -> dict[str, float | int] | None:
        """As summary.json's `loop` has it; None before the second setpoint.

        A period is the time between two setpoints that were sent one after the other; the age of a state is the time
        from its arrival until the next setpoint left.
        """
        sequence, sent, received = np.array(self._sequence), np.array(self._sent), np.array(self._received)
        neighbours = np.diff(sequence) == 1
        if not neighbours.any():
            return None
        periods = np.diff(sent)[neighbours]
        ages = (sent[1:] - received[:-1])[neighbours]
        return {
            "period_mean_s": float(periods.mean()),
            "period_std_s": float(periods.std()),
            "period_p999_s": float(np.quantile(periods, 0.999)),
            "period_max_s": float(periods.max()),
            **self._missed,
            "state_age_mean_s": float(ages.mean()),
        }
