from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter
from simbridge.servo.servoj import GAIN_RANGE, LOOKAHEAD_RANGE, ServojModel, transition

PERIOD = 0.002
lookaheads = st.floats(*LOOKAHEAD_RANGE)
gains = st.floats(*GAIN_RANGE)
angles = st.floats(-6.0, 6.0)


def runge_kutta(
    q: float, qd: float, setpoint: float, time: float, lookahead: float, gain: float
) -> tuple[float, float]:
    """The differential equation of the module's docstring, integrated by small fourth-order steps."""

    def rate(state: np.ndarray) -> np.ndarray:
        return np.array([state[1], gain * (setpoint - state[0]) - gain * lookahead * state[1]])

    state, steps = np.array([q, qd]), 400
    h = time / steps
    for _ in range(steps):
        k1 = rate(state)
        k2 = rate(state + 0.5 * h * k1)
        k3 = rate(state + 0.5 * h * k2)
        k4 = rate(state + h * k3)
        state = state + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return float(state[0]), float(state[1])


@given(lookaheads, gains, angles)
def test_a_held_setpoint_is_reached_exactly_in_the_end(lookahead, gain, setpoint):
    model = ServojModel(np.zeros(1), PERIOD, lookahead, gain)
    for _ in range(10_000):
        model.step(np.array([setpoint]))
    assert model.q == pytest.approx([setpoint], abs=1e-9)
    assert model.qd == pytest.approx([0.0], abs=1e-9)


@given(lookaheads, gains, st.floats(-1.0, 1.0))
def test_a_steady_motion_is_trailed_by_the_lookahead_and_half_a_period_of_the_hold(lookahead, gain, speed):
    model = ServojModel(np.zeros(1), PERIOD, lookahead, gain)
    for i in range(10_000):
        model.step(np.array([speed * PERIOD * i]))
    behind = speed * PERIOD * 10_000 - model.q[0]
    # A held setpoint is on average half a period old.
    assert behind == pytest.approx(speed * (lookahead + 0.5 * PERIOD), abs=2e-4 * abs(speed) + 1e-9)


@given(lookaheads, gains, angles, st.floats(-2.0, 2.0), angles, st.floats(1e-4, 0.1))
def test_a_step_solves_the_differential_equation(lookahead, gain, q, qd, setpoint, period):
    model = ServojModel(np.zeros(1), period, lookahead, gain)
    model.reset(np.array([q]), np.array([qd]))
    model.step(np.array([setpoint]))
    position, velocity = runge_kutta(q, qd, setpoint, period, lookahead, gain)
    assert model.q[0] == pytest.approx(position, abs=1e-6)
    assert model.qd[0] == pytest.approx(velocity, abs=1e-4)


@given(lookaheads, gains, angles, st.floats(-2.0, 2.0), angles, st.floats(1e-4, 0.1))
def test_two_half_steps_with_one_setpoint_are_one_step(lookahead, gain, q, qd, setpoint, period):
    whole, half = (ServojModel(np.zeros(1), p, lookahead, gain) for p in (period, 0.5 * period))
    for model in (whole, half):
        model.reset(np.array([q]), np.array([qd]))
    whole.step(np.array([setpoint]))
    half.step(np.array([setpoint]))
    half.step(np.array([setpoint]))
    assert half.q == pytest.approx(whole.q, abs=1e-9)
    assert half.qd == pytest.approx(whole.qd, abs=1e-7)


@given(lookaheads, gains)
def test_the_damping_ratio_is_lookahead_times_root_gain_by_two(lookahead, gain):
    (a, b), (c, d) = transition(PERIOD, lookahead, gain)
    poles = np.log(np.linalg.eigvals(np.array([[a, b], [c, d]])).astype(complex)) / PERIOD
    natural = abs(np.sqrt(poles[0] * poles[1]))
    assert natural == pytest.approx(math.sqrt(gain), rel=1e-6)
    assert -poles.sum().real / (2.0 * natural) == pytest.approx(0.5 * lookahead * math.sqrt(gain), rel=1e-6)


@pytest.mark.parametrize(("lookahead", "gain"), [(0.03, 2000.0), (0.03, 100.0), (0.1, 300.0)])
def test_an_underdamped_step_overshoots_by_the_textbook_amount(lookahead, gain):
    damping = 0.5 * lookahead * math.sqrt(gain)
    model = ServojModel(np.zeros(1), 1e-4, lookahead, gain)
    peak = max(float(model.step(np.ones(1))[0]) for _ in range(20_000))
    assert peak == pytest.approx(1.0 + math.exp(-math.pi * damping / math.sqrt(1.0 - damping**2)), abs=1e-5)


def test_a_critically_damped_model_has_its_limit():
    gain = 400.0
    lookahead = 2.0 / math.sqrt(gain)
    model = ServojModel(np.zeros(1), 0.01, lookahead, gain)
    for i in range(1, 50):
        rate_time = math.sqrt(gain) * 0.01 * i
        assert model.step(np.ones(1))[0] == pytest.approx(1.0 - (1.0 + rate_time) * math.exp(-rate_time), abs=1e-9)


def test_every_joint_goes_its_own_way():
    model = ServojModel(np.array([1.0, 2.0]), PERIOD)
    q = model.step(np.array([1.0, 3.0]))
    assert q[0] == 1.0
    assert 2.0 < q[1] < 3.0


def test_tuning_keeps_position_and_velocity():
    model = ServojModel(np.zeros(2), PERIOD)
    model.step(np.ones(2))
    q, qd = model.q.copy(), model.qd.copy()
    model.tune(0.1, 500.0)
    assert (model.q == q).all() and (model.qd == qd).all()
    assert (model.lookahead, model.gain) == (0.1, 500.0)


@pytest.mark.parametrize("lookahead", [0.0, 0.029, 0.201, math.nan, math.inf, -0.1])
def test_a_lookahead_outside_of_urs_range_is_refused_with_the_range(lookahead):
    with pytest.raises(InvalidParameter, match=r"lookahead.*0\.03 and 0\.2"):
        ServojModel(np.zeros(6), PERIOD, lookahead)


@pytest.mark.parametrize("gain", [0.0, 99.0, 2001.0, math.nan, math.inf, -300.0])
def test_a_gain_outside_of_urs_range_is_refused_with_the_range(gain):
    with pytest.raises(InvalidParameter, match=r"gain.*100 and 2000"):
        ServojModel(np.zeros(6), PERIOD, gain=gain)
