"""The samples of a run as a table, and as files of arrays: CSV, Parquet and MATLAB."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import MissingPackage
from simbridge.recording.log import LogColumns
from simbridge.robot.files import replacing
from simbridge.robot.pose import Array
from simbridge.trajectory.writers import write_table

_POSE = ("x_m", "y_m", "z_m", "qx", "qy", "qz", "qw")
_VECTOR = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class RunSamples:
    """What is exported of a run with T samples of n joints.

    Attributes:
        errors: Translation (T, 3), m, and rotation vector (T, 3), rad, of the tracking error and its parts.
    """

    log: LogColumns
    poses: Mapping[str, Array]  # reference, target, solution, setpoint and attained (T, 7) in base_link
    errors: Mapping[str, tuple[Array, Array]]
    origins: Array  # of the joints' frames (T, n, 3) in base_link, m
    prismatic: NDArray[np.bool_]  # which joints are prismatic (n,)
    effort_unit: str = "N m"  # of revolute joints: "N m", or "A" where the controller reports currents

    def unit(self, quantity: str, prismatic: bool) -> str:
        """The unit of a joint's position, velocity or effort, as at the end of a column's name."""
        if quantity == "effort":
            return "a" if self.effort_unit == "A" else "n" if prismatic else "n_m"
        return ("m" if prismatic else "rad") + ("_per_s" if quantity == "velocity" else "")

    def units(self, quantity: str) -> str:
        """That of all joints: "rad", or "rad_or_m" where there are joints of both kinds."""
        return "_or_".join(sorted({self.unit(quantity, each) for each in self.prismatic.tolist()}, reverse=True))

    def table(self) -> dict[str, Array]:
        """Columns (T,) by name. Each name ends in its unit; components of quaternions, shares and flags have none.

        Stamps, poses, the tracking error and its parts, the joints, and the origin of each joint's frame in base_link.
        A link goes from one origin to the next, the last one to `attained`.
        """
        log = self.log
        columns: dict[str, Array] = {"stamp_s": log.stamp, "plan_time_s": log.plan_time}
        for name, values in self.poses.items():
            columns |= {f"{name}_{axis}": values[:, i] for i, axis in enumerate(_POSE)}
        for name, (translation, rotation) in self.errors.items():
            columns |= {f"{name}_error_{axis}_m": translation[:, i] for i, axis in enumerate(_VECTOR)}
            columns |= {f"{name}_error_r{axis}_rad": rotation[:, i] for i, axis in enumerate(_VECTOR)}
        joints = [*enumerate(zip(log.joint_names, self.prismatic.tolist(), strict=True))]
        for name in ("solution", "setpoint", "position", "velocity", "effort"):
            values = getattr(log, name)
            columns |= {f"{joint}_{name}_{self.unit(name, slides)}": values[:, i] for i, (joint, slides) in joints}
        for i, joint in enumerate(log.joint_names):
            columns |= {f"{joint}_origin_{axis}_m": self.origins[:, i, k] for k, axis in enumerate(_VECTOR)}
        columns["limited"] = log.limited.astype(float)
        columns["speed_scaling"] = log.speed_scaling
        columns["host_monotonic_s"] = log.host_monotonic
        return columns


Samples = Callable[[slice], RunSamples]
"""Reads these samples of a run, as far as there are any."""

ALL = slice(None)
# Samples of a table that are in memory at a time: all of an hour would take 2 GB, and more than these are slower.
BLOCK = 1000


def export_csv(folder: Path, samples: Samples) -> list[Path]:
    """Write samples.csv: one line per sample, the columns of `RunSamples.table`; returns and errors as `EXPORTERS`."""
    path = folder / "samples.csv"
    blocks = (samples(slice(begin, begin + BLOCK)) for begin in itertools.count(0, BLOCK))
    write_table(path, (run.table() for run in itertools.takewhile(lambda run: len(run.log.stamp), blocks)))
    return [path]


def export_parquet(folder: Path, samples: Samples) -> list[Path]:
    """Write samples.parquet: names that programs for imitation learning use, then the columns of samples.csv.

    `timestamp` (s), `observation.state`, `observation.velocity` and `observation.effort` (lists of n: the joints as
    measured) and `action` (a list of n: the joint positions sent for that stamp, one period before). The schema's
    metadata names joints and units. Returns and errors as `EXPORTERS`.
    """
    arrow, parquet = _package("pyarrow"), _package("pyarrow.parquet")
    run, path = samples(ALL), folder / "samples.parquet"
    log = run.log

    def lists(values: Array) -> Any:
        return arrow.FixedSizeListArray.from_arrays(arrow.array(values.ravel()), values.shape[1])

    joints = {"state": log.position, "velocity": log.velocity, "effort": log.effort}
    columns = {"timestamp": log.stamp}
    columns |= {f"observation.{name}": lists(values) for name, values in joints.items()} | {
        "action": lists(log.command)
    }
    units = {name: run.units(name) for name in ("position", "velocity", "effort")}
    about = {**log.metadata, "joint_names": list(log.joint_names), "units": units}
    table = arrow.table({**columns, **run.table()}).replace_schema_metadata({"simbridge": json.dumps(about)})
    with replacing(path) as new:
        parquet.write_table(table, new)
    return [path]


def export_mat(folder: Path, samples: Samples) -> list[Path]:
    """Write samples.mat for MATLAB and Octave: matrices with a row per sample. Returns and errors as `EXPORTERS`.

    `stamp_s`, `plan_time_s`, `joint_names`; `joints` by quantity and unit (T, n); `poses` (T, 7), x y z in m and a
    quaternion x y z w; `errors`, `NAME_m` and `NAME_rad` (T, 3).
    """
    io, run, path = _package("scipy.io", "mat"), samples(ALL), folder / "samples.mat"
    log = run.log
    names = ("solution", "setpoint", "command", "position", "velocity", "effort")
    errors = {f"{name}_m": translation for name, (translation, _) in run.errors.items()}
    errors |= {f"{name}_rad": rotation for name, (_, rotation) in run.errors.items()}
    content = {
        "stamp_s": log.stamp,
        "plan_time_s": log.plan_time,
        "joint_names": np.array(log.joint_names, dtype=object),
        "joints": {f"{name}_{run.units(name)}": getattr(log, name) for name in names},
        "poses": dict(run.poses),
        "errors": errors,
        "limited": log.limited,
        "speed_scaling": log.speed_scaling,
    }
    with replacing(path) as new, new.open("wb") as file:
        io.savemat(file, content, long_field_names=True, do_compression=True, oned_as="column")
    return [path]


def _package(name: str, extra: str = "parquet") -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise MissingPackage(name.partition(".")[0], f"--to {extra}", extra=extra) from None
