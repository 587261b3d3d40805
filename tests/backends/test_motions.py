"""What the servo loop sends: a plan, replayed at the controller's speed, or the newest live setpoint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.servo_channel import StateRing
from simbridge.backends.streamed_motion import LIVE_DEADLINE, Live, Replay
from simbridge.ur.errors import TargetsStopped

PLAN = np.cumsum(np.random.default_rng(7).normal(size=(40, 6)), axis=0)
RATES = st.lists(st.one_of(st.just(0.0), st.just(1.0), st.floats(0.0, 1.0)), max_size=200)


def played(plan, rates):
    """What a replay returns at these rates until it has finished: setpoints (K, n) and positions (K,)."""
    replay, returned = Replay(plan), []
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
    first, _ = Replay(plan).next(1.0)
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


@pytest.fixture
def ring(tmp_path):
    made = StateRing.create(tmp_path / "ring", 6, 8)
    return made


class Now:
    """A clock for `Live` that also stamps the posted setpoints."""

    def __init__(self, ring):
        self.time = 0.0
        ring._head[2] = 0.0

    def __call__(self):
        return self.time

    def post(self, ring, setpoint):
        ring.post(setpoint)
        ring._head[2] = self.time


def test_a_live_motion_returns_the_newest_setpoint_and_marks_it_as_taken(ring):
    now = Now(ring)
    now.post(ring, PLAN[0])
    live = Live(ring, now)
    assert not live.finished
    for k in (1, 2):
        now.post(ring, PLAN[k])
    setpoint, position = live.next(1.0)
    assert np.array_equal(setpoint, PLAN[2]) and position == 0.0
    assert ring.taken == ring.posted


def test_the_last_setpoint_is_repeated_for_at_most_a_tenth_of_a_second(ring):
    now = Now(ring)
    live = Live(ring, now)
    now.post(ring, PLAN[0])
    for k in range(12):
        now.time = 0.008 * k
        assert np.array_equal(live.next(1.0)[0], PLAN[0])
    now.time = LIVE_DEADLINE + 0.02
    with pytest.raises(TargetsStopped) as stopped:
        live.next(1.0)
    assert stopped.value.waited == pytest.approx(LIVE_DEADLINE + 0.02)


def test_a_source_that_posts_in_time_keeps_moving(ring):
    now = Now(ring)
    live = Live(ring, now)
    for k in range(10):
        now.post(ring, PLAN[k])
        assert np.array_equal(live.next(1.0)[0], PLAN[k])
        now.time += 0.9 * LIVE_DEADLINE
        assert np.array_equal(live.next(1.0)[0], PLAN[k])


def test_the_deadline_of_the_first_setpoint_begins_with_the_motion(ring):
    now = Now(ring)
    now.post(ring, PLAN[0])
    now.time = 5.0
    live = Live(ring, now)
    assert np.array_equal(live.next(1.0)[0], PLAN[0])
    now.time += LIVE_DEADLINE + 0.001
    with pytest.raises(TargetsStopped):
        live.next(1.0)


def test_a_source_that_never_posts_a_setpoint_has_stopped(ring):
    with pytest.raises(TargetsStopped):
        Live(ring, Now(ring)).next(1.0)


def test_the_controllers_speed_does_not_slow_a_live_source_down(ring):
    now = Now(ring)
    live = Live(ring, now)
    now.post(ring, PLAN[0])
    assert [live.next(0.0)[1] for _ in range(3)] == [0.0, 1.0, 2.0]
