"""Checks of a connection: which timing passes, and how another is reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simbridge.doctor.network_checks import (
    NetworkFacts,
    check_arrival,
    check_jitter,
    check_round_trip,
    network_facts,
)
from tests.doctor.surveys import assert_verdict


def measured(rtde=0.0003, late=0.0002, missed=0, gap=0.002):
    return NetworkFacts(
        rtde=np.full(20, rtde),
        dashboard=np.full(20, 0.001),
        lateness=np.full(1000, late),
        missed=missed,
        period=0.002,
        gaps=np.full(100, gap),
    )


def test_a_slow_or_uneven_network_warns():
    assert_verdict(check_round_trip(measured()), "pass", "0.30 ms")
    assert_verdict(check_round_trip(measured(rtde=0.02)), "warn", "cable")
    assert_verdict(check_jitter(measured()), "pass", "1000 states")
    assert_verdict(check_jitter(measured(late=0.005)), "warn", "5.00 ms")
    assert_verdict(check_jitter(measured(missed=3)), "warn", "3 missed")
    assert_verdict(check_jitter(replace(measured(), lateness=np.zeros(0))), "fail", "has stopped")


def test_lateness_is_relative_to_the_fastest_state():
    stamps = np.array([10.0, 10.002, 10.004, 10.010])
    arrivals = np.array([5.001, 5.003, 5.008, 5.011])

    facts = network_facts(np.ones(1), np.ones(1), arrivals, stamps=stamps, period=0.002)

    assert facts.lateness == pytest.approx([0.0, 0.0, 0.003, 0.0], abs=1e-12)
    assert facts.missed == 2


def test_states_in_bursts_warn_of_longer_runs():
    assert_verdict(check_arrival(measured()), "pass", "2.00 ms", "0 %")
    assert_verdict(
        check_arrival(measured(gap=0.012)),
        "warn",
        "every 12.00 ms",
        "17 %",
        "take longer",
    )


def test_long_bursts_of_states_warn():
    assert_verdict(
        check_arrival(measured(gap=0.05)),
        "warn",
        "every 50.00 ms",
        "80 %",
        "late_states",
    )


def test_states_that_arrive_together_are_one_arrival():
    stamps = np.array([10.0, 10.002, 10.004, 10.006])
    arrivals = np.array([5.005, 5.005, 5.015, 5.015])

    facts = network_facts(np.ones(1), np.ones(1), arrivals, stamps=stamps, period=0.002)

    assert facts.gaps == pytest.approx([0.01])
