"""How long one joint motion trails another."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.judging.delays import fit_lag

TIMES = 0.008 * np.arange(800)


def motion(times):
    """A smooth motion of two joints that never repeats."""
    return np.stack([np.sin(1.3 * times + 0.1 * times**2), 0.4 * np.cos(2.1 * times)], axis=1)


@pytest.mark.parametrize("lag", [0.002, 0.0345, 0.0985, 0.26])
def test_a_shifted_motion_shows_its_lag(lag):
    found = fit_lag(TIMES, motion(TIMES), TIMES, motion(TIMES - lag))

    assert found.lag_s == pytest.approx(lag, abs=2e-5)
    assert found.remaining_rms_rad < 1e-4


def test_the_uncertainty_covers_noise():
    noise = 1e-3 * np.random.default_rng(1).standard_normal((len(TIMES), 2))

    found = fit_lag(TIMES, motion(TIMES), TIMES, motion(TIMES - 0.03) + noise)

    assert abs(found.lag_s - 0.03) < 4.0 * found.uncertainty_s
    assert found.uncertainty_s < 1e-3


def test_a_motion_of_its_own_has_no_lag():
    assert fit_lag(TIMES, motion(TIMES), TIMES, motion(-0.7 * TIMES)) is None


def test_an_arm_at_rest_shows_no_lag():
    still = np.zeros((len(TIMES), 2))

    assert fit_lag(TIMES, still, TIMES, still) is None
