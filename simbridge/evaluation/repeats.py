"""The summary of repeated runs: the content of their common summary.json, typed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from simbridge.errors import LogReadError, NotARun, UnusableSamples
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics import samples
from simbridge.evaluation.repeatability import IsoFigures, iso_figures
from simbridge.evaluation.summary import Judgement, WhatRan, summarize, what_ran
from simbridge.recording.run_directory import RunDirectory, repeats_in


class RepeatedRun(TypedDict):
    """What the common summary takes over from each run's summary; None where that has nothing, as without a sample.

    `run` is the name of its directory.
    """

    run: str
    outcome: str
    samples: int | None
    duration_s: float | None
    tracking_error: samples.PoseStatistics | None
    contour_error: samples.PositionStatistics | None
    delay_s: float | None
    loop: dict[str, Any] | None
    passed: bool | None


_OF_A_RUN = tuple(name for name in RepeatedRun.__annotations__ if name != "run")


class RepeatsSummary(WhatRan, Judgement):
    """The common summary.json of repeated runs.

    `outcome` is "completed" or that of the last run; `repeats` is the number of runs requested; `passed` says whether
    all runs were made and passed, None without a tolerance.
    """

    outcome: str
    repeats: int
    completed: int
    runs: list[RepeatedRun]
    iso_9283_style: IsoFigures


def summarize_repeats(whole: RunDirectory, runs: Sequence[RunDirectory], count: int) -> RepeatsSummary:
    """Measure runs of one plan together, from their directories, and write the common summary.json.

    A run without a summary was killed: it is measured from its log, as far as the log goes. `count` is how many runs
    were requested.
    """
    settings = runs[0].settings()
    summaries = [run_summary(run) for run in runs]
    completed = [run for run, summary in zip(runs, summaries, strict=True) if summary["outcome"] == "completed"]
    outcome = summaries[-1]["outcome"]
    if outcome == "completed" and len(runs) < count:
        outcome = "no further run was begun: the repeats were ended or killed, or still go on"
    try:
        # One run at a time: only what the figures need stays in memory.
        iso = iso_figures(Evaluation.of(run) for run in completed)
    except UnusableSamples as error:
        iso = {"witness": "self-reported", "figures": [], "stops_m": [], "limit_band_m": None, "missing": [str(error)]}
    verdicts = [summary["passed"] for summary in summaries]
    common: RepeatsSummary = {
        **what_ran(settings),
        "tolerance": settings.get("tolerance"),
        "outcome": outcome,
        "repeats": count,
        "completed": len(completed),
        "runs": [
            cast(RepeatedRun, {"run": run.path.name, **{name: summary.get(name) for name in _OF_A_RUN}})
            for run, summary in zip(runs, summaries, strict=True)
        ],
        "iso_9283_style": iso,
        "passed": None if None in verdicts else all(verdicts) and len(completed) == count,
    }
    whole.write_summary(common)
    return common


def run_summary(run: RunDirectory) -> Mapping[str, Any]:
    """The content of a run's summary.json; it is computed if the file is missing, or its evaluation was interrupted."""
    earlier: dict[str, Any] = {}
    with contextlib.suppress(NotARun):
        earlier = run.summary()
    if "samples" in earlier:
        return earlier
    tolerance = run.settings().get("tolerance")
    try:
        evaluation = Evaluation.of(run)
        return summarize(evaluation, evaluation.outcome, loop=earlier.get("loop"), tolerance=tolerance)
    except (NotARun, LogReadError) as error:
        passed = None if tolerance is None else False
        return {"outcome": str(error).rstrip("."), "tolerance": tolerance, "passed": passed}


def common_summary(path: Path) -> RepeatsSummary:
    """The content of the summary.json in a directory of repeats; computed and written if they were killed before that.

    Raises:
        NotARun: summary.json or the first run's settings.toml is broken.
        OutputError: Something cannot be written.
    """
    whole, runs = RunDirectory(path), repeats_in(path)
    # One computed while the repeats went on is out of date: a run without a summary may have got further.
    if whole.summary_file.is_file() and all(run.summary_file.is_file() for run in runs):
        summary = whole.summary()
        if len(summary["runs"]) == len(runs):
            # One of an earlier version has fewer facts.
            return cast(RepeatsSummary, {**what_ran(runs[0].settings()), **summary})
    # Settings of an earlier version do not say how many runs were requested.
    return summarize_repeats(whole, runs, runs[-1].settings().get("repeats", {}).get("count", len(runs)))
