"""`simbridge bench`: what a computer is capable of in real time, compared with requirements or a bare timer."""

from __future__ import annotations

from typing import Literal, TypeAlias

Row: TypeAlias = tuple[str, str, str, str]
"""A row of the table: figure, its value, what it is compared with, the value of that."""

Part: TypeAlias = Literal["servo", "live"]
