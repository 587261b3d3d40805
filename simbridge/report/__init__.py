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


def rewrite(run: str) -> int:
    """The command `simbridge report`: write report.html and replay.html anew, from what the run recorded.

    Numbers come from settings.toml, plan.npz and log.mcap; of summary.json only what these do not know, if it is
    there: how the run ended, the control loop's timing, the tolerance.

    Returns:
        The exit status, 0.

    Raises:
        NotARun, LogReadError: A part is missing or broken.
        SimbridgeError: The run has no sample.
        OutputDirectoryError: A page cannot be written.
    """
    from pathlib import Path

    from simbridge.errors import NotARun, SimbridgeError
    from simbridge.evaluation import Evaluation
    from simbridge.recording.run_directory import RunDirectory
    from simbridge.report.replay import replay_page

    directory = RunDirectory.open(Path(run))
    evaluation = Evaluation.of(directory)
    if len(evaluation.log.stamp) == 0:
        raise SimbridgeError(f"{run} holds no sample: the run ended before the arm had reached the start of its plan.")
    try:
        earlier = directory.summary()
    except NotARun:
        earlier = {}
    summary = evaluation.summary(directory.outcome(evaluation.log.complete), earlier.get("loop"))
    summary |= {name: earlier.get(name) for name in ("tolerance", "passed")}
    title = f"{summary['scenario']} on {evaluation.settings['robot']['title']}: replay"
    directory.write_replay(replay_page(evaluation, title))
    write_report(evaluation, summary, replay=directory.replay_file.name)
    for path in (directory.report_file, directory.replay_file):
        print(path)
    return 0
