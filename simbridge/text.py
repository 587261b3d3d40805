"""Numbers and words for people: millimetres, degrees and milliseconds, with significant digits."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # only the command line prints tables
    from rich.console import Console
    from rich.table import Table

# Smaller values, in the unit that is shown, are rounding errors of doubles.
ROUNDING = 1e-9
# A smaller value, in the unit that is shown, is written as "<0.0001": no quantity is known better.
SMALLEST = 1e-4
# Characters at least for the names at the left of a table.
MIN_NAME_WIDTH = 12
# A width that no table exceeds, characters.
UNLIMITED_WIDTH = 1000
# Longer lines are hard to read, characters.
MAX_READABLE_WIDTH = 100
NO_BREAK = "\u00a0"
MINUS = "\u2212"


def significant(value: float | None, digits: int = 3, decimals: int = 6) -> str:
    """Return a number with its significant digits, never with an exponent.

    Args:
        value: The number; None, and a number that is not finite, is a dash.
        digits: Significant digits.
        decimals: Digits after the point at most. A positive number that is too small for them, or
            is below SMALLEST, is written as that bound: "<0.01" or "<0.0001". A negative one is
            then 0.
    """
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) < ROUNDING:
        return "0"
    if abs(value) < SMALLEST:
        return _below(max(SMALLEST, 10.0**-decimals), value)

    places = _places(value, digits, decimals)
    # 0.9996 is written as 1.00: rounding may add a digit before the point. (0.0 has no digits.)
    rounded = round(value, places)
    places = _places(rounded or value, digits, decimals)
    text = f"{abs(value):.{places}f}"
    if float(text) == 0.0:
        return _below(10.0**-decimals, value)
    return (MINUS if value < 0.0 else "") + text


def _below(limit: float, value: float) -> str:
    """Return "<0.0001" for a value from 0 to a limit, and "0" for a negative one."""
    return f"<{limit:.10f}".rstrip("0") if value > 0.0 else "0"


def _places(value: float, digits: int, decimals: int) -> int:
    """Return how many digits after the point a number has; see `significant`."""
    exponent = math.floor(math.log10(abs(value)))
    return min(max(digits - 1 - exponent, 0), decimals)


# For units of values: the factor, the unit and the decimals with which they are shown.
_DISPLAY = {
    "m": (1e3, "mm", 4),
    "m/s": (1e3, "mm/s", 4),
    "s": (1e3, "ms", 2),
    "rad": (math.degrees(1.0), "°", 4),
    "share": (100.0, "%", 2),
}


def displayed(value: float | None, unit: str) -> tuple[str, str]:
    """Return a value in SI units as the terminal and the pages show it: the number, and its unit.

    Args:
        value: The value, in SI units; None is shown as a dash.
        unit: Unit of the value. It becomes mm for m, mm/s for m/s, ms for s, ° for rad and % for
            "share", a part from 0 to 1.
    """
    scale, display_unit, decimals = _DISPLAY.get(unit, (1.0, unit, 6))
    scaled = None if value is None else scale * value
    return significant(scaled, decimals=decimals), display_unit


def millimetres(metres: float | None) -> str:
    """Return a length in mm, with at most four decimals, without the unit."""
    number, _ = displayed(metres, "m")
    return number


def degrees(radians: float | None) -> str:
    """Return an angle in degrees, with at most four decimals, without the unit."""
    number, _ = displayed(radians, "rad")
    return number


def milliseconds(seconds: float | None) -> str:
    """Return a time in ms, without the unit.

    It has at most two decimals: delays are known to about 0.01 ms.
    """
    number, _ = displayed(seconds, "s")
    return number


def milliradians(radians: float) -> str:
    """Return an angle in mrad, with three significant digits, without the unit."""
    return significant(1e3 * radians)


def fixed(value: float, decimals: int) -> str:
    """Return a number with a fixed count of decimals, and never a negative zero."""
    return f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", MINUS)


def plain(value: float) -> str:
    """Return a setting: every digit that was given, and no trailing zeros."""
    return f"{value:.10g}".replace("-", MINUS)


def with_unit(number: str, unit: str) -> str:
    """Return number and unit, never broken across lines.

    There is no space before a degree sign, and nothing after a dash.
    """
    if number == "–":
        return number
    return f"{number}°" if unit == "°" else f"{number}{NO_BREAK}{unit}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 sample", "2 samples"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def join_words(parts: Sequence[str], conjunction: str = "and") -> str:
    """Return words as a list in a sentence: "a", "a and b", "a, b and c"."""
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} {conjunction} {parts[-1]}"


def readable_width(console: Console) -> int:
    """Return the width of lines and tables in a terminal, characters.

    If a program or a file takes them (and COLUMNS names no width) it is unlimited.
    """
    if console.is_terminal or "COLUMNS" in os.environ:
        return min(console.width, MAX_READABLE_WIDTH)
    return UNLIMITED_WIDTH


def make_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: Sequence[str] = (),
    bold: Sequence[str] = (),
) -> Table:
    """Return a plain table for the terminal.

    Numbers are right-justified, the first column and those in `left` left-justified. Where the
    terminal is too narrow, titles of columns are broken into lines, and then columns of text at
    their marks, the widest first.

    Args:
        columns: Titles of the columns.
        rows: Cells, as rich's markup.
        left: Titles of columns of text.
        bold: The first cells of rows to emphasise.
    """
    from rich.console import Console  # noqa: PLC0415 (only the command line prints tables)

    left_columns = [number for number, name in enumerate(columns) if number == 0 or name in left]
    bold_rows = [number for number, row in enumerate(rows) if row[0] in bold]

    console = Console()
    console.width = readable_width(console)
    table = _plain_table(columns, rows, left_columns=left_columns, bold_rows=bold_rows)
    unlimited = console.options.update(max_width=UNLIMITED_WIDTH)
    if console.measure(table, options=unlimited).maximum <= console.width:
        return table

    # One list of cells for each column, with its title on top.
    titles = [name.replace(" ", "\n") for name in columns]
    cells = [list(column) for column in zip(titles, *rows, strict=True)]
    for number in sorted(left_columns, key=lambda number: -_cell_width(cells[number])):
        # The room that the other columns, two characters apart, leave to this one.
        others = cells[:number] + cells[number + 1 :]
        room = console.width - sum(2 + _cell_width(column) for column in others)
        width = max(room, MIN_NAME_WIDTH)
        title, *names = cells[number]
        cells[number] = [title, *(_break_name(name, width) for name in names)]

    titles, *narrow_rows = (list(row) for row in zip(*cells, strict=True))
    return _plain_table(titles, narrow_rows, left_columns=left_columns, bold_rows=bold_rows)


def fits_terminal(table: Table) -> bool:
    """Return whether the terminal is wide enough for all cells of a table."""
    from rich.console import Console  # noqa: PLC0415 (only the command line prints tables)

    console = Console()
    unlimited = console.options.update(max_width=UNLIMITED_WIDTH)
    return console.measure(table, options=unlimited).maximum <= readable_width(console)


def _cell_width(cells: Sequence[str]) -> int:
    """Return the length of the longest line in the cells of a column, characters."""
    return max(len(line) for cell in cells for line in cell.split("\n"))


def _plain_table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left_columns: Sequence[int],
    bold_rows: Sequence[int],
) -> Table:
    """Return a table without lines, of which only the first column may be wrapped.

    Args:
        titles: Titles of the columns.
        rows: Cells, as rich's markup.
        left_columns: Numbers of the columns that are left-justified.
        bold_rows: Numbers of the rows to emphasise.
    """
    from rich.table import Table  # noqa: PLC0415 (only the command line prints tables)

    table = Table(box=None, pad_edge=False)
    for number, title in enumerate(titles):
        justify: Literal["left", "right"] = "left" if number in left_columns else "right"
        table.add_column(title, justify=justify, no_wrap=number > 0, overflow="fold")
    for number, row in enumerate(rows):
        table.add_row(*row, style="bold" if number in bold_rows else None)
    return table


def _break_name(name: str, width: int) -> str:
    """Return a name in lines of a width.

    It is broken at blanks, and words that are longer than the width at "-", "_" and "/": never
    within a number.
    """
    pieces: list[str] = []
    for word in re.findall(r"[^ ]* |[^ ]+", name):
        is_long = len(word.rstrip()) > width
        pieces += re.findall(r"[^-_/ ]*[-_/ ]|[^-_/ ]+", word) if is_long else [word]

    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def pose_residual(distance: float, angle: float) -> str:
    """Return a residual of a pose (m, rad) in words, in um where it is less than 0.1 mm."""
    length = f"{millimetres(distance)} mm"
    if not distance >= 1e-4:
        length = f"{millimetres(1e3 * distance)} µm"
    return f"{length} and {significant(math.degrees(angle), decimals=4)}°"
