"""Reading the files that users name, within limits: what cannot be read is refused by name."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any, BinaryIO

from simbridge.errors import InputFileError

MIB = 1 << 20

# Limits in bytes; docs/trajectories.md has a table of all.
# TOML, and other small texts.
MAX_TEXT = MIB
# The text of samples or of a recording, once it is decompressed.
MAX_SAMPLES_TEXT = 512 * MIB
# YAML, which takes ten times as long to read.
MAX_YAML = MIB // 4

_YAML_ANCHOR = re.compile(r"(?:^|[\s\[\]{},:])(&)[^\s&]")


def open_file(path: str | Path) -> BinaryIO:
    """Open a file for reading.

    Raises:
        InputFileError: It is missing, cannot be read, or is not a regular file and so may wait or
            never end.
    """
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputFileError(path, "this is a directory, not a file; name a file in it")
        if not stat.S_ISREG(mode):
            reason = (
                "this is a device, FIFO or socket; only regular files can be read: copy it to one"
            )
            raise InputFileError(path, reason)
        return Path(path).open("rb")
    except FileNotFoundError as error:
        raise InputFileError(path, "file not found") from error
    except OSError as error:
        reason = f"it cannot be read: {error.strerror or error}"
        raise InputFileError(path, reason) from error


def read_bytes(path: str | Path, largest: int) -> bytes:
    """Read a file of at most `largest` bytes.

    Raises:
        InputFileError: It cannot be read, or is larger.
    """
    try:
        with open_file(path) as file:
            content = file.read(largest + 1)
    except OSError as error:
        raise InputFileError(path, f"it cannot be read: {error.strerror or error}") from None

    if len(content) > largest:
        limit = f"{largest / MIB:g} MiB"
        raise InputFileError(path, f"it is larger than {limit}, the limit for such a file")
    return content


def read_text(path: Path, largest: int = MAX_TEXT) -> str:
    """Read a text in UTF-8 of at most `largest` bytes.

    Raises:
        InputFileError: It cannot be read, or is larger, or is not text in UTF-8; names the line.
    """
    content = read_bytes(path, largest)
    try:
        if b"\0" not in content:
            return content.decode("utf-8-sig")
        reason = "this is a binary file (or UTF-16), not a text file in UTF-8"
        position = content.index(b"\0")
    except UnicodeDecodeError as error:
        reason = "this is not a text file in UTF-8; save it as UTF-8"
        position = error.start

    line = content.count(b"\n", 0, position) + 1
    raise InputFileError(path, reason, line=line)


def read_yaml(path: Path) -> Any:
    """Read a YAML document of plain data.

    Raises:
        InputFileError: It cannot be read, or has tags, anchors or deep nesting; names the line.
    """
    # Start-up time: 0.03 s, for this kind of file only.
    from ruamel import yaml  # noqa: PLC0415

    text = read_text(path, MAX_YAML)
    anchor = _YAML_ANCHOR.search(text)
    if anchor is not None:
        # Merged again and again, ten of them are ten thousand million values.
        line = text.count("\n", 0, anchor.start(1)) + 1
        raise InputFileError(path, "anchors (&) are not supported; write the values out", line=line)

    try:
        return yaml.YAML(typ="safe", pure=True).load(text)
    except yaml.error.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None)
        problem_line = None if mark is None else mark.line + 1
        reason = f"this is not YAML: {problem or error}"
        raise InputFileError(path, reason, line=problem_line) from None
    except RecursionError:
        raise InputFileError(path, "tables or lists are nested too deeply") from None
    except (ValueError, OverflowError) as error:
        raise InputFileError(path, f"a value in it cannot be read: {error}") from None
