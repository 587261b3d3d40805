"""Resolve the dependencies again: uv.lock, and a set for each Python and machine.

`make lock` runs it; it needs the package index, and uv.

uv.lock is for developers (`uv sync --extra dev`). The sets in tests/data/resolved hold what an
installation without extras gets from wheels alone: tests/test_resolved_sets.py compares both with
pyproject.toml, without the network. ruckig has no wheel for aarch64, where it may be compiled.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
SETS = CHECKOUT / "tests/data/resolved"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
# Each machine: the packages that have no wheel for it.
COMPILED = {"x86_64": (), "aarch64": ("ruckig",)}
# The only index that may be written into a file.
INDEX = "https://pypi.org/simple"


def main() -> int:
    """Write uv.lock and the sets; return the exit status."""
    uv = [sys.executable, "-m", "uv"]
    index = ["--no-config", "--default-index", INDEX]
    subprocess.run([*uv, "lock", "--quiet", "--upgrade", *index], cwd=CHECKOUT, check=True)

    SETS.mkdir(exist_ok=True)
    for machine, compiled in COMPILED.items():
        for python in PYTHONS:
            command = [*uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", *index]
            command += ["--python-version", python]
            command += ["--python-platform", f"{machine}-manylinux_2_28"]
            command += ["--only-binary", ":all:"]
            for name in compiled:
                command += ["--no-binary", name]
            path = SETS / f"{machine}-{python}.txt"
            print(path.relative_to(CHECKOUT))
            subprocess.run(
                [*command, "pyproject.toml", "--output-file", str(path)], cwd=CHECKOUT, check=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
