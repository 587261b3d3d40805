"""results.csv, as tests read it."""

from __future__ import annotations

import csv

ELSEWHERE = ("wall_s", "host_name", "host_attempts", "directory")
"""The columns in which rows of equal identity may differ."""


def rows_of(directory):
    with open(directory / "results.csv", newline="", encoding="utf-8") as file:
        return {row["identity"]: row for row in csv.DictReader(file)}


def compared(directory):
    rows = rows_of(directory).values()
    return {row["identity"]: {name: text for name, text in row.items() if name not in ELSEWHERE} for row in rows}
