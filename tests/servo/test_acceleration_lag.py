"""How joints before the e-Series trail the acceleration of their targets."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.robot import load_robot
from simbridge.servo.acceleration_lag import AccelerationLag
from simbridge.servo.plant import ACCELERATION_LAG_CB3, Plant
from simbridge.servo.simulated_joints import SimulatedJoints

CYCLE = 0.008
LAG = 3.5e-4


def follow(accelerations: np.ndarray, steps: int = 8) -> np.ndarray:
    """Return the deviation (N steps,), rad, of one joint."""
    joint = AccelerationLag(LAG, CYCLE, steps, 1)
    return np.concatenate([joint.advance(np.array([value]))[:, 0] for value in accelerations])


def test_a_constant_acceleration_is_trailed_in_proportion():
    assert follow(np.full(100, 2.0))[-1] == pytest.approx(-LAG * 2.0, rel=1e-6)


def test_a_smooth_motion_is_trailed_in_proportion():
    times = CYCLE * np.arange(1, 501)
    # A swing of 0.2 Hz.
    accelerations = np.sin(2.0 * np.pi * 0.2 * times)

    deviation = follow(accelerations, steps=1)

    assert np.abs(deviation + LAG * accelerations)[125:].max() < 0.06 * LAG


def test_a_step_of_acceleration_moves_no_joint_at_once():
    accelerations = np.concatenate([np.zeros(5), np.full(60, 25.0)])

    deviation = follow(accelerations)

    # From one physics step of 1 ms to the next.
    assert np.abs(np.diff(deviation)).max() < 0.25e-3
    assert np.abs(deviation).max() < 1.05 * LAG * 25.0


def test_the_joints_settle_at_targets_that_rest():
    joint = AccelerationLag(LAG, CYCLE, 1, 1)
    joint.advance(np.array([10.0]))

    deviation = [joint.advance(np.zeros(1))[-1, 0] for _ in range(100)]

    assert deviation[0] < 0.0
    assert deviation[-1] == 0.0
    assert joint.has_settled


def test_without_the_lag_joints_are_at_their_targets():
    joint = AccelerationLag(0.0, CYCLE, 2, 3)

    assert joint.advance(np.full(3, 10.0)).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize(("name", "lag"), [("ur10", ACCELERATION_LAG_CB3), ("ur10e", 0.0)])
def test_the_arms_series_decides(name, lag):
    assert Plant().with_series(load_robot(name).series).acceleration_lag == lag


def test_a_plants_own_lag_is_kept():
    assert Plant(acceleration_lag=1e-4).with_series("CB3").acceleration_lag == 1e-4


def test_simulated_joints_of_a_cb3_trail_more():
    q = np.zeros(1)
    # The command accelerates at 1 rad/s^2.
    commands = 0.5 * (CYCLE * np.arange(200)) ** 2
    e_series = SimulatedJoints(
        Plant(acceleration_lag=0.0), q, period=CYCLE, cycle=CYCLE, step=0.001
    )
    cb3 = SimulatedJoints(Plant(acceleration_lag=LAG), q, period=CYCLE, cycle=CYCLE, step=0.001)

    differences = [
        cb3.advance(np.array([command])) - e_series.advance(np.array([command]))
        for command in commands
    ]

    assert differences[-1][-1, 0] == pytest.approx(-LAG * 1.0, rel=1e-3)
