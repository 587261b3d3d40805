"""URScript's functions of poses and matrices that need no controller."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from simbridge.emulator.arm import frame_of
from simbridge.emulator.urscript.values import Pose
from simbridge.errors import InvalidParameter
from tests.emulator.calls import POSES, Thread, same

pytestmark = pytest.mark.slow


@given(a=POSES, b=POSES)
def test_pose_trans_and_pose_inv_are_products_of_frames(call, a, b):
    left = frame_of(np.array(a))
    right = frame_of(np.array(b))

    assert same(call("pose_trans", a, b), left * right)
    assert same(call("pose_inv", a), left.inverse())


@given(a=POSES, b=POSES)
def test_pose_sub_undoes_pose_add(call, a, b):
    assert same(
        call("pose_sub", call("pose_add", b, a), a),
        pin.SE3(frame_of(np.array(b)).rotation, frame_of(np.array(b)).translation),
    )


@given(a=POSES, b=POSES, alpha=st.floats(0.0, 1.0))
def test_an_interpolated_pose_divides_evenly(call, a, b, alpha):
    start = frame_of(np.array(a))
    end = frame_of(np.array(b))

    here = frame_of(np.array(call("interpolate_pose", a, b, alpha)))

    assert here.translation == pytest.approx(
        start.translation + alpha * (end.translation - start.translation)
    )

    turn = np.linalg.norm(pin.log3(end.rotation @ start.rotation.T))

    assert np.linalg.norm(pin.log3(here.rotation @ start.rotation.T)) == pytest.approx(
        alpha * turn, abs=1e-6
    )


def test_distances_are_of_the_positions(call):
    assert call("point_dist", Pose([0.0] * 6), Pose([3.0, 4.0, 0, 1, 0, 0])) == pytest.approx(5.0)
    assert call("pose_dist", Pose([0.0] * 6), Pose([3.0, 4.0, 0, 1, 0, 0])) == pytest.approx(5.0)


@given(rpy=st.lists(st.floats(-1.4, 1.4), min_size=3, max_size=3))
def test_roll_pitch_yaw_has_fixed_axes(call, rpy):
    rotation = Rotation.from_euler("xyz", rpy)
    vector = call("rpy2rotvec", tuple(rpy))

    assert np.allclose(vector, rotation.as_rotvec(), atol=1e-9)
    assert np.allclose(call("rotvec2rpy", tuple(vector)), rpy, atol=1e-9)


def test_matrices_are_inverted_and_transposed(call):
    matrix = ((2.0, 1.0), (1.0, 3.0))

    assert np.allclose(np.array(matrix) @ call("inv", matrix, thread=Thread()), np.eye(2))
    assert call("transpose", ((1, 2, 3), (4, 5, 6))) == [[1, 4], [2, 5], [3, 6]]
    with pytest.raises(InvalidParameter, match="has an inverse"):
        call("inv", ((1.0, 2.0), (2.0, 4.0)), thread=Thread())

    pose = Pose([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])

    assert call("inv", pose) == call("pose_inv", pose)


def test_a_normalized_list_has_length_one(call):
    """Zeros cannot be normalized."""
    assert np.allclose(call("normalize", (3.0, 0.0, 4.0)), [0.6, 0.0, 0.8])
    with pytest.raises(InvalidParameter, match="not all zero"):
        call("normalize", (0.0, 0.0))
