"""`python -m benchmarks [PART ...]`: measures parts, and prints one table."""

from __future__ import annotations

import argparse
import pkgutil

from rich.console import Console

from simbridge.bench import Row
from simbridge.bench.bench import COLUMNS
from simbridge.text import make_table

# The parts, and the function that measures each and returns its rows.
PARTS = {
    "solvers": "benchmarks.solvers:measure",
    "run": "benchmarks.runs:measure_run",
    "startup": "benchmarks.startup:measure",
    "recording": "benchmarks.runs:measure_recording",
    "pages": "benchmarks.runs:measure_pages",
    "sweeps": "benchmarks.sweeps:measure",
    "studio": "benchmarks.studio:measure",
    "growth": "benchmarks.growth:measure",
    "emulator": "benchmarks.emulator:measure",
}
# What is measured unless parts are named: each of the others takes minutes.
QUICK = ("solvers", "run", "startup")


def main() -> None:
    """Measure the parts of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure simbridge's speed."
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: {', '.join(QUICK)})"
    )
    parts = parser.parse_args().parts or QUICK
    unknown = set(parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")

    console = Console(highlight=False)
    rows: list[Row] = []
    for part in parts:
        with console.status(f"Measuring {part} ..."):
            measure = pkgutil.resolve_name(PARTS[part])
            rows += measure()
    console.print(make_table(COLUMNS, rows, left=("compared to",)))


if __name__ == "__main__":
    main()
