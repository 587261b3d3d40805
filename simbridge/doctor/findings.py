"""The findings of `simbridge doctor`, as data, as a checklist in the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.console import RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from simbridge.console import Terminal
from simbridge.text import counted, make_table

Status = Literal["pass", "skip", "warn", "fail"]

FIX_PORTS = "Fix the ports first (see above)."
STYLES = {"pass": "green", "skip": "dim", "warn": "yellow", "fail": "bold red"}
# On a terminal with fewer columns, the text of a check is printed below its name.
NARROW_COLUMNS = 60


@dataclass(frozen=True)
class Finding:
    """One line of the checklist.

    Attributes:
        check: Name of the check: "remote control".
        status: "skip" for what does not apply or cannot be checked here, "warn" for what works but
            might not work well, "fail" for what would make a run refuse or fail.
        seen: The facts, in words.
        fix: Advice on a remedy; "" if there is nothing to fix.
        table: Rows of text that belong to the finding, the first of them the heading.
    """

    check: str
    status: Status
    seen: str
    fix: str = ""
    table: tuple[tuple[str, ...], ...] = ()


def success(check: str, seen: str) -> Finding:
    """Return the finding of a check that passed."""
    return Finding(check, "pass", seen)


def skipped(check: str, seen: str) -> Finding:
    """Return the finding of a check that does not apply, or is not possible on this computer."""
    return Finding(check, "skip", seen)


def warning(check: str, seen: str, fix: str, *, unless: bool = False) -> Finding:
    """Return the finding that something works, but might not work well.

    Args:
        check: Name of the check.
        seen: The facts, in words.
        fix: Advice on a remedy.
        unless: Whether the check passed nevertheless.
    """
    return success(check, seen) if unless else Finding(check, "warn", seen, fix)


def failure(check: str, seen: str, fix: str, *, unless: bool = False) -> Finding:
    """Return the finding that a run would refuse or fail; the arguments are those of `warning`."""
    return success(check, seen) if unless else Finding(check, "fail", seen, fix)


def unknown(check: str, port: int) -> Finding:
    """Return the finding of a check that is not possible while a port does not answer."""
    return failure(check, f"unknown while port {port} does not answer", FIX_PORTS)


def as_facts(title: str, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return what `simbridge doctor --json` prints."""
    has_failures = any(finding.status == "fail" for finding in findings)
    return {
        "checked": title,
        "passed": not has_failures,
        "findings": [asdict(finding) for finding in findings],
    }


def show(title: str, findings: Sequence[Finding], console: Terminal | None = None) -> None:
    """Print one line per check; below a failure or a warning, its fix."""
    console = console or Terminal()
    console.print(f"[bold]{escape(title)}[/bold]\n")
    if console.width < NARROW_COLUMNS:
        _show_narrow(console, findings)
    else:
        _show_wide(console, findings)

    failures = sum(finding.status == "fail" for finding in findings)
    warnings = sum(finding.status == "warn" for finding in findings)
    if failures:
        count = counted(failures, "check")
        console.print(f"\n[bold red]{count} failed.[/bold red] A run would not succeed.")
    else:
        remark = f", with {counted(warnings, 'warning')}" if warnings else ""
        console.print(f"\n[green]Nothing failed{remark}.[/green]")


def _show_wide(console: Terminal, findings: Sequence[Finding]) -> None:
    """Print the findings in columns: status, check, and text with its fix below it.

    Each row is a table of its own, so that none is padded to the length of the longest text.
    """
    status_width = max(len(status) for status in STYLES)
    check_width = max((len(finding.check) for finding in findings), default=0)
    for finding, below in _with_fixes(findings):
        first_row = (_status(finding), finding.check, escape(finding.seen))
        for row in (first_row, *(("", "", more) for more in below)):
            grid = Table.grid(padding=(0, 2, 0, 0))
            grid.add_column(no_wrap=True, min_width=status_width)
            grid.add_column(no_wrap=True, min_width=check_width)
            grid.add_column(overflow="fold")
            grid.add_row(*row)
            console.print(grid)


def _show_narrow(console: Terminal, findings: Sequence[Finding]) -> None:
    """Print the text of each finding below its name."""
    for finding, below in _with_fixes(findings):
        console.print(f"{_status(finding)}  {finding.check}")
        for more in (escape(finding.seen), *below):
            console.print(Padding(more, (0, 0, 0, 2)))


def _with_fixes(findings: Sequence[Finding]) -> Iterator[tuple[Finding, list[RenderableType]]]:
    """Yield each finding with what is below it: its fix and its table.

    A fix that consecutive checks share is printed once, below the last of them.
    """
    for number, finding in enumerate(findings):
        is_last = number + 1 == len(findings)
        is_repeated = not is_last and findings[number + 1].fix == finding.fix

        below: list[RenderableType] = []
        if finding.fix and not is_repeated:
            below.append(f"[italic]-> {escape(finding.fix)}[/italic]")
        if finding.table:
            heading, *rows = finding.table
            below.append(make_table(heading, rows))
        yield finding, below


def _status(finding: Finding) -> str:
    """Return the status in its colour, as markup."""
    style = STYLES[finding.status]
    return f"[{style}]{finding.status}[/{style}]"
