"""The commands `simbridge compare` (runs, or two sweeps) and `evaluate` (a run against an external measurement).

Both show tables of at most 60 columns; `compare` writes compare.html, `evaluate` evaluation.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from simbridge.cli.run_tables import RUN_COLUMNS, run_cells, show_iso
from simbridge.cli.terminal import say
from simbridge.console import Terminal
from simbridge.errors import InvalidParameter, NotARun, Refusal
from simbridge.evaluation.comparison import (
    Comparison,
    Deviations,
    PredictionError,
    compare_runs,
    iso_figures_of,
)
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.external_measurement import (
    external_repeats_result,
    external_result,
    measure_externally,
)
from simbridge.evaluation.metrics.samples import statistics
from simbridge.evaluation.metrics.tracking import ERROR_PARTS
from simbridge.evaluation.repeatability import common_summary
from simbridge.evaluation.summary import what_ran
from simbridge.files.writing import write_file, writing
from simbridge.recording.run_directory import RunDirectory, is_of_repeats
from simbridge.report.several_runs import (
    about,
    compare_page,
    comparison_headline,
    mean_headline,
    write_repeats_page,
)
from simbridge.report.verdict import backend_of, sentence, source_of
from simbridge.robot import pose
from simbridge.sweeps.comparison import compare_sweeps, comparison_page, comparison_rows, is_sweep
from simbridge.text import counted, degrees, fixed, listed, millimetres, milliseconds, table_of
from simbridge.trajectory.files import read_trajectory

# Points of sweeps in the terminal.
_SHOWN = 20


def compare(runs: Sequence[str], *, out: str | None, as_json: bool) -> int:
    """Compare runs, or two sweeps: print tables or JSON, and write compare.html. The arguments are the command's flags.

    Raises:
        SimbridgeError: See `compare_runs`; or the page cannot be written.
    """
    paths = [Path(run) for run in runs]
    if any(map(is_sweep, paths)):
        return _compare_sweeps(paths, out, as_json)
    found = compare_runs(paths)
    path = _write(
        out, found.runs[0].summary["scenario"], compare_page(found, iso_figures_of(found))
    )
    if as_json:
        print(json.dumps({"page": str(path), **found.as_dict()}, indent=2, allow_nan=False))
    else:
        _show(found, path)
    return 0


def _write(out: str | None, name: str, page: str) -> Path:
    directory = RunDirectory.create(None, f"compare_{name}").path if out is None else Path(out)
    path = directory / "compare.html"
    with writing(path):
        directory.mkdir(parents=True, exist_ok=True)
    write_file(path, page.encode(), follow_links=False)
    return path


def _compare_sweeps(paths: Sequence[Path], out: str | None, as_json: bool) -> int:
    if len(paths) != 2 or not all(map(is_sweep, paths)):
        raise Refusal(
            f"Cannot compare {listed([*map(str, paths)])}: give two sweeps, or only runs."
        )
    found = compare_sweeps(*paths)
    page = _write(out, "sweeps", comparison_page(found))
    lines = comparison_rows(found)
    if as_json:
        titles = (*found.varied, "first_m", "second_m")
        rows = (
            (*line[:-3], pair.first, pair.second)
            for line, pair in zip(lines, found.pairs, strict=True)
        )
        points = [dict(zip(titles, row, strict=True)) for row in rows]
        print(
            json.dumps({"page": str(page), "sweeps": list(found.names), "points": points}, indent=2)
        )
        return 0
    console = Terminal()
    console.print(f"[bold]{escape(found.headline)}[/bold]\n", soft_wrap=True)
    first, second = map(escape, found.names)
    columns = (*found.varied, f"{first} mm", f"{second} mm", "ratio")
    console.print(table_of(columns, [tuple(map(escape, line)) for line in lines[:_SHOWN]]))
    if len(lines) > _SHOWN:
        console.print(f"{len(lines) - _SHOWN} more points, with a smaller change, are on the page.")
    for name, count in zip(found.names, found.alone, strict=True):
        if count:
            console.print(f"{counted(count, 'point')} with figures only in {name}.", markup=False)
    console.print(f"Page: {page}", soft_wrap=True, markup=False)
    return 0


def _show(comparison: Comparison, page: Path) -> None:
    """What the runs are, the tracking error of each, its parts, and its separation from the first run."""
    console, runs = Terminal(), dict(enumerate(comparison.runs, start=1))
    say(console, f"{comparison_headline(comparison)}\n", style="bold")
    for number, run in runs.items():
        say(console, f"{number}  {run.name}: {about(run.summary)}.")
    console.print()
    for warning in comparison.warnings:
        say(console, f"Note: {warning}")
    rows = [
        (f"{number}", backend_of(run.summary), *run_cells(run.summary))
        for number, run in runs.items()
    ]
    console.print(table_of(("run", "backend", *RUN_COLUMNS), rows, left=("backend",)))
    say(console, "\nParts of the error, RMS in mm; servo law and rest are parts of the plant's:")
    parts = [part for part in ERROR_PARTS if any(run.summary[part.key] for run in comparison.runs)]
    rows = []
    for number, run in runs.items():
        errors = [run.summary[part.key] for part in parts]
        rms = (
            "–" if error is None else millimetres(error["position_m"]["rms"]) for error in errors
        )
        rows.append((f"{number}", *rms))
    console.print(table_of(("run", *(part.name for part in parts)), rows))
    console.print()
    for number, separation in zip(runs, comparison.separation, strict=True):
        if separation is not None:
            distances = statistics(separation[1].distance)
            amount = (
                f"{millimetres(distances['rms'])} mm RMS (max {millimetres(distances['max'])} mm)"
            )
            say(console, f"The TCP of run {number} was {amount} from that of run 1.")
    if any(comparison.prediction):
        console.print("\nPrediction error, simulated to measured:")
        rows = [
            row
            for number, error in zip(runs, comparison.prediction, strict=True)
            if error is not None
            for row in _prediction_rows(f"{number}", error)
        ]
        columns = ("run", "RMS mm", "max mm", "RMS deg", "max deg", "joints deg", "max deg")
        console.print(table_of(columns, rows))
    console.print(f"Page: {page}", soft_wrap=True, markup=False)


def _prediction_rows(number: str, error: PredictionError) -> Iterator[tuple[str, ...]]:
    """The deviations, and those that are left without their delay, if it is known."""
    deviations: dict[str, Deviations] = {number: error}
    if error["delay_s"] is not None:
        deviations[f"  less {milliseconds(error['delay_s'])} ms delay"] = error["delay_removed"]
    for name, deviation in deviations.items():
        position = deviation["position_m"]
        angles = (deviation["rotation_rad"], deviation["joints_rad"])
        lengths = (millimetres(position["rms"]), millimetres(position["max"]))
        yield (name, *lengths, *(degrees(angle[key]) for angle in angles for key in ("rms", "max")))


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
    recordings = [
        read_trajectory(file, topic=topic, columns=columns, rate=rate) for file in attained
    ]
    repeats = common_summary(path) if is_of_repeats(path) else None
    if repeats is not None:
        directory, facts, show = RunDirectory(path), {**repeats}, _show_external_repeats
        found = external_repeats_result(
            _completed_runs(path, repeats), recordings, find_marker=find_marker
        )
        result = {"run": str(path), "attained": files, **found}
    elif len(files) != 1:
        raise InvalidParameter(
            "number of recordings (--attained)", len(files), "1 for a run that is not repeated"
        )
    else:
        evaluation = Evaluation.read(path)
        directory, facts, show = (
            evaluation.directory,
            {**what_ran(evaluation.settings)},
            _show_external,
        )
        facts["outcome"] = evaluation.outcome
        measured = measure_externally(evaluation, recordings[0], find_marker=find_marker)
        result = {"run": run, "attained": files[0], **external_result(evaluation, measured)}
    directory.write_evaluation(result)
    if repeats is not None:
        write_repeats_page(directory, repeats, result)
    if as_json:
        print(json.dumps(result, indent=2, allow_nan=False))
    else:
        show(result, facts, find_marker)
        print(f"Written: {directory.evaluation_file}")
    return 0


def _completed_runs(path: Path, summary: Mapping[str, Any]) -> dict[str, Evaluation]:
    """The runs in a directory of repeats that completed, by name."""
    completed = [run["run"] for run in summary["runs"] if run["outcome"] == "completed"]
    if not completed:
        raise NotARun(
            path, "a run that completed", f"none of {counted(len(summary['runs']), 'run')} did"
        )
    return {name: Evaluation.of(RunDirectory.open(path / name)) for name in completed}


def _show_external(result: Mapping[str, Any], facts: Mapping[str, Any], find_marker: bool) -> None:
    """The two errors next to each other, then what was estimated to compare them."""
    console = Terminal()
    error, source = result["tracking_error"]["witness"], source_of(facts, externally=True)
    say(console, f"{sentence(source, error, facts['scenario'], facts['outcome'])}\n", style="bold")
    console.print(_errors(result))
    console.print(f"\nEstimated from {counted(result['samples'], 'sample')} and removed:")
    console.print(
        f"  clock   the recording's is ahead by {_clock_offset(result)} s", soft_wrap=True
    )
    _show_frame(console, result, find_marker)
    console.print(
        "A constant offset, rotation or delay of the arm cannot be determined from these."
    )


def _show_external_repeats(
    result: Mapping[str, Any], facts: Mapping[str, Any], find_marker: bool
) -> None:
    console = Terminal()
    errors = [run["tracking_error"]["witness"]["position_m"] for run in result["runs"]]
    say(
        console,
        f"{mean_headline(source_of(facts, externally=True), facts['scenario'], errors)}\n",
        style="bold",
    )
    rows = []
    for run in result["runs"]:
        external, own = (
            run["tracking_error"][name]["position_m"] for name in ("witness", "self_reported")
        )
        numbers = (external["rms"], external["max"], own["rms"])
        rows.append((run["run"], *(millimetres(number) for number in numbers), _clock_offset(run)))
    console.print(
        table_of(("run", "RMS mm", "max mm", "self-reported RMS mm", "clock ahead s"), rows)
    )
    show_iso(console, result["iso_9283_style"])
    console.print("\nEstimated and removed: the clock of each run, and for all runs together:")
    _show_frame(console, result, find_marker)
    console.print(
        "An offset, rotation or delay that all runs share cannot be determined from these."
    )


def _clock_offset(result: Mapping[str, Any]) -> str:
    """Seconds by which the recording's clock is ahead, to the microsecond also for times since 1970."""
    return f"{Decimal(result['time_offset_ns']).scaleb(-9):.6f}"


def _show_frame(console: Terminal, result: Mapping[str, Any], find_marker: bool) -> None:
    """Where the recording's frame was found to be, and the marker if it was estimated."""
    turn = float(np.linalg.norm(pose.rotation_vectors(np.array(result["transform"][3:]))))
    shift = ", ".join(fixed(value, 4) for value in result["transform"][:3])
    console.print(
        f"  frame   at ({shift}) m in base_link, rotated by {degrees(turn)} degrees", soft_wrap=True
    )
    if find_marker:
        marker = ", ".join(fixed(value * 1e3, 2) for value in result["marker_m"])
        console.print(f"  marker  at ({marker}) mm from the TCP")


def _errors(result: Mapping[str, Any]) -> Table:
    titles = {
        "tracking_error": "tracking",
        "delay_compensated": "delay removed",
        "contour_error": "contour",
    }
    errors = {}
    for key, title in titles.items():
        if result[key] is not None:
            errors[f"{title}, self-reported"] = result[key]["self_reported"]
            errors[f"{title}, external"] = result[key]["witness"]
    errors["external minus self-reported"] = result["witness_minus_self"]
    rows = []
    for title, error in errors.items():
        rotation = error.get("rotation_rad") or {"rms": None, "max": None}
        lengths = (millimetres(error["position_m"][name]) for name in ("rms", "p95", "max"))
        rows.append((title, *lengths, degrees(rotation["rms"]), degrees(rotation["max"])))
    columns = ("error", "RMS mm", "p95 mm", "max mm", "RMS deg", "max deg")
    return table_of(columns, rows, bold=[f"{title}, external" for title in titles.values()])
