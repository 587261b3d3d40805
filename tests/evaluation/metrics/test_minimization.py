"""Brent's method: the minimum is found within bounds, and in few evaluations if smooth."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.evaluation.metrics.minimization import MAX_EVALUATIONS, minimize_scalar


@given(
    at=st.floats(-1.0, 1.0), start=st.floats(-1.0, 1.0), power=st.sampled_from([1.0, 1.5, 2.0, 4.0])
)
def test_a_valleys_minimum_is_located(at: float, start: float, power: float) -> None:
    """The shape of the valley does not matter."""
    # abs(x)^4 is flat to the last bit within about 1e-4 of its minimum, far less than 1e-3.
    minimum = minimize_scalar(lambda x: abs(x - at) ** power, -1.0, start, 1.0, tolerance=1e-7)

    assert minimum == pytest.approx(at, abs=1e-3 if power == 4.0 else 3e-7)


@given(start=st.floats(0.0, 10.0), frequency=st.floats(0.1, 20.0), slope=st.floats(-3.0, 3.0))
def test_the_answer_is_bounded_and_better(start: float, frequency: float, slope: float) -> None:
    """The bounds are kept, and the answer is never worse than the start."""
    asked: list[float] = []

    def bumpy(x: float) -> float:
        asked.append(x)
        return math.sin(frequency * x) + slope * x

    minimum = minimize_scalar(bumpy, 0.0, start, 10.0, tolerance=1e-6)
    assert min(asked) >= 0.0
    assert max(asked) <= 10.0
    assert bumpy(minimum) <= bumpy(start)


def test_a_parabola_takes_a_dozen_evaluations() -> None:
    asked: list[float] = []

    def parabola(x: float) -> float:
        asked.append(x)
        return 3.0 * (x - 0.123) ** 2 + 7.0

    assert minimize_scalar(parabola, -1.0, 0.0, 1.0, tolerance=1e-6) == pytest.approx(
        0.123, abs=1e-6
    )
    assert len(asked) <= 12


def test_a_staircase_ends_the_search_too() -> None:
    asked: list[float] = []

    def stairs(x: float) -> float:
        asked.append(x)
        return float(abs(math.floor(10.0 * x)))

    assert 0.0 <= minimize_scalar(stairs, -1.0, 0.5, 1.0, tolerance=1e-9) < 0.1
    assert len(asked) <= MAX_EVALUATIONS


def test_a_falling_function_ends_at_its_bound() -> None:
    assert minimize_scalar(lambda x: -x, 0.0, 0.5, 1.0, tolerance=1e-6) == pytest.approx(
        1.0, abs=1e-5
    )
