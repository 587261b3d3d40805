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
    "solvers": "simbridge.bench.solvers:measure",
    "run": "simbridge.bench.runs:measure_run",
    "startup": "simbridge.bench.runs:measure_startup",
    "servo": "simbridge.bench.real_time:measure_servo",
    "emulator": "simbridge.bench.real_time:measure_emulator",
    "live": "simbridge.bench.live:measure",
    "recording": "simbridge.bench.runs:measure_recording",
    "pages": "simbridge.bench.runs:measure_pages",
    "studio": "simbridge.bench.studio:measure",
    "sweep": "simbridge.bench.runs:measure_sweeps",
}
"""The parts, and the function that measures each and returns its rows."""
QUICK: tuple[Part, ...] = ("solvers", "run", "startup")
"""What "all" stands for: the others take minutes."""
TUNINGS = "simbridge.bench.live:write_tunings"
"""Writes the table of tunings of a live session."""


def bench(
    what: Part | Literal["all"], *, minutes: float | None = None, tuning: str | None = None, as_json: bool = False
) -> int:
    """Measure one part, or "all" except those that take minutes, and print a table. The arguments are the flags.

    Raises:
        InvalidParameter: Minutes or a table of tunings are asked for where there are none.
    """
    if what != "live" and (minutes is not None or tuning is not None):
        raise InvalidParameter("part", what, "live where --minutes or --tuning is given")
    if minutes is not None and not 0.0 < minutes <= 600.0:
        raise InvalidParameter("time", f"{minutes} min", "more than 0 and at most 600 min")
    console = Terminal(stderr=as_json)
    rows: list[Row] = []
    for part in QUICK if what == "all" else (what,):
        with console.status(f"Measuring {part} ..."):
            rows += pkgutil.resolve_name(PARTS[part])(**({} if minutes is None else {"minutes": minutes}))
    if tuning is not None:
        with console.status("Measuring tunings ..."):
            pkgutil.resolve_name(TUNINGS)(tuning)
    if as_json:
        keys = ("figure", "median", "compared_to", "its_value")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2))
    else:
        columns = ("figure", "median", "compared to", "its value")
        console.print(table_of(columns, rows, left=("compared to",)))
    return 0
