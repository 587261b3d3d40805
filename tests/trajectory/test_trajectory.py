"""A trajectory returns its samples exactly, and invalid samples are refused by name."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pinocchio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from simbridge.errors import InvalidParameter, InvalidTrajectory, SimbridgeError, UnknownName
from simbridge.robot import pose
from simbridge.trajectory import TOOL_DOWN, Trajectory
from simbridge.trajectory.writers import write_table
from tests.properties import few_examples

HALF = math.sqrt(0.5)


def line(samples: int = 3, period: float = 1.0, first: float = 0.0) -> Trajectory:
    """A motion along x by 1 m a sample, tool down."""
    poses = np.tile(np.concatenate([np.zeros(3), TOOL_DOWN]), (samples, 1))
    poses[:, 0] = np.arange(samples)
    return Trajectory(first + period * np.arange(samples), poses)


@st.composite
def trajectories(draw: st.DrawFn, earliest: float = -1e3, latest: float = 1e3) -> Trajectory:
    samples = draw(st.integers(1, 12))
    gaps = draw(arrays(float, samples, elements=st.floats(1e-4, 10.0)))
    positions = draw(arrays(float, (samples, 3), elements=st.floats(-2.0, 2.0)))
    quaternions = draw(arrays(float, (samples, 4), elements=st.floats(-1.0, 1.0)))
    # A quaternion must not be zero: then it is the identity.
    quaternions[np.linalg.norm(quaternions, axis=1) < 1e-3] = [0.0, 0.0, 0.0, 1.0]
    poses = np.column_stack([positions, pose.normalize(quaternions)])
    return Trajectory(draw(st.floats(earliest, latest)) + np.cumsum(gaps), poses)


def test_halfway_between_two_samples_the_reference_is_halfway() -> None:
    a = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    b = [0.2, 0.4, -0.6, 0.0, 0.0, HALF, HALF]
    eighth = math.pi / 8
    expected = [[0.1, 0.2, -0.3, 0.0, 0.0, math.sin(eighth), math.cos(eighth)]]

    np.testing.assert_allclose(
        Trajectory([10.0, 12.0], [a, b]).reference(1.0), expected, atol=1e-15
    )


def test_the_reference_turns_the_shorter_way() -> None:
    a = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    b = np.array([0.0, 0.0, 0.0, 0.0, 0.0, math.sin(0.1), math.cos(0.1)])
    flipped = np.concatenate([b[:3], -b[3:]])
    trajectory = Trajectory([0.0, 1.0], [a, flipped])
    expected = pinocchio.exp3(np.array([0.0, 0.0, 0.1]))
    x, y, z, w = trajectory.reference(0.5)[0, 3:]

    np.testing.assert_allclose(
        pinocchio.Quaternion(w, x, y, z).toRotationMatrix(), expected, atol=1e-15
    )
    np.testing.assert_array_equal(trajectory.poses[1], flipped)


@few_examples(20)
@given(trajectories())
def test_the_reference_meets_every_sample_bit_for_bit(trajectory: Trajectory) -> None:
    np.testing.assert_array_equal(trajectory.reference(trajectory.elapsed), trajectory.poses)
    np.testing.assert_array_equal(trajectory.target(trajectory.elapsed, "linear"), trajectory.poses)


@few_examples(20)
@given(trajectories(), st.lists(st.floats(-5.0, 150.0), min_size=1, max_size=20))
def test_a_held_target_is_the_last_sample(trajectory: Trajectory, instants: list[float]) -> None:
    # Within rounding of a sample both answers are correct.
    instants = [
        t
        for t in instants
        if np.abs(trajectory.elapsed - t).min() > 1e-8 or t in trajectory.elapsed
    ]
    instants += trajectory.elapsed.tolist()
    last = [
        max([k for k, due in enumerate(trajectory.elapsed) if due <= t], default=0)
        for t in instants
    ]

    np.testing.assert_array_equal(trajectory.sample_at(instants), last)
    np.testing.assert_array_equal(trajectory.target(instants, "zero-order"), trajectory.poses[last])


@few_examples(20)
@given(trajectories(-2e9, 2e9))
def test_a_held_target_changes_at_its_instant(
    trajectory: Trajectory,
) -> None:
    for instants in (trajectory.elapsed, np.nextafter(trajectory.elapsed, -np.inf)):
        np.testing.assert_array_equal(trajectory.target(instants, "zero-order"), trajectory.poses)


@pytest.mark.parametrize("first", [0.0, 1_763_716_500.123])
@pytest.mark.parametrize("period", [0.01, 0.008, 0.002])
def test_multiples_of_the_period_meet_samples(first: float, period: float) -> None:
    trajectory = line(2000, period, first)
    k = np.arange(2000)
    summed = np.cumsum(np.full(2000, period)) - period

    for instants in (k * period, k / (1 / period), summed):
        np.testing.assert_array_equal(trajectory.sample_at(instants), k)


def test_an_earlier_instant_has_the_previous_sample() -> None:
    assert line(period=0.01).sample_at([0.01 - 1e-8, 0.01 - 1e-10]).tolist() == [0, 1]


@pytest.mark.parametrize("times", [[0.0, 1e-10, 2e-10], [1.7e9, 1.7e9 + 2.4e-7, 1.7e9 + 4.8e-7]])
def test_close_samples_are_distinguished(times: list[float]) -> None:
    trajectory = Trajectory(times, line().poses)

    np.testing.assert_array_equal(
        trajectory.target(trajectory.elapsed, "zero-order"), trajectory.poses
    )


def test_sample_at_returns_the_shape_of_its_argument() -> None:
    trajectory = line()

    assert int(trajectory.sample_at(1.5)) == 1
    assert trajectory.sample_at([[0.0, 1.0, 2.5]]).tolist() == [[0, 1, 2]]


def test_the_end_poses_hold_outside() -> None:
    trajectory = line(first=100.0)

    for hold in ("linear", "zero-order"):
        np.testing.assert_array_equal(
            trajectory.target([-3.0, 77.0], hold), trajectory.poses[[0, -1]]
        )


def test_a_single_sample_is_a_trajectory_without_motion() -> None:
    single = line(1)

    assert single.duration == 0.0
    for hold in ("linear", "zero-order"):
        np.testing.assert_array_equal(single.target([0.0, 1.0], hold), single.poses[[0, 0]])


def test_instants_count_from_the_first_sample() -> None:
    early = line()
    late = line(first=1000.0)
    t = np.linspace(-1.0, 4.0, 41)

    np.testing.assert_array_equal(early.reference(t), late.reference(t))
    assert late.duration == 2.0
    np.testing.assert_array_equal(late.start, late.poses[0])


def test_an_unknown_hold_is_refused() -> None:
    with pytest.raises(UnknownName, match="linear or zero-order"):
        line().target(0.0, "cubic")  # type: ignore[arg-type]


def test_slowing_down_stretches_time_and_keeps_the_path() -> None:
    trajectory = line(first=50.0)

    slow = trajectory.scale_speed(0.2)

    assert slow.duration == pytest.approx(5.0 * trajectory.duration, rel=1e-15)
    assert slow.times[0] == 50.0

    t = np.linspace(0.0, 2.0, 21)

    np.testing.assert_allclose(slow.reference(t / 0.2), trajectory.reference(t), atol=1e-14)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_speed_scale_must_be_positive(scale: float) -> None:
    with pytest.raises(InvalidParameter, match="speed scale"):
        line().scale_speed(scale)


@few_examples(20)
@given(
    trajectories(),
    arrays(float, 3, elements=st.floats(-3.0, 3.0)),
    arrays(float, 3, elements=st.floats(-2.0, 2.0)),
)
def test_a_frame_premultiplies_every_pose(
    trajectory: Trajectory, shift: np.ndarray, turn: np.ndarray
) -> None:
    frame = pinocchio.SE3(pinocchio.exp3(turn), shift)
    moved = trajectory.transform(pinocchio.SE3ToXYZQUAT(frame))
    for before, after in zip(trajectory.poses, moved.poses, strict=True):
        expected = frame * pinocchio.XYZQUATToSE3(before)

        np.testing.assert_allclose(
            pinocchio.XYZQUATToSE3(after).homogeneous, expected.homogeneous, atol=1e-12
        )

    np.testing.assert_array_equal(moved.times, trajectory.times)


def test_an_invalid_frame_is_refused() -> None:
    with pytest.raises(InvalidTrajectory, match=r"'the frame'.*is zero"):
        line().transform(np.zeros(7))


@few_examples(20)
@given(trajectories())
def test_the_pendant_base_is_half_turned(trajectory: Trajectory) -> None:
    frame = pinocchio.SE3(np.diag([-1.0, -1.0, 1.0]), np.zeros(3))

    turned = trajectory.from_pendant_base()

    np.testing.assert_array_equal(turned.poses[:, :3], trajectory.poses[:, :3] * [-1.0, -1.0, 1.0])

    for before, after in zip(trajectory.poses, turned.poses, strict=True):
        expected = frame * pinocchio.XYZQUATToSE3(before)

        np.testing.assert_allclose(
            pinocchio.XYZQUATToSE3(after).homogeneous, expected.homogeneous, atol=1e-14
        )


def test_the_arrays_are_copies_and_read_only() -> None:
    times = np.array([0.0, 1.0])
    poses = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (2, 1))
    trajectory = Trajectory(times, poses)
    times[0] = 5.0
    poses[0, 0] = 5.0

    assert trajectory.times[0] == 0.0
    assert trajectory.start[0] == 0.0

    for array in (trajectory.times, trajectory.poses, trajectory.elapsed, trajectory.start):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0

    with pytest.raises(dataclasses.FrozenInstanceError):
        trajectory.times = times  # type: ignore[misc]


def test_a_trajectory_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(line()))

    np.testing.assert_array_equal(again.poses, line().poses)


def test_a_quaternion_rounded_to_three_decimals_is_normalised() -> None:
    trajectory = Trajectory([0.0], [[0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5005]])

    assert np.linalg.norm(trajectory.start[3:]) == pytest.approx(1.0, abs=1e-15)
    assert trajectory.start[6] / trajectory.start[3] == pytest.approx(1.001, abs=1e-14)


@few_examples(20)
@given(trajectories())
def test_normalising_again_changes_no_bit(trajectory: Trajectory) -> None:
    np.testing.assert_array_equal(
        Trajectory(trajectory.times, trajectory.poses).poses, trajectory.poses
    )


GOOD = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def changed(sample: int, column: int, value: float) -> np.ndarray:
    poses = np.tile(GOOD, (3, 1))
    poses[sample, column] = value
    return poses


@pytest.mark.parametrize(
    ("times", "poses", "sample", "field", "reason"),
    [
        ([], np.empty((0, 7)), None, None, "no samples"),
        ([0.0, 1.0], np.tile(GOOD, (3, 1)), None, None, r"\(2,\) and \(3, 7\)"),
        ([0.0, 1.0, 2.0], np.zeros((3, 6)), None, None, r"\(3,\) and \(3, 6\)"),
        ([[0.0]], [GOOD], None, None, r"\(1, 1\) and \(1, 7\)"),
        ([0.0], GOOD, None, None, r"\(1,\) and \(7,\)"),
        (["soon"], [GOOD], None, "time", "soon"),
        ([0.0], [["left"] * 7], None, "pose", "left"),
        ([0.0, math.nan, 2.0], np.tile(GOOD, (3, 1)), 1, "time", "nan"),
        ([0.0, 1.0, 2.0], changed(2, 1, math.inf), 2, "y", "inf"),
        ([0.0, 1.0, 2.0], changed(1, 5, math.nan), 1, "qz", "nan"),
        ([0.0, 1.0, 1.0], np.tile(GOOD, (3, 1)), 2, "time", r"1\.0 s is not after 1\.0 s"),
        ([0.0, -0.5, 1.0], np.tile(GOOD, (3, 1)), 1, "time", r"-0\.5 s is not after 0\.0 s"),
        ([-1e9, 1e-12, 2e-12], np.tile(GOOD, (3, 1)), 2, "time", "is not after"),
        ([0.0, 1.0, 2.0], changed(1, 6, 0.0), 1, "quaternion", "is zero"),
        ([0.0, 1.0, 2.0], changed(2, 6, 1.002), 2, "quaternion", r"norm 1\.002"),
        ([0.0, 1.0, 2.0], changed(0, 3, 1e200), 0, "quaternion", "norm inf"),
    ],
)
def test_invalid_samples_are_refused_and_named(
    times: list, poses: np.ndarray, sample: int | None, field: str | None, reason: str
) -> None:
    with pytest.raises(InvalidTrajectory, match=reason) as caught:
        Trajectory(times, poses, source="demo")

    assert caught.value.sample == sample
    assert caught.value.field == field
    assert caught.value.source == "demo"
    assert "'demo'" in str(caught.value)
    assert isinstance(caught.value, SimbridgeError)
    assert isinstance(caught.value, ValueError)

    if sample is not None:
        assert f"sample {sample}" in str(caught.value)


def test_a_table_reads_back_bit_for_bit(tmp_path):
    values = np.array([0.1, -0.0, 1e16, 5e-324, 1.7976931348623157e308, np.nan, 1 / 3])
    write_table(
        tmp_path / "table.csv", [{"a_m": values, "b_rad": values[::-1], "flag": values > 0.0}]
    )

    head, *lines = (tmp_path / "table.csv").read_text().splitlines()

    assert head == "a_m,b_rad,flag"

    read = np.array([[float(cell) for cell in line.split(",")] for line in lines])

    expected = np.column_stack([values, values[::-1], values > 0.0])

    np.testing.assert_array_equal(read.view(np.int64), expected.view(np.int64))
