"""A plan is replayed at the controller's speed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.streamed_motion import PlanReplay
from tests.properties import few_examples

PLAN = np.cumsum(np.random.default_rng(7).normal(size=(40, 6)), axis=0)
RATES = st.lists(st.one_of(st.just(0.0), st.just(1.0), st.floats(0.0, 1.0)), max_size=200)


def replay_plan(plan, rates):
    """Replay a plan at these rates, until it has finished.

    Returns:
        The setpoints (K, n), rad, and their positions within the plan (K,).
    """
    replay = PlanReplay(plan)
    setpoints = []
    positions = []
    for rate in rates:
        setpoint, position = replay.next(rate)
        setpoints.append(setpoint)
        positions.append(position)
        if replay.finished:
            break
    return np.array(setpoints), np.array(positions)


def test_at_full_speed_a_replay_returns_the_plan():
    setpoints, positions = replay_plan(PLAN, [1.0] * 100)

    assert np.array_equal(setpoints, PLAN)
    assert np.array_equal(positions, np.arange(40))


@pytest.mark.parametrize("first_rate", [0.0, 0.3, 1.0])
def test_the_first_setpoint_is_the_plans_at_any_speed(first_rate):
    setpoints, positions = replay_plan(PLAN, [first_rate])

    assert np.array_equal(setpoints[0], PLAN[0])
    assert positions[0] == 0.0


def test_at_no_speed_it_stays_where_it_is():
    setpoints, positions = replay_plan(PLAN, [1.0, 0.5, 0.0, 0.0, 0.0])

    assert (positions[1:] == 0.5).all()
    assert (setpoints[1:] == setpoints[1]).all()


def test_a_plan_of_one_setpoint_has_finished_with_it():
    setpoints, _ = replay_plan(PLAN[:1], [1.0, 1.0])

    assert np.array_equal(setpoints, PLAN[:1])


def test_a_returned_setpoint_does_not_share_memory_with_the_plan():
    plan = PLAN.copy()

    setpoint, _ = PlanReplay(plan).next(1.0)
    setpoint[:] = 0.0

    assert np.array_equal(plan, PLAN)


@given(RATES)
@few_examples(15)
def test_scaled_setpoints_lie_on_the_plan_at_their_position(rates):
    setpoints, positions = replay_plan(PLAN, [0.0, *rates])

    on_plan = np.array([np.interp(positions, np.arange(40), joint) for joint in PLAN.T]).T
    assert np.allclose(setpoints, on_plan, atol=1e-12)
    assert (np.diff(positions) >= 0.0).all()
    assert positions[-1] <= 39.0
    steps = np.minimum(rates[: len(positions) - 1], 39.0 - positions[:-1])
    assert np.diff(positions) == pytest.approx(steps)


@given(st.floats(1e-3, 1.0))
@few_examples(15)
def test_a_scaled_plan_ends_with_its_last_setpoint(rate):
    # At the lowest rate the 39 periods of the plan take 39,000 steps.
    setpoints, positions = replay_plan(PLAN, [rate] * 50_000)

    assert np.array_equal(setpoints[-1], PLAN[-1])
    assert positions[-1] == 39.0
