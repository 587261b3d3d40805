"""Results of runs and of repeated runs in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from simbridge.cli.terminal import NARROW_COLUMNS, say
from simbridge.console import Terminal
from simbridge.evaluation.metrics.tracking import TRACKING_ERROR, known_parts
from simbridge.evaluation.repeats_summary import RepeatsSummary
from simbridge.evaluation.summary import Summary, shown_metrics
from simbridge.planning.plan import is_slowed_down, slow_down_reason
from simbridge.recording.kinematics_record import describe_kinematics
from simbridge.report.repeats_page import repeats_headline
from simbridge.report.verdict import (
    PARTS_CANCEL,
    advice,
    contour_sentence,
    delay_sentences,
    headline,
    input_sentences,
    latency_sentence,
    parts_cancel,
    pause_sentence,
    plant_sentences,
    tolerance_check,
)
from simbridge.text import (
    NO_BREAK,
    degrees,
    displayed,
    fixed,
    make_table,
    millimetres,
    milliseconds,
    significant,
)

# Headings above the cells of a run; see `run_cells`.
RUN_COLUMNS = ("RMS mm", "max mm", "RMS deg", "delay ms", "contour mm")

# Headings of statistics, by their key in a summary.
STATISTICS = {"rms": "RMS", "p95": "p95", "max": "max"}


def show_run(summary: Summary, directory: Path, *, verbose: bool = False) -> None:
    """Show the tracking error, its parts, and what a user must know of the run.

    Args:
        summary: The run's.
        directory: The run's.
        verbose: Whether to show everything that is known, as on the page.
    """
    console = Terminal()
    if not summary["samples"]:
        console.print(f"No samples were recorded. The run is in {directory}", markup=False)
        _say_all(console, _session_sentences(summary))
        return

    say(console, headline(summary), style="bold")
    say(console, advice(summary))
    is_compact = not verbose or console.width < NARROW_COLUMNS
    console.print(_budget_table(summary, compact=is_compact))
    if parts_cancel(summary, inner=not is_compact):
        say(console, PARTS_CANCEL)
    if verbose:
        _show_more(console, summary)

    _say_all(console, _remarks(summary))
    _show_judgement(console, summary)
    _say_all(console, _session_sentences(summary))
    console.print(f"Report: {directory / 'report.html'}", soft_wrap=True, markup=False)


def _show_more(console: Terminal, summary: Summary) -> None:
    """Show delays, plant, contour error, relative pose error, metrics and the loop's timing."""
    console.print()
    _say_all(console, _error_sentences(summary))
    console.print()

    metrics = [row[:3] for row in shown_metrics(summary)]
    console.print(make_table(("metric", "value", "unit"), metrics, left=("unit",)))
    console.print()
    _say_all(console, _period_sentences(summary))


def _say_all(console: Terminal, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        say(console, sentence)


def _show_judgement(console: Terminal, summary: Summary) -> None:
    """Say whether the tolerance was kept, and by how much not; nothing where there was none."""
    check = tolerance_check(summary)
    if check is None:
        return
    passed, comparison = check
    if passed:
        console.print("[green]Within the tolerance.[/green]")
    elif summary["outcome"] != "completed":
        console.print("[red]Tolerance not met: the run did not complete.[/red]")
    else:
        say(console, f"Tolerance exceeded: {comparison}.", style="red")


def _budget_table(summary: Summary, *, compact: bool) -> Table:
    """Return the error budget; a compact one has fewer columns and rows, not truncated numbers."""
    position_keys = ("rms", "max") if compact else ("rms", "p95", "max")
    rotation_keys = ("rms",) if compact else ("rms", "max")
    columns = (
        "error",
        *(f"{STATISTICS[key]} mm" for key in position_keys),
        *(f"{STATISTICS[key]} deg" for key in rotation_keys),
    )

    # A TypedDict takes only literal keys.
    values: Mapping[str, Any] = summary
    rows = []
    for title, key in _budget_lines(summary, compact=compact):
        error = values[key]
        if error is not None:
            distances = [millimetres(error["position_m"][name]) for name in position_keys]
            angles = [degrees(error["rotation_rad"][name]) for name in rotation_keys]
            rows.append((title, *distances, *angles))
    return make_table(columns, rows, bold=(TRACKING_ERROR.name,))


def _budget_lines(summary: Summary, *, compact: bool) -> list[tuple[str, str]]:
    """Return the titles of the rows of the error budget, and their keys in the summary."""
    parts = [*known_parts(summary), TRACKING_ERROR]
    if compact:
        return [(part.name, part.key) for part in parts if not part.whole]

    lines: list[tuple[str, str]] = []
    for part in parts:
        lines.append((f"  {part.name}" if part.whole else part.name, part.key))
    return [*lines, ("tracking, delay removed", "delay_compensated")]


def _error_sentences(summary: Summary) -> Iterator[str]:
    """Yield sentences on delays, the plant, contour error and lag, and the RPE.

    The RMSE of the APE is the RMS of the tracking error.
    """
    yield delay_sentences(summary)
    yield plant_sentences(summary)
    yield contour_sentence(summary)

    relative = summary["relative_pose_error"]
    if relative is not None:
        distance = millimetres(relative["position_m"]["rmse"])
        angle = degrees(relative["rotation_rad"]["rmse"])
        interval = significant(relative["delta_s"])
        yield f"Relative pose error over {interval} s: {distance} mm, {angle} degrees RMSE."


def _remarks(summary: Summary) -> Iterator[str]:
    """Yield sentences on what a user must know: plant, solver, limits, slow-down, pauses."""
    for note in summary["plant_notes"]:
        yield f"Note: {note}"
    kinematics = describe_kinematics(summary["kinematics"])
    if kinematics != "nominal":
        yield f"Kinematics: {kinematics}."
    yield from summary["solver_notes"]
    if summary["limited_samples"]:
        yield f"The limiter changed {summary['limited_samples']} of {summary['samples']} setpoints."

    duration = summary["duration_s"]
    trajectory_duration = summary["trajectory_duration_s"]
    if is_slowed_down(duration, trajectory_duration, summary["period_s"]):
        reason = "by the plan, the controller or the network"
        if summary["loop"] is None:
            reason = slow_down_reason(summary["feedforward"])
        yield (
            f"Slowed down {reason}: {trajectory_duration:.2f} s of trajectory took "
            f"{duration:.2f} s."
        )

    yield from _loop_sentences(summary)
    if summary["saturated_samples"]:
        count = f"{summary['saturated_samples']} of {summary['samples']}"
        yield f"A joint torque was at its limit in {count} samples."


def _loop_sentences(summary: Summary) -> Iterator[str]:
    """Yield sentences on speed scaling, pauses and losses of a run on a controller."""
    loop = summary["loop"]
    if loop is None:
        return

    scaling = summary["speed_scaling"]
    if scaling["min"] < 1.0:
        mean_percent = 100.0 * scaling["mean"]
        min_percent = 100.0 * scaling["min"]
        yield (
            f"The controller's speed scaling: mean {mean_percent:.0f} %, min {min_percent:.0f} %."
        )
    if summary["pauses"]["count"]:
        yield pause_sentence(summary["pauses"])

    if loop["missed_deadlines"] or loop["missed_states"]:
        yield (
            f"Missed: {loop['missed_deadlines']} deadlines, {loop['missed_states']} controller "
            "states."
        )


def _period_sentences(summary: Summary) -> Iterator[str]:
    """Yield a sentence on the periods of a run on a controller."""
    loop = summary["loop"]
    if loop is None:
        return

    mean = milliseconds(loop["period_mean_s"])
    deviation = milliseconds(loop["period_std_s"])
    p999 = milliseconds(loop["period_p999_s"])
    longest = milliseconds(loop["period_max_s"])
    yield (
        f"Loop period: mean {mean} ms, standard deviation {deviation}, p99.9 {p999}, max {longest} "
        "ms."
    )


def _session_sentences(summary: Summary) -> Iterator[str]:
    """Yield sentences on inputs and latency of a live session."""
    if summary["inputs"] is None or summary["latency"] is None:
        return
    yield input_sentences(summary["inputs"])
    latency = latency_sentence(summary["latency"])
    if latency:
        yield latency


def show_repeats(summary: RepeatsSummary, directory: Path) -> None:
    """Show each run in a line, then the ISO 9283-style figures of all runs."""
    console = Terminal()
    say(console, repeats_headline(summary), style="bold")
    count = f"{summary['completed']} of {summary['repeats']} runs"
    say(console, f"{count} of {summary['scenario']} completed.\n")

    rows = []
    for run in summary["runs"]:
        cells = ("no sample",) if run["tracking_error"] is None else run_cells(run)
        rows.append((run["run"], *cells))
    console.print(make_table(("run", *RUN_COLUMNS), rows))

    show_iso(console, summary["iso_9283_style"])
    if summary["passed"] is not None:
        passed = "[green]All within the tolerance.[/green]"
        console.print(passed if summary["passed"] else "[red]Tolerance exceeded.[/red]")
    console.print(f"Runs: {directory}", soft_wrap=True, markup=False)


def run_cells(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a run under RUN_COLUMNS, from its summary."""
    position = run["tracking_error"]["position_m"]
    rotation = run["tracking_error"]["rotation_rad"]
    contour = run["contour_error"]["position_m"]
    return (
        millimetres(position["rms"]),
        millimetres(position["max"]),
        degrees(rotation["rms"]),
        milliseconds(run["delay_s"]),
        millimetres(contour["rms"]),
    )


def show_iso(console: Terminal, iso: Mapping[str, Any]) -> None:
    """Show the figures in the style of ISO 9283: a line per stop, one per figure of the path.

    Args:
        console: The console that they are printed on.
        iso: The figures, as `IsoFigures`: `iso_9283_style` of the summary.json of repeated runs, or
            of an evaluation with an external measurement.
    """
    stop_figures = [figure for figure in iso["figures"] if figure["stop"] is not None]
    path_figures = [figure for figure in iso["figures"] if figure["stop"] is None]
    # The witness says who measured the poses: "self-reported" by the arm, or "external".
    if iso["figures"]:
        console.print(f"\nISO 9283-style figures, {iso['witness']}:", soft_wrap=True)

    if stop_figures:
        console.print(_stop_table(stop_figures, iso["stops_m"]))
        required_cycles = {figure["symbol"]: figure["asked"] for figure in stop_figures}
        console.print(f"Limit band: {millimetres(iso['limit_band_m'])} mm.")
        console.print(
            f"The standard requires {required_cycles['AP']} cycles for AP and RP, "
            f"{required_cycles['OV']} for stabilisation time and OV.\n"
        )
    if path_figures:
        console.print(_path_table(path_figures))
    for sentence in iso["missing"]:
        console.print(sentence, markup=False)


def _stop_table(
    figures: Sequence[Mapping[str, Any]], positions: Sequence[Sequence[float]]
) -> Table:
    """Return a table with a row for each stop.

    Args:
        figures: Figures of all stops.
        positions: Positions of the stops, in the order of their numbers from 1, m.
    """
    rows = []
    for stop in sorted({figure["stop"] for figure in figures}):
        by_symbol = {figure["symbol"]: figure for figure in figures if figure["stop"] == stop}
        position = ", ".join(fixed(1e3 * value, 0) for value in positions[stop - 1])
        rows.append(
            (
                f"{stop}",
                position,
                millimetres(by_symbol["AP"]["value"]),
                millimetres(by_symbol["RP"]["value"]),
                milliseconds(by_symbol["stabilisation time"]["value"]),
                millimetres(by_symbol["OV"]["value"]),
                str(by_symbol["AP"]["cycles"]),
            )
        )

    position_title = f"x,{NO_BREAK}y,{NO_BREAK}z mm"
    columns = ("stop", position_title, "AP mm", "RP mm", "stabilisation ms", "OV mm", "cycles")
    return make_table(columns, rows)


def _path_table(figures: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table with a row for each figure of the path."""
    rows = []
    for figure in figures:
        value, unit = displayed(figure["value"], figure["unit"])
        rows.append((figure["symbol"], value, unit, str(figure["cycles"]), str(figure["asked"])))
    return make_table(("figure", "value", "unit", "cycles", "required"), rows, left=("unit",))
