"""The page of repeated runs: each of them in a row, linked, and the ISO 9283-style figures of all."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from simbridge.recording.run_directory import RunDirectory
from simbridge.report.document import document, section
from simbridge.report.iso import iso_section
from simbridge.text import NO_BREAK, degrees, millimetres, milliseconds


def write_repeats_page(
    whole: RunDirectory, summary: Mapping[str, Any], external: Mapping[str, Any] | None = None
) -> None:
    """Write report.html into the directory of the repeats.

    Args:
        whole: The directory.
        summary: What its summary.json holds.
        external: What its evaluation.json holds, if an outside witness has been compared.

    Raises:
        OutputError: The page cannot be written.
    """
    whole.write_report(repeats_page(summary, external))


def repeats_page(summary: Mapping[str, Any], external: Mapping[str, Any] | None = None) -> str:
    """The whole page as HTML; the arguments are those of `write_repeats_page`."""
    views = [summary["iso_9283_style"], *([] if external is None else [external["iso_9283_style"]])]
    sections = [_verdict(summary), section("runs", "Each run", _runs(summary))]
    sections.append(section("iso", "Cycles of one motion: ISO 9283-style figures", iso_section(views)))
    return document(f"{summary['scenario']}: {summary['completed']} runs", sections)


def _verdict(summary: Mapping[str, Any]) -> str:
    facts = [summary["robot"], summary["solver"], summary["backend"]]
    parts = [
        '<p class="kicker">simbridge: repeated runs</p>',
        f"<h1>{escape(summary['scenario'])}</h1>",
        f'<p class="kicker">{" · ".join(escape(fact) for fact in facts)}</p>',
    ]
    if summary["outcome"] != "completed":
        which = "The repeats" if summary["runs"][-1]["outcome"] == "completed" else "The last run"
        ended = f"{which} did not complete: {summary['outcome']}."
        parts.append(f'<p class="notice failure" role="note">{escape(ended)}</p>')
    measured = [run["tracking_error"]["position_m"]["rms"] for run in summary["runs"] if run["tracking_error"]]
    headline = f"{summary['completed']} of {summary['repeats']} runs completed"
    if measured:
        least, most = millimetres(min(measured)), millimetres(max(measured))
        spread = f"{most}{NO_BREAK}mm" if least == most else f"from {least} to {most}{NO_BREAK}mm"
        headline += f"; the tool was off by {spread} RMS"
    parts.append(f'<p class="headline">{escape(headline)}.</p>')
    if summary["passed"] is not None:
        word, kind, told = (
            ("Passed", "passed", "every run is within the tolerance")
            if summary["passed"]
            else ("Failed", "failed", "not every run completed within the tolerance")
        )
        parts.append(f'<p class="judgement"><span class="badge {kind}">{word}</span> {told}.</p>')
    return "\n".join(['<header id="verdict">', *parts, "</header>"])


def _runs(summary: Mapping[str, Any]) -> str:
    heads = ("Run", "RMS mm", "max mm", "RMS °", "delay ms", "off the path mm", "outcome")
    rows = "".join(_row(run) for run in summary["runs"])
    cells = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return (
        '<div class="scroll"><table class="numbers"><caption class="unseen">Tracking error of each run</caption>'
        f"<thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(run: Mapping[str, Any]) -> str:
    name = escape(run["run"])
    error, contour = run["tracking_error"], run["contour_error"]
    cells = ["–"] * 5
    if error is not None:
        cells = [
            millimetres(error["position_m"]["rms"]),
            millimetres(error["position_m"]["max"]),
            degrees(error["rotation_rad"]["rms"]),
            milliseconds(run["delay_s"]),
            millimetres(contour["position_m"]["rms"]),
        ]
    inside = "".join(f"<td>{escape(cell)}</td>" for cell in (*cells, run["outcome"]))
    # Of a run without a sample there is no page.
    linked = f'<a href="{name}/report.html">{name}</a>' if error is not None else name
    return f'<tr><th scope="row">{linked}</th>{inside}</tr>'
