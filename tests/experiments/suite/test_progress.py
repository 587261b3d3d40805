"""The progress of the suite: a line every ten seconds where no terminal is."""

from __future__ import annotations

import io

from simbridge.console import Terminal
from simbridge.experiments.suite.progress import SuiteProgress


def test_a_pipe_gets_a_line_every_ten_seconds():
    file = io.StringIO()
    now = 0.0
    progress = SuiteProgress(3, Terminal(file=file), clock=lambda: now)

    progress.begin("square")
    for second in range(25):
        now = float(second)
        progress.tick()
    progress.end()
    progress.begin("helix")
    now = 30.0
    progress.tick()

    lines = file.getvalue().splitlines()
    assert lines == ["0/3  square  10 s", "0/3  square  20 s", "1/3  helix  30 s"]
