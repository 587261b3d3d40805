"""The commands `simbridge robots` and `scenarios`: what comes with simbridge.

They read TOML and docstrings, so that they are quick.
"""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from simbridge.cli.flags import RobotsFlags, ScenariosFlags
from simbridge.console import Terminal
from simbridge.json_output import print_json
from simbridge.resources import robot_files, scenario_description, scenario_files
from simbridge.text import make_table


def robots(flags: RobotsFlags) -> int:
    """List the robots; the exit status is 0."""
    # Numpy, which listing the scenarios does not need.
    from simbridge.robot.robot_file import robot_facts  # noqa: PLC0415

    facts = [robot_facts(path) for path in robot_files().values()]
    if flags.as_json:
        print_json({"robots": facts})
        return 0

    columns = ("robot", "title", "joints", "controller", "period", "arm length")
    rows = []
    for robot in facts:
        rows.append(
            (
                robot["robot"],
                escape(robot["title"]),
                str(robot["joints"]),
                robot["controller"],
                f"{1e3 * robot['period_s']:g} ms",
                f"{robot['arm_length_m']:.2f} m",
            )
        )
    terminal = Terminal()
    terminal.print(make_table(columns, rows, left=("title", "controller")))

    # What the manufacturer has not published, but the files contain nevertheless.
    for robot in facts:
        for value in robot["inferred"]:
            terminal.print(f"{robot['robot']}: {escape(value)}")
    return 0


def scenarios(flags: ScenariosFlags) -> int:
    """List the scenarios; the exit status is 0."""
    descriptions = {name: scenario_description(path) for name, path in scenario_files().items()}
    if flags.as_json:
        facts = [{"scenario": name, "description": text} for name, text in descriptions.items()]
        print_json({"scenarios": facts})
        return 0

    table = Table("scenario", "description", box=None, pad_edge=False)
    for name, text in descriptions.items():
        table.add_row(name, escape(text))
    Terminal().print(table)
    return 0
