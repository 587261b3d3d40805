"""Ranks the points of a sweep by their error, and finds which parameters vary among them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from simbridge.sweeps.parameters import SEED, parameters
from simbridge.sweeps.results import MAIN_FIGURE, PLANNED_FIGURE, Row, number
from simbridge.sweeps.results_file import is_number

# Number of axes of a map, each of which is a parameter with numbers.
MAP_AXES = 2
# Largest number of maps on a page, one for each family.
MAX_MAPS = 4
# Smallest number of points with a Pareto front: among fewer points a front says nothing.
MIN_FRONT_POINTS = 3


@dataclass(frozen=True)
class Quantity:
    """A figure that is drawn.

    Attributes:
        column: Name of the figure's column in results.csv.
        title: Name of the figure on an axis, with its unit.
        scale: Factor from SI units to the title's unit.
    """

    column: str
    title: str
    scale: float = 1.0

    def value(self, row: Row) -> float:
        """Return the figure of a row, in the title's unit; NaN if the row has none."""
        return self.scale * number(row, self.column)

    @property
    def noun(self) -> str:
        """Name of the error in a sentence."""
        return "tracking error" if self.column == MAIN_FIGURE else "error of the solver"


ERROR = Quantity(MAIN_FIGURE, "Tracking error, RMS (mm)", 1e3)

# Quantities that the page draws over the parameters. Points are ranked by the first one of them
# that any point has.
QUANTITIES = (
    ERROR,
    Quantity(PLANNED_FIGURE, "Solver's error, RMS (mm)", 1e3),
    Quantity("delay_s", "Delay (ms)", 1e3),
    Quantity("smoothness.tool.sparc", "SPARC of the tool (closer to 0: smoother)"),
)

# Quantities that may grow as the error shrinks, by the name of the goal; less of them is better.
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
        rows: Rows of the points that have an error, the smallest error first.
        error: The quantity by which the points are ranked.
        axes: Names of the parameters that are drawn as axes: they differ, and have numbers only.
        labels: Names of the other parameters that differ, the scenario included. Points with the
            same values of all labels are a family.
        has_seeds: Whether the seed differs between points.
    """

    rows: Sequence[Row]
    error: Quantity
    axes: tuple[str, ...]
    labels: tuple[str, ...]
    has_seeds: bool

    @property
    def varied(self) -> tuple[str, ...]:
        """Names of all parameters that differ between points, the seed last."""
        seed = (SEED,) if self.has_seeds else ()
        return (*self.labels, *self.axes, *seed)

    def families(self) -> dict[tuple[str, ...], list[Row]]:
        """Return the rows of each family, by the family's values of the labels, in their order."""
        families: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row in self.rows:
            family = tuple(row[name] for name in self.labels)
            families[family].append(row)

        def sort_key(family: tuple[str, ...]) -> list[tuple[float, str]]:
            """Return a key that sorts numbers by their value, and before texts."""
            return [(_number_or_infinity(text), text) for text in family]

        return {family: families[family] for family in sorted(families, key=sort_key)}

    def fronts(self) -> dict[str, list[Row]]:
        """Return the Pareto fronts of the tracking error and each of its rivals, by rival.

        A front has the points for which no other point is better in both error and rival. There are
        none if the points were only planned.
        """
        if self.error is not ERROR:
            return {}

        fronts = {}
        for name, rival in RIVALS.items():
            candidates = [row for row in self.rows if not math.isnan(rival.value(row))]
            if len(candidates) < MIN_FRONT_POINTS:
                continue

            # By growing error, a point is on the front if its rival is the smallest so far.
            front = []
            smallest = math.inf
            for row in candidates:
                value = rival.value(row)
                if value < smallest:
                    front.append(row)
                    smallest = value
            if front:
                fronts[name] = front
        return fronts


def rank_points(rows: Sequence[Row]) -> RankedPoints:
    """Rank the points of a sweep by their error, and find which parameters vary among them.

    Args:
        rows: Rows of the points; rows without an error are left out.
    """
    error = _choose_error(rows)
    with_error = [row for row in rows if not math.isnan(error.value(row))]
    ranked = sorted(with_error, key=error.value)

    # All rows have the same columns.
    columns = list(ranked[0]) if ranked else []
    names = ["scenario", *(name for name in columns if name in parameters())]
    varied = [name for name in names if _count_values(ranked, name) > 1]

    axes = _choose_axes(ranked, varied)
    labels = tuple(name for name in varied if name not in axes and name != SEED)
    return RankedPoints(ranked, error, axes, labels, has_seeds=SEED in varied)


def _choose_error(rows: Sequence[Row]) -> Quantity:
    """Return the quantity that ranks points: the first one that any row has."""
    for quantity in QUANTITIES:
        if any(not math.isnan(quantity.value(row)) for row in rows):
            return quantity
    return ERROR


def _choose_axes(rows: Sequence[Row], varied: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the varied parameters that are drawn as axes.

    They are those with numbers. But maps, with two axes, say more than a line for each point over
    three axes or more: parameters with few values become labels, with a map for each value, as long
    as there are not too many maps.
    """
    numeric = [name for name in varied if name != SEED and _has_only_numbers(rows, name)]
    axes = list(numeric)
    map_count = 1
    fewest_values_first = sorted((_count_values(rows, name), name) for name in numeric)
    for value_count, name in fewest_values_first:
        if len(axes) > MAP_AXES and map_count * value_count <= MAX_MAPS:
            axes.remove(name)
            map_count *= value_count
    return tuple(axes)


def _count_values(rows: Sequence[Row], name: str) -> int:
    """Return how many different values a parameter has."""
    return len({row[name] for row in rows})


def _has_only_numbers(rows: Sequence[Row], name: str) -> bool:
    """Return whether all values of a parameter are finite numbers; empty ones do not count."""
    return all(math.isfinite(_number_or_infinity(row[name])) for row in rows if row[name])


def _number_or_infinity(text: str) -> float:
    """Return the number that a text stands for; infinity for any other text."""
    return float(text) if is_number(text) else math.inf
