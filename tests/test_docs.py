"""The examples of README.md and docs/ work: Python blocks are run, and every command line is read by the program.

Commands that only look (check, inspect, robots, scenarios) are run, too. Not run: docs/emulator.md, whose example is a
test file of its own, and docs/architecture.md, whose examples are changes of the code.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
import tyro

import simbridge
from simbridge.cli.flags import command_type
from simbridge.planning.options import Options
from simbridge.planning.plan import make_plan
from simbridge.robot.kinematics import tool_path
from simbridge.running.run_setup import chosen_solver
from simbridge.trajectory import square, write_csv, write_tum

CHECKOUT = Path(__file__).parents[1]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
# What commands are run, if their inputs exist.
LOOKING = ("check", "inspect", "robots", "scenarios")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def command_lines(page):
    """The words of every line that calls simbridge, without its comment."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.partition(";")[0], comments=True)
            if words and words[0] == "simbridge":
                yield words[1:]


COMMAND_LINES = {" ".join(words): words for page in PAGES for words in command_lines(page)}


PYTHON_PAGES = {
    page.name: page for page in PAGES if page.stem not in ("architecture", "emulator") and blocks(page, "python")
}


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_a_command_line_is_one_that_the_program_reads(line):
    words = [word.rstrip(".") if word.startswith("RUN") else word for word in COMMAND_LINES[line]]
    kind = command_type(words)
    flags = tyro.cli(kind, args=words, prog="simbridge", config=(tyro.conf.FlagCreatePairsOff,))
    assert type(flags).__name__.lower() == words[0]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A directory with the files that the examples name."""
    folder = tmp_path_factory.mktemp("docs")
    path = square(side=0.1)
    write_tum(folder / "recording.tum", path.times, path.poses)
    pendant = path.from_pendant_base()
    write_csv(folder / "recording.csv", pendant.times, pendant.poses)
    (cell,) = blocks(CHECKOUT / "docs" / "cell.md", "toml")
    (folder / "lab.toml").write_text(cell.replace('calibration = "ur10e_calibration.toml"\n', ""))
    return folder


@pytest.mark.parametrize("line", [line for line, words in COMMAND_LINES.items() if words[0] in LOOKING])
def test_a_command_that_only_looks_runs(line, cli, workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    words = COMMAND_LINES[line]
    files = [word for word in words if Path(word).suffix and not (workplace / word).exists()]
    if files:
        pytest.skip(f"needs {files[0]}")
    answer = cli(*words)
    assert answer.status == 0, answer.err


def assumed_names(robot):
    """What the examples of a page take for granted: an arm, a solver, targets, and a custom library."""
    solver = simbridge.ForwardDynamics(robot)
    return {
        "__name__": "example",
        "simbridge": simbridge,
        "robot": robot,
        "solver": solver,
        "targets": np.repeat(tool_path(robot, robot.home[None]), 20, axis=0),
        "my_library": SimpleNamespace(ik=lambda matrix, q: solver.track(pin.SE3ToXYZQUAT(pin.SE3(matrix))[None], q)[0]),
    }


@pytest.mark.parametrize("name", PYTHON_PAGES)
def test_the_python_of_a_page_runs(name, workplace, monkeypatch, without_pages):
    monkeypatch.chdir(workplace)
    robot = simbridge.load_robot("ur10")
    names = assumed_names(robot)
    for code in blocks(PYTHON_PAGES[name], "python"):
        if "Emulator(" in code:
            # It keeps real time: tests/emulator/test_handle.py does the same.
            compile(code, name, "exec")
            continue
        exec(compile(code, name, "exec"), names)
        build = names.pop("scenario", None)
        if build is not None:
            scenario = build(robot)
            make_plan(robot, scenario, chosen_solver(scenario, robot), Options())
