"""An arm that obeys servoj, driven by the servo loop: feedforward, and how it brakes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.streamed_motion import PlanReplay
from simbridge.errors import GuardViolation
from simbridge.servo.feedforward import MAX_ACCELERATION
from simbridge.servo.law import ServojLaw
from simbridge.ur.errors import ProgramPaused, ProtectiveStop
from tests.backends.fake_link import VirtualClock
from tests.backends.servo_bench import HOME, JOINT_RATIOS, Bench, minimum_jerk
from tests.properties import few_examples, variants

PERIOD = 0.002
FEEDFORWARD = pytest.mark.parametrize("feedforward", [False, True])


def obedient_bench(tuning=(2000.0, 0.03), **controller):
    """Return a bench whose arm obeys servoj with this gain and lookahead (s)."""
    return Bench(PERIOD, law=ServojLaw(PERIOD, *tuning), **controller)


def from_rest_to_rest(amplitude=0.4, duration=1.0):
    """Return setpoints (T, n) of least jerk, with 0.1 s of rest at both ends."""
    times = np.arange(round((duration + 0.2) / PERIOD)) * PERIOD
    u = np.clip((times - 0.1) / duration, 0.0, 1.0)
    return HOME + amplitude * minimum_jerk(u)[:, np.newaxis] * JOINT_RATIOS


PLAN = from_rest_to_rest()


def plan_at_samples(bench):
    """Return where the plan is at the recorded samples (T, n), rad."""
    position = bench.recorded("position")
    return np.stack([np.interp(position, np.arange(len(PLAN)), joint) for joint in PLAN.T], axis=1)


def test_feedforward_reaches_each_setpoint_in_time():
    bench = obedient_bench().run(PlanReplay(PLAN), feedforward=True)

    # Commands are single precision.
    assert np.abs(bench.recorded("controller_target") - PLAN).max() < 1e-6
    assert np.abs(bench.recorded("setpoint") - PLAN).max() > 0.01


def test_without_it_the_arm_trails_by_the_lag_of_the_law():
    bench = obedient_bench().run(PlanReplay(PLAN))

    lag = round(ServojLaw(PERIOD).lag / PERIOD)
    assert np.abs(bench.recorded("controller_target")[lag:] - PLAN[:-lag]).max() < 2e-3


@few_examples(3, soak=120)
@given(
    changes=st.dictionaries(
        st.integers(20, 500),
        st.sampled_from([{"target_speed_fraction": f} for f in (0.0, 0.3, 0.7, 1.0)]),
        max_size=4,
    )
)
def test_feedforward_keeps_the_path_at_any_slider(changes):
    bench = obedient_bench(changes={**changes, 700: {"target_speed_fraction": 1.0}})

    bench.run(PlanReplay(PLAN), feedforward=True)

    assert np.abs(bench.recorded("controller_target") - plan_at_samples(bench)).max() < 1e-6
    assert bench.accelerations.max() <= MAX_ACCELERATION


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"runtime_state": 4}, ProgramPaused),
        ({"safety_mode": 3, "runtime_state": 4}, ProtectiveStop),
    ],
)
def test_once_feedforward_ends_nothing_more_is_sent(changes, kind):
    bench = obedient_bench(changes={250: changes}, wait_in_pause=False)

    with pytest.raises(kind):
        bench.run(PlanReplay(PLAN), feedforward=True)
    assert bench.link.sent[-1].tick == 249

    bench.loop.brake()
    assert bench.link.sent[-1].tick == 249


def test_commands_that_come_late_do_not_bend_the_path():
    lateness = iter([0.0] * 200 + [0.005] + [0.0] * 100 + [0.003] + [0.0] * 5000)
    bench = obedient_bench(clock=VirtualClock(lambda: next(lateness)))

    bench.run(PlanReplay(PLAN), feedforward=True)

    assert bench.loop.missed_deadlines > 0
    assert bench.accelerations.max() <= MAX_ACCELERATION
    assert np.abs(bench.recorded("controller_target")[-1] - PLAN[-1]).max() < 1e-6


@FEEDFORWARD
@few_examples(5, soak=600)
@given(slots=st.integers(60, 560), amplitude=st.floats(-1.0, 1.0), lag=st.integers(0, 4))
def test_a_stop_brakes_within_the_acceleration_limit(feedforward, slots, amplitude, lag):
    bench = obedient_bench(lag=lag)
    bench.run(PlanReplay(from_rest_to_rest(amplitude)), slots, feedforward=feedforward)
    before = bench.link.motions[-1]

    bench.loop.brake()
    # The last command is held.
    for _ in range(100):
        bench.link.states(PERIOD)

    assert bench.accelerations.max() <= MAX_ACCELERATION
    after = bench.link.motions[-1]
    assert np.abs(after.qd).max() < 1e-4
    # Joints brake in proportion: straight on, by no more than it takes at 30 rad/s^2 and what was
    # on its way.
    speed = np.abs(before.qd).max()
    assert np.abs(after.q - before.q).max() <= speed**2 / 60.0 + 0.02 * speed + 1e-4


@pytest.mark.parametrize("lag", variants([0, 3], 3))
@pytest.mark.parametrize("tuning", [(2000.0, 0.1), (300.0, 0.1), (100.0, 0.2)])
def test_a_stop_brakes_as_gently_with_a_long_lookahead(tuning, lag):
    bench = obedient_bench(tuning, lag=lag)
    bench.run(PlanReplay(from_rest_to_rest(1.0)), 350)
    assert np.abs(bench.link.motions[-1].qd).max() > 1.0

    bench.loop.brake()
    for _ in range(200):
        bench.link.states(PERIOD)

    assert bench.accelerations.max() <= MAX_ACCELERATION
    assert np.abs(bench.link.motions[-1].qd).max() < 1e-3


def test_an_unsmoothed_corner_is_never_sent():
    plan = PLAN.copy()
    # From sample 300 on the first joint moves faster by 0.15 rad/s, for 30 samples.
    plan[300:, 0] += 0.0003 * np.arange(len(plan) - 300).clip(max=30)
    bench = obedient_bench()

    with pytest.raises(GuardViolation) as refused:
        bench.run(PlanReplay(plan), feedforward=True)

    assert refused.value.rule == "acceleration"
    assert "acceleration" in str(refused.value)
    assert bench.accelerations.max() <= MAX_ACCELERATION


def test_at_rest_there_is_nothing_to_brake():
    bench = obedient_bench().run(PlanReplay(PLAN), feedforward=True)
    sent = len(bench.link.sent)

    bench.loop.brake()

    assert len(bench.link.sent) == sent
