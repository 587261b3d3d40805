"""Rows of a file that are left out: how many, where, and why."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from simbridge.robot.pose import Counts
from simbridge.text import counted


@dataclass(frozen=True)
class DroppedRows:
    """Rows that are left out for one reason.

    Attributes:
        count: Number of the rows.
        noun: The kind of the rows, in the singular: "repeated row".
        detail: Words that follow the noun: "with the stamp of the row before"; "" for none.
        first: Place of the first row, counted from 1.
        last: Place of the last row.
        unit: The unit of places: "line", "row" or "message".
    """

    count: int
    noun: str
    detail: str
    first: int
    last: int
    unit: str

    def __str__(self) -> str:
        """Return the report: "3 lost samples left out (lines 7 to 9)"."""
        what = " ".join(filter(None, (counted(self.count, self.noun), self.detail)))
        location = _location(self.unit, self.count, self.first, self.last)
        return f"{what} left out ({location})"


def dropped_rows(
    noun: str, places: Sequence[int] | Counts, *, detail: str = "", unit: str = "line"
) -> list[DroppedRows]:
    """Return the report of rows at these places; nothing where there are none.

    Args:
        noun: Kind of the rows: see `DroppedRows`.
        places: Lines, rows or messages, counted from 1, in order.
        detail: Words that follow the noun: see `DroppedRows`.
        unit: Unit of the places: see `DroppedRows`.
    """
    if not len(places):
        return []
    return [DroppedRows(len(places), noun, detail, int(places[0]), int(places[-1]), unit)]


def lost_samples(places: Sequence[int] | Counts, *, unit: str = "line") -> list[DroppedRows]:
    """Return the report of samples that a tracker has lost; nothing where there are none.

    A sample is lost if one of its numbers is nan or its field is empty. Where it was is a gap.

    Args:
        places: Places of the samples: see `dropped_rows`.
        unit: Unit of the places: see `DroppedRows`.
    """
    return dropped_rows("lost sample", places, unit=unit)


def late_rows(unit: str, places: Sequence[int] | Counts) -> list[str]:
    """Return the report of rows that came after later ones; nothing where there are none.

    Args:
        unit: Unit of the places: see `DroppedRows`.
        places: Places of the rows: see `dropped_rows`.
    """
    if not len(places):
        return []
    location = _location(unit, len(places), int(places[0]), int(places[-1]))
    rows = counted(len(places), unit)
    return [f"samples sorted by their timestamps: {rows} came after later ones ({location})"]


def _location(unit: str, count: int, first: int, last: int) -> str:
    """Return where rows are: "line 5", "lines 5 and 6" or "lines 5 to 9"."""
    if last == first:
        return f"{unit} {first}"
    joint = "and" if count == 2 else "to"
    return f"{unit}s {first} {joint} {last}"


def warn_of(path: str | Path, notes: Iterable[DroppedRows | str], *, stacklevel: int = 2) -> None:
    """Warn of what was left out of a file, if anything was."""
    text = "; ".join(map(str, notes))
    if text:
        warnings.warn(f"{path}: {text}.", stacklevel=stacklevel + 1)
