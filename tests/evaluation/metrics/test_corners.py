"""Corners of a sampled path: where two straight legs meet, on a sample or between two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from simbridge.evaluation.metrics.corners import corners, unclear_turns

Array = NDArray[Any]


def bent(angle: float, past: float, step: float = 0.01, steps: int = 50) -> Array:
    """A path along x to the origin and on at an angle, sampled every step; a sample is `past` steps beyond the bend."""
    along = (np.arange(-steps, steps) + past) * step
    leaving = np.array([np.cos(angle), np.sin(angle), 0.0])
    return np.where(along[:, None] < 0.0, along[:, None] * [1.0, 0.0, 0.0], along[:, None] * leaving)


@settings(max_examples=30)
@given(st.floats(0.6, 3.0), st.sampled_from([0.0, 0.1, 0.5, 0.9]))
def test_a_corner_is_where_the_legs_meet_even_between_two_samples(angle: float, past: float) -> None:
    points = bent(angle, past)
    (corner,) = corners(0.1 * np.arange(len(points)), points)
    np.testing.assert_allclose(corner.position, 0.0, atol=1e-12)
    np.testing.assert_allclose(corner.arriving, [1.0, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(corner.leaving, [np.cos(angle), np.sin(angle), 0.0], atol=1e-12)
    assert corner.time == pytest.approx(5.0 - 0.1 * past, abs=0.051)


def test_each_corner_reaches_to_the_middles_of_its_legs() -> None:
    t = np.linspace(0.0, 4.0, 401)
    x = np.interp(t, [0.0, 1.0, 3.0, 4.0], [0.0, 0.1, 0.1, 0.2])
    y = np.interp(t, [0.0, 1.0, 3.0, 4.0], [0.0, 0.0, 0.2, 0.2])
    first, second = corners(t, np.column_stack([x, y, 0.0 * t]))
    assert (first.begin, first.time, first.end) == pytest.approx((0.5, 1.0, 2.0))
    assert (second.begin, second.time, second.end) == pytest.approx((2.0, 3.0, 3.5))


def test_where_a_leg_begins_to_bend_it_ends() -> None:
    straight = np.column_stack([np.linspace(-0.1, 0.0, 101), np.zeros(101), np.zeros(101)])
    up = np.column_stack([np.zeros(40), 0.001 * np.arange(1, 41), np.zeros(40)])
    angle = np.linspace(0.0, np.pi, 60)[1:]
    arc = np.column_stack([0.02 * (np.cos(angle) - 1.0), 0.04 + 0.02 * np.sin(angle), 0.0 * angle])
    points = np.concatenate([straight, up, arc])
    (corner,) = corners(0.01 * np.arange(len(points)), points)
    assert (corner.begin, corner.time, corner.end) == pytest.approx((0.5, 1.0, 1.2))


def test_round_paths_straight_ones_and_stops_have_no_corners() -> None:
    angle = np.linspace(0.0, 2.0 * np.pi, 13)
    coarse_circle = np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    assert corners(angle, coarse_circle) == []
    assert corners(np.arange(100.0), bent(0.0, 0.0)) == []
    rested = np.insert(bent(1.5, 0.0), 50, np.zeros(3), axis=0)
    assert corners(np.arange(101.0), rested) == []


def test_a_way_back_is_a_corner_too() -> None:
    x = np.array([0.0, 0.1, 0.2, 0.2 + 1e-3, 0.1, 0.0])
    (corner,) = corners(np.arange(6.0), np.column_stack([x, 0.0 * x, 0.0 * x]))
    assert corner.position.tolist() == [0.2 + 1e-3, 0.0, 0.0]
    hairpin = [[0.0, 0, 0], [0.1, 0, 0], [0.1, 1e-3, 0], [0.0, 1e-3, 0]]
    assert [corner.position.tolist() for corner in corners([0.0, 1.0, 2.0, 3.0], hairpin)] == hairpin[1:3]


def test_corners_at_neighbouring_samples_are_each_one_of_their_own() -> None:
    turned = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.5, 0.75**0.5, 0.0], [1.0, 2.0 * 0.75**0.5, 0.0]])
    square = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    for waypoints in (turned, square):
        times = np.arange(float(len(waypoints)))
        found = corners(times, waypoints)
        assert [corner.position.tolist() for corner in found] == waypoints[1:-1].tolist()
        assert [(corner.begin, corner.end) for corner in found] == [(t - 0.5, t + 0.5) for t in times[1:-1]]
        assert unclear_turns(times, waypoints) == 0


def test_a_chamfer_as_long_as_the_path_is_fast_is_not_a_cut_corner() -> None:
    # Steps of one length with two turns of 60 degrees: the way round by one corner would take two steps.
    turned = np.repeat(np.deg2rad([0.0, 60.0, 120.0]), [10, 1, 10])
    points = np.cumsum(np.column_stack([np.cos(turned), np.sin(turned), 0.0 * turned]), axis=0)
    found = corners(0.1 * np.arange(len(points)), points)
    np.testing.assert_allclose([corner.position for corner in found], points[[9, 10]], atol=1e-12)


def test_turns_that_may_be_an_arc_or_noise_are_no_corners_and_are_counted() -> None:
    angle = np.linspace(0.0, 2.0 * np.pi, 9)
    octagon = np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    assert corners(angle, octagon) == [] and unclear_turns(angle, octagon) == 7
    trembling = np.random.default_rng(3).normal(0.0, 1e-5, (200, 3))
    times = 0.01 * np.arange(200.0)
    assert len(corners(times, trembling)) < 5 and unclear_turns(times, trembling) > 100
    assert unclear_turns(times, np.column_stack([np.cos(times), np.sin(times), 0.0 * times])) == 0
