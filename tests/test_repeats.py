"""ISO 9283-style figures of several runs: a known bias and spread laid over runs of the paper's square."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simbridge.errors import UnusableSamples
from simbridge.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.repeats import iso_figures


@pytest.fixture
def square(square_run: Path) -> Evaluation:
    return Evaluation.of(RunDirectory.open(square_run))


def test_cycles_raised_by_a_bias_and_a_spread_have_just_these_figures(square: Evaluation) -> None:
    reference = square.reference[:, :3]
    # The square lies in a horizontal plane: a shift along z is normal to all of its path.
    cycles = [reference + np.array([0.0, 0.0, 1e-3 + side * 2e-4]) for side in (-1.0, 1.0, -1.0, 1.0)]
    found = {figure.symbol: figure for figure in iso_figures([square] * 4, cycles)}
    assert {symbol: found[symbol].value for symbol in ("AP", "RP", "AT", "RT")} == pytest.approx(
        {"AP": 1e-3, "RP": 2e-4, "AT": 1e-3, "RT": 2e-4}, abs=2e-6
    )
    assert (found["AP"].cycles, found["AP"].asked, found["AT"].asked) == (4, 30, 10)
    # A constant offset is no error of speed; the corner is missed by the shift alone.
    assert found["AV"].value == pytest.approx(0.0, abs=0.1)
    assert found["FV"].value == pytest.approx(0.0, abs=1e-3)
    assert found["CR"].value == pytest.approx(1e-3, abs=2e-5)


def test_a_run_repeats_itself_exactly(square: Evaluation) -> None:
    found = {figure.symbol: figure.value for figure in iso_figures([square, square])}
    assert found["RP"] == pytest.approx(0.0, abs=1e-12)
    assert found["RT"] == pytest.approx(0.0, abs=1e-12)
    assert found["RV"] == pytest.approx(0.0, abs=1e-9)
    assert 0.0 < found["AT"] < 2e-3


def test_no_runs_and_runs_of_different_trajectories_are_refused(square: Evaluation, line_run: Path) -> None:
    with pytest.raises(UnusableSamples, match="there are none"):
        iso_figures([])
    other = Evaluation.of(RunDirectory.open(line_run))
    with pytest.raises(UnusableSamples, match="not runs of one trajectory"):
        iso_figures([square, other])
