"""Makes the page solvers.html, on which solver is the best for what, from results.json alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simbridge.experiments.outcome import solver_colour
from simbridge.experiments.suite.answers import (
    about_rivals,
    find_answers,
    headline,
    stream_acceleration,
)
from simbridge.experiments.suite.page_figures import draw_trade, draw_worst_moment
from simbridge.experiments.suite.results import (
    CallFault,
    MotionResult,
    PoseSetResult,
    SolverFacts,
    SuiteResults,
)
from simbridge.experiments.suite.summary import SolverSummary, ideal_error, summarize_solver
from simbridge.files.writing import write_file
from simbridge.report.drawing import drawing_style
from simbridge.report.rendering import CaptionedDrawing, render
from simbridge.text import counted, millimetres, significant

# Name of the page in the directory of an experiment.
PAGE = "solvers.html"
# Largest share of a limit that does not count as exceeding it: the excess is rounding.
EXCEEDED = 1.001
# Largest excess over a joint's position limit that is not shown, rad or m: it is rounding.
MIN_EXCESS_RAD = 1e-6
# Error at which the logarithmic bars of errors begin, m.
SMALLEST_BAR_M = 1e-6
# Time at which the logarithmic bars of times begin, s.
SMALLEST_BAR_S = 1e-6
# Smallest error that is shown without decimals in the narrow columns of solvers, mm.
WHOLE_MM = 100.0

# Headings of the table of solvers.
SUMMARY_HEADS = (
    "Solver",
    "paths",
    "streams",
    "speed, paths",
    "accel., streams",
    "chatter",
    "flips",
    "solved, %",
    "per call, µs",
    "ratio",
    "Faults",
)
# Headings above these, each with the number of columns that it spans.
SUMMARY_GROUPS = (
    ("", 1),
    ("RMS error, mm", 2),
    ("shares of a limit", 3),
    ("", 1),
    ("poses", 1),
    ("time", 2),
    ("", 1),
)


@dataclass(frozen=True)
class TableCell:
    """A cell of a table.

    Attributes:
        text: Value that the cell shows.
        bar: Length of the cell's bar, 0 to 1; None for no bar.
        colour: Colour of the bar.
        exceeds: Whether the value exceeds a limit, or is otherwise wrong, and stands out.
        remark: Text below the value; "" for none.
    """

    text: str
    bar: float | None = None
    colour: str = ""
    exceeds: bool = False
    remark: str = ""


@dataclass(frozen=True)
class SolverTables:
    """The solvers that enforce velocity limits in their step, or those that do not.

    Attributes:
        title: Heading of the tables.
        note: Sentence about the solvers in the tables.
        solvers: Names of the solvers.
        summary: A row for each solver: its name, and a cell for each column after it.
        motions: A row for each motion: its name, its description, and a cell for each solver.
        poses: A row for each set of poses: its name, its description, and a cell for each solver.
    """

    title: str
    note: str
    solvers: Sequence[str]
    summary: Sequence[tuple[str, Sequence[TableCell]]]
    motions: Sequence[tuple[str, str, Sequence[TableCell]]]
    poses: Sequence[tuple[str, str, Sequence[TableCell]]]


def write_page(directory: Path, results: SuiteResults) -> None:
    """Write solvers.html into a directory."""
    page = solvers_page(results)
    write_file(directory / PAGE, page.encode(), follow_links=False)


def solvers_page(results: SuiteResults) -> str:
    """Return the whole page as HTML."""
    answers = find_answers(results)
    with drawing_style():
        trade = draw_trade(results)
        worst_moments = _draw_worst_moments(results)

    return render(
        "solvers.html",
        title=f"Solvers compared on {results.arm.title}",
        results=results,
        headline=headline(answers),
        rivals=about_rivals(answers),
        rival_names=[solver.name for solver in results.solvers if solver.origin == "rival"],
        answers=answers,
        tables=_make_tables(results),
        summary_heads=SUMMARY_HEADS,
        summary_groups=SUMMARY_GROUPS,
        trade=trade,
        worst_moments=worst_moments,
        descriptions=[
            *((motion.name, motion.description) for motion in results.motions),
            *((pose_set.name, pose_set.description) for pose_set in results.pose_sets),
        ],
        versions=_list_versions(results.solvers),
    )


def _make_tables(results: SuiteResults) -> list[SolverTables]:
    """Return the tables of solvers that enforce velocity limits, and of those that do not."""
    # Title and note of the tables, by the property of the solvers in them.
    kinds = {
        "none": (
            "Solvers that do not limit velocity",
            "They go to the target however fast the joints would have to move: a share above 1 "
            "(bold) has to be cut by a limiter, which adds error of its own.",
        ),
        "enforced": (
            "Solvers that keep velocity limits in their step",
            "A joint moves no faster than it can, at the cost of error: their errors are not to be "
            "compared with those of the other table where those exceed a limit.",
        ),
    }
    tables = []
    for kind, (title, note) in kinds.items():
        solvers = [solver for solver in results.solvers if solver.velocity_limits == kind]
        if solvers:
            names = [solver.name for solver in solvers]
            tables.append(
                SolverTables(
                    title=title,
                    note=note,
                    solvers=names,
                    summary=_summary_rows(results, names),
                    motions=_motion_rows(results, names),
                    poses=_pose_rows(results, names),
                )
            )
    return tables


def _summary_rows(
    results: SuiteResults, solvers: Sequence[str]
) -> list[tuple[str, list[TableCell]]]:
    """Return a row for each solver; bars compare it with all solvers of both tables."""
    summaries = [summarize_solver(results, solver.name) for solver in results.solvers]
    largest_error = max(
        max(summary.tracking_error_m or 0.0, summary.stream_error_m or 0.0) for summary in summaries
    )
    longest_time = max(summary.median_time_s or 0.0 for summary in summaries)

    rows = []
    for summary in summaries:
        if summary.solver not in solvers:
            continue
        acceleration = stream_acceleration(results, summary.solver)
        shares = (summary.speed, acceleration, summary.chatter)
        cells = _summary_cells(summary, shares, largest_error, longest_time=longest_time)
        rows.append((summary.solver, cells))
    return rows


def _summary_cells(
    summary: SolverSummary,
    shares: Sequence[float | None],
    largest_error: float,
    *,
    longest_time: float,
) -> list[TableCell]:
    """Return the cells of a solver in the table of solvers.

    Args:
        summary: Figures of the solver.
        shares: Shares of limits, one for each column of shares; None if there is no result.
        largest_error: Error with the longest bar, m.
        longest_time: Time with the longest bar, s.
    """
    colour = solver_colour(summary.solver)
    cells = []
    for error in (summary.tracking_error_m, summary.stream_error_m):
        bar = _logarithmic_bar(error, SMALLEST_BAR_M, largest_error)
        cells.append(TableCell(_short_millimetres(error), bar, colour))
    cells += [_limit_share_cell(limit_share) for limit_share in shares]

    solved = None if summary.solved is None else 100.0 * summary.solved
    time = summary.median_time_s
    time_bar = _logarithmic_bar(time, SMALLEST_BAR_S, longest_time)
    microseconds = None if time is None else 1e6 * time
    cells += [
        TableCell(str(summary.flips), exceeds=summary.flips > 0),
        TableCell("–" if solved is None else f"{solved:.3g}"),
        TableCell(significant(microseconds, decimals=1), time_bar, colour),
        TableCell(significant(summary.time_ratio, 2, 2)),
        TableCell(_fault_text(summary.faults, summary.slow)),
    ]
    return cells


def _motion_rows(
    results: SuiteResults, solvers: Sequence[str]
) -> list[tuple[str, str, list[TableCell]]]:
    """Return a row for each motion with the error of each solver."""
    by_key = {(result.motion, result.solver): result for result in results.motion_results}
    rows = []
    for motion in results.motions:
        errors = [
            ideal_error(result) for result in results.motion_results if result.motion == motion.name
        ]
        largest = max(errors, default=0.0)
        cells = [_motion_cell(by_key.get((motion.name, solver)), largest) for solver in solvers]
        rows.append((motion.name, motion.description, cells))
    return rows


def _motion_cell(result: MotionResult | None, largest: float) -> TableCell:
    """Return the cell of a solver on a motion.

    Args:
        result: Result of the solver on the motion; None if there is none yet.
        largest: Error with the longest bar in the row, m.
    """
    if result is None:
        return TableCell("–")

    # Everything that is wrong with the result; the value then stands out.
    remarks = []
    if result.shares is not None and result.shares.speed > EXCEEDED:
        remarks.append(f"speed × {significant(result.shares.speed, 2)}")
    if result.beyond_limits_rad > MIN_EXCESS_RAD:
        remarks.append("beyond a joint limit")
    if result.flips:
        remarks.append(counted(result.flips, "flip"))
    if result.faults:
        remarks.append(_fault_text(_count_faults(result.faults), slow=0))
    if result.too_slow:
        remarks.append(f"too slow: {result.steps_done} of {result.steps} steps")

    error = ideal_error(result)
    return TableCell(
        text=_short_millimetres(error),
        bar=_logarithmic_bar(error, SMALLEST_BAR_M, largest),
        colour=solver_colour(result.solver),
        exceeds=bool(remarks),
        remark=", ".join(remarks),
    )


def _pose_rows(
    results: SuiteResults, solvers: Sequence[str]
) -> list[tuple[str, str, list[TableCell]]]:
    """Return a row for each set of poses with the share that each solver solved."""
    by_key = {(result.pose_set, result.solver): result for result in results.pose_results}
    rows = []
    for pose_set in results.pose_sets:
        cells = [
            _pose_cell(by_key.get((pose_set.name, solver)), reachable=pose_set.reachable)
            for solver in solvers
        ]
        rows.append((pose_set.name, pose_set.description, cells))
    return rows


def _pose_cell(result: PoseSetResult | None, *, reachable: bool) -> TableCell:
    """Return the cell of a solver on a set of poses.

    Args:
        result: Result of the solver on the set; None if there is none yet.
        reachable: Whether the poses are within reach.
    """
    if result is None:
        return TableCell("–")
    faults = _count_faults(result.faults)
    return TableCell(
        text=f"{100.0 * result.solved:.3g} %",
        bar=result.solved,
        colour=solver_colour(result.solver),
        # A pose out of reach that counts as solved would be a false answer.
        exceeds=not reachable and result.solved > 0.0,
        remark=_fault_text(faults, slow=0) if faults else "",
    )


def _draw_worst_moments(results: SuiteResults) -> list[CaptionedDrawing]:
    """Return a picture for each motion: the largest error of any solver that completed it."""
    drawings = []
    for motion in results.motions:
        complete = [
            result
            for result in results.motion_results
            if result.motion == motion.name and not result.faults and not result.too_slow
        ]
        if complete:
            worst = max(complete, key=lambda result: result.error.max_m)
            drawings.append(draw_worst_moment(worst))
    return drawings


def _logarithmic_bar(value: float | None, smallest: float, largest: float) -> float | None:
    """Return the length of a bar on a logarithmic scale, 0 to 1; None without a value.

    Args:
        value: The value.
        smallest: Value of a bar without length.
        largest: Value of a bar of length 1.
    """
    if value is None:
        return None
    if value <= smallest or largest <= smallest:
        return 0.0
    return math.log(value / smallest) / math.log(largest / smallest)


def _short_millimetres(metres: float | None) -> str:
    """Return an error, m, as text in mm for a narrow column."""
    if metres is not None and 1e3 * metres >= WHOLE_MM:
        return f"{1e3 * metres:.0f}"
    return millimetres(metres)


def _limit_share_cell(limit_share: float | None) -> TableCell:
    """Return the cell of a share of a limit; a share above 1 stands out."""
    exceeds = limit_share is not None and limit_share > EXCEEDED
    return TableCell(significant(limit_share, 2, 2), exceeds=exceeds)


def _count_faults(faults: Sequence[CallFault]) -> dict[str, int]:
    """Return the number of faults by kind."""
    return {fault.kind: fault.count for fault in faults}


def _fault_text(faults: Mapping[str, int], slow: int) -> str:
    """Return faults by kind and count as text; a dash if there are none.

    Args:
        faults: Number of failed calls by kind.
        slow: Number of motions for which the solver was too slow.
    """
    parts = [f"{count} × {kind}" for kind, count in faults.items()]
    if slow:
        parts.append(f"{slow} × too slow")
    return ", ".join(parts) or "–"


def _list_versions(solvers: Sequence[SolverFacts]) -> list[tuple[str, str]]:
    """Return the name of each solver that calls other packages, with their versions as text."""
    rows = []
    for solver in solvers:
        versions = [f"{package} {version}" for package, version in solver.versions.items()]
        if versions:
            rows.append((solver.name, ", ".join(versions)))
    return rows
