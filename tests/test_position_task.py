"""An arm whose task is a position is not blamed for a rotation nobody asked for: only for what it turned by mistake."""

from __future__ import annotations

import json

import numpy as np
import pytest

from simbridge.cli import main
from simbridge.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.over_time import error_curves


@pytest.fixture(scope="module")
def late_run(tmp_path_factory):
    """A planar arm that trails its setpoints by some 0.2 s."""
    out = tmp_path_factory.mktemp("planar") / "late"
    lag = ["--servo", "servoj", "--servo-lookahead", "0.2"]
    assert main(["run", "circle", "--robot", "planar3r", *lag, "--out", str(out), "--json"]) == 0
    return out


def test_in_the_summary_all_rotation_is_the_plants(late_run):
    summary = json.loads((late_run / "summary.json").read_text())
    for name in ("sampling_error", "solver_error", "limiter_error"):
        assert summary[name]["rotation_rad"]["max"] < 1e-12
    tracking, plant = (summary[name]["rotation_rad"] for name in ("tracking_error", "plant_error"))
    assert tracking == pytest.approx(plant, abs=1e-12)
    # The file's tool-down quaternion is half a turn from what a planar arm does.
    assert 0.0 < plant["max"] < np.radians(20.0)
    assert summary["delay_compensated"]["rotation_rad"]["rms"] < plant["rms"]


def test_no_curve_of_the_report_shows_the_free_rotation(late_run):
    run = Evaluation.of(RunDirectory.open(late_run))
    curves = error_curves(run, run.tracking["delay_s"])
    assert [curve.name for curve in curves][-1] == "without its delay"
    assert max(curve.rotation.max() for curve in curves) < 20.0
    assert curves[-1].rotation.max() < curves[0].rotation.max()
