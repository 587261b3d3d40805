"""docs/tutorial.md, from beginning to end: each command is run, in its order, in an empty
directory.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(
    r"(?:Save this as `(\S+)`:\n\n)?^```(sh|python|text)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
)


# What makes no further run. make soak also follows the rest of the page, and the commands with
# another arm.
LIGHT = ("export", "inspect", "check", "robots")


def follow(cli, whole=True):
    """Do what the page says, or its light part.

    The lines that it shows of what is printed are checked.
    """
    printed = ""
    for name, language, text in BLOCKS:
        if name:
            Path(name).write_text(text)
        elif language == "text" and printed:
            shown = [line.split("...")[0].split() for line in text.splitlines()]
            lines = [line.split() for line in printed.splitlines()]
            assert [
                words for words in shown if words not in [line[: len(words)] for line in lines]
            ] == []
        elif language == "python" and whole:
            exec(compile(text, "tutorial", "exec"), {})
        for words in (
            shlex.split(line, comments=True) for line in text.splitlines() if language == "sh"
        ):
            if words[0] == "cp":
                shutil.copy(*words[1:])
            elif words[0] == "simbridge":
                # What a command that is left out would print is not checked.
                printed = ""
                is_light = words[1] in LIGHT and "--robot" not in words
                if whole or is_light or words[-1] == "first":
                    answer = cli(*words[1:])
                    assert answer.status == 0, answer.err
                    printed = answer.out


def test_the_tutorial_works_without_a_recording(cli, tmp_path, monkeypatch, without_pages):
    monkeypatch.chdir(tmp_path)
    follow(cli, whole=False)


@pytest.mark.soak
def test_the_tutorials_commands_work_in_order(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    follow(cli)

    assert (tmp_path / "first/report.html").exists()
    assert (tmp_path / "gains/sweep.html").exists()


def test_nothing_of_the_tutorial_is_left_out():
    lines = [line for _, language, text in BLOCKS if language == "sh" for line in text.splitlines()]

    assert {shlex.split(line)[0] for line in lines} == {"make", ".", "mkdir", "simbridge", "cp"}
    assert lines[0].startswith("make run ")
