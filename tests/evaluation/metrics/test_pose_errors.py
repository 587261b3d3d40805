"""APE and RPE equal those of evo, and so does the association of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from evo.core import metrics as evo_metrics
from evo.core import sync
from evo.core.trajectory import PosePath3D, PoseTrajectory3D
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter, UnusableSamples
from simbridge.evaluation.metrics import (
    absolute_pose_error,
    associate,
    pose_errors,
    relative_pose_error,
    relative_pose_error_over,
)
from simbridge.evaluation.metrics.pose_errors import TrajectoryError, pose_error_summary
from simbridge.robot import pose

pytestmark = pytest.mark.slow

Array = NDArray[Any]
RELATIONS = {
    "position_m": evo_metrics.PoseRelation.translation_part,
    "rotation_rad": evo_metrics.PoseRelation.rotation_angle_rad,
}


def helix(count: int) -> Array:
    t = np.linspace(0.0, 6.0, count)
    turns = np.stack([0.3 * np.sin(t), 0.2 * t, 0.1 * np.cos(2.0 * t)], axis=1)
    return np.hstack(
        [np.stack([0.2 * np.cos(t), 0.2 * np.sin(t), 0.05 * t], axis=1), pose.quaternions(turns)]
    )


def scattered(count: int) -> Array:
    rng = np.random.default_rng(5)
    return np.hstack(
        [rng.uniform(-1.0, 1.0, (count, 3)), pose.normalize(rng.standard_normal((count, 4)))]
    )


def disturbed(poses: Array, spread: float) -> Array:
    rng = np.random.default_rng(6)
    turns = pose.quaternions(spread * rng.standard_normal((len(poses), 3)))
    moved = poses[:, :3] + spread * rng.standard_normal((len(poses), 3))
    return np.hstack([moved, pose.multiply(turns, poses[:, 3:])])


def path(poses: Array) -> PosePath3D:
    return PosePath3D(positions_xyz=poses[:, :3], orientations_quat_wxyz=poses[:, [6, 3, 4, 5]])


def same_as_evo(error: TrajectoryError, metric: Any, reference: Array, attained: Array) -> None:
    for name, relation in RELATIONS.items():
        theirs = metric(relation)
        theirs.process_data((path(reference), path(attained)))
        expected = theirs.get_all_statistics()
        ours = error.statistics()[name]
        assert set(ours) == set(expected)
        for key, value in expected.items():
            assert ours[key] == pytest.approx(value, rel=1e-9, abs=1e-9)


PAIRS = [
    (helix(400), disturbed(helix(400), 1e-3)),
    (scattered(300), disturbed(scattered(300), 0.2)),
]


@pytest.mark.parametrize("pair", PAIRS, ids=["helix", "scattered"])
def test_absolute_errors_equal_those_of_evo(pair: tuple[Array, Array]) -> None:
    same_as_evo(absolute_pose_error(*pair), evo_metrics.APE, *pair)


@pytest.mark.parametrize("pair", PAIRS, ids=["helix", "scattered"])
@pytest.mark.parametrize(
    ("delta", "all_pairs"),
    [
        (1, False),
        (7, True),
        *(
            pytest.param(*case, marks=pytest.mark.soak)
            for case in ((7, False), (100, False), (1, True), (100, True))
        ),
    ],
)
def test_relative_errors_equal_those_of_evo(
    pair: tuple[Array, Array], delta: int, all_pairs: bool
) -> None:
    def metric(relation: Any) -> Any:
        return evo_metrics.RPE(relation, delta, evo_metrics.Unit.frames, all_pairs=all_pairs)

    same_as_evo(relative_pose_error(*pair, delta, all_pairs=all_pairs), metric, *pair)


@pytest.mark.parametrize("pair", PAIRS, ids=["helix", "scattered"])
def test_summary_statistics_equal_those_of_evo(
    pair: tuple[Array, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    # In blocks, as of a long run.
    monkeypatch.setattr(pose_errors, "BLOCK", 64)
    summary = pose_error_summary(0.008, *pair)

    delta = summary["relative_pose_error"].pop("delta_samples")

    assert delta == 125 and summary["relative_pose_error"].pop("delta_s") == 1.0

    for name, relation in RELATIONS.items():
        for kind, metric in (
            ("absolute_pose_error", evo_metrics.APE(relation)),
            (
                "relative_pose_error",
                evo_metrics.RPE(relation, delta, evo_metrics.Unit.frames, all_pairs=True),
            ),
        ):
            metric.process_data((path(pair[0]), path(pair[1])))
            assert summary[kind][name] == pytest.approx(
                metric.get_all_statistics(), rel=1e-9, abs=1e-9
            )


def test_a_single_pose_has_no_relative_error() -> None:
    assert pose_error_summary(0.008, helix(1), helix(1))["relative_pose_error"] is None


def test_a_time_span_is_its_sample_count() -> None:
    """The error over a time span is that over the corresponding number of samples."""
    reference, attained = PAIRS[0]
    t = np.arange(400) * 0.008

    over = relative_pose_error_over(t, reference, attained, 0.08)

    np.testing.assert_array_equal(
        over.translation, relative_pose_error(reference, attained, 10, all_pairs=True).translation
    )


def test_a_constant_offset_has_no_relative_error() -> None:
    reference = helix(100)
    attained = pose.compose(np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.6, 0.8]), reference)

    assert absolute_pose_error(reference, attained).translation.min() > 0.1

    relative = relative_pose_error(reference, attained)

    np.testing.assert_allclose(relative.translation, 0.0, atol=1e-15)
    np.testing.assert_allclose(relative.rotation, 0.0, atol=1e-15)


@given(seed=st.integers(0, 2**32 - 1), first=st.integers(1, 60), second=st.integers(1, 60))
def test_associated_samples_equal_those_of_evo(seed: int, first: int, second: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = (np.cumsum(rng.uniform(0.001, 0.03, count)) for count in (first, second))

    def trajectory(stamps: Array) -> PoseTrajectory3D:
        marked = np.column_stack([np.arange(len(stamps)), np.zeros((len(stamps), 2))])
        return PoseTrajectory3D(marked, np.tile([1.0, 0.0, 0.0, 0.0], (len(stamps), 1)), stamps)

    try:
        theirs = sync.associate_trajectories(trajectory(one), trajectory(other), max_diff=0.01)
    except sync.SyncException:
        with pytest.raises(UnusableSamples, match=r"within 0\.01 s"):
            associate(one, other)
        return
    ours = associate(one, other)
    for indices, matched in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(indices, matched.positions_xyz[:, 0])


def test_distant_stamps_are_not_associated() -> None:
    """Stamps farther apart than the tolerance do not belong together."""
    first, second = associate([0.0, 1.0, 2.0, 3.0], [0.009, 1.011, 2.0])

    assert (first.tolist(), second.tolist()) == ([0, 2], [0, 2])


def test_of_two_equally_near_samples_the_earlier_counts() -> None:
    assert associate([0.0, 0.5, 1.0], [0.75], 0.3)[0].tolist() == [1]


def test_a_pair_longer_than_the_recording_is_refused() -> None:
    with pytest.raises(UnusableSamples, match="there are 5"):
        relative_pose_error(helix(5), helix(5), 5)
    with pytest.raises(InvalidParameter, match="delta"):
        relative_pose_error(helix(5), helix(5), 0)
    with pytest.raises(UnusableSamples, match="they span 4 s"):
        relative_pose_error_over(np.arange(5.0), helix(5), helix(5), 4.5)
    with pytest.raises(InvalidParameter, match="a positive time"):
        relative_pose_error_over(np.arange(5.0), helix(5), helix(5), 0.0)
