"""The findings of doctor are shown one below the other, in columns."""

import io

from simbridge.console import Terminal
from simbridge.doctor.findings import failure, show, success

FINDINGS = [
    success("packages", "many " * 40 + "packages"),
    success("link", "ur_rtde"),
    failure("ports", "closed", "Open them."),
]


def test_no_line_is_padded_in_a_pipe():
    pipe = io.StringIO()

    show("simbridge", FINDINGS, Terminal(file=pipe, width=400))

    lines = pipe.getvalue().splitlines()
    assert lines == [line.rstrip() for line in lines]


def test_texts_and_fixes_begin_in_one_column():
    pipe = io.StringIO()

    show("simbridge", FINDINGS, Terminal(file=pipe, width=400))

    lines = pipe.getvalue().splitlines()
    starts = [
        line.index(text)
        for line in lines
        for text in ("many many", "ur_rtde", "closed", "->")
        if text in line
    ]
    assert set(starts) == {16}
