"""A run read back from its directory."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import summarize
from simbridge.files import mapped_arrays
from simbridge.recording.run_directory import RunDirectory

pytestmark = [pytest.mark.slow, pytest.mark.shares_setup]


@pytest.mark.parametrize("full_disk", [False, True])
def test_mapped_arrays_change_no_number(
    line_run: Path, full_disk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def numbers() -> Any:
        """The run's summary, and its samples as a table."""
        evaluation = Evaluation.read(line_run)
        return summarize(evaluation, "completed"), evaluation.samples().table()

    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    summary, table = numbers()
    monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", 1000)
    if full_disk:
        monkeypatch.setattr(os, "posix_fallocate", refuse)
    mapped_summary, mapped_table = numbers()

    assert mapped_summary == summary
    for name, values in table.items():
        np.testing.assert_array_equal(mapped_table[name], values)


def test_a_servos_lag_is_its_delay(run: Path) -> None:
    evaluation = Evaluation.of(RunDirectory.open(run))

    lag_time = evaluation.contour.lag_time
    median_lag_time = np.median(lag_time[np.isfinite(lag_time)])

    assert median_lag_time == pytest.approx(evaluation.tracking["delay_s"], abs=2e-3)
    steps = np.linalg.norm(np.diff(evaluation.reference[:, :3], axis=0), axis=1)
    speed = float(np.median(steps)) / evaluation.plan.period
    lag = np.median(evaluation.contour.lag)
    assert median_lag_time * speed == pytest.approx(lag, abs=3e-4)


def test_the_reference_has_no_contour_error(run: Path) -> None:
    evaluation = Evaluation.of(RunDirectory.open(run))

    contour = evaluation.contour_of(evaluation.log.stamp, evaluation.reference[:, :3])

    np.testing.assert_allclose(contour.distance, 0.0, atol=2e-9)


def test_an_evaluation_is_shown_on_one_line(run: Path) -> None:
    evaluation = Evaluation.of(run)

    assert repr(evaluation) == f"<Evaluation of {run}: {len(evaluation.log.stamp)} samples>"
