"""Which values minimise a figure: points that Optuna proposes, one after another, in place of a grid.

Nothing but results.csv is stored. The proposals follow from a seed and from what became of earlier ones: with one job,
an optimisation that was ended goes on as if it had not been. With more it learns from the rows that there are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from simbridge.errors import InvalidParameter, UnknownName, optional_package
from simbridge.evaluation.summary import Summary
from simbridge.quoting import quoted
from simbridge.sweeps.grid import Grid, Point
from simbridge.sweeps.job import made_by
from simbridge.sweeps.parameters import parameter
from simbridge.sweeps.results import Row, is_figure, number
from simbridge.text import listed

_CONSTRAINT = re.compile(r"([\w.]+)\s*(<|>)=?\s*([^<>=]+)")


@dataclass(frozen=True)
class Goal:
    """What an optimisation wants.

    Attributes:
        figure: To be minimised: a column of results.csv.
        constraints: Figure, sign (1: below, -1: above) and bound of each.
    """

    figure: str
    constraints: tuple[tuple[str, float, float], ...] = ()

    @staticmethod
    def of(grid: Grid) -> Goal:
        """That of a grid."""
        found = []
        for text in grid.subject_to:
            match = _CONSTRAINT.fullmatch(text.strip())
            bound = number({"bound": match[3]}, "bound") if match is not None else math.nan
            if match is None or math.isnan(bound):
                raise InvalidParameter("constraint", quoted(text), "FIGURE<NUMBER or FIGURE>NUMBER")
            found.append((match[1], 1.0 if match[2] == "<" else -1.0, bound))
        return Goal(grid.optimise, tuple(found))

    def check(self, columns: Sequence[str]) -> None:
        """Refuses, once there are figures, the name of one that neither results.csv nor summary.json has."""
        figures = [name for name in columns if is_figure(name)]
        for name in (self.figure, *(name for name, *_ in self.constraints)):
            # A run may have none of it, such as a delay.
            if figures and name not in figures and name not in Summary.__annotations__:
                raise UnknownName("figure", name, figures)

    def value(self, row: Row) -> float:
        """The figure of a row; NaN where it has none."""
        return number(row, self.figure)

    def violations(self, row: Row) -> list[float]:
        """By how much each constraint is violated; not above 0 where it is kept."""
        return [sign * (number(row, name, math.inf * sign) - bound) for name, sign, bound in self.constraints]


class Search:
    """Proposes points of a grid's scenario within its ranges and lists, and learns from their rows.

    Args:
        grid: Its random ranges and its lists are the space; its single values are given to every point.

    Attributes:
        goal: What is wanted.

    Raises:
        InvalidParameter: There is nothing to search, or more than one scenario.
        MissingPackage: optuna is not installed.
    """

    def __init__(self, grid: Grid) -> None:
        self.goal = Goal.of(grid)
        if len(grid.scenarios) != 1 or grid.points or grid.seeds > 1:
            needed = "one scenario, without --points and --seeds"
            raise InvalidParameter("sweep to be optimised", listed([*grid.scenarios]), needed)
        optuna = optional_package("optuna", "optuna", "--optimise", "optimise")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._scenario, self._optuna = grid.scenarios[0], optuna
        self._fixed = {name: texts[0] for name, texts in grid.grid.items() if len(texts) == 1}
        known = optuna.distributions
        self._space: dict[str, Any] = {
            name: known.CategoricalDistribution(texts) for name, texts in grid.grid.items() if len(texts) > 1
        }
        for name, range_ in grid.random.items():
            if parameter(name).kind == "whole number":
                low, high = math.ceil(range_.low), math.floor(range_.high)
                self._space[name] = known.IntDistribution(low, high, log=range_.log)
            else:
                self._space[name] = known.FloatDistribution(range_.low, range_.high, log=range_.log)
        if not self._space:
            raise InvalidParameter("number of parameters to search", 0, "one or more: give --random NAME=LOW:HIGH")
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))

    def propose(self) -> tuple[Any, Point]:
        """The next point, and what `learn` knows it by."""
        trial = self._study.ask(self._space)
        given = {name: self._text(name, value) for name, value in trial.params.items()}
        return trial, Point(self._scenario, {**self._fixed, **given})

    def recall(self, rows: Iterable[Row]) -> list[str]:
        """Learn from points of an earlier call, where several at a time make proposals depend on which is ready first.

        Returns:
            The identities of those that lie in the space.
        """
        found = []
        for row in rows:
            values = {name: self._value(name, row.get(name, "")) for name in self._space}
            given = {"scenario": self._scenario, "made_by": made_by(), **self._fixed}
            if None not in values.values() and all(row.get(name, "") == text for name, text in given.items()):
                self._study.enqueue_trial(values)
                self.learn(self._study.ask(self._space), row)
                found.append(row["identity"])
        # Else it would begin with what it began with.
        self._study.sampler = self._optuna.samplers.TPESampler(seed=len(found))
        return found

    def _value(self, name: str, text: str) -> Any:
        """A text as a value of the space; None where it is none."""
        known = self._space[name]
        if hasattr(known, "choices"):
            return text if text in known.choices else None
        try:
            value = type(known.low)(float(text))
        except ValueError:
            return None
        return value if known.low <= value <= known.high else None

    def _text(self, name: str, value: Any) -> str:
        return value if isinstance(value, str) else parameter(name).plain(f"{value:.6g}")

    def learn(self, trial: Any, row: Row) -> None:
        """What became of a proposed point."""
        value = self.goal.value(row)
        if math.isnan(value):
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            return
        for name, violation in zip(self.goal.constraints, self.goal.violations(row), strict=True):
            trial.set_constraint(str(name), violation)
        self._study.tell(trial, value)


def best_of(rows: Sequence[Row], goal: Goal) -> Row | None:
    """The row with the smallest figure that keeps the constraints; None if none does."""
    kept = [row for row in rows if not math.isnan(goal.value(row)) and all(v <= 0.0 for v in goal.violations(row))]
    return min(kept, key=goal.value, default=None)
