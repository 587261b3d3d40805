"""report.html: one page that says how well a run was tracked, and shows why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simbridge.evaluation import Evaluation

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
    """The command `simbridge report`: write report.html and replay.html anew, from what the run recorded.

    Numbers and tolerance come from settings.toml, plan.npz and log.mcap; of summary.json only what these do not know,
    if it is there: how the run ended, and the control loop's timing.

    Args:
        run: The run directory.
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

    from simbridge.errors import NotARun, SimbridgeError
    from simbridge.evaluation import Evaluation, judged
    from simbridge.recording.run_directory import RunDirectory
    from simbridge.report.replay import replay_page
    from simbridge.report.verdict import judgement
    from simbridge.telling import say

    directory = RunDirectory.open(Path(run))
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
    print(json.dumps({"run": run, **pages, **summary}, indent=2) if as_json else "\n".join(pages.values()))
    if summary["outcome"] != "completed":
        say(f"The run did not complete: {summary['outcome'].rstrip('.')}.")
        return 2
    if summary["passed"] is False:
        found = judgement(summary)
        say(f"Beyond the tolerance{'' if found is None else f': {found[1]}'}.")
        return 1
    return 0
