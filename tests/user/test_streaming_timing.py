"""When the servo loop sends a setpoint, and which state a setpoint is compared with."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.received_states import STALE_S
from simbridge.backends.servo_loop import AHEAD_S, FORGET_S
from simbridge.backends.streamed_motion import PlanReplay
from simbridge.servo.feedforward import SCALING_RAMP
from simbridge.ur.errors import StaleState
from tests.backends.fake_link import VirtualClock
from tests.backends.servo_bench import (
    CB3_PERIOD,
    HOME,
    PERIODS,
    Bench,
    Nap,
    Still,
    glide,
    silent_from,
)
from tests.properties import few_examples, variants

# ---- missing states


@PERIODS
def test_setpoints_run_at_most_eight_milliseconds_ahead(period):
    bench = Bench(period, delay=silent_from(100))

    bench.run_until_error(StaleState, PlanReplay(glide(400, period=period)))

    newest_state = 99 * period
    after_newest = bench.sent_at > newest_state
    # One responds to the last state; the others are sent without a newer one.
    assert (after_newest.sum() - 1) * period == pytest.approx(AHEAD_S)


@PERIODS
def test_a_tenth_of_a_second_of_silence_ends_it(period):
    bench = Bench(period, delay=silent_from(100))

    error = bench.run_until_error(StaleState, PlanReplay(glide(400, period=period)))

    assert error.timestamp == pytest.approx(99 * period)
    assert STALE_S < error.waited <= STALE_S + 2.0 * period
    assert bench.clock.now - 99 * period == pytest.approx(error.waited)


@PERIODS
def test_a_controller_that_repeats_a_state_is_stale(period):
    bench = Bench(period)
    bench.play(PlanReplay(glide(400, period=period)))
    repeated = dict(bench.loop.state)

    def repeat_state(timeout):
        bench.clock.sleep(min(timeout, period))
        return [repeated]

    bench.link.states = repeat_state

    with pytest.raises(StaleState):
        for _ in range(400):
            bench.loop.run_period()


def test_a_controller_that_never_sends_a_state_is_stale():
    with pytest.raises(StaleState):
        Bench(delay=lambda tick: None)


@PERIODS
def test_after_a_standstill_the_plan_ramps_up(period):
    plan = glide(round(2.0 / period), period=period)
    bench = Bench(period, freezes={round(1.0 / period): FORGET_S + 0.05})

    bench.run(PlanReplay(plan))

    gap = int(np.argmax(np.diff(bench.sent_at)))
    assert np.diff(bench.sent_at)[gap] > 0.05
    speed = bench.speeds
    ramp = 0.3 * SCALING_RAMP * period
    assert speed[gap] == pytest.approx(ramp, rel=1e-2)
    resuming = speed[gap : gap + round(0.2 / period)]
    assert np.diff(resuming) == pytest.approx(ramp, rel=1e-2)
    assert bench.recorded("position")[-1] == len(plan) - 1
    assert bench.loop.missed_deadlines >= 0.05 / period


# In make test: less than setpoints run ahead by, and nearly as long as may be.
@PERIODS
@pytest.mark.parametrize("length", variants([0.004, 0.01, 0.05, 0.09], 0.004, 0.09))
def test_after_a_standstill_samples_belong_to_the_next_state_again(period, length):
    plan = glide(round(0.8 / period), period=period)
    bench = Bench(period, freezes={round(0.4 / period): length})

    bench.run(PlanReplay(plan))

    timestamps = bench.recorded("timestamp")
    assert bench.loop.missed_states == 0
    assert (np.diff(timestamps) > 0.0).all()
    # During the standstill a few more were sent, and the controller uses only the last of them.
    differs = (bench.recorded("q") != bench.recorded("setpoint")).any(axis=1)
    unused = timestamps[differs]
    assert len(unused) <= AHEAD_S / period
    assert (unused >= 0.4 - period / 2).all()
    assert (unused <= 0.4 + AHEAD_S + period).all()


@PERIODS
@pytest.mark.parametrize("every", [7, 50])
def test_a_missing_state_is_counted_and_the_plan_continues(period, every):
    plan = glide(500, period=period)
    bench = Bench(period, delay=lambda tick: None if tick % every == every - 1 else 0.0)

    bench.run(PlanReplay(plan))

    assert np.array_equal(bench.wire[:500], plan)
    sequence = bench.recorded("sequence").astype(int)
    assert bench.loop.missed_states == 500 - len(sequence) > 0
    assert np.array_equal(bench.recorded("setpoint"), plan[sequence])
    assert np.array_equal(bench.recorded("q"), plan[sequence])


def test_states_that_arrive_in_bursts_are_all_matched_to_their_setpoints():
    plan = glide(500, period=0.002)
    # Three states at a time, as after a lost packet.
    bench = Bench(0.002, delay=lambda tick: 0.002 * (2 - tick % 3))

    bench.run(PlanReplay(plan))

    assert np.array_equal(bench.recorded("sequence"), np.arange(500))
    assert np.array_equal(bench.wire[:500], plan)
    assert bench.loop.missed_states == 0


def test_a_few_late_states_do_not_cost_a_period():
    plan = glide(500, period=0.002)
    late = (200, 201, 202, 300)
    bench = Bench(0.002, delay=lambda tick: 0.001 if tick in late else 0.0)

    bench.run(PlanReplay(plan))

    assert bench.loop.missed_deadlines == 0
    assert bench.loop.missed_states == 0
    assert np.abs(np.diff(bench.sent_at[:500]) - 0.002).max() < 1e-4
    assert np.array_equal(bench.recorded("setpoint"), plan)
    assert np.array_equal(bench.recorded("q"), plan)


def test_the_counts_are_those_of_the_current_motion():
    bench = Bench(delay=lambda tick: None if tick % 10 == 9 and tick < 90 else 0.0)

    bench.run(PlanReplay(np.repeat(HOME[np.newaxis], 100, axis=0)))
    assert bench.loop.missed_states > 0

    bench.run(PlanReplay(np.repeat(HOME[np.newaxis], 50, axis=0)))
    assert bench.loop.missed_states == 0
    assert bench.loop.missed_deadlines == 0


# ---- time


@PERIODS
def test_setpoints_are_sent_more_regularly_than_states_arrive(period):
    chance = random.Random(4)
    bench = Bench(period, delay=lambda tick: 0.3 * period * chance.random())

    bench.run(Still(), 1200)

    jitter_of_states = np.diff(bench.link.arrivals).std()
    assert np.diff(bench.sent_at)[500:].std() < 0.2 * jitter_of_states
    assert bench.loop.missed_deadlines == 0
    assert bench.loop.missed_states == 0


@pytest.mark.parametrize("drift", [5e-5, -5e-5])
@pytest.mark.parametrize("slots", variants([3_000, 10_000, 100_000], 3_000))
def test_the_phase_stays_constant_although_the_clock_drifts(slots, drift):
    period = 0.002
    bench = Bench(period, drift=drift)

    bench.run(Still(), slots)

    ticks = bench.sent_ticks
    assert (np.diff(ticks) == 1).all()
    # By the end the clocks differ by 0.15, 0.5 or 5 periods.
    drifted = bench.sent_at - bench.sent_at[0] - (ticks - ticks[0]) * period
    assert abs(drifted[-1]) > 4e-5 * slots * period
    phase = bench.sent_at - ticks * period / (1.0 + drift)
    assert np.abs(phase - phase[0]).max() < 0.01 * period
    assert bench.loop.missed_deadlines == 0
    assert bench.loop.missed_states == 0


@PERIODS
def test_setpoints_follow_a_growing_delay_of_the_states(period):
    bench = Bench(period, delay=lambda tick: 0.0 if tick < 100 else 0.4 * period)

    bench.run(Still(), 600)

    assert np.diff(bench.sent_at).min() > 0.999 * period
    phase = bench.sent_at - bench.sent_ticks * period
    assert phase[-1] - phase[50] == pytest.approx(0.4 * period, rel=1e-2)


@PERIODS
@pytest.mark.parametrize(
    ("slept", "missed"), [(0.3, 0), (0.7, 0), (0.8, 1), (0.98, 1), (1.3, 1), (3.6, 3)]
)
def test_missed_deadlines_are_counted_and_the_plan_does_not_jump(period, slept, missed):
    plan = glide(500, period=period)
    bench = Bench(period, clock=VirtualClock(Nap(slept * period)))

    bench.run(PlanReplay(plan))

    assert np.array_equal(bench.wire[:500], plan)
    assert bench.loop.missed_deadlines == missed
    assert bench.loop.missed_states == 0
    # As many ticks have no setpoint of their own, and none has two.
    assert sorted(np.diff(bench.sent_ticks[:500]))[-2:] == [1, 1 + missed]
    assert np.array_equal(bench.recorded("q"), plan)


@PERIODS
@few_examples(5, soak=600)
@given(st.floats(0.0, 0.09))
def test_after_a_delay_samples_are_measured_when_setpoints_are_in_force(period, nap):
    plan = glide(200, period=period)
    bench = Bench(period, clock=VirtualClock(Nap(nap, at=100)))

    bench.run(PlanReplay(plan))

    sequence = bench.recorded("sequence").astype(int)
    assert len(sequence) >= 198
    # The recorded setpoints are on the plan, between samples if it was slowed down.
    position = np.minimum(bench.recorded("position"), len(plan) - 1.0)
    index = position.astype(int)
    step = plan[np.minimum(index + 1, len(plan) - 1)] - plan[index]
    due = plan[index] + (position - index)[:, np.newaxis] * step
    assert np.allclose(bench.recorded("setpoint"), due, rtol=0.0, atol=1e-12)
    assert np.array_equal(bench.recorded("q"), bench.recorded("setpoint"))
    if nap <= 0.9 * FORGET_S:
        assert np.array_equal(bench.recorded("setpoint"), plan[sequence])


@PERIODS
@pytest.mark.parametrize("nap", variants([0.04, 0.09], 0.09))
def test_after_a_long_delay_the_plan_resumes_from_rest(period, nap):
    # The nap is at constant speed, which the plan has after 0.3 s.
    if period == CB3_PERIOD:
        plan = glide(600)
        clock = VirtualClock(Nap(nap, at=300))
    else:
        plan = glide(1000, period=period)
        clock = VirtualClock(Nap(nap, at=500))
    bench = Bench(period, clock=clock)

    bench.run(PlanReplay(plan))

    gap = int(np.argmax(np.diff(bench.sent_at)))
    assert np.diff(bench.sent_at)[gap] > 0.9 * nap
    assert bench.speeds[gap - 2] > 0.1
    resumed = bench.speeds[gap:]
    ramp = SCALING_RAMP * period * 0.3
    assert np.abs(resumed[0]) <= 1.01 * ramp
    resuming = resumed[: int(0.5 / (SCALING_RAMP * period))]
    assert np.abs(np.diff(resuming)).max() <= 1.01 * ramp + 1e-9
    assert np.array_equal(bench.wire[-1], plan[-1])
