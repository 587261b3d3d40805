"""docs/architecture.md is true.

Its examples work in as many files as it says, and the files that it names exist.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from simbridge.robot import load_robot
from simbridge.text import millimetres
from simbridge.trajectory import paper_size

pytestmark = pytest.mark.shares_setup

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
INTERNALS = (CHECKOUT / "docs" / "internals.md").read_text(encoding="utf-8")

# At most so many files to touch.
BOUNDS = {"arm": 1, "scenario": 1, "backend": 2, "solver": 2, "option": 3, "metric": 3}

_EDIT = re.compile(
    r"^(?:New file `(?P<new>[^`]+)`(?:, a copy of `(?P<source>[^`]+)` with)?"
    r"|In `(?P<file>[^`]+)`, (?P<place>above|below) `(?P<anchor>[^`]+)`):\n\n```\w+\n"
    r"(?P<text>.*?)```$",
    re.MULTILINE | re.DOTALL,
)


def edits(kind: str) -> list[re.Match[str]]:
    """The edits of an example, in the order in which the page gives them."""
    (section,) = re.findall(
        rf"^### A new {kind}.*?\n(.*?)(?=^###? |\Z)", PAGE, re.MULTILINE | re.DOTALL
    )
    return list(_EDIT.finditer(section))


def apply(edit: re.Match[str], tree: Path) -> None:
    """Make an edit in a copy of the checkout."""
    if edit["source"]:
        text = (tree / edit["source"]).read_text()
        for line in edit["text"].splitlines():
            text, count = re.subn(rf"^{line.split()[0]} = .*$", line, text, flags=re.MULTILINE)
            assert count == 1, f"{edit['source']} has {count} lines like: {line}"
        (tree / edit["new"]).write_text(text)
    elif edit["new"]:
        assert not (tree / edit["new"]).exists()
        (tree / edit["new"]).write_text(edit["text"])
    else:
        path = tree / edit["file"]
        lines = path.read_text().splitlines(keepends=True)
        at = next(
            (i for i, line in enumerate(lines) if line.strip().startswith(edit["anchor"])), None
        )
        assert at is not None, f"{edit['file']} has no line that begins with: {edit['anchor']}"
        lines.insert(at + (edit["place"] == "below"), edit["text"])
        path.write_text("".join(lines))


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the package, its robots and its scenarios with all examples of the page."""
    tree = tmp_path_factory.mktemp("extended")
    for folder in ("simbridge", "robots", "scenarios", "docs"):
        shutil.copytree(CHECKOUT / folder, tree / folder, ignore=shutil.ignore_patterns("*.png"))
    shutil.copy(CHECKOUT / "pyproject.toml", tree)
    for kind in BOUNDS:
        for edit in edits(kind):
            apply(edit, tree)
    return tree


@pytest.fixture(scope="module")
def answers(extended):
    """The output of the extended program for each command, by its name here, from one process."""
    program = """
import contextlib, io, json, sys
from simbridge.cli.command_line import main
from simbridge.report.charts import Chart
from simbridge.running import run_ending

write_report = run_ending.write_report

def write_first_report(evaluation, summary):
    run_ending.write_report = lambda *_: None
    write_report(evaluation, summary)

# The page of one run is read.
run_ending.write_report = write_first_report
# Nobody looks at the drawings.
Chart.svg = lambda *_, **__: ""

def call(*words):
    out = io.StringIO()
    # Notes, such as that a step was slow on a busy computer, are no part of the JSON.
    notes = io.StringIO() if "--json" in words else out
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(notes):
        try:
            status = main(list(words))
        except SystemExit as end:
            status = end.code
    return [status, out.getvalue()]

json.dump({name: call(*words) for name, words in json.load(sys.stdin).items()}, sys.stdout)
"""
    solver = ("--solver", "steepest-descent", "--solver.gain", "0.2", "--max-acceleration", "5")
    run = ("run", "sideways", "--robot", "desk_arm", "--backend", "ideal", *solver, "--out")
    commands = {
        "robots": ("robots",),
        "scenarios": ("scenarios",),
        "check": ("check", "--solver", "steepest-descent", "--help"),
        "run": (*run, "out", "--json"),
        "run in the terminal": (*run, "out_again", "--verbose"),
        "compare": ("compare", "out", "out_again", "--out", "compared", "--verbose"),
        "doctor": ("doctor", "--backend", "ideal"),
        "studio": ("studio", "--backend", "ideal", "--no-browser"),
        "sweep": ("sweep", "sideways", "--backend", "ideal"),
    }
    refused = {"studio", "sweep"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        cwd=extended,
        env={**os.environ, "PYTHONPATH": str(extended), "COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, (status, out) in found.items():
        assert status == (2 if name in refused else 0), out
    return {name: out for name, (_, out) in found.items()}


@pytest.fixture(scope="module")
def summary(answers):
    """The JSON summary that the run printed."""
    return json.loads(answers["run"])


@pytest.fixture(scope="module")
def settings(answers, extended):
    """The resolved settings of the run, read from its settings.toml."""
    return msgspec.toml.decode((extended / "out" / "settings.toml").read_bytes())


@pytest.mark.parametrize("kind", BOUNDS)
def test_an_example_touches_as_few_files_as_promised(kind):
    assert 1 <= len({edit["new"] or edit["file"] for edit in edits(kind)}) <= BOUNDS[kind]


def test_a_new_arm_is_listed_and_runs(answers, summary):
    assert "desk_arm" in answers["robots"]
    assert summary["robot"] == "desk_arm"


def test_a_new_scenario_is_listed_and_runs(answers, summary):
    assert "sideways" in answers["scenarios"]
    assert summary["scenario"] == "sideways"


def test_a_new_backend_runs(summary):
    assert summary["backend"] == "ideal"
    assert summary["plant_error"]["position_m"]["max"] < 1e-9


def test_the_report_of_a_new_backend_knows_no_servo_law(answers, summary, settings):
    assert settings["backend"]["servo"] == "ideal"
    assert summary["servo_law"] is None
    assert summary["servo_law_error"] is None
    assert summary["rest_error"] is None
    assert "servo law" not in answers["run in the terminal"]


def test_the_report_of_a_new_backend_is_of_a_simulated_arm(answers, summary, extended):
    source = "Predicted for a Desk arm with an ideal servo: "

    assert summary["plant_model"].startswith("simulated arm: ")
    assert answers["run in the terminal"].startswith(source)
    page = (extended / "out" / "report.html").read_text(encoding="utf-8")
    assert source in page
    assert "Measured by" not in page


def test_doctor_checks_the_backend_that_is_named(answers):
    assert "simulation with ideal" in answers["doctor"]
    assert "ideal moved ur10" in answers["doctor"]


def test_what_a_new_backend_cannot_do_is_refused_by_name(answers):
    for command in ("studio", "sweep"):
        assert "backend must be " in answers[command]


def test_a_new_solver_has_flags_and_runs(answers, summary, settings):
    assert "--solver.gain" in answers["check"]
    assert summary["solver"] == settings["solver"]["name"] == "steepest-descent"
    assert settings["solver"]["parameters"]["gain"] == 0.2


def test_a_new_option_is_recorded_and_acts(answers, settings):
    assert "--max-acceleration" in answers["check"]
    assert settings["scenario"]["max_acceleration"] == settings["robot"]["max_acceleration"] == 5.0


def test_a_new_metric_is_in_the_summary(summary, extended):
    size = paper_size(load_robot("ur10"))
    assert summary["path_length_m"] == pytest.approx(0.2 * size.scale, rel=0.02)
    assert (
        json.loads((extended / "out" / "summary.json").read_text())["path_length_m"]
        == summary["path_length_m"]
    )


def test_a_new_metric_is_shown_in_millimetres(summary, answers, extended):
    """The terminal and the page show it."""
    value = millimetres(summary["path_length_m"])

    assert re.search(rf"^Path length +{value} +mm *$", answers["run in the terminal"], re.MULTILINE)

    page = (extended / "out" / "report.html").read_text(encoding="utf-8")
    row = (
        '<th scope="row"[^>]*>Path length</th>'
        f'<td data-head="[^"]*">{value}\N{NO-BREAK SPACE}mm</td>'
    )

    assert re.search(row, page)


def test_a_new_metric_is_compared(summary, answers, extended):
    value = millimetres(summary["path_length_m"])

    line = rf"^Path length +{value} +{value} +mm *$"
    assert re.search(line, answers["compare"], re.MULTILINE)
    assert "Path length" in (extended / "compared" / "compare.html").read_text(encoding="utf-8")


def test_every_file_that_the_page_names_exists():
    names = re.findall(
        r"(?<![\w./-])((?:simbridge|robots|scenarios|docs|tests|tools)/[\w/.-]*\w\.(?:py|md|toml))",
        PAGE + INTERNALS,
    )
    new = {edit["new"] for kind in BOUNDS for edit in edits(kind)}
    assert (
        sorted({name for name in names if name not in new and not (CHECKOUT / name).exists()}) == []
    )


def defined_functions(path: Path) -> set[str]:
    """Return the names of a module's functions, and of its methods as Class.method."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
            names |= {f"{node.name}.{method.name}" for method in methods}
    return names


def test_the_way_of_a_pose_names_functions():
    listed = re.findall(r"^\| `([\w.]+)` \| `(simbridge/[\w/]+\.py)` \|", PAGE, re.MULTILINE)

    missing = [
        f"{name} in {file}"
        for name, file in listed
        if name not in defined_functions(CHECKOUT / file)
    ]

    assert len(listed) >= 10
    assert missing == []


def test_every_room_of_the_page_exists():
    (table,) = re.findall(r"\| room \|.*\n\|---\|---\|\n((?:\|.*\n)+)", PAGE)
    rooms = re.findall(r"`([\w/.]+)`", "\n".join(re.findall(r"^\|([^|]*)\|", table, re.MULTILINE)))

    assert [room for room in rooms if not (CHECKOUT / "simbridge" / room).exists()] == []


def test_every_room_is_on_the_page():
    (table,) = re.findall(r"\| room \|.*\n\|---\|---\|\n((?:\|.*\n)+)", PAGE)
    folders = [path.parent.name for path in (CHECKOUT / "simbridge").glob("*/__init__.py")]

    assert [name for name in folders if f"`{name}/`" not in table] == []


def test_the_page_names_the_modules_of_sessions():
    (listing,) = re.findall(r"rest above `running/`:\n\n((?:    .*\n)+)", PAGE)
    first_column = "\n".join(line[:40] for line in listing.splitlines())
    names = re.findall(r"\w+", first_column)
    files = {path.stem for path in (CHECKOUT / "simbridge/sessions").glob("*.py")} - {"__init__"}

    assert set(names) == files
