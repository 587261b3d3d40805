"""Setpoints that may reach the wire, whatever a motion returns and whatever the controller does."""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simbridge.backends.streamed_motion import PlanReplay
from simbridge.errors import GuardViolation, SimbridgeError
from simbridge.planning.check import check_setpoints
from simbridge.robot.collision import CollisionModel
from simbridge.robot.obstacles import CollisionScene
from simbridge.servo.law import ServojLaw
from simbridge.ur.errors import StaleState
from tests.backends.fake_link import VirtualClock
from tests.backends.servo_bench import HOME, PERIODS, UR10, Bench, Scripted
from tests.properties import few_examples

pytestmark = pytest.mark.quick

NO_FLOOR = CollisionModel(UR10, CollisionScene(floor=None))
MAX_VELOCITY = UR10.max_velocity

NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)
INVALID_SETPOINTS = st.one_of(
    st.lists(NUMBERS, min_size=0, max_size=8),
    st.lists(st.lists(NUMBERS, min_size=6, max_size=6), min_size=1, max_size=2),
    st.sampled_from([None, "q", {}, 0.0, [[], [0.0]]]),
)
# As fractions of the largest step that the joints' speed limits allow.
STEPS = st.lists(st.floats(-1.1, 1.1), min_size=6, max_size=6)
FIELDS = st.sampled_from(
    [
        {"target_speed_fraction": 0.0},
        {"target_speed_fraction": 0.3},
        {"target_speed_fraction": 1.0},
        {"runtime_state": 4},
        {"runtime_state": 2},
        {"runtime_state": 1},
        {"safety_mode": 3, "runtime_state": 4},
        {"safety_mode": 5},
        {"safety_mode": 7},
        {"robot_mode": 5},
        {"actual_q": (float("nan"),) * 6},
        {"actual_q": tuple(HOME + 0.5)},
    ]
)
CONTROLLERS = st.fixed_dictionaries(
    {
        "changes": st.dictionaries(st.integers(1, 150), FIELDS, max_size=4),
        "freezes": st.dictionaries(st.integers(1, 150), st.floats(0.0, 0.15), max_size=3),
        "drift": st.floats(-1e-3, 1e-3),
    }
)
PAUSED_AT_ONCE = {
    "changes": {1: {"runtime_state": 4}, 2: {"runtime_state": 2}},
    "freezes": {},
    "drift": 0.0,
}
JUMPS = st.lists(st.tuples(st.floats(-1.0, 1.0), st.integers(1, 12)), min_size=1, max_size=30)


def wandering_setpoints(period, steps, invalid):
    """Yield live setpoints, each one step from the last, with invalid objects among them."""
    q = HOME.copy()
    for index in range(120):
        q = q + np.array(steps[index % len(steps)]) * MAX_VELOCITY * period
        yield invalid.get(index, q)


def play_carelessly(bench, motion):
    """Play a motion, ignore every error, and continue."""
    bench.play(motion)
    for _ in range(200):
        with contextlib.suppress(SimbridgeError, StopIteration):
            bench.loop.run_period()


def check_wire(bench):
    """Check that setpoints are finite, within the joint ranges and close to their neighbours."""
    wire = bench.wire.reshape(-1, 6)
    assert np.isfinite(wire).all()
    assert (wire >= UR10.position_min - 1e-9).all()
    assert (wire <= UR10.position_max + 1e-9).all()
    steps = np.abs(np.diff(np.vstack([HOME, wire]), axis=0))
    assert (steps <= MAX_VELOCITY * bench.period * (1.0 + 1e-4)).all()


@pytest.mark.slow
@PERIODS
@few_examples(10, soak=1000)
@given(
    steps=st.lists(STEPS, min_size=1, max_size=5),
    invalid=st.dictionaries(st.integers(0, 119), INVALID_SETPOINTS, max_size=2),
    controller=CONTROLLERS,
    seed=st.integers(0, 2**32),
    lost=st.floats(0.0, 0.5),
    jitter=st.floats(0.0, 0.02),
    late=st.floats(0.0, 0.02),
)
@example(
    steps=[[0.1] * 6],
    invalid={},
    controller=PAUSED_AT_ONCE,
    seed=0,
    lost=0.0,
    jitter=0.0,
    late=0.0,
)
def test_no_forbidden_setpoint_reaches_the_wire(
    period, steps, invalid, controller, seed, lost, jitter, late
):
    chance = random.Random(seed)

    def delay(tick):
        if tick > 3 and chance.random() < lost:
            return None
        return jitter * chance.random() ** 4

    bench = Bench(
        period,
        clock=VirtualClock(lambda: late * chance.random() ** 8),
        delay=delay,
        **controller,
    )

    play_carelessly(bench, Scripted(wandering_setpoints(period, steps, invalid)))

    check_wire(bench)


@pytest.mark.slow
@PERIODS
@few_examples(10, soak=1000)
@given(st.lists(STEPS, min_size=2, max_size=60), CONTROLLERS)
def test_no_plan_sends_a_setpoint_that_the_guard_refuses(period, steps, controller):
    plan = HOME + np.cumsum(np.array(steps) * MAX_VELOCITY * period, axis=0)
    bench = Bench(period, **controller)

    play_carelessly(bench, PlanReplay(plan))

    check_wire(bench)


@pytest.mark.parametrize(
    "invalid", [[float("nan")] * 6, [float("inf")] * 6, [0.0] * 5, [[0.0] * 6], None, HOME + 0.5]
)
def test_an_invalid_setpoint_is_the_last(invalid):
    bench = Bench()

    bench.run_until_error(GuardViolation, Scripted([HOME, HOME, invalid, HOME, HOME]))

    for _ in range(2):
        with pytest.raises(GuardViolation):
            bench.loop.run_period()
    assert np.array_equal(bench.wire, [HOME, HOME])


def setpoints_with_jumps(jumps, period, fastest):
    """Return setpoints (T, 6) of the last joint, whose velocity jumps, from rest to rest.

    Args:
        jumps: By how much the velocity changes, rad/s, and for how many periods it is then kept.
        period: Control period, s.
        fastest: Largest velocity, rad/s.
    """
    velocity = 0.0
    velocities = [0.0]
    for jump, count in jumps:
        velocity = min(max(velocity + jump, -fastest), fastest)
        velocities += [velocity] * count

    # Brake to rest.
    while abs(velocity) > 1.0:
        velocity -= np.sign(velocity)
        velocities.append(velocity)

    return HOME + period * np.cumsum([*velocities, 0.0])[:, np.newaxis] * np.eye(6)[5]


@pytest.mark.slow
@PERIODS
@few_examples(3, soak=200)
@given(
    jumps=JUMPS,
    slider=st.dictionaries(st.integers(1, 200), st.floats(0.0, 1.0), max_size=5),
    pauses=st.dictionaries(st.integers(1, 200), st.integers(1, 60), max_size=2),
    seed=st.integers(0, 2**32),
    lost=st.floats(0.0, 0.4),
    late=st.floats(0.0, 0.05),
)
def test_the_guard_refuses_no_checked_plan(period, jumps, slider, pauses, seed, lost, late):
    law = ServojLaw(period)
    chance = random.Random(seed)
    plan = setpoints_with_jumps(jumps, period, MAX_VELOCITY[5] / law.velocity_gain().of_any_motion)
    check_setpoints(UR10, plan, period, max_tool_speed=10.0, collisions=NO_FLOOR)

    changes = {tick: {"target_speed_fraction": fraction} for tick, fraction in slider.items()}
    for tick, length in pauses.items():
        changes[tick] = changes.get(tick, {}) | {"runtime_state": 4}
        resumed = {"runtime_state": 2, "target_speed_fraction": 1.0}
        changes[tick + length] = changes.get(tick + length, {}) | resumed
    bench = Bench(
        period,
        clock=VirtualClock(lambda: late * chance.random() ** 8),
        delay=lambda tick: None if tick > 3 and chance.random() < lost else 0.0,
        changes=changes,
    )

    # A controller that is not heard of for too long ends the run, too.
    with contextlib.suppress(StaleState):
        bench.run(PlanReplay(plan), 600)

    assert len(bench.wire)


def test_setpoints_that_servoj_follows_too_fast_are_refused():
    period = 0.002
    law = ServojLaw(period)
    velocity = np.minimum(np.arange(100), 3.14)
    plan = HOME + period * np.cumsum(velocity)[:, np.newaxis] * np.eye(6)[5]
    bench = Bench(period, law=law)

    error = bench.run_until_error(GuardViolation, PlanReplay(plan))

    assert error.rule == "predicted velocity"
    assert error.joint == UR10.joint_names[5]
    fastest = np.abs(law.follow(bench.wire, previous=HOME).qd[:, 5]).max()
    assert 0.99 * MAX_VELOCITY[5] < fastest <= 1.001 * MAX_VELOCITY[5] < error.value
