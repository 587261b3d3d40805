"""The command `simbridge report`: the pages of a run, or of repeats, written again from its log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simbridge.cli.error_reporting import print_message
from simbridge.cli.flags import ReportFlags
from simbridge.errors import Interrupted
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.repeats_summary import common_summary
from simbridge.evaluation.summary import Summary, summarize
from simbridge.json_output import print_json
from simbridge.quoting import shell_quoted
from simbridge.recording.run_directory import RunDirectory, is_of_repeats
from simbridge.recording.run_record import SessionRecord
from simbridge.report import write_report
from simbridge.report.figure_files import check_figure_format, write_figures
from simbridge.report.repeats_page import write_repeats_page
from simbridge.report.replay import replay_page
from simbridge.report.verdict import tolerance_check
from simbridge.running.signals import signal_number

# Exit statuses, as those of `simbridge run`.
COMPLETED = 0
TOLERANCE_MISSED = 1
NOT_COMPLETED = 2


@dataclass(frozen=True)
class FigureFiles:
    """Figures for a paper that are to be written.

    Attributes:
        directory: For the files; of repeats each run has its own below it.
        format: "svg" or "pdf".
    """

    directory: Path
    format: str


@dataclass(frozen=True)
class RewrittenReport:
    """The result of writing pages again.

    Attributes:
        facts: For --json.
        files: Paths of what was written.
        status: The exit status.
    """

    facts: dict[str, Any]
    files: list[str]
    status: int


def report(flags: ReportFlags) -> int:
    """Write report.html and replay.html again; of repeats those of each run and their common page.

    A summary.json that is missing because repeats were killed, or unfinished because an evaluation
    was interrupted, is written too.

    Numbers and tolerance come from settings.toml, plan.npz and log.mcap. summary.json, where there
    is one, adds what these do not hold: how the run ended, and the control loop's timing. In the
    directory of the figures each run of repeats has one of its own.

    Returns:
        The exit status, as of `simbridge run`: 0 for a run that completed and kept its tolerance if
        it had one, 1 for one that missed it, 2 for one that did not complete. The reason for 1 or 2
        is printed on standard error.

    Raises:
        NotARun, LogReadError: A part is missing or broken.
        SimbridgeError: The run has no sample.
        OutputError: A page cannot be written.
    """
    path = Path(flags.run)
    check_figure_format(flags.format)
    figures = None
    if flags.figures is not None:
        figures = FigureFiles(Path(flags.figures), flags.format)

    try:
        if is_of_repeats(path):
            rewritten = _report_repeats(path, figures)
        else:
            rewritten = _report_run(path, "The run", figures)
    except KeyboardInterrupt as error:
        command = f"simbridge report {shell_quoted(flags.run)}"
        message = f"The report was interrupted; `{command}` completes it."
        raise Interrupted(message, signal_number(error)) from None

    if flags.as_json:
        print_json(rewritten.facts)
    else:
        print("\n".join(rewritten.files))
    return rewritten.status


def _report_repeats(path: Path, figures: FigureFiles | None) -> RewrittenReport:
    """Write the common page of repeats, and the pages of each run.

    Args:
        path: Directory of the repeats.
        figures: The figures that are wanted, if any.
    """
    directory = RunDirectory(path)
    summary = common_summary(path)
    write_repeats_page(directory, summary, directory.evaluation())
    facts: dict[str, Any] = {
        "run": str(path),
        "report": str(directory.report_file),
        **summary,
    }
    files = [str(directory.report_file)]
    status = COMPLETED

    # Repeats that ended early although the last run completed.
    if summary["outcome"] != "completed" and summary["runs"][-1]["outcome"] == "completed":
        count = f"{summary['completed']} of {summary['repeats']} runs completed"
        print_message(f"{count}: {summary['outcome']}.")
        status = NOT_COMPLETED

    runs: list[dict[str, Any]] = []
    for run in summary["runs"]:
        name = run["run"]
        if run["tracking_error"] is None:
            print_message(f"Run {name} has no samples, and therefore no page: {run['outcome']}.")
            runs.append({**run, "run": str(path / name)})
            status = NOT_COMPLETED
            continue

        run_figures = None
        if figures is not None:
            run_figures = FigureFiles(figures.directory / name, figures.format)
        rewritten = _report_run(path / name, f"Run {name}", run_figures)
        runs.append(rewritten.facts)
        files += rewritten.files
        status = max(status, rewritten.status)

    return RewrittenReport({**facts, "runs": runs}, files, status)


def _report_run(path: Path, name: str, figures: FigureFiles | None) -> RewrittenReport:
    """Write the pages of one run, and its figures if they are wanted.

    Args:
        path: Path of the run's directory.
        name: Name of the run, for messages.
        figures: The figures that are wanted, if any.
    """
    directory = RunDirectory.open(path)
    # The inputs of a session are worth a page also where nothing moved.
    is_session = isinstance(directory.settings(), SessionRecord)
    evaluation = Evaluation.of(directory) if is_session else Evaluation.read(path)
    summary = _summarize_again(directory, evaluation)

    # The pages.
    pages = {"report": str(directory.report_file)}
    replay = None
    if evaluation.has_samples:
        title = f"{summary['scenario']} on {evaluation.settings.robot.title}: replay"
        directory.write_replay(replay_page(evaluation, title))
        replay = directory.replay_file.name
        pages["replay"] = str(directory.replay_file)
    write_report(evaluation, summary, replay=replay)

    # The figures.
    drawn: list[str] = []
    if figures is not None and evaluation.has_samples:
        paths = write_figures(evaluation, summary, figures.directory, figures.format)
        drawn = [str(file) for file in paths]

    facts: dict[str, Any] = {"run": str(path), **pages}
    if figures is not None:
        facts["figures"] = drawn
    facts.update(summary)
    return RewrittenReport(facts, [*pages.values(), *drawn], _judge(name, summary))


def _summarize_again(directory: RunDirectory, evaluation: Evaluation) -> Summary:
    """Return the summary of a run, and write it where the run's evaluation was interrupted.

    A run without summary.json gets none: how it ended was not recorded.
    """
    earlier: dict[str, Any] = {}
    if directory.summary_file.exists():
        earlier = directory.summary(Summary)

    summary = summarize(
        evaluation,
        evaluation.outcome,
        ended_by=earlier.get("ended_by"),
        loop=earlier.get("loop"),
        tolerance=evaluation.settings.tolerance,
    )
    # A run first writes how it ended. All else, such as `samples`, follows when it is evaluated.
    if earlier and "samples" not in earlier:
        directory.write_summary(summary)
    return summary


def _judge(name: str, summary: Summary) -> int:
    """Return the exit status of a run, and say on standard error why it is not 0."""
    if summary["outcome"] != "completed":
        print_message(f"{name} did not complete: {summary['outcome'].rstrip('.')}.")
        return NOT_COMPLETED
    if summary["passed"] is False:
        check = tolerance_check(summary)
        reason = "" if check is None else f": {check[1]}"
        print_message(f"{name} exceeds the tolerance{reason}.")
        return TOLERANCE_MISSED
    return COMPLETED
