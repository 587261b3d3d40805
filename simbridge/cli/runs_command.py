"""The command `simbridge runs`, and the run that `last` stands for."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from simbridge.cli.flags import NEWEST_RUN, RunsFlags
from simbridge.cli.listed_runs import COLUMNS, NAMES, ListedRun, list_runs, settings_of_repeats
from simbridge.console import Terminal
from simbridge.errors import InvalidParameter, NotARun, UnknownName
from simbridge.json_output import print_json
from simbridge.text import make_table

# Where runs are made unless --out says otherwise.
RUNS = "runs"

# Columns that are left out of a table that is too wide, in this order.
DISPENSABLE = ("solver", "scenario", "robot", "label")
# How many of the terminal's columns are for the names of runs.
NAME_WIDTH = 18


def runs(flags: RunsFlags) -> int:
    """List what is in a directory of runs.

    Returns:
        The exit status, 0.

    Raises:
        NotARun: There is no such directory.
        UnknownName, InvalidParameter: A filter, the order or the limit is none.
    """
    folder = Path(flags.directory)
    # Before the first run there is none.
    if not folder.is_dir() and flags.directory != RUNS:
        raise NotARun(folder, "", "directory not found")
    if flags.sort not in COLUMNS:
        raise UnknownName("column to sort by", flags.sort, COLUMNS)
    if flags.limit < 0:
        raise InvalidParameter("limit", flags.limit, "a number of runs, or 0 for all")

    patterns = [_parse_filter(text) for text in flags.filters]
    entries = [run for run in list_runs(folder) if _matches(run, patterns)]
    entries.sort(key=lambda run: run.sort_key(flags.sort))
    if flags.limit:
        entries = entries[: flags.limit]

    if flags.as_json:
        print_json({"runs": [run.as_dict() for run in entries]})
    elif entries:
        _show(entries)
    else:
        print(_explain_empty_list(folder, flags.filters))
    return 0


def _explain_empty_list(folder: Path, filters: Sequence[str]) -> str:
    """Return sentences that say where no runs were found.

    Args:
        folder: The directory of runs, which need not exist.
        filters: The filters, as the user gave them.
    """
    path = folder.absolute()
    if filters and folder.is_dir():
        return f"No runs in {path} with {' and '.join(filters)}."
    return f"No runs in {path}. Name another directory of runs: simbridge runs DIR."


def _parse_filter(text: str) -> tuple[str, str]:
    """Return the column and the pattern of a filter."""
    column, equals, pattern = text.partition("=")
    if not equals:
        needed = "COLUMN=VALUE, such as robot=ur10e or scenario=circle*"
        raise InvalidParameter("filter", text, needed)

    known = (*NAMES, "outcome", "kind")
    if column not in known:
        raise UnknownName("column to filter by", column, known)
    return column, pattern


def _matches(run: ListedRun, patterns: Sequence[tuple[str, str]]) -> bool:
    return all(fnmatch.fnmatch(run.cell(column), pattern) for column, pattern in patterns)


def _show(entries: Sequence[ListedRun]) -> None:
    """Show a table; the columns that a narrow terminal has no room for are left out."""
    console = Terminal()
    columns = list(COLUMNS)
    if not any(run.cell("label") for run in entries):
        columns.remove("label")

    longest_name = max(len(run.path.name) for run in entries)
    room = console.width - min(longest_name, NAME_WIDTH)
    missing = _drop_columns(columns, entries, room)

    rows = []
    for run in entries:
        cells = (run.path.name, *(run.cell(column) for column in columns))
        rows.append(tuple(map(escape, cells)))
    text_columns = [column for column in columns if column not in ("error", "age")]
    console.print(make_table(("run", *map(_title, columns)), rows, left=text_columns))

    if missing:
        missing.sort(key=COLUMNS.index)
        console.print(f"Not shown because the terminal is too narrow: {', '.join(missing)}.")


def _title(column: str) -> str:
    """Return the heading of a column, with its unit."""
    return "RMS mm" if column == "error" else column


def _drop_columns(columns: list[str], entries: Sequence[ListedRun], room: int) -> list[str]:
    """Remove columns until the others fit; return those that were removed.

    Args:
        columns: They are removed from here.
        entries: The entries that are listed.
        room: Columns of the terminal that are there for them.
    """
    widths = {}
    for column in columns:
        longest = max(len(run.cell(column)) for run in entries)
        widths[column] = 2 + max(len(_title(column)), longest)

    missing = []
    for column in DISPENSABLE:
        width = sum(widths[remaining] for remaining in columns)
        if column in columns and width > room:
            columns.remove(column)
            missing.append(column)
    return missing


def named_run(name: str) -> str:
    """Return a run's directory as it was named, or the newest one for `last`.

    That is the run, repeats or session that began last, of those under runs/ and those in this
    directory; it is named on standard error.

    Raises:
        NotARun: There is none.
    """
    if name != NEWEST_RUN or Path(NEWEST_RUN).exists():
        return name

    begun = {**_begin_times(Path(RUNS)), **_begin_times(Path())}
    if not begun:
        reason = f"no run found under {RUNS}/ or in this directory; name a run's directory"
        raise NotARun(NEWEST_RUN, "", reason)
    newest = max(begun, key=lambda path: begun[path])
    print(f"{NEWEST_RUN}: {newest}", file=sys.stderr)
    return str(newest)


def _begin_times(folder: Path) -> dict[Path, float]:
    """Return when the runs, repeats and sessions in a directory began, s since 1970."""
    begun = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        if not path.is_dir():
            continue
        settings = [*path.glob("settings.toml"), *settings_of_repeats(path)]
        if settings:
            begun[path] = max(file.stat().st_mtime for file in settings)
    return begun
