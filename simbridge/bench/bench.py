"""The command: measure, and print one table; and times that can be compared on a machine whose cores are shared."""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

from rich.console import Console

from simbridge.bench import MEASURED, MINUTES, PARTS, TIMED, TUNINGS, Part, Row
from simbridge.errors import InvalidParameter
from simbridge.text import table_of

REPEATS = 9


def medians(*actions: Callable[[], object]) -> list[float]:
    """Median wall time of each action, s; taken in turns, so that all see the same machine."""
    for action in actions:
        action()
    taken = [[_timed(action) for action in actions] for _ in range(REPEATS)]
    return [statistics.median(times) for times in zip(*taken, strict=True)]


def _timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def process_time(*arguments: str, cache: str | None = None) -> float:
    """Wall time of a process that runs Python with these arguments, s; with its own kernel cache if one is given."""
    environment = os.environ if cache is None else {**os.environ, "SIMBRIDGE_CACHE": cache}
    command = [sys.executable, *arguments]
    return _timed(lambda: subprocess.run(command, check=True, capture_output=True, env=environment))


def bench(
    what: Part | Literal["all"], *, minutes: float | None = None, tuning: str | None = None, as_json: bool = False
) -> int:
    """Measure one part, or "all" except those that take minutes, and print a table.

    Args:
        what: The part.
        minutes: How long a part of `TIMED` measures.
        tuning: Where the table of tunings of a live session is written, besides the part "live".
        as_json: Whether to print JSON.

    Raises:
        InvalidParameter: Minutes or a table of tunings are asked for where there are none.
    """
    if what not in TIMED and (minutes is not None or tuning is not None):
        raise InvalidParameter("part", what, f"{' or '.join(TIMED)} where --minutes or --tuning is given")
    if minutes is not None and not 0.0 < minutes <= 600.0:
        raise InvalidParameter("time", f"{minutes} min", "more than 0 and at most 600 min")
    console = Console(highlight=False, stderr=as_json)
    rows: list[Row] = []
    for part, function in PARTS.items():
        if part == what or (what == "all" and part not in MINUTES):
            with console.status(f"Measuring {part} ..."):
                given = (MEASURED if minutes is None else minutes,) if part in TIMED else ()
                rows += _function(function)(*given)
    if tuning is not None:
        with console.status("Measuring tunings ..."):
            _function(TUNINGS)(tuning)
    if as_json:
        keys = ("figure", "median", "compared_to", "its_value")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2))
    else:
        columns = ("figure", "median", "compared to", "its value")
        console.print(table_of(columns, rows, left=("compared to",)))
    return 0


def _function(path: str) -> Callable[..., Any]:
    """The function `module:name`."""
    module, _, name = path.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found
