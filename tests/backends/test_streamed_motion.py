"""What the servo loop sends: a plan, replayed at the controller's speed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.streamed_motion import PlanReplay

PLAN = np.cumsum(np.random.default_rng(7).normal(size=(40, 6)), axis=0)
RATES = st.lists(st.one_of(st.just(0.0), st.just(1.0), st.floats(0.0, 1.0)), max_size=200)


def played(plan, rates):
    """What a replay returns at these rates until it has finished: setpoints (K, n) and positions (K,)."""
    replay, returned = PlanReplay(plan), []
    for rate in rates:
        returned.append(replay.next(rate))
        if replay.finished:
            break
    return np.array([q for q, _ in returned]), np.array([position for _, position in returned])


def test_at_full_speed_a_replay_returns_the_plan_bit_for_bit_and_then_has_finished():
    setpoints, positions = played(PLAN, [1.0] * 100)
    assert np.array_equal(setpoints, PLAN)
    assert np.array_equal(positions, np.arange(40))


@pytest.mark.parametrize("first", [0.0, 0.3, 1.0])
def test_the_first_setpoint_is_the_plans_first_whatever_the_speed(first):
    setpoints, positions = played(PLAN, [first])
    assert np.array_equal(setpoints[0], PLAN[0]) and positions[0] == 0.0


def test_at_no_speed_it_stays_where_it_is():
    setpoints, positions = played(PLAN, [1.0, 0.5, 0.0, 0.0, 0.0])
    assert (positions[1:] == 0.5).all()
    assert (setpoints[1:] == setpoints[1]).all()


def test_a_plan_of_one_setpoint_has_finished_with_it():
    setpoints, _ = played(PLAN[:1], [1.0, 1.0])
    assert np.array_equal(setpoints, PLAN[:1])


def test_a_returned_setpoint_does_not_share_memory_with_the_plan():
    plan = PLAN.copy()
    first, _ = PlanReplay(plan).next(1.0)
    first[:] = 0.0
    assert np.array_equal(plan, PLAN)


@given(RATES)
def test_scaled_setpoints_lie_on_the_plan_where_the_position_says_and_never_go_back(rates):
    setpoints, positions = played(PLAN, [0.0, *rates])
    on_plan = np.array([np.interp(positions, np.arange(40), joint) for joint in PLAN.T]).T
    assert np.allclose(setpoints, on_plan, atol=1e-12)
    assert (np.diff(positions) >= 0.0).all() and positions[-1] <= 39.0
    assert np.diff(positions) == pytest.approx(
        np.minimum(rates[: len(positions) - 1], 39.0 - positions[:-1])
    )


@given(st.floats(1e-3, 1.0))
def test_a_scaled_plan_ends_with_its_last_setpoint(rate):
    setpoints, positions = played(PLAN, [rate] * 50_000)
    assert np.array_equal(setpoints[-1], PLAN[-1])
    assert positions[-1] == 39.0
