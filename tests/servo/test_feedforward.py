"""Feedforward: what is smoothed, what the commands make of the arm, and how it brakes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from simbridge.backends.streamed_motion import PlanReplay
from simbridge.servo.feedforward import (
    BRAKING,
    MAX_ACCELERATION,
    MAX_LEAD,
    SCALING_RAMP,
    advance_setpoints,
    smooth_motion,
)
from simbridge.servo.inverse import InverseServoj
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE, ServojLaw
from tests.properties import few_examples

CYCLE = 0.002
LAW = ServojLaw(CYCLE)
laws = st.builds(
    lambda gain, lookahead: ServojLaw(CYCLE, gain, lookahead),
    st.floats(*GAIN_RANGE),
    st.floats(*LOOKAHEAD_RANGE),
)


def corners(speeds, samples=150, rest=60):
    """Joint positions (T, 1) at piecewise constant speeds, rad/s, with rest at both ends."""
    steps = np.concatenate([np.zeros(rest), np.repeat(speeds, samples), np.zeros(rest)])
    return CYCLE * np.cumsum(steps)[:, np.newaxis]


def accelerations(q):
    return np.diff(q, 2, axis=0) / CYCLE**2


@pytest.mark.slow
@few_examples(6, soak=500)
@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=4))
def test_corners_are_smoothed_into_limits(speeds):
    q = corners(speeds)
    wanted, excess = smooth_motion(LAW, q)

    assert excess is None
    assert np.abs(accelerations(wanted)).max() <= MAX_ACCELERATION
    assert np.abs(LAW.commands_for(wanted) - wanted).max() <= MAX_LEAD
    # At rest where the setpoints are.
    assert (wanted[:2] == q[0]).all()
    assert wanted[-1] == pytest.approx(q[-1], abs=1e-12)


@pytest.mark.slow
@few_examples(2, soak=120)
@example(speeds=[1.0, -1.0, 0.5], begin=90)
@given(speeds=st.lists(st.floats(-3.0, 3.0), min_size=1, max_size=3), begin=st.integers(30, 500))
def test_a_speed_slider_keeps_the_acceleration(speeds, begin):
    wanted, excess = smooth_motion(LAW, corners(speeds))
    # A plan in which some is left, as at corners of 6 rad/s, is refused.
    assume(excess is None)
    replay = PlanReplay(wanted)
    rate = 1.0
    path = []
    # The slider falls to a tenth, stays there, and is raised again, over and over.
    while not replay.finished:
        goal = 1.0 if (len(path) - begin) % 500 < 250 else 0.1
        rate += np.clip(goal - rate, -SCALING_RAMP * CYCLE, SCALING_RAMP * CYCLE)
        path.append(replay.next(rate)[0])

    assert np.abs(accelerations(np.array(path))).max() <= MAX_ACCELERATION


def test_a_delay_of_the_targets_counts_as_lead():
    law = ServojLaw(CYCLE, 2000.0, 0.1)
    delay = 0.002
    speed = 0.9

    wanted, excess = smooth_motion(law, corners([speed], samples=600), delay)

    assert excess is None

    velocity = np.diff(wanted, axis=0, prepend=wanted[:1]) / CYCLE

    assert np.abs(law.commands_for(wanted) - wanted + delay * velocity).max() <= MAX_LEAD


@pytest.mark.slow
@few_examples(6, soak=400)
@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=4))
def test_only_the_neighbourhood_of_corners_is_smoothed(speeds):
    q = corners(speeds)
    wanted, _ = smooth_motion(LAW, q)
    away = np.ones(len(q), dtype=bool)
    for corner in range(60, len(q), 150):
        away[corner - 45 : corner + 46] = False
    np.testing.assert_allclose(wanted[away], q[away], rtol=0.0, atol=1e-12)


def test_a_smooth_motion_stays_as_it_is():
    q = 0.2 * np.sin(np.arange(1000) * CYCLE)[:, np.newaxis] ** 4
    wanted, excess = smooth_motion(LAW, q)

    assert excess is None
    assert (wanted == q).all()


@pytest.mark.slow
def test_lead_from_speed_cannot_be_smoothed():
    law = ServojLaw(CYCLE, 300.0, 0.2)
    _, excess = smooth_motion(law, corners([0.9], samples=600))

    assert (excess.quantity, excess.joint, excess.limit) == ("command lead", 0, MAX_LEAD)
    assert excess.value > 0.15


@given(st.floats(0.0, 0.002))
def test_setpoints_are_taken_ahead_by_the_lag(lag):
    times = np.arange(500) * CYCLE
    ahead = advance_setpoints(np.sin(times)[:, np.newaxis], CYCLE, lag)
    np.testing.assert_allclose(ahead[:-1, 0], np.sin(times[:-1] + lag), rtol=0.0, atol=1e-6)


@given(laws)
@few_examples(10)
def test_single_commands_equal_the_whole(law):
    q = np.sin(np.arange(200) * CYCLE)[:, np.newaxis] ** 3
    inverse = InverseServoj(law, q[0])
    np.testing.assert_allclose(
        [inverse.command(joints) for joints in q], law.commands_for(q), rtol=0.0, atol=1e-12
    )


@given(laws, st.lists(st.floats(-3.14, 3.14).filter(bool), min_size=2, max_size=2))
@few_examples(15)
def test_braking_keeps_the_acceleration_limit(law, speeds):
    inverse = InverseServoj(law, np.zeros(2))
    inverse.reset(np.zeros(2), np.array(speeds))
    wanted = inverse.braking(BRAKING)
    commands = [inverse.command(joints) for joints in (*wanted, wanted[-1], wanted[-1])]

    motion = law.follow(
        np.array(commands), previous=np.zeros(2), q=np.zeros(2), qd=np.array(speeds)
    )

    # Commands are single precision, which the gain turns into some 0.001 rad/s^2.
    assert np.abs(motion.qdd).max() <= BRAKING + 0.01
    assert np.abs(motion.qd[-1]).max() < 1e-3
