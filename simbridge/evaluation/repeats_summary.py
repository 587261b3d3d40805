"""The common summary of repeated runs of one plan, from their directories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simbridge.errors import LogReadError, NotARun, UnusableSamples
from simbridge.evaluation.evaluation import Evaluation, judged
from simbridge.evaluation.repeats import IsoFigures, iso_figures
from simbridge.recording.run_directory import RunDirectory, repeats_in

# What the common summary takes over from each run's summary.
_OF_A_RUN = ("outcome", "samples", "duration_s", "tracking_error", "contour_error", "delay_s", "loop", "passed")


def summarize_repeats(whole: RunDirectory, runs: Sequence[RunDirectory], count: int) -> dict[str, Any]:
    """Measure runs of one plan together, from their directories, and write the common summary.json.

    A run without a summary was killed: it is measured from its log, as far as the log goes.

    Args:
        whole: The directory of the repeats.
        runs: The runs, in order.
        count: How many runs were requested.

    Returns:
        `scenario`, `robot`, `solver`, `backend`; `outcome`, "completed" or that of the last run; the number of
        `repeats` requested and `completed`; `runs`, the name and the main parts of the summary of each;
        `iso_9283_style`: `witness` ("self-reported"), `figures` (`symbol`, `value`, `unit`, `cycles` used, `asked` by
        the standard, and the number of the `stop`, None for the path), `stops_m`, `limit_band_m`, and what is
        `missing` and why; `passed`, whether all runs were made and passed, None without a tolerance.
    """
    settings = runs[0].settings()
    summaries = [_summary_of(run) for run in runs]
    completed = [run for run, summary in zip(runs, summaries, strict=True) if summary["outcome"] == "completed"]
    outcome = summaries[-1]["outcome"]
    if outcome == "completed" and len(runs) < count:
        outcome = "no further run was begun: they were killed, or still go on"
    try:
        # One at a time: of a long run only what the figures need stays in memory.
        iso = iso_figures(Evaluation.of(run) for run in completed)
    except UnusableSamples as error:
        iso = IsoFigures("self-reported", (), (), None, (str(error),))
    judged = [summary["passed"] for summary in summaries]
    common = {
        **{name: settings[name]["name"] for name in ("scenario", "robot", "solver", "backend")},
        "tolerance": settings.get("tolerance"),
        "outcome": outcome,
        "repeats": count,
        "completed": len(completed),
        "runs": [
            {"run": run.path.name, **{name: summary.get(name) for name in _OF_A_RUN}}
            for run, summary in zip(runs, summaries, strict=True)
        ],
        "iso_9283_style": iso.as_dict(),
        "passed": None if None in judged else all(judged) and len(completed) == count,
    }
    whole.write_summary(common)
    return common


def _summary_of(run: RunDirectory) -> dict[str, Any]:
    """A run's summary.json, or what it would hold."""
    try:
        return run.summary()
    except NotARun:
        pass
    try:
        evaluation = Evaluation.of(run)
        summary = evaluation.summary(evaluation.outcome)
    except (NotARun, LogReadError) as error:
        summary = {"outcome": str(error).rstrip(".")}
    return summary | judged(summary, run.settings().get("tolerance"))


def common_summary(path: Path) -> dict[str, Any]:
    """The content of the summary.json of repeats. It is computed and written if the repeats were killed before that.

    Args:
        path: The directory of the repeats.

    Raises:
        NotARun: summary.json or the first run's settings.toml is broken.
        OutputError: Something cannot be written.
    """
    whole, runs = RunDirectory(path), repeats_in(path)
    # A summary computed while the repeats went on is out of date: a run without a summary may have got further.
    if whole.summary_file.is_file() and all(run.summary_file.is_file() for run in runs):
        summary = whole.summary()
        if len(summary["runs"]) == len(runs):
            return summary
    # Settings of an earlier version do not say how many runs were requested.
    return summarize_repeats(whole, runs, runs[0].settings().get("repeats", {}).get("count", len(runs)))
