"""The progress of a sweep where standard error is a file or a pipe."""

from __future__ import annotations

from io import StringIO

from simbridge.cli.sweep_command import LINE_INTERVAL_S, ProgressLines
from simbridge.console import Terminal
from simbridge.sweeps.sweep import Progress


def test_a_pipe_gets_a_line_now_and_then():
    output = StringIO()
    # The time of the beginning, and of each update, s.
    times = iter([0.0, 1.0, LINE_INTERVAL_S, LINE_INTERVAL_S + 1.0, 2.0 * LINE_INTERVAL_S])
    lines = ProgressLines(Terminal(file=output), clock=lambda: next(times))

    for done in range(1, 5):
        lines.update(Progress(total=60, done=done))

    begins = [" ".join(line.split()[:2]) for line in output.getvalue().splitlines()]
    assert begins == ["Points 2/60", "Points 4/60"]
