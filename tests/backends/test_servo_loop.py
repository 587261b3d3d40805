"""The servo loop replays a plan, at full speed and at the controller's speed."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.backends.streamed_motion import PlanReplay
from simbridge.errors import GuardViolation
from simbridge.servo.feedforward import SCALING_RAMP
from simbridge.ur.errors import SpeedScaled
from tests.backends.servo_bench import HOME, PERIODS, Bench, glide

pytestmark = pytest.mark.slow


@PERIODS
def test_at_full_speed_the_whole_plan_is_sent(period):
    plan = glide(500, period=period)

    bench = Bench(period).run(PlanReplay(plan))

    assert np.array_equal(bench.wire[: len(plan)], plan)
    assert (bench.wire[len(plan) :] == plan[-1]).all()
    assert np.allclose(np.diff(bench.sent_at), period, atol=1e-9)


@PERIODS
def test_a_sample_is_measured_one_period_after_its_setpoint(period):
    plan = glide(500, period=period)

    bench = Bench(period).run(PlanReplay(plan))

    assert np.array_equal(bench.recorded("sequence"), np.arange(500))
    assert np.array_equal(bench.recorded("setpoint"), plan)
    due = (bench.sent_ticks[:500] + 1) * period
    assert np.allclose(bench.recorded("timestamp"), due, atol=1e-12)
    # This arm is where its setpoint is one tick after it was sent.
    assert np.array_equal(bench.recorded("q"), plan)
    assert np.array_equal(bench.recorded("position"), np.arange(500))
    assert bench.loop.missed_states == 0
    assert bench.loop.missed_deadlines == 0


def test_the_next_motion_starts_from_the_held_setpoint():
    bench = Bench().run(PlanReplay(glide(50)))

    for _ in range(10):
        bench.loop.run_period()

    assert len(bench.wire) >= 60
    assert (bench.wire[50:] == bench.wire[49]).all()

    bench.run(PlanReplay(bench.wire[49] + np.zeros((3, 1))))
    count = len(bench.wire)
    bench.run_until_error(GuardViolation, PlanReplay(np.array([HOME + 0.5])))

    assert len(bench.wire) == count


def test_nothing_is_sent_before_the_first_motion():
    bench = Bench()

    for _ in range(20):
        bench.loop.run_period()

    assert not bench.link.sent


# ---- the controller's speed


def test_at_thirty_percent_the_plan_is_replayed_at_that_speed():
    plan = glide(400)

    bench = Bench(changes={100: {"target_speed_fraction": 0.3}}).run(PlanReplay(plan))

    samples = len(bench.states)
    assert bench.speeds[150 : samples - 2] == pytest.approx(0.3 * 0.3, rel=1e-6)
    # The samples record their position within the plan.
    position = bench.recorded("position")
    assert np.diff(position)[150:-2] == pytest.approx(0.3)
    on_plan = np.array([np.interp(position, np.arange(400), joint) for joint in plan.T]).T
    assert np.allclose(bench.recorded("setpoint"), on_plan, atol=1e-12)
    assert np.array_equal(bench.wire[samples - 1], plan[-1])
    assert bench.recorded("scaling").min() == pytest.approx(0.3)


@PERIODS
@pytest.mark.parametrize("field", ["target_speed_fraction", "speed_scaling"])
def test_after_a_controllers_stop_the_plan_ramps_up(period, field):
    stop = round(0.5 / period)
    resume = round(0.9 / period)
    plan = glide(round(1.2 / period), period=period)
    bench = Bench(period, changes={stop: {field: 0.0}, resume: {field: 1.0}})

    bench.run(PlanReplay(plan))

    ticks = bench.sent_ticks[1:]
    speed = bench.speeds
    # The change of speed in a period of the ramp, rad/s.
    ramp = 0.3 * SCALING_RAMP * period
    at_rest = stop + round(1.0 / SCALING_RAMP / period)
    assert (speed[(ticks >= at_rest) & (ticks < resume)] == 0.0).all()
    braking = speed[(ticks >= stop) & (ticks < at_rest)]
    assert np.diff(braking) == pytest.approx(-ramp, rel=1e-3)
    accelerating = speed[ticks >= resume][: round(0.25 / period)]
    assert np.diff(accelerating) == pytest.approx(ramp, rel=1e-3)
    assert accelerating[0] == pytest.approx(ramp, rel=1e-3)
    assert speed.max() == pytest.approx(0.3)
    assert bench.recorded("position")[-1] == len(plan) - 1
    assert bench.recorded("scaling").min() == 0.0


def test_a_plan_that_requires_full_speed_ends_in_speed_scaled():
    bench = Bench(changes={100: {"target_speed_fraction": 0.3}}, follow=False)

    error = bench.run_until_error(SpeedScaled, PlanReplay(glide(400)))

    assert error.scaling == pytest.approx(0.3)
    assert bench.link.sent[-1].tick == 99
