"""The progress line while a plan runs, in simulation and on a real arm that needs confirmation."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from simbridge.cli.progress_line import ASCII_BARS, BARS, ProgressLine, sparkline
from simbridge.emulator.handle import Emulator
from simbridge.running.run_setup import prepare
from tests.backends.trial import write_line
from tests.controllers import REALTIME_FLAGS
from tests.program import WITHOUT_PAGES


def seen_on_a_terminal(*arguments: object, answer: str = "") -> str:
    """Return the output of `simbridge run` in a terminal of 80 columns.

    The operator answers its question.
    """
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "PYTHONUTF8": "1"}
    command = [sys.executable, "-c", WITHOUT_PAGES, "run", *map(str, arguments)]
    running = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    )
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
        if b"Type yes" not in seen and b"Type yes" in seen + part:
            os.write(ours, f"{answer}\n".encode())
        seen += part

    os.close(ours)
    assert running.wait() == 0, seen.decode()
    return seen.decode()


def drawn(text: str) -> list[str]:
    """Return the successive states of the line, with their colour escapes."""
    lines = [part.split("\x1b[2K")[-1] for part in text.replace("\r", "\n").split("\n")]
    return [part for part in lines if "error" in part and " mm" in part]


def shows_the_error(text: str) -> bool:
    lines = drawn(text)
    assert max(len(part) - part.count("\x1b") * 4 for part in lines) <= 80
    return any(bar in part for part in lines for bar in BARS)


# On a controller in test_the_line_continues_after_the_operators_answer.
@pytest.mark.soak
def test_the_tracking_error_is_a_line_that_fits(line: Path, tmp_path: Path) -> None:
    assert shows_the_error(seen_on_a_terminal(line, "--out", tmp_path / "run"))


@pytest.mark.soak
@pytest.mark.real_time
def test_the_line_restarts_with_each_repeat(line: Path, tmp_path: Path) -> None:
    states = drawn(
        seen_on_a_terminal(
            line, "--repeat", 2, "--realtime", "--speed-scale", 0.5, "--out", tmp_path / "run"
        )
    )
    # Colours and cursor movements.
    states = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", state) for state in states]
    first, second = (
        [state for state in states if f"Tracking {number}/2" in state] for number in (1, 2)
    )

    assert first
    assert second
    assert max(map(len, first + second)) <= 80

    shown = [sum(state.count(bar) for bar in BARS) for state in (first[-1], *second[:2])]
    # The errors of the first run are gone.
    assert shown[0] > 2
    assert shown[1:] == [0, 1]

    clocks = [state.split()[-1] for state in (first[-1], second[0])]
    assert clocks[1] == "0:00:00" < clocks[0]


def test_the_line_continues_after_the_operators_answer(
    calibrated: Emulator, tmp_path: Path
) -> None:
    flags = ("--robot", "ur10e", "--backend", "real", "--host", calibrated.host, *REALTIME_FLAGS)
    text = seen_on_a_terminal(
        write_line(tmp_path, 0.5), *flags, "--out", tmp_path / "run", answer="yes"
    )

    before, after = text.split("Type yes to confirm: ")

    # The line is hidden while the operator answers.
    assert after.startswith("yes\r\n")
    assert shows_the_error(after)
    # Nothing moves before the answer.
    assert all("Starting" in part for part in drawn(before))
    assert "Approaching" in drawn(after)[0]


def test_a_narrow_terminal_cuts_nothing(line: Path) -> None:
    console = Console(width=60, file=io.StringIO(), force_terminal=True, color_system=None)
    bar = ProgressLine(prepare(line), console, repeats=2).bar
    with bar:
        bar.update(bar.task_ids[0], description="Tracking 1/2", error="0.000226", refresh=True)

    shown = console.file.getvalue()  # type: ignore[attr-defined]

    assert "Tracking 1/2" in shown
    assert "0.000226 mm 0:00:00" in shown


def test_the_largest_value_is_a_full_bar():
    assert sparkline([0.0, 1.0, 2.0], 3) == f"{BARS[0]}{BARS[4]}{BARS[7]}"
    assert sparkline([0.0, 0.0], 2) == BARS[0] * 2
    assert sparkline([3.0], 4, ASCII_BARS) == "   #"


@given(st.lists(st.floats(0.0, 1e6), max_size=30), st.integers(1, 20))
def test_larger_values_have_higher_bars(values, width):
    line = sparkline(values, width)

    assert len(line) == width

    shown = values[-width:]
    heights = [BARS.index(bar) for bar in line.strip()]

    assert len(heights) == len(shown)
    assert all(
        heights[i] <= heights[j] for i, a in enumerate(shown) for j, b in enumerate(shown) if a <= b
    )
