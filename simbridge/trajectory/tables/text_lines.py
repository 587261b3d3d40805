"""The lines of a text file, and what separates the fields of one."""

from __future__ import annotations

from pathlib import Path

from simbridge.errors import InputFileError

# Lines of a file at most: twice as many as poses that fit into memory.
MAX_LINES = 20_000_000
# Characters of a line at most: those of MAX_COLUMNS numbers.
MAX_LINE_LENGTH = 1_000_000
# Fields of a line at least between which there are tabs, where blanks belong to the fields.
MIN_TAB_FIELDS = 6
# What a field that is a number begins with.
NUMBER_STARTS = tuple("+-.0123456789")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, whatever ends them.

    `str.splitlines` would also split where editors count no line.
    """
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def check_text_size(path: str | Path, text: str) -> None:
    """Refuse a text of more lines, or of longer ones, than are read."""
    count = text.count("\n") + text.count("\r") - text.count("\r\n") + 1
    if count > MAX_LINES:
        raise InputFileError(path, f"it has {count:,} lines; at most {MAX_LINES:,} are read")
    if len(text) <= MAX_LINE_LENGTH:
        return
    for number, line in enumerate(lines_of(text), start=1):
        if len(line) > MAX_LINE_LENGTH:
            reason = f"the line has {len(line):,} characters; at most {MAX_LINE_LENGTH:,} are read"
            raise InputFileError(path, reason, line=number)


def content_of(line: str) -> str:
    """Return what is before the comment of a line."""
    return line.partition("#")[0].strip()


def comment_of(line: str) -> str:
    """Return the comment of a line, without its #."""
    return line.partition("#")[2].strip(" \t#")


def find_separator(content: str) -> str | None:
    """Return what separates the fields of a line; None for blanks."""
    for separator in ";,":
        if separator in content:
            return separator
    tab_fields = content.count("\t") + 1
    if MIN_TAB_FIELDS <= tab_fields < len(content.split()):
        return "\t"
    return None


def is_number(word: str) -> bool:
    """Return whether a word of a file is a number.

    `float` accepts 1_5 for 15, which is a misprint.
    """
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


def looks_like_number(field: str) -> bool:
    """Return whether a field begins like a number: 0,5 is a misprinted one, not a name."""
    return field.strip().startswith(NUMBER_STARTS)
