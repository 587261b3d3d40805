"""The page of repeated runs: one row for each, with a link to its report, and the ISO 9283-style figures of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simbridge.evaluation.repeatability import IsoFigures
from simbridge.evaluation.summary import RepeatsSummary
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.rendering import render
from simbridge.text import NO_BREAK, displayed, fixed, millimetres, milliseconds

_MEANING_OF_PATH = {
    "AT": "path accuracy: distance of the mean path from the commanded one, at its largest",
    "RT": "path repeatability: scatter of the paths, at its largest",
    "AV": "velocity accuracy: deviation of the mean speed from the commanded one",
    "RV": "velocity repeatability: scatter of the mean speeds",
    "FV": "velocity fluctuation: highest minus lowest speed within a run, at its largest",
    "CR": "cornering round-off: distance at which the path passes the corner",
    "CO": "cornering overshoot: how far the path goes beyond the second leg",
}
_SOURCES = {
    "self-reported": "Self-reported: these positions are computed from the arm's own joint angles. ISO 9283 requires "
    "an external measurement, rated load and a warm arm. “simbridge evaluate” reads an external recording.",
    "external": "External: from an external recording whose clocks and frame were fitted to the arm's own measurement: "
    "one frame for all runs. The fit removes any constant offset, in AP or AT.",
}


def write_repeats_page(
    directory: RunDirectory, summary: RepeatsSummary, external: Mapping[str, Any] | None = None
) -> None:
    """Write report.html into the directory of the repeats.

    Args:
        directory: That directory.
        summary: The content of its summary.json.
        external: The content of its evaluation.json, if there is an external measurement.

    Raises:
        OutputError: The page cannot be written.
    """
    directory.write_report(repeats_page(summary, external))


def repeats_page(summary: RepeatsSummary, external: Mapping[str, Any] | None = None) -> str:
    """The whole page as HTML; the arguments are those of `write_repeats_page`."""
    views = [summary["iso_9283_style"], *([] if external is None else [external["iso_9283_style"]])]
    return render(
        "repeats.html",
        title=f"{summary['scenario']}: {summary['completed']} runs",
        summary=summary,
        headline=_headline(summary),
        iso=iso_tables(views),
    )


def _headline(summary: RepeatsSummary) -> str:
    text = f"{summary['completed']} of {summary['repeats']} runs completed"
    # A run that ended early says nothing about the scenario as a whole.
    completed = (run["tracking_error"] for run in summary["runs"] if run["outcome"] == "completed")
    errors = [error["position_m"]["rms"] for error in completed if error]
    if not errors:
        return f"{text}."
    least, most = millimetres(min(errors)), millimetres(max(errors))
    return f"{text}, with {least if least == most else f'{least} to {most}'}{NO_BREAK}mm RMS tracking error."


@dataclass(frozen=True)
class IsoTables:
    """ISO 9283-style figures as text.

    Attributes:
        sources: A note on each source of the measurement.
        limit_bands: Those of the figures at rest.
        at_rest: Rows of the figures at rest: stop, x y z, AP, RP, stabilisation time, OV, cycles, required, source.
        of_path: Rows of the figures of the path: symbol, value, unit, cycles, required, source, definition.
        missing: Which figures are missing and why, as sentences.
    """

    sources: Sequence[str]
    limit_bands: str
    at_rest: Sequence[Sequence[str]]
    of_path: Sequence[Sequence[str]]
    missing: Sequence[str]


def iso_tables(views: Sequence[IsoFigures]) -> IsoTables:
    """The tables of one or two measurements of the same runs.

    Args:
        views: `iso_9283_style` of summary.json, and of evaluation.json where there is one.
    """
    at_rest = [row for view in views for row in _rows_at_rest(view)]
    return IsoTables(
        [_SOURCES[view["witness"]] for view in views],
        "; ".join(f"{millimetres(view['limit_band_m'])}{NO_BREAK}mm, {view['witness']}" for view in views),
        sorted(at_rest, key=lambda row: int(row[0])),
        [row for symbol in _MEANING_OF_PATH for view in views for row in _rows_of_path(view, symbol)],
        _missing(views),
    )


def _missing(views: Sequence[IsoFigures]) -> list[str]:
    """Every sentence once; one that does not hold for all sources names its source."""
    sentences = []
    for sentence in dict.fromkeys(sentence for view in views for sentence in view["missing"]):
        sources = [view["witness"] for view in views if sentence in view["missing"]]
        sentences.append(sentence if len(sources) == len(views) else f"{sources[0].capitalize()}: {sentence}")
    return sentences


def _rows_at_rest(view: IsoFigures) -> list[list[str]]:
    rows = []
    for number, position in enumerate(view["stops_m"], start=1):
        here = {figure["symbol"]: figure for figure in view["figures"] if figure["stop"] == number}
        if not here:
            continue
        rows.append(
            [
                f"{number}",
                ", ".join(fixed(1e3 * value, 1) for value in position),
                millimetres(here["AP"]["value"]),
                millimetres(here["RP"]["value"]),
                milliseconds(here["stabilisation time"]["value"]),
                millimetres(here["OV"]["value"]),
                f"{here['AP']['cycles']}",
                f"{here['AP']['asked']} / {here['OV']['asked']}",
                view["witness"],
            ]
        )
    return rows


def _rows_of_path(view: IsoFigures, symbol: str) -> list[list[str]]:
    rows = []
    for figure in view["figures"]:
        if figure["symbol"] != symbol or figure["stop"] is not None:
            continue
        facts = [str(figure["cycles"]), str(figure["asked"]), view["witness"], _MEANING_OF_PATH[symbol]]
        rows.append([symbol, *displayed(figure["value"], figure["unit"]), *facts])
    return rows
