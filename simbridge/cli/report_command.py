"""The command `simbridge report`: the pages of a run, or of repeats, written again from what was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from simbridge.cli.error_reporting import print_message
from simbridge.errors import Interrupted, UnknownName
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.repeatability import common_summary
from simbridge.evaluation.summary import Summary, summarize
from simbridge.quoting import shell_quoted
from simbridge.recording.run_directory import RunDirectory, is_of_repeats
from simbridge.recording.run_record import SessionRecord
from simbridge.report import write_report
from simbridge.report.figure_files import FORMATS, write_figures
from simbridge.report.replay import replay_page
from simbridge.report.several_runs import write_repeats_page
from simbridge.report.verdict import tolerance_check
from simbridge.running.signals import number_of


def report(
    run: str, *, figures: str | None = None, format: str = "svg", as_json: bool = False
) -> int:
    """Write report.html and replay.html again; of repeats those of each run and their common page. A summary.json that
    is missing because repeats were killed, or unfinished because an evaluation was interrupted, is written too.

    Numbers and tolerance come from settings.toml, plan.npz and log.mcap. summary.json, where there is one, adds what
    these do not hold: how the run ended, and the control loop's timing. The arguments are the command's flags; in the
    directory of the figures each run of repeats has one of its own.

    Returns:
        The exit status, as of `simbridge run`: 0 for a run that completed and kept its tolerance if it had one, 1 for
        one that missed it, 2 for one that did not complete. The reason for 1 or 2 is printed on standard error.

    Raises:
        NotARun, LogReadError: A part is missing or broken.
        SimbridgeError: The run has no sample.
        OutputError: A page cannot be written.
    """
    path = Path(run)
    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    drawn = None if figures is None else (Path(figures), format)
    try:
        found, pages, status = (
            _report_repeats(path, drawn)
            if is_of_repeats(path)
            else _report_run(path, "The run", drawn)
        )
    except KeyboardInterrupt as error:
        words = f"The report was interrupted; `simbridge report {shell_quoted(run)}` finishes it."
        raise Interrupted(words, number_of(error)) from None
    print(json.dumps(found, indent=2) if as_json else "\n".join(pages))
    return status


def _report_repeats(
    path: Path, figures: tuple[Path, str] | None
) -> tuple[dict[str, Any], list[str], int]:
    directory, summary = RunDirectory(path), common_summary(path)
    write_repeats_page(directory, summary, directory.evaluation())
    found: dict[str, Any] = {"run": str(path), "report": str(directory.report_file), **summary}
    runs, pages, status = [], [found["report"]], 0
    if summary["outcome"] != "completed" and summary["runs"][-1]["outcome"] == "completed":
        print_message(
            f"{summary['completed']} of {summary['repeats']} runs completed: {summary['outcome']}."
        )
        status = 2
    for run in summary["runs"]:
        if run["tracking_error"] is None:
            print_message(f"Run {run['run']} has no sample, and no page: {run['outcome']}.")
            runs.append({**run, "run": str(path / run["run"])})
            status = 2
            continue
        drawn = None if figures is None else (figures[0] / run["run"], figures[1])
        of_run, pages_of_run, status_of_run = _report_run(
            path / run["run"], f"Run {run['run']}", drawn
        )
        runs.append(of_run)
        pages += pages_of_run
        status = max(status, status_of_run)
    return found | {"runs": runs}, pages, status


def _report_run(
    path: Path, name: str, figures: tuple[Path, str] | None
) -> tuple[dict[str, Any], list[str], int]:
    """Write the pages of one run, and its figures (a directory and their format) if they are wanted.

    Returns its facts for --json, the paths of what was written, and the exit status.
    """
    directory = RunDirectory.open(path)
    # The inputs of a session are worth a page also where nothing moved.
    evaluation = (
        Evaluation.of(directory)
        if isinstance(directory.settings(), SessionRecord)
        else Evaluation.read(path)
    )
    earlier: dict[str, Any] = {}
    if directory.summary_file.exists():
        earlier = directory.summary(Summary)
    loop, tolerance = earlier.get("loop"), evaluation.settings.tolerance
    ended_by = earlier.get("ended_by")
    summary = summarize(
        evaluation, evaluation.outcome, ended_by=ended_by, loop=loop, tolerance=tolerance
    )
    if earlier and "samples" not in earlier:
        # Its evaluation was interrupted.
        directory.write_summary(summary)
    pages = {"report": str(directory.report_file)}
    if evaluation.has_samples:
        title = f"{summary['scenario']} on {evaluation.settings.robot.title}: replay"
        directory.write_replay(replay_page(evaluation, title))
        pages["replay"] = str(directory.replay_file)
    write_report(
        evaluation, summary, replay=directory.replay_file.name if evaluation.has_samples else None
    )
    drawn = []
    if figures is not None and evaluation.has_samples:
        drawn = [str(file) for file in write_figures(evaluation, summary, *figures)]
    status = 0
    if summary["outcome"] != "completed":
        print_message(f"{name} did not complete: {summary['outcome'].rstrip('.')}.")
        status = 2
    elif summary["passed"] is False:
        checked = tolerance_check(summary)
        print_message(
            f"{name} is beyond the tolerance{'' if checked is None else f': {checked[1]}'}."
        )
        status = 1
    facts = {
        "run": str(path),
        **pages,
        **({} if figures is None else {"figures": drawn}),
        **summary,
    }
    return facts, [*pages.values(), *drawn], status
