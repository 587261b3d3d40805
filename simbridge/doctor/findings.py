"""The findings of `simbridge doctor`, as data, as a checklist in the terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from rich.console import RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from simbridge.console import Terminal
from simbridge.text import counted, table_of

FIX_PORTS = "Fix the ports first, see above."
Status = Literal["pass", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """One line of the checklist.

    Attributes:
        check: What was checked: "remote control".
        status: "warn" for what works but might not work well, "fail" for what would make a run refuse or fail.
        seen: What was found.
        fix: How to fix it; "" if there is nothing to fix.
        table: Rows of text that belong to the finding, the first of them the heading.
    """

    check: str
    status: Status
    seen: str
    fix: str = ""
    table: tuple[tuple[str, ...], ...] = ()


def passed(check: str, seen: str) -> Finding:
    """A check that passed."""
    return Finding(check, "pass", seen)


def warned(check: str, seen: str, fix: str, *, unless: bool = False) -> Finding:
    """A check of something that works, but might not work well; passed where `unless` holds."""
    return passed(check, seen) if unless else Finding(check, "warn", seen, fix)


def failed(check: str, seen: str, fix: str, *, unless: bool = False) -> Finding:
    """A check of something that would make a run refuse or fail; passed where `unless` holds."""
    return passed(check, seen) if unless else Finding(check, "fail", seen, fix)


def unread(check: str, port: int) -> Finding:
    """A check that is not possible while a port does not answer."""
    return failed(check, f"not known while port {port} does not answer", FIX_PORTS)


_STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red"}
# On a terminal with fewer columns, the text of a check is printed below its name instead of to the right of it.
_NARROW = 60


def as_json(title: str, findings: Sequence[Finding]) -> str:
    """What `simbridge doctor --json` prints."""
    failures = sum(f.status == "fail" for f in findings)
    # The keys are stable: the fix stands under "mend".
    facts = [
        {"mend" if name == "fix" else name: value for name, value in asdict(f).items()}
        for f in findings
    ]
    return json.dumps({"checked": title, "passed": failures == 0, "findings": facts}, indent=2)


def show(title: str, findings: Sequence[Finding], console: Terminal | None = None) -> None:
    """Print one line per check; below a failure or a warning, its fix."""
    console = console or Terminal()
    console.print(f"[bold]{escape(title)}[/bold]\n")
    (_show_narrow if console.width < _NARROW else _show_wide)(console, findings)
    counts = {status: sum(f.status == status for f in findings) for status in _STYLES}
    if counts["fail"]:
        console.print(
            f"\n[bold red]{counted(counts['fail'], 'check')} failed.[/bold red] A run would not succeed."
        )
    else:
        warnings = f", with {counted(counts['warn'], 'warning')}" if counts["warn"] else ""
        console.print(f"\n[green]Nothing failed{warnings}.[/green]")


def _show_wide(console: Terminal, findings: Sequence[Finding]) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for finding, below in _with_fixes(findings):
        grid.add_row(_status(finding), finding.check, escape(finding.seen))
        for more in below:
            grid.add_row("", "", more)
    console.print(grid)


def _show_narrow(console: Terminal, findings: Sequence[Finding]) -> None:
    for finding, below in _with_fixes(findings):
        console.print(f"{_status(finding)}  {finding.check}")
        for more in (escape(finding.seen), *below):
            console.print(Padding(more, (0, 0, 0, 2)))


def _with_fixes(findings: Sequence[Finding]) -> Iterator[tuple[Finding, list[RenderableType]]]:
    """Each finding with what is below it: its fix, printed once if consecutive checks share it, and its table."""
    for number, finding in enumerate(findings):
        shared = number + 1 < len(findings) and findings[number + 1].fix == finding.fix
        below: list[RenderableType] = []
        if finding.fix and not shared:
            below.append(f"[italic]-> {escape(finding.fix)}[/italic]")
        if finding.table:
            heading, *rows = finding.table
            below.append(table_of(heading, rows))
        yield finding, below


def _status(finding: Finding) -> str:
    style = _STYLES[finding.status]
    return f"[{style}]{finding.status}[/{style}]"
