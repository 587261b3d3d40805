"""`simbridge export --to csv|parquet|mat`, read back by each format's library."""

from __future__ import annotations

import csv
import json

import numpy as np
import pinocchio as pin
import pyarrow.parquet
import scipy.io

from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import load_robot


def test_the_csv_has_the_joints_origins(cli, exported_run):
    robot = load_robot("ur10")
    data = robot.model.createData()

    assert cli("export", exported_run, "--to", "csv").status == 0

    with (exported_run / "samples.csv").open(newline="") as file:
        row = list(csv.DictReader(file))[-1]
    q = np.array([float(row[f"{name}_position_rad"]) for name in robot.joint_names])
    pin.forwardKinematics(robot.model, data, q)
    for i, name in enumerate(robot.joint_names):
        origin = [float(row[f"{name}_origin_{axis}_m"]) for axis in "xyz"]
        assert np.allclose(origin, data.oMi[i + 1].translation, atol=1e-12)


def test_parquet_names_are_those_of_imitation_learning(cli, exported_run):
    path = exported_run / "samples.parquet"

    answer = cli("export", exported_run, "--to", "parquet", "--json")

    assert json.loads(answer.out)["written"] == [str(path)]
    table = pyarrow.parquet.read_table(path)
    log = Evaluation.of(RunDirectory.open(exported_run)).log
    states = np.stack(table["observation.state"].to_numpy())
    actions = np.stack(table["action"].to_numpy())
    assert table["timestamp"].to_numpy().tobytes() == log.stamp.tobytes()
    assert np.array_equal(states, log.position)
    assert np.array_equal(actions, log.command)


def test_parquet_has_the_columns_of_the_table(cli, exported_run):
    assert cli("export", exported_run, "--to", "parquet").status == 0

    table = pyarrow.parquet.read_table(exported_run / "samples.parquet")
    evaluation = Evaluation.of(RunDirectory.open(exported_run))
    metadata = json.loads(table.schema.metadata[b"simbridge"])
    assert np.array_equal(table["reference_x_m"].to_numpy(), evaluation.reference[:, 0])
    assert metadata["joint_names"] == [*evaluation.log.joint_names]
    assert metadata["units"]["position"] == "rad"


def test_matlab_has_a_matrix_per_quantity(cli, exported_run):
    assert cli("export", exported_run, "--to", "mat").status == 0

    content = scipy.io.loadmat(exported_run / "samples.mat", simplify_cells=True)
    evaluation = Evaluation.of(RunDirectory.open(exported_run))
    log = evaluation.log
    servo_law = evaluation.budget.servo_law
    assert [*content["joint_names"]] == [*log.joint_names]
    assert np.array_equal(content["joints"]["position_rad"], log.position)
    assert np.array_equal(content["poses"]["attained"], evaluation.attained)
    assert np.array_equal(content["errors"]["servo_law_m"], servo_law.translation)
