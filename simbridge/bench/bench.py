"""The command: measure, and print one table."""

from __future__ import annotations

import importlib
import json
from typing import Literal

from rich.console import Console
from rich.table import Table

from simbridge.bench import MINUTES, PARTS, Part, Row


def bench(what: Part | Literal["all"], *, as_json: bool = False) -> int:
    """Measure one part, or "all" except those that take minutes, and print a table."""
    console = Console(highlight=False, stderr=as_json)
    rows: list[Row] = []
    for part, function in PARTS.items():
        if part == what or (what == "all" and part not in MINUTES):
            module, _, name = function.partition(":")
            with console.status(f"Measuring {part} ..."):
                rows += getattr(importlib.import_module(module), name)()
    if as_json:
        keys = ("figure", "median", "compared_to", "its_value")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2))
    else:
        table = Table(box=None, pad_edge=False)
        for column in ("figure", "median", "compared to", "its value"):
            table.add_column(column, justify="right" if column in ("median", "its value") else "left")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    return 0
