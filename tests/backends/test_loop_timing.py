"""Timing of a servo loop, compared with numbers computed by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from simbridge.backends.backend import ArmState
from simbridge.backends.loop_timing import LoopTiming

AT_REST = np.zeros(6)
STATE = ArmState(0, 0.0, 0.0, 0.0, AT_REST, AT_REST, AT_REST, AT_REST, AT_REST)


def collect_timing(sent, received, sequence=None):
    """Return the timing of setpoints sent and states received at these times, s.

    Args:
        sent: When each setpoint was sent.
        received: When its state was received.
        sequence: Its number; 0, 1, ... by default.
    """
    timing = LoopTiming()
    numbers = range(len(sent)) if sequence is None else sequence
    for number, sent_at, received_at in zip(numbers, sent, received, strict=True):
        timing.add(
            dataclasses.replace(
                STATE, sequence=number, host_sent=sent_at, host_monotonic=received_at
            )
        )
    return timing


def test_before_the_second_setpoint_there_is_no_summary():
    assert LoopTiming().summary() is None
    assert collect_timing([1.0], [1.006]).summary() is None


def test_the_periods_are_those_between_setpoints():
    periods = np.array([0.008, 0.009, 0.007, 0.008, 0.012])
    sent = 100.0 + np.concatenate(([0.0], np.cumsum(periods)))

    summary = collect_timing(sent, sent + 0.006).summary()

    assert summary["period_mean_s"] == pytest.approx(0.0088)
    assert summary["period_std_s"] == pytest.approx(np.sqrt(np.mean((periods - 0.0088) ** 2)))
    assert summary["period_max_s"] == pytest.approx(0.012)
    assert summary["missed_deadlines"] == 0
    assert summary["missed_states"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(("late_periods", "p999"), [(100, 0.004), (1, 0.002)])
def test_the_high_quantile_hides_one_late_period_in_ten_thousand(late_periods, p999):
    periods = np.full(10_000, 0.002)
    periods[:late_periods] = 0.004
    sent = np.concatenate(([0.0], np.cumsum(periods)))

    summary = collect_timing(sent, sent).summary()

    assert summary["period_p999_s"] == pytest.approx(p999)
    assert summary["period_max_s"] == pytest.approx(0.004)


def test_a_states_age_runs_until_a_setpoint_followed_it():
    sent = np.array([0.0, 0.008, 0.016])
    # The states of the first two arrived 6 and 5 ms before the next setpoint was sent.
    received = [0.002, 0.011, 0.024]

    summary = collect_timing(sent, received).summary()

    assert summary["state_age_mean_s"] == pytest.approx(0.0055)


def test_setpoints_ahead_of_late_states_rely_on_an_older_state():
    sent = [0.0, 0.008, 0.016, 0.024, 0.032]
    # The second state is 17 ms late: the setpoints at 16 and 24 ms follow the first one, 14 and
    # 22 ms after it.
    received = [0.002, 0.025, 0.026, 0.027, 0.034]

    summary = collect_timing(sent, received).summary()

    assert summary["state_age_mean_s"] == pytest.approx((0.006 + 0.014 + 0.022 + 0.005) / 4)


def test_a_sample_that_was_missed_makes_no_period():
    sent = [0.0, 0.008, 0.024, 0.032]
    received = [0.006, 0.014, 0.030, 0.038]

    summary = collect_timing(sent, received, sequence=[0, 1, 3, 4]).summary()

    assert summary["period_mean_s"] == pytest.approx(0.008)
    assert summary["period_max_s"] == pytest.approx(0.008)
    assert summary["state_age_mean_s"] == pytest.approx(0.002)


def test_only_the_counts_are_taken_from_events():
    timing = collect_timing([0.0, 0.008], [0.006, 0.014])

    timing.add_counts({"event": "ready", "q": [0.0]})
    assert timing.summary()["missed_states"] == 0

    timing.add_counts({"event": "done", "missed_deadlines": 3, "missed_states": 2})
    summary = timing.summary()
    assert summary["missed_deadlines"] == 3
    assert summary["missed_states"] == 2
    assert set(summary) == {
        "period_mean_s",
        "period_std_s",
        "period_p999_s",
        "period_max_s",
        "missed_deadlines",
        "missed_states",
        "state_age_mean_s",
    }
