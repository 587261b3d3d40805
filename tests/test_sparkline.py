"""The bars of the error while a plan runs, by themselves and on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from simbridge.sparkline import BARS, PLAIN_BARS, sparkline


def test_the_largest_is_a_full_bar_and_nothing_is_the_lowest():
    assert sparkline([0.0, 1.0, 2.0], 3) == f"{BARS[0]}{BARS[4]}{BARS[7]}"
    assert sparkline([0.0, 0.0], 2) == BARS[0] * 2
    assert sparkline([3.0], 4, PLAIN_BARS) == "   #"


@given(st.lists(st.floats(0.0, 1e6), max_size=30), st.integers(1, 20))
def test_only_the_last_are_shown_and_the_width_is_kept_and_higher_is_never_lower(values, width):
    line = sparkline(values, width)
    assert len(line) == width
    shown = values[-width:]
    heights = [BARS.index(bar) for bar in line.strip()]
    assert len(heights) == len(shown)
    assert all(heights[i] <= heights[j] for i, a in enumerate(shown) for j, b in enumerate(shown) if a <= b)


def test_on_a_terminal_a_run_shows_how_far_the_tool_is_off_in_a_line_that_fits(line, tmp_path):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "simbridge", "run", str(line), "--out", str(tmp_path / "run")]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            # The other end of the terminal is closed.
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert running.wait() == 0
    text = seen.decode()
    assert "mm off" in text and any(bar in text for bar in BARS)
    lines = [part.split("\x1b[2K")[-1] for part in text.replace("\r", "\n").split("\n")]
    assert max(len(part) - part.count("\x1b") * 4 for part in lines if "mm off" in part) <= 80
