"""Shows the tables of the suite in the terminal: each motion when complete, all at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from rich.markup import escape
from rich.text import Text

from simbridge.console import Terminal
from simbridge.experiments.outcome import format_number
from simbridge.experiments.suite.results import (
    MotionResult,
    PoseSetResult,
    SolverFacts,
    SuiteResults,
)
from simbridge.experiments.suite.summary import SolverSummary, summarize_solver
from simbridge.ik import VelocityLimits
from simbridge.text import counted, degrees, make_table, millimetres, milliseconds, significant

# Titles of the two tables, by the property of the solvers in them.
TITLES: dict[VelocityLimits, str] = {
    "enforced": "Solvers that keep the joint velocity limits in each step",
    "none": "Solvers that do not keep the joint velocity limits",
}

# Headings of the table of a motion.
MOTION_COLUMNS = (
    "solver",
    "time ratio",
    "median µs",
    "p99 µs",
    "RMS mm",
    "max mm",
    "ideal mm",
    "RMS °",
    "lag ms",
    "speed",
    "acceleration",
    "jerk",
)
# Headings of the table of a set of poses.
POSE_COLUMNS = (
    "solver",
    "solved %",
    "at once %",
    "calls",
    "median µs",
    "p99 µs",
    "left mm",
    "left °",
)
# Headings of the last table, over all motions and sets.
SUMMARY_COLUMNS = (
    "solver",
    "time ratio",
    "median µs",
    "tracking mm",
    "stream mm",
    "lag ms",
    "speed",
    "acceleration",
    "jerk",
    "flips",
    "chatter",
    "drift °",
    "solved %",
)

# Number of characters between two columns.
COLUMN_GAP = 2
# Largest change of a joint over the laps of a closed loop that is not called a drift, rad.
DRIFT = math.radians(0.1)
# Largest excess over a joint's position limit that is not mentioned, rad.
BEYOND_LIMITS = math.radians(0.01)

_Result = TypeVar("_Result", MotionResult, PoseSetResult)


def show_motion(
    console: Terminal, results: SuiteResults, motion_results: Sequence[MotionResult]
) -> None:
    """Print the results of one motion."""
    name = motion_results[0].motion
    facts = next(motion for motion in results.motions if motion.name == name)
    title = f"{facts.name}, {facts.duration_s:.1f} s, {counted(facts.steps, 'step')}"
    _show_heading(console, title, facts.description)
    _show_tables(console, results.solvers, motion_results, MOTION_COLUMNS, _motion_row)


def show_pose_set(
    console: Terminal, results: SuiteResults, pose_results: Sequence[PoseSetResult]
) -> None:
    """Print the results of one set of poses."""
    name = pose_results[0].pose_set
    facts = next(pose_set for pose_set in results.pose_sets if pose_set.name == name)
    _show_heading(console, f"{facts.name}, {counted(facts.poses, 'pose')}", facts.description)
    _show_tables(console, results.solvers, pose_results, POSE_COLUMNS, _pose_row)


def show_summary(console: Terminal, results: SuiteResults) -> None:
    """Print the last two tables, in which each solver has one row, and sentences on them."""
    for limits, title in TITLES.items():
        summaries = []
        for solver in results.solvers:
            if solver.velocity_limits == limits:
                summaries.append(summarize_solver(results, solver.name))
        if summaries:
            faults = {summary.solver: _all_faults(summary) for summary in summaries}
            rows = [_summary_row(summary) for summary in summaries]
            _show_table(console, title, SUMMARY_COLUMNS, rows, faults)
            console.print()
    for sentence in explain(results):
        console.print(sentence, soft_wrap=True, markup=False)


def _show_heading(console: Terminal, title: str, description: str) -> None:
    """Print the heading of a motion or a set of poses."""
    console.print(f"[bold]{escape(title)}[/bold]", soft_wrap=True)
    console.print(description, soft_wrap=True, markup=False)


def _show_tables(
    console: Terminal,
    solvers: Sequence[SolverFacts],
    results: Sequence[_Result],
    columns: tuple[str, ...],
    make_row: Callable[[_Result], tuple[str, ...]],
) -> None:
    """Print a table for each kind of solver that has results.

    Args:
        console: The terminal.
        solvers: Descriptions of the solvers.
        results: Results of a motion or a set of poses, one for each solver.
        columns: Headings of the columns.
        make_row: Function that makes the cells of a result.
    """
    limits_of = {solver.name: solver.velocity_limits for solver in solvers}
    for limits, title in TITLES.items():
        chosen = [result for result in results if limits_of[result.solver] == limits]
        if chosen:
            faults = {result.solver: describe_faults(result) for result in chosen}
            rows = [make_row(result) for result in chosen]
            _show_table(console, title, columns, rows, faults)
    console.print()


def _show_table(
    console: Terminal,
    title: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    faults: Mapping[str, str],
) -> None:
    """Print a table, and below it a line for each solver with faults.

    If the terminal is too narrow, the columns are distributed over several tables.

    Args:
        console: The terminal.
        title: Title of the table.
        columns: Headings of the columns.
        rows: Cells of each row, the solver first.
        faults: Faults of each solver in words, by its name; "" for none.
    """
    console.print(f"[bold]{title}[/bold]", soft_wrap=True)
    for part in _fit_columns(columns, rows, console.width):
        cells = [[row[column] for column in part] for row in rows]
        console.print(make_table([columns[column] for column in part], cells))
    for solver, text in faults.items():
        if text:
            console.print(f"{solver}: {text}", soft_wrap=True, markup=False)


def _fit_columns(
    columns: Sequence[str], rows: Sequence[tuple[str, ...]], width: int
) -> list[list[int]]:
    """Distribute the columns of a table over tables that fit a width.

    Each of these tables has the first column, which names the solvers.

    Args:
        columns: Headings, which may be broken between their words.
        rows: Cells of each row, as rich's markup.
        width: Width of the terminal, characters.

    Returns:
        Indices of the columns of each table.
    """
    # Width of each column, characters. A cell is never broken.
    widths = []
    for heading, *cells in zip(columns, *rows, strict=True):
        heading_words = heading.split()
        cell_texts = [Text.from_markup(cell).plain for cell in cells]
        widths.append(max(len(text) for text in heading_words + cell_texts) + COLUMN_GAP)

    # A column that does not fit any more begins a new table, unless it is the second of its table.
    tables = [[0]]
    free_width = width - widths[0]
    for column in range(1, len(columns)):
        if widths[column] > free_width and len(tables[-1]) > 1:
            tables.append([0])
            free_width = width - widths[0]
        tables[-1].append(column)
        free_width -= widths[column]
    return tables


def _motion_row(result: MotionResult) -> tuple[str, ...]:
    """Return the cells of a solver on a motion; see MOTION_COLUMNS."""
    times = result.times
    ideal = result.reference_error
    shares = result.shares
    share_cells = ("–", "–", "–")
    if shares is not None:
        share_cells = (_share(shares.speed), _share(shares.acceleration), _share(shares.jerk))
    return (
        escape(result.solver),
        significant(times.ratio, decimals=2),
        significant(1e6 * times.median_s),
        significant(1e6 * times.p99_s),
        millimetres(result.error.rms_m),
        millimetres(result.error.max_m),
        "–" if ideal is None else millimetres(ideal.rms_m),
        degrees(result.error.rms_rad),
        milliseconds(result.lag_s),
        *share_cells,
    )


def _pose_row(result: PoseSetResult) -> tuple[str, ...]:
    """Return the cells of a solver on a set of poses; see POSE_COLUMNS."""
    return (
        escape(result.solver),
        f"{100.0 * result.solved:.0f}",
        f"{100.0 * result.solved_at_once:.0f}",
        format_number(result.median_calls),
        _microseconds(result.median_time_s),
        _microseconds(result.p99_time_s),
        millimetres(result.median_error_m),
        degrees(result.median_error_rad),
    )


def _summary_row(summary: SolverSummary) -> tuple[str, ...]:
    """Return the cells of a solver over the whole suite; see SUMMARY_COLUMNS."""
    return (
        escape(summary.solver),
        significant(summary.time_ratio, decimals=2),
        _microseconds(summary.median_time_s),
        millimetres(summary.tracking_error_m),
        millimetres(summary.stream_error_m),
        milliseconds(summary.lag_s),
        _share(summary.speed),
        _share(summary.acceleration),
        _share(summary.jerk),
        str(summary.flips),
        significant(summary.chatter, decimals=2),
        degrees(summary.drift_rad),
        "–" if summary.solved is None else f"{100.0 * summary.solved:.0f}",
    )


def explain(results: SuiteResults) -> list[str]:
    """Return sentences on how to read the tables, and on the solvers that take no part."""
    budget = results.budget
    sentences = [
        "Speed, acceleration and jerk are shares of the joint limits: above 1 (bold) the limit is "
        "exceeded. docs/metrics.md defines every figure.",
        "In the last tables, times, errors and lag are medians over the motions; speed, "
        "acceleration and jerk are the largest over tracking motions whose target does not jump; "
        "flips are added up; chatter and drift are the largest.",
        "RMS and max: from target to tool. Ideal: RMS from the motion of which the targets of a "
        "stream are samples to the tool.",
        f"Time ratio: time per call relative to {results.baseline}, in {budget.passes} passes with "
        f"the solvers in turn. Each solver had {budget.motion_time_s:g} s per motion.",
        f"Single poses: solved within {1e3 * budget.tolerance_m:g} mm, "
        f"{math.degrees(budget.tolerance_rad):g}° and the joint limits, by at most "
        f"{budget.pose_time_s:g} s of computing and {budget.pose_calls} calls "
        f"({budget.pose_motion_s:g} s of motion), restarts included. Every solver attempts every "
        "pose.",
        *results.notes,
    ]
    sentences += [f"{item.name} takes no part: {item.reason}" for item in results.absent]
    return sentences


def describe_faults(result: MotionResult | PoseSetResult) -> str:
    """Return everything that went wrong on a motion or a set of poses, in words; "" for nothing."""
    parts = [f"{fault.count} × {fault.kind}" for fault in result.faults]
    if isinstance(result, PoseSetResult):
        return ", ".join(parts)

    if result.too_slow:
        parts.insert(0, f"too slow: {result.steps_done} of {counted(result.steps, 'step')}")
    if result.beyond_limits_rad > BEYOND_LIMITS:
        parts.append(f"{degrees(result.beyond_limits_rad)}° beyond a position limit")
    if result.flips:
        parts.append(counted(result.flips, "flip"))
    if result.drift_rad is not None and result.drift_rad > DRIFT:
        parts.append(f"drift {degrees(result.drift_rad)}°")
    return ", ".join(parts)


def _all_faults(summary: SolverSummary) -> str:
    """Return the failures of a solver in all motions and sets of poses, in words; "" for none."""
    parts = [f"{count} × {kind}" for kind, count in summary.faults.items()]
    if summary.slow:
        parts.insert(0, f"too slow {counted(summary.slow, 'time')}")
    return ", ".join(parts)


def _share(value: float | None) -> str:
    """Return a share of a limit, in bold if it exceeds the limit."""
    text = significant(value, decimals=2)
    return f"[bold]{text}[/bold]" if value is not None and value > 1.0 else text


def _microseconds(seconds: float | None) -> str:
    """Return a time, s, as text in µs; a dash for None."""
    return significant(None if seconds is None else 1e6 * seconds)
