"""Printed text never controls the terminal, whatever it contains."""

from __future__ import annotations

import io

from rich.table import Table

from simbridge.cli.error_reporting import print_message
from simbridge.console import Terminal
from simbridge.quoting import visible

CLEARS = "arm\x1b[2J\x9b1A\rdone"
SHOWN = r"arm\x1b[2J\x9b1A\rdone"


def printed(what):
    output = io.StringIO()
    Terminal(file=output, force_terminal=True, width=100).print(what, markup=False)
    return output.getvalue()


def test_a_printed_name_controls_nothing():
    assert printed(CLEARS).strip() == SHOWN


def test_a_cell_controls_nothing():
    table = Table.grid()

    table.add_row(CLEARS)

    assert printed(table).strip() == SHOWN


def test_an_error_controls_nothing(capsys):
    print_message(CLEARS)

    assert capsys.readouterr().err.strip() == SHOWN


def test_a_name_is_no_emoji():
    assert printed("R&D <1> :warning:").strip() == "R&D <1> :warning:"


def test_lines_and_tabs_stay():
    assert visible("one\n\ttwo", keep="\n\t") == "one\n\ttwo"
