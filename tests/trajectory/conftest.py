"""Fixtures that write tables of poses."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def write_table(tmp_path):
    """Writes rows below lines of a header, and returns the path."""

    def write_table(rows, *header, separator=",", name="motion.csv"):
        lines = [*header, *(separator.join(map(str, row)) for row in rows)]
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return write_table


@pytest.fixture
def write_text(tmp_path: Path):
    """Writes text (or bytes) to a file, and returns the path."""

    def write_text(content: str | bytes) -> Path:
        path = tmp_path / "motion.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_text
