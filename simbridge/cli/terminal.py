"""Sentences in the terminal, and questions to the operator."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from simbridge.console import Terminal
from simbridge.text import NO_BREAK

# Columns of a terminal that are too few for a whole line or table.
NARROW_COLUMNS = 72


def say(console: Terminal, text: str, *, style: str = "") -> None:
    """Print sentences: broken between words in a terminal, in one line where a program reads."""
    has_width = console.is_terminal or "COLUMNS" in os.environ
    console.print(
        text.replace(NO_BREAK, " "), style=style or None, soft_wrap=not has_width, markup=False
    )


def ask(facts: Sequence[tuple[str, str]], question: str) -> bool:
    """Show facts, as names and values, and ask for a yes; anything else is a no."""
    console = Terminal(stderr=True)
    table = Table.grid(padding=(0, 2))
    for name, value in facts:
        table.add_row(escape(name), escape(value))
    console.print(table)

    console.print(f"[bold]{escape(question)}[/bold] Type yes to confirm: ", end="")
    try:
        return input().strip().lower() == "yes"
    except EOFError:
        return False


def choose(what: str, names: Sequence[str]) -> str:
    """Show numbered names, and ask until the answer is one of the numbers.

    Args:
        what: Noun for what the names stand for, such as "topic": the question is "Which topic?".
        names: Names to choose from.

    Raises:
        KeyboardInterrupt: The terminal was closed instead.
    """
    console = Terminal(stderr=True)
    for number, name in enumerate(names, start=1):
        console.print(f"{number}  {escape(name)}")

    while True:
        console.print(f"[bold]Which {what}?[/bold] 1 to {len(names)}: ", end="")
        try:
            answer = input().strip()
        except EOFError:
            raise KeyboardInterrupt from None
        if answer.isdecimal() and 1 <= int(answer) <= len(names):
            return names[int(answer) - 1]
