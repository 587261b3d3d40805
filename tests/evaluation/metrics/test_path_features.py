"""Stops and corners of a commanded path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from simbridge.evaluation.metrics.path_features import (
    Corner,
    Stop,
    Visit,
    find_corners,
    find_jumps,
    find_rests,
    find_stops,
)
from simbridge.trajectory import IsoCube, MinimumJerk, Trajectory, Trapezoid

Array = NDArray[Any]
A = (0.7, 0.0, 0.3)
B = (0.8, 0.0, 0.3)
C = (0.8, 0.1, 0.3)


def found_corners(times: ArrayLike, points: ArrayLike) -> list[Corner]:
    return find_corners(times, points)[0]


def ambiguous_turns(times: ArrayLike, points: ArrayLike) -> int:
    return find_corners(times, points)[1]


def bent(angle: float, past: float, step: float = 0.01, steps: int = 50) -> Array:
    """A path along x to the origin and on at an angle, sampled every step.

    A sample is `past` steps beyond the bend.
    """
    along = (np.arange(-steps, steps) + past) * step
    leaving = np.array([np.cos(angle), np.sin(angle), 0.0])
    return np.where(
        along[:, None] < 0.0, along[:, None] * [1.0, 0.0, 0.0], along[:, None] * leaving
    )


@settings(max_examples=30)
@given(st.floats(0.6, 3.0), st.sampled_from([0.0, 0.1, 0.5, 0.9]))
def test_a_corner_is_where_its_legs_meet(angle: float, past: float) -> None:
    """It is the intersection of its legs, even between two samples."""
    points = bent(angle, past)
    (corner,) = found_corners(0.1 * np.arange(len(points)), points)

    np.testing.assert_allclose(corner.position, 0.0, atol=1e-12)
    np.testing.assert_allclose(corner.arriving, [1.0, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(corner.leaving, [np.cos(angle), np.sin(angle), 0.0], atol=1e-12)
    assert corner.time == pytest.approx(5.0 - 0.1 * past, abs=0.051)


def test_a_corner_reaches_to_its_legs_middles() -> None:
    t = np.linspace(0.0, 4.0, 401)
    x = np.interp(t, [0.0, 1.0, 3.0, 4.0], [0.0, 0.1, 0.1, 0.2])
    y = np.interp(t, [0.0, 1.0, 3.0, 4.0], [0.0, 0.0, 0.2, 0.2])

    first, second = found_corners(t, np.column_stack([x, y, 0.0 * t]))

    assert (first.begin, first.time, first.end) == pytest.approx((0.5, 1.0, 2.0))
    assert (second.begin, second.time, second.end) == pytest.approx((2.0, 3.0, 3.5))


def test_a_leg_ends_where_it_begins_to_bend() -> None:
    straight = np.column_stack([np.linspace(-0.1, 0.0, 101), np.zeros(101), np.zeros(101)])
    up = np.column_stack([np.zeros(40), 0.001 * np.arange(1, 41), np.zeros(40)])
    angle = np.linspace(0.0, np.pi, 60)[1:]
    arc = np.column_stack([0.02 * (np.cos(angle) - 1.0), 0.04 + 0.02 * np.sin(angle), 0.0 * angle])
    points = np.concatenate([straight, up, arc])

    (corner,) = found_corners(0.01 * np.arange(len(points)), points)

    assert (corner.begin, corner.time, corner.end) == pytest.approx((0.5, 1.0, 1.2))


def test_smooth_paths_and_stops_have_no_corners() -> None:
    """Round paths, straight ones and stops have no corners."""
    angle = np.linspace(0.0, 2.0 * np.pi, 13)
    coarse_circle = np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])

    assert found_corners(angle, coarse_circle) == []
    assert found_corners(np.arange(100.0), bent(0.0, 0.0)) == []

    rested = np.insert(bent(1.5, 0.0), 50, np.zeros(3), axis=0)

    assert found_corners(np.arange(101.0), rested) == []


def test_a_reversal_is_a_corner() -> None:
    x = np.array([0.0, 0.1, 0.2, 0.2 + 1e-3, 0.1, 0.0])
    (corner,) = found_corners(np.arange(6.0), np.column_stack([x, 0.0 * x, 0.0 * x]))

    assert corner.position.tolist() == [0.2 + 1e-3, 0.0, 0.0]

    hairpin = [[0.0, 0, 0], [0.1, 0, 0], [0.1, 1e-3, 0], [0.0, 1e-3, 0]]

    assert [
        corner.position.tolist() for corner in found_corners([0.0, 1.0, 2.0, 3.0], hairpin)
    ] == hairpin[1:3]


def test_consecutive_sharp_turns_are_separate_corners() -> None:
    turned = np.array(
        [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.5, 0.75**0.5, 0.0], [1.0, 2.0 * 0.75**0.5, 0.0]]
    )
    square = np.array(
        [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    )
    for waypoints in (turned, square):
        times = np.arange(float(len(waypoints)))
        path_corners = found_corners(times, waypoints)
        assert [corner.position.tolist() for corner in path_corners] == waypoints[1:-1].tolist()
        assert [(corner.begin, corner.end) for corner in path_corners] == [
            (t - 0.5, t + 0.5) for t in times[1:-1]
        ]
        assert ambiguous_turns(times, waypoints) == 0


def test_a_chamfer_is_two_corners() -> None:
    """A chamfer as long as the steps of the path is not one corner that is cut."""
    # Steps of one length with two turns of 60 degrees: the way past a single corner would take two
    # steps.
    turned = np.repeat(np.deg2rad([0.0, 60.0, 120.0]), [10, 1, 10])
    points = np.cumsum(np.column_stack([np.cos(turned), np.sin(turned), 0.0 * turned]), axis=0)

    path_corners = found_corners(0.1 * np.arange(len(points)), points)

    np.testing.assert_allclose(
        [corner.position for corner in path_corners], points[[9, 10]], atol=1e-12
    )


def test_arcs_and_noise_are_ambiguous() -> None:
    """Turns that may be an arc or noise are counted as ambiguous."""
    angle = np.linspace(0.0, 2.0 * np.pi, 9)
    octagon = np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])

    assert found_corners(angle, octagon) == [] and ambiguous_turns(angle, octagon) == 7

    trembling = np.random.default_rng(3).normal(0.0, 1e-5, (200, 3))
    times = 0.01 * np.arange(200.0)

    assert len(found_corners(times, trembling)) < 5 and ambiguous_turns(times, trembling) > 100
    assert ambiguous_turns(times, np.column_stack([np.cos(times), np.sin(times), 0.0 * times])) == 0


def test_the_iso_cube_has_five_stops() -> None:
    """The ISO cube stops at each of its five poses once per lap."""
    cube = IsoCube((0.75, 0.164, 0.3), 0.4)
    path = cube.cycle(Trapezoid(0.2, 0.8), dwell=0.5, laps=2)

    path_stops = find_stops(path, "linear")

    # P5 to P1: the rest at P1 before the first lap is not reached along the path.
    np.testing.assert_allclose(
        [stop.position for stop in path_stops], cube.points[::-1], atol=1e-12
    )
    assert [len(stop.visits) for stop in path_stops] == [2] * 5
    for stop in path_stops:
        for visit in stop.visits:
            assert visit.departure - visit.arrival == pytest.approx(0.5)
            assert visit.arrival - visit.begin == pytest.approx(0.5)


def test_a_slow_arrival_is_not_rest() -> None:
    """A slow arrival becomes a rest only once the target is still."""
    path = IsoCube((0.75, 0.164, 0.3), 0.4).cycle(MinimumJerk(0.2), dwell=0.5)

    for begin, end in find_rests(path, "linear"):
        # A minimum-jerk motion is slower than 0.1 mm/s for some hundredths of a second.
        assert 0.5 - 1e-9 <= end - begin < 0.6


def test_short_rests_and_turns_are_no_stops(through: Any) -> None:
    """A short rest is not a stop, and neither is a rotation in place."""
    assert find_rests(through([A, B, B, C], [0.0, 1.0, 1.15, 2.0]), "linear") == []

    turning = np.array(
        [[*A, 1.0, 0.0, 0.0, 0.0], [*B, 1.0, 0.0, 0.0, 0.0], [*B, 0.0, 1.0, 0.0, 0.0]]
    )

    assert find_rests(Trajectory(np.array([0.0, 1.0, 2.0]), turning), "linear") == []


@pytest.mark.parametrize("begun", [0.0, 1.7e9])
def test_the_shortest_rest_counts(through: Any, begun: float) -> None:
    """A rest of the shortest length counts, although its stamps are rounded."""
    times = [0.0]
    points = [A]
    for number in range(1, 11):
        times += [times[-1] + 0.3, times[-1] + 0.5]
        points += [(A[0] + 0.01 * number, A[1], A[2])] * 2

    path = through(points, begun + np.array(times))

    assert len(find_rests(path, "linear")) == len(find_stops(path, "linear")) == 10

    held = through([A, B] * 5, begun + 0.2 * np.arange(10))

    assert len(find_rests(held, "zero-order")) == 9 and find_jumps(held, "zero-order")


def test_stops_differ_by_their_arrival() -> None:
    """A stop reached by rotation in place differs from one reached along the path."""
    upright = [1.0, 0.0, 0.0, 0.0]
    turned = [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]
    rows = [
        [*A, *upright],
        *[[*B, *upright]] * 2,
        *([[*B, *turned]] * 2 + [[*B, *upright]] * 2) * 2,
    ]
    path = Trajectory(
        np.array([0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5]), np.array(rows)
    )

    visits = [[visit.arrival for visit in stop.visits] for stop in find_stops(path, "linear")]

    assert visits == [[1.0], [2.0, 4.0], [3.0, 5.0]]


def test_two_approaches_are_two_stops(through: Any) -> None:
    """One position reached from two sides is two stops."""
    path = through([A, B, B, C, B, B, A, B, B], [0.0, 1.0, 1.5, 2.5, 3.5, 4.0, 5.0, 6.0, 6.5])
    from_a, from_c = find_stops(path, "linear")

    assert from_a.visits == (Visit(0.5, 1.0, 1.5), Visit(5.5, 6.0, 6.5))
    assert from_c.visits == (Visit(3.0, 3.5, 4.0),)


def test_a_visit_begins_after_the_previous_rest(through: Any) -> None:
    first, second = find_stops(through([A, B, B, C, C], [0.0, 1.0, 1.5, 1.75, 2.5]), "linear")

    assert (first.visits[0].begin, second.visits[0].begin) == (0.5, 1.5)


def test_a_held_target_rests_between_jumps(through: Any) -> None:
    """A held target rests between its jumps, but not between dense samples."""
    # Two equal samples in a row are one rest.
    path = through([A, B, B, C, C], [0.0, 1.0, 1.5, 2.0, 2.1])

    assert find_rests(path, "zero-order") == [(0.0, 1.0), (1.0, 2.0)]

    path_stops: list[Stop] = find_stops(path, "zero-order")

    assert [stop.position.tolist() for stop in path_stops] == [list(B)]
    assert find_jumps(path, "zero-order") and not find_jumps(path, "linear")

    k = np.arange(50)
    dense = through(np.column_stack([0.7 + 0.002 * k, 0.0 * k, 0.3 + 0.0 * k]), 0.02 * k)

    assert find_rests(dense, "zero-order") == [] and not find_jumps(dense, "zero-order")
