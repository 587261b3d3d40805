"""Experiment D gives the known figures on a UR10, and what theory predicts on other arms."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.experiments import (
    PAPER_SOLVERS,
    tracking,
)
from simbridge.robot import load_robot
from tests.experiments.paper import OTHERS, UR10, around, assert_expected
from tests.properties import variants

pytestmark = pytest.mark.slow


def slow_sweep(robot, gains, names=(), rate=10.0, noise=0.002):
    """Laps with these gains, and of these solvers, on slow, noisy targets."""
    square = around(robot)
    targets = tracking.slow_targets(robot, square, rate=rate, noise=noise)
    return tracking.sweep(robot, tracking.swept_solvers(names), gains, true=square, targets=targets)


def test_d_tracks_as_known():
    laps = tracking.sweep(UR10, PAPER_SOLVERS, (5.0, 10.0, 20.0, 50.0), true=around(UR10))

    assert_expected(tracking.figures(laps), tracking.EXPECTED)


def test_solvers_without_the_papers_gain_are_tracked_once():
    laps = tracking.sweep(UR10, ["feedback", "closed-form"], (5.0, 10.0), true=around(UR10))

    assert [(lap.solver, lap.kp) for lap in laps] == [("feedback", None), ("closed-form", None)]
    assert all(lap.rms < 1e-6 for lap in laps)


@pytest.mark.parametrize("name", variants(OTHERS, "planar3r"))
def test_the_lag_follows_from_rho(name):
    robot = load_robot(name)
    for kp, tolerance in ((5.0, 0.01), (20.0, 0.01), (50.0, 0.04)):
        (lap,) = tracking.sweep(robot, ["forward-dynamics"], [kp], true=around(robot))
        rho = (1.0 - 0.1**2 * kp / 4.0) ** 50
        speed = np.linalg.norm(np.diff(lap.points + lap.errors[:, :3], axis=0)[10]) * 100.0
        assert lap.rms == pytest.approx(speed * 0.01 * rho / (1.0 - rho), rel=tolerance)


def test_the_gain_trades_delay_for_smoothness():
    laps = slow_sweep(UR10, (0.5, 5.0, 50.0))

    assert np.all(np.diff([lap.delay for lap in laps]) < 0.0)
    assert np.all(np.diff([lap.acceleration for lap in laps]) > 0.0)
    # Held for 100 ms, exact targets are 45 ms old on average at the solver's instants.
    assert laps[-1].delay == pytest.approx(0.045, abs=0.01)


def test_a_medium_gain_stays_closest():
    too_smooth, best, exact = (lap.path_error for lap in slow_sweep(UR10, (0.2, 1.0, 50.0)))

    assert best < 0.8 * exact < too_smooth


def test_a_high_gain_needs_no_noise():
    (exact,) = slow_sweep(UR10, [50.0], rate=100.0, noise=0.0)

    assert exact.path_error < 1e-5


@pytest.mark.parametrize("name", variants(OTHERS, "planar3r"))
def test_any_solver_compares_with_the_sweep(name):
    robot = load_robot(name)
    (kp, fixed) = slow_sweep(robot, [50.0], ["feedback", "jacobian-transpose"])

    # The transpose has a gain, so it is not compared; an exact solver is like the highest gain.
    assert (kp.solver, kp.kp, fixed.solver, fixed.kp) == (
        "forward-dynamics",
        50.0,
        "feedback",
        None,
    )
    assert fixed.path_error == pytest.approx(kp.path_error, rel=0.02)
    assert fixed.delay == pytest.approx(kp.delay, abs=0.005)
