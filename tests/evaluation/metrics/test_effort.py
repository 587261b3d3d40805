"""Joint effort: derivatives of known velocities, peaks and RMS in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simbridge.errors import UnusableSamples
from simbridge.evaluation.metrics import joint_effort
from simbridge.evaluation.metrics.effort import derivatives, evenly


@pytest.mark.parametrize("period", [0.002, 0.008])
def test_a_velocity_of_second_degree_has_exact_derivatives(period: float) -> None:
    t = np.arange(200) * period
    v = np.stack([3.0 - 2.0 * t + 5.0 * t**2, 0.5 * t], axis=1)
    acceleration, jerk = derivatives(v, period)
    m = (len(t) - len(acceleration)) // 2
    np.testing.assert_allclose(acceleration[:, 0], -2.0 + 10.0 * t[m:-m], atol=1e-9)
    np.testing.assert_allclose(acceleration[:, 1], 0.5, atol=1e-10)
    np.testing.assert_allclose(jerk, np.tile([10.0, 0.0], (len(jerk), 1)), atol=1e-7)


def test_a_vibration_keeps_the_stated_part_of_its_acceleration() -> None:
    t = np.arange(5000) * 0.002
    for frequency in (1.0, 5.0, 10.0):
        omega = 2.0 * math.pi * frequency
        acceleration, _ = derivatives(np.sin(omega * t)[:, None] / omega, 0.002)
        assert acceleration.max() == pytest.approx(1.0 - (omega * 0.01) ** 2 / 10.0, abs=0.02)


def test_noise_in_the_velocity_is_damped() -> None:
    noise = 1e-3 * np.random.default_rng(0).standard_normal((20_000, 1))
    acceleration, _ = derivatives(noise, 0.002)
    # sigma / (dt sqrt(sum k^2)) over eleven samples; the plain central difference has sigma / (dt sqrt(2)).
    assert acceleration.std() == pytest.approx(1e-3 / (0.002 * math.sqrt(110.0)), rel=0.03)


def test_peak_rms_and_use_of_a_swinging_joint_are_its_closed_forms() -> None:
    t = np.arange(10_001) * 0.002
    v = 0.8 * np.sin(math.pi * t)
    found = joint_effort(
        t,
        np.stack([v, 0.5 * v], axis=1),
        np.stack([10.0 * v, -20.0 * v], axis=1),
        max_velocity=[2.0, 1.0],
        max_acceleration=20.0,
        max_torque=[100.0, 20.0],
    )
    assert found["velocity"]["peak"] == pytest.approx([0.8, 0.4])
    assert found["velocity"]["rms"] == pytest.approx([0.8 / math.sqrt(2.0), 0.4 / math.sqrt(2.0)], rel=1e-3)
    assert found["velocity"]["used"] == pytest.approx(0.4)
    assert found["acceleration"]["peak"] == pytest.approx([0.8 * math.pi, 0.4 * math.pi], rel=1e-3)
    assert found["acceleration"]["limit"] == [20.0, 20.0]
    assert found["jerk"]["peak"] == pytest.approx([0.8 * math.pi**2, 0.4 * math.pi**2], rel=1e-3)
    assert found["jerk"]["limit"] is None
    assert found["torque"]["peak"] == pytest.approx([8.0, 16.0])
    assert found["torque"]["used"] == pytest.approx(0.8)


def test_currents_are_no_torques_and_few_samples_have_no_acceleration() -> None:
    found = joint_effort([0.0, 0.002], [[0.1], [0.2]], None, max_velocity=[1.0])
    assert found["velocity"]["peak"] == [0.2]
    assert (found["acceleration"], found["jerk"], found["torque"]) == (None, None, None)
    assert joint_effort([0.0], [[0.1]], None, max_velocity=[1.0])["acceleration"] is None


def test_torques_that_are_unknown_are_left_out() -> None:
    torque = np.array([[1.0], [np.nan], [3.0], [np.inf]])
    found = joint_effort(np.arange(4.0), np.zeros((4, 1)), torque, max_velocity=[1.0], max_torque=[6.0])
    assert found["torque"] == {"peak": [3.0], "rms": [math.sqrt(5.0)], "limit": [6.0], "used": 0.5}
    nothing = joint_effort(np.arange(4.0), np.zeros((4, 1)), np.full((4, 1), np.nan), max_velocity=[1.0])
    assert nothing["torque"] is None


def test_a_missing_stamp_is_bridged() -> None:
    t = np.delete(np.arange(100) * 0.002, [40, 41])
    period, even = evenly(t, (3.0 * t)[:, None])
    assert (period, len(even)) == (pytest.approx(0.002), 100)
    np.testing.assert_allclose(even[:, 0], 3.0 * np.arange(100) * 0.002, atol=1e-12)


def test_unusable_input_is_refused_and_named() -> None:
    with pytest.raises(UnusableSamples, match="joint torques"):
        joint_effort([0.0, 0.1], [[0.0], [0.0]], [[0.0]], max_velocity=[1.0])
    with pytest.raises(UnusableSamples, match="a rate needs two"):
        evenly([0.0], [[1.0]])
