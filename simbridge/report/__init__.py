"""report.html: one page that says how well a run was tracked, and shows why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from simbridge.evaluation.evaluation import Evaluation

__all__ = ["rewrite", "write_report"]


def write_report(evaluation: Evaluation, summary: dict[str, Any], *, replay: str | None = None) -> None:
    """Write report.html into the run's directory.

    Args:
        evaluation: The run, read back from its directory.
        summary: What summary.json holds (`Evaluation.summary`, with `tolerance` and `passed`).
        replay: The name of the replay beside the page, if there is one.

    Raises:
        OutputDirectoryError: The page cannot be written.
    """
    # Drawing takes half a second to import, and a run that only plans never draws.
    from simbridge.report.page import report_page

    evaluation.directory.write_report(report_page(evaluation, summary, replay=replay))


def rewrite(run: str, *, as_json: bool = False) -> int:
    """The command `simbridge report`: write report.html and replay.html anew, from what the run recorded; of repeated
    runs those of each, and the report of all; if they were killed, their common summary.json as well.

    Numbers and tolerance come from settings.toml, plan.npz and log.mcap; of summary.json only what these do not know,
    if it is there: how the run ended, and the control loop's timing.

    Args:
        run: The run directory, or that of repeats.
        as_json: Print the pages' paths and what summary.json holds, or would hold, as JSON.

    Returns:
        The exit status, as of `simbridge run`: 0 for a run that completed and kept its tolerance if it had one, 1 for
        one that missed it, 2 for one that did not complete. What keeps it from 0 is told on standard error.

    Raises:
        NotARun, LogReadError: A part is missing or broken.
        SimbridgeError: The run has no sample.
        OutputDirectoryError: A page cannot be written.
    """
    import json
    from pathlib import Path

    from simbridge.cli.error_reporting import say
    from simbridge.recording.run_directory import is_of_repeats
    from simbridge.report.repeats_page import rewrite_repeats_page

    if not is_of_repeats(Path(run)):
        found, status = _rewrite_one(Path(run), "The run")
        pages = [found["report"], found["replay"]]
    else:
        found, each = rewrite_repeats_page(Path(run)), []
        pages, status = [found["report"]], 0
        if found["outcome"] != "completed" and found["runs"][-1]["outcome"] == "completed":
            say(f"{found['completed']} of {found['repeats']} runs completed: {found['outcome']}.")
            status = 2
        for one in found["runs"]:
            if one["tracking_error"] is None:
                say(f"Run {one['run']} has no sample, and no page: {one['outcome']}.")
                each.append({**one, "run": str(Path(run) / one["run"])})
                status = 2
                continue
            of_one, its_status = _rewrite_one(Path(run) / one["run"], f"Run {one['run']}")
            each.append(of_one)
            pages += [of_one["report"], of_one["replay"]]
            status = max(status, its_status)
        found["runs"] = each
    print(json.dumps(found, indent=2) if as_json else "\n".join(pages))
    return status


def _rewrite_one(run: Path, called: str) -> tuple[dict[str, Any], int]:
    """The pages of one run: their paths beside what summary.json holds or would hold, and the exit status."""
    from simbridge.cli.error_reporting import say
    from simbridge.errors import NotARun, SimbridgeError
    from simbridge.evaluation.evaluation import Evaluation, judged
    from simbridge.recording.run_directory import RunDirectory
    from simbridge.report.replay import replay_page
    from simbridge.report.verdict import judgement

    directory = RunDirectory.open(run)
    evaluation = Evaluation.of(directory)
    if len(evaluation.log.stamp) == 0:
        raise SimbridgeError(f"{run} holds no sample: the run ended before the arm had reached the start of its plan.")
    try:
        earlier = directory.summary()
    except NotARun:
        earlier = {}
    summary = evaluation.summary(evaluation.outcome, earlier.get("loop"))
    summary |= judged(summary, evaluation.settings.get("tolerance"))
    title = f"{summary['scenario']} on {evaluation.settings['robot']['title']}: replay"
    directory.write_replay(replay_page(evaluation, title))
    write_report(evaluation, summary, replay=directory.replay_file.name)
    pages = {"report": str(directory.report_file), "replay": str(directory.replay_file)}
    status = 0
    if summary["outcome"] != "completed":
        say(f"{called} did not complete: {summary['outcome'].rstrip('.')}.")
        status = 2
    elif summary["passed"] is False:
        found = judgement(summary)
        say(f"{called} is beyond the tolerance{'' if found is None else f': {found[1]}'}.")
        status = 1
    return {"run": str(run), **pages, **summary}, status
