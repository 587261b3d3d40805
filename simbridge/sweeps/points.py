"""The points that a page shows: ranked by their error, and what differs between them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simbridge.sweeps.identity import made_by
from simbridge.sweeps.parameters import SEED, parameters
from simbridge.sweeps.results import MAIN_FIGURE, PLANNED_FIGURE, Row, number

AXES, MAPS = 2, 4
"""Parameters of a map, and maps at most."""


@dataclass(frozen=True)
class Quantity:
    """A figure that is drawn.

    Attributes:
        column: In results.csv.
        title: With its unit.
        scale: From SI to that unit.
    """

    column: str
    title: str
    scale: float = 1.0


ERROR = Quantity(MAIN_FIGURE, "Tracking error, RMS (mm)", 1e3)
QUANTITIES = (
    ERROR,
    Quantity(PLANNED_FIGURE, "Solver's error, RMS (mm)", 1e3),
    Quantity("delay_s", "Delay (ms)", 1e3),
    Quantity("smoothness.tool.sparc", "SPARC of the tool (closer to 0: smoother)"),
)
"""What the page draws over the parameters; the first that there is, is what points are ranked by."""
RIVALS = {
    "smoothness": Quantity("smoothness.tool.sparc", "Roughness: -SPARC of the tool (less is smoother)", -1.0),
    "effort": Quantity("joint_effort.torque.rms", "Largest RMS torque of a joint (N m)"),
}
"""What a small error may cost, of which less is better."""


@dataclass(frozen=True)
class Points:
    """The points that the page shows.

    Attributes:
        rows: With a figure, the smallest error first.
        error: What they are ranked by.
        numeric: Parameters of which all values are numbers, and that differ.
        other: The other parameters that differ, the scenario included.
        seeds: Whether points differ in their seed alone.
    """

    rows: Sequence[Row]
    error: Quantity
    numeric: tuple[str, ...]
    other: tuple[str, ...]
    seeds: bool

    @staticmethod
    def of(rows: Iterable[Row]) -> Points:
        """The points of rows, some of which may have no figures."""
        made = list(rows)
        error = next((one for one in QUANTITIES if any(not math.isnan(number(row, one.column)) for row in made)), ERROR)
        ranked = [row for row in made if not math.isnan(number(row, error.column))]
        ranked.sort(key=lambda row: number(row, error.column))
        names = [
            name for name in ("scenario", *(ranked[0] if ranked else ())) if name == "scenario" or name in parameters()
        ]
        varied = [name for name in dict.fromkeys(names) if len({row[name] for row in ranked}) > 1]
        numeric = [
            name for name in varied if name != SEED and all(_is_number(row[name]) for row in ranked if row[name])
        ]
        # A map for each of a few values says more than a line for each point.
        maps = 1
        for count, name in sorted((len({row[name] for row in ranked}), name) for name in numeric):
            if len(numeric) > AXES and maps * count <= MAPS:
                numeric.remove(name)
                maps *= count
        other = tuple(name for name in varied if name not in numeric and name != SEED)
        return Points(ranked, error, tuple(numeric), other, SEED in varied)

    @property
    def varied(self) -> tuple[str, ...]:
        """Names of what differs, the seed last."""
        return (*self.other, *self.numeric, *([SEED] * self.seeds))

    def families(self, apart: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
        """The rows by their values of these parameters, in the order of these."""
        found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row in self.rows:
            found[tuple(row[name] for name in apart)].append(row)
        return dict(sorted(found.items(), key=lambda item: [(_float(text), text) for text in item[0]]))


def _is_number(text: str) -> bool:
    return math.isfinite(_float(text))


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.inf


def front_of(rows: Sequence[Row], rival: Quantity) -> list[Row]:
    """The rows that no other one beats both in the error and in a rival; the rows are ordered by their error."""
    found: list[Row] = []
    least = math.inf
    for row in rows:
        value = rival.scale * number(row, rival.column)
        if value < least:
            found.append(row)
            least = value
    return found


def newest_of(rows: Sequence[Row]) -> str:
    """What made the rows that are shown: this version, if it has made any; else what made the last one."""
    made = dict.fromkeys(row["made_by"] for row in rows)
    return made_by() if made_by() in made else next(reversed(made), "")
