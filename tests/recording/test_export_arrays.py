"""`simbridge export --to csv|parquet|mat|rerun`, read back by each format's library."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys

import numpy as np
import pyarrow.parquet
import pytest
import scipy.io

from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.sample_table import RunSamples


@pytest.fixture(scope="module")
def run(line_run, tmp_path_factory):
    return shutil.copytree(line_run, tmp_path_factory.mktemp("export") / "line")


def evaluated(run):
    return Evaluation.of(RunDirectory.open(run))


def test_every_column_of_the_table_ends_in_its_unit(cli, run):
    assert cli("export", run, "--to", "csv").status == 0
    with (run / "samples.csv").open(newline="") as file:
        names = next(csv.reader(file))
    unit = r"_(s|m|rad|rad_per_s|n_m)"
    without = r"(reference|target|solution|setpoint|attained)_q[xyzw]|limited|speed_scaling"
    assert [name for name in names if not re.fullmatch(rf".*{unit}|{without}", name)] == []
    assert {
        "reference_x_m",
        "elbow_joint_position_rad",
        "elbow_joint_effort_n_m",
        "tracking_error_x_m",
    } <= {*names}


def test_units_follow_the_joints_and_what_the_controller_reports(run):
    samples = evaluated(run).samples()
    sliding = np.arange(6) == 2
    mixed = RunSamples(samples.log, samples.poses, samples.errors, samples.origins, sliding, "A")
    names = [*mixed.table()]
    assert {"elbow_joint_position_m", "elbow_joint_velocity_m_per_s", "wrist_1_joint_effort_a"} <= {
        *names
    }
    assert mixed.units("position") == "rad_or_m"


def test_parquet_has_the_names_of_imitation_learning_and_the_columns_of_the_table(cli, run):
    assert json.loads(cli("export", run, "--to", "parquet", "--json").out)["written"] == [
        f"{run / 'samples.parquet'}"
    ]
    table, log = pyarrow.parquet.read_table(run / "samples.parquet"), evaluated(run).log
    assert table["timestamp"].to_numpy().tobytes() == log.stamp.tobytes()
    for name, values in {"observation.state": log.position, "action": log.command}.items():
        assert np.array_equal(np.stack(table[name].to_numpy()), values), name
    assert np.array_equal(table["reference_x_m"].to_numpy(), evaluated(run).reference[:, 0])
    about = json.loads(table.schema.metadata[b"simbridge"])
    assert about["joint_names"] == [*log.joint_names] and about["units"]["position"] == "rad"


def test_matlab_has_a_matrix_of_each_quantity(cli, run):
    assert cli("export", run, "--to", "mat").status == 0
    content, evaluation = scipy.io.loadmat(run / "samples.mat", simplify_cells=True), evaluated(run)
    assert [*content["joint_names"]] == [*evaluation.log.joint_names]
    assert np.array_equal(content["joints"]["position_rad"], evaluation.log.position)
    assert np.array_equal(content["poses"]["attained"], evaluation.attained)
    assert np.array_equal(content["errors"]["servo_law_m"], evaluation.budget.servo_law.translation)


def test_rerun_has_paths_tool_arm_errors_and_joints(cli, run):
    pytest.importorskip("rerun")
    assert cli("export", run, "--to", "rerun").status == 0
    content = (run / "samples.rrd").read_bytes()
    assert content.startswith(b"RRF")
    for name in (
        "paths/attained",
        "/tool",
        "/arm",
        "error/tracking_mm",
        "joints/elbow_joint/position_rad",
    ):
        assert name.encode() in content


@pytest.mark.parametrize(
    ("kind", "module", "package"),
    [
        ("parquet", "pyarrow", "pyarrow"),
        ("mat", "scipy.io", "scipy"),
        ("rerun", "rerun", "rerun-sdk"),
    ],
)
def test_a_format_whose_extra_is_missing_names_it_and_leaves_nothing(
    cli, run, monkeypatch, kind, module, package
):
    monkeypatch.setitem(sys.modules, module, None)
    before = sorted(run.iterdir())
    answer = cli("export", run, "--to", kind)
    assert answer.status == 2
    assert answer.message == (
        f'--to {kind} needs the package {package}. Install it with: pip install "simbridge[{kind}]"'
    )
    assert sorted(run.iterdir()) == before
