"""The program, called in this process, and for another one without the pages of runs."""

from __future__ import annotations

import contextlib
import io

from simbridge.cli.command_line import main

WITHOUT_PAGES = """
import sys
from simbridge.__main__ import main
from simbridge.running import run_ending
run_ending.write_report = lambda *_: None
sys.exit(main())
"""
"""The installed program, as text for Python, without the pages of runs: they take most of its time.
"""


class Answer:
    """The result of a command: its exit status, and what it printed to stdout and stderr."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err
        # As one line, for lines are broken anywhere.
        self.message = " ".join(err.split())


def answer_to(*arguments: object) -> Answer:
    """Call the program, and return its answer: for fixtures that outlive a test, which `cli` does
    not.
    """
    out = io.StringIO()
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(argument) for argument in arguments])
    return Answer(status, out.getvalue(), err.getvalue())
