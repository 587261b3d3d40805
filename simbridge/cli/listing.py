"""The commands `simbridge robots`, `scenarios`, `runs` and `view`, and what `last` stands for.

Quick: TOML, docstrings and summaries are read, logs are not.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import math
import os
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from rich.markup import escape
from rich.table import Table

from simbridge.console import Terminal
from simbridge.errors import InputFileError, InvalidParameter, NotARun, Refusal, UnknownName
from simbridge.files.reading import MIB, read_bytes
from simbridge.quoting import shell_quoted
from simbridge.resources import robot_files, scenario_description, scenario_files
from simbridge.sweeps.results_file import as_number, read_rows
from simbridge.text import counted, millimetres, table_of

# What stands for the newest run in every command that takes one, and where runs are made unless --out says otherwise.
LAST, RUNS = "last", "runs"
PAGES = ("report.html", "sweep.html", "compare.html")
_NAMES = ("label", "scenario", "robot", "solver")
COLUMNS = (*_NAMES, "error", "outcome", "age")
"""What a run is listed and sorted by."""
# Left out of a table that is too wide, in this order; and how much of the width is for the names of runs.
_LEFT_OUT, _NAME_WIDTH = ("solver", "scenario", "robot", "label"), 18
# Of a settings.toml, sweep.toml or summary.json, bytes.
MAX_FACTS_BYTES = 64 * MIB
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def robots(*, as_json: bool = False) -> int:
    """List the robots; returns the exit status, 0."""
    # Numpy, which listing the scenarios does not need.
    from simbridge.robot.robot_file import robot_facts  # noqa: PLC0415

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
    Terminal().print(table_of(columns, rows, left=("title", "controller")))
    return 0


def scenarios(*, as_json: bool = False) -> int:
    """List the scenarios; returns the exit status, 0."""
    found = {name: scenario_description(path) for name, path in scenario_files().items()}
    if as_json:
        print(
            json.dumps(
                [{"scenario": name, "description": text} for name, text in found.items()], indent=2
            )
        )
        return 0
    table = Table("scenario", "description", box=None, pad_edge=False)
    for name, text in found.items():
        table.add_row(name, escape(text))
    Terminal().print(table)
    return 0


@dataclass(frozen=True)
class Listed:
    """A directory under runs/.

    Attributes:
        path, kind: Where, and what it is: "run", "repeats", "session" or "sweep".
        begun: When its newest run began, s since 1970.
        names: Label, scenario, robot and solver, as far as they are known; of a sweep only the scenarios.
        error: RMS tracking error, m: of repeats the mean, of a sweep the smallest; None where there is none.
        outcome: "completed", the cause of an early end, or how many of several completed.
    """

    path: Path
    kind: str
    begun: float
    names: Mapping[str, str] = field(default_factory=dict)
    error: float | None = None
    outcome: str = "no summary"

    def __post_init__(self) -> None:
        """Refuse values of other types, as edited files may have them, with TypeError."""
        if not all(isinstance(name, str) for name in self.names.values()):
            raise TypeError("a name is not a text")
        if self.error is not None and not math.isfinite(self.error):
            raise TypeError("the error is not finite")

    def shown(self, column: str) -> str:
        """The cell of a column, or the kind."""
        if column == "error":
            return millimetres(self.error)
        if column == "age":
            return age(time.time() - self.begun)
        return self.names.get(column, "") if column in _NAMES else str(getattr(self, column))

    def key(self, column: str) -> Any:
        """What is sorted by: the newest and the smallest come first, and what is unknown last."""
        if column == "age":
            return -self.begun
        return (
            (math.inf if self.error is None else self.error)
            if column == "error"
            else self.shown(column)
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        begun = datetime.fromtimestamp(self.begun).astimezone().isoformat(timespec="seconds")
        cells = {column: self.shown(column) for column in ("kind", *_NAMES, "outcome")}
        return {"run": str(self.path), **cells, "error_m": self.error, "begun": begun}


def runs(
    directory: str,
    *,
    filters: Sequence[str] = (),
    sort: str = "age",
    limit: int = 0,
    as_json: bool = False,
) -> int:
    """List what is in a directory of runs; returns the exit status, 0. The arguments are the command's flags.

    Raises:
        NotARun: There is no such directory.
        UnknownName, InvalidParameter: A filter, the order or the limit is none.
    """
    folder = Path(directory)
    # Before the first run there is none.
    if not folder.is_dir() and directory != RUNS:
        raise NotARun(folder, "", "there is no such directory")
    if sort not in COLUMNS:
        raise UnknownName("column to sort by", sort, COLUMNS)
    if limit < 0:
        raise InvalidParameter("limit", limit, "a number of runs, or 0 for all")
    wanted = [_filter(text) for text in filters]
    found = [
        each
        for each in _listed(folder)
        if all(fnmatch.fnmatch(each.shown(n), value) for n, value in wanted)
    ]
    found = sorted(found, key=lambda each: each.key(sort))[: limit or None]
    if as_json:
        print(json.dumps([each.as_dict() for each in found], indent=2))
    elif found:
        _show(found)
    else:
        print(f"No runs in {folder}.")
    return 0


def _filter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidParameter(
            "filter", text, "COLUMN=VALUE, such as robot=ur10e or scenario=circle*"
        )
    if name not in (known := (*_NAMES, "outcome", "kind")):
        raise UnknownName("column to filter by", name, known)
    return name, value


def _show(found: Sequence[Listed]) -> None:
    """A table; the columns that a narrow terminal has no room for are left out."""
    console = Terminal()
    names = [
        name for name in COLUMNS if name != "label" or any(each.shown("label") for each in found)
    ]
    titles = {name: "RMS mm" if name == "error" else name for name in names}
    widths = {
        name: 2 + max(len(titles[name]), *(len(each.shown(name)) for each in found))
        for name in names
    }
    room = console.width - min(max(len(each.path.name) for each in found), _NAME_WIDTH)
    missing = []
    for name in _LEFT_OUT:
        if name in names and sum(widths[kept] for kept in names) > room:
            names.remove(name)
            missing.append(name)
    rows = [
        tuple(escape(cell) for cell in (each.path.name, *(each.shown(name) for name in names)))
        for each in found
    ]
    left = [name for name in names if name not in ("error", "age")]
    console.print(table_of(("run", *(titles[name] for name in names)), rows, left=left))
    if missing:
        missing.sort(key=COLUMNS.index)
        console.print(f"Not shown, as the terminal is too narrow: {', '.join(missing)}.")


def age(seconds: float) -> str:
    """How long ago, in one unit: "5 min"."""
    unit, name = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return f"{max(seconds, 0.0) / unit:.0f} {name}"


def _listed(folder: Path) -> Iterator[Listed]:
    """What is in a directory, with or without runs; what cannot be read is named with what is known of it."""
    for path in folder.iterdir() if folder.is_dir() else ():
        try:
            if (path / "settings.toml").is_file():
                yield _run(path)
            elif numbered := _numbered(path):
                yield _repeats(path, numbered)
            elif (path / "sweep.toml").is_file():
                yield _sweep(path)
        except (TypeError, LookupError, AttributeError, ValueError, ArithmeticError):
            # The files are of these names, and of another program.
            yield Listed(path, "run", path.stat().st_mtime, outcome="not readable")


def _numbered(path: Path) -> list[Path]:
    """The settings of the runs of repeats; see `repeats_in`."""
    return [file for file in path.glob("*/settings.toml") if file.parent.name.isdecimal()]


def _run(path: Path) -> Listed:
    settings, summary = path / "settings.toml", _decoded(path / "summary.json", msgspec.json.decode)
    kind = "session" if (path / "events.jsonl").is_file() else "run"
    error = (summary.get("tracking_error") or {}).get("position_m", {}).get("rms")
    cause = (summary.get("ended_by") or {}).get("cause")
    outcome = str(cause or summary.get("outcome") or Listed.outcome).partition(":")[0]
    return Listed(path, kind, settings.stat().st_mtime, _names(summary, settings), error, outcome)


def _repeats(path: Path, numbered: Sequence[Path]) -> Listed:
    summary = _decoded(path / "summary.json", msgspec.json.decode)
    newest = max(file.stat().st_mtime for file in numbered)
    errors = [
        run["tracking_error"]["position_m"]["rms"]
        for run in summary.get("runs", ())
        if run["tracking_error"]
    ]
    error = math.fsum(errors) / len(errors) if errors else None
    outcome = (
        f"{summary['completed']} of {counted(summary['repeats'], 'run')}"
        if summary
        else Listed.outcome
    )
    return Listed(path, "repeats", newest, _names(summary, numbered[0]), error, outcome)


def _sweep(path: Path) -> Listed:
    grid = path / "sweep.toml"
    points: list[dict[str, str]] = []
    with contextlib.suppress(InputFileError):
        rows = read_rows(path / "results.csv")
        _, columns = next(rows, (1, []))
        points += (dict(zip(columns, cells, strict=True)) for _, cells in rows)
    errors = [as_number(point.get("tracking_error.position_m.rms", "")) for point in points]
    known_errors = [error for error in errors if math.isfinite(error)]
    made = sum(point.get("outcome") == "completed" for point in points)
    scenarios = _decoded(grid, msgspec.toml.decode).get("scenarios", ())
    names = {"scenario": ", ".join(Path(name).stem for name in scenarios)}
    outcome = f"{made} of {counted(len(points), 'point')}"
    return Listed(
        path, "sweep", grid.stat().st_mtime, names, min(known_errors, default=None), outcome
    )


def _names(summary: Mapping[str, Any], settings: Path) -> dict[str, str]:
    """Those that the summary has, or else the settings."""
    if "scenario" in summary:
        return {name: summary.get(name, "") for name in _NAMES}
    given = _decoded(settings, msgspec.toml.decode)
    return {
        "label": given.get("label", ""),
        **{name: given.get(name, {}).get("name", "") for name in _NAMES[1:]},
    }


def _decoded(file: Path, decode: Callable[[bytes], Any]) -> Mapping[str, Any]:
    try:
        found = decode(read_bytes(file, MAX_FACTS_BYTES))
    except (InputFileError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def named_run(given: str) -> str:
    """A run's directory as it was given. For `last`, the run, repeats or session that began last, of those under runs/
    and those in this directory; it is named on standard error.

    Raises:
        NotARun: There is none.
    """
    if given != LAST or Path(LAST).exists():
        return given
    here = [path for folder in (Path(RUNS), Path()) if folder.is_dir() for path in folder.iterdir()]
    begun = {
        path: [*path.glob("settings.toml"), *_numbered(path)] for path in here if path.is_dir()
    }
    found = {
        path: max(file.stat().st_mtime for file in files) for path, files in begun.items() if files
    }
    if not found:
        raise NotARun(
            LAST, "", f"there is no run under {RUNS}/ or in this directory; name a run's directory"
        )
    newest = max(found, key=lambda path: found[path])
    print(f"{LAST}: {newest}", file=sys.stderr)
    return str(newest)


class NoPage(Refusal, LookupError):
    """A directory (path) that has no page to be shown."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f"{path} has no page: {reason}.")


def view(run: str, *, no_browser: bool = False) -> int:
    """Print the path of a directory's page, and open it where there is a browser; returns the exit status, 0.

    Raises:
        NotARun, NoPage: There is no such directory, or no page in it.
    """
    path = Path(run)
    if not path.is_dir():
        raise NotARun(path, "", "there is no such directory")
    page = next((path / name for name in PAGES if (path / name).is_file()), None)
    if page is None:
        made = (path / "settings.toml").is_file() or bool(_numbered(path))
        advice = "it is not the directory of a run or a sweep"
        if made:
            advice = f"`simbridge report {shell_quoted(path)}` writes it"
        raise NoPage(path, advice)
    print(page)
    # Without a screen, Python would open the page in a browser for terminals.
    screen = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if screen and not no_browser:
        webbrowser.open(page.resolve().as_uri())
    return 0
