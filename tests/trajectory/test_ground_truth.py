"""The part of a true motion at the time of noisy samples of it."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import InputFileError
from simbridge.trajectory import Trajectory
from simbridge.trajectory.ground_truth import cut_to_samples

DATE = 1_764_097_182


def moving(times, zero: float = 0.0, epoch_ns: int = 0) -> Trajectory:
    """A motion along x by 1 m/s from the zero of its clock, at times (T,) in s."""
    instants = np.asarray(times, dtype=float)
    poses = np.zeros((len(instants), 7))
    poses[:, 0] = instants
    poses[:, 6] = 1.0
    return Trajectory(zero + instants, poses, source="motion.tum", epoch_ns=epoch_ns)


def test_it_begins_and_ends_with_the_samples() -> None:
    truth = moving(np.arange(11))

    part = cut_to_samples(truth, moving([2.5, 3.0, 6.25]))

    np.testing.assert_allclose(part.times, [0.0, 0.5, 1.5, 2.5, 3.5, 3.75])
    np.testing.assert_allclose(part.poses[:, 0], [2.5, 3.0, 4.0, 5.0, 6.0, 6.25])


def test_the_same_times_give_the_same_poses() -> None:
    truth = moving(np.arange(11))

    part = cut_to_samples(truth, truth)

    np.testing.assert_array_equal(part.poses, truth.poses)


def test_seconds_and_nanoseconds_since_1970_are_one_clock() -> None:
    truth = moving(np.arange(11), zero=DATE)
    samples = moving(np.arange(3), epoch_ns=(DATE + 4) * 10**9)

    part = cut_to_samples(truth, samples)

    np.testing.assert_allclose(part.poses[:, 0], [4.0, 5.0, 6.0], atol=1e-6)


def test_a_single_sample_has_a_single_pose() -> None:
    part = cut_to_samples(moving(np.arange(11)), moving([2.5]))

    np.testing.assert_allclose(part.poses[:, 0], [2.5])


@pytest.mark.parametrize("dated", ["truth", "samples"])
def test_different_clocks_are_refused(dated: str) -> None:
    truth = moving(np.arange(11), zero=DATE if dated == "truth" else 0.0)
    samples = moving(np.arange(3), zero=DATE if dated == "samples" else 0.0)

    with pytest.raises(InputFileError, match="count from 1970") as refusal:
        cut_to_samples(truth, samples)

    assert refusal.value.field == "time"


@pytest.mark.parametrize(
    ("times", "lacks"),
    [
        ([1.0, 5.0], "lacks the first 1.000 s"),
        ([2.0, 6.5], "lacks the last 0.5000 s"),
        ([0.0, 8.0], "lacks the first 2.000 s and the last 2.000 s"),
    ],
)
def test_what_is_not_covered_is_named(times, lacks: str) -> None:
    with pytest.raises(InputFileError, match=lacks):
        cut_to_samples(moving([2.0, 4.0, 6.0]), moving(times))
