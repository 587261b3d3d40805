"""The line in the terminal while a plan runs, in simulation and on a real arm that asks first."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from simbridge.cli.progress import BARS
from simbridge.emulator.handle import Emulator

CALIBRATION = Path(__file__).parents[1] / "data/ur10e_calibration.toml"
HOST = "127.0.0.51"


def seen_on_a_terminal(*arguments: object, answer: str = "") -> str:
    """What `simbridge run` writes to a terminal of 80 columns where a person types an answer to its question."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "simbridge", "run", *map(str, arguments)]
    running = subprocess.Popen(command, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
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
    """The states of the line, one after the other, with the escapes that colour them."""
    lines = [part.split("\x1b[2K")[-1] for part in text.replace("\r", "\n").split("\n")]
    return [part for part in lines if "mm off" in part]


def shows_the_error(text: str) -> bool:
    lines = drawn(text)
    assert max(len(part) - part.count("\x1b") * 4 for part in lines) <= 80
    return any(bar in part for part in lines for bar in BARS)


def test_a_run_shows_how_far_the_tool_is_off_in_a_line_that_fits(line: Path, tmp_path: Path) -> None:
    assert shows_the_error(seen_on_a_terminal(line, "--out", tmp_path / "run"))


def test_of_repeats_the_line_says_which_run_it_is_and_begins_each_anew(line: Path, tmp_path: Path) -> None:
    states = drawn(
        seen_on_a_terminal(line, "--repeat", 2, "--realtime", "--speed-scale", 0.25, "--out", tmp_path / "run")
    )
    # Colours and cursor movements.
    states = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", state) for state in states]
    first, second = ([state for state in states if f"Tracking {number}/2" in state] for number in (1, 2))
    assert first and second and max(map(len, first + second)) <= 80
    shown = [sum(state.count(bar) for bar in BARS) for state in (first[-1], *second[:2])]
    # The errors of the first run are gone.
    assert shown[0] > 2 and shown[1:] == [0, 1]
    clocks = [state.split()[-1] for state in (first[-1], second[0])]
    assert clocks[1] == "0:00:00" < clocks[0]


def test_a_real_arm_shows_it_too_once_the_question_is_answered(line: Path, tmp_path: Path) -> None:
    with Emulator("ur10e", polyscope="5.12", host=HOST, calibration=CALIBRATION):
        flags = ("--robot", "ur10e", "--backend", "real", "--host", HOST, "--out", tmp_path / "run")
        text = seen_on_a_terminal(line, *flags, answer="yes")
    before, after = text.split("Type yes to agree: ")
    # Where the answer is typed nothing else is drawn.
    assert after.startswith("yes\r\n")
    assert shows_the_error(after)
    assert all("Approaching" in part for part in drawn(before))
