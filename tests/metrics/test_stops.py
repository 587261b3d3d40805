"""Where a commanded motion rests: found by when the target stands, told apart by where and from where it comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simbridge.metrics.stops import Stop, Visit, jumps, rests, stops
from simbridge.trajectory import IsoCube, MinimumJerk, Trajectory, Trapezoid

Array = NDArray[Any]
A, B, C = (0.7, 0.0, 0.3), (0.8, 0.0, 0.3), (0.8, 0.1, 0.3)


@pytest.fixture
def sampled(through: Any) -> Any:
    return through


def test_the_test_cube_stops_at_its_five_poses_once_a_lap() -> None:
    cube = IsoCube((0.75, 0.164, 0.3), 0.4)
    path = cube.cycle(Trapezoid(0.2, 0.8), dwell=0.5, laps=2)
    found = stops(path, "linear")
    # P5 to P1: the rest at P1 before the first lap is not arrived at along the path.
    np.testing.assert_allclose([stop.position for stop in found], cube.points[::-1], atol=1e-12)
    assert [len(stop.visits) for stop in found] == [2] * 5
    for stop in found:
        for visit in stop.visits:
            assert visit.departure - visit.arrival == pytest.approx(0.5)
            assert visit.arrival - visit.begin == pytest.approx(0.5)


def test_a_slow_arrival_is_a_rest_only_while_the_target_stands() -> None:
    path = IsoCube((0.75, 0.164, 0.3), 0.4).cycle(MinimumJerk(0.2), dwell=0.5)
    for begin, end in rests(path, "linear"):
        # Of a minimum jerk some hundredths of a second are slower than 0.1 mm/s.
        assert 0.5 - 1e-9 <= end - begin < 0.6


def test_a_short_rest_and_a_turn_on_the_spot_are_no_stops(sampled: Any) -> None:
    assert rests(sampled([A, B, B, C], [0.0, 1.0, 1.15, 2.0]), "linear") == []
    turning = np.array([[*A, 1.0, 0.0, 0.0, 0.0], [*B, 1.0, 0.0, 0.0, 0.0], [*B, 0.0, 1.0, 0.0, 0.0]])
    assert rests(Trajectory(np.array([0.0, 1.0, 2.0]), turning), "linear") == []


def test_one_place_reached_from_two_sides_is_two_stops(sampled: Any) -> None:
    path = sampled([A, B, B, C, B, B, A, B, B], [0.0, 1.0, 1.5, 2.5, 3.5, 4.0, 5.0, 6.0, 6.5])
    from_a, from_c = stops(path, "linear")
    assert from_a.visits == (Visit(0.5, 1.0, 1.5), Visit(5.5, 6.0, 6.5))
    assert from_c.visits == (Visit(3.0, 3.5, 4.0),)


def test_a_stop_begins_after_the_rest_before_it(sampled: Any) -> None:
    first, second = stops(sampled([A, B, B, C, C], [0.0, 1.0, 1.5, 1.75, 2.5]), "linear")
    assert (first.visits[0].begin, second.visits[0].begin) == (0.5, 1.5)


def test_a_held_target_rests_between_its_jumps_but_not_between_dense_samples(sampled: Any) -> None:
    # Twice the same sample in a row is one rest.
    path = sampled([A, B, B, C, C], [0.0, 1.0, 1.5, 2.0, 2.1])
    assert rests(path, "zero-order") == [(0.0, 1.0), (1.0, 2.0)]
    found: list[Stop] = stops(path, "zero-order")
    assert [stop.position.tolist() for stop in found] == [list(B)]
    assert jumps(path, "zero-order") and not jumps(path, "linear")
    k = np.arange(50)
    dense = sampled(np.column_stack([0.7 + 0.002 * k, 0.0 * k, 0.3 + 0.0 * k]), 0.02 * k)
    assert rests(dense, "zero-order") == [] and not jumps(dense, "zero-order")
