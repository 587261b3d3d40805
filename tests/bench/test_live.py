"""The fraction of periods that a live session has missed."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.bench.live import PERIOD, missed_fraction

COUNT = 2000


@pytest.fixture
def begun():
    """When periods began that were all in time, s."""
    return PERIOD * np.arange(COUNT)


def test_regular_periods_are_in_time(begun):
    assert missed_fraction(begun) == 0.0


@pytest.mark.parametrize(("delay", "missed"), [(0.4, 0), (0.6, 1)])
def test_over_half_a_period_late_is_missed(begun, delay, missed):
    begun[700] += delay * PERIOD

    assert missed_fraction(begun) == pytest.approx(missed / COUNT)


def test_a_period_that_never_began_is_missed(begun):
    assert missed_fraction(np.delete(begun, 700)) == pytest.approx(1 / COUNT)


def test_a_drifting_clock_misses_nothing(begun):
    assert missed_fraction(1.0005 * begun) == 0.0
