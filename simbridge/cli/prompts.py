"""Questions to the operator, on standard error."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def ask(shown: Sequence[tuple[str, str]], question: str) -> bool:
    """Show facts, as names and values, and ask for a yes; anything else is a no."""
    console = Console(stderr=True, highlight=False)
    table = Table.grid(padding=(0, 2))
    for name, value in shown:
        table.add_row(escape(name), escape(value))
    console.print(table)
    console.print(f"[bold]{escape(question)}[/bold] Type yes to confirm: ", end="")
    try:
        return input().strip().lower() == "yes"
    except EOFError:
        return False


def choose(what: str, names: Sequence[str]) -> str:
    """Show numbered names and let the operator choose one; asks again until the answer is one of the numbers.

    Raises:
        KeyboardInterrupt: The terminal was closed instead.
    """
    console = Console(stderr=True, highlight=False)
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
