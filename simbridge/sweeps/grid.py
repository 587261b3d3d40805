"""Lists the points of a sweep: combinations of values, random draws, listed points, and seeds.

A grid is written into the sweep's directory as TOML, and can be read from there.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import tomli_w

from simbridge.errors import InputFileError, InvalidParameter
from simbridge.files.reading import MAX_SAMPLES_TEXT, read_text
from simbridge.files.toml_file import TomlFile
from simbridge.quoting import quoted
from simbridge.sweeps.parameters import SEED, SOLVER, Parameter, choices, is_random, parameter

# Largest number of points of a sweep.
MAX_POINTS = 10_000_000
# Seed of the random draws: the same sweep has the same points every time.
DRAW_SEED = 0


@dataclass(frozen=True)
class Point:
    """One run of a sweep.

    Attributes:
        scenario: Name of a scenario, a script, or a file.
        values: Values by the names of their parameters, as texts like those on the command line.
            Parameters that are left at their defaults are not listed.
    """

    scenario: str
    values: Mapping[str, str]

    def command(self, *, plan_only: bool = False) -> str:
        """Return the command line that makes this point alone."""
        arguments = ["simbridge", "check" if plan_only else "run", self.scenario]
        for name, text in self.values.items():
            definition = parameter(name)
            if plan_only and not definition.planned:
                continue
            arguments.append(f"--{name}")
            arguments += [text] if definition.kind == "text" else text.split()
        return shlex.join(arguments)


@dataclass(frozen=True)
class Range:
    """Random values between two numbers.

    Attributes:
        low: The smallest value, in the unit of the parameter's flag.
        high: The largest value, in the same unit.
        log: Whether the logarithms of the values, not the values, are distributed uniformly.
    """

    low: float
    high: float
    log: bool = False

    @staticmethod
    def of(name: str, text: str) -> Range:
        """Parse a range.

        Args:
            name: Name of the parameter, for the error.
            text: Text of the form low:high or low:high:log.

        Raises:
            InvalidParameter: The text has another form, or the numbers do not make a range.
        """
        needed = "low:high, or low:high:log with low above 0"
        refusal = InvalidParameter(f"range of {name}", quoted(text), needed)

        is_log = text.endswith(":log")
        limits = text.removesuffix(":log").split(":")
        if len(limits) != 2:
            raise refusal
        try:
            low = float(limits[0])
            high = float(limits[1])
        except ValueError:
            raise refusal from None

        if not -math.inf < low < high < math.inf:
            raise refusal
        if is_log and low <= 0.0:
            raise refusal
        return Range(low, high, is_log)

    @property
    def text(self) -> str:
        """The range as a text that `Range.of` parses."""
        suffix = ":log" if self.log else ""
        return f"{self.low:.12g}:{self.high:.12g}{suffix}"

    def interpolate(self, fraction: float, definition: Parameter) -> str:
        """Return the value at a fraction of the range, as text.

        Args:
            fraction: Fraction of the range, from 0 for `low` to 1 for `high`.
            definition: The parameter that the value is for.
        """
        if self.log:
            log_low = math.log(self.low)
            log_high = math.log(self.high)
            value = math.exp(log_low + fraction * (log_high - log_low))
        else:
            value = self.low + fraction * (self.high - self.low)

        is_whole = definition.kind == "whole number"
        return definition.plain(str(round(value)) if is_whole else f"{value:.6g}")


@dataclass(frozen=True)
class Grid:
    """The variations of a sweep, as they are stated in Python, a TOML file, or the command line.

    The points are all combinations of the scenarios, the listed values, the random draws and the
    seeds. Listed points may take the place of values and draws. Names and values may be written in
    several ways ("servo_gain", 300.0); the attributes have the form that they have everywhere else
    ("servo-gain", "300").

    Attributes:
        scenarios: Names of scenarios, scripts, or files.
        grid: Values of each parameter, as texts; a parameter with one value has it in all points.
        random: Range of each parameter that is drawn at random, as `Range.of` parses it.
        samples: Number of random draws.
        points: Listed points: texts by parameter; an empty text stands for the default.
        seeds: Number of seeds of the targets' noise; the seeds count from 0.
        plan_only: Whether points are only planned and checked, not simulated.

    Raises:
        InvalidParameter: A value does not exist, or the parts do not fit together.
        UnknownName: A parameter or a value does not exist.
    """

    scenarios: tuple[str, ...]
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    random: Mapping[str, str] = field(default_factory=dict)
    samples: int = 0
    points: Sequence[Mapping[str, Any]] = ()
    seeds: int = 1
    plan_only: bool = False

    def __post_init__(self) -> None:
        # Refuse a text that is not a range.
        for name, text in self.random.items():
            Range.of(name, text)

        # Replace names and values by the form that they have everywhere else.
        grid = {parameter(name).name: _plain_texts(name, self.grid[name]) for name in self.grid}
        points = tuple(_plain_values(point) for point in self.points)
        random = {parameter(name).name: text for name, text in self.random.items()}

        # A frozen dataclass refuses a plain assignment.
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "random", random)

        self._check_parts()
        self._check_random()
        self._check_counts()
        self._check_values()
        self._check_seeds_matter()

    def _check_parts(self) -> None:
        """Refuse parts that do not fit together."""
        if not self.scenarios:
            raise InvalidParameter("number of scenarios", 0, "one or more")

        if self.points and (self.grid or self.random):
            needed = "defined either by --points, or by --grid and --random"
            raise InvalidParameter("sweep", "points and a grid", needed)

    def _check_random(self) -> None:
        """Refuse random draws without their number, or of parameters that cannot be drawn."""
        has_samples = self.samples > 0
        if bool(self.random) != has_samples:
            needed = "positive with --random, and left out without it"
            raise InvalidParameter("number of samples", self.samples, needed)

        in_both = set(self.grid) & set(self.random)
        if in_both:
            needed = "either listed or random, but not both"
            raise InvalidParameter("parameter", min(in_both), needed)

        for name in self.random:
            if not parameter(name).can_be_drawn:
                raise InvalidParameter("random parameter", name, "a number")

    def _check_counts(self) -> None:
        """Refuse too few or too many seeds and points."""
        if self.seeds < 1:
            raise InvalidParameter("number of seeds", self.seeds, "1 or more")

        if self.seeds > 1 and SEED in self.parameters:
            needed = f"left out if {SEED} is a parameter"
            raise InvalidParameter("number of seeds", self.seeds, needed)

        if self.count > MAX_POINTS:
            raise InvalidParameter("number of points", self.count, f"at most {MAX_POINTS}")

    def _check_values(self) -> None:
        """Refuse a listed value that cannot be read by itself.

        A combination that makes no sense is a refused point, not an error.
        """
        for name, texts in self.grid.items():
            # A solver's setting is read together with each of the solvers.
            solvers = self.grid.get("solver", ("",)) if name.startswith(SOLVER) else ("",)
            for text, solver in itertools.product(texts, solvers):
                choices({"solver": solver, name: text})

    def _check_seeds_matter(self) -> None:
        """Refuse several seeds if no point has random targets, since all seeds would be alike."""
        if self.seeds > 1 and not any(is_random(point.values) for point in self):
            needed = "1 if no target is random: add sample-noise, sample-jitter or sample-dropout"
            raise InvalidParameter("number of seeds", self.seeds, needed)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that are varied or set, without the seed."""
        listed = dict.fromkeys(name for point in self.points for name in point)
        return (*self.grid, *self.random, *listed)

    @property
    def count(self) -> int:
        """Number of points."""
        combination_count = math.prod(len(texts) for texts in self.grid.values())
        drawn_count = combination_count * max(self.samples, 1)
        return len(self.scenarios) * (len(self.points) or drawn_count) * self.seeds

    def __iter__(self) -> Iterator[Point]:
        product = itertools.product(self.scenarios, self._list_values(), range(self.seeds))
        for scenario, values, seed in product:
            # An empty text stands for the default.
            set_values = {name: text for name, text in values.items() if text}
            if self.seeds > 1:
                set_values[SEED] = str(seed)
            yield Point(scenario, set_values)

    def _list_values(self) -> list[Mapping[str, str]]:
        """Return the values of each point of one scenario and seed, by parameter."""
        if self.points:
            return list(self.points)

        combinations = [
            dict(zip(self.grid, texts, strict=True))
            for texts in itertools.product(*self.grid.values())
        ]
        draws = self._draw_values()
        return [combination | draw for combination in combinations for draw in draws]

    def _draw_values(self) -> list[dict[str, str]]:
        """Return the random draws, each with its values by parameter.

        Without random parameters there is one draw without values. A sweep with more samples begins
        with the same draws: they are drawn one after the other.
        """
        if not self.random:
            return [{}]

        ranges = {name: Range.of(name, text) for name, text in self.random.items()}
        fractions = np.random.default_rng(DRAW_SEED).random((self.samples, len(ranges)))
        draws = []
        for row in fractions.tolist():
            draw = {}
            for (name, limits), fraction in zip(ranges.items(), row, strict=True):
                draw[name] = limits.interpolate(fraction, parameter(name))
            draws.append(draw)
        return draws

    def as_text(self) -> str:
        """Return the grid as TOML, which `read_grid` reads."""
        entries: dict[str, Any] = {
            "scenarios": list(self.scenarios),
            "plan_only": self.plan_only,
            # One seed is the default, which is left out as empty entries are.
            "seeds": self.seeds if self.seeds > 1 else 0,
            "samples": self.samples,
            "random": {name: Range.of(name, text).text for name, text in self.random.items()},
            "grid": {name: list(texts) for name, texts in self.grid.items()},
            "points": [dict(point) for point in self.points],
        }
        return tomli_w.dumps({name: value for name, value in entries.items() if value})


def _plain_texts(name: str, values: Sequence[Any]) -> tuple[str, ...]:
    """Return the values of a parameter as texts, each once, in order; "" is the default."""
    definition = parameter(name)
    texts = [text_of(value) for value in values]
    plain = [definition.plain(text) if text else "" for text in texts]
    return tuple(dict.fromkeys(plain))


def _plain_values(point: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a listed point as texts by parameter, without empty ones."""
    values = {}
    for name, value in point.items():
        text = text_of(value)
        if text:
            definition = parameter(name)
            values[definition.name] = definition.plain(text)
    return values


class GridFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A grid as a TOML file, with the types that the attributes of `Grid` may have there."""

    scenarios: tuple[str, ...]
    grid: dict[str, list[str | float | bool] | str | float | bool] = {}
    random: dict[str, str] = {}
    samples: int = 0
    points: list[dict[str, str | float]] = []
    seeds: int = 1
    plan_only: bool = False


def read_grid(path: str | Path) -> Grid:
    """Read the grid of a TOML file, as each sweep writes it.

    Raises:
        InputFileError: The file cannot be read, or is not a grid.
        InvalidParameter: A value does not exist, or the parts do not fit together.
        UnknownName: A parameter or a value does not exist.
    """
    values = msgspec.structs.asdict(TomlFile(Path(path)).decode(GridFile))
    # A parameter with one value may be written without brackets.
    values["grid"] = {
        name: value if isinstance(value, list) else [value]
        for name, value in values["grid"].items()
    }
    return Grid(**values)


def text_of(value: Any) -> str:
    """Return a value of a parameter as a text like that on the command line; "" for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return " ".join(str(item) for item in value)
    return str(value)


def read_points(path: str | Path) -> tuple[Mapping[str, str], ...]:
    """Read listed points from a CSV file.

    The header names parameters. Each line below it is a point; an empty cell stands for the
    default.

    Raises:
        InputFileError: The file cannot be read, or a line has another number of cells than the
            header.
    """
    text = read_text(Path(path), MAX_SAMPLES_TEXT)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)

    # Number of the line, and cells, of each row that is not blank.
    rows: list[tuple[int, list[str]]] = []
    try:
        for raw_cells in reader:
            cells = [cell.strip() for cell in raw_cells]
            if any(cells):
                rows.append((reader.line_num, cells))
    except csv.Error as error:
        reason = f"this is not a CSV row: {error}"
        raise InputFileError(path, reason, line=reader.line_num) from None
    if len(rows) < 2:
        raise InputFileError(path, "it needs a header and at least one line below it")

    _, header = rows[0]
    points = []
    for line, cells in rows[1:]:
        if len(cells) != len(header):
            reason = f"it has {len(cells)} cells, but the header has {len(header)}"
            raise InputFileError(path, reason, line=line)
        points.append(dict(zip(header, cells, strict=True)))
    return tuple(points)


def split_assignments(assignments: Sequence[str], flag: str) -> dict[str, str]:
    """Split the words after a flag into names and values.

    Args:
        assignments: Words of the form NAME=VALUES.
        flag: Name of the flag without its dashes, for the error.

    Returns:
        The text of the values by name.

    Raises:
        InvalidParameter: A word has another form, or two have the same name.
    """
    values: dict[str, str] = {}
    for word in assignments:
        raw_name, equals, text = word.partition("=")
        name = raw_name.strip().replace("_", "-")
        is_complete = bool(equals and name and text.strip())
        if not is_complete or name in values:
            needed = "NAME=VALUES, with each name given once"
            raise InvalidParameter(f"value of --{flag}", quoted(word), needed)
        values[name] = text
    return values
