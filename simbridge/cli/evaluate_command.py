"""The command `simbridge evaluate`: a run against an external measurement.

It shows tables of at most 60 columns, and writes evaluation.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from simbridge.cli.flags import EvaluateFlags
from simbridge.cli.run_tables import show_iso
from simbridge.cli.terminal import say
from simbridge.console import Terminal
from simbridge.errors import InvalidParameter, NotARun
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.external_measurement import (
    external_repeats_result,
    external_result,
    measure_externally,
)
from simbridge.evaluation.repeats_summary import RepeatsSummary, common_summary
from simbridge.evaluation.summary import what_ran
from simbridge.json_output import print_json
from simbridge.recording.run_directory import RunDirectory, is_of_repeats
from simbridge.report.repeats_page import mean_headline, write_repeats_page
from simbridge.report.verdict import sentence, source_of
from simbridge.robot import pose
from simbridge.text import counted, degrees, fixed, make_table, millimetres
from simbridge.trajectory.files import read_trajectory
from simbridge.trajectory.trajectory import Trajectory

# The errors of an external measurement, by their key in evaluation.json, and their names.
ERRORS = {
    "tracking_error": "tracking",
    "delay_compensated": "delay removed",
    "contour_error": "contour",
}


def evaluate(flags: EvaluateFlags) -> int:
    """Compare a run with an external recording, and print tables or JSON.

    evaluation.json is written into the run's directory; for repeats their common report.html is
    written again.

    Returns:
        The exit status, 0.

    Raises:
        NotARun, InputFileError, UnusableSamples: The run or the file cannot be read, or the two do
            not fit.
        InvalidParameter: The number of recordings does not fit.
    """
    run = flags.run
    files = [str(Path(file).resolve()) for file in flags.attained]
    recordings = [
        read_trajectory(file, topic=flags.topic, columns=flags.columns, rate=flags.rate)
        for file in flags.attained
    ]

    find_marker = flags.find_marker
    as_json = flags.as_json
    if is_of_repeats(Path(run)):
        _evaluate_repeats(run, files, recordings, find_marker=find_marker, as_json=as_json)
    elif len(files) != 1:
        needed = "1 for a run that is not repeated"
        raise InvalidParameter("number of recordings (--attained)", len(files), needed)
    else:
        _evaluate_run(run, files[0], recordings[0], find_marker=find_marker, as_json=as_json)
    return 0


def _evaluate_run(
    run: str, file: str, recording: Trajectory, *, find_marker: bool, as_json: bool
) -> None:
    """Evaluate a run that was not repeated.

    Args:
        run: Its directory.
        file: The recording's path, for the record.
        recording: What the external instrument measured.
        find_marker: Whether the marker's position on the tool is estimated.
        as_json: Whether JSON is printed.
    """
    evaluation = Evaluation.read(Path(run))
    measured = measure_externally(evaluation, recording, find_marker=find_marker)
    result = {"run": run, "attained": file, **external_result(evaluation, measured)}
    evaluation.directory.write_evaluation(result)

    if as_json:
        print_json(result)
        return
    facts = {**what_ran(evaluation.settings), "outcome": evaluation.outcome}
    _show_run(result, facts, find_marker=find_marker)
    print(f"Written: {evaluation.directory.evaluation_file}")


def _evaluate_repeats(
    run: str,
    files: Sequence[str],
    recordings: Sequence[Trajectory],
    *,
    find_marker: bool,
    as_json: bool,
) -> None:
    """Evaluate all repeats together, as in ISO 9283; the arguments are those of `_evaluate_run`."""
    directory = RunDirectory(Path(run))
    summary = common_summary(directory.path)
    evaluations = _completed_runs(directory.path, summary)
    figures = external_repeats_result(evaluations, recordings, find_marker=find_marker)
    result = {"run": str(directory.path), "attained": list(files), **figures}
    directory.write_evaluation(result)
    write_repeats_page(directory, summary, result)

    if as_json:
        print_json(result)
        return
    _show_repeats(result, {**summary}, find_marker=find_marker)
    print(f"Written: {directory.evaluation_file}")


def _completed_runs(path: Path, summary: RepeatsSummary) -> dict[str, Evaluation]:
    """Return the runs in a directory of repeats that completed, by name.

    Raises:
        NotARun: None did.
    """
    completed = [run["run"] for run in summary["runs"] if run["outcome"] == "completed"]
    if not completed:
        reason = f"none of {counted(len(summary['runs']), 'run')} did"
        raise NotARun(path, "a run that completed", reason)
    return {name: Evaluation.of(RunDirectory.open(path / name)) for name in completed}


def _show_run(result: Mapping[str, Any], facts: Mapping[str, Any], *, find_marker: bool) -> None:
    """Show the errors next to each other, then what was estimated to compare them.

    Args:
        result: The content of evaluation.json.
        facts: What ran, and its outcome.
        find_marker: Whether the marker was estimated.
    """
    console = Terminal()
    # The headline states the error that the external instrument, the witness, has measured.
    error = result["tracking_error"]["witness"]
    source = source_of(facts, externally=True)
    headline = sentence(source, error, facts["scenario"], outcome=facts["outcome"])
    say(console, f"{headline}\n", style="bold")

    console.print(_error_table(result))
    console.print(f"\nEstimated from {counted(result['samples'], 'sample')} and removed:")
    console.print(
        f"  clock   the recording's clock is ahead by {_clock_offset(result)} s", soft_wrap=True
    )
    _show_frame(console, result, find_marker=find_marker)
    console.print(
        "These estimates absorb any constant offset, rotation or delay of the arm, so "
        "those cannot be determined."
    )


def _show_repeats(
    result: Mapping[str, Any], facts: Mapping[str, Any], *, find_marker: bool
) -> None:
    """Show the errors of each run, the figures of all, and what was estimated.

    The arguments are those of `_show_run`.
    """
    console = Terminal()
    # The headline states the errors that the external instrument, the witness, has measured.
    errors = [run["tracking_error"]["witness"]["position_m"] for run in result["runs"]]
    source = source_of(facts, externally=True)
    say(console, f"{mean_headline(source, facts['scenario'], errors)}\n", style="bold")

    rows = []
    for run in result["runs"]:
        external = run["tracking_error"]["witness"]["position_m"]
        self_reported = run["tracking_error"]["self_reported"]["position_m"]
        rows.append(
            (
                run["run"],
                millimetres(external["rms"]),
                millimetres(external["max"]),
                millimetres(self_reported["rms"]),
                _clock_offset(run),
            )
        )
    columns = ("run", "RMS mm", "max mm", "self-reported RMS mm", "clock ahead s")
    console.print(make_table(columns, rows))
    show_iso(console, result["iso_9283_style"])

    console.print("\nEstimated and removed: the clock of each run, and for all runs together:")
    _show_frame(console, result, find_marker=find_marker)
    console.print(
        "An offset, rotation or delay that all runs share cannot be determined from these."
    )


def _clock_offset(result: Mapping[str, Any]) -> str:
    """Return by how much the recording's clock is ahead, in seconds.

    To the microsecond, also for times since 1970.
    """
    return f"{Decimal(result['time_offset_ns']).scaleb(-9):.6f}"


def _show_frame(console: Terminal, result: Mapping[str, Any], *, find_marker: bool) -> None:
    """Show where the recording's frame is, and the marker if it was estimated."""
    transform = np.array(result["transform"])
    angle = float(np.linalg.norm(pose.rotation_vectors(transform[3:])))
    position = ", ".join(fixed(value, 4) for value in result["transform"][:3])
    console.print(
        f"  frame   at ({position}) m in base_link, rotated by {degrees(angle)} degrees",
        soft_wrap=True,
    )

    if find_marker:
        marker = ", ".join(fixed(value * 1e3, 2) for value in result["marker_m"])
        console.print(f"  marker  at ({marker}) mm from the TCP")


def _error_table(result: Mapping[str, Any]) -> Table:
    """Return a table of the errors, self-reported and external, and of their difference."""
    # The error with the delay removed is None if the run's summary has no delay.
    errors = {}
    for key, name in ERRORS.items():
        if result[key] is not None:
            errors[f"{name}, self-reported"] = result[key]["self_reported"]
            errors[f"{name}, external"] = result[key]["witness"]
    errors["external minus self-reported"] = result["witness_minus_self"]

    rows = []
    for title, error in errors.items():
        position = error["position_m"]
        # A contour error has no rotation. That of an error is None if the recording has positions
        # only. Both cells then show that there is no number.
        rotation = error.get("rotation_rad") or {"rms": None, "max": None}
        rows.append(
            (
                title,
                millimetres(position["rms"]),
                millimetres(position["p95"]),
                millimetres(position["max"]),
                degrees(rotation["rms"]),
                degrees(rotation["max"]),
            )
        )
    columns = ("error", "RMS mm", "p95 mm", "max mm", "RMS deg", "max deg")
    return make_table(columns, rows, bold=[f"{name}, external" for name in ERRORS.values()])
