"""The common summary of repeated runs of one plan: the content of their summary.json, typed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast, get_type_hints

import msgspec

from simbridge.errors import LogReadError, NotARun, UnusableSamples
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.iso_figures import IsoFigures, iso_figures
from simbridge.evaluation.metrics.samples import PoseStatistics, PositionStatistics
from simbridge.evaluation.summary import Judgement, Summary, WhatRan, summarize, what_ran
from simbridge.recording.run_directory import RunDirectory, repeats_in
from simbridge.recording.run_record import RunRecord, ToleranceRecord


class RepeatedRun(TypedDict):
    """One of the repeated runs in their common summary, with numbers of its own summary.

    All but `run` and `outcome` are None if the run's summary does not have them, as without a
    sample.

    Attributes:
        run: Name of the run's directory.
    """

    run: str
    outcome: str
    samples: int | None
    duration_s: float | None
    tracking_error: PoseStatistics | None
    contour_error: PositionStatistics | None
    delay_s: float | None
    loop: dict[str, float | None] | None
    passed: bool | None


# The keys of a run's summary that the common summary takes over.
RUN_KEYS = tuple(key for key in RepeatedRun.__annotations__ if key != "run")


class RepeatsSummary(WhatRan, Judgement):
    """The common summary.json of repeated runs.

    `passed` says whether all runs were made and passed; None without a tolerance.

    Attributes:
        outcome: "completed", or the outcome of the last run.
        repeats: Number of runs requested.
        completed: Number of runs that completed.
        runs: Every run in short.
        iso_9283_style: Figures of the runs that completed.
    """

    outcome: str
    repeats: int
    completed: int
    runs: list[RepeatedRun]
    iso_9283_style: IsoFigures


def summarize_repeats(
    whole: RunDirectory, runs: Sequence[RunDirectory], count: int
) -> RepeatsSummary:
    """Measure runs of one plan together, from their directories, and write the common summary.json.

    A run without a summary was killed: it is measured from its log, as far as the log goes.

    Args:
        whole: The directory of the repeats.
        runs: The runs, at least one.
        count: How many runs were requested.
    """
    settings = runs[0].settings()
    summaries = [run_summary(run) for run in runs]

    completed = []
    for run, summary in zip(runs, summaries, strict=True):
        if summary["outcome"] == "completed":
            completed.append(run)
    outcome = summaries[-1]["outcome"]
    if outcome == "completed" and len(runs) < count:
        outcome = (
            "no further run was started: the repeats were stopped or killed, or are still "
            "in progress"
        )

    # What each run contributes.
    repeated_runs: list[RepeatedRun] = []
    for run, summary in zip(runs, summaries, strict=True):
        numbers = {key: summary.get(key) for key in RUN_KEYS}
        repeated_runs.append(cast(RepeatedRun, {"run": run.path.name, **numbers}))

    # All must have passed.
    passed = None
    verdicts = [summary["passed"] for summary in summaries]
    if None not in verdicts:
        passed = all(verdicts) and len(completed) == count

    common: RepeatsSummary = {
        **what_ran(settings),
        "tolerance": _tolerance_facts(settings.tolerance),
        "outcome": outcome,
        "repeats": count,
        "completed": len(completed),
        "runs": repeated_runs,
        "iso_9283_style": _figures_of(completed),
        "passed": passed,
    }
    whole.write_summary(common)
    return common


def _figures_of(runs: Sequence[RunDirectory]) -> IsoFigures:
    """Return the ISO 9283-style figures of runs; none, with the reason, where they have none."""
    try:
        # One run at a time: only what the figures need stays in memory.
        return iso_figures(Evaluation.of(run) for run in runs)
    except UnusableSamples as error:
        return {
            "witness": "self-reported",
            "figures": [],
            "stops_m": [],
            "limit_band_m": None,
            "missing": [str(error)],
        }


def _tolerance_facts(tolerance: ToleranceRecord | None) -> dict[str, float] | None:
    """Return a tolerance as a summary holds it; None without."""
    return None if tolerance is None else msgspec.structs.asdict(tolerance)


def run_summary(run: RunDirectory) -> Mapping[str, Any]:
    """Return the content of a run's summary.json.

    It is computed if the file is missing, or if the run's evaluation was interrupted.
    """
    written: dict[str, Any] = {}
    with contextlib.suppress(NotARun):
        written = run.summary(Summary)
    # A run that was killed has none, and one whose evaluation was interrupted only says how it
    # ended.
    if written.keys() >= {"samples", "outcome", "passed"}:
        return written

    tolerance = run.settings().tolerance
    try:
        evaluation = Evaluation.of(run)
        return summarize(
            evaluation, evaluation.outcome, loop=written.get("loop"), tolerance=tolerance
        )
    except (NotARun, LogReadError) as error:
        return {
            "outcome": str(error).rstrip("."),
            "tolerance": _tolerance_facts(tolerance),
            "passed": None if tolerance is None else False,
        }


def common_summary(path: Path) -> RepeatsSummary:
    """Return the content of the summary.json in a directory of repeats.

    It is computed and written if the repeats were killed before that.

    Args:
        path: The directory.

    Raises:
        NotARun: summary.json, or the settings.toml of a run, is broken.
        OutputError: Something cannot be written.
    """
    whole = RunDirectory(path)
    runs = repeats_in(path)

    # A summary computed while the repeats went on is out of date: a run without a summary may have
    # got further.
    if whole.summary_file.is_file() and all(run.summary_file.is_file() for run in runs):
        summary = whole.summary(RepeatsSummary)
        if len(summary.get("runs", ())) == len(runs):
            missing = [key for key in get_type_hints(RepeatsSummary) if key not in summary]
            if missing:
                raise NotARun(path, whole.summary_file.name, f"{missing[0]} is missing")
            return cast(RepeatsSummary, summary)

    # The number of runs that were requested. Repeats can go on with another number, which their
    # later runs record; runs that were put side by side by hand record none.
    count = len(runs)
    record = runs[-1].settings()
    if isinstance(record, RunRecord) and record.repeats is not None:
        count = record.repeats.count
    return summarize_repeats(whole, runs, count)
