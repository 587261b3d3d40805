"""Alignment of recordings with a known clock, frame and marker, or that cannot be aligned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from simbridge.errors import UnusableSamples
from simbridge.evaluation.metrics.alignment import align, rigid_fit
from simbridge.robot import pose

pytestmark = pytest.mark.slow

Array = NDArray[Any]

# The recording's frame in base_link: turned by 2 rad or so.
FRAME = np.array([1.5, -2.0, 0.4, *pose.quaternions([0.8, -0.6, 1.7])])
T = np.arange(4000) * 0.002


def square(t: Array) -> Array:
    """0.2 m a side at 0.1 m/s, the tool nodding about two axes."""
    corners = np.arange(5) * 2.0
    x, y = (
        np.interp(t, corners, values)
        for values in ([0.6, 0.8, 0.8, 0.6, 0.6], [0.0, 0.0, 0.2, 0.2, 0.0])
    )
    turns = np.stack([0.4 * np.sin(t), 0.3 * np.sin(1.7 * t), 0.0 * t], axis=1)
    return np.hstack([np.stack([x, y, 0.3 + 0.0 * t], axis=1), pose.quaternions(turns)])


def recorded(t: Array, marker: Array | None = None, sigma: float = 0.0) -> Array:
    """Return the points of the square that a tracker in FRAME sees at the run's instants t."""
    poses = square(t)
    points = poses[:, :3] + pose.rotate(
        poses[:, 3:], np.broadcast_to(np.zeros(3) if marker is None else marker, (len(t), 3))
    )
    back = pose.rotate(pose.conjugate(FRAME[3:]), points - FRAME[:3])
    return back + sigma * np.random.default_rng(7).standard_normal(back.shape)


def turned_apart(one: Array, other: Array) -> float:
    return float(
        np.linalg.norm(pose.rotation_vectors(pose.multiply(one[3:], pose.conjugate(other[3:]))))
    )


def unrotated(points: Array) -> Array:
    """Poses at these points, in the axes of the base."""
    return np.hstack([points, np.tile([0.0, 0.0, 0.0, 1.0], (len(points), 1))])


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(3, 50))
def test_a_rigid_transform_is_recovered(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    frame = np.hstack([rng.uniform(-5.0, 5.0, 3), pose.normalize(rng.standard_normal(4))])
    points = rng.standard_normal((count, 3))
    moved = frame[:3] + pose.rotate(frame[3:], points)

    transform = rigid_fit(points, unrotated(moved)).transform

    np.testing.assert_allclose(transform[:3] + pose.rotate(transform[3:], points), moved, atol=1e-9)


def test_points_in_a_plane_are_not_reflected() -> None:
    points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 2.0, 0.0]])
    frame = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])

    transform = rigid_fit(points, unrotated(pose.rotate(frame[3:], points))).transform

    assert turned_apart(transform, frame) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("offset", [0.0, 0.0437, -3.2, 1.7e9])
def test_a_clean_recording_is_aligned(offset: float) -> None:
    """Clock and frame of a recording without noise are recovered."""
    u = np.arange(0.3, 7.7, 0.0071)
    alignment = align(T, square(T), u + offset, recorded(u))

    assert alignment.offset == pytest.approx(offset, abs=1e-5)
    np.testing.assert_allclose(alignment.transform[:3], FRAME[:3], atol=1e-5)
    assert turned_apart(alignment.transform, FRAME) < 1e-5
    assert alignment.residual < 2e-6
    np.testing.assert_array_equal(alignment.marker, 0.0)


def test_clock_and_frame_are_recovered_from_noise() -> None:
    u = np.arange(0.0, 8.0, 0.005)
    alignment = align(T, square(T), u + 12.3456, recorded(u, sigma=5e-4))

    assert alignment.offset == pytest.approx(12.3456, abs=1e-3)
    assert turned_apart(alignment.transform, FRAME) < 1e-3
    # Noise in three axes.
    assert alignment.residual == pytest.approx(5e-4 * math.sqrt(3.0), rel=0.05)


def test_a_longer_recording_is_aligned() -> None:
    """The recording begins before the run and ends after it."""
    u = np.arange(-5.0, 14.0, 0.004)
    alignment = align(T, square(T), u + 100.0, recorded(np.clip(u, 0.0, 8.0)))

    assert alignment.offset == pytest.approx(100.0, abs=1e-4)
    assert alignment.samples == pytest.approx(2000, abs=2)


def test_a_reflector_off_the_tcp_is_located() -> None:
    """A reflector away from the TCP is located by the rotation of the tool."""
    marker = np.array([0.03, -0.02, 0.05])
    u = np.arange(0.0, 8.0, 0.01)
    positions = recorded(u, marker, sigma=1e-5)

    alignment = align(T, square(T), u + 0.5, positions, find_marker=True)

    np.testing.assert_allclose(alignment.marker, marker, atol=5e-5)
    assert alignment.offset == pytest.approx(0.5, abs=1e-4)
    assert alignment.residual < 2.5e-5
    assert align(T, square(T), u + 0.5, positions).residual > 1e-3


def test_without_rotation_the_marker_stays() -> None:
    """The marker of a tool that does not rotate stays at the TCP."""
    upright = square(T)
    upright[:, 3:] = [0.0, 0.0, 0.0, 1.0]

    alignment = align(T, upright, T, upright[:, :3] + [0.0, 0.0, 0.1], find_marker=True)

    assert np.abs(alignment.marker).max() < 0.1
    assert alignment.residual < 1e-6


def test_a_steady_circle_is_ambiguous() -> None:
    """A circle at constant speed does not determine the offset of the clocks."""
    circle = np.stack([0.1 * np.cos(T), 0.1 * np.sin(T), 0.0 * T], axis=1)
    poses = np.hstack([circle, np.tile([0.0, 0.0, 0.0, 1.0], (len(T), 1))])

    with pytest.raises(UnusableSamples, match=r"fits as well"):
        align(T, poses, T, circle)


def test_a_recording_of_another_motion_is_refused() -> None:
    there_and_back = np.stack([0.3 * np.sin(5.0 * T) ** 2, 0.0 * T, 0.0 * T], axis=1)

    with pytest.raises(UnusableSamples, match="another"):
        align(T, square(T), T, there_and_back)


def test_a_recording_of_something_at_rest_is_refused() -> None:
    still = np.zeros((len(T), 3))

    with pytest.raises(UnusableSamples, match="is at rest"):
        align(T, square(T), T, still)


def test_a_run_that_only_rotates_is_refused() -> None:
    t = np.arange(500) * 0.008
    turning = np.hstack(
        [np.full((500, 3), 0.5), pose.quaternions(np.outer(np.sin(t), [0.0, 0.0, 0.3]))]
    )

    swinging = turning[:, :3] + pose.rotate(
        turning[:, 3:], np.broadcast_to([0.1, 0.0, 0.0], (500, 3))
    )

    with pytest.raises(
        UnusableSamples, match=r"position does not move in this run .* only rotates"
    ):
        align(t, turning, t, swinging)


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(UnusableSamples, match="need 20 samples each"):
        align(T, square(T), T[:19], recorded(T[:19]))


def test_unusable_input_is_named_in_the_error() -> None:
    with pytest.raises(UnusableSamples, match="recorded positions"):
        align(T, square(T), T, recorded(T)[:-1])
    with pytest.raises(UnusableSamples, match="attained poses"):
        rigid_fit(np.zeros((2, 3)), unrotated(np.zeros((3, 3))))
    with pytest.raises(UnusableSamples, match="there are none"):
        rigid_fit(np.zeros((0, 3)), unrotated(np.zeros((0, 3))))
