"""What an experiment hands back: numbers, tables for people, pictures, and what the numbers were expected to be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simbridge.text import plain, significant

if TYPE_CHECKING:
    from simbridge.experiments.drawing import Picture


@dataclass(frozen=True)
class Expected:
    """What a figure is known to be.

    Attributes:
        figure: Its name among the outcome's figures.
        low, high: Between what it belongs, in the unit that its name tells.
        words: The same for people ("0.469 within 2 %").
        source: Who says so.
    """

    figure: str
    low: float
    high: float
    words: str
    source: str

    def holds(self, measured: float) -> bool:
        return self.low <= measured <= self.high


def about(figure: str, value: float, part: float, source: str) -> Expected:
    """Within a part of the value: 0.02 is 2 %."""
    words = f"{value:g} within {100.0 * part:g} %"
    return Expected(figure, value * (1.0 - part), value * (1.0 + part), words, source)


def near(figure: str, value: float, off: float, source: str) -> Expected:
    """No further than `off` from the value."""
    return Expected(figure, value - off, value + off, f"{value:g} within {off:g}" if off else f"{value:g}", source)


def between(figure: str, low: float, high: float, source: str) -> Expected:
    """From low to high."""
    return Expected(figure, low, high, f"{low:g} to {high:g}", source)


@dataclass(frozen=True)
class Comparison:
    """A figure beside what it is expected to be."""

    measured: float
    expected: Expected

    @property
    def holds(self) -> bool:
        return self.expected.holds(self.measured)

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "figure": self.expected.figure,
            "measured": self.measured,
            "low": self.expected.low,
            "high": self.expected.high,
            "holds": self.holds,
            "source": self.expected.source,
        }


@dataclass(frozen=True)
class Table:
    """A table for people; the first column is text, the others are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Outcome:
    """An experiment's result.

    Attributes:
        figures: Single numbers, by names that tell their unit.
        comparisons: Those of them that something is known about.
        data: Everything measured, SI units, as JSON takes it.
        tables: For the terminal.
        pictures: By file name.
        notes: Sentences to be read with the tables.
    """

    figures: Mapping[str, float]
    comparisons: Sequence[Comparison]
    data: Mapping[str, Any]
    tables: Sequence[Table]
    pictures: Mapping[str, Picture]
    notes: Sequence[str] = field(default=())


def compared(figures: Mapping[str, float], expected: Sequence[Expected], known: bool) -> list[Comparison]:
    """The figures of which something is expected; none unless the experiment is the one whose figures are known."""
    return [Comparison(figures[e.figure], e) for e in expected if known and e.figure in figures]


def written(value: float | None) -> str:
    """A number for a table; what was never reached is a dash."""
    if value is None or math.isnan(value):
        return significant(None)
    return plain(value) if value == round(value) else significant(value, decimals=5)
