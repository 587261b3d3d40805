"""The law of movej against a recording of a real UR5 (tests/data/ur5_movej), and by itself."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from simbridge.errors import InvalidParameter
from simbridge.servo.movej import MovejLaw

RECORDING = Path(__file__).parents[1] / "data" / "ur5_movej" / "Movement_No4_Acc.csv.gz"
CYCLE = 0.008
SLOW = MovejLaw(CYCLE, acceleration=np.radians(80.0), speed=np.radians(60.0))
FAST = MovejLaw(CYCLE, acceleration=25.0, speed=3.2)


@cache
def read_recording() -> dict[str, np.ndarray]:
    data = np.loadtxt(RECORDING, delimiter=",", skiprows=1)
    return {"q": data[:, 1:7], "qd": data[:, 13:19], "qdd": data[:, 19:25]}


# First and last row of each whole move, and its pace.
MOVES = [
    (374, 677, SLOW),
    (749, 1052, SLOW),
    (1123, 1426, SLOW),
    (1497, 1582, FAST),
    (1871, 1956, FAST),
]


@pytest.mark.parametrize(("first", "last", "law"), MOVES)
def test_a_real_movej_is_the_trapezoid(first, last, law):
    recorded = {name: values[first + 1 : last + 1] for name, values in read_recording().items()}

    predicted = law.follow(read_recording()["q"][first], recorded["q"][-1])

    # Six decimals were recorded.
    np.testing.assert_allclose(predicted.q, recorded["q"], rtol=0.0, atol=1.1e-6)
    np.testing.assert_allclose(predicted.qd, recorded["qd"], rtol=0.0, atol=5e-6)


@pytest.mark.parametrize(("first", "last", "law"), MOVES)
def test_a_real_movej_reports_its_acceleration(first, last, law):
    recorded = {name: values[first + 1 : last + 1] for name, values in read_recording().items()}

    predicted = law.follow(read_recording()["q"][first], recorded["q"][-1])

    np.testing.assert_allclose(predicted.qdd, recorded["qdd"], rtol=0.0, atol=5e-5)


def test_joints_keep_a_constant_ratio():
    start = np.array([0.1, 0.2, 0.3])
    goal = np.array([0.6, -0.8, 0.3])

    motion = MovejLaw(CYCLE, 2.0, 0.7).follow(start, goal)

    np.testing.assert_allclose(motion.qd[:, 0], -0.5 * motion.qd[:, 1], rtol=0.0, atol=1e-15)
    np.testing.assert_allclose(motion.q[-1], goal, rtol=0.0, atol=1e-15)
    assert np.abs(motion.qd).max() == pytest.approx(0.7)


def test_a_short_movej_does_not_attain_its_speed():
    motion = MovejLaw(CYCLE, 1.0, 1.0).follow(np.zeros(1), np.array([0.04]))

    assert len(motion.q) == 50
    assert motion.qd.max() == pytest.approx(0.2)


def test_a_movej_to_its_start_has_no_cycles():
    motion = MovejLaw(CYCLE, 1.0, 1.0).follow(np.zeros(6), np.zeros(6))

    assert motion.q.shape == (0, 6)


@pytest.mark.parametrize("pace", [(0.0, 1.0), (1.0, -1.0), (np.nan, 1.0), (1.0, np.inf)])
def test_an_impossible_movej_is_refused(pace):
    with pytest.raises(InvalidParameter):
        MovejLaw(CYCLE, *pace)
