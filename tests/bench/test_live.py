"""The fraction of periods that a live session has missed, and a session that is refused."""

from __future__ import annotations

import io
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from simbridge.bench import live
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


def test_a_refused_priority_is_not_measured(monkeypatch):
    def session(*_arguments):
        return nullcontext(SimpleNamespace(stdout=io.StringIO("refused\n"), wait=lambda: 0))

    monkeypatch.setattr(live, "emulator", lambda: nullcontext(SimpleNamespace(host=live.HOST)))
    monkeypatch.setattr(live, "client", session)
    monkeypatch.setattr(live, "timer", lambda *_arguments: pytest.fail("the timer was started"))

    rows = live.measure()

    assert [row[1] for row in rows] == ["refused by the system"] * 2
