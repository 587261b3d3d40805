"""The trapezoid of speed along a path."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.servo.speed_profile import SpeedProfile


def test_a_trapezoid_is_monotonic_and_keeps_its_acceleration():
    shape = SpeedProfile(0.7, 2.0, 0.6)
    times = np.linspace(-0.1, shape.duration + 0.1, 5000)
    distances = np.array([shape.distance(t) for t in times])

    assert (np.diff(distances) >= 0.0).all()
    assert distances[0] == 0.0 and distances[-1] == 0.7

    step = times[1] - times[0]

    assert np.abs(np.diff(distances, 2)).max() / step**2 <= 2.0 * (1.0 + 1e-6)
    assert SpeedProfile(0.0, 1.0, 1.0).distance(0.0) == 0.0


@pytest.mark.parametrize("length", [1e-16, 1e-9, 0.7, 40.0])
def test_a_path_takes_its_duration(length):
    assert SpeedProfile(length, 1.4, 1.0, duration=10.0).duration == pytest.approx(10.0)


def test_a_path_begun_at_full_speed_keeps_it():
    shape = SpeedProfile(0.7, 2.0, 0.6, begin_speed=0.6, through=0.3)
    speeds = [shape.speed(time) for time in np.linspace(0.0, shape.duration, 100)]

    assert max(speeds) == 0.6
    assert shape.duration == pytest.approx(0.3 / 0.6 + 2.0 * 0.4 / 0.6)


@pytest.mark.slow
def test_moving_trapezoid_covers_its_length():
    for begin, through in ((0.3, 0.0), (0.0, 0.5), (0.3, 0.5), (0.9, 0.5), (0.9, 0.0), (2.0, 0.0)):
        shape = SpeedProfile(0.7, 2.0, 0.6, begin_speed=begin, through=through)
        times = np.linspace(0.0, shape.duration, 4001)
        distances = np.array([shape.distance(t) for t in times])
        speed = np.array([shape.speed(t) for t in times])
        assert distances[0] == 0.0 and distances[-1] == 0.7 and (np.diff(distances) >= -1e-12).all()
        assert (
            speed[0] == pytest.approx(begin, abs=1e-9)
            and np.diff(distances).max() / times[1] < max(0.6, begin) + 1e-6
        )
        assert np.diff(distances) == pytest.approx(
            0.5 * (speed[1:] + speed[:-1]) * times[1], abs=1e-7
        )
        assert distances[-2] == pytest.approx(0.7, abs=1e-4)
