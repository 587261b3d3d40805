"""The command `simbridge judge`: what an arm did in a log, and why it deviated."""

from __future__ import annotations

import numpy as np

from simbridge.cli.flags import JudgeFlags
from simbridge.cli.terminal import say
from simbridge.console import Terminal
from simbridge.judging.log import ControllerLog
from simbridge.judging.read_log import read_log
from simbridge.text import counted, fixed, milliradians


def judge(flags: JudgeFlags) -> int:
    """Judge logs, one after another.

    Returns:
        The exit status, 0.

    Raises:
        InputFileError: A log cannot be read.
    """
    console = Terminal()
    for name in flags.logs:
        say(console, _headline(read_log(name)), style="bold")
    return 0


def _headline(log: ControllerLog) -> str:
    """Return the first line: what the log is, and how far the joints were from their targets."""
    headline = (
        f"{log.name}: {log.source.value}, {counted(len(log.times), 'sample')}, "
        f"{fixed(log.duration, 1)} s"
    )
    if log.target_q is None or log.actual_q is None:
        return f"{headline}."
    error = float(np.sqrt(np.mean((log.target_q - log.actual_q) ** 2)))
    return f"{headline}; joints {milliradians(error)} mrad RMS from their targets."
