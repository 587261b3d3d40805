"""`simbridge bench`: speed, each figure compared with a requirement or with a baseline measured in the same run."""

from __future__ import annotations

from typing import Literal, TypeAlias

Row: TypeAlias = tuple[str, str, str, str]
"""A row of the table: figure, its value, what it is compared with, the value of that."""

Part: TypeAlias = Literal[
    "solvers", "run", "startup", "servo", "emulator", "live", "recording", "pages", "studio", "sweep"
]
