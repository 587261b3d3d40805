"""The law of speedj against recordings of a real UR5 (tests/data/ur5_speedj), and by itself."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from simbridge.errors import InvalidParameter
from simbridge.servo.speedj import SpeedjLaw, step_speedj

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[1] / "data" / "ur5_speedj"
LAW = SpeedjLaw(cycle=0.008, acceleration=4.0 * np.pi, delay=3)
# Before this row the controller was still starting the program lines.
FIRST_ROW = 17
# Largest difference that single precision explains, rad/s.
ROUNDING = 1e-5


@cache
def read_recording(name: str) -> np.ndarray:
    return np.loadtxt(FOLDER / f"{name}.csv.gz", delimiter=",", skiprows=1)


def effective_commands(name: str) -> tuple[np.ndarray, int]:
    """Return the command for each row, and how many of them came late.

    The command of a row may come a cycle late: the controller then repeats the one before.
    """
    data = read_recording(name)
    commands = data[:, 1:7]
    effective = commands.copy()
    late = 0

    for row in range(FIRST_ROW + 1, len(data)):
        sent = row - LAW.delay
        _, expected = step_speedj(
            data[row - 1, 7:13],
            commands[sent],
            acceleration=LAW.acceleration,
            duration=LAW.cycle,
        )
        if np.abs(expected - data[row, 7:13]).max() > ROUNDING:
            effective[sent] = commands[sent - 1]
            late += 1
    return effective, late


@pytest.mark.parametrize(
    ("name", "most_late"),
    [("K5Proportional", 2), ("K5ProportionalFeedforward", 1), ("StepPINV", 7)],
)
def test_a_real_arm_obeys_speedjs_law(name, most_late):
    recorded = read_recording(name)[FIRST_ROW:, 7:13]
    commands, late = effective_commands(name)

    first_command = FIRST_ROW + 1 - LAW.delay
    # From one row on the prediction runs freely through all 3873 cycles.
    law = SpeedjLaw(LAW.cycle, LAW.acceleration)
    predicted = law.follow(commands[first_command : -LAW.delay], qd=recorded[0])

    np.testing.assert_allclose(predicted.qd, recorded[1:], rtol=0.0, atol=ROUNDING)
    assert late <= most_late


def test_real_positions_are_the_integral_of_the_ramps():
    data = read_recording("StepPINV")
    velocity = data[FIRST_ROW:, 7:13]
    position = data[FIRST_ROW:, 13:19]
    steepest = np.abs(np.diff(velocity, axis=0)).max() / LAW.cycle

    steps = np.array(
        [
            step_speedj(before, after, acceleration=LAW.acceleration, duration=LAW.cycle)[0]
            for before, after in pairwise(velocity)
        ]
    )

    assert steepest == pytest.approx(LAW.acceleration, rel=1e-6)
    # Seven digits of positions up to 2.5 rad.
    np.testing.assert_allclose(np.diff(position, axis=0), steps, rtol=0.0, atol=1.2e-6)


def test_joints_change_speed_in_proportion():
    law = SpeedjLaw(cycle=0.002, acceleration=1.0)

    motion = law.follow(np.tile([0.1, -0.05, 0.0], (200, 1)))

    np.testing.assert_allclose(motion.qd[:, 1], -0.5 * motion.qd[:, 0], rtol=0.0, atol=1e-15)
    assert np.abs(motion.qdd).max() == pytest.approx(1.0)
    assert motion.qd[-1].tolist() == [0.1, -0.05, 0.0]


def test_a_speed_attained_inside_a_cycle_is_kept():
    displacement, velocity = step_speedj(
        np.zeros(1), np.array([0.3]), acceleration=1.0, duration=1.0
    )

    # 0.3 s of ramp, then 0.7 s at 0.3 rad/s.
    assert displacement[0] == pytest.approx(0.5 * 0.3 * 0.3 + 0.7 * 0.3)
    assert velocity[0] == 0.3


def test_a_command_acts_after_its_delay():
    commands = np.full((5, 1), 0.5)

    motion = SpeedjLaw(cycle=0.008, acceleration=100.0, delay=3).follow(commands)

    assert motion.qd[:, 0].tolist() == [0.0, 0.0, 0.0, 0.5, 0.5]


@pytest.mark.parametrize(("acceleration", "delay"), [(0.0, 0), (-1.0, 0), (np.nan, 0), (1.0, -1)])
def test_an_impossible_speedj_is_refused(acceleration, delay):
    with pytest.raises(InvalidParameter):
        SpeedjLaw(0.008, acceleration, delay)
