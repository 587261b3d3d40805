"""The command `simbridge evaluate`: a run, or repeated runs, against an external measurement."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from simbridge.cli.run_tables import show_iso
from simbridge.errors import InvalidParameter, NotARun
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.external_measurement import external_repeats_result, external_result, measure_externally
from simbridge.evaluation.repeats import common_summary
from simbridge.recording.run_directory import RunDirectory, is_of_repeats
from simbridge.report.repeats_page import write_repeats_page
from simbridge.robot import pose
from simbridge.text import counted, degrees, fixed, millimetres, table_of
from simbridge.trajectory.files import read_trajectory


def evaluate(
    run: str,
    attained: Sequence[str],
    *,
    topic: str | None = None,
    columns: str | None = None,
    rate: float | None = None,
    find_marker: bool = False,
    as_json: bool = False,
) -> int:
    """Compare a run with an external recording; write evaluation.json into its directory, and print tables or JSON.

    For repeats their common report.html is written again. The arguments are the command's flags.

    Raises:
        NotARun, InputFileError, UnusableSamples: The run or the file cannot be read, or the two do not fit.
        InvalidParameter: The number of recordings does not fit.
    """
    path, files = Path(run), [str(Path(file).resolve()) for file in attained]
    recordings = [read_trajectory(file, topic=topic, columns=columns, rate=rate) for file in attained]
    repeats = common_summary(path) if is_of_repeats(path) else None
    if repeats is not None:
        directory, show = RunDirectory(path), _show_repeats
        found = external_repeats_result(_completed_runs(path, repeats), recordings, find_marker=find_marker)
        result = {"run": str(path), "attained": files, **found}
    elif len(files) != 1:
        raise InvalidParameter("number of recordings (--attained)", len(files), "1 for a run that is not repeated")
    else:
        evaluation = Evaluation.read(path)
        directory, show = evaluation.directory, _show
        measured = measure_externally(evaluation, recordings[0], find_marker=find_marker)
        result = {"run": run, "attained": files[0], **external_result(evaluation, measured)}
    directory.write_evaluation(result)
    if repeats is not None:
        write_repeats_page(directory, repeats, result)
    if as_json:
        print(json.dumps(result, indent=2, allow_nan=False))
    else:
        show(result, find_marker)
        print(f"Written: {directory.evaluation_file}")
    return 0


def _completed_runs(path: Path, summary: Mapping[str, Any]) -> dict[str, Evaluation]:
    """The runs in a directory of repeats that completed, by name."""
    completed = [run["run"] for run in summary["runs"] if run["outcome"] == "completed"]
    if not completed:
        raise NotARun(path, "a run that completed", f"none of {counted(len(summary['runs']), 'run')} did")
    return {name: Evaluation.of(RunDirectory.open(path / name)) for name in completed}


def _show(result: Mapping[str, Any], find_marker: bool) -> None:
    """The two errors next to each other, then what was estimated to compare them."""
    console = Console(highlight=False)
    error = result["tracking_error"]["witness"]["position_m"]
    console.print(
        f"[bold]External measurement: tracking error {millimetres(error['rms'])} mm RMS, "
        f"max {millimetres(error['max'])} mm[/bold]\n",
        soft_wrap=True,
    )
    console.print(_errors(result))
    console.print(f"\nEstimated from {counted(result['samples'], 'sample')} and removed:")
    console.print(f"  clock   the recording's is ahead by {_clock_offset(result)} s", soft_wrap=True)
    _show_frame(console, result, find_marker)
    console.print("A constant offset, rotation or delay of the arm cannot be determined from these.")


def _show_repeats(result: Mapping[str, Any], find_marker: bool) -> None:
    console = Console(highlight=False)
    console.print(f"[bold]External measurement of {counted(len(result['runs']), 'run')}[/bold]\n")
    rows = []
    for run in result["runs"]:
        external, own = (run["tracking_error"][name]["position_m"] for name in ("witness", "self_reported"))
        numbers = (external["rms"], external["max"], own["rms"])
        rows.append((run["run"], *(millimetres(number) for number in numbers), _clock_offset(run)))
    console.print(table_of(("run", "RMS mm", "max mm", "self-reported RMS mm", "clock ahead s"), rows))
    show_iso(console, result["iso_9283_style"])
    console.print("\nEstimated and removed: the clock of each run, and for all runs together:")
    _show_frame(console, result, find_marker)
    console.print("An offset, rotation or delay that all runs share cannot be determined from these.")


def _clock_offset(result: Mapping[str, Any]) -> str:
    """Seconds by which the recording's clock is ahead, to the microsecond also for times since 1970."""
    return f"{Decimal(result['time_offset_ns']).scaleb(-9):.6f}"


def _show_frame(console: Console, result: Mapping[str, Any], find_marker: bool) -> None:
    """Where the recording's frame was found to be, and the marker if it was estimated."""
    turn = float(np.linalg.norm(pose.rotation_vectors(np.array(result["transform"][3:]))))
    shift = ", ".join(fixed(value, 4) for value in result["transform"][:3])
    console.print(f"  frame   at ({shift}) m in base_link, rotated by {degrees(turn)} degrees", soft_wrap=True)
    if find_marker:
        marker = ", ".join(fixed(value * 1e3, 2) for value in result["marker_m"])
        console.print(f"  marker  at ({marker}) mm from the TCP")


def _errors(result: Mapping[str, Any]) -> Table:
    rows = []
    titles = {"tracking_error": "tracking", "delay_compensated": "delay removed", "contour_error": "contour"}
    for key, title in titles.items():
        if result[key] is not None:
            rows.append(_row(f"{title}, self-reported", result[key]["self_reported"]))
            rows.append(_row(f"{title}, external", result[key]["witness"]))
    rows.append(_row("external minus self-reported", result["witness_minus_self"]))
    columns = ("error", "RMS mm", "p95 mm", "max mm", "RMS deg", "max deg")
    return table_of(columns, rows, bold=[f"{title}, external" for title in titles.values()])


def _row(title: str, error: Mapping[str, Any]) -> tuple[str, ...]:
    position, rotation = error["position_m"], error.get("rotation_rad") or {"rms": None, "max": None}
    lengths = (millimetres(position[name]) for name in ("rms", "p95", "max"))
    return (title, *lengths, degrees(rotation["rms"]), degrees(rotation["max"]))
