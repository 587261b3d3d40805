"""A run for other tools: TUM trajectories and a table of samples; for ROS see export_ros.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simbridge.errors import OutputError
from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.export_ros import export_bag, export_mcap
from simbridge.robot.pose import Array
from simbridge.trajectory.text import write_tum

# Rows that are Python numbers at one time.
BLOCK = 10_000
_POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")
_VECTOR = ("x", "y", "z")


def export_tum(evaluation: Evaluation) -> list[Path]:
    """Write reference.tum, target.tum, setpoint.tum and attained.tum: full double precision, a line a sample.

    Returns:
        The files.
    """
    paths = []
    for name in ("reference", "target", "setpoint", "attained"):
        path = evaluation.directory.path / f"{name}.tum"
        try:
            write_tum(path, evaluation.log.stamp, getattr(evaluation, name))
        except OSError as error:
            raise OutputError(path, str(error.strerror or error)) from None
        paths.append(path)
    return paths


def export_csv(evaluation: Evaluation) -> list[Path]:
    """Write samples.csv: a line a sample (SI units).

    Stamps, poses, the parts of the error, the joints, and the keyframes of the arm: where each joint's frame has its
    origin, in base_link. A link goes from one origin to the next, the last one to `attained`.

    Returns:
        The file.
    """
    path = evaluation.directory.path / "samples.csv"
    columns = _columns(evaluation)
    table = np.column_stack(list(columns.values()))
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(",".join(columns) + "\n")
            # repr of a double reads back to the same double.
            for k in range(0, len(table), BLOCK):
                file.writelines(",".join(map(repr, row)) + "\n" for row in table[k : k + BLOCK].tolist())
    except OSError as error:
        raise OutputError(path, str(error.strerror or error)) from None
    return [path]


EXPORTS = {"csv": export_csv, "tum": export_tum, "mcap": export_mcap, "bag": export_bag}
"""By the name of the format."""


def _columns(evaluation: Evaluation) -> dict[str, Array]:
    log, budget = evaluation.log, evaluation.budget
    columns: dict[str, Array] = {"stamp_s": log.stamp, "plan_time_s": log.plan_time}
    for name in ("reference", "target", "solution", "setpoint", "attained"):
        poses: Array = getattr(evaluation, name)
        columns |= {f"{name}_{axis}": poses[:, i] for i, axis in enumerate(_POSE)}
    for name in ("sampling", "solver", "limiter", "plant", "tracking"):
        error = getattr(budget, name)
        columns |= {f"{name}_error_{axis}_m": error.translation[:, i] for i, axis in enumerate(_VECTOR)}
        columns |= {f"{name}_error_r{axis}_rad": error.rotation[:, i] for i, axis in enumerate(_VECTOR)}
    joints = {
        "solution": log.solution,
        "setpoint": log.setpoint,
        "position": log.position,
        "velocity": log.velocity,
        "effort": log.effort,
    }
    for name, values in joints.items():
        columns |= {f"{joint}_{name}": values[:, i] for i, joint in enumerate(log.joint_names)}
    origins = evaluation.joint_origins
    for i, joint in enumerate(log.joint_names):
        columns |= {f"{joint}_origin_{axis}_m": origins[:, i, k] for k, axis in enumerate(_VECTOR)}
    columns["limited"] = log.limited.astype(float)
    columns["speed_scaling"] = log.speed_scaling
    columns["host_monotonic_s"] = log.host_monotonic
    return columns
