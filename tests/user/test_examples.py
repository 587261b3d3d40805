"""The scripts in examples/: each is short, listed, and runs."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[2]
SCRIPTS = sorted((CHECKOUT / "examples").glob("*.py"))
# They start processes, keep real time, or make several runs.
HEAVY = ("sweep_gain", "emulator_session", "compare_solvers", "noisy_targets", "find_best_gains")


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=[pytest.mark.soak] * (p.stem in HEAVY)) for p in SCRIPTS],
)
def test_an_example_runs_and_prints_what_it_found(
    path, tmp_path, monkeypatch, capsys, without_pages
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")

    printed = capsys.readouterr().out

    assert re.search(r"\d", printed)
    assert not re.search(r"\bnan\b|\bNone\b", printed)


def test_examples_are_short_and_listed():
    rows = re.findall(
        r"^\| \[(\S+)\]\(\1\) \| (.+) \|$",
        (CHECKOUT / "examples/README.md").read_text(),
        re.MULTILINE,
    )
    texts = {path.name: path.read_text() for path in SCRIPTS}

    assert dict(rows) == {
        name: ast.get_docstring(ast.parse(text)).rstrip(".") for name, text in texts.items()
    }
    assert len(texts) >= 12
    assert max(len(text.splitlines()) for text in texts.values()) <= 60
