"""Runs the command `simbridge experiment solvers`: runs the suite, shows and keeps its results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simbridge.console import Terminal
from simbridge.errors import Interrupted, InvalidParameter
from simbridge.experiments import SolversParameters
from simbridge.experiments.suite import tables
from simbridge.experiments.suite.csv_file import write_csv
from simbridge.experiments.suite.progress import SuiteProgress
from simbridge.experiments.suite.results import MotionResult, PoseSetResult, SuiteResults
from simbridge.experiments.suite.results_file import (
    RESULTS,
    as_json,
    is_same_work,
    read_results,
    write_results,
)
from simbridge.experiments.suite.solvers_page import PAGE, write_page
from simbridge.experiments.suite.suite import Suite, prepare_suite
from simbridge.experiments.suite.worse import find_worse
from simbridge.json_output import print_json
from simbridge.recording.run_directory import RunDirectory
from simbridge.running.signals import defer_signals, end_on_signals, signal_number
from simbridge.text import counted


def compare_solvers(parameters: SolversParameters) -> int:
    """Run the suite, or the rest that an earlier call with the same directory has left.

    Returns:
        The exit status: 0, or 1 if a result is worse than that of --baseline.

    Raises:
        SimbridgeError: A parameter is wrong, or the directory has other results in it.
        Interrupted: Ctrl-C or another signal came; complete motions and sets are kept.
    """
    parameters.check()
    suite = prepare_suite(parameters)
    baseline = read_baseline(parameters.baseline, suite.results)
    directory = open_directory(parameters.out, suite.results)

    console = Terminal(quiet=parameters.json)
    run_suite(suite, directory, console)

    # Show the results of all motions together.
    if parameters.json:
        print_json({"directory": str(directory), **as_json(suite.results)})
    tables.show_summary(console, suite.results)
    console.print(f"Results: {directory / RESULTS}", soft_wrap=True, markup=False)
    console.print(f"Page:    {directory / PAGE}", soft_wrap=True, markup=False)
    if baseline is None:
        return 0

    # Compare them with the baseline.
    sentences = find_worse(baseline, suite.results)
    is_worse = bool(sentences)
    for sentence in sentences or ["Nothing is worse than in the baseline."]:
        console.print(sentence, soft_wrap=True, markup=False)
    return 1 if is_worse else 0


def read_baseline(path: str | None, results: SuiteResults) -> SuiteResults | None:
    """Return the results that --baseline names; None without --baseline.

    Args:
        path: Path of the file; None without --baseline.
        results: Results that will be compared with the baseline.

    Raises:
        InputFileError: The file cannot be read, or is not a results.json of the suite.
        InvalidParameter: The results in the file are of another arm.
    """
    if path is None:
        return None
    baseline = read_results(Path(path))
    if (baseline.arm.checksum, baseline.arm.task) != (results.arm.checksum, results.arm.task):
        needed = f"the results of {results.arm.name}, not of {baseline.arm.name}"
        raise InvalidParameter("baseline", path, needed)
    return baseline


def open_directory(out: str | None, results: SuiteResults) -> Path:
    """Return the directory of the results: a new one, or that of an earlier call of the command.

    The rows of an earlier call are added to the results.

    Args:
        out: Path of the directory; None for a new one under runs/.
        results: The results, which have no rows yet.

    Raises:
        OutputError: The directory has other files in it, or cannot be created.
        InputFileError: The results.json in the directory cannot be read.
        InvalidParameter: The earlier call had another arm, other solvers or other settings.
    """
    if out is None or not Path(out, RESULTS).is_file():
        return RunDirectory.create(out, "experiment_solvers").path

    earlier = read_results(Path(out, RESULTS))
    if not is_same_work(earlier, results):
        needed = (
            "a new directory, or one of the same command: its results.json is of other settings, "
            "solvers or versions"
        )
        raise InvalidParameter("out", out, needed)
    results.motion_results.extend(earlier.motion_results)
    results.pose_results.extend(earlier.pose_results)
    return Path(out)


def run_suite(suite: Suite, directory: Path, console: Terminal) -> None:
    """Run the suite, show the results as they come, and write them after every motion.

    Args:
        suite: The suite, with the results of an earlier call.
        directory: Directory of the results.
        console: Terminal on which the results are shown.

    Raises:
        Interrupted: Ctrl-C or another signal came; complete motions and sets are kept.
    """
    results = suite.results
    total = len(suite.motions) + len(suite.pose_sets)
    progress = SuiteProgress(total, Terminal(stderr=True))

    # Results of an earlier call are kept.
    kept_count = count_complete(results)
    progress.keep(kept_count)
    if kept_count:
        console.print(
            f"{kept_count} of {total} motions and sets of poses are kept.", soft_wrap=True
        )

    def report(rows: Sequence[MotionResult] | Sequence[PoseSetResult]) -> None:
        """Write all results, and show those of a motion or a set that has just been completed."""
        progress.end()
        # Signals wait, so that both files have the same results.
        with defer_signals():
            write_results(directory, results)
            write_csv(directory, results)
        show_rows(console, results, rows)

    try:
        with end_on_signals():
            write_results(directory, results)
            suite.run(progress.tick, progress.begin, report)
            write_results(directory, results)
    except KeyboardInterrupt as error:
        progress.clear()
        write_page(directory, results)
        complete = f"{count_complete(results)} of {counted(total, 'motion')} and sets of poses"
        # The page shows the results so far.
        message = (
            f"Interrupted: {complete} are complete and kept. Go on with the same command and "
            f"--out {directory}"
        )
        raise Interrupted(message, signal_number(error)) from None
    write_page(directory, results)


def count_complete(results: SuiteResults) -> int:
    """Return the number of motions and sets of poses that are complete."""
    motions = {result.motion for result in results.motion_results}
    pose_sets = {result.pose_set for result in results.pose_results}
    return len(motions) + len(pose_sets)


def show_rows(
    console: Terminal,
    results: SuiteResults,
    rows: Sequence[MotionResult] | Sequence[PoseSetResult],
) -> None:
    """Print the results of one motion or set of poses.

    Args:
        console: Terminal on which the results are shown.
        results: All results, which describe motions, sets and solvers.
        rows: The results of the motion or set, one for each solver.
    """
    motion_rows = [row for row in rows if isinstance(row, MotionResult)]
    pose_rows = [row for row in rows if isinstance(row, PoseSetResult)]
    if motion_rows:
        tables.show_motion(console, results, motion_rows)
    if pose_rows:
        tables.show_pose_set(console, results, pose_rows)
