"""The groups of summary.json, and evo's numbers on the exports of the same run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from evo.core import metrics as evo_metrics
from evo.core import sync
from evo.tools import file_interface

from simbridge.evaluation.metrics import associate
from simbridge.trajectory import read_trajectory

pytestmark = pytest.mark.shares_setup


def read_summary(run: Path) -> Any:
    """The content of a run's summary.json."""
    return json.loads((run / "summary.json").read_text())


def evo_statistics(metric: Any, reference: Any, attained: Any) -> Any:
    """Return the statistics of evo's metric for two trajectories."""
    metric.process_data((reference, attained))
    return metric.get_all_statistics()


@pytest.mark.slow
def test_evo_computes_the_same_errors(cli: Any, run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    assert cli("export", copy, "--to", "tum").status == 0
    reference_file = copy / "reference.tum"
    attained_file = copy / "attained.tum"

    reference, attained = sync.associate_trajectories(
        file_interface.read_tum_trajectory_file(reference_file),
        file_interface.read_tum_trajectory_file(attained_file),
    )
    pairs = associate(read_trajectory(reference_file).times, read_trajectory(attained_file).times)
    assert len(pairs[0]) == len(reference.timestamps)

    # Every statistic of APE and RPE is that of evo for the same poses.
    summary = read_summary(run)
    absolute = summary["absolute_pose_error"]
    relative = summary["relative_pose_error"]
    for key, relation in (
        ("position_m", evo_metrics.PoseRelation.translation_part),
        ("rotation_rad", evo_metrics.PoseRelation.rotation_angle_rad),
    ):
        ape = evo_metrics.APE(relation)
        rpe = evo_metrics.RPE(
            relation, relative["delta_samples"], evo_metrics.Unit.frames, all_pairs=True
        )
        evo_absolute = evo_statistics(ape, reference, attained)
        evo_relative = evo_statistics(rpe, reference, attained)
        assert absolute[key] == pytest.approx(evo_absolute, rel=1e-9, abs=1e-9)
        assert relative[key] == pytest.approx(evo_relative, rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_the_absolute_error_is_the_tracking_error(run: Path) -> None:
    summary = read_summary(run)

    for key in ("position_m", "rotation_rad"):
        tracking_rms = summary["tracking_error"][key]["rms"]
        assert summary["absolute_pose_error"][key]["rmse"] == pytest.approx(tracking_rms, abs=1e-15)


def test_the_relative_error_names_its_span(run: Path) -> None:
    summary = read_summary(run)
    relative = summary["relative_pose_error"]

    # A second, or half of a shorter run.
    samples = min(round(1.0 / summary["period_s"]), summary["samples"] // 2)
    assert relative["delta_samples"] == samples
    assert relative["delta_s"] == pytest.approx(samples * summary["period_s"])


def test_the_contour_error_is_within_the_tracking_error(run: Path) -> None:
    summary = read_summary(run)
    contour = summary["contour_error"]["position_m"]
    lag = summary["along_path_lag"]["length_m"]

    assert 0.0 <= contour["rms"] <= contour["max"]
    assert contour["max"] <= summary["tracking_error"]["position_m"]["max"] + 1e-9
    assert lag["min"] <= lag["mean"] <= lag["max"]


def test_the_summary_has_smoothness_and_effort(run: Path) -> None:
    summary = read_summary(run)
    effort = summary["joint_effort"]
    singularity = summary["near_singularity"]

    assert set(summary["smoothness"]) == {"tool", "joints"}
    assert summary["smoothness"]["tool"]["sparc"] < 0.0
    assert effort["velocity"]["peak"] == summary["peak_joint_velocity"]
    assert effort["torque"]["peak"] == summary["peak_joint_torque"]
    assert singularity["share"] == 0.0
    assert 0.1 < singularity["smallest_singular_value"] < 1.0
    assert set(summary["near_limits"]) == {"position", "velocity", "torque"}
