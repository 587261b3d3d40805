"""The command `simbridge bench`: measures parts, and prints one table."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from typing import Literal

from simbridge.bench import Part, Row
from simbridge.console import Terminal
from simbridge.errors import InvalidParameter
from simbridge.json_output import print_json
from simbridge.text import make_table

# The parts, and the function that measures each and returns its rows.
PARTS: Mapping[Part, str] = {
    "servo": "simbridge.bench.servo:measure",
    "live": "simbridge.bench.live:measure",
}
# Headings of the table, and keys of its rows in JSON.
COLUMNS = ("figure", "median", "compared to", "its value")
KEYS = ("figure", "median", "compared_to", "its_value")
# The longest measurement that can be asked for, min.
MAX_MINUTES = 600.0


def bench(
    what: Part | Literal["all"], *, minutes: float | None = None, as_json: bool = False
) -> int:
    """Measure one part, or all, and print a table.

    The arguments are the command's flags.

    Returns:
        The exit status, 0.

    Raises:
        InvalidParameter: Minutes are asked for where there are none.
    """
    if what != "live" and minutes is not None:
        raise InvalidParameter("part", what, "live: only it measures for --minutes")
    if minutes is not None and not 0.0 < minutes <= MAX_MINUTES:
        raise InvalidParameter("time", f"{minutes} min", "more than 0 and at most 600 min")
    duration = {} if minutes is None else {"minutes": minutes}

    console = Terminal(stderr=as_json)
    rows: list[Row] = []
    for part in PARTS if what == "all" else (what,):
        with console.status(f"Measuring {part} ..."):
            measure = pkgutil.resolve_name(PARTS[part])
            rows += measure(**duration)

    if as_json:
        print_json({"figures": [dict(zip(KEYS, row, strict=True)) for row in rows]})
    else:
        console.print(make_table(COLUMNS, rows, left=("compared to",)))
    return 0
