"""The guard lets out nothing that breaks its rules.

After the first violation it lets out nothing at all.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simbridge.errors import GuardViolation
from simbridge.planning.guard import Guard
from simbridge.robot import load_robot
from simbridge.servo.feedforward import SCALING_RAMP
from tests.properties import few_examples

ROBOT = load_robot("ur10")
HOME = ROBOT.home
PERIOD = 0.008
STEP = ROBOT.max_velocity * PERIOD  # how far each joint may go in a period
DISTANCE = 0.2  # from the measured arm, standing; the design's figure


@pytest.fixture
def guard():
    guard = Guard(ROBOT, PERIOD, lookahead=0.03)
    guard.reset(HOME)
    return guard


def violation(guard, setpoint, measured=HOME):
    with pytest.raises(GuardViolation) as caught:
        guard.check(setpoint, measured)
    return caught.value


def test_a_good_setpoint_is_unchanged(guard):
    setpoint = HOME + 0.5 * STEP

    assert guard.check(setpoint, HOME).tobytes() == setpoint.tobytes()


def test_what_comes_out_belongs_to_nobody_else(guard):
    setpoint = HOME.copy()
    passed = guard.check(setpoint, HOME)
    setpoint += 1.0

    assert np.array_equal(passed, HOME)

    with pytest.raises(ValueError, match="read-only"):
        passed += 1.0


@pytest.mark.parametrize(
    "setpoint",
    [
        "hello",
        None,
        pytest.param(object(), id="object"),
        {},
        [],
        0.0,
        HOME[:5],
        HOME[None],
        [1, "x", 0, 0, 0, 0],
        [[1], [2, 3]],
        [10**400] * 6,
    ],
    ids=repr,
)
def test_a_setpoint_has_a_number_per_joint(guard, setpoint):
    error = violation(guard, setpoint)

    assert error.rule == "shape"
    assert "stopped" in str(error)


class Hostile:
    def __array__(self, *arguments, **keywords):
        raise RuntimeError("no array today")


def test_an_object_that_is_no_array_latches(guard):
    assert violation(guard, Hostile()).rule == "shape"
    assert violation(guard, HOME).rule == "latched"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("joint", range(6))
def test_a_number_that_is_not_finite_is_refused(guard, joint, value):
    setpoint = HOME.copy()
    setpoint[joint] = value

    assert violation(guard, setpoint).rule == "finite"


@pytest.mark.parametrize(
    "measured",
    [np.full(6, np.nan), HOME[:5], "nowhere", None],
    ids=["nan", "short", "text", "None"],
)
def test_an_unknown_position_is_refused(guard, measured):
    assert violation(guard, HOME, measured).rule in {"finite", "shape"}


def test_an_arm_that_stands_nowhere_gets_no_setpoint(guard):
    guard.reset(np.full(6, np.nan))

    assert violation(guard, HOME).rule == "velocity"


@pytest.mark.parametrize("joint", range(6))
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_setpoint_past_a_limit_is_named(guard, joint, side):
    limit = (ROBOT.position_min if side < 0.0 else ROBOT.position_max)[joint]
    at = HOME.copy()
    at[joint] = limit
    guard.reset(at)
    setpoint = at.copy()
    setpoint[joint] = limit + side * 0.5 * STEP[joint]

    error = violation(guard, setpoint, at)

    assert (error.rule, error.joint) == ("position", ROBOT.joint_names[joint])
    assert (error.value, error.limit) == (setpoint[joint], limit)


@pytest.mark.parametrize("joint", range(6))
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_step_limit_is_exact(guard, joint, side):
    setpoint = HOME.copy()
    setpoint[joint] += side * STEP[joint]

    assert np.array_equal(guard.check(setpoint, HOME), setpoint)

    guard.reset(HOME)
    setpoint[joint] = HOME[joint] + side * 1.001 * STEP[joint]

    error = violation(guard, setpoint)

    assert (error.rule, error.joint) == ("velocity", ROBOT.joint_names[joint])
    assert error.value == pytest.approx(1.001 * ROBOT.max_velocity[joint], rel=1e-9)
    assert error.limit == ROBOT.max_velocity[joint]


def test_a_resting_setpoint_may_lead_a_little(guard):
    measured = HOME.copy()
    measured[3] += DISTANCE - 1e-9
    guard.check(HOME, measured)
    measured[3] = HOME[3] + DISTANCE + 1e-6

    error = violation(guard, HOME, measured)

    assert (error.rule, error.joint) == ("distance", ROBOT.joint_names[3])
    assert error.value == pytest.approx(DISTANCE + 1e-6, rel=1e-9)
    assert error.limit == pytest.approx(DISTANCE, rel=1e-12)


def test_a_moving_setpoint_may_lead_more(guard):
    speed = 1.0  # rad/s
    setpoint = HOME.copy()
    setpoint[3] += speed * PERIOD
    measured = setpoint.copy()
    measured[3] -= DISTANCE + 2.0 * 0.03 * speed - 1e-9
    guard.check(setpoint, measured)
    setpoint[3] += speed * PERIOD

    assert violation(guard, setpoint, measured).rule == "distance"


def sent(guard, velocities):
    """Check setpoints of joint 4, which moves at these velocities, rad/s, after one that rests."""
    setpoint = HOME.copy()
    for velocity in (0.0, *velocities):
        setpoint = setpoint + velocity * PERIOD * np.eye(6)[3]
        guard.check(setpoint, setpoint)
    return setpoint


@pytest.mark.parametrize(
    "velocities", [(1.0, 2.0, 3.0, 2.0, 1.0), (-1.0, 0.0, 1.0), (0.9, 0.0, 0.9, 0.0)]
)
def test_an_allowed_velocity_jump_passes(guard, velocities):
    sent(guard, velocities)


@pytest.mark.parametrize("velocities", [(1.29,), (0.7, 1.29, 0.0), (-0.7, 0.7)])
def test_a_larger_velocity_jump_is_refused(guard, velocities):
    with pytest.raises(GuardViolation) as caught:
        sent(guard, velocities)

    error = caught.value

    assert (error.rule, error.joint) == ("velocity jump", ROBOT.joint_names[3])
    assert error.value == pytest.approx(abs(np.diff((0.0, *velocities))[-1]), rel=1e-9)
    # The jump itself, and what the speed slider adds while it changes.
    assert error.limit == pytest.approx(1.0 + SCALING_RAMP * PERIOD * ROBOT.max_velocity[3])


def test_a_slowed_stream_goes_on_slower(guard):
    setpoint = sent(guard, (0.9, 1.8, 2.7))
    guard.scale_speed(0.0)

    assert np.array_equal(guard.check(setpoint, setpoint), setpoint)

    setpoint[3] += 1.2 * PERIOD

    assert violation(guard, setpoint, setpoint).rule == "velocity jump"


def test_servojs_velocity_has_the_joints_limit(guard):
    guard.check_predicted(ROBOT.max_velocity)

    with pytest.raises(GuardViolation) as caught:
        guard.check_predicted(ROBOT.max_velocity * np.array([0.9, 1.0, -1.02, 0.5, 1.0, 1.0]))

    assert (caught.value.rule, caught.value.joint) == ("predicted velocity", ROBOT.joint_names[2])
    assert violation(guard, HOME).rule == "latched"


def test_a_violation_latches_until_reset(guard):
    violation(guard, HOME + 1.0)

    for _ in range(3):
        assert violation(guard, HOME).rule == "latched"

    guard.reset(HOME)

    assert np.array_equal(guard.check(HOME, HOME), HOME)


def test_a_refused_setpoint_is_forgotten(guard):
    violation(guard, HOME + 2.0 * STEP)
    guard.reset(HOME)

    assert violation(guard, HOME + 3.0 * STEP).rule == "velocity"


numbers = hnp.arrays(float, 6, elements=st.floats(allow_nan=True, allow_infinity=True, width=64))
steps = hnp.arrays(float, 6, elements=st.floats(-1.5, 1.5)).map(lambda share: share * STEP)
anything = st.one_of(
    numbers,
    st.none(),
    st.text(max_size=5),
    st.lists(st.floats(), max_size=7),
    hnp.arrays(float, hnp.array_shapes()),
)
commands = st.lists(
    st.tuples(st.sampled_from(["step", "junk", "reset"]), steps, anything, numbers), max_size=30
)


@pytest.mark.slow
@few_examples(25)
@given(commands)
def test_only_good_setpoints_come_out(sequence):
    guard = Guard(ROBOT, PERIOD, lookahead=0.03)
    guard.reset(HOME)
    previous = HOME
    measured = HOME
    latched = False
    velocity = None

    for kind, step, junk, somewhere in sequence:
        if kind == "reset":
            guard.reset(HOME)
            previous = HOME
            measured = HOME
            latched = False
            velocity = None
            continue
        setpoint, at = (previous + step, measured) if kind == "step" else (junk, somewhere)
        try:
            passed = guard.check(setpoint, at)
        except GuardViolation as error:
            assert (error.rule == "latched") == latched
            latched = True
            continue
        assert not latched
        assert passed.shape == (6,)
        assert np.isfinite(passed).all()
        assert (passed >= ROBOT.position_min - 1e-9).all()
        assert (passed <= ROBOT.position_max + 1e-9).all()
        moved = np.abs(passed - previous)
        assert (moved <= 1.0001 * STEP).all()
        assert (np.abs(passed - at) <= DISTANCE + 0.06 * moved / PERIOD + 1e-12).all()
        if velocity is not None:
            assert (
                np.abs((passed - previous) / PERIOD - velocity) <= 1.0 + 4.0 * STEP + 1e-4
            ).all()
        velocity = np.zeros(6) if velocity is None else (passed - previous) / PERIOD
        previous = passed
        measured = passed
