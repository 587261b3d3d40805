"""Motion laws: durations, speeds and jerk against closed forms, and properties of all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter
from simbridge.trajectory import ConstantSpeed, MinimumJerk, SlowInSlowOut, Trapezoid

SPEEDS = st.floats(0.01, 2.0)
LENGTHS = st.floats(0.01, 5.0)
LAWS = st.one_of(
    SPEEDS.map(ConstantSpeed),
    SPEEDS.map(MinimumJerk),
    st.builds(Trapezoid, SPEEDS, st.floats(0.05, 20.0)),
    st.builds(SlowInSlowOut, SPEEDS, st.floats(0.05, 1.0), st.floats(0.05, 0.5)),
)


@given(law=LAWS, length=LENGTHS)
def test_every_law_covers_the_length(law, length: float) -> None:
    motion = law.over(length)
    t = np.linspace(0.0, motion.duration, 2001)

    travelled = motion.travelled(t)

    assert travelled[0] == pytest.approx(0.0, abs=1e-12 * length)
    assert travelled[-1] == pytest.approx(length, rel=1e-9)
    assert np.diff(travelled).min() >= -1e-12 * length
    np.testing.assert_allclose(travelled + travelled[::-1], length, rtol=1e-9)
    assert np.diff(travelled).max() / np.diff(t).min() <= law.speed * (1.0 + 1e-6)


def test_constant_speed_takes_length_over_speed() -> None:
    motion = ConstantSpeed(0.2).over(0.5)

    assert motion.duration == 2.5
    np.testing.assert_array_equal(motion.travelled(np.array([0.0, 1.0])), [0.0, 0.2])


def test_a_trapezoid_has_ramps_of_speed_over_acceleration() -> None:
    motion = Trapezoid(speed=0.2, acceleration=0.4).over(0.5)

    # Ramps of 0.5 s and 0.05 m each, and 0.4 m between at 0.2 m/s.
    assert motion.duration == pytest.approx(3.0)
    np.testing.assert_allclose(
        motion.travelled(np.array([0.25, 0.5, 1.5, 2.5, 2.75])), [0.0125, 0.05, 0.25, 0.45, 0.4875]
    )


def test_a_short_trapezoid_is_a_triangle() -> None:
    motion = Trapezoid(speed=1.0, acceleration=0.4).over(0.1)

    assert motion.duration == pytest.approx(2.0 * math.sqrt(0.1 / 0.4))
    assert motion.travelled(np.array([0.5 * motion.duration]))[0] == pytest.approx(0.05)


def test_minimum_jerk_has_its_published_cost() -> None:
    length = 0.4
    speed = 0.3

    motion = MinimumJerk(speed).over(length)

    # Flash and Hogan 1985: v_peak = 1.875 L / T, and the integral of the squared jerk is 720 L^2 /
    # T^5.
    assert motion.duration == pytest.approx(1.875 * length / speed)

    t = np.linspace(0.0, motion.duration, 20_001)
    h = t[1]

    travelled = motion.travelled(t)

    assert (np.diff(travelled) / h).max() == pytest.approx(speed, rel=1e-6)

    jerk = np.diff(travelled, 3) / h**3

    assert float(np.sum(jerk**2) * h) == pytest.approx(
        720.0 * length**2 / motion.duration**5, rel=1e-3
    )


def test_slow_in_slow_out_follows_the_nearer_end() -> None:
    length = 0.8
    law = SlowInSlowOut(speed=0.5, slowest=0.3, ramp=0.5)
    motion = law.over(length)
    t = np.linspace(0.0, motion.duration, 40_001)
    travelled = motion.travelled(t)
    middle = 0.5 * (travelled[1:] + travelled[:-1])
    nearer = np.minimum(middle, length - middle)
    expected = 0.5 * np.clip(nearer / (0.5 * length), 0.3, 1.0)

    np.testing.assert_allclose(np.diff(travelled) / t[1], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: ConstantSpeed(0.0), "speed"),
        (lambda: MinimumJerk(math.nan), "speed"),
        (lambda: Trapezoid(0.1, -1.0), "acceleration"),
        (lambda: SlowInSlowOut(0.1, slowest=1.1), "slowest"),
        (lambda: SlowInSlowOut(0.1, ramp=0.6), "ramp"),
    ],
)
def test_a_parameter_out_of_range_is_named(make, name: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        make()

    assert caught.value.name == name
