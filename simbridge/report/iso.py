"""ISO 9283-style figures of repeated runs, and whose word they are."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from simbridge.metrics.iso9283 import Figure
from simbridge.readable import millimetres, significant

_MEANING = {
    "AP": "pose accuracy: the mean end from the commanded one",
    "RP": "pose repeatability: how far the ends scatter",
    "AT": "path accuracy: the mean path from the commanded one, at most",
    "RT": "path repeatability: how far the paths scatter, at most",
    "AV": "velocity accuracy",
    "RV": "velocity repeatability",
    "FV": "velocity fluctuation",
    "CR": "cornering round-off",
    "CO": "cornering overshoot",
    "OV": "overshoot",
}
SELF_REPORTED = (
    "Self-reported: these positions are computed from the arm's own joint angles. ISO 9283 asks for a measurement "
    "from outside, 30 or 10 cycles, five poses, rated load and a warm arm."
)


def iso_table(figures: Sequence[Figure], note: str = SELF_REPORTED) -> str:
    """A row a figure, under the note that says whose measurement it is."""
    rows = []
    for figure in figures:
        shown = (
            f"{millimetres(figure.value)} mm" if figure.unit == "m" else f"{significant(figure.value)} {figure.unit}"
        )
        rows.append(
            f'<tr><th scope="row">{escape(figure.symbol)}</th><td>{escape(shown if figure.value is not None else "–")}'
            f'</td><td>{figure.cycles}</td><td>{figure.asked}</td><td class="words">'
            f"{_MEANING.get(figure.symbol, '')}</td></tr>"
        )
    return (
        f'<p class="notice caution" role="note">{escape(note)}</p><div class="scroll"><table class="numbers">'
        '<caption class="unseen">ISO 9283-style figures</caption><thead><tr><th scope="col">Figure</th>'
        '<th scope="col">value</th><th scope="col">cycles</th><th scope="col">asked for</th>'
        f'<th scope="col" class="words">What it is</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )
