"""Where a commanded motion rests: found by when the target stands, told apart by where and from where it comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simbridge.evaluation.metrics.stops import Stop, Visit, jumps, rests, stops
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


@pytest.mark.parametrize("begun", [0.0, 1.7e9])
def test_a_rest_of_just_the_least_length_counts_whatever_the_rounding_of_its_stamps(sampled: Any, begun: float) -> None:
    times, points = [0.0], [A]
    for number in range(1, 11):
        times += [times[-1] + 0.3, times[-1] + 0.5]
        points += [(A[0] + 0.01 * number, A[1], A[2])] * 2
    path = sampled(points, begun + np.array(times))
    assert len(rests(path, "linear")) == len(stops(path, "linear")) == 10
    held = sampled([A, B] * 5, begun + 0.2 * np.arange(10))
    assert len(rests(held, "zero-order")) == 9 and jumps(held, "zero-order")


def test_a_stop_arrived_at_by_turning_on_the_spot_is_another_than_one_arrived_at_along_the_path() -> None:
    upright, turned = [1.0, 0.0, 0.0, 0.0], [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]
    rows = [[*A, *upright], *[[*B, *upright]] * 2, *([[*B, *turned]] * 2 + [[*B, *upright]] * 2) * 2]
    path = Trajectory(np.array([0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5]), np.array(rows))
    visits = [[visit.arrival for visit in stop.visits] for stop in stops(path, "linear")]
    assert visits == [[1.0], [2.0, 4.0], [3.0, 5.0]]


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
