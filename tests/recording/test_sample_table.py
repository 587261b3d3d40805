"""The table of a run's samples: the names of its columns, with their units."""

from __future__ import annotations

import csv
import re

import numpy as np

from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.sample_table import RunSamples

WITH_UNIT = r".*_(s|m|rad|rad_per_s|rad_per_s2|n_m)"
WITHOUT_UNIT = (
    r"(reference|target|solution|setpoint|attained)_q[xyzw]|limited|speed_scaling|robot_mode"
    r"|safety_mode|runtime_state"
)


def test_columns_end_in_their_units(cli, exported_run):
    assert cli("export", exported_run, "--to", "csv").status == 0

    with (exported_run / "samples.csv").open(newline="") as file:
        names = next(csv.reader(file))
    others = [name for name in names if not re.fullmatch(f"{WITH_UNIT}|{WITHOUT_UNIT}", name)]
    assert others == []
    assert "reference_x_m" in names
    assert "elbow_joint_position_rad" in names
    assert "elbow_joint_effort_n_m" in names
    assert "tracking_error_x_m" in names


def test_units_follow_joints_and_controller(exported_run):
    samples = Evaluation.of(RunDirectory.open(exported_run)).samples()
    sliding = np.arange(6) == 2

    mixed = RunSamples(
        log=samples.log,
        poses=samples.poses,
        errors=samples.errors,
        origins=samples.origins,
        prismatic=sliding,
        effort_unit="A",
    )

    names = [*mixed.table()]
    assert "elbow_joint_position_m" in names
    assert "elbow_joint_velocity_m_per_s" in names
    assert "wrist_1_joint_effort_a" in names
    assert mixed.units("position") == "rad_or_m"
