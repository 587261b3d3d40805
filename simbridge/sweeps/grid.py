"""Which points a sweep has: all combinations of listed values, random draws, listed points, seeds; also as TOML."""

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

LARGEST = 10_000_000
"""Points of a sweep at most."""


@dataclass(frozen=True)
class Point:
    """One run of a sweep.

    Attributes:
        scenario: A name, a script, or a file.
        values: Texts by the names of their parameters, as at the command line; what is not given is left out.
    """

    scenario: str
    values: Mapping[str, str]

    def command(self, *, plan_only: bool = False) -> str:
        """The command line that makes this point alone."""
        words = ["simbridge", "check" if plan_only else "run", self.scenario]
        for name, text in self.values.items():
            if plan_only and not parameter(name).planned:
                continue
            words += [f"--{name}", *(text.split() if parameter(name).kind != "text" else [text])]
        return shlex.join(words)


@dataclass(frozen=True)
class Range:
    """Random values between two numbers, in the flag's unit; log: whether their logarithms are uniform."""

    low: float
    high: float
    log: bool = False

    @staticmethod
    def of(name: str, text: str) -> Range:
        """From low:high or low:high:log; anything else is an InvalidParameter."""
        low, *rest = text.split(":")
        try:
            found = Range(float(low), float(rest[0]), rest[1:] == ["log"])
            known = rest[1:] in ([], ["log"]) and -math.inf < found.low < found.high < math.inf
            if not known or (found.log and found.low <= 0.0):
                raise ValueError
        except (ValueError, IndexError):
            needed = "low:high, or low:high:log with low above 0"
            raise InvalidParameter(f"range of {name}", quoted(text), needed) from None
        return found

    @property
    def text(self) -> str:
        """As it is given."""
        return f"{self.low:.12g}:{self.high:.12g}{':log' * self.log}"

    def drawn(self, share: float, of: Parameter) -> str:
        """The value at a share of the range, 0 to 1, as text."""
        if self.log:
            value = math.exp(
                math.log(self.low) + share * (math.log(self.high) - math.log(self.low))
            )
        else:
            value = self.low + share * (self.high - self.low)
        return of.plain(str(round(value)) if of.kind == "whole number" else f"{value:.6g}")


@dataclass(frozen=True)
class Grid:
    """What a sweep varies.

    The points are the product of the scenarios, the listed values, the random draws and the seeds; or the listed points
    in place of values and draws.

    Attributes:
        scenarios: Names, scripts, or files.
        grid: The values of each parameter, as texts; one value is the same for all points.
        random: The range of each parameter that is drawn.
        samples: How many draws.
        points: Listed points: texts by parameter; an empty text is not given.
        seeds: Number of seeds of the targets' noise, from 0.
        plan_only: Whether points are planned and checked, and not simulated.

    Raises:
        InvalidParameter, UnknownName: A parameter or a value does not exist, or the parts do not fit together.
    """

    scenarios: tuple[str, ...]
    grid: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    random: Mapping[str, Range] = field(default_factory=dict)
    samples: int = 0
    points: tuple[Mapping[str, str], ...] = ()
    seeds: int = 1
    plan_only: bool = False

    def __post_init__(self) -> None:
        grid = {
            (one := parameter(name)).name: tuple(
                dict.fromkeys(one.plain(text) if text else "" for text in texts)
            )
            for name, texts in self.grid.items()
        }
        points = tuple(
            {(one := parameter(name)).name: one.plain(text) for name, text in point.items() if text}
            for point in self.points
        )
        object.__setattr__(self, "grid", grid)
        object.__setattr__(
            self, "random", {parameter(name).name: range_ for name, range_ in self.random.items()}
        )
        object.__setattr__(self, "points", points)
        self._check()

    def _check(self) -> None:
        if not self.scenarios:
            raise InvalidParameter("number of scenarios", 0, "one or more")
        if self.points and (self.grid or self.random):
            raise InvalidParameter(
                "sweep", "points and a grid", "one of them: --points, or --grid and --random"
            )
        if bool(self.random) != (self.samples > 0):
            needed = "positive with --random, and left out without it"
            raise InvalidParameter("number of samples", self.samples, needed)
        if twice := set(self.grid) & set(self.random):
            raise InvalidParameter("parameter", min(twice), "either listed or random, not both")
        for name in self.random:
            if parameter(name).kind not in ("number", "whole number") and not name.startswith(
                SOLVER
            ):
                raise InvalidParameter("random parameter", name, "a number")
        if self.seeds < 1:
            raise InvalidParameter("number of seeds", self.seeds, "1 or more")
        if self.seeds > 1 and SEED in self.parameters:
            raise InvalidParameter(
                "number of seeds", self.seeds, f"left out where {SEED} is a parameter"
            )
        if self.count > LARGEST:
            raise InvalidParameter("number of points", self.count, f"at most {LARGEST}")
        # Each value by itself: a combination that makes no sense is a refused point.
        for name, texts in self.grid.items():
            for text in texts:
                for solver in self.grid.get("solver", ("",)) if name.startswith(SOLVER) else ("",):
                    choices({"solver": solver, name: text})
        if self.seeds > 1 and not any(is_random(point.values) for point in self):
            needed = (
                "1 where no target is random: give sample-noise, sample-jitter or sample-dropout"
            )
            raise InvalidParameter("number of seeds", self.seeds, needed)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of what is varied or set, without the seed."""
        listed = dict.fromkeys(name for point in self.points for name in point)
        return (*self.grid, *self.random, *listed)

    @property
    def count(self) -> int:
        """Number of points."""
        inner = len(self.points) or math.prod(map(len, self.grid.values())) * (self.samples or 1)
        return len(self.scenarios) * inner * self.seeds

    def __iter__(self) -> Iterator[Point]:
        for scenario, values, seed in itertools.product(
            self.scenarios, self._values(), range(self.seeds)
        ):
            given = {name: text for name, text in values.items() if text}
            yield Point(scenario, given | ({SEED: str(seed)} if self.seeds > 1 else {}))

    def _values(self) -> list[Mapping[str, str]]:
        if self.points:
            return list(self.points)
        listed = [
            dict(zip(self.grid, texts, strict=True))
            for texts in itertools.product(*self.grid.values())
        ]
        # Drawn one after the other: more samples begin with the same ones.
        shares = np.random.default_rng(0).random((self.samples, len(self.random)))
        drawn = [
            {
                name: self.random[name].drawn(share, parameter(name))
                for name, share in zip(self.random, row, strict=True)
            }
            for row in shares.tolist()
        ] or [{}]
        return [one | other for one in listed for other in drawn]

    def as_text(self) -> str:
        """As TOML, which `read_grid` reads."""
        tables: dict[str, Any] = {
            "scenarios": list(self.scenarios),
            "plan_only": self.plan_only,
            "seeds": self.seeds if self.seeds > 1 else 0,
            "samples": self.samples,
            "random": {name: range_.text for name, range_ in self.random.items()},
            "grid": {name: list(texts) for name, texts in self.grid.items()},
            "points": [dict(point) for point in self.points],
        }
        return tomli_w.dumps({name: value for name, value in tables.items() if value})


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    scenarios: tuple[str, ...]
    grid: dict[str, list[str | float | bool] | str | float | bool] = {}
    random: dict[str, str] = {}
    samples: int = 0
    points: list[dict[str, str | float]] = []
    seeds: int = 1
    plan_only: bool = False


def read_grid(path: str | Path) -> Grid:
    """The grid of a TOML file, as each sweep writes it. Errors: see `Grid`, and InputFileError."""
    data = TomlFile(Path(path)).decode(_File)
    listed = {
        name: value if isinstance(value, list) else [value] for name, value in data.grid.items()
    }
    return Grid(
        **msgspec.structs.asdict(data)
        | {
            "grid": {name: tuple(map(text_of, values)) for name, values in listed.items()},
            "random": {name: Range.of(name, text) for name, text in data.random.items()},
            "points": tuple(
                {name: text_of(value) for name, value in point.items()} for point in data.points
            ),
        }
    )


def text_of(value: Any) -> str:
    """A value of a parameter as at the command line; "" for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def read_points(path: str | Path) -> tuple[Mapping[str, str], ...]:
    """Listed points from a CSV file: a header of parameters, a line for each point; an empty cell is not given.

    Raises:
        InputFileError: It cannot be read, or a line has another number of cells.
    """
    reader = csv.reader(
        io.StringIO(read_text(Path(path), MAX_SAMPLES_TEXT), newline=""), strict=True
    )
    rows: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((reader.line_num, [cell.strip() for cell in cells]))
    except csv.Error as error:
        raise InputFileError(
            path, f"this is not a row of cells: {error}", line=reader.line_num
        ) from None
    if len(rows) < 2:
        raise InputFileError(path, "it has no header with a line below it")

    (_, header), *points = rows
    for line, cells in points:
        if len(cells) != len(header):
            raise InputFileError(
                path, f"it has {len(cells)} cells, and the header {len(header)}", line=line
            )
    return tuple(dict(zip(header, cells, strict=True)) for _, cells in points)


def listed_values(given: Sequence[str], flag: str) -> dict[str, str]:
    """Words of the form NAME=VALUES by their names.

    Raises:
        InvalidParameter: A word has another form, or two have the same name.
    """
    found: dict[str, str] = {}
    for word in given:
        name, equals, text = word.partition("=")
        name = name.strip().replace("_", "-")
        if not equals or not name or not text.strip() or name in found:
            raise InvalidParameter(
                f"value of --{flag}", quoted(word), "NAME=VALUES, each name once"
            )
        found[name] = text
    return found
