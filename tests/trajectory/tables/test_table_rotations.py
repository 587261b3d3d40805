"""Rotation vectors and matrices are checked before they are quaternions."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pinocchio import Quaternion, exp3

from simbridge.robot import pose
from simbridge.trajectory import read_trajectory
from tests.trajectory.tables.motions import NS, POSES, TURNS, refusal, refused, same_directory


def test_degrees_are_asked_for(write_table) -> None:
    table = [
        [t, *p, *turn] for t, p, turn in zip(NS / 1e9, POSES[:, :3], np.degrees(TURNS), strict=True)
    ]

    path = write_table(table, "t,x,y,z,rx,ry,rz")

    assert "--columns rx[deg]" in refusal(path)

    read = read_trajectory(path, columns="rx[deg]")

    np.testing.assert_allclose(read.poses, POSES, atol=1e-9)
    assert "rotation vector in deg" in read.read_as


def test_twelve_numbers_that_are_no_pose_are_refused(write_table) -> None:
    assert "not a rotation matrix" in refusal(write_table([[1.0] * 12] * 3), rate=50.0)


@same_directory
@given(turn=arrays(float, 3, elements=st.floats(-3.6, 3.6)))
def test_rotation_vectors_and_quaternions_give_the_same_motion(
    write_text, turn: np.ndarray
) -> None:
    assume(np.linalg.norm(turn) <= 2 * math.pi)
    quaternion = Quaternion(exp3(turn)).coeffs()
    vectors = read_trajectory(write_text("0 0.1 0.2 0.3 " + " ".join(map(repr, turn.tolist()))))
    named = read_trajectory(
        write_text(
            "rz,ry,rx,z,y,x,t\n" + ",".join(map(repr, [*turn[::-1].tolist(), 0.3, 0.2, 0.1, 0]))
        )
    )

    quaternions = read_trajectory(
        write_text("0 0.1 0.2 0.3 " + " ".join(map(repr, quaternion.tolist())))
    )

    np.testing.assert_array_equal(vectors.poses, named.poses)
    np.testing.assert_array_equal(vectors.poses[:, :3], quaternions.poses[:, :3])
    assert np.linalg.norm(pose.error(vectors.poses, quaternions.poses)[1]) < 1e-7


def test_rotation_vectors_in_degrees_are_refused(write_text) -> None:
    fault = refused(write_text("0 0 0 0 0 3.14 0\n1 0 0 0 0 180 0\n"))

    assert fault.line == 2
    assert fault.field == "rotation vector"
    assert "180 rad is more than a full turn" in str(fault)
