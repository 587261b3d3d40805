"""A run's samples for other tools: the formats of `simbridge export`.

A new format is one function and one line in EXPORTERS, which says what they return and raise.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from simbridge.recording.export_arrays import export_csv, export_mat, export_parquet, export_tum
from simbridge.recording.export_rerun import export_rerun
from simbridge.recording.export_ros import export_bag, export_mcap
from simbridge.recording.sample_table import ReadSamples

Exporter = Callable[[Path, ReadSamples], list[Path]]

EXPORTERS: dict[str, Exporter] = {
    "csv": export_csv,
    "tum": export_tum,
    "mcap": export_mcap,
    "bag": export_bag,
    "parquet": export_parquet,
    "mat": export_mat,
    "rerun": export_rerun,
}
"""Exporters by the name of their format.

exporter(folder, read_samples) writes into a run directory, and returns its files.

Raises:
    MissingPackage: The format's extra is not installed.
    OutputError: A file cannot be written.
"""
