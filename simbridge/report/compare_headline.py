"""The first line of a comparison: what differs between the runs, and what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simbridge.evaluation.comparison import Comparison
from simbridge.evaluation.metrics.tracking import TRACKING_ERROR
from simbridge.report.verdict import SMALL_LENGTH, is_small
from simbridge.servo.extrapolation import describe_extrapolation
from simbridge.text import NO_BREAK, join_words, millimetres

# More settings are counted, more runs are given by their smallest and largest error.
MAX_NAMED_SETTINGS = 3
MAX_LISTED_RUNS = 4


def comparison_headline(comparison: Comparison) -> str:
    """Return sentences on what differs between runs, and on the error that shows it."""
    scenario = comparison.runs[0].summary["scenario"]
    count = len(comparison.runs)
    part = comparison.main_part
    text = f"{scenario}, {count} runs that {_describe_differences(comparison)}: "

    if part is TRACKING_ERROR:
        positions = [run.summary["tracking_error"]["position_m"] for run in comparison.runs]
        if all(map(is_small, positions)):
            return f"{text}tracking error below {SMALL_LENGTH:g}{NO_BREAK}mm in all of them."
        return f"{text}RMS tracking error {_list_errors(comparison)}."

    plant = _range_of_errors(comparison, "plant_error")
    tracking = _range_of_errors(comparison, TRACKING_ERROR.key)
    return (
        f"{text}RMS error of the solver {_list_errors(comparison)}. With the plant's error of "
        f"{plant}, the tracking error is {tracking}."
    )


def comparison_extrapolation(comparison: Comparison) -> str:
    """Return that the servo law of runs is extrapolated, as a sentence; "" where it is not."""
    gains = [run.summary["extrapolated_servo_gain"] for run in comparison.runs]
    return describe_extrapolation(gain for gain in gains if gain is not None)


def _describe_differences(comparison: Comparison) -> str:
    """Return what differs between the runs, as a clause."""
    names = comparison.differences.names
    if not names:
        return "have the same settings"
    shown = names[:MAX_NAMED_SETTINGS]
    if len(names) > len(shown):
        shown.append(f"{len(names) - len(shown)} more settings")
    return f"differ in {join_words(shown)}"


def _list_errors(comparison: Comparison) -> str:
    """Return the RMS error of each run with its label; of many runs the extremes."""
    key = comparison.main_part.key
    labels = comparison.differences.entries
    sizes = []
    for run, label in zip(comparison.runs, labels, strict=True):
        error = run.summary[key]
        assert error is not None, "each run has the part by which runs are compared"
        position = error["position_m"]
        # A solver's error is computed, not measured: it may be as small as it likes.
        is_bound = key == TRACKING_ERROR.key and is_small(position)
        size = f"below {SMALL_LENGTH:g}" if is_bound else millimetres(position["rms"])
        sizes.append((position["rms"], f"{size}{NO_BREAK}mm ({label})"))

    if len(sizes) <= MAX_LISTED_RUNS:
        return join_words([text for _, text in sizes])
    _, smallest = min(sizes)
    _, largest = max(sizes)
    return f"from {smallest} to {largest}"


def _range_of_errors(comparison: Comparison, key: str) -> str:
    """Return the smallest and the largest RMS translation of a part of the runs' errors, in mm.

    Args:
        comparison: The compared runs.
        key: Name of the part in their summaries.
    """
    summaries: list[Mapping[str, Any]] = [run.summary for run in comparison.runs]
    errors = [float(summary[key]["position_m"]["rms"]) for summary in summaries]
    sizes = dict.fromkeys(map(millimetres, (min(errors), max(errors))))
    return f"{' to '.join(sizes)}{NO_BREAK}mm"
