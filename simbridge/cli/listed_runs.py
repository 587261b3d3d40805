"""Directories with runs, repeats, live sessions and sweeps, as they are listed.

Summaries are read, logs are not, so that a listing is quick.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from simbridge.errors import InputFileError
from simbridge.files.reading import MIB, read_bytes
from simbridge.sweeps.results_file import as_number, read_rows
from simbridge.text import counted, millimetres

NAMES = ("label", "scenario", "robot", "solver")
# What a run is listed and sorted by.
COLUMNS = (*NAMES, "error", "outcome", "age")

# The largest settings.toml, sweep.toml or summary.json that is read, bytes.
MAX_FACTS_BYTES = 64 * MIB
# Units of an age, s.
AGE_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


@dataclass(frozen=True)
class ListedRun:
    """A directory under runs/.

    Attributes:
        path: Path of the directory.
        kind: What it holds: "run", "repeats", "session" or "sweep".
        begun: When its newest run began, s since 1970.
        names: Label, scenario, robot and solver, as far as they are known; of a sweep only the
            scenarios.
        error: RMS tracking error, m: of repeats the mean, of a sweep the smallest; None where there
            is none.
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

    def cell(self, column: str) -> str:
        """Return the text in a column, or the kind."""
        if column == "error":
            return millimetres(self.error)
        if column == "age":
            return format_age(time.time() - self.begun)
        if column in NAMES:
            return self.names.get(column, "")
        return self.kind if column == "kind" else self.outcome

    def sort_key(self, column: str) -> Any:
        """Return what is sorted by.

        The newest and the smallest come first, and what is unknown last.
        """
        if column == "age":
            return -self.begun
        if column == "error":
            return math.inf if self.error is None else self.error
        return self.cell(column)

    def as_dict(self) -> dict[str, Any]:
        """Return the facts for JSON."""
        begun = datetime.fromtimestamp(self.begun).astimezone().isoformat(timespec="seconds")
        cells = {column: self.cell(column) for column in ("kind", *NAMES, "outcome")}
        return {"run": str(self.path), **cells, "error_m": self.error, "begun": begun}


def format_age(seconds: float) -> str:
    """Say how long ago something was, in one unit: "5 min"."""
    for unit, name in AGE_UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(seconds, 0.0):.0f} s"


def list_runs(folder: Path) -> Iterator[ListedRun]:
    """Yield what is in a directory of runs, which need not exist.

    What cannot be read is listed with what is known of it.
    """
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        try:
            run = _read_directory(path)
        except (TypeError, LookupError, AttributeError, ValueError, ArithmeticError):
            # The files are of these names, and of another program.
            run = ListedRun(path, "run", path.stat().st_mtime, outcome="not readable")
        if run is not None:
            yield run


def _read_directory(path: Path) -> ListedRun | None:
    """Read a directory; None if it holds no run."""
    if (path / "settings.toml").is_file():
        return _read_run(path)
    settings = settings_of_repeats(path)
    if settings:
        return _read_repeats(path, settings)
    if (path / "sweep.toml").is_file():
        return _read_sweep(path)
    return None


def settings_of_repeats(path: Path) -> list[Path]:
    """Return the settings.toml of each run in a directory of repeats; see `repeats_in`."""
    return [file for file in path.glob("*/settings.toml") if file.parent.name.isdecimal()]


def _read_run(path: Path) -> ListedRun:
    """Read a run or a live session."""
    settings = path / "settings.toml"
    summary = _decode(path / "summary.json", msgspec.json.decode)
    tracking_error = summary.get("tracking_error") or {}
    cause = (summary.get("ended_by") or {}).get("cause")
    outcome = str(cause or summary.get("outcome") or ListedRun.outcome)
    return ListedRun(
        path=path,
        kind="session" if (path / "events.jsonl").is_file() else "run",
        begun=settings.stat().st_mtime,
        names=_names(summary, settings),
        error=tracking_error.get("position_m", {}).get("rms"),
        # The cause of an end without its details.
        outcome=outcome.partition(":")[0],
    )


def _read_repeats(path: Path, settings: Sequence[Path]) -> ListedRun:
    """Read repeats.

    Args:
        path: Path of their directory.
        settings: The settings.toml of each of the runs.
    """
    summary = _decode(path / "summary.json", msgspec.json.decode)
    errors = [
        run["tracking_error"]["position_m"]["rms"]
        for run in summary.get("runs", ())
        if run["tracking_error"]
    ]
    # The default is that of an entry without a summary.
    outcome = ListedRun.outcome
    if summary:
        outcome = f"{summary['completed']} of {counted(summary['repeats'], 'run')}"
    return ListedRun(
        path=path,
        kind="repeats",
        begun=max(file.stat().st_mtime for file in settings),
        names=_names(summary, settings[0]),
        error=math.fsum(errors) / len(errors) if errors else None,
        outcome=outcome,
    )


def _read_sweep(path: Path) -> ListedRun:
    """Read a sweep, of whose results.csv as many rows as can be read."""
    points: list[dict[str, str]] = []
    with contextlib.suppress(InputFileError):
        rows = read_rows(path / "results.csv")
        _, columns = next(rows, (1, []))
        for _, cells in rows:
            points.append(dict(zip(columns, cells, strict=True)))

    errors = [as_number(point.get("tracking_error.position_m.rms", "")) for point in points]
    finite_errors = [error for error in errors if math.isfinite(error)]
    completed = sum(point.get("outcome") == "completed" for point in points)

    grid = path / "sweep.toml"
    scenarios = _decode(grid, msgspec.toml.decode).get("scenarios", ())
    return ListedRun(
        path=path,
        kind="sweep",
        begun=grid.stat().st_mtime,
        names={"scenario": ", ".join(Path(name).stem for name in scenarios)},
        error=min(finite_errors, default=None),
        outcome=f"{completed} of {counted(len(points), 'point')}",
    )


def _names(summary: Mapping[str, Any], settings: Path) -> dict[str, str]:
    """Return label, scenario, robot and solver of the summary, or else of the settings."""
    if "scenario" in summary:
        return {name: summary.get(name, "") for name in NAMES}
    recorded = _decode(settings, msgspec.toml.decode)
    names = {"label": recorded.get("label", "")}
    for name in ("scenario", "robot", "solver"):
        names[name] = recorded.get(name, {}).get("name", "")
    return names


def _decode(file: Path, decode: Callable[[bytes], Any]) -> Mapping[str, Any]:
    """Return the content of a file; nothing where it cannot be read or is no table."""
    try:
        content = decode(read_bytes(file, MAX_FACTS_BYTES))
    except (InputFileError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
