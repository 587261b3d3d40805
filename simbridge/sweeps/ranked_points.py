"""The points of a sweep, ranked by their error, and what varies among them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from simbridge.sweeps.parameters import SEED, parameters
from simbridge.sweeps.results import MAIN_FIGURE, PLANNED_FIGURE, Row, number
from simbridge.sweeps.results_file import is_number

# A map has two axes, each a parameter with numbers.
MAP_AXES = 2
# How many maps a page shows at most, one for each family.
MAX_MAPS = 4
# Among fewer points, which of them no point beats says nothing.
MIN_FRONT_POINTS = 3


@dataclass(frozen=True)
class Quantity:
    """A figure that is drawn.

    Attributes:
        column: Its column in results.csv.
        title: Its name on an axis, with its unit.
        scale: Factor from SI units to the title's unit.
    """

    column: str
    title: str
    scale: float = 1.0

    def value(self, row: Row) -> float:
        """Return the figure of a row, in the title's unit; NaN where the row has none."""
        return self.scale * number(row, self.column)

    @property
    def noun(self) -> str:
        """Name of the error in a sentence."""
        return "tracking error" if self.column == MAIN_FIGURE else "error of the solver"


ERROR = Quantity(MAIN_FIGURE, "Tracking error, RMS (mm)", 1e3)

# What the page draws over the parameters. Points are ranked by the first that any of them has.
QUANTITIES = (
    ERROR,
    Quantity(PLANNED_FIGURE, "Solver's error, RMS (mm)", 1e3),
    Quantity("delay_s", "Delay (ms)", 1e3),
    Quantity("smoothness.tool.sparc", "SPARC of the tool (closer to 0: smoother)"),
)

# What a small error may cost; less is better.
RIVALS = {
    "smoothness": Quantity(
        "smoothness.tool.sparc", "Roughness: -SPARC of the tool (lower is smoother)", -1.0
    ),
    "effort": Quantity("joint_effort.torque.rms", "Largest RMS torque of a joint (N m)"),
}


@dataclass(frozen=True)
class RankedPoints:
    """The points that a page shows.

    Attributes:
        rows: Those with a figure, the smallest error first.
        error: The quantity that they are ranked by.
        axes: Parameters whose values are numbers, and differ: they are drawn as axes.
        labels: The other parameters that differ, the scenario included. Points with the same values
            of them are a family.
        has_seeds: Whether the seed differs between points.
    """

    rows: Sequence[Row]
    error: Quantity
    axes: tuple[str, ...]
    labels: tuple[str, ...]
    has_seeds: bool

    @property
    def varied(self) -> tuple[str, ...]:
        """Names of all that differs between points, the seed last."""
        seed = (SEED,) if self.has_seeds else ()
        return (*self.labels, *self.axes, *seed)

    def families(self) -> dict[tuple[str, ...], list[Row]]:
        """Return the rows by their values of `labels`, sorted by these."""
        families: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row in self.rows:
            family = tuple(row[name] for name in self.labels)
            families[family].append(row)

        # Numbers by their value, and before texts.
        def sort_key(family: tuple[str, ...]) -> list[tuple[float, str]]:
            return [(_number_or_infinity(text), text) for text in family]

        return {family: families[family] for family in sorted(families, key=sort_key)}

    def fronts(self) -> dict[str, list[Row]]:
        """Return the Pareto fronts of runs, by the name of the rival of their error.

        A front is the points that no point beats in both error and rival.
        """
        if self.error is not ERROR:
            return {}

        fronts = {}
        for name, rival in RIVALS.items():
            candidates = [row for row in self.rows if not math.isnan(rival.value(row))]
            if len(candidates) < MIN_FRONT_POINTS:
                continue

            # Candidates are sorted by their error: a point of the front has the least rival so far.
            front = []
            least = math.inf
            for row in candidates:
                value = rival.value(row)
                if value < least:
                    front.append(row)
                    least = value
            if front:
                fronts[name] = front
        return fronts


def rank_points(rows: Sequence[Row]) -> RankedPoints:
    """Rank the points of a sweep by their error, and find what varies among them.

    Args:
        rows: Some may have no figures: these are left out.
    """
    error = _ranking_quantity(rows)
    with_error = [row for row in rows if not math.isnan(error.value(row))]
    ranked = sorted(with_error, key=error.value)

    columns = ranked[0] if ranked else {}
    names = ["scenario", *(name for name in columns if name in parameters())]
    varied = [name for name in names if _count_values(ranked, name) > 1]

    axes = _axes(ranked, varied)
    labels = tuple(name for name in varied if name not in axes and name != SEED)
    return RankedPoints(ranked, error, axes, labels, has_seeds=SEED in varied)


def _ranking_quantity(rows: Sequence[Row]) -> Quantity:
    """Return the first quantity that any row has."""
    for quantity in QUANTITIES:
        if any(not math.isnan(quantity.value(row)) for row in rows):
            return quantity
    return ERROR


def _axes(rows: Sequence[Row], varied: Sequence[str]) -> tuple[str, ...]:
    """Return which varied parameters are drawn as axes."""
    numeric = [name for name in varied if name != SEED and _has_only_numbers(rows, name)]

    # Two axes and a map for each of a few values say more than a line for each point.
    axes = list(numeric)
    map_count = 1
    for count, name in sorted((_count_values(rows, name), name) for name in numeric):
        if len(axes) > MAP_AXES and map_count * count <= MAX_MAPS:
            axes.remove(name)
            map_count *= count
    return tuple(axes)


def _count_values(rows: Sequence[Row], name: str) -> int:
    """Return how many different values a parameter has."""
    return len({row[name] for row in rows})


def _has_only_numbers(rows: Sequence[Row], name: str) -> bool:
    """Return whether all values of a parameter are finite numbers, where it has one."""
    return all(math.isfinite(_number_or_infinity(row[name])) for row in rows if row[name])


def _number_or_infinity(text: str) -> float:
    return float(text) if is_number(text) else math.inf
