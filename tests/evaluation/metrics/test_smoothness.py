"""Smoothness: the published values of a minimum-jerk motion, and their invariances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter, UnusableSamples
from simbridge.evaluation.metrics import smoothness
from simbridge.evaluation.metrics.smoothness import _spectrum, ldlj, smoothness_summary, sparc

Array = NDArray[Any]
RATE = 500.0


def minimum_jerk(rate: float = RATE, duration: float = 1.0) -> Array:
    u = np.arange(0.0, duration + 0.5 / rate, 1.0 / rate) / duration
    return (30.0 * u**2 - 60.0 * u**3 + 30.0 * u**4) / duration


def test_minimum_jerk_has_the_published_sparc() -> None:
    assert sparc(minimum_jerk(), RATE, cutoff=20.0) == pytest.approx(-1.4024, abs=1e-3)


def test_minimum_jerk_has_its_dimensionless_jerk() -> None:
    # 720 / (15/8)^2 = 204.8; -ln of it is -5.3220. Sampled at 500 Hz it is -5.3180.
    assert ldlj(minimum_jerk(), RATE) == pytest.approx(-5.3180, abs=1e-3)
    assert ldlj(minimum_jerk(20_000.0), 20_000.0) == pytest.approx(-math.log(204.8), abs=1e-3)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_neither_metric_depends_on_the_speed(scale: float) -> None:
    v = minimum_jerk()

    assert sparc(scale * v, RATE) == pytest.approx(sparc(v, RATE))
    assert ldlj(scale * v, RATE) == pytest.approx(ldlj(v, RATE))


def test_duration_does_not_change_dimensionless_jerk() -> None:
    assert ldlj(minimum_jerk(RATE, 4.0), RATE) == pytest.approx(
        ldlj(minimum_jerk(4.0 * RATE), 4.0 * RATE)
    )


def test_two_movements_are_less_smooth_than_one() -> None:
    v = minimum_jerk()
    twice = np.concatenate([v, np.zeros(100), v])

    assert sparc(twice, RATE) < sparc(v, RATE) - 0.5
    assert ldlj(twice, RATE) < ldlj(v, RATE) - 0.5


def test_only_tremor_below_the_cutoff_counts() -> None:
    t = np.arange(501) / RATE
    v = minimum_jerk()

    low, high = (v + 0.4 * v * np.sin(2.0 * math.pi * f * t) for f in (6.0, 40.0))

    assert sparc(low, RATE) < sparc(v, RATE) - 0.1
    assert sparc(high, RATE) == pytest.approx(sparc(v, RATE), abs=1e-3)


def test_a_long_transform_equals_numpys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first points of a transform in parts equal those of numpy."""
    values = np.random.default_rng(0).standard_normal(1000)
    whole = np.fft.rfft(values, 16384)

    monkeypatch.setattr(smoothness, "MAX_TRANSFORM_POINTS", 512)

    for count in (40, 300, 8193):
        np.testing.assert_allclose(_spectrum(values, 16384, count), whole[:count], atol=1e-10)


def test_a_motion_at_rest_has_no_smoothness() -> None:
    assert sparc(np.zeros(100), RATE) is None
    assert sparc([1.0, 2.0], RATE) is None
    assert ldlj([1.0, 2.0], RATE) is None
    assert ldlj(np.ones(100), RATE) is None


def test_unusable_input_is_named_in_the_error() -> None:
    with pytest.raises(UnusableSamples, match=r"speeds.*sample 1"):
        sparc([1.0, math.nan, 1.0], RATE)
    for rate in (0.0, math.nan):
        with pytest.raises(InvalidParameter, match="rate"):
            ldlj(np.ones(5), rate)
    for cutoff in (0.0, 251.0):
        with pytest.raises(InvalidParameter, match="cut-off"):
            sparc(np.ones(5), RATE, cutoff=cutoff)


def test_tool_and_joints_have_separate_values() -> None:
    """The tool and each joint have separate values, and a resting joint has none."""
    t = np.arange(501) / RATE
    v = minimum_jerk()
    x = np.stack([np.cumsum(v) / RATE, 0.0 * t, 0.0 * t], axis=1)
    noise = 1e-5 * np.random.default_rng(1).standard_normal(501)

    summary = smoothness_summary(t, x, np.stack([-v, noise], axis=1))

    assert summary["joints"]["sparc"] == [pytest.approx(sparc(v, RATE)), None]
    assert summary["joints"]["ldlj"] == [pytest.approx(ldlj(v, RATE)), None]
    assert summary["tool"]["sparc"] == pytest.approx(sparc(v, RATE), abs=1e-2)


@pytest.mark.parametrize("rate", [125.0, 500.0, 2000.0])
def test_a_reversing_joint_is_rate_independent(rate: float) -> None:
    """The smoothness of a reversing joint does not depend on the sampling rate."""
    t = np.arange(0.0, 4.0, 1.0 / rate)
    # One period of a sine: jerk w^4/2 on average over T = 4 s, w = pi/2.
    velocity = np.sin(0.5 * np.pi * t)

    summary = smoothness_summary(t, np.zeros((len(t), 3)), velocity[:, None])

    assert summary["joints"]["ldlj"] == [
        pytest.approx(-np.log(4.0**3 * 4.0 * 0.5 * (0.5 * np.pi) ** 4), abs=0.02)
    ]


def test_a_run_of_two_samples_has_no_smoothness() -> None:
    summary = smoothness_summary([0.0, 0.1], np.zeros((2, 3)), np.zeros((2, 1)))

    assert summary == {
        "tool": {"sparc": None, "ldlj": None},
        "joints": {"sparc": [None], "ldlj": [None]},
    }
