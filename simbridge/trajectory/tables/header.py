"""The names of a table's columns, and the refusals and flags that speak of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from simbridge.errors import InputFileError
from simbridge.quoting import quoted, quoted_list
from simbridge.trajectory.tables.choice import columns_flag
from simbridge.trajectory.tables.column_names import strip_quotes


@dataclass(frozen=True)
class Header:
    """The names of a table's columns.

    Attributes:
        path: The file, for messages.
        names: The names as the table has them.
        kind: What has the names, for messages: "header", "comment", "table" or "flag --columns".
        line: The line of the names, counted from 1; None if the file has no lines.
    """

    path: str | Path
    names: Sequence[str]
    kind: str
    line: int | None = None

    @property
    def origin(self) -> str:
        """The origin of the names, for messages: "as the header in line 1 names"."""
        place = f" in line {self.line}" if self.line else ""
        return f"as the {self.kind}{place} names"

    def refuse(self, reason: str) -> NoReturn:
        """Refuse the file for what its names say."""
        raise InputFileError(self.path, reason, line=self.line)

    def flag(self, columns: Mapping[str, int]) -> str:
        """Return the flag --columns that chooses columns, to be copied.

        Args:
            columns: The index of each role's column.
        """
        plain = [strip_quotes(name) for name in self.names]
        indices = list(columns.values())
        names = [plain[index] for index in indices]
        has_repeated_names = len({name.lower() for name in plain}) < len(plain)
        if has_repeated_names:
            names = [str(index + 1) for index in indices]
        return columns_flag(list(columns), names, indices)

    def find_column(self, choice: str) -> int:
        """Return the index of a column that was chosen by its name, or its number from 1.

        Raises:
            InputFileError: There is no such column.
        """
        plain = [strip_quotes(name).lower() for name in self.names]
        if choice.lower() in plain:
            return plain.index(choice.lower())
        if choice.isdecimal() and 1 <= int(choice) <= len(plain):
            return int(choice) - 1
        listed = quoted_list(name.strip() for name in self.names)
        self.refuse(f"there is no column {quoted(choice)} (--columns); there are {listed}")
