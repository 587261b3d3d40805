"""Gaps and jumps are named with place and size; a large gap is refused unless something is chosen
for it.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge import load_robot, load_scenario
from simbridge.errors import InputFileError
from simbridge.trajectory import Trajectory, write_tum
from simbridge.trajectory.gaps import find_gaps, find_jumps, treat_gaps
from simbridge.trajectory.read_options import ReadOptions
from tests.properties import few_examples

pytestmark = pytest.mark.slow


def line(times, step=0.001) -> Trajectory:
    """A motion along x by `step` a sample, tool down."""
    poses = np.tile([0.7, 0.1, 0.3, 1.0, 0.0, 0.0, 0.0], (len(times), 1))
    poses[:, 0] += step * np.arange(len(times))
    return Trajectory(np.asarray(times, dtype=float), poses, source="motion.tum")


def with_gap(samples: int = 200, missing: int = 40, before: int = 60) -> Trajectory:
    """50 Hz, without the samples from `before` on."""
    k = np.array([k for k in range(samples) if not before <= k < before + missing])
    return line(k * 0.02)


def test_a_large_gap_is_refused_with_choices() -> None:
    with pytest.raises(InputFileError) as caught:
        treat_gaps(with_gap(), None)

    message = str(caught.value)

    assert "1 gap: 0.820 s after 1.180 s, of more than 10 sample periods of 20.0 ms" in message
    assert "--gaps interpolate" in message
    assert "hold" in message
    assert "split" in message


def test_an_interpolated_gap_is_named() -> None:
    with pytest.warns(UserWarning, match=r"1 gap: 0\.820 s after 1\.180 s, interpolated"):
        kept = treat_gaps(with_gap(), "interpolate")

    np.testing.assert_array_equal(kept.times, with_gap().times)


def test_a_held_gap_keeps_its_first_pose() -> None:
    given_ = with_gap()
    held = None

    with pytest.warns(UserWarning, match="held"):
        held = treat_gaps(given_, "hold")

    np.testing.assert_array_equal(
        held.reference(np.array([1.3, 1.7, 1.98])), np.repeat(given_.poses[59:60], 3, axis=0)
    )
    np.testing.assert_array_equal(held.reference([2.0])[0], given_.poses[60])


def test_the_longest_piece_of_a_split_is_left() -> None:
    with pytest.warns(UserWarning, match=r"the longest piece is used, 1\.980 s from 2\.000 s on"):
        piece = treat_gaps(with_gap(), "split")

    np.testing.assert_array_equal(piece.poses, with_gap().poses[60:])
    assert piece.duration == pytest.approx(1.98)


@few_examples(20)
@given(missing=st.integers(1, 60), before=st.integers(2, 190))
def test_only_interpolation_leaves_a_large_gap(missing: int, before: int) -> None:
    recording = with_gap(300, missing, before)
    large = missing >= 10

    assert bool(find_gaps(recording, 10.0)) == large

    with pytest.warns(UserWarning):
        assert not find_gaps(treat_gaps(recording, "split"), 10.0)
        held = treat_gaps(recording, "hold")

    assert set(map(tuple, held.poses)) == set(map(tuple, recording.poses))
    assert len(held.times) == len(recording.times) + 1


def test_a_short_gap_is_interpolated_with_a_note() -> None:
    with pytest.warns(UserWarning, match=r"1 gap: 0\.200 s after 1\.180 s, interpolated"):
        treat_gaps(with_gap(missing=9), None)


@pytest.mark.parametrize(
    "times", [[0.0, 0.01, 0.02, 0.9], [0.0, 0.01, 0.02, 0.03, 0.04, 0.9]], ids=["few", "short"]
)
def test_too_little_is_not_judged(times: list[float]) -> None:
    assert find_gaps(line(times)) == []
    assert treat_gaps(line(times), None).times.tolist() == times


def test_a_jump_is_named_by_its_size() -> None:
    poses = line(np.arange(100) * 0.02).poses.copy()
    poses[30:, 1] += 0.08
    poses[60:, 3:] = [0.0, 1.0, 0.0, 0.0]

    steps = find_jumps(Trajectory(np.arange(100) * 0.02, poses))

    assert [(step.sample, step.unit) for step in steps] == [(29, "m"), (59, "rad")]
    assert steps[0].size == pytest.approx(0.08, rel=1e-3)
    assert steps[1].size == pytest.approx(np.pi)

    with pytest.warns(UserWarning, match=r"2 jumps: 80\.0 mm after 0\.5800 s, 180° after 1\.180 s"):
        treat_gaps(Trajectory(np.arange(100) * 0.02, poses, source="a.tum"), None)


def test_even_steps_are_no_jump() -> None:
    assert find_jumps(line(np.arange(50) * 0.02, step=0.05)) == []


@pytest.fixture
def broken(tmp_path):
    """A file with a gap of 0.82 s."""
    recording = with_gap()
    write_tum(tmp_path / "broken.tum", recording.times, recording.poses)
    return tmp_path / "broken.tum"


def test_inspect_names_the_gap(cli, broken) -> None:
    answer = cli("inspect", broken)

    assert "1 gap, the longest 820 ms, after 1.180 s; run and check refuse it" in " ".join(
        answer.out.split()
    )
    assert "without --gaps" not in cli("inspect", broken, "--gaps", "hold").out

    facts = json.loads(cli("inspect", broken, "--json").out)

    assert [(gap["sample"], round(gap["size"], 6)) for gap in facts["large_gaps"]] == [(59, 0.82)]


def test_check_plans_the_gap_as_chosen(cli, broken) -> None:
    assert "--gaps interpolate" in cli("check", broken).message

    answer = cli("check", broken, "--gaps", "split")

    assert answer.status == 0
    assert "the longest piece is used" in answer.message
    assert "broken.tum was read as 160 poses, 50 Hz" in answer.out


def test_a_scenario_treats_its_gap(broken) -> None:
    robot = load_robot("ur10")

    with pytest.warns(UserWarning, match="held"):
        held = load_scenario(broken, robot, ReadOptions(gaps="hold")).trajectory

    assert len(held.times) == 161
