"""Limits hold for the setpoints and for the arm that follows them, whatever the inputs are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.robot import load_robot
from simbridge.servo.feedforward import MAX_ACCELERATION, MAX_LEAD
from simbridge.servo.inverse import InverseServoj
from simbridge.servo.law import ServojLaw
from simbridge.sessions.phases import Order
from tests.properties import few_examples, variants
from tests.sessions.trial import (
    ROBOT,
    TimedInput,
    TimedOrder,
    engage_motion,
    find_refusal,
    pose_of,
    repeat_input,
    run,
)

pytestmark = pytest.mark.slow

UR10 = load_robot("ur10")
ROUNDING = 1.0 + 1e-6
TUNINGS = [(2000.0, 0.03), (100.0, 0.03), (300.0, 0.1), (100.0, 0.2), (2000.0, 0.1)]
seeds = st.integers(0, 2**32 - 1)


def instants(rng, seconds):
    """Return times at which inputs arrive, s: at 1 Hz to 1 kHz, with jitter, bursts and gaps."""
    interval = 10.0 ** rng.uniform(-3.0, 0.0)
    jitter = rng.uniform(0.0, 0.9)
    bursts = rng.random() < 0.3
    gaps = rng.random() < 0.3
    times = []
    now = rng.uniform(0.0, 0.1)
    while now < seconds:
        count = rng.integers(2, 5) if bursts and rng.random() < 0.2 else 1
        times += [now] * count
        step = interval * (1.0 + jitter * rng.uniform(-1.0, 1.0))
        gap = rng.uniform(0.1, 0.7) if gaps and rng.random() < 0.1 else 0.0
        now += step + gap
    return times


def draw_values(rng, kind, n, scale, last):
    """Return random values of a kind of input."""
    if kind == "twist":
        return rng.normal(size=6) * np.repeat([0.5, 2.0], 3) * scale
    if kind == "jog":
        return rng.normal(size=n) * 2.0 * scale
    if kind in ("joints", "follow_joints"):
        rows = last + rng.normal(size=(1 if kind == "joints" else 5, n)) * 0.5 * scale
    else:
        rows = np.tile(last, (1 if kind == "pose" else 5, 1))
        rows[:, :3] += rng.normal(size=(len(rows), 3)) * 0.2 * scale
        rows[:, 3:] += rng.normal(size=(len(rows), 4)) * 0.2 * scale
        rows[:, 3:] /= np.linalg.norm(rows[:, 3:], axis=1)[:, None]
    if kind.startswith("follow"):
        stamps = np.cumsum(rng.uniform(0.0, 0.3, len(rows))) + (rng.random() < 0.5) * 1e-3
        return np.column_stack([stamps, rows])
    return rows[0]


def stream(rng, robot, seconds):
    """Return a script of random inputs and orders."""
    script = []
    begin = 0.0
    engagement = 1
    poses = pose_of(robot.home, robot)
    while begin < seconds:
        end = begin + rng.uniform(0.2, 1.5)
        kind = str(
            rng.choice(
                ["pose", "pose", "twist", "twist", "jog", "joints", "follow", "follow_joints"]
            )
        )
        frame = str(rng.choice(["base_link", "base", "tool"]))
        relative = kind == "pose" and rng.random() < 0.2
        walk = rng.random() < 0.5
        scale = 10.0 ** rng.uniform(-2.0, 0.7)
        same = rng.random() < 0.3
        last = poses if kind in ("pose", "follow") else robot.home
        target = draw_values(rng, kind, robot.n, scale, last)
        for at in instants(rng, end - begin):
            if not same:
                target = draw_values(rng, kind, robot.n, scale, last)
                last = target if walk and kind in ("pose", "joints") else last
            script.append(TimedInput(begin + at, kind, target, frame, relative, engagement))
        order = rng.choice([Order.NONE, Order.NONE, Order.HALT, Order.DISENGAGE, Order.ENGAGE])
        engagement += order is Order.ENGAGE
        script.append(TimedOrder(end, Order(order), engagement))
        if order is Order.DISENGAGE:
            engagement += 1
            script.append(TimedOrder(end + rng.uniform(0.0, 0.4), Order.ENGAGE, engagement))
        begin = end
    return sorted(script, key=lambda event: event.time)


def moving_slider(rng):
    """Return a speed slider that jumps now and then."""
    times = np.sort(rng.uniform(0.0, 3.0, 4))
    places = [1.0, *rng.choice([0.0, 0.1, 0.5, 1.0], 4)]
    return lambda now: float(places[int(np.searchsorted(times, now))])


def run_trial(seed, robot, seconds, *, stalling=False):
    """Run a random stream of inputs; return the trace and the law of servoj."""
    rng = np.random.default_rng(seed)
    law = ServojLaw(robot.period, *TUNINGS[rng.integers(len(TUNINGS))])
    options = {
        "hold": str(rng.choice(["continue", "zero-order"])),
        "max_jump": (5.0, 5.0) if rng.random() < 0.7 else (0.1, 0.5),
        "filter": str(rng.choice(["none", "none", "one-euro", "butterworth"])),
        "timeout": None if rng.random() < 0.5 else float(10.0 ** rng.uniform(-2.0, 0.5)),
        "preview": bool(rng.random() < 0.3),
    }
    motion = engage_motion(robot, law=law, **options)
    slider = moving_slider(rng) if rng.random() < 0.5 else lambda now: 1.0
    stalls = None
    if stalling:
        steps = rng.integers(0, seconds / robot.period, 6)
        stalls = {int(k): int(rng.integers(1, 12)) for k in steps}
    script = stream(rng, robot, seconds)
    trace = run(motion, script, seconds, robot=robot, slider=slider, stalls=stalls)
    return trace, law


def check_limits(trace, law):
    """Check that setpoints and arm keep the limits."""
    robot = trace.robot
    arm = trace.follow(law)
    assert np.isfinite(trace.setpoints).all()
    assert (trace.setpoints >= robot.position_min).all()
    assert (trace.setpoints <= robot.position_max).all()
    assert (np.abs(trace.velocity) <= robot.max_velocity * ROUNDING).all()
    assert (np.abs(arm.qd) <= robot.max_velocity * ROUNDING).all()
    assert find_refusal(trace, law) is None
    if not trace.missed.any():
        assert np.abs(trace.acceleration).max() <= robot.max_acceleration * ROUNDING
        assert np.abs(arm.qdd).max() <= robot.max_acceleration * ROUNDING


@pytest.mark.parametrize("robot", [UR10, ROBOT], ids=lambda robot: robot.name)
@given(seeds)
@few_examples(2, soak=100)
def test_no_stream_of_inputs_leads_past_a_limit(robot, seed):
    trace, law = run_trial(seed, robot, 2.4 if robot is UR10 else 1.2)

    check_limits(trace, law)


@given(seeds)
@few_examples(2, soak=100)
def test_missed_periods_keep_what_the_guard_allows(seed):
    trace, law = run_trial(seed, UR10, 2.4, stalling=True)

    check_limits(trace, law)


def lead_arm(trace, law):
    """Return commands (T, n) that bring the arm to the setpoints, and the arm's motion."""
    inverse = InverseServoj(law, trace.start)
    commands = np.array([inverse.command(setpoint) for setpoint in trace.setpoints])
    return commands, law.follow(commands, previous=trace.start)


@pytest.mark.parametrize("tuning", [(2000.0, 0.03), (300.0, 0.1), (100.0, 0.03), (100.0, 0.2)])
@pytest.mark.parametrize("seed", variants([1, 2], 1))
def test_leading_commands_keep_the_arm_at_the_setpoints(tuning, seed):
    law = ServojLaw(UR10.period, *tuning)
    rng = np.random.default_rng(seed)
    motion = engage_motion(UR10, law=law, lead=True, max_jump=(5.0, 5.0))
    trace = run(motion, stream(rng, UR10, 1.5), 1.5, robot=UR10, slider=moving_slider(rng))
    commands, arm = lead_arm(trace, law)

    # A command's lead is from where the arm is to be when it has acted: as the guard checks it.
    assert np.abs(commands - trace.setpoints).max() <= MAX_LEAD
    assert np.abs(arm.qdd).max() <= MAX_ACCELERATION
    # Commands are single precision.
    assert arm.q == pytest.approx(trace.setpoints, abs=1e-5)
    assert (np.abs(arm.qd) <= UR10.max_velocity).all()


def test_with_lead_the_arm_does_not_trail_a_twist():
    law = ServojLaw(UR10.period)
    script = repeat_input("twist", [0, 0.2, 0, 0, 0, 0], 0.0, 1.0)
    trace = run(engage_motion(UR10, law=law, lead=True), script, 1.0, robot=UR10)
    _, led_arm = lead_arm(trace, law)
    trailing_arm = trace.follow(law)

    assert np.abs(led_arm.q[-1] - trace.setpoints[-1]).max() < 1e-6
    distance = np.abs(trailing_arm.q[-1] - trace.setpoints[-1]).max()
    assert distance == pytest.approx(law.lag * np.abs(trace.velocity[-1]).max(), rel=0.1)
