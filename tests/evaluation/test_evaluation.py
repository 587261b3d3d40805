"""The numbers of a run directory: those of evo on its exports, and the groups of summary.json."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evo.core import metrics as evo_metrics
from evo.core import sync
from evo.tools import file_interface

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics import associate
from simbridge.evaluation.summary import summarize
from simbridge.files import mapped_arrays
from simbridge.recording.run_directory import RunDirectory
from simbridge.trajectory import read_trajectory


@pytest.fixture(scope="module", params=["line", "square", "servoj"])
def run(request: Any, tmp_path_factory: pytest.TempPathFactory, run_without_page: Any) -> Path:
    """Three runs: a line, the paper's square, and the line through a servo that lags."""
    if request.param != "servoj":
        return Path(request.getfixturevalue(f"{request.param}_run"))
    out = tmp_path_factory.mktemp("run") / "servoj"
    line = request.getfixturevalue("line")
    assert run_without_page(line, "--servo", "servoj", "--out", out) == 0
    return out


@pytest.mark.parametrize("full_disk", [False, True])
def test_a_run_whose_arrays_are_mapped_has_the_same_numbers_and_samples(
    run: Path, full_disk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def numbers() -> Any:
        evaluation = Evaluation.read(run)
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


def test_evo_computes_the_errors_of_the_summary_from_the_exports_of_a_run(
    cli: Any, run: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    assert cli("export", copy, "--to", "tum").status == 0
    files = [copy / f"{name}.tum" for name in ("reference", "attained")]
    theirs = sync.associate_trajectories(
        *(file_interface.read_tum_trajectory_file(file) for file in files)
    )
    ours = [read_trajectory(file) for file in files]
    pairs = associate(ours[0].times, ours[1].times)
    assert len(pairs[0]) == len(theirs[0].timestamps)
    summary = json.loads((run / "summary.json").read_text())
    same_as_evo(summary, *theirs)


def same_as_evo(summary: dict[str, Any], reference: Any, attained: Any) -> None:
    """Every statistic of APE and RPE in a summary equals that of evo for the same poses, to 1e-9."""
    delta = summary["relative_pose_error"]["delta_samples"]
    relations = evo_metrics.PoseRelation
    for name, relation in (
        ("position_m", relations.translation_part),
        ("rotation_rad", relations.rotation_angle_rad),
    ):
        for kind, metric in (
            ("absolute_pose_error", evo_metrics.APE(relation)),
            (
                "relative_pose_error",
                evo_metrics.RPE(relation, delta, evo_metrics.Unit.frames, all_pairs=True),
            ),
        ):
            metric.process_data((reference, attained))
            assert summary[kind][name] == pytest.approx(
                metric.get_all_statistics(), rel=1e-9, abs=1e-9
            )


def test_the_absolute_error_is_the_tracking_error_and_the_relative_one_names_its_span(
    run: Path,
) -> None:
    summary = json.loads((run / "summary.json").read_text())
    for part in ("position_m", "rotation_rad"):
        assert summary["absolute_pose_error"][part]["rmse"] == pytest.approx(
            summary["tracking_error"][part]["rms"], abs=1e-15
        )
    delta = summary["relative_pose_error"]["delta_samples"]
    # A second, or half of a shorter run.
    assert delta == min(round(1.0 / summary["period_s"]), summary["samples"] // 2)
    assert summary["relative_pose_error"]["delta_s"] == pytest.approx(delta * summary["period_s"])


def test_the_summary_has_path_smoothness_and_effort(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    contour, lag = summary["contour_error"]["position_m"], summary["along_path_lag"]
    assert (
        0.0
        <= contour["rms"]
        <= contour["max"]
        <= summary["tracking_error"]["position_m"]["max"] + 1e-9
    )
    assert lag["length_m"]["min"] <= lag["length_m"]["mean"] <= lag["length_m"]["max"]
    assert set(summary["smoothness"]) == {"tool", "joints"}
    assert summary["smoothness"]["tool"]["sparc"] < 0.0
    effort = summary["joint_effort"]
    assert effort["velocity"]["peak"] == summary["peak_joint_velocity"]
    assert effort["torque"]["peak"] == summary["peak_joint_torque"]
    assert summary["near_singularity"]["share"] == 0.0
    assert 0.1 < summary["near_singularity"]["smallest_singular_value"] < 1.0
    assert set(summary["near_limits"]) == {"position", "velocity", "torque"}


def test_the_lag_of_a_servo_along_its_path_is_its_delay(run: Path) -> None:
    evaluation = Evaluation.of(RunDirectory.open(run))
    late = evaluation.tracking["delay_s"]
    lag = evaluation.contour.lag_time
    known = lag[np.isfinite(lag)]
    assert np.median(known) == pytest.approx(late, abs=2e-3)
    steps = np.linalg.norm(np.diff(evaluation.reference[:, :3], axis=0), axis=1)
    speed = float(np.median(steps)) / evaluation.plan.period
    assert np.median(known) * speed == pytest.approx(np.median(evaluation.contour.lag), abs=3e-4)


def test_positions_along_the_reference_have_no_contour_error(run: Path) -> None:
    evaluation = Evaluation.of(RunDirectory.open(run))
    found = evaluation.contour_of(evaluation.log.stamp, evaluation.reference[:, :3])
    np.testing.assert_allclose(found.distance, 0.0, atol=2e-9)
