"""The command: measures the parts that are asked for, and prints one table."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Mapping
from typing import Literal

from simbridge.bench import Part, Row
from simbridge.console import Terminal
from simbridge.errors import InvalidParameter
from simbridge.text import table_of

PARTS: Mapping[Part, str] = {
    "servo": "simbridge.bench.servo:measure",
    "live": "simbridge.bench.live:measure",
}
"""The parts, and the function that measures each and returns its rows."""


COLUMNS = ("figure", "median", "compared to", "its value")
"""Of the table."""


def bench(
    what: Part | Literal["all"], *, minutes: float | None = None, as_json: bool = False
) -> int:
    """Measure one part, or all, and print a table. The arguments are the flags.

    Raises:
        InvalidParameter: Minutes are asked for where there are none.
    """
    if what != "live" and minutes is not None:
        raise InvalidParameter("part", what, "live where --minutes is given")
    if minutes is not None and not 0.0 < minutes <= 600.0:
        raise InvalidParameter("time", f"{minutes} min", "more than 0 and at most 600 min")
    console = Terminal(stderr=as_json)
    rows: list[Row] = []
    for part in PARTS if what == "all" else (what,):
        with console.status(f"Measuring {part} ..."):
            rows += pkgutil.resolve_name(PARTS[part])(
                **({} if minutes is None else {"minutes": minutes})
            )
    if as_json:
        keys = ("figure", "median", "compared_to", "its_value")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2))
    else:
        console.print(table_of(COLUMNS, rows, left=("compared to",)))
    return 0
