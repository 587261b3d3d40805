"""Progress of reading and judging a large file, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

# A file, the part of the work that has been done, 0 to 1, and what is being done: "Reading".
ShowProgress = Callable[[str, float, str], None]

# Lines between two reports: some 0.1 s of reading.
REPORT_LINES = 50_000

_show: ContextVar[ShowProgress | None] = ContextVar("_show", default=None)


@contextmanager
def reading_shown_by(show: ShowProgress) -> Iterator[None]:
    """Call `show` now and then while a file is read or judged within the block."""
    token = _show.set(show)
    try:
        yield
    finally:
        _show.reset(token)


def report_progress(path: str | Path, part: float, activity: str = "Reading") -> None:
    """Report how much of the work on a file has been done, to whoever shows it.

    Args:
        path: Path of the file.
        part: Fraction that has been done, 0 to 1.
        activity: The work, as the first word of a line.
    """
    show = _show.get()
    if show is not None:
        show(str(path), part, activity)


def with_progress(
    path: str | Path, lines: Sequence[str], first: int = 0
) -> Iterator[tuple[int, str]]:
    """Iterate over lines of a file, and report how far they were used.

    Args:
        path: Path of the file, for the report.
        lines: All lines of the file.
        first: Index of the first that is wanted.

    Yields:
        The number of a line, counted from 1, and the line.
    """
    for index in range(first, len(lines)):
        if index % REPORT_LINES == 0:
            report_progress(path, index / len(lines))
        yield index + 1, lines[index]
    report_progress(path, 1.0)
