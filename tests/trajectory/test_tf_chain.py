"""Frames of tf, chained from one to another."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from hypothesis import given
from hypothesis import strategies as st

from simbridge.robot import pose
from simbridge.trajectory.tf_chain import chain

numbers = st.floats(-2.0, 2.0)


@given(st.lists(st.tuples(*[numbers] * 6, st.booleans()), min_size=1, max_size=5))
def test_a_chain_of_still_transforms_is_their_product(links) -> None:
    edges = {}
    expected = pin.SE3.Identity()
    for k, (*values, forward) in enumerate(links):
        link = pin.SE3(pin.exp3(np.array(values[3:])), np.array(values[:3]))
        frame = pin.SE3ToXYZQUAT(link)[None]
        edges[(f"f{k}", f"f{k + 1}") if forward else (f"f{k + 1}", f"f{k}")] = (
            np.zeros(1, dtype=np.int64),
            frame,
        )
        expected = expected * (link if forward else link.inverse())

    _, poses = chain(edges, "f0", f"f{len(links)}")

    np.testing.assert_allclose(poses[0, :3], expected.translation, atol=1e-9)

    turn = pose.rotation_vectors(
        pose.multiply(poses[:, 3:], pose.conjugate(pin.SE3ToXYZQUAT(expected)[3:]))
    )

    np.testing.assert_allclose(turn, 0.0, atol=1e-7)
