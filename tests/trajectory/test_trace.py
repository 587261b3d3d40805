"""Trajectories made of paths, and motions joined to longer ones."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.trajectory import MinimumJerk, concatenate, dwell, move, square

ALONG_X = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def test_joined_motions_last_as_long_as_their_parts() -> None:
    lap = square()

    joined = concatenate(lap, dwell(lap.start, 1.0))

    assert joined.duration == pytest.approx(lap.duration + 1.0)


def test_motions_that_do_not_meet_are_refused() -> None:
    lap = square()
    elsewhere = dwell(lap.start + 0.05 * ALONG_X, 1.0)

    with pytest.raises(InvalidParameter, match="50 mm"):
        concatenate(lap, elsewhere)


def test_a_move_rotates_in_proportion_to_the_distance() -> None:
    start = square().start
    rotated = pose.multiply(pose.quaternions([0, 0, 1.0]), start[3:])
    end = np.concatenate([(start + 0.2 * ALONG_X)[:3], rotated])

    trajectory = move(start, end, MinimumJerk(0.1))

    angles = np.linalg.norm(pose.error(trajectory.poses, start)[1], axis=1)

    distances = np.linalg.norm(trajectory.poses[:, :3] - start[:3], axis=1)

    np.testing.assert_allclose(angles, distances / 0.2, atol=1e-9)
