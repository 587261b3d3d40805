"""Sampled sources: what is kept, what is degraded, and the sampling error of a run."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter
from simbridge.trajectory import Sampling, square
from tests.properties import few_examples

pytestmark = pytest.mark.usefixtures("without_pages")

PATH = square(side=0.2, speed=0.1)


@few_examples(20)
@given(
    st.builds(
        Sampling, st.floats(5, 200), st.floats(0, 0.1), st.floats(0, 0.9), seed=st.integers(0, 99)
    )
)
def test_samples_follow_the_path_in_order(sampling: Sampling) -> None:
    sampled = sampling.of(PATH)

    assert sampled.times[0] == PATH.times[0]
    assert sampled.times[-1] <= PATH.times[-1]
    np.testing.assert_array_equal(sampled.poses, PATH.reference(sampled.elapsed))


def test_a_seed_fixes_the_samples() -> None:
    spoiled = [
        Sampling(50.0, 0.002, 0.1, (0.001, 0.01), 0.0, seed).of(PATH).poses for seed in (7, 7, 8)
    ]

    np.testing.assert_array_equal(spoiled[0], spoiled[1])
    assert spoiled[0].shape != spoiled[2].shape or not np.array_equal(spoiled[0], spoiled[2])


def test_noise_has_its_deviation_and_quantisation_its_step() -> None:
    off = Sampling(1000.0, noise=(0.001, 0.0)).of(PATH).poses - Sampling(1000.0).of(PATH).poses

    assert off[:, :3].std() == pytest.approx(0.001, rel=0.03)

    steps = Sampling(quantisation=0.005).of(PATH).poses[:, :3] / 0.005

    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)


def test_samples_keep_the_epoch_of_their_source() -> None:
    path = replace(square(), epoch_ns=1_763_751_234_123_456_789)

    sampling = Sampling(rate=50.0, jitter=1e-3, dropout=0.1, noise=(1e-4, 1e-3), quantisation=1e-4)

    assert sampling.of(path).epoch_ns == path.epoch_ns


def test_dropout_loses_its_share() -> None:
    left = len(Sampling(1000.0, dropout=0.3).of(PATH).times) / len(Sampling(1000.0).of(PATH).times)

    assert left == pytest.approx(0.7, abs=0.03)


@pytest.mark.parametrize(
    "given", [{"rate": 0.0}, {"jitter": -1.0}, {"dropout": 1.0}, {"noise": (1.0,)}, {"seed": -1}]
)
def test_an_invalid_sampling_is_refused(given) -> None:
    with pytest.raises(InvalidParameter, match=f"sample {next(iter(given))}"):
        Sampling(**given)


@pytest.mark.slow
def test_a_low_rate_shows_as_sampling_error(cli, tmp_path, line, without_pages) -> None:
    flags = ("--sample-rate", 5, "--on-limits", "limit", "--json")

    first = cli("run", line, *flags, "--out", tmp_path / "a")

    assert first.status == 0, first.err

    summary = json.loads(first.out)

    # 0.1 m/s held for 0.2 s: 0 to 20 mm behind, which is 11.5 mm RMS.
    assert summary["sampling_error"]["position_m"]["max"] == pytest.approx(0.02, abs=0.002)

    again = cli("run", line, "--plan", tmp_path / "a", "--json", "--out", tmp_path / "b")

    assert again.status == 0, again.err
    assert json.loads(again.out)["sampling_error"] == summary["sampling_error"]
