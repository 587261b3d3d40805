"""Draw docs/sweep.png, the page of the worked example of docs/sweeps.md.

    python -m tools.draw_sweep [DIRECTORY]

It needs chromium, and two minutes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import simbridge
from tests.chromium import chromium

# The worked example.
GRID = {
    "sample-rate": [20, 50, 125],
    "solver.kp": [2, 5, 10, 20, 50],
    "solver.iterations": [1, 3, 10, 30],
}
# Of the browser's window, pixels.
SIZE = {"width": 1200, "height": 1350}


def main() -> None:
    """Make the sweep, and photograph its page."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    with chromium() as browser, tempfile.TemporaryDirectory() as scratch:
        if browser is None:
            sys.exit("chromium or the package playwright is not installed")
        sweep = simbridge.sweep("circle", grid=GRID, out=Path(scratch, "rates"))
        page = browser.new_page(viewport=SIZE)
        page.goto(f"file://{sweep.directory / 'sweep.html'}")
        page.screenshot(path=directory / "sweep.png")


if __name__ == "__main__":
    main()
