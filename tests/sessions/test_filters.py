"""Filters of inputs report their delay, and smooth steps and noise."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest

from simbridge.sessions.filters import InputFilter, filter_delay
from simbridge.sessions.spaces import JOINTS, POSES

PERIOD = 0.002


def apply_filter(kind, values, cutoff=5.0, space=JOINTS):
    """Return values that have passed a filter."""
    input_filter = InputFilter(kind, cutoff, PERIOD, space)
    return np.array([input_filter.next(value) for value in values])


@pytest.mark.parametrize("kind", ["none", "one-euro", "butterworth"])
@pytest.mark.parametrize("cutoff", [1.0, 5.0, 20.0])
def test_a_slow_ramp_comes_out_later_by_the_delay(kind, cutoff):
    speed = 1e-3
    ramp = speed * PERIOD * np.arange(2000)[:, None]
    late = (ramp[-1, 0] - apply_filter(kind, ramp, cutoff)[-1, 0]) / speed

    assert late == pytest.approx(filter_delay(kind, cutoff), rel=0.05, abs=PERIOD)


def test_one_euro_trails_a_fast_motion_less_than_a_slow_one():
    late = {}
    for speed in (1e-3, 2.0):
        ramp = speed * PERIOD * np.arange(2000)[:, None]
        late[speed] = (ramp[-1, 0] - apply_filter("one-euro", ramp)[-1, 0]) / speed

    assert late[2.0] < 0.5 * late[1e-3]


def test_butterworth_overshoots_a_step_by_what_the_textbook_says():
    step = np.ones((1000, 1))
    step[0] = 0.0

    # exp(-pi zeta / sqrt(1 - zeta^2)) with zeta = 1 / sqrt(2).
    assert apply_filter("butterworth", step).max() == pytest.approx(
        1.0 + math.exp(-math.pi), abs=1e-4
    )


def test_one_euro_never_overshoots_a_step():
    step = np.ones((1000, 1))
    step[0] = 0.0

    assert apply_filter("one-euro", step).max() <= 1.0


@pytest.mark.parametrize("kind", ["one-euro", "butterworth"])
def test_butterworth_halves_the_power_at_its_cutoff(kind):
    t = PERIOD * np.arange(5000)
    at_cutoff = 1e-3 * np.sin(2.0 * np.pi * 5.0 * t)[:, None]
    if kind == "butterworth":
        assert np.ptp(apply_filter(kind, at_cutoff)[2500:]) / 2e-3 == pytest.approx(
            math.sqrt(0.5), rel=0.02
        )
    noise = 1e-3 * np.random.default_rng(1).normal(size=(5000, 1))

    assert apply_filter(kind, noise)[500:].std() < 0.3 * noise.std()


@pytest.mark.parametrize("kind", ["one-euro", "butterworth"])
def test_poses_are_filtered_on_the_shortest_way_and_stay_unit(kind):
    begin = np.array([0.5, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0])
    end = np.concatenate(
        [[0.6, 0.1, 0.5], -pin.Quaternion(pin.exp3(np.array([0.0, 0.0, 1.0]))).coeffs()]
    )
    values = apply_filter(kind, [begin] + [end] * 1500, space=POSES)

    assert np.linalg.norm(values[:, 3:], axis=1) == pytest.approx(1.0)
    assert POSES.size(POSES.difference(values[-1], end)) == pytest.approx((0.0, 0.0), abs=1e-4)

    # About z alone, and never more than the overshoot beyond the end.
    turns = np.array([pin.log3(pin.Quaternion(pose[3:]).matrix()) for pose in values])

    assert np.abs(turns[:, :2]).max() < 1e-9
    assert turns[:, 2].max() <= 1.0 + math.exp(-math.pi) + 1e-3
