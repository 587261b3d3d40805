"""Windows in which a command was held show the tuning of servoj."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simbridge.identification.target_motion import TargetMotion
from simbridge.identification.window_fits import fit_windows, percentile

CYCLE_S = 0.002
GAIN = 300.0
LOOKAHEAD_S = 0.1


@pytest.fixture(scope="module")
def settling():
    """Joint targets that settle at a held command, from two positions."""
    q = np.array([0.1, -0.2])
    qd = np.zeros(2)
    rows = []
    for _ in range(60):
        qdd = GAIN * (0.0 - q - LOOKAHEAD_S * qd)
        qd = qd + CYCLE_S * qdd
        q = q + CYCLE_S * qd
        rows.append(np.stack([q, qd, qdd]))
    positions, velocities, accelerations = np.stack(rows, axis=1)
    times = CYCLE_S * np.arange(len(rows))
    return TargetMotion(times, positions, velocities, accelerations, CYCLE_S)


def test_each_window_shows_the_tuning(settling):
    fits = fit_windows(settling, np.arange(0, 50, 5), 10, rounds=5)

    assert fits.is_solvable.all()
    np.testing.assert_allclose(fits.pair[:, 0], 1.0 / GAIN, rtol=1e-6)
    np.testing.assert_allclose(fits.pair[:, 1], LOOKAHEAD_S, rtol=1e-6)


@pytest.mark.slow
def test_one_wrong_row_hardly_counts(settling):
    positions = settling.q.copy()
    positions[25] += 1e-3
    disturbed = replace(settling, q=positions)

    fits = fit_windows(disturbed, np.array([10]), 30, rounds=20)

    np.testing.assert_allclose(fits.pair[0], [1.0 / GAIN, LOOKAHEAD_S], rtol=1e-4)


def test_rows_at_rest_determine_no_tuning(settling):
    still = TargetMotion(settling.times, *np.zeros((3, 60, 2)), CYCLE_S)

    fits = fit_windows(still, np.array([0]), 10, rounds=5)

    assert not fits.is_solvable[0]


@pytest.mark.parametrize("percent", [0.0, 30.0, 50.0, 100.0])
def test_percentiles_are_those_of_numpy(percent):
    values = np.array([0.1, 0.4, 0.5, 0.9, 2.0, 7.0])

    assert percentile(values, percent) == pytest.approx(np.percentile(values, percent))
