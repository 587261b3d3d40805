"""The root of every error."""

from __future__ import annotations

from pathlib import Path


class SimbridgeError(Exception):
    """Root of every error that simbridge raises on purpose.

    Attributes:
        run_directory: Where what was recorded until then is, when a run had begun; else None.
    """

    run_directory: Path | None = None
