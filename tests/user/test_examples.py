"""The scripts in examples/: each is short, listed, and runs."""

from __future__ import annotations

import ast
import re
import runpy
import shutil
from pathlib import Path

import pytest

import simbridge
from simbridge import resources
from simbridge.trajectory import paths

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[2]
SCRIPTS = sorted((CHECKOUT / "examples").glob("*.py"))
# They start processes, keep real time, or make several runs.
HEAVY = (
    "sweep_gain",
    "emulator_session",
    "compare_solvers",
    "noisy_targets",
    "find_best_gains",
    "feedforward",
)
# README.md and docs/live.md have such an example, and test_documentation runs it.
SHOWN_ON_PAGES = ("live_twist",)


@pytest.fixture
def short_pick_and_place(tmp_path, monkeypatch):
    """The motion that several examples run takes a second."""
    scenarios = shutil.copytree(resources.SCENARIOS, tmp_path / "scenarios")
    script = scenarios / "pick_and_place.py"
    text = script.read_text(encoding="utf-8")
    for old, new in (
        ("0.2 * size.scale", "0.05 * size.scale"),
        ("lift=0.1 * size.scale", "lift=0.03 * size.scale"),
        ("0.5 * np.pi", "0.1 * np.pi"),
    ):
        assert old in text
        text = text.replace(old, new)
    script.write_text(text, encoding="utf-8")
    monkeypatch.setattr(resources, "SCENARIOS", scenarios)


@pytest.fixture
def small_paths(monkeypatch):
    """Squares have one lap of a tenth of the sides, circles a third of the radius."""
    square = simbridge.trajectory.square
    circle = paths.circle

    def small_square(side, **facts):
        return square(0.1 * side, **{**facts, "laps": 1})

    def small_circle(radius, **facts):
        return circle(radius / 3, **facts)

    monkeypatch.setattr(simbridge.trajectory, "square", small_square)
    monkeypatch.setattr(paths, "circle", small_circle)


@pytest.mark.usefixtures("short_pick_and_place", "small_paths")
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, id=path.stem, marks=[pytest.mark.soak] * (path.stem in HEAVY + SHOWN_ON_PAGES)
        )
        for path in SCRIPTS
    ],
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
