"""`simbridge bench`: speed, each figure compared with a requirement or with a baseline measured in the same run.

This module is the registry of what is measured. Every part is a function that returns
rows; those in TIMED take how many minutes they may measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

Row: TypeAlias = tuple[str, str, str, str]
"""A row of the table: figure, its value, what it is compared with, the value of that."""

Part: TypeAlias = Literal[
    "solvers", "run", "startup", "servo", "emulator", "live", "recording", "pages", "studio", "sweep"
]

PARTS: Mapping[Part, str] = {
    "solvers": "simbridge.bench.solvers:measure",
    "run": "simbridge.bench.run:measure_run",
    "startup": "simbridge.bench.run:measure_startup",
    "servo": "simbridge.bench.real_time:measure_servo",
    "emulator": "simbridge.bench.real_time:measure_emulator",
    "live": "simbridge.bench.live:measure",
    "recording": "simbridge.bench.recording:measure",
    "pages": "simbridge.bench.recording:measure_pages",
    "studio": "simbridge.bench.studio:measure",
    "sweep": "simbridge.bench.sweep:measure",
}
"""The parts, and the function that measures each."""

MINUTES: tuple[Part, ...] = ("servo", "emulator", "live", "recording", "pages", "studio", "sweep")
"""Parts that take minutes, measured only when asked for by name."""

TIMED: tuple[Part, ...] = ("live",)
"""Parts that measure for `--minutes`."""
MEASURED = 0.5
"""min, by default."""
TUNINGS = "simbridge.bench.live_tuning:write_table"
"""Writes the table of tunings of a live session."""
