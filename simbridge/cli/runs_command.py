"""The commands `simbridge runs` and `simbridge view`, and what `last` stands for; quick: logs are not read."""

from __future__ import annotations

import contextlib
import csv
import fnmatch
import json
import math
import os
import sys
import time
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from rich.console import Console
from rich.markup import escape

from simbridge.errors import InvalidParameter, NotARun, Refusal, UnknownName
from simbridge.text import counted, millimetres, table_of

Kind = Literal["run", "repeats", "session", "sweep"]
LAST = "last"
"""What stands for the newest run, in every command that takes one."""
RUNS = "runs"
"""Where runs are made unless --out says otherwise."""
PAGES = ("report.html", "sweep.html", "compare.html")
COLUMNS = ("label", "scenario", "robot", "solver", "error", "outcome", "age")
"""What a run is listed and sorted by."""
# Left out of a table that is too wide, in this order.
_LEFT_OUT = ("solver", "scenario", "robot", "label")
# The column of results.csv with the error of a point.
_SWEPT = "tracking_error.position_m.rms"
# So much of a terminal's width is left for the names of runs.
_NAME = 18
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


class NoPage(Refusal, LookupError):
    """A directory (path) that has no page to be shown."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f"{path} has no page: {reason}.")


@dataclass(frozen=True)
class Listed:
    """A directory under runs/.

    Attributes:
        path, kind: Where, and what it is.
        begun: When its newest run began, s since 1970.
        label, scenario, robot, solver: Of a sweep only the scenarios.
        error: RMS tracking error, m: of repeats the mean, of a sweep the smallest; None where there is none.
        outcome: "completed", the cause of an early end, or how many of several completed.
    """

    path: Path
    kind: Kind
    begun: float
    label: str = ""
    scenario: str = ""
    robot: str = ""
    solver: str = ""
    error: float | None = None
    outcome: str = "no summary"

    def shown(self, name: str) -> str:
        """The cell of a column."""
        if name == "error":
            return millimetres(self.error)
        return age(time.time() - self.begun) if name == "age" else getattr(self, name)

    def key(self, name: str) -> Any:
        """What is sorted by: the newest and the smallest come first, and what is unknown last."""
        if name == "age":
            return -self.begun
        return (math.inf if self.error is None else self.error) if name == "error" else getattr(self, name)


def runs(
    directory: str, *, filters: Sequence[str] = (), sort: str = "age", limit: int = 0, as_json: bool = False
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
    found = [each for each in listed(folder) if all(fnmatch.fnmatch(each.shown(n), value) for n, value in wanted)]
    found = sorted(found, key=lambda each: each.key(sort))[: limit or None]
    if as_json:
        print(json.dumps([_as_dict(each) for each in found], indent=2))
    elif found:
        _show(found)
    else:
        print(f"No runs in {folder}.")
    return 0


def _filter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidParameter("filter", text, "COLUMN=VALUE, such as robot=ur10e or scenario=circle*")
    if name not in (known := (*COLUMNS[:4], "outcome", "kind")):
        raise UnknownName("column to filter by", name, known)
    return name, value


def _as_dict(each: Listed) -> dict[str, Any]:
    begun = datetime.fromtimestamp(each.begun).astimezone().isoformat(timespec="seconds")
    names = ("kind", *COLUMNS[:4], "outcome")
    return {"run": str(each.path), **{n: getattr(each, n) for n in names}, "error_m": each.error, "begun": begun}


def _show(found: Sequence[Listed]) -> None:
    """A table; the columns that a narrow terminal has no room for are left out."""
    console, names = Console(highlight=False), [*COLUMNS]

    def width(name: str) -> int:
        return 2 + max(len(title(name)), *(len(each.shown(name)) for each in found))

    def title(name: str) -> str:
        return "RMS mm" if name == "error" else name

    if not any(each.label for each in found):
        names.remove("label")
    wanted = [*names]
    full = max(len(each.path.name) for each in found)
    for name in _LEFT_OUT:
        if name in names and sum(map(width, names)) + min(full, _NAME) > console.width:
            names.remove(name)
    rows = [tuple(escape(cell) for cell in (each.path.name, *(each.shown(name) for name in names))) for each in found]
    left = [name for name in names if name not in ("error", "age")]
    console.print(table_of(("run", *map(title, names)), rows, left=left))
    if missing := [name for name in wanted if name not in names]:
        console.print(f"Not shown, as the terminal is too narrow: {', '.join(missing)}.")


def age(seconds: float) -> str:
    """How long ago, in one unit: "5 min"."""
    unit, name = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return f"{max(seconds, 0.0) / unit:.0f} {name}"


def listed(folder: Path) -> Iterator[Listed]:
    """What is in a directory, with or without runs; what cannot be read is named with what is known of it."""
    for path in folder.iterdir() if folder.is_dir() else ():
        try:
            found = _listed(path)
        except (TypeError, LookupError, AttributeError, ValueError):
            # The files are of these names, and of another program.
            found = Listed(path, "run", path.stat().st_mtime, outcome="not readable")
        if found is not None:
            yield found


def _listed(path: Path) -> Listed | None:
    if (path / "settings.toml").is_file():
        return _run(path)
    if numbered := _numbered(path):
        return _repeats(path, numbered)
    return _sweep(path) if (path / "sweep.toml").is_file() else None


def _numbered(path: Path) -> list[Path]:
    """The settings of the runs of repeats; see `repeats_in`."""
    return [file for file in path.glob("*/settings.toml") if file.parent.name.isdecimal()]


def _run(path: Path) -> Listed:
    settings, summary = path / "settings.toml", _json(path / "summary.json")
    kind: Kind = "session" if (path / "events.jsonl").is_file() else "run"
    found = _named(Listed(path, kind, settings.stat().st_mtime), summary, settings)
    error = (summary.get("tracking_error") or {}).get("position_m", {}).get("rms")
    cause = (summary.get("ended_by") or {}).get("cause")
    outcome = str(cause or summary.get("outcome") or found.outcome)
    return replace(found, error=error, outcome=outcome.partition(":")[0])


def _repeats(path: Path, numbered: Sequence[Path]) -> Listed:
    summary = _json(path / "summary.json")
    newest = max(file.stat().st_mtime for file in numbered)
    found = _named(Listed(path, "repeats", newest), summary, numbered[0])
    errors = [run["tracking_error"]["position_m"]["rms"] for run in summary.get("runs", ()) if run["tracking_error"]]
    counts = f"{summary['completed']} of {counted(summary['repeats'], 'run')}" if summary else found.outcome
    return replace(found, error=math.fsum(errors) / len(errors) if errors else None, outcome=counts)


def _sweep(path: Path) -> Listed:
    grid, rows, errors = path / "sweep.toml", list[dict[str, str]](), list[float]()
    with contextlib.suppress(OSError, ValueError, csv.Error), (path / "results.csv").open(newline="") as file:
        rows += csv.DictReader(file)
        errors += [float(text) for row in rows if (text := row.get(_SWEPT))]
    made = sum(row.get("outcome") == "completed" for row in rows)
    scenarios = ", ".join(Path(name).stem for name in _toml(grid).get("scenarios", ()))
    outcome = f"{made} of {counted(len(rows), 'point')}"
    least = min(errors, default=None)
    return Listed(path, "sweep", grid.stat().st_mtime, scenario=scenarios, error=least, outcome=outcome)


def _named(found: Listed, summary: Mapping[str, Any], settings: Path) -> Listed:
    """With the names that the summary has, or else the settings."""
    if "scenario" in summary:
        names = {name: summary.get(name, "") for name in COLUMNS[:4]}
    else:
        given = _toml(settings)
        names = {name: given.get(name, {}).get("name", "") for name in COLUMNS[1:4]} | {"label": given.get("label", "")}
    return replace(found, **names)


def _json(file: Path) -> Mapping[str, Any]:
    return _decoded(file, msgspec.json.decode)


def _toml(file: Path) -> Mapping[str, Any]:
    return _decoded(file, msgspec.toml.decode)


def _decoded(file: Path, decode: Any) -> Mapping[str, Any]:
    try:
        found = decode(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def newest_run() -> Path:
    """The run, repeats or session that began last, of those under runs/ and those in this directory.

    Raises:
        NotARun: There is none.
    """
    here = [path for folder in (Path(RUNS), Path()) if folder.is_dir() for path in folder.iterdir()]
    begun = {path: [*path.glob("settings.toml"), *_numbered(path)] for path in here if path.is_dir()}
    found = {path: max(file.stat().st_mtime for file in files) for path, files in begun.items() if files}
    if not found:
        raise NotARun(LAST, "", f"there is no run under {RUNS}/ or in this directory; name a run's directory")
    return max(found, key=lambda path: found[path])


def named_run(given: str) -> str:
    """A run's directory as it was given; the newest one for `last`, which is then named on standard error."""
    if given != LAST or Path(LAST).exists():
        return given
    newest = newest_run()
    print(f"{LAST}: {newest}", file=sys.stderr)
    return str(newest)


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
        raise NoPage(
            path, f"`simbridge report {path}` writes it" if made else "it is not the directory of a run or a sweep"
        )
    print(page)
    # Without a screen, Python would open the page in a browser for terminals.
    screen = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    if screen and not no_browser:
        webbrowser.open(page.resolve().as_uri())
    return 0
