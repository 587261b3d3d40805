"""Reads any log into a `ControllerLog`: finds out what a file or directory is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from simbridge.judging.log import ControllerLog
from simbridge.judging.missing import find_missing
from simbridge.judging.rtde_log import read_rtde_log


@dataclass(frozen=True)
class LogOptions:
    """How a log is read.

    Attributes:
        columns: Names of all columns of a file without a header; empty for those of its header.
    """

    columns: tuple[str, ...] = ()


def read_log(path: str | Path, options: LogOptions | None = None) -> ControllerLog:
    """Read a log.

    Args:
        path: The file or directory.
        options: How it is read.

    Raises:
        InputFileError: It is not a log, or cannot be read.
    """
    options = options or LogOptions()
    log = read_rtde_log(Path(path), options.columns)
    return replace(log, missing=find_missing(log))
