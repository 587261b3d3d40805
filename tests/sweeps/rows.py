"""results.csv, as tests read it and as tests make it up."""

from __future__ import annotations

import csv
import itertools

from simbridge.sweeps.results import FIXED, MAIN_FIGURE

ELSEWHERE = ("wall_s", "host_name", "host_attempts", "directory")
"""The columns in which rows of equal identity may differ."""


def rows_of(directory):
    with open(directory / "results.csv", newline="", encoding="utf-8") as file:
        return {row["identity"]: row for row in csv.DictReader(file)}


def compared(directory):
    rows = rows_of(directory).values()
    return {
        row["identity"]: {name: text for name, text in row.items() if name not in ELSEWHERE}
        for row in rows
    }


def made_rows(error, **values):
    """A row for each combination of values; `error` gives the tracking error in mm."""
    names = [name.replace("_", "-").replace("kp", "solver.kp") for name in values]
    rows = []
    for number, texts in enumerate(itertools.product(*values.values())):
        row = dict.fromkeys(FIXED, "") | dict(zip(names, map(str, texts), strict=True))
        row |= {
            "identity": f"{number:016x}",
            "scenario": "circle",
            "outcome": "completed",
            "made_by": "1",
        }
        row |= {
            MAIN_FIGURE: str(1e-3 * error(*texts)),
            "smoothness.tool.sparc": f"{-2.0 - 0.1 * number}",
        }
        rows.append(row)
    return rows
