"""The points of a sweep: combinations of values, random draws, listed points, and seeds.

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

# Points of a sweep at most.
MAX_POINTS = 10_000_000


@dataclass(frozen=True)
class Point:
    """One run of a sweep.

    Attributes:
        scenario: A name, a script, or a file.
        values: Texts by the names of their parameters, as on the command line, without those that
            are left at their defaults.
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
        log: Whether the logarithms of the values are uniform, not the values.
    """

    low: float
    high: float
    log: bool = False

    @staticmethod
    def of(name: str, text: str) -> Range:
        """Parse a range.

        Args:
            name: The parameter, for the error.
            text: low:high or low:high:log.

        Raises:
            InvalidParameter: The text has another form, or the numbers make no range.
        """
        needed = "low:high, or low:high:log with low above 0"
        refusal = InvalidParameter(f"range of {name}", quoted(text), needed)

        low_text, *further = text.split(":")
        if further[1:] not in ([], ["log"]):
            raise refusal
        try:
            low = float(low_text)
            high = float(further[0])
        except (ValueError, IndexError):
            raise refusal from None

        log = further[1:] == ["log"]
        if not -math.inf < low < high < math.inf:
            raise refusal
        if log and low <= 0.0:
            raise refusal
        return Range(low, high, log)

    @property
    def text(self) -> str:
        """The range as `Range.of` parses it."""
        suffix = ":log" if self.log else ""
        return f"{self.low:.12g}:{self.high:.12g}{suffix}"

    def interpolate(self, fraction: float, definition: Parameter) -> str:
        """Return the value at a fraction of the range, as text.

        Args:
            fraction: From 0 for `low` to 1 for `high`.
            definition: The parameter whose value it is.
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
    """The variations of a sweep, as given in Python, in a TOML file, or on the command line.

    The points are the product of the scenarios, the listed values, the random draws and the seeds;
    or the listed points in place of values and draws. Names and values may be written in several
    ways: in the attributes, each has the one that is used everywhere.

    Attributes:
        scenarios: Names, scripts, or files.
        grid: The values of each parameter, as texts; one value is the same for all points.
        random: The range of each parameter that is drawn, as `Range.of` parses it.
        samples: Number of draws.
        points: Listed points: texts by parameter; an empty text stands for the default.
        seeds: Number of seeds of the targets' noise, from 0.
        plan_only: Whether points are planned and checked, and not simulated.

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
        for name, text in self.random.items():
            Range.of(name, text)
        grid = {parameter(name).name: _plain_texts(name, self.grid[name]) for name in self.grid}
        points = tuple(_plain_values(point) for point in self.points)
        random = {parameter(name).name: text for name, text in self.random.items()}
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
        """Refuse random draws without a number of them, and of what cannot be drawn."""
        has_samples = self.samples > 0
        if bool(self.random) != has_samples:
            needed = "positive with --random, and left out without it"
            raise InvalidParameter("number of samples", self.samples, needed)

        in_both = set(self.grid) & set(self.random)
        if in_both:
            needed = "either listed or random, but not both"
            raise InvalidParameter("parameter", min(in_both), needed)

        for name in self.random:
            is_number = parameter(name).kind in ("number", "whole number")
            if not is_number and not name.startswith(SOLVER):
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
        """Refuse each listed value that cannot be read by itself.

        A combination that makes no sense is a refused point, not an error.
        """
        for name, texts in self.grid.items():
            # A setting depends on its solver.
            solvers = self.grid.get("solver", ("",)) if name.startswith(SOLVER) else ("",)
            for text, solver in itertools.product(texts, solvers):
                choices({"solver": solver, name: text})

    def _check_seeds_matter(self) -> None:
        """Refuse several seeds where no point has random targets."""
        if self.seeds > 1 and not any(is_random(point.values) for point in self):
            needed = "1 if no target is random: add sample-noise, sample-jitter or sample-dropout"
            raise InvalidParameter("number of seeds", self.seeds, needed)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of what is varied or set, without the seed."""
        listed = dict.fromkeys(name for point in self.points for name in point)
        return (*self.grid, *self.random, *listed)

    @property
    def count(self) -> int:
        """Number of points."""
        combinations = math.prod(len(texts) for texts in self.grid.values()) * (self.samples or 1)
        return len(self.scenarios) * (len(self.points) or combinations) * self.seeds

    def __iter__(self) -> Iterator[Point]:
        product = itertools.product(self.scenarios, self._values(), range(self.seeds))
        for scenario, values, seed in product:
            not_default = {name: text for name, text in values.items() if text}
            if self.seeds > 1:
                not_default[SEED] = str(seed)
            yield Point(scenario, not_default)

    def _values(self) -> list[Mapping[str, str]]:
        """Return the values of the points of one scenario and seed."""
        if self.points:
            return list(self.points)

        combinations = [
            dict(zip(self.grid, texts, strict=True))
            for texts in itertools.product(*self.grid.values())
        ]
        draws = self._draws()
        return [combination | draw for combination in combinations for draw in draws]

    def _draws(self) -> list[dict[str, str]]:
        """Return the random draws; an empty one where nothing is random."""
        if not self.random:
            return [{}]

        # Drawn one after the other: a sweep with more samples begins with the same ones.
        ranges = {name: Range.of(name, text) for name, text in self.random.items()}
        fractions = np.random.default_rng(0).random((self.samples, len(ranges)))
        draws = []
        for row in fractions.tolist():
            draw = {}
            for (name, limits), fraction in zip(ranges.items(), row, strict=True):
                draw[name] = limits.interpolate(fraction, parameter(name))
            draws.append(draw)
        return draws

    def as_text(self) -> str:
        """Return the grid as TOML, which `read_grid` reads."""
        tables: dict[str, Any] = {
            "scenarios": list(self.scenarios),
            "plan_only": self.plan_only,
            "seeds": self.seeds if self.seeds > 1 else 0,
            "samples": self.samples,
            "random": {name: Range.of(name, text).text for name, text in self.random.items()},
            "grid": {name: list(texts) for name, texts in self.grid.items()},
            "points": [dict(point) for point in self.points],
        }
        return tomli_w.dumps({name: value for name, value in tables.items() if value})


def _plain_texts(name: str, values: Sequence[Any]) -> tuple[str, ...]:
    """Return the different values of a parameter, in order; an empty text is the default."""
    definition = parameter(name)
    texts = [text_of(value) for value in values]
    plain = [definition.plain(text) if text else "" for text in texts]
    return tuple(dict.fromkeys(plain))


def _plain_values(point: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a listed point that are not left at their defaults."""
    values = {}
    for name, value in point.items():
        text = text_of(value)
        if text:
            definition = parameter(name)
            values[definition.name] = definition.plain(text)
    return values


class GridFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A grid as a TOML file: the types that a file may have for the attributes of `Grid`."""

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
        InputFileError: The file cannot be read, or is no grid.
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
    """Return a value of a parameter as on the command line; "" for None."""
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

    # Cells with the number of their line, without blank lines.
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
        flag: For the error, without its dashes.

    Returns:
        The texts of the values by name.

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
