"""Standard streams and the terminal's width, made usable before anything is read or printed.

A program may be started with closed streams (`>&-`), with an encoding that lacks most characters,
or in a terminal of any width. Each then behaves as the nearest thing that works: a closed stream as
/dev/null, a missing character as the nearest plain one, a width of 3 columns as one of MIN_COLUMNS.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import sys
import unicodedata
from typing import TextIO

# Columns. Narrower, no help can be laid out; wider, a table is padded with blanks for nothing.
MIN_COLUMNS = 20
MAX_COLUMNS = 1000
SIZE_VARIABLES = ("COLUMNS", "LINES")
ENCODING_ERRORS = "simbridge.nearest"

# Characters in what simbridge prints that have no decomposition into plain ones.
NEAREST_TEXTS = {
    "\u2212": "-",  # minus
    "\u2010": "-",
    "\u2011": "-",
    "\u2013": "-",  # the dash of a missing value
    "\u2014": "-",
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u00d7": "x",
    "\u00b7": "*",
    "\u2192": "->",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u00b0": "deg",
    "\u00b5": "u",
    "\u03bc": "u",
    "\u2500": "-",
    "\u2501": "-",
    "\u2502": "|",
    "\u2503": "|",
    "\u2588": "#",
}


def prepare_streams() -> None:
    """Make standard streams and the terminal's width usable; call it before any file is opened."""
    for descriptor in (0, 1, 2):
        _open_if_closed(descriptor)
    # Python has no object for a stream that was closed when it started; they stay open as long as
    # the process.
    sys.stdin = sys.stdin or open(0, closefd=False, encoding="utf-8")
    sys.stdout = sys.stdout or _text_output(1)
    sys.stderr = sys.stderr or _text_output(2)

    codecs.register_error(ENCODING_ERRORS, nearest_text)
    _set_error_handler(sys.stdin, "replace")
    _set_error_handler(sys.stdout, ENCODING_ERRORS)
    _set_error_handler(sys.stderr, ENCODING_ERRORS)

    _correct_terminal_size()


def _set_error_handler(stream: TextIO, errors: str) -> None:
    # What replaces a standard stream need not be a TextIOWrapper.
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors=errors)


def discard_output() -> None:
    """Discard what is still to be printed: nobody is reading it any longer."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _redirect_to_nowhere(stream)


def _redirect_to_nowhere(stream: TextIO) -> None:
    # A stream that replaces a standard one may have no descriptor.
    with contextlib.suppress(OSError, ValueError):
        descriptor = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def nearest_text(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace the first character that cannot be encoded: a handler for `codecs`.

    Returns:
        What stands for it, and where to go on.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    after = error.start + 1

    if "\udc80" <= character <= "\udcff":
        # A byte of a file's name that is no text: it is printed as it is.
        return bytes([ord(character) - 0xDC00]), after
    if character in NEAREST_TEXTS:
        return NEAREST_TEXTS[character], after
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return plain or "?", after


def _open_if_closed(descriptor: int) -> None:
    """Open /dev/null in place of a standard stream that is closed, or open the wrong way only."""
    usable = os.O_RDONLY if descriptor == 0 else os.O_WRONLY
    with contextlib.suppress(OSError):
        access = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
        if access in (usable, os.O_RDWR):
            return
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
    os.set_inheritable(descriptor, True)


def _text_output(descriptor: int) -> TextIO:
    return open(descriptor, "w", closefd=False, encoding="utf-8")


def _correct_terminal_size() -> None:
    """Correct the terminal's size in the environment; widen one that is too narrow for a layout."""
    # What the environment says: what is no size is removed, and what is none of use is bounded.
    for name in SIZE_VARIABLES:
        try:
            size = int(os.environ.get(name, ""))
        except ValueError:
            size = 0
        if size <= 0:
            os.environ.pop(name, None)
        elif name == "COLUMNS":
            os.environ[name] = str(min(max(size, MIN_COLUMNS), MAX_COLUMNS))
        else:
            os.environ[name] = str(min(size, MAX_COLUMNS))

    # Where it says nothing, a narrow terminal is taken for a wider one.
    if "COLUMNS" not in os.environ:
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):
                if 0 < os.get_terminal_size(descriptor).columns < MIN_COLUMNS:
                    os.environ["COLUMNS"] = str(MIN_COLUMNS)
