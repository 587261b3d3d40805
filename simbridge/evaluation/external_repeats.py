"""Repeated runs measured by an outside witness: their ISO 9283-style figures are then external ones.

Every run's clock is fitted on its own, the frame for all runs together: fitted run by run it would take out what
differs between them, which is what repeatability measures.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from simbridge.cli.repeats_table import show_iso
from simbridge.errors import InvalidParameter, NotARun, UnusableSamples
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.external_measurement import Witness, brought_on, clock_ahead, comparison, show_frame
from simbridge.evaluation.metrics.alignment import Alignment, align, rigid_fit
from simbridge.evaluation.metrics.cycles import occurrences
from simbridge.evaluation.repeats import iso_figures
from simbridge.evaluation.repeats_summary import common_summary
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.repeats_page import write_repeats_page
from simbridge.robot.pose import Array
from simbridge.text import counted, millimetres
from simbridge.trajectory.files import read_trajectory
from simbridge.trajectory.trajectory import Trajectory

MARGIN = 1.0
"""Seconds before and after a run that are cut out of a long recording with it."""

MAX_MISSING = 0.05
"""Seconds at a run's ends, and between two samples, that a recording may miss."""


def witnessed_together(
    runs: Sequence[Evaluation], recordings: Sequence[Trajectory], *, find_marker: bool = False
) -> list[Witness]:
    """Bring outside recordings in one frame onto repeated runs.

    Args:
        runs: Runs of one plan.
        recordings: One of all the runs, in which they are looked for, or one of each.
        find_marker: Whether they look at a point beside the TCP, to be found.

    Raises:
        InvalidParameter: Neither one recording nor one for every run.
        UnusableSamples: A recording does not fit its run, has gaps, or does not hold all the runs; says which.
    """
    if len(recordings) not in (1, len(runs)):
        raise InvalidParameter(
            "number of recordings (--attained)", len(recordings), f"1, of all runs, or {len(runs)}, one a run"
        )
    each = _cut(runs, recordings[0]) if len(recordings) < len(runs) else list(recordings)
    found = [_aligned(run, recording, find_marker) for run, recording in zip(runs, each, strict=True)]
    rough = [brought_on(*both) for both in zip(runs, each, found, strict=True)]
    recorded = np.concatenate([_inside(r, f, w) for r, f, w in zip(each, found, rough, strict=True)])
    fit = rigid_fit(recorded, np.concatenate([witness.own for witness in rough]), find_marker=find_marker)
    one = [replace(alignment, transform=fit.transform, marker=fit.marker) for alignment in found]
    return [brought_on(*both) for both in zip(runs, each, one, strict=True)]


def _cut(runs: Sequence[Evaluation], recording: Trajectory) -> list[Trajectory]:
    """Of a recording of all runs the part of each."""
    stamp = runs[0].log.stamp
    offsets = occurrences(stamp, runs[0].attained[:, :3], recording.times, recording.poses[:, :3], len(runs))
    parts = []
    for run, offset in zip(runs, offsets, strict=True):
        at = recording.times - offset
        kept = (at >= run.log.stamp[0] - MARGIN) & (at <= run.log.stamp[-1] + MARGIN)
        parts.append(replace(recording, times=recording.times[kept], poses=recording.poses[kept]))
    return parts


def _aligned(run: Evaluation, recording: Trajectory, find_marker: bool) -> Alignment:
    stamp, name = run.log.stamp, run.directory.path.name
    try:
        found = align(stamp, run.attained, recording.times, recording.poses[:, :3], find_marker=find_marker)
    except UnusableSamples as error:
        raise UnusableSamples(f"recording of run {name}", error.reason) from None
    at = recording.times - found.offset
    kept = np.concatenate([[stamp[0]], at[(at > stamp[0]) & (at < stamp[-1])], [stamp[-1]]])
    gap = int(np.argmax(np.diff(kept)))
    if kept[gap + 1] - kept[gap] > MAX_MISSING:
        raise UnusableSamples(
            f"recording of run {name}",
            f"it has no sample from {kept[gap]:.3f} to {kept[gap + 1]:.3f} s of the run; no more than {MAX_MISSING:g} "
            "s may be missing.",
        )
    return found


def _inside(recording: Trajectory, found: Alignment, witness: Witness) -> Array:
    """The recorded positions (K, 3) of a witness's samples."""
    first = int(np.searchsorted(recording.times - found.offset, witness.times[0]))
    return recording.poses[first : first + len(witness.times), :3]


def _at_stamps(run: Evaluation, witness: Witness) -> Array:
    """Where the witness saw the tool (T, 3) at a run's stamps."""
    return np.column_stack([np.interp(run.log.stamp, witness.times, column) for column in witness.seen[:, :3].T])


def evaluate_repeats(path: str, attained: Sequence[str], *, topic: str | None, find_marker: bool, as_json: bool) -> int:
    """`simbridge evaluate` of the directory of repeats: writes evaluation.json into it, and its report.html anew.

    Args:
        path: The directory.
        attained: Files: one recording of all runs that completed, or one for each, in order.
        topic, find_marker, as_json: As for a single run.

    Returns:
        The exit status, 0.

    Raises:
        NotARun, InputFileError, InvalidParameter, UnusableSamples: Something cannot be read, or does not fit.
    """
    whole = RunDirectory(Path(path))
    summary = common_summary(whole.path)
    completed = [run["run"] for run in summary["runs"] if run["outcome"] == "completed"]
    if not completed:
        raise NotARun(path, "a run that completed", f"none of {counted(len(summary['runs']), 'run')} did")
    runs = [Evaluation.of(RunDirectory.open(whole.path / name)) for name in completed]
    recordings = [read_trajectory(file, topic=topic) for file in attained]
    witnesses = witnessed_together(runs, recordings, find_marker=find_marker)
    iso = iso_figures(runs, [_at_stamps(*both) for both in zip(runs, witnesses, strict=True)])
    fitted = ("transform", "marker_m")
    each = [comparison(*both) for both in zip(runs, witnesses, strict=True)]
    result: dict[str, Any] = {
        "run": path,
        "attained": [str(Path(file).resolve()) for file in attained],
        **{name: each[0][name] for name in fitted},
        "runs": [
            {"run": name, **{key: value for key, value in one.items() if key not in fitted}}
            for name, one in zip(completed, each, strict=True)
        ],
        "iso_9283_style": iso.as_dict(),
    }
    whole.write_evaluation(result)
    write_repeats_page(whole, summary, result)
    if as_json:
        print(json.dumps(result, indent=2, allow_nan=False))
    else:
        _show(result, whole.evaluation_file, find_marker)
    return 0


def _show(result: dict[str, Any], file: Path, find_marker: bool) -> None:
    console = Console(highlight=False)
    console.print(f"[bold]Seen from outside: {counted(len(result['runs']), 'run')}[/bold]\n")
    console.print(_table(result["runs"]))
    show_iso(console, result["iso_9283_style"])
    console.print("\nEstimated, and taken out: each run's clock, and of all runs together:")
    show_frame(console, result, find_marker)
    console.print("An offset, rotation or delay that all runs share cannot be told from these.")
    console.print(f"Written: {file}", soft_wrap=True, markup=False)


def _table(runs: Sequence[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("run")
    for name in ("RMS mm", "max mm", "self-reported RMS mm", "clock ahead s"):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        seen, own = (run["tracking_error"][name]["position_m"] for name in ("witness", "self_reported"))
        numbers = [millimetres(seen["rms"]), millimetres(seen["max"]), millimetres(own["rms"])]
        table.add_row(run["run"], *numbers, clock_ahead(run))
    return table
