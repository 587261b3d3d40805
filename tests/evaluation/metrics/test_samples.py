"""Pose errors and their statistics: closed forms, and the same numbers from other tools."""

from __future__ import annotations

import math

import numpy as np
import pinocchio
import pytest
from evo.core import metrics as evo_metrics
from evo.core.trajectory import PosePath3D
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from simbridge.errors import UnusableSamples
from simbridge.evaluation.metrics.samples import PoseError, statistics
from tests.evaluation.metrics.random_poses import random_poses, rotation_matrices, turned
from tests.properties import few_examples

Array = NDArray[np.float64]


def rotations(poses: Array) -> Array:
    return np.array([pinocchio.Quaternion(q).toRotationMatrix() for q in poses[:, 3:]])


def test_an_error_is_desired_minus_attained() -> None:
    """Translation and rotation are in the axes of the base."""
    attained = random_poses(0, 4)
    shift = np.array([0.1, -0.2, 0.3])
    turn = np.array([0.0, 0.4, 0.3])
    desired = turned(attained, np.tile(turn, (4, 1)))
    desired[:, :3] += shift

    error = PoseError.between(desired, attained)

    np.testing.assert_allclose(error.translation, np.tile(shift, (4, 1)), atol=1e-15)
    np.testing.assert_allclose(error.rotation, np.tile(turn, (4, 1)), atol=1e-15)
    np.testing.assert_allclose(error.distance, math.sqrt(0.14), rtol=1e-14)
    np.testing.assert_allclose(error.angle, 0.5, rtol=1e-14)


@few_examples(20)
@given(seed=st.integers(0, 2**32 - 1))
def test_rotation_errors_equal_those_of_pinocchio(seed: int) -> None:
    desired = random_poses(seed, 10)
    attained = random_poses(seed + 1, 10)
    error = PoseError.between(desired, attained)
    relative = rotations(desired) @ np.swapaxes(rotations(attained), 1, 2)

    expected = np.array([pinocchio.log3(r) for r in relative])

    np.testing.assert_allclose(error.angle, np.linalg.norm(expected, axis=1), atol=1e-7)
    np.testing.assert_allclose(rotation_matrices(error.rotation), relative, atol=1e-12)

    clear = np.linalg.norm(expected, axis=1) < 3.1

    np.testing.assert_allclose(error.rotation[clear], expected[clear], atol=1e-9)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 0.0])
def test_an_angle_near_half_a_turn_is_kept(gap: float) -> None:
    attained = random_poses(3, 5)
    axis = np.array([2.0, -1.0, 2.0]) / 3.0

    error = PoseError.between(turned(attained, np.tile((math.pi - gap) * axis, (5, 1))), attained)

    np.testing.assert_allclose(error.angle, math.pi - gap, atol=1e-14)
    # At half a turn itself the axis and its opposite are the same rotation.
    np.testing.assert_allclose(np.abs(error.rotation @ axis), math.pi - gap, atol=1e-14)


def test_the_sign_of_a_quaternion_does_not_matter() -> None:
    poses = random_poses(4, 6)
    flipped = np.hstack([poses[:, :3], -poses[:, 3:]])

    np.testing.assert_allclose(PoseError.between(poses, flipped).angle, 0.0, atol=1e-15)


@pytest.mark.slow
@few_examples(20)
@given(seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([1e-5, 1e-2, 0.5]))
def test_absolute_pose_errors_equal_those_of_evo(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    reference = random_poses(seed, 30)
    attained = turned(reference, rng.uniform(-spread, spread, (30, 3)))
    attained[:, :3] += rng.uniform(-spread, spread, (30, 3))
    error = PoseError.between(reference, attained)
    paths = [
        PosePath3D(positions_xyz=p[:, :3], orientations_quat_wxyz=p[:, [6, 3, 4, 5]])
        for p in (reference, attained)
    ]
    relations = evo_metrics.PoseRelation
    for relation, ours, rtol, atol in (
        (relations.translation_part, error.statistics()["position_m"], 1e-12, 0.0),
        (relations.rotation_angle_rad, error.statistics()["rotation_rad"], 1e-9, 1e-11),
    ):
        ape = evo_metrics.APE(relation)
        ape.process_data((paths[0], paths[1]))
        theirs = ape.get_all_statistics()
        found = [ours["rms"], ours["mean"], ours["max"]]
        np.testing.assert_allclose(
            found, [theirs["rmse"], theirs["mean"], theirs["max"]], rtol, atol
        )


def test_statistics_of_a_ramp_have_their_closed_forms() -> None:
    # 0, 1, ..., n: mean n/2, mean square n (2n + 1) / 6, and the 95th percentile 0.95 n.
    n = 200
    found = statistics(np.arange(n + 1.0)[::-1])

    assert found == pytest.approx(
        {"rms": math.sqrt(n * (2 * n + 1) / 6), "mean": n / 2, "p95": 0.95 * n, "max": n}
    )


def test_statistics_of_a_sine_have_their_closed_forms() -> None:
    phase = np.arange(100_000) * (2.0 * math.pi / 100_000)
    found = statistics(3.0 * np.abs(np.sin(phase)))

    expected = {
        "rms": 3.0 / math.sqrt(2.0),
        "mean": 6.0 / math.pi,
        "p95": 3.0 * math.sin(0.475 * math.pi),
        "max": 3.0,
    }

    assert found == pytest.approx(expected, rel=1e-4)


def test_statistics_of_one_value_are_that_value() -> None:
    assert statistics([0.25]) == {"rms": 0.25, "mean": 0.25, "p95": 0.25, "max": 0.25}


def test_statistics_are_plain_floats_ready_for_json() -> None:
    found = PoseError.between(random_poses(5, 8), random_poses(6, 8)).statistics()

    assert set(found) == {"position_m", "rotation_rad"}
    assert all(type(value) is float for line in found.values() for value in line.values())


def test_statistics_of_nothing_are_refused() -> None:
    with pytest.raises(UnusableSamples, match="there are none"):
        statistics([])
    with pytest.raises(UnusableSamples, match="there are none"):
        PoseError(np.empty((0, 3)), np.empty((0, 3))).statistics()


def test_errors_are_read_only_copies() -> None:
    translation = np.zeros((2, 3))
    error = PoseError(translation, np.zeros((2, 3)))
    translation[0, 0] = 1.0

    assert error.translation[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        error.rotation[0, 0] = 1.0
