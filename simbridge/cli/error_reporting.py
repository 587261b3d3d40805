"""Errors and notes at the command line: one paragraph each, and an exit status."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import textwrap
import traceback
from pathlib import Path

from simbridge.emulator.errors import EmulatorBroken
from simbridge.errors import InternalError, Interrupted, OutputError, SimbridgeError
from simbridge.files.writing import write_file
from simbridge.quoting import visible

_COMMAND = re.compile(r"`[^`]+`")
# Stands for a blank where no line is broken; `visible` leaves none of it in a text.
_UNBROKEN = "\0"


def print_message(text: str) -> None:
    """Print a paragraph on standard error, as wide as the terminal."""
    # A terminal may not know its size.
    columns = min((sys.stderr.isatty() and os.get_terminal_size(2).columns) or 100, 120)
    for line in text.split("\n"):
        # A command to be copied stays in one line.
        unbroken = _COMMAND.sub(lambda command: command[0].replace(" ", _UNBROKEN), visible(line))
        filled = textwrap.fill(unbroken, columns, break_long_words=False, break_on_hyphens=False)
        print(filled.replace(_UNBROKEN, " "), file=sys.stderr)


def print_note(message: Warning | str, *_where: object, **_more: object) -> None:
    """A replacement for `warnings.showwarning`."""
    print_message(f"Note: {message}")


def print_error(error: SimbridgeError) -> int:
    """Print an error that was raised on purpose; returns the exit status."""
    if isinstance(error, InternalError):
        return print_bug(error, error.trace)
    if isinstance(error, EmulatorBroken):
        traceback.print_exception(error.__cause__)
    print_message(
        " ".join(filter(None, (str(error), error.aftermath)))
        + _recorded(error, error.run_directory)
    )
    if isinstance(error, Interrupted):
        return 128 + error.number
    return 1 if isinstance(error, EmulatorBroken) else 2


def print_bug(error: Exception, trace: str) -> int:
    """Print an unforeseen error, and save its traceback for those who fix it; returns the exit status."""
    run: Path | None = getattr(error, "run_directory", None)
    aftermath = getattr(error, "aftermath", "")
    ended = "" if run is None else f" {aftermath}{_recorded(error, run)}."
    try:
        where = f"in {_saved(trace, run)}"
    except OSError:
        print(trace, file=sys.stderr)
        where = "above"
    reason = trace.strip().splitlines()[-1]
    print_message(
        f"This is a bug in simbridge: {reason}.{ended} The traceback is {where}. Please report it, with the command "
        f"that you gave."
    )
    return 1


def _recorded(error: Exception, run: Path | None) -> str:
    """Where the run is that an error ended; no path is followed by a full stop that could be taken for a part of it."""
    if run is None or (isinstance(error, OutputError) and error.path == run):
        return ""
    return (
        f" What was recorded until then is in {run}"
        if run.is_dir()
        else f" {run} was deleted or moved meanwhile"
    )


def _saved(trace: str, run: Path | None) -> str:
    """The file with the traceback: in the run's directory, if there is one."""
    if run is not None:
        path = run / "traceback.txt"
        write_file(path, trace.encode(), follow_links=False)
        return str(path)
    with tempfile.NamedTemporaryFile(
        "w", prefix="simbridge-", suffix=".traceback.txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(trace)
    return file.name
