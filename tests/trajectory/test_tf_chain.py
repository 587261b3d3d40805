"""Frames of tf, chained from one to another, and what they are at an instant."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.robot import pose
from simbridge.trajectory import Trajectory
from simbridge.trajectory.tf_chain import Transform, chain, find_path, has_another_path, look_up

pytestmark = pytest.mark.slow

numbers = st.floats(-2.0, 2.0)
START = 1_764_097_182_000_000_000
PERIOD = 10_000_000


def turning(samples) -> Transform:
    """A frame that moves along x and turns about z, at some of the samples of 100 Hz."""
    k = np.asarray(samples)
    poses = np.zeros((len(k), 7))
    poses[:, 0] = 0.01 * k
    poses[:, 5] = np.sin(0.05 * k)
    poses[:, 6] = np.cos(0.05 * k)
    return Transform(START + PERIOD * k, Trajectory(0.01 * (k - k[0]), poses), is_static=False)


@given(st.lists(st.tuples(*[numbers] * 6, st.booleans()), min_size=1, max_size=5))
def test_a_chain_of_still_transforms_is_their_product(links) -> None:
    transforms = {}
    expected = pin.SE3.Identity()
    for k, (*values, forward) in enumerate(links):
        link = pin.SE3(pin.exp3(np.array(values[3:])), np.array(values[:3]))
        key = (f"f{k}", f"f{k + 1}") if forward else (f"f{k + 1}", f"f{k}")
        transforms[key] = pin.SE3ToXYZQUAT(link)[None]
        expected = expected * (link if forward else link.inverse())

    path = find_path(transforms, "f0", f"f{len(links)}")
    poses = chain([transforms[step.key] for step in path], [step.forward for step in path])

    np.testing.assert_allclose(poses[0, :3], expected.translation, atol=1e-9)

    turn = pose.rotation_vectors(
        pose.multiply(poses[:, 3:], pose.conjugate(pin.SE3ToXYZQUAT(expected)[3:]))
    )

    np.testing.assert_allclose(turn, 0.0, atol=1e-7)


def test_a_transform_between_samples_is_interpolated() -> None:
    lookup = look_up(turning(range(200)), START + PERIOD * np.arange(10) + PERIOD // 4)

    assert lookup.is_known.all()
    assert lookup.gaps == ()
    for k, values in enumerate(lookup.poses):
        before = pin.Quaternion(pin.exp3(np.array([0.0, 0.0, 0.1 * k])))
        after = pin.Quaternion(pin.exp3(np.array([0.0, 0.0, 0.1 * (k + 1)])))
        expected = before.slerp(0.25, after)

        np.testing.assert_allclose(values[0], 0.01 * (k + 0.25), atol=1e-12)
        np.testing.assert_allclose(
            pin.Quaternion(values[3:]).matrix(), expected.matrix(), atol=1e-9
        )


def test_a_transform_is_never_extrapolated() -> None:
    lookup = look_up(turning(range(10, 200)), START + PERIOD * np.array([9, 10, 199, 200]))

    assert lookup.is_before.tolist() == [True, False, False, False]
    assert lookup.is_after.tolist() == [False, False, False, True]


def test_a_single_sample_holds_at_its_instant() -> None:
    lookup = look_up(turning([5]), START + PERIOD * np.array([4, 5, 6]))

    assert lookup.is_known.tolist() == [False, True, False]


def test_a_still_transform_holds_always() -> None:
    still = Transform(np.array([0]), Trajectory([0.0], [pose.IDENTITY]), is_static=True)

    lookup = look_up(still, START + PERIOD * np.arange(3))

    assert lookup.is_known.all()


def test_a_transform_in_a_long_gap_is_unknown() -> None:
    samples = [*range(50), *range(70, 200)]

    lookup = look_up(turning(samples), START + PERIOD * np.array([49, 50, 69, 70]))

    assert lookup.is_in_large_gap.tolist() == [False, True, True, False]


def test_a_short_gap_is_interpolated_and_named() -> None:
    samples = [*range(50), *range(53, 200)]

    lookup = look_up(turning(samples), START + PERIOD * np.arange(40, 60))

    assert lookup.is_known.all()
    (gap,) = lookup.gaps
    assert gap.size == pytest.approx(0.04)
    # Since the first instant.
    assert gap.at == pytest.approx(0.09)
    np.testing.assert_allclose(lookup.poses[:, 0], 0.01 * np.arange(40, 60), atol=1e-12)


def test_two_ways_between_frames_are_noticed() -> None:
    tree = [("world", "base"), ("world", "camera"), ("camera", "tool")]

    path = find_path(tree, "base", "tool")

    assert [step.key for step in path] == [tree[0], tree[1], tree[2]]
    assert not has_another_path(tree, path)
    assert has_another_path([*tree, ("base", "tool")], path)
