"""results.csv: a row for each point, and which of them a page shows, ranked by their error.

Rows are whole at any instant; those of equal identity are equal.
"""

from __future__ import annotations

import csv
import importlib
import io
import math
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from simbridge.errors import InputFileError
from simbridge.files.toml_file import first_repeated
from simbridge.files.writing import open_to_append, replacing, write_file, writing
from simbridge.quoting import quoted, shortened
from simbridge.sweeps.grid import Point
from simbridge.sweeps.parameters import SEED, parameters
from simbridge.sweeps.results_file import decode_rows, encode_row, is_number, read_rows
from simbridge.text import counted, listed

GRID, RESULTS = "sweep.toml", "results.csv"
"""Names in a sweep's directory."""

Row = Mapping[str, str]
"""A line of results.csv: texts by column; "" where there is none."""

FIRST, OUTCOME = ("identity", "scenario"), ("outcome", "reason")
LAST = ("made_by", "wall_s", "host_name", "host_attempts", "directory")
"""Columns before the parameters, after them, and after the figures."""
FIXED = (*FIRST, *OUTCOME, *LAST)
# Of points without figures, those that are shown.
_REASONS = 5
# Characters of a reason at most: that of a user's solver may be as long as it likes.
_LONGEST_REASON = 2000
NUMBERS_OF_A_ROW = ("wall_s", "host_attempts")
"""Columns about a row that hold numbers."""
# See `job.digest`.
_IDENTITY = re.compile(r"[0-9a-f]{16}")
_NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?")
FAILED, REFUSED, PLANNED = "failed", "refused", "planned"
"""Outcomes of points besides those of runs. What has failed is tried again when the sweep goes on."""
MAIN_FIGURE = "tracking_error.position_m.rms"
"""The figure that is shown first: the largest is the worst."""
PLANNED_FIGURE = "solver_error.position_m.rms"
"""The same of a sweep of plans."""


@dataclass(frozen=True)
class Result:
    """What became of a point.

    Attributes:
        outcome: "completed", "planned", "refused", "failed", or what ended the run.
        reason: Why there are no figures, as a sentence.
        figures: By their paths in summary.json, in SI units: "tracking_error.position_m.rms".
        wall: How long it took, s.
        host: Where.
    """

    outcome: str
    reason: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    wall: float = 0.0
    host: str = ""


def number(row: Row, name: str, otherwise: float = math.nan) -> float:
    """A figure or a parameter of a row; another value where it is none."""
    return _float(row.get(name, ""), otherwise)


def is_figure(column: str) -> bool:
    """Whether a column is neither a parameter nor about the row."""
    return column not in FIXED and column not in parameters()


def reasons(rows: Sequence[Row], outcome: str) -> list[str]:
    """Why points have no figures, the most frequent reasons first; those that differ in numbers alone together."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row["outcome"] == outcome:
            kinds[_NUMBER.sub("", row["reason"])].append(row["reason"])
    frequent = sorted(kinds.values(), key=len, reverse=True)[:_REASONS]
    return [
        f"{counted(len(same), 'point')} {outcome}{', such as' * (len({*same}) > 1)}: {same[0]}"
        for same in frequent
    ]


class Results:
    """The results of a sweep's directory.

    Rows are appended, each by one write; the file is replaced as a whole where it needs another column, and at the end.
    A line that a power cut has left unfinished is dropped. Memory holds the lines, not their cells.

    Args:
        path: results.csv, which need not exist.

    Raises:
        InputFileError: It is no such file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] = [*FIXED]
        self._lines: dict[str, bytes] = {}
        self._file: io.FileIO | None = None
        if path.is_file():
            self._read()

    def _read(self) -> None:
        rows = read_rows(self.path)
        line, columns = next(rows, (1, []))
        self._check_header(line, columns)
        self._columns = columns
        identity_place = columns.index("identity")
        outcome_place = columns.index("outcome")
        number_places = [
            (place, name)
            for place, name in enumerate(columns)
            if name in NUMBERS_OF_A_ROW or is_figure(name)
        ]

        for line, cells in rows:
            identity = cells[identity_place]
            if not _IDENTITY.fullmatch(identity):
                reason = f"{quoted(identity)} is no identity of a point; did a spreadsheet read it as a number?"
                raise InputFileError(self.path, reason, line=line, field="identity")
            if not cells[outcome_place]:
                raise InputFileError(self.path, "it is empty", line=line, field="outcome")
            for place, name in number_places:
                if cells[place] and not is_number(cells[place]):
                    raise InputFileError(self.path, _no_number(cells[place]), line=line, field=name)
            # Of what was tried again the last line counts.
            self._lines[identity] = encode_row(cells)

    def _check_header(self, line: int, columns: Sequence[str]) -> None:
        missing = [name for name in FIXED if name not in columns]
        if missing:
            separated = len(columns) == 1 and any(mark in columns[0] for mark in (";", "\t"))
            advice = (
                ". Its cells are not separated by commas: save it as CSV with commas"
                if separated
                else ""
            )
            reason = f"these are not the results of a sweep: columns are missing ({listed(missing)}){advice}"
            raise InputFileError(self.path, reason, line=line)
        if "" in columns:
            raise InputFileError(
                self.path, f"column {columns.index('') + 1} has no name", line=line
            )
        repeated = first_repeated(columns)
        if repeated is not None:
            raise InputFileError(
                self.path, f"there are two columns {quoted(columns[repeated])}", line=line
            )

    @property
    def columns(self) -> Sequence[str]:
        """Of the file, in order."""
        return tuple(self._columns)

    def row(self, identity: str) -> dict[str, str]:
        """The row of a point."""
        cells = next(decode_rows([self._lines[identity]]))
        return dict(zip(self._columns, cells, strict=True))

    def rows(
        self, names: Iterable[str] | None = None, identities: Iterable[str] | None = None
    ) -> list[Row]:
        """Rows with only some columns, to save memory: of these points, or all."""
        places = [
            (name, self._columns.index(name))
            for name in names or self._columns
            if name in self._columns
        ]
        lines = (
            self._lines.values()
            if identities is None
            else (self._lines[identity] for identity in identities)
        )
        return [{name: cells[place] for name, place in places} for cells in decode_rows(lines)]

    def begin(self, names: Sequence[str]) -> None:
        """Write the rows that there are, with columns for these parameters."""
        self._grow(names)
        self._rewrite()

    def has(self, identity: str, point: Point) -> bool:
        """Whether a point is known and need not be tried again.

        It may be known by other words, such as a default that is now given: it then gets these.
        """
        if identity not in self._lines or (row := self.row(identity))["outcome"] == FAILED:
            return False
        self._set(identity, row | {"scenario": point.scenario, **point.values})
        return True

    def point(self, identity: str) -> Point:
        """The point of a row."""
        row = self.row(identity)
        return Point(
            row["scenario"],
            {name: text for name, text in row.items() if text and name in parameters()},
        )

    def add(self, identity: str, point: Point, result: Result, attempts: int, made_by: str) -> Row:
        """Add a row; it is in the file when this returns."""
        row = {
            "identity": identity,
            "scenario": point.scenario,
            **point.values,
            "outcome": result.outcome,
            "reason": shortened(result.reason, _LONGEST_REASON),
            **{name: f"{value:.17g}" for name, value in result.figures.items()},
            "made_by": made_by,
            "wall_s": f"{result.wall:.3f}",
            "host_name": result.host,
            "host_attempts": str(attempts),
        }
        grown = self._grow(row)
        self._set(identity, row)
        if grown or self._file is None:
            self._rewrite()
        else:
            with writing(self.path):
                self._file.write(self._lines[identity])
        return row

    def kept(self, identity: str, directory: str) -> None:
        """A run's directory was written, or is there no more: ""."""
        self._set(identity, self.row(identity) | {"directory": directory})

    def close(self) -> None:
        """Write all that changed."""
        self._rewrite()
        if self._file is not None:
            self._file.close()
            self._file = None

    def write_parquet(self) -> None:
        """Write results.parquet with the same columns, numbers as such, where pyarrow is installed."""
        try:
            reader, parquet = (
                importlib.import_module("pyarrow.csv"),
                importlib.import_module("pyarrow.parquet"),
            )
        except ImportError:
            return
        # Without the apostrophes that protect texts from spreadsheets.
        with tempfile.TemporaryFile("w+", newline="", encoding="utf-8") as plain:
            rows = csv.writer(plain, lineterminator="\n")
            rows.writerow(self._columns)
            rows.writerows(decode_rows(self._lines.values()))
            plain.flush()
            plain.seek(0)
            with replacing(self.path.with_suffix(".parquet"), follow_links=False) as path:
                parquet.write_table(reader.read_csv(plain.buffer), path)

    def _set(self, identity: str, row: Row) -> None:
        self._lines[identity] = encode_row(row.get(name, "") for name in self._columns)

    def _grow(self, names: Iterable[str]) -> bool:
        new = [name for name in names if name not in self._columns]
        if new:
            rows = {identity: self.row(identity) for identity in self._lines}
            known = [*self._columns, *new]
            given = [name for name in known if name in parameters()]
            figures = sorted(
                filter(is_figure, known),
                key=lambda name: (not name.startswith("tracking_error"), name),
            )
            self._columns = [*FIRST, *given, *OUTCOME, *figures, *LAST]
            for identity, row in rows.items():
                self._set(identity, row)
        return bool(new)

    def _rewrite(self) -> None:
        if self._file is not None:
            self._file.close()
        content = b"".join([encode_row(self._columns), *self._lines.values()])
        write_file(self.path, content, follow_links=False)
        self._file = open_to_append(self.path)


def _no_number(cell: str) -> str:
    """The reason why a cell that should be a number cannot be read."""
    reason = f"{quoted(cell)} is not a number"
    if is_number(cell.replace(",", ".", 1)):
        return f"{reason}; write it with a decimal point"
    return f"{reason}; columns of a sweep besides its parameters are figures"


AXES, MAPS = 2, 4
"""Parameters of a map, and maps at most."""


@dataclass(frozen=True)
class Quantity:
    """A figure that is drawn: its column in results.csv, its title with its unit, and that unit's scale from SI."""

    column: str
    title: str
    scale: float = 1.0

    def of(self, row: Row) -> float:
        """That of a row, in the title's unit; NaN where there is none."""
        return self.scale * number(row, self.column)

    @property
    def words(self) -> str:
        """An error in a sentence."""
        return "tracking error" if self.column == MAIN_FIGURE else "error of the solver"


ERROR = Quantity(MAIN_FIGURE, "Tracking error, RMS (mm)", 1e3)
QUANTITIES = (
    ERROR,
    Quantity(PLANNED_FIGURE, "Solver's error, RMS (mm)", 1e3),
    Quantity("delay_s", "Delay (ms)", 1e3),
    Quantity("smoothness.tool.sparc", "SPARC of the tool (closer to 0: smoother)"),
)
"""What the page draws over the parameters; the first that there is, is what points are ranked by."""
RIVALS = {
    "smoothness": Quantity(
        "smoothness.tool.sparc", "Roughness: -SPARC of the tool (less is smoother)", -1.0
    ),
    "effort": Quantity("joint_effort.torque.rms", "Largest RMS torque of a joint (N m)"),
}
"""What a small error may cost, of which less is better."""


@dataclass(frozen=True)
class Points:
    """The points that a page shows.

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
    def of(rows: Sequence[Row]) -> Points:
        """The points of rows, some of which may have no figures."""
        error = next(
            (one for one in QUANTITIES if any(not math.isnan(one.of(row)) for row in rows)), ERROR
        )
        ranked = sorted((row for row in rows if not math.isnan(error.of(row))), key=error.of)
        names = (
            "scenario",
            *(name for name in (ranked[0] if ranked else ()) if name in parameters()),
        )
        varied = [name for name in names if len({row[name] for row in ranked}) > 1]
        numeric = [
            name
            for name in varied
            if name != SEED and all(math.isfinite(_float(row[name])) for row in ranked if row[name])
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

    def families(self) -> dict[tuple[str, ...], list[Row]]:
        """The rows by their values of what is no number, in the order of these."""
        found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row in self.rows:
            found[tuple(row[name] for name in self.other)].append(row)
        return dict(
            sorted(found.items(), key=lambda item: [(_float(text), text) for text in item[0]])
        )

    def fronts(self) -> dict[str, list[Row]]:
        """The points that no other point beats both in the error and in smoothness, or effort."""
        found: dict[str, list[Row]] = {}
        for name, rival in RIVALS.items() if self.error is ERROR else ():
            known = [row for row in self.rows if not math.isnan(rival.of(row))]
            least = math.inf
            for row in known if len(known) > 2 else ():
                if rival.of(row) < least:
                    found.setdefault(name, []).append(row)
                    least = rival.of(row)
        return found


def _float(text: str, otherwise: float = math.inf) -> float:
    return float(text) if is_number(text) else otherwise
