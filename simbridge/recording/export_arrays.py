"""A run's samples as tables and arrays: TUM, CSV, Parquet and MATLAB."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.errors import optional_package
from simbridge.files.writing import replacing
from simbridge.recording.sample_table import (
    ALL,
    CONTROLLER_STATES,
    EXPORTED_POSES,
    ReadSamples,
    RunSamples,
)
from simbridge.robot.pose import Array
from simbridge.trajectory.writers import write_table, write_tum

# Samples of a table that are in memory at a time: all of an hour would take 2 GB, and more than
# these are slower.
BLOCK = 1000

MAT_QUANTITIES = ("solution", "setpoint", "command", "position", "velocity", "effort")
"""The fields of a sample that MATLAB gets for all joints together."""


def export_tum(folder: Path, read_samples: ReadSamples) -> list[Path]:
    """Write reference.tum, target.tum, setpoint.tum and attained.tum.

    They have full double precision, and one line per sample.
    """
    run = read_samples(ALL)
    paths = []
    for name in EXPORTED_POSES:
        path = folder / f"{name}.tum"
        write_tum(path, run.log.stamp, run.poses[name], follow_links=False)
        paths.append(path)
    return paths


def export_csv(folder: Path, read_samples: ReadSamples) -> list[Path]:
    """Write samples.csv: one line per sample, the columns of `RunSamples.table`."""
    path = folder / "samples.csv"
    tables = (run.table() for run in _blocks(read_samples))
    write_table(path, tables, follow_links=False)
    return [path]


def _blocks(read_samples: ReadSamples) -> Iterator[RunSamples]:
    """Yield all samples, a block at a time; of a run without any, one empty block."""
    for begin in itertools.count(0, BLOCK):
        run = read_samples(slice(begin, begin + BLOCK))
        if begin and not len(run.log.stamp):
            return
        yield run


def export_parquet(folder: Path, read_samples: ReadSamples) -> list[Path]:
    """Write samples.parquet: names of imitation learning, then the columns of samples.csv.

    `timestamp` (s), `observation.state`, `observation.velocity` and `observation.effort` (lists of
    n: the joints as measured) and `action` (a list of n: the joint positions sent for that stamp,
    one period before). The schema's metadata names joints and units.
    """
    purpose = "--to parquet"
    arrow = optional_package("pyarrow", "pyarrow", purpose=purpose, extra="parquet")
    parquet = optional_package("pyarrow.parquet", "pyarrow", purpose=purpose, extra="parquet")
    run = read_samples(ALL)
    log = run.log

    def lists(values: Array) -> Any:
        """Return rows (T, n) as a column of T lists of n numbers."""
        numbers = arrow.array(values.ravel())
        return arrow.FixedSizeListArray.from_arrays(numbers, values.shape[1])

    columns = {
        "timestamp": log.stamp,
        "observation.state": lists(log.position),
        "observation.velocity": lists(log.velocity),
        "observation.effort": lists(log.effort),
        "action": lists(log.command),
        **run.table(),
    }
    metadata = {
        **log.metadata,
        "joint_names": list(log.joint_names),
        "units": {name: run.units(name) for name in ("position", "velocity", "effort")},
    }
    table = arrow.table(columns).replace_schema_metadata({"simbridge": json.dumps(metadata)})

    path = folder / "samples.parquet"
    with replacing(path, follow_links=False) as new:
        parquet.write_table(table, new)
    return [path]


def export_mat(folder: Path, read_samples: ReadSamples) -> list[Path]:
    """Write samples.mat for MATLAB and Octave: matrices with a row per sample.

    `stamp_s`, `plan_time_s`, `joint_names`; `joints` by quantity and unit (T, n); `poses` (T, 7), x
    y z in m and a quaternion x y z w; `errors`, `NAME_m` and `NAME_rad` (T, 3).
    """
    io = optional_package("scipy.io", "scipy", purpose="--to mat", extra="mat")
    run = read_samples(ALL)
    log = run.log

    joints = {f"{name}_{run.units(name)}": getattr(log, name) for name in MAT_QUANTITIES}
    translations = {f"{name}_m": translation for name, (translation, _) in run.errors.items()}
    rotations = {f"{name}_rad": rotation for name, (_, rotation) in run.errors.items()}
    content = {
        "stamp_s": log.stamp,
        "plan_time_s": log.plan_time,
        "joint_names": np.array(log.joint_names, dtype=object),
        "joints": joints,
        "poses": dict(run.poses),
        "errors": translations | rotations,
        "limited": log.limited,
        "speed_scaling": log.speed_scaling,
        **{name: getattr(log, name) for name in CONTROLLER_STATES},
    }

    path = folder / "samples.mat"
    with replacing(path, follow_links=False) as new, new.open("wb") as file:
        io.savemat(file, content, long_field_names=True, do_compression=True, oned_as="column")
    return [path]
