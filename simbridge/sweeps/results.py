"""Keeps the rows of results.csv, one for each point of a sweep.

The file is complete at any instant. Rows of equal identity have equal figures.
"""

from __future__ import annotations

import csv
import importlib
import io
import math
import re
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from simbridge.errors import InputFileError
from simbridge.files.toml_file import find_repeated
from simbridge.files.writing import open_to_append, replacing, write_file, writing
from simbridge.json_output import SCHEMA_VERSION
from simbridge.quoting import quoted, shorten
from simbridge.servo.extrapolation import describe_extrapolation
from simbridge.sweeps.grid import Point
from simbridge.sweeps.parameters import parameters
from simbridge.sweeps.results_file import decode_rows, encode_row, is_number, read_rows
from simbridge.text import counted, join_words

# Name of the file with the grid, in a sweep's directory.
GRID = "sweep.toml"
# Name of the file with the results, in a sweep's directory.
RESULTS = "results.csv"

# A row of results.csv: texts by column; "" where a cell is empty.
Row = Mapping[str, str]

# Columns before the parameters.
FIRST = ("identity", "scenario")
# Columns between the parameters and the figures.
OUTCOME = ("outcome", "reason")
# Columns after the figures.
LAST = ("schema_version", "made_by", "wall_s", "host_name", "host_attempts", "directory")
# Columns that every file of results has.
FIXED = (*FIRST, *OUTCOME, *LAST)
# Columns of LAST that hold numbers.
NUMBERS_OF_A_ROW = ("schema_version", "wall_s", "host_attempts")

# Outcome of a point that could not be made. It is tried again when the sweep is resumed.
FAILED = "failed"
# Outcome of a point whose values do not go together.
REFUSED = "refused"
# Outcome of a point that was only planned.
PLANNED = "planned"

# The main figure of a run, m: the point with the largest one is the worst.
MAIN_FIGURE = "tracking_error.position_m.rms"
# The main figure of a plan, m.
PLANNED_FIGURE = "solver_error.position_m.rms"
# The gain of servoj, 1/s^2, in runs whose servo law is extrapolated; other rows have none.
EXTRAPOLATED_GAIN = "extrapolated_servo_gain"

# Largest number of different reasons for missing figures that are shown.
MAX_REASONS = 5
# Largest length of a reason, characters: a user's solver may give a longer one.
MAX_REASON_LENGTH = 2000
# Significant digits of a figure: reading them gives exactly the number that was written.
FIGURE_DIGITS = 17

# The form of an identity: see `digest`.
IDENTITY_PATTERN = re.compile(r"[0-9a-f]{16}")
# The form of a number within a sentence.
NUMBER_PATTERN = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?")


@dataclass(frozen=True)
class Result:
    """The outcome of one point, with its figures.

    Attributes:
        outcome: "completed", "planned", "refused", "failed", or what ended the run.
        reason: Why there are no figures, as a sentence; "" if there are.
        figures: Values by their paths in summary.json, in SI units:
            "tracking_error.position_m.rms".
        wall: Time that the point took, s.
        host: Name of the computer that made the point.
    """

    outcome: str
    reason: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    wall: float = 0.0
    host: str = ""


def number(row: Row, name: str, default: float = math.nan) -> float:
    """Return the number in a row's column; the default if the cell does not hold a number."""
    cell = row.get(name, "")
    return float(cell) if is_number(cell) else default


def is_figure(column: str) -> bool:
    """Return whether a column holds a figure, rather than a parameter or a fact about the row."""
    return column not in FIXED and column not in parameters()


def describe_extrapolated_rows(rows: Iterable[Row]) -> str:
    """Return a sentence on the rows whose servo law is extrapolated; "" without any."""
    gains = [number(row, EXTRAPOLATED_GAIN) for row in rows if row.get(EXTRAPOLATED_GAIN)]
    return describe_extrapolation(gains)


def reasons(rows: Sequence[Row], outcome: str) -> list[str]:
    """Return sentences that say why points have no figures, the most frequent reasons first.

    Reasons that differ only in their numbers are counted together.

    Args:
        rows: Rows of the sweep, with any outcome.
        outcome: REFUSED or FAILED.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row["outcome"] == outcome:
            without_numbers = NUMBER_PATTERN.sub("", row["reason"])
            groups[without_numbers].append(row["reason"])

    sentences = []
    for group in sorted(groups.values(), key=len, reverse=True)[:MAX_REASONS]:
        # With different numbers in the group, the first reason is only an example.
        such_as = ", such as" if len(set(group)) > 1 else ""
        sentences.append(f"{counted(len(group), 'point')} {outcome}{such_as}: {group[0]}")
    return sentences


class Results:
    """The results of a sweep, in memory and in the file results.csv.

    Each row is appended by one write. The file is replaced as a whole if it needs another column,
    and at the end. A line that a power cut has left unfinished is dropped. Memory holds the encoded
    lines, which are much smaller than their cells.

    Args:
        path: Path of results.csv, which need not exist.

    Raises:
        InputFileError: The file is not the results of a sweep.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Names of the columns, in the order of the file.
        self._columns: list[str] = [*FIXED]
        # Encoded rows by identity, in the order of the file.
        self._lines: dict[str, bytes] = {}
        # The file, open to append; None before the first row is written.
        self._file: io.FileIO | None = None

        if path.is_file():
            self._read()

    def _read(self) -> None:
        """Read and check the header and all rows."""
        self._columns, rows = _read_checked(self.path)
        identity_index = self._columns.index("identity")
        for cells in rows:
            # A point that was tried again has several lines: the last one counts.
            self._lines[cells[identity_index]] = encode_row(cells)

    @property
    def columns(self) -> Sequence[str]:
        """Names of the file's columns, in order."""
        return tuple(self._columns)

    def row(self, identity: str) -> dict[str, str]:
        """Return the row of a point."""
        cells = next(decode_rows([self._lines[identity]]))
        return dict(zip(self._columns, cells, strict=True))

    def rows(
        self, names: Iterable[str] | None = None, identities: Iterable[str] | None = None
    ) -> list[Row]:
        """Return rows with only some columns, to save memory.

        Args:
            names: Names of the columns; those that the file does not have are left out. All columns
                by default.
            identities: Identities of the points; all points by default.
        """
        selected = _select_columns(self._columns, names or self._columns)
        lines: Iterable[bytes] = self._lines.values()
        if identities is not None:
            lines = (self._lines[identity] for identity in identities)

        return [{name: cells[index] for name, index in selected} for cells in decode_rows(lines)]

    def begin(self, names: Sequence[str]) -> None:
        """Write the file with the rows so far, and with columns for the named parameters."""
        self._add_columns(names)
        self._rewrite()

    def reuse(self, identity: str, point: Point) -> bool:
        """Return whether the row of a point can be reused, so that it need not be made again.

        The row may describe the point differently, for example without a default value that `point`
        states. It then gets the description of `point`.
        """
        if identity not in self._lines:
            return False

        row = self.row(identity)
        if row["outcome"] == FAILED:
            return False

        self._set_row(identity, row | {"scenario": point.scenario, **point.values})
        return True

    def point(self, identity: str) -> Point:
        """Return the point of a row."""
        row = self.row(identity)
        values = {name: text for name, text in row.items() if text and name in parameters()}
        return Point(row["scenario"], values)

    def add(
        self, identity: str, point: Point, result: Result, *, attempts: int, made_by: str
    ) -> Row:
        """Add a row; it is in the file when this returns.

        Args:
            identity: Identity of the point.
            point: The point that was run.
            result: Outcome and figures of the point.
            attempts: Number of attempts at the point.
            made_by: Versions of the programs that made it: see `simbridge.sweeps.identity.made_by`.

        Returns:
            The row.
        """
        figures = {name: f"{value:.{FIGURE_DIGITS}g}" for name, value in result.figures.items()}
        row = {
            "identity": identity,
            "scenario": point.scenario,
            **point.values,
            "outcome": result.outcome,
            "reason": shorten(result.reason, MAX_REASON_LENGTH),
            **figures,
            "schema_version": str(SCHEMA_VERSION),
            "made_by": made_by,
            "wall_s": f"{result.wall:.3f}",
            "host_name": result.host,
            "host_attempts": str(attempts),
        }
        has_new_columns = self._add_columns(row)
        self._set_row(identity, row)

        # A row that needs another column changes all rows of the file.
        if has_new_columns or self._file is None:
            self._rewrite()
        else:
            with writing(self.path):
                self._file.write(self._lines[identity])
        return row

    def set_directory(self, identity: str, directory: str) -> None:
        """Store where the run of a point was kept, relative to the sweep; "" if it was not kept."""
        self._set_row(identity, self.row(identity) | {"directory": directory})

    def close(self) -> None:
        """Write all that changed."""
        self._rewrite()
        if self._file is not None:
            self._file.close()
            self._file = None

    def write_parquet(self) -> None:
        """Write results.parquet with the same columns, if pyarrow is installed."""
        try:
            reader = importlib.import_module("pyarrow.csv")
            parquet = importlib.import_module("pyarrow.parquet")
        except ImportError:
            return

        # Parquet gets the cells without the apostrophes that protect texts from spreadsheets.
        with tempfile.TemporaryFile("w+", newline="", encoding="utf-8") as plain:
            rows = csv.writer(plain, lineterminator="\n")
            rows.writerow(self._columns)
            rows.writerows(decode_rows(self._lines.values()))
            plain.flush()
            plain.seek(0)
            with replacing(self.path.with_suffix(".parquet"), follow_links=False) as path:
                parquet.write_table(reader.read_csv(plain.buffer), path)

    def _set_row(self, identity: str, row: Row) -> None:
        """Store a row in memory."""
        self._lines[identity] = encode_row(row.get(name, "") for name in self._columns)

    def _add_columns(self, names: Iterable[str]) -> bool:
        """Add the named columns that are missing to all rows in memory.

        Returns:
            Whether any was missing: the file then has to be rewritten.
        """
        known = set(self._columns)
        new_columns = [name for name in names if name not in known]
        if not new_columns:
            return False

        # Rows are decoded with the old columns, and encoded again with the new ones.
        rows = {identity: self.row(identity) for identity in self._lines}

        # Sort the columns into their groups.
        columns = [*self._columns, *new_columns]
        parameter_columns = [name for name in columns if name in parameters()]
        figure_columns = [name for name in columns if is_figure(name)]
        # The figures of the tracking error come first, then the others by name.
        figure_columns.sort(key=lambda name: (not name.startswith("tracking_error"), name))
        self._columns = [*FIRST, *parameter_columns, *OUTCOME, *figure_columns, *LAST]

        for identity, row in rows.items():
            self._set_row(identity, row)
        return True

    def _rewrite(self) -> None:
        """Replace the whole file, and open it to append."""
        if self._file is not None:
            self._file.close()
        content = b"".join([encode_row(self._columns), *self._lines.values()])
        write_file(self.path, content, follow_links=False)
        self._file = open_to_append(self.path)


def read_results(path: Path, names: Iterable[str]) -> list[Row]:
    """Read only some columns of a sweep's rows; the others are not checked, which saves time.

    A point that was tried again has several rows in the file, of which the last one counts.

    Args:
        path: Path of results.csv.
        names: Names of the columns; those that the file does not have are left out.

    Raises:
        InputFileError: The file cannot be read, or is not the results of a sweep.
    """
    names = tuple(names)
    columns, rows = _read_checked(path, names)
    identity_index = columns.index("identity")
    selected = _select_columns(columns, names)

    latest = {}
    for cells in rows:
        latest[cells[identity_index]] = {name: cells[index] for name, index in selected}
    return list(latest.values())


def _select_columns(columns: Sequence[str], names: Iterable[str]) -> list[tuple[str, int]]:
    """Return those of the names that are columns, each with its index among the columns."""
    indices = {name: index for index, name in enumerate(columns)}
    return [(name, indices[name]) for name in names if name in indices]


def _read_checked(
    path: Path, names: Collection[str] | None = None
) -> tuple[list[str], Iterator[list[str]]]:
    """Read results.csv, and refuse what is not the results of a sweep.

    Args:
        path: Path of the file.
        names: Names of the columns whose numbers are checked; all columns by default.

    Returns:
        The names of the columns, and an iterator over the cells of each row. A row is checked when
        the iterator comes to it.

    Raises:
        InputFileError: The file cannot be read, or its header is not that of a sweep.
    """
    numbered_rows = read_rows(path)
    line, columns = next(numbered_rows, (1, []))
    _check_header(path, line, columns)
    number_columns = [
        (index, name)
        for index, name in enumerate(columns)
        if (name in NUMBERS_OF_A_ROW or is_figure(name)) and (names is None or name in names)
    ]
    return columns, _check_rows(path, columns, number_columns, numbered_rows)


def _check_header(path: Path, line: int, columns: Sequence[str]) -> None:
    """Refuse a header that lacks a column, or has one without a name or twice."""
    missing = [name for name in FIXED if name not in columns]
    if missing:
        advice = ""
        if len(columns) == 1 and (";" in columns[0] or "\t" in columns[0]):
            advice = ". Its cells are not separated by commas: save it as comma-separated CSV"
        reason = (
            "these are not the results of a sweep: columns are missing "
            f"({join_words(missing)}){advice}"
        )
        raise InputFileError(path, reason, line=line)

    if "" in columns:
        raise InputFileError(path, f"column {columns.index('') + 1} has no name", line=line)

    repeated = find_repeated(columns)
    if repeated is not None:
        reason = f"there are two columns {quoted(columns[repeated])}"
        raise InputFileError(path, reason, line=line)


def _check_rows(
    path: Path,
    columns: Sequence[str],
    number_columns: Sequence[tuple[int, str]],
    numbered_rows: Iterable[tuple[int, list[str]]],
) -> Iterator[list[str]]:
    """Yield the cells of each row, and refuse a row with a text in place of a number.

    A row without identity or outcome is refused, too.

    Args:
        path: Path of the file, for errors.
        columns: Names of the columns.
        number_columns: Index and name of each column that has to hold numbers.
        numbered_rows: Number of the line, and cells, of each row.
    """
    identity_index = columns.index("identity")
    outcome_index = columns.index("outcome")
    for line, cells in numbered_rows:
        identity = cells[identity_index]
        if not IDENTITY_PATTERN.fullmatch(identity):
            reason = (
                f"{quoted(identity)} is not a valid point identity; did a spreadsheet convert it "
                "to a number?"
            )
            raise InputFileError(path, reason, line=line, field="identity")

        if not cells[outcome_index]:
            raise InputFileError(path, "it is empty", line=line, field="outcome")

        for index, name in number_columns:
            cell = cells[index]
            if cell and not is_number(cell):
                raise InputFileError(path, _explain_no_number(cell), line=line, field=name)
        yield cells


def _explain_no_number(cell: str) -> str:
    """Return the reason why a cell that should be a number cannot be read."""
    reason = f"{quoted(cell)} is not a number"
    with_decimal_point = cell.replace(",", ".", 1)
    if is_number(with_decimal_point):
        return f"{reason}; write it with a decimal point"
    return f"{reason}; columns of a sweep other than its parameters contain numbers"
