"""Results of runs and of repeated runs in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from simbridge.cli.terminal import say
from simbridge.console import Terminal
from simbridge.evaluation.metrics.tracking import TRACKING_ERROR, known_parts
from simbridge.evaluation.repeatability import RepeatsSummary
from simbridge.evaluation.summary import Summary, shown_metrics
from simbridge.planning.plan import is_slowed_down, slow_down_reason
from simbridge.recording.kinematics_record import describe_kinematics
from simbridge.report.several_runs import repeats_headline
from simbridge.report.verdict import (
    advice,
    contour_sentence,
    delay_sentences,
    headline,
    input_sentences,
    latency_sentence,
    pause_sentence,
    plant_sentences,
)
from simbridge.text import (
    NO_BREAK,
    degrees,
    displayed,
    fixed,
    millimetres,
    milliseconds,
    significant,
    table_of,
)


def show_run(summary: Summary, directory: Path) -> None:
    """Show the tracking error first, then its sources, then the run's files."""
    console = Terminal()
    if not summary["samples"]:
        console.print(f"No sample was recorded. The run is in {directory}", markup=False)
        _say_all(console, _session(summary))
        return
    say(console, headline(summary), style="bold")
    say(console, advice(summary))
    console.print()
    console.print(_budget_table(summary, narrow=console.width < 72))
    console.print()
    _say_all(console, _error_sentences(summary))
    console.print()
    console.print(
        table_of(
            ("metric", "value", "unit"), [row[:3] for row in shown_metrics(summary)], left=("unit",)
        )
    )
    console.print()
    _say_all(console, _remarks(summary))
    _show_judgement(console, summary["passed"], "Within the tolerance.")
    _say_all(console, _session(summary))
    console.print(f"Run:    {directory}", soft_wrap=True, markup=False)
    console.print(f"Report: {directory / 'report.html'}", soft_wrap=True, markup=False)


def _say_all(console: Terminal, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        say(console, sentence)


def _show_judgement(console: Terminal, passed: bool | None, kept: str) -> None:
    if passed is not None:
        console.print(f"[green]{kept}[/green]" if passed else "[red]Beyond the tolerance.[/red]")


def _budget_table(summary: Summary, *, narrow: bool) -> Table:
    """The error budget; a narrow terminal shows fewer columns instead of truncated numbers."""
    positions, rotations = (
        (("rms", "max"), ("rms",)) if narrow else (("rms", "p95", "max"), ("rms", "max"))
    )
    titles = {"rms": "RMS", "p95": "p95", "max": "max"}
    columns = (
        "error",
        *(f"{titles[k]} mm" for k in positions),
        *(f"{titles[k]} deg" for k in rotations),
    )
    errors: Mapping[str, Any] = summary
    parts = (*known_parts(summary), TRACKING_ERROR)
    lines: list[tuple[str, str]] = [
        (f"  {part.name}" if part.of else part.name, part.key) for part in parts
    ]
    lines.append(("delay removed" if narrow else "tracking, delay removed", "delay_compensated"))
    rows = []
    for name, key in lines:
        if (error := errors[key]) is not None:
            lengths = (millimetres(error["position_m"][k]) for k in positions)
            rows.append((name, *lengths, *(degrees(error["rotation_rad"][k]) for k in rotations)))
    return table_of(columns, rows, bold=(TRACKING_ERROR.name,))


def _error_sentences(summary: Summary) -> Iterator[str]:
    """Delays, the plant, contour error and lag, and the RPE: the RMSE of the APE is the RMS of the tracking error."""
    yield delay_sentences(summary)
    yield plant_sentences(summary)
    yield contour_sentence(summary)
    if (relative := summary["relative_pose_error"]) is not None:
        error = f"{millimetres(relative['position_m']['rmse'])} mm, {degrees(relative['rotation_rad']['rmse'])} degrees"
        yield f"Relative pose error over {significant(relative['delta_s'])} s: {error} RMSE."


def _remarks(summary: Summary) -> Iterator[str]:
    """Kinematics, solver, limits; slower motion by the plan or the controller, and the control loop's timing."""
    if (kinematics := describe_kinematics(summary["kinematics"])) != "nominal":
        yield f"Kinematics: {kinematics}."
    yield from summary["solver_notes"]
    if summary["limited_samples"]:
        yield f"The limiter changed {summary['limited_samples']} of {summary['samples']} setpoints."
    duration, trajectory, loop = (
        summary["duration_s"],
        summary["trajectory_duration_s"],
        summary["loop"],
    )
    if is_slowed_down(duration, trajectory, summary["period_s"]):
        why = (
            slow_down_reason(summary["feedforward"])
            if loop is None
            else "by the plan, the controller or the network"
        )
        yield f"Slowed down {why}: {trajectory:.2f} s of trajectory took {duration:.2f} s."
    if loop is not None:
        scaling = summary["speed_scaling"]
        if scaling["min"] < 1.0:
            shares = f"mean {100.0 * scaling['mean']:.0f} %, min {100.0 * scaling['min']:.0f} %"
            yield f"The controller's speed scaling: {shares}."
        if summary["pauses"]["count"]:
            yield pause_sentence(summary["pauses"])
        mean, deviation, p999, longest = (
            milliseconds(loop[name])
            for name in ("period_mean_s", "period_std_s", "period_p999_s", "period_max_s")
        )
        yield (
            f"Loop period: mean {mean} ms, standard deviation {deviation}, p99.9 {p999}, max {longest} ms; missed: "
            f"{loop['missed_deadlines']} deadlines, {loop['missed_states']} states."
        )
    if summary["saturated_samples"]:
        share = f"{summary['saturated_samples']} of {summary['samples']}"
        yield f"A joint torque was at its limit in {share} samples."


def _session(summary: Summary) -> Iterator[str]:
    """Inputs and latency of a live session."""
    if summary["inputs"] is not None and summary["latency"] is not None:
        yield input_sentences(summary["inputs"])
        if latency := latency_sentence(summary["latency"]):
            yield latency


def show_repeats(summary: RepeatsSummary, directory: Path) -> None:
    """Show each run in a line, then the ISO 9283-style figures of all runs."""
    console = Terminal()
    say(console, repeats_headline(summary), style="bold")
    say(
        console,
        f"{summary['completed']} of {summary['repeats']} runs of {summary['scenario']} completed.\n",
    )
    cells = {
        run["run"]: ("no sample",) if run["tracking_error"] is None else run_cells(run)
        for run in summary["runs"]
    }
    console.print(
        table_of(("run", *RUN_COLUMNS), [(name, *of_run) for name, of_run in cells.items()])
    )
    show_iso(console, summary["iso_9283_style"])
    _show_judgement(console, summary["passed"], "All within the tolerance.")
    console.print(f"Runs: {directory}", soft_wrap=True, markup=False)


RUN_COLUMNS = ("RMS mm", "max mm", "RMS deg", "delay ms", "contour mm")


def run_cells(run: Mapping[str, Any]) -> tuple[str, ...]:
    """The cells of a run under RUN_COLUMNS, from its summary."""
    position, rotation = run["tracking_error"]["position_m"], run["tracking_error"]["rotation_rad"]
    contour = run["contour_error"]["position_m"]
    lengths = (millimetres(position["rms"]), millimetres(position["max"]))
    return (
        *lengths,
        degrees(rotation["rms"]),
        milliseconds(run["delay_s"]),
        millimetres(contour["rms"]),
    )


def show_iso(console: Terminal, iso: Mapping[str, Any]) -> None:
    """Show `iso_9283_style` of a JSON file: a line per stop, a line per figure of the path, and what is missing."""
    at_stops = [figure for figure in iso["figures"] if figure["stop"] is not None]
    of_path = [figure for figure in iso["figures"] if figure["stop"] is None]
    if iso["figures"]:
        console.print(f"\nISO 9283-style figures, {iso['witness']}:", soft_wrap=True)
    if at_stops:
        console.print(_stops(at_stops, iso["stops_m"]))
        asked = {figure["symbol"]: figure["asked"] for figure in at_stops}
        console.print(f"Limit band: {millimetres(iso['limit_band_m'])} mm.")
        console.print(
            f"The standard asks for {asked['AP']} cycles for AP and RP, {asked['OV']} for stabilisation time and OV.\n"
        )
    if of_path:
        console.print(_path_figures(of_path))
    for sentence in iso["missing"]:
        console.print(sentence, markup=False)


def _stops(figures: Sequence[Mapping[str, Any]], positions: Sequence[Sequence[float]]) -> Table:
    rows = []
    for number in sorted({figure["stop"] for figure in figures}):
        here = {figure["symbol"]: figure for figure in figures if figure["stop"] == number}
        position = ", ".join(fixed(1e3 * value, 0) for value in positions[number - 1])
        accuracy, repeatability = (millimetres(here[symbol]["value"]) for symbol in ("AP", "RP"))
        time, overshoot = (
            milliseconds(here["stabilisation time"]["value"]),
            millimetres(here["OV"]["value"]),
        )
        rows.append(
            (
                f"{number}",
                position,
                accuracy,
                repeatability,
                time,
                overshoot,
                str(here["AP"]["cycles"]),
            )
        )
    place = f"x,{NO_BREAK}y,{NO_BREAK}z mm"
    return table_of(("stop", place, "AP mm", "RP mm", "stabilisation ms", "OV mm", "cycles"), rows)


def _path_figures(figures: Sequence[Mapping[str, Any]]) -> Table:
    rows = [
        (
            figure["symbol"],
            *displayed(figure["value"], figure["unit"]),
            str(figure["cycles"]),
            str(figure["asked"]),
        )
        for figure in figures
    ]
    return table_of(("figure", "value", "unit", "cycles", "required"), rows, left=("unit",))
