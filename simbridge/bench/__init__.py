"""`simbridge bench`: how well a computer keeps time, compared with requirements or a bare timer."""

from __future__ import annotations

from typing import Literal, TypeAlias

# A row of the table: figure, its value, what it is compared with, the value of that.
Row: TypeAlias = tuple[str, str, str, str]

# What can be measured.
Part: TypeAlias = Literal["servo", "live"]
