"""Timing of a servo loop, compared with numbers computed by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from simbridge.backends.backend import ArmState
from simbridge.backends.loop_timing import LoopTiming

NONE = np.zeros(6)
STATE = ArmState(0, 0.0, 0.0, 0.0, NONE, NONE, NONE, NONE, NONE)


def timed(sent, received, sequence=None):
    timing = LoopTiming()
    for k, (leaving, arrived) in enumerate(zip(sent, received, strict=True)):
        number = k if sequence is None else sequence[k]
        timing.add(
            dataclasses.replace(STATE, sequence=number, host_sent=leaving, host_monotonic=arrived)
        )
    return timing


def test_before_the_second_setpoint_there_is_no_summary():
    assert LoopTiming().summary() is None
    assert timed([1.0], [1.006]).summary() is None


def test_the_periods_are_those_between_setpoints():
    periods = np.array([0.008, 0.009, 0.007, 0.008, 0.012])
    sent = 100.0 + np.concatenate(([0.0], np.cumsum(periods)))
    found = timed(sent, sent + 0.006).summary()
    assert found["period_mean_s"] == pytest.approx(0.0088)
    assert found["period_std_s"] == pytest.approx(np.sqrt(np.mean((periods - 0.0088) ** 2)))
    assert found["period_max_s"] == pytest.approx(0.012)
    assert found["missed_deadlines"] == found["missed_states"] == 0


def test_the_999th_thousandth_shows_one_late_period_in_a_hundred_and_hides_one_in_ten_thousand():
    for late, seen in ((100, 0.004), (1, 0.002)):
        periods = np.full(10_000, 0.002)
        periods[:late] = 0.004
        sent = np.concatenate(([0.0], np.cumsum(periods)))
        found = timed(sent, sent).summary()
        assert found["period_p999_s"] == pytest.approx(seen)
        assert found["period_max_s"] == pytest.approx(0.004)


def test_the_age_of_a_state_is_the_time_from_its_arrival_until_a_setpoint_followed_it():
    sent = np.array([0.0, 0.008, 0.016])
    # The states of the first two arrived 6 and 5 ms before the next setpoint was sent.
    found = timed(sent, [0.002, 0.011, 0.024]).summary()
    assert found["state_age_mean_s"] == pytest.approx(0.0055)


def test_setpoints_that_run_ahead_of_late_states_rely_on_an_older_state():
    # The second state is 17 ms late: the setpoints at 16 and 24 ms follow the first one, 14 and 22 ms after it.
    found = timed([0.0, 0.008, 0.016, 0.024, 0.032], [0.002, 0.025, 0.026, 0.027, 0.034]).summary()
    assert found["state_age_mean_s"] == pytest.approx((0.006 + 0.014 + 0.022 + 0.005) / 4)


def test_a_sample_that_was_missed_makes_no_period():
    found = timed(
        [0.0, 0.008, 0.024, 0.032], [0.006, 0.014, 0.030, 0.038], sequence=[0, 1, 3, 4]
    ).summary()
    assert found["period_mean_s"] == found["period_max_s"] == pytest.approx(0.008)
    assert found["state_age_mean_s"] == pytest.approx(0.002)


def test_only_the_counts_are_taken_from_events():
    timing = timed([0.0, 0.008], [0.006, 0.014])
    timing.add_counts({"event": "ready", "q": [0.0]})
    assert timing.summary()["missed_states"] == 0
    timing.add_counts({"event": "done", "missed_deadlines": 3, "missed_states": 2})
    found = timing.summary()
    assert (found["missed_deadlines"], found["missed_states"]) == (3, 2)
    assert set(found) == {
        "period_mean_s",
        "period_std_s",
        "period_p999_s",
        "period_max_s",
        "missed_deadlines",
        "missed_states",
        "state_age_mean_s",
    }
