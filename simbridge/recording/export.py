"""A run's samples for other tools: TUM, CSV, Parquet, MATLAB, Rerun, and for ROS a bag or one MCAP file.

A new format is one function and one line in EXPORTERS, which says what they return and raise. No ROS is
needed to write its bags.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from simbridge.errors import optional_package
from simbridge.files.writing import replacing, write_file
from simbridge.recording import ros_messages
from simbridge.recording.cdr import Layout
from simbridge.recording.sample_table import ALL, ReadSamples, RunSamples
from simbridge.robot.pose import Array
from simbridge.trajectory.writers import write_table, write_tum

BAG, MCAP = "rosbag2", "samples.mcap"
"""Their names in the run directory."""

POSES = ("reference", "target", "setpoint", "attained")
"""The poses that are exported as trajectories."""

# Samples of a table that are in memory at a time: all of an hour would take 2 GB, and more than these are slower.
BLOCK = 1000


def export_tum(folder: Path, samples: ReadSamples) -> list[Path]:
    """Write reference.tum, target.tum, setpoint.tum and attained.tum: full double precision, one line per sample."""
    run, paths = samples(ALL), [folder / f"{name}.tum" for name in POSES]
    for name, path in zip(POSES, paths, strict=True):
        write_tum(path, run.log.stamp, run.poses[name], follow_links=False)
    return paths


# Name, layout, and the numbers (T, k) of each group of a message after the stamp.
_Topic = tuple[str, Layout, tuple[Array, ...]]


def export_bag(folder: Path, samples: ReadSamples) -> list[Path]:
    """Write rosbag2/, a ROS 2 bag (sqlite3); an earlier one is replaced.

    Topics: `/joint_states` (measured; efforts in N m, or A where the controller gives only currents),
    `/setpoint/joint_states`, `/reference/pose`, `/target/pose`, `/setpoint/pose`, `/attained/pose` (PoseStamped, in
    base_link), and `/error/NAME/translation` (m) and `/error/NAME/rotation` (rotation vector, rad) as Vector3Stamped
    for sampling, solver, limiter, plant and tracking. Stamps count from the start of the run.
    """
    run, target = samples(ALL), folder / BAG
    with replacing(target, follow_links=False) as new:
        _write(new.with_name("samples"), _topics(run), run.log.stamp, StoragePlugin.SQLITE3).rename(
            new
        )
    return [target]


def export_mcap(folder: Path, samples: ReadSamples) -> list[Path]:
    """Write samples.mcap: the same topics as `export_bag` in one file, for Foxglove and PlotJuggler."""
    run, target = samples(ALL), folder / MCAP
    with replacing(target, follow_links=False) as new:
        bag = _write(new.with_name("samples"), _topics(run), run.log.stamp, StoragePlugin.MCAP)
        (bag / MCAP).rename(new)
    return [target]


def _topics(run: RunSamples) -> Iterator[_Topic]:
    log = run.log
    frame, names = log.frame_id, log.joint_names
    measured = ros_messages.joint_state(frame, names, "position", "velocity", "effort")
    yield "/joint_states", measured, (log.position, log.velocity, log.effort)
    yield (
        "/setpoint/joint_states",
        ros_messages.joint_state(frame, names, "position"),
        (log.setpoint,),
    )
    for name in POSES:
        yield f"/{name}/pose", ros_messages.pose_stamped(frame, "pose"), (run.poses[name],)
    for name, (translation, rotation) in run.errors.items():
        yield (
            f"/error/{name}/translation",
            ros_messages.vector_stamped(frame, "vector"),
            (translation,),
        )
        yield f"/error/{name}/rotation", ros_messages.vector_stamped(frame, "vector"), (rotation,)


def _write(path: Path, topics: Iterator[_Topic], stamps: Array, storage: StoragePlugin) -> Path:
    store = get_typestore(Stores.ROS2_HUMBLE)
    times = np.round(stamps * 1e9).astype(np.int64).tolist()
    # Version 8 is read from ROS 2 Humble on.
    with Writer(path, version=8, storage_plugin=storage) as writer:
        connections = [
            (writer.add_connection(name, layout.message_type, typestore=store), layout, groups)
            for name, layout, groups in topics
        ]
        for k, time in enumerate(times):
            stamp = divmod(time, 10**9)
            for connection, layout, groups in connections:
                writer.write(
                    connection, time, layout.pack(stamp, *(group[k].tolist() for group in groups))
                )
    return path


def export_csv(folder: Path, samples: ReadSamples) -> list[Path]:
    """Write samples.csv: one line per sample, the columns of `RunSamples.table`."""
    path = folder / "samples.csv"
    write_table(path, (run.table() for run in _blocks(samples)), follow_links=False)
    return [path]


def _blocks(samples: ReadSamples) -> Iterator[RunSamples]:
    """All samples, a block at a time; of a run without any, one empty block."""
    for begin in itertools.count(0, BLOCK):
        run = samples(slice(begin, begin + BLOCK))
        if begin and not len(run.log.stamp):
            return
        yield run


def export_parquet(folder: Path, samples: ReadSamples) -> list[Path]:
    """Write samples.parquet: names that programs for imitation learning use, then the columns of samples.csv.

    `timestamp` (s), `observation.state`, `observation.velocity` and `observation.effort` (lists of n: the joints as
    measured) and `action` (a list of n: the joint positions sent for that stamp, one period before). The schema's
    metadata names joints and units.
    """
    arrow, parquet = (
        optional_package(module, "pyarrow", "--to parquet", "parquet")
        for module in ("pyarrow", "pyarrow.parquet")
    )
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
    table = arrow.table({**columns, **run.table()}).replace_schema_metadata(
        {"simbridge": json.dumps(about)}
    )
    with replacing(path, follow_links=False) as new:
        parquet.write_table(table, new)
    return [path]


def export_mat(folder: Path, samples: ReadSamples) -> list[Path]:
    """Write samples.mat for MATLAB and Octave: matrices with a row per sample.

    `stamp_s`, `plan_time_s`, `joint_names`; `joints` by quantity and unit (T, n); `poses` (T, 7), x y z in m and a
    quaternion x y z w; `errors`, `NAME_m` and `NAME_rad` (T, 3).
    """
    io, run, path = (
        optional_package("scipy.io", "scipy", "--to mat", "mat"),
        samples(ALL),
        folder / "samples.mat",
    )
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
    with replacing(path, follow_links=False) as new, new.open("wb") as file:
        io.savemat(file, content, long_field_names=True, do_compression=True, oned_as="column")
    return [path]


def export_rerun(folder: Path, samples: ReadSamples) -> list[Path]:
    """Write samples.rrd for the Rerun viewer, over the timeline "run".

    In 3D the poses as paths, the tool, and the arm as a line through its joints; over time the errors (mm, degrees) and
    the joints.
    """
    rr, run = optional_package("rerun", "rerun-sdk", "--to rerun", "rerun"), samples(ALL)
    log, target, attained = run.log, folder / "samples.rrd", run.poses["attained"]
    time = [rr.TimeColumn("run", duration=log.stamp)]
    moved = rr.Transform3D.columns(translation=attained[:, :3], quaternion=attained[:, 3:])
    arm = np.concatenate(
        [np.zeros((len(attained), 1, 3)), run.origins, attained[:, None, :3]], axis=1
    )
    curves = {
        f"error/{name}_mm": 1e3 * np.linalg.norm(part, axis=1)
        for name, (part, _) in run.errors.items()
    }
    curves |= {
        f"error/{name}_deg": np.degrees(np.linalg.norm(part, axis=1))
        for name, (_, part) in run.errors.items()
    }
    for quantity in ("setpoint", "position", "velocity", "effort"):
        columns = zip(
            log.joint_names, getattr(log, quantity).T, run.prismatic.tolist(), strict=True
        )
        curves |= {
            f"joints/{joint}/{quantity}_{run.unit(quantity, slides)}": v
            for joint, v, slides in columns
        }
    recording = rr.RecordingStream("simbridge")
    # Rerun's own writer of files waits forever for a disk that is full.
    stream = recording.binary_stream()
    for name in POSES:
        recording.log(f"paths/{name}", rr.LineStrips3D([run.poses[name][:, :3]]), static=True)
    recording.send_columns("tool", time, moved)
    recording.send_columns("arm", time, rr.LineStrips3D.columns(strips=[*arm]))
    for name, values in curves.items():
        recording.send_columns(name, time, rr.Scalars.columns(scalars=values))
    write_file(target, stream.read() or b"", follow_links=False)
    return [target]


Exporter = Callable[[Path, ReadSamples], list[Path]]

EXPORTERS: dict[str, Exporter] = {
    "csv": export_csv,
    "tum": export_tum,
    "mcap": export_mcap,
    "bag": export_bag,
    "parquet": export_parquet,
    "mat": export_mat,
    "rerun": export_rerun,
}
"""Exporters by the name of their format: exporter(folder, samples) writes into a run directory, and returns its files.

Raises:
    MissingPackage: The format's extra is not installed.
    OutputError: A file cannot be written.
"""
