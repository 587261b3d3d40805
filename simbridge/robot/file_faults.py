"""The faults of one file, collected while it is read, so that they are reported together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

from simbridge.errors import InputFileError

T = TypeVar("T")
Arguments = ParamSpec("Arguments")

# Faults that one error describes at most.
MAX_DESCRIBED = 20


class FileFaults:
    """Collects what is wrong in a file.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._faults: list[InputFileError] = []

    def __len__(self) -> int:
        """Return how many faults were collected so far."""
        return len(self._faults)

    @contextlib.contextmanager
    def collect(self) -> Iterator[None]:
        """Go on after a fault in the block, whose rest is skipped."""
        try:
            yield
        except InputFileError as fault:
            self._faults.append(fault)

    def attempt(
        self,
        fallback: T,
        read: Callable[Arguments, T],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> T:
        """Return what a function reads, or, after a fault, the fallback."""
        with self.collect():
            return read(*args, **kwargs)
        return fallback

    def refuse(self) -> None:
        """Refuse a file in which something is wrong.

        Raises:
            InputFileError: The only fault, or one error that describes all of them by their lines.
        """
        # The same element may have been read twice.
        by_text = {str(fault): fault for fault in self._faults}
        faults = sorted(by_text.values(), key=lambda fault: fault.line or 0)
        if not faults:
            return
        if len(faults) == 1:
            raise faults[0]

        descriptions = []
        for fault in faults[:MAX_DESCRIBED]:
            line = f"line {fault.line}" if fault.line else ""
            position = ", ".join(filter(None, (line, fault.field)))
            descriptions.append(f"{position}: {fault.reason}")
        if len(faults) > MAX_DESCRIBED:
            descriptions.append(f"and {len(faults) - MAX_DESCRIBED} more")
        reason = f"{len(faults)} errors. " + "; ".join(descriptions)
        raise InputFileError(self._path, reason, line=faults[0].line)
