"""Formatting of numbers and words: millimetres, degrees and milliseconds, with no more digits than are significant."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # only the command line prints tables
    from rich.table import Table

# Smaller values, in the unit that is shown, are rounding errors of doubles.
ROUNDING = 1e-9
# A smaller value, in the unit that is shown, is written as "<0.0001": no quantity is known better.
SMALLEST = 1e-4
# Columns at least for the names at the left of a table.
_NAME = 12
NO_BREAK = "\u00a0"
MINUS = "\u2212"


def significant(value: float | None, digits: int = 3, decimals: int = 6) -> str:
    """A number with this many significant digits, never with an exponent.

    Args:
        value: The number; None, and a number that is not finite, is a dash.
        digits: Significant digits.
        decimals: Digits after the point at most. A smaller number, or one below SMALLEST, is written as "<0.0001".
    """
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) < ROUNDING:
        return "0"
    if abs(value) < SMALLEST:
        return _below(SMALLEST if decimals >= 4 else 10.0**-decimals, value)
    places = _places(value, digits, decimals)
    # 0.9996 is written as 1.00: rounding may add a digit before the point.
    places = _places(round(value, places) or value, digits, decimals)
    text = f"{abs(value):.{places}f}"
    if float(text) == 0.0:
        return _below(10.0**-decimals, value)
    return (MINUS if value < 0.0 else "") + text


def _below(limit: float, value: float) -> str:
    return f"<{limit:.10f}".rstrip("0") if value > 0.0 else "0"


def _places(value: float, digits: int, decimals: int) -> int:
    return min(max(digits - 1 - math.floor(math.log10(abs(value))), 0), decimals)


def displayed(value: float | None, unit: str) -> tuple[str, str]:
    """A value in SI units as the terminal and the pages show it: the number, and its unit.

    The unit is mm for m, mm/s for m/s, ms for s, ° for rad and % for "share", a part from 0 to 1.
    """
    scale, shown, decimals = {
        "m": (1e3, "mm", 4),
        "m/s": (1e3, "mm/s", 4),
        "s": (1e3, "ms", 2),
        "rad": (math.degrees(1.0), "°", 4),
        "share": (100.0, "%", 2),
    }.get(unit, (1.0, unit, 6))
    return significant(None if value is None else scale * value, decimals=decimals), shown


def millimetres(metres: float | None) -> str:
    """Three significant digits, at most four decimals, without the unit."""
    return displayed(metres, "m")[0]


def degrees(radians: float | None) -> str:
    """Three significant digits, at most four decimals, without the unit."""
    return displayed(radians, "rad")[0]


def milliseconds(seconds: float | None) -> str:
    """Without the unit, and with at most two decimals: delays are known to about 0.01 ms."""
    return displayed(seconds, "s")[0]


def milliradians(radians: float) -> str:
    """Three significant digits, without the unit."""
    return significant(1e3 * radians)


def fixed(value: float, decimals: int) -> str:
    """A number with this many decimals, and never a negative zero."""
    return f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", MINUS)


def plain(value: float) -> str:
    """A setting: every digit that was given, and no trailing zeros."""
    return f"{value:.10g}".replace("-", MINUS)


def with_unit(number: str, unit: str) -> str:
    """Number and unit, never broken across lines; no space before a degree sign; nothing after a dash."""
    if number == "–":
        return number
    return f"{number}°" if unit == "°" else f"{number}{NO_BREAK}{unit}"


def counted(count: int, noun: str) -> str:
    """ "1 sample", "2 samples"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(parts: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def table_of(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: Sequence[str] = (),
    bold: Sequence[str] = (),
) -> Table:
    """A plain table for the terminal: numbers are right-justified, the first column and those in `left` left-justified.

    Where the terminal is too narrow, titles of columns are broken into lines, and then the first column at its marks.

    Args:
        columns: Their titles.
        rows: Cells, as rich's markup.
        left: Titles of columns of text.
        bold: The first cells of rows to emphasise.
    """
    from rich.console import Console  # noqa: PLC0415 (only the command line prints tables)
    from rich.table import Table  # noqa: PLC0415 (likewise)

    def plain_table(titles: Sequence[str]) -> Table:
        table = Table(box=None, pad_edge=False)
        for number, (name, title) in enumerate(zip(columns, titles, strict=True)):
            first = number == 0
            justify: Literal["left", "right"] = "left" if first or name in left else "right"
            table.add_column(title, justify=justify, no_wrap=not first, overflow="fold")
        for row in rows:
            table.add_row(*row, style="bold" if row[0].replace("\n", "") in bold else None)
        return table

    console, table = Console(), plain_table(columns)
    unlimited = console.options.update(max_width=1000)
    if console.measure(table, options=unlimited).maximum <= console.width:
        return table
    titles = [name.replace(" ", "\n") for name in columns]
    lines = [
        [line for cell in column for line in cell.split("\n")]
        for column in zip(titles, *rows, strict=True)
    ]
    widths = [max(map(len, column)) for column in lines]
    room = console.width - sum(2 + width for width in widths[1:])
    rows = [(_broken(row[0], max(room, _NAME)), *row[1:]) for row in rows]
    return plain_table(titles)


def _broken(name: str, width: int) -> str:
    """A name in lines of this width, broken at "-", "_", "/" and blanks only: never within a number."""
    lines = [""]
    for piece in re.findall(r"[^-_/ ]*[-_/ ]|[^-_/ ]+", name):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def pose_residual(distance: float, angle: float) -> str:
    """A residual of a pose (m, rad), in um where it is less than 0.1 mm."""
    length = (
        f"{millimetres(distance)} mm" if distance >= 1e-4 else f"{millimetres(1e3 * distance)} µm"
    )
    return f"{length} and {significant(math.degrees(angle), decimals=4)} degrees"
