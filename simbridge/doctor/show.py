"""The checklist as people read it, and as machines do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from simbridge.doctor.finding import Finding
from simbridge.text import counted

_STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red"}
# Below this many columns a check's words stand under its name instead of beside it.
_NARROW = 60


def as_json(title: str, findings: Sequence[Finding]) -> str:
    """What `simbridge doctor --json` prints."""
    failures = sum(f.status == "fail" for f in findings)
    facts = {"checked": title, "passed": failures == 0, "findings": [asdict(finding) for finding in findings]}
    return json.dumps(facts, indent=2)


def show(title: str, findings: Sequence[Finding], console: Console | None = None) -> None:
    """A line a check; under what failed or warned, how to mend it."""
    console = console or Console(highlight=False)
    console.print(f"[bold]{escape(title)}[/bold]\n")
    (_show_narrow if console.width < _NARROW else _show_wide)(console, findings)
    counts = {status: sum(f.status == status for f in findings) for status in _STYLES}
    if counts["fail"]:
        console.print(f"\n[bold red]{counted(counts['fail'], 'check')} failed.[/bold red] A run would not get far.")
    else:
        warnings = f", with {counted(counts['warn'], 'warning')}" if counts["warn"] else ""
        console.print(f"\n[green]Nothing failed{warnings}.[/green]")


def _show_wide(console: Console, findings: Sequence[Finding]) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for finding, following in pairwise([*findings, None]):
        assert finding is not None
        grid.add_row(_status(finding), finding.check, escape(finding.seen))
        for more in _below(finding, following):
            grid.add_row("", "", more)
    console.print(grid)


def _show_narrow(console: Console, findings: Sequence[Finding]) -> None:
    for finding, following in pairwise([*findings, None]):
        assert finding is not None
        console.print(f"{_status(finding)}  {finding.check}")
        for more in (escape(finding.seen), *_below(finding, following)):
            console.print(Padding(more, (0, 0, 0, 2)))


def _below(finding: Finding, following: Finding | None) -> Iterator[RenderableType]:
    """What stands under a check: how to mend it, once where several in a row have the same remedy; its table."""
    if finding.mend and (following is None or following.mend != finding.mend):
        yield f"[italic]-> {escape(finding.mend)}[/italic]"
    if finding.table:
        yield _table(finding)


def _status(finding: Finding) -> str:
    style = _STYLES[finding.status]
    return f"[{style}]{finding.status}[/{style}]"


def _table(finding: Finding) -> Table:
    table = Table(box=None, pad_edge=False)
    heading, *rows = finding.table
    for i, title in enumerate(heading):
        table.add_column(title, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
