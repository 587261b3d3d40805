"""Contour error and along-path lag: closed forms on lines, corners, circles and crossings."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from simbridge.errors import UnusableSamples
from simbridge.evaluation.metrics.path import contour_error

pytestmark = pytest.mark.slow

Array = NDArray[Any]

# A square of 0.2 m a side at 0.1 m/s.
CORNERS = np.array(
    [[0.0, 0.0, 0.3], [0.2, 0.0, 0.3], [0.2, 0.2, 0.3], [0.0, 0.2, 0.3], [0.0, 0.0, 0.3]]
)
TIMES = np.arange(5) * 2.0


def square(t: Array) -> Array:
    return np.column_stack([np.interp(t, TIMES, column) for column in CORNERS.T])


def eight(t: Array) -> Array:
    """A figure eight, 0.4 m by 0.2 m, once in 8 s: it crosses itself at the origin."""
    phase = 0.25 * math.pi * t
    return np.stack([0.2 * np.sin(phase), 0.1 * np.sin(2.0 * phase), 0.0 * t], axis=1)


def brute_force(corners: Array, points: Array) -> Array:
    """The distances to the whole polyline, every piece looked at."""
    start = corners[:-1]
    step = np.diff(corners, axis=0)
    off = points[:, None] - start
    part = np.clip((off * step).sum(axis=2) / np.maximum((step**2).sum(axis=1), 1e-300), 0.0, 1.0)
    return np.linalg.norm(off - part[..., None] * step, axis=2).min(axis=1)


def test_read_only_arrays_are_measured_like_others() -> None:
    t = np.arange(0.1, 8.0, 0.1)
    arrays = [TIMES.copy(), CORNERS.copy(), t, square(t - 0.05)]
    writable = contour_error(*arrays)
    for array in arrays:
        array.setflags(write=False)

    assert np.array_equal(contour_error(*arrays).lag, writable.lag)


def test_a_late_motion_has_only_lag() -> None:
    t = np.arange(0.1, 8.0, 0.002)
    contour = contour_error(TIMES, CORNERS, t, square(t - 0.05))

    np.testing.assert_allclose(contour.distance, 0.0, atol=1e-9)
    np.testing.assert_allclose(contour.lag, 0.005, atol=1e-8)
    np.testing.assert_allclose(contour.lag_time, 0.05, atol=1e-7)


def test_an_early_motion_has_negative_lag() -> None:
    t = np.arange(0.0, 7.9, 0.002)
    contour = contour_error(TIMES, CORNERS, t, square(t + 0.05))

    np.testing.assert_allclose(contour.lag, -0.005, atol=1e-8)
    np.testing.assert_allclose(contour.lag_time, -0.05, atol=1e-7)


def test_a_raised_motion_has_only_contour_error() -> None:
    t = np.arange(0.0, 8.0, 0.01)
    raised = np.array([0.0, 0.0, 0.003])

    contour = contour_error(TIMES, CORNERS, t, square(t) + raised)

    np.testing.assert_allclose(contour.distance, 0.003, rtol=1e-9)
    np.testing.assert_allclose(contour.lag, 0.0, atol=1e-8)


def test_a_cut_corner_is_off_by_height() -> None:
    """A corner cut along its chord is off by its distance from the nearer leg."""
    # From 10 mm before the corner to 10 mm after it: the chord's middle is 5 mm from both legs.
    s = np.linspace(-0.01, 0.01, 21)
    cut = np.array([0.2, 0.0, 0.3]) + np.stack(
        [np.minimum(s - 0.01, s + 0.01) * 0.5, (s + 0.01) * 0.5, 0.0 * s], axis=1
    )
    contour = contour_error(TIMES, CORNERS, 2.0 + 10.0 * s, cut)

    expected = np.minimum((s + 0.01) * 0.5, (0.01 - s) * 0.5)

    np.testing.assert_allclose(contour.distance, expected, atol=1e-9)

    sides = np.abs(s) > 1e-9
    places = 0.2 + 0.5 * (s + np.copysign(0.01, s))

    np.testing.assert_allclose(contour.arc_length[sides], places[sides], atol=1e-9)


def test_an_overshot_corner_is_off_by_overshoot() -> None:
    contour = contour_error(TIMES, CORNERS, [2.03], [[0.203, 0.001, 0.3]])

    assert contour.distance[0] == pytest.approx(0.003)
    assert contour.arc_length[0] == pytest.approx(0.201)


def test_the_path_ends_at_its_ends() -> None:
    path = CORNERS[:2]
    contour = contour_error(TIMES[:2], path, [0.0, 2.0], [[-0.01, 0.0, 0.3], [0.203, 0.004, 0.3]])

    np.testing.assert_allclose(contour.distance, [0.01, 0.005])
    np.testing.assert_allclose(contour.arc_length, [0.0, 0.2])


def test_a_smaller_circle_is_off_by_radius() -> None:
    """It is off by the difference of the two radii."""
    angle = np.linspace(0.0, 2.0 * math.pi, 5001)
    path = np.stack([0.1 * np.cos(angle), 0.1 * np.sin(angle), 0.0 * angle], axis=1)

    contour = contour_error(angle, path, angle, 0.98 * path)

    np.testing.assert_allclose(contour.distance, 0.002, atol=1e-7)


@pytest.mark.parametrize("late", [0.0, 0.03])
def test_at_a_crossing_the_due_branch_counts(late: float) -> None:
    """Where a path crosses itself, the branch that is due counts."""
    t = np.arange(0.0, 8.0, 0.002)
    rng = np.random.default_rng(0)
    attained = eight(t - late) + 5e-4 * rng.standard_normal((len(t), 3))
    contour = contour_error(t, eight(t), t, attained, expected=t - late)
    # The other branch is half the path away: its length is about 1 m.
    middle = (t > 0.1) & (t < 7.9)

    assert np.abs(contour.lag_time[middle] - late).max() < 0.03
    assert contour.distance[middle].max() < 5 * 5e-4


def test_on_a_retraced_path_the_due_pass_counts() -> None:
    """Where a path retraces itself, the pass that is due counts."""
    there_and_back = np.array([[0.0, 0.0, 0.0], [0.2, 0.0, 0.0], [0.0, 0.0, 0.0]])
    times = np.array([0.0, 2.0, 4.0])
    t = np.arange(0.0, 4.0, 0.01)
    x = np.interp(t, times, there_and_back[:, 0])
    attained = np.stack([x, 0.0 * x + 0.001, 0.0 * x], axis=1)

    contour = contour_error(times, there_and_back, t, attained)

    np.testing.assert_allclose(contour.lag, 0.0, atol=1e-8)
    np.testing.assert_allclose(contour.distance, 0.001)


@given(seed=st.integers(0, 2**32 - 1), noise=st.sampled_from([1e-5, 1e-3, 5e-3]))
def test_a_simple_paths_distance_is_the_least(seed: int, noise: float) -> None:
    """Near a path that does not cross itself, the distance is the least of all."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 8.0, 60)
    at = np.sort(rng.uniform(0.0, 8.0, 80))
    helix = np.stack([0.1 * np.cos(t), 0.1 * np.sin(t), 0.05 * t], axis=1)
    points = np.column_stack([np.interp(at, t, column) for column in helix.T])
    points += noise * rng.standard_normal(points.shape)

    contour = contour_error(t, helix, at, points)

    np.testing.assert_allclose(contour.distance, brute_force(helix, points), atol=2e-9)


@pytest.mark.parametrize("degrees", [30, 60, 90, 150])
def test_corners_down_to_30_degrees_are_gone_round(degrees: int) -> None:
    angle = math.radians(degrees)
    legs = np.array(
        [[-0.2, 0.0, 0.0], [0.0, 0.0, 0.0], [-0.2 * math.cos(angle), 0.2 * math.sin(angle), 0.0]]
    )
    s = np.linspace(0.0, 2.0, 401)
    due = np.column_stack([np.interp(s, [0.0, 1.0, 2.0], column) for column in legs.T])
    # Inside the corner by a millimetre towards the bisector.
    inwards = np.array([-math.cos(0.5 * angle), math.sin(0.5 * angle), 0.0])

    contour = contour_error([0.0, 1.0, 2.0], legs, s, due + 1e-3 * inwards)

    np.testing.assert_allclose(contour.distance, brute_force(legs, due + 1e-3 * inwards), atol=2e-9)


def test_at_rest_a_lag_has_no_time() -> None:
    """At rest, a lag has a length, but no time."""
    times = np.array([0.0, 1.0, 3.0, 4.0])
    path = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.1, 0.0, 0.0], [0.2, 0.0, 0.0]])

    contour = contour_error(
        times, path, [0.5, 2.0, 3.5], [[0.04, 0.0, 0.0], [0.099, 0.0, 0.0], [0.14, 0.0, 0.0]]
    )

    np.testing.assert_allclose(contour.lag, [0.01, 0.001, 0.01])
    np.testing.assert_allclose(contour.lag_time, [0.1, math.nan, 0.1])


def test_a_standing_path_has_no_lag() -> None:
    """A path of one place has distances, but no lag."""
    still = np.zeros((3, 3))
    for path, times in ((still, [0.0, 1.0, 2.0]), (still[:1], [0.0])):
        contour = contour_error(times, path, [0.0, 0.5], [[0.0, 0.003, 0.004], [0.0, 0.0, 0.0]])
        np.testing.assert_allclose(contour.distance, [0.005, 0.0])
        np.testing.assert_allclose(contour.lag, 0.0)
        assert np.isnan(contour.lag_time).all()


# test_a_second_process_compiles_nothing_and_prints_nothing shows it for another kernel.
@pytest.mark.soak
def test_a_later_process_finds_the_machine_code() -> None:
    contour_error(TIMES, CORNERS, [1.0], [[0.1, 0.003, 0.3]])
    text = """
from simbridge.evaluation.metrics.path import contour_error
contour = contour_error([0.0, 1.0], [[0.0, 0.0, 0.0], [0.2, 0.0, 0.0]], [0.5], [[0.08, 0.003, 0.0]])
print(f"{contour.distance[0]:.6f} {contour.lag[0]:.6f}")
"""

    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)

    assert (done.stdout.split(), done.stderr) == (["0.003000", "0.020000"], "")


def test_a_tool_far_off_is_measured() -> None:
    contour = contour_error(TIMES, CORNERS, [1.0], [[0.1, -0.5, 0.3]])

    assert contour.distance[0] == pytest.approx(0.5)


def test_unusable_input_is_refused_and_named() -> None:
    with pytest.raises(UnusableSamples, match="due instants"):
        contour_error(TIMES, CORNERS, [0.0, 1.0], [[0.0, 0.0, 0.3]])
    with pytest.raises(UnusableSamples, match="attained positions"):
        contour_error(TIMES, CORNERS, [0.0], [[0.0, 0.0, math.nan]])
    with pytest.raises(UnusableSamples, match="times of the path"):
        contour_error(TIMES[::-1], CORNERS, [0.0], [[0.0, 0.0, 0.3]])


def test_read_only_positions_are_measured_as_others_are() -> None:
    points = np.array([[0.1, 0.003, 0.3], [0.1, 0.0, 0.3]])
    expected = contour_error(TIMES, CORNERS, [1.0, 1.1], points).distance
    points.setflags(write=False)
    corners = np.array(CORNERS)

    corners.setflags(write=False)

    np.testing.assert_array_equal(
        contour_error(TIMES, corners, [1.0, 1.1], points).distance, expected
    )


# Where an arm stands still, or trembles, most pieces of the path lie in one place. A search that
# looked at each of them for each sample would take hours for these, so the tests would not end.
MANY = 200_000


def test_a_long_rest_is_searched_fast() -> None:
    t = 0.002 * np.arange(MANY)
    path = np.tile(CORNERS[0], (MANY, 1))
    path[-1000:, 0] += np.linspace(0.0, 0.1, 1000)

    contour = contour_error(t, path, t, path + np.array([0.0, 1e-4, 0.0]))

    np.testing.assert_allclose(contour.distance, 1e-4, atol=1e-9)
    assert contour.arc_length[0] == 0.0


def test_a_trembling_rest_is_searched_fast() -> None:
    """A long rest that trembles by less than a tie is searched in little time."""
    t = 0.002 * np.arange(MANY)
    path = CORNERS[0] + 1e-10 * np.random.default_rng(1).normal(size=(MANY, 3))

    contour = contour_error(t, path, t, np.tile(CORNERS[0] + np.array([0.0, 1e-4, 0.0]), (MANY, 1)))

    np.testing.assert_allclose(contour.distance, 1e-4, atol=2e-9)


def test_rests_within_a_motion_change_no_distance() -> None:
    t = np.arange(0.0, 8.0, 0.01)
    moving = eight(t)
    resting = np.repeat(moving, 7, axis=0)
    instants = 0.01 * np.arange(len(resting))
    points = moving + np.array([0.0, 0.0, 1e-3])

    contour = contour_error(instants, resting, instants[::7], points)

    np.testing.assert_allclose(contour.distance, brute_force(moving, points), rtol=1e-12)
