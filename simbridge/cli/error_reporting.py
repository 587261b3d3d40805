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

# Widths of a paragraph: at most, and where the terminal does not know its size, columns.
MAX_COLUMNS = 120
DEFAULT_COLUMNS = 100

# A command, and a flag with its value: one word, a quoted one, or several numbers.
_COMMAND = re.compile(
    r"`[^`]+`"
    r"|--[a-z][a-z.-]*(?:(?: [-+]?\.?\d\S*)+| '[^']*'\S*| [^\s'-]\S*)"
)
# Stands for a blank where no line is broken; `visible` leaves none of it in a text.
_UNBROKEN = "\0"


def print_message(text: str) -> None:
    """Print a paragraph on standard error, as wide as the terminal."""
    columns = os.get_terminal_size(2).columns if sys.stderr.isatty() else 0
    columns = min(columns or DEFAULT_COLUMNS, MAX_COLUMNS)

    for line in text.split("\n"):
        # What is to be copied stays in one line.
        unbroken = _COMMAND.sub(lambda command: command[0].replace(" ", _UNBROKEN), visible(line))
        filled = textwrap.fill(unbroken, columns, break_long_words=False, break_on_hyphens=False)
        print(filled.replace(_UNBROKEN, " "), file=sys.stderr)


def print_note(message: Warning | str, *_location: object, **_more: object) -> None:
    """Print a warning as a paragraph: a replacement for `warnings.showwarning`."""
    print_message(f"Note: {message}")


def print_error(error: SimbridgeError) -> int:
    """Print an error that was raised on purpose, and return the exit status."""
    if isinstance(error, InternalError):
        return print_bug(error.trace, error)

    if isinstance(error, EmulatorBroken):
        traceback.print_exception(error.__cause__)
    sentences = " ".join(filter(None, (str(error), error.aftermath)))
    print_message(sentences + _recorded_run(error, error.run_directory))

    if isinstance(error, Interrupted):
        return 128 + error.number
    return 1 if isinstance(error, EmulatorBroken) else 2


def print_bug(trace: str, ended: SimbridgeError | None = None) -> int:
    """Print an unforeseen error, save its traceback for those who fix it, and return the status.

    Args:
        trace: The traceback.
        ended: The error of the run or session that it ended; None if it ended none.
    """
    run = None if ended is None else ended.run_directory
    ending = ""
    if ended is not None and run is not None:
        ending = f" {ended.aftermath}{_recorded_run(ended, run)}."

    try:
        location = f"in {_save_traceback(trace, run)}"
    except OSError:
        print(trace, file=sys.stderr)
        location = "above"

    reason = trace.strip().splitlines()[-1]
    print_message(
        f"This is a bug in simbridge: {reason}.{ending} The traceback is {location}. Please "
        "report it together with the command that you ran."
    )
    return 1


def _recorded_run(error: Exception, run: Path | None) -> str:
    """Say where the run is that an error ended.

    The sentence has no full stop, which could be taken for a part of the path.
    """
    if run is None:
        return ""
    # The error has named the directory itself.
    if isinstance(error, OutputError) and error.path == run:
        return ""
    if run.is_dir():
        return f" What was recorded up to then is in {run}"
    return f" {run} was deleted or moved in the meantime"


def _save_traceback(trace: str, run: Path | None) -> str:
    """Write a traceback into the run's directory, if there is one, and return the file's path."""
    if run is not None:
        path = run / "traceback.txt"
        write_file(path, trace.encode(), follow_links=False)
        return str(path)

    with tempfile.NamedTemporaryFile(
        "w", prefix="simbridge-", suffix=".traceback.txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(trace)
    return file.name
