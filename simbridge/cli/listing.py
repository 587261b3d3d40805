"""The commands `simbridge robots` and `simbridge scenarios`; quick, since they read only TOML and docstrings."""

from __future__ import annotations

import json

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simbridge.resources import robot_files, scenario_description, scenario_files
from simbridge.text import table_of


def robots(*, as_json: bool = False) -> int:
    """List the robots; returns the exit status."""
    from simbridge.robot.robot_file import robot_facts  # numpy, which listing the scenarios does not need

    found = [robot_facts(path) for path in robot_files().values()]
    if as_json:
        print(json.dumps(found, indent=2))
        return 0
    columns = ("robot", "title", "joints", "controller", "period", "reach")
    rows = [
        (
            facts["robot"],
            escape(facts["title"]),
            str(facts["joints"]),
            facts["controller"],
            f"{1e3 * facts['period_s']:g} ms",
            f"{facts['reach_m']:.2f} m",
        )
        for facts in found
    ]
    Console(highlight=False).print(table_of(columns, rows, left=("title", "controller")))
    return 0


def scenarios(*, as_json: bool = False) -> int:
    """List the scenarios; returns the exit status."""
    found = {name: scenario_description(path) for name, path in scenario_files().items()}
    if as_json:
        print(json.dumps([{"scenario": name, "description": text} for name, text in found.items()], indent=2))
        return 0
    table = Table("scenario", "description", box=None, pad_edge=False)
    for name, text in found.items():
        table.add_row(name, escape(text))
    Console(highlight=False).print(table)
    return 0
