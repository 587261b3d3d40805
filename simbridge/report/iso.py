"""ISO 9283-style figures of repeated runs: what they are, and whose word they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from simbridge.text import NO_BREAK, millimetres, milliseconds, significant

_AT_REST = {
    "AP": "pose accuracy: from the commanded position to the mean of the attained ones",
    "RP": "pose repeatability: how far the attained positions scatter",
    "stabilisation time": "from the first time within the limit band to the last",
    "OV": "overshoot: farthest from the final place, after the first time within the band; 0 if not left again",
}
_OF_THE_PATH = {
    "AT": "path accuracy: the mean path from the commanded one, where it is worst",
    "RT": "path repeatability: how far the paths scatter, where it is worst",
    "AV": "velocity accuracy: the mean speed from the commanded one",
    "RV": "velocity repeatability: how far the mean speeds scatter",
    "FV": "velocity fluctuation: fastest minus slowest within a run, where it is worst",
    "CR": "cornering round-off: how far from the corner the path passes",
    "CO": "cornering overshoot: how far beyond the second leg it goes",
}
_WORD = {
    "self-reported": "Self-reported: these positions are computed from the arm's own joint angles. ISO 9283 asks for a "
    "measurement from outside, rated load and a warm arm. “simbridge evaluate” takes a recording from outside.",
    "external": "External: measured by an outside recording, whose clocks and frame were fitted to what the arm itself "
    "measured, one frame for all runs. An offset that is the same everywhere, in AP or AT, is taken out by that.",
}


def iso_section(views: Sequence[Mapping[str, Any]]) -> str:
    """A row a figure and witness, under a note on each witness.

    Args:
        views: What summary.json, and evaluation.json where there is one, hold as `iso_9283_style`.
    """
    parts = [f'<p class="notice caution" role="note">{escape(_WORD[view["witness"]])}</p>' for view in views]
    at_stops = [row for view in views for row in _stop_rows(view)]
    if at_stops:
        bands = "; ".join(f"{millimetres(v['limit_band_m'])}{NO_BREAK}mm, {v['witness']}" for v in views)
        heads = ["Stop", "x, y, z mm", "AP mm", "RP mm", "stabilisation ms", "OV mm", "cycles", "asked for", "By"]
        rows = "".join(row for _, row in sorted(at_stops, key=lambda entry: entry[0]))
        parts.append("<h3>At rest</h3>" + _table("ISO 9283-style figures at rest", heads, rows))
        means = "".join(f"<dt>{symbol}</dt><dd>{meaning}</dd>" for symbol, meaning in _AT_REST.items())
        asked = "Asked for: cycles for AP and RP / for stabilisation time and OV."
        parts.append(f'<dl class="note">{means}</dl><p class="note">Limit band: {escape(bands)}. {asked}</p>')
    of_path = [row for symbol in _OF_THE_PATH for view in views for row in _path_rows(view, symbol)]
    if of_path:
        heads = ["Figure", "value", "unit", "cycles", "asked for", "By", "What it is"]
        parts.append("<h3>On the way</h3>" + _table("ISO 9283-style figures of the path", heads, "".join(of_path)))
    parts += [f'<p class="note">{escape(sentence)}</p>' for sentence in _missing(views)]
    return "\n".join(parts)


def _missing(views: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every sentence once; one that does not hold for all witnesses says for whom it does."""
    sentences = dict.fromkeys(sentence for view in views for sentence in view["missing"])
    told = []
    for sentence in sentences:
        whose = [view["witness"] for view in views if sentence in view["missing"]]
        told.append(sentence if len(whose) == len(views) else f"{whose[0].capitalize()}: {sentence}")
    return told


def _table(caption: str, heads: Sequence[str], rows: str) -> str:
    words = {"By": ' class="word"', "What it is": ' class="words"'}
    cells = "".join(f'<th scope="col"{words.get(head, "")}>{head}</th>' for head in heads)
    return (
        f'<div class="scroll"><table class="numbers iso"><caption class="unseen">{caption}</caption>'
        f"<thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _stop_rows(view: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Of each stop that has figures its number and its row."""
    rows = []
    for number, position in enumerate(view["stops_m"], start=1):
        here = {figure["symbol"]: figure for figure in view["figures"] if figure["stop"] == number}
        if not here:
            continue
        cells = [
            ", ".join(f"{1e3 * value:.1f}" for value in position).replace("-", "\u2212"),
            millimetres(here["AP"]["value"]),
            millimetres(here["RP"]["value"]),
            milliseconds(here["stabilisation time"]["value"]),
            millimetres(here["OV"]["value"]),
            f"{here['AP']['cycles']}",
            f"{here['AP']['asked']} / {here['OV']['asked']}",
        ]
        inside = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append((number, f'<tr><th scope="row">{number}</th>{inside}<td class="word">{view["witness"]}</td></tr>'))
    return rows


def _path_rows(view: Mapping[str, Any], symbol: str) -> list[str]:
    rows = []
    for figure in view["figures"]:
        if figure["symbol"] != symbol or figure["stop"] is not None:
            continue
        scale, unit = {"m": (1e3, "mm"), "m/s": (1e3, "mm/s")}.get(figure["unit"], (1.0, figure["unit"]))
        value = figure["value"]
        cells = [significant(None if value is None else scale * value), unit, figure["cycles"], figure["asked"]]
        inside = "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
        rows.append(
            f'<tr><th scope="row">{symbol}</th>{inside}<td class="word">{view["witness"]}</td>'
            f'<td class="words">{_OF_THE_PATH[symbol]}</td></tr>'
        )
    return rows
