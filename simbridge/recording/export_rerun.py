"""A run's samples for the Rerun viewer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simbridge.errors import optional_package
from simbridge.files.writing import write_file
from simbridge.recording.sample_table import ALL, EXPORTED_POSES, ReadSamples, RunSamples
from simbridge.robot.pose import Array

CURVE_QUANTITIES = ("setpoint", "position", "velocity", "effort")
"""The fields of a sample that are shown over time for each joint."""


def export_rerun(folder: Path, read_samples: ReadSamples) -> list[Path]:
    """Write samples.rrd for the Rerun viewer, over the timeline "run".

    The 3D view shows the poses as paths, the tool, and the arm as a line through its joints. The
    errors (mm, degrees) and the joints are curves over time.
    """
    rr = optional_package("rerun", "rerun-sdk", purpose="--to rerun", extra="rerun")
    run = read_samples(ALL)
    attained = run.poses["attained"]
    time = [rr.TimeColumn("run", duration=run.log.stamp)]
    tool = rr.Transform3D.columns(translation=attained[:, :3], quaternion=attained[:, 3:])
    # A line from the base through the joints to the tool.
    bases = np.zeros((len(attained), 1, 3))
    arm = np.concatenate([bases, run.origins, attained[:, None, :3]], axis=1)

    recording = rr.RecordingStream("simbridge")
    # Rerun's own writer of files waits forever for a disk that is full.
    stream = recording.binary_stream()
    for name in EXPORTED_POSES:
        path = rr.LineStrips3D([run.poses[name][:, :3]])
        recording.log(f"paths/{name}", path, static=True)
    recording.send_columns("tool", time, tool)
    recording.send_columns("arm", time, rr.LineStrips3D.columns(strips=[*arm]))
    for name, values in _curves(run).items():
        recording.send_columns(name, time, rr.Scalars.columns(scalars=values))

    target = folder / "samples.rrd"
    write_file(target, stream.read() or b"", follow_links=False)
    return [target]


def _curves(run: RunSamples) -> dict[str, Array]:
    """Return the curves over time (T,), by their paths in the viewer."""
    curves = {}
    for name, (translation, _) in run.errors.items():
        curves[f"error/{name}_mm"] = 1e3 * np.linalg.norm(translation, axis=1)
    for name, (_, rotation) in run.errors.items():
        curves[f"error/{name}_deg"] = np.degrees(np.linalg.norm(rotation, axis=1))

    for quantity in CURVE_QUANTITIES:
        values = getattr(run.log, quantity)
        for i, joint in enumerate(run.log.joint_names):
            unit = run.unit(quantity, bool(run.prismatic[i]))
            curves[f"joints/{joint}/{quantity}_{unit}"] = values[:, i]
    return curves
