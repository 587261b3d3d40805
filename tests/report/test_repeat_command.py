"""The command on the page that repeats the run."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simbridge.planning.options import Options
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.repeat_command import repeat_command
from simbridge.resources import ROBOTS
from simbridge.running.runner import Run, run
from tests.records import changed

pytestmark = pytest.mark.shares_setup


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with every option that decides what is sent, and how it is tracked."""
    out = tmp_path_factory.mktemp("runs") / "with a blank"
    options = Options(
        unmodelled_payload=1.5,
        payload=0.5,
        tcp=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0),
        period=0.01,
        floor="none",
        speed_scale=2.0,
        on_limits="limit",
    )
    return run("step", out=out, options=options)


def setpoints(directory: Path) -> Any:
    """Return the setpoints of a run's plan."""
    return np.load(directory / "plan.npz")["setpoints"]


def test_the_page_shows_the_command(original: Run) -> None:
    page = (original.directory / "report.html").read_text(encoding="utf-8")

    command = repeat_command(original.evaluation().settings, original.directory)

    assert command is not None
    assert command.replace("'", "&#39;") in page


def test_the_command_repeats_the_motion(
    original: Run, cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_pages: None
) -> None:
    command = repeat_command(original.evaluation().settings, original.directory)
    assert command is not None
    again = original.directory.with_name("again")

    # From another directory.
    monkeypatch.chdir(tmp_path)
    answer = cli(*shlex.split(command)[1:], "--out", again)

    assert answer.status == 0
    assert np.array_equal(setpoints(original.directory), setpoints(again))
    repeated = Run(again, {}).evaluation()
    assert np.array_equal(repeated.log.position, original.evaluation().log.position)


def test_the_command_reads_the_file_alike(original: Run) -> None:
    settings = original.evaluation().settings
    reading = {
        "frames": ["map", "tool"],
        "columns": "x[mm]",
        "rate": 50.0,
        "gaps": "hold",
        "column": "actual_q",
    }

    command = repeat_command(changed(settings, scenario=reading), original.directory) or ""

    assert "--frames map tool" in command
    assert "--columns 'x[mm]'" in command
    assert "--rate 50.0" in command
    assert "--gaps hold" in command
    assert "--from actual_q" in command
    assert "--frame " not in command
    assert "--topic" not in command


def test_files_are_named_by_absolute_paths(
    cli: Any, line: Path, tmp_path: Path, monkeypatch: Any, without_pages: None
) -> None:
    # Samples, a robot and a solver in the working directory; the solver is gone at the repetition.
    work = tmp_path / "work"
    work.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(work)
    shutil.copy(line, "recording.tum")
    shutil.copy(ROBOTS / "ur10.toml", "my.toml")
    Path("my_ik_for_tests.py").write_text(
        "import simbridge\n"
        "step = simbridge.ClosedForm(simbridge.load_robot('ur10')).branches\n"
        "def nearest(q, target):\n"
        "    return step(target, near=q)[0]\n"
    )
    home = ("--home", "0.1", "-1.3", "1.9", "-2.17", "-1.57", "0")
    flags = (
        *home,
        "--robot",
        "./my.toml",
        "--solver",
        "./my_ik_for_tests.py:nearest",
        "--anchor",
        "start",
        "--json",
    )
    first = cli("run", "recording.tum", *flags, "--out", "first")
    assert first.status == 0, first.message
    Path("my_ik_for_tests.py").unlink()
    settings = RunDirectory.open(Path("first")).settings()
    command = repeat_command(settings, Path("first"))
    assert command is not None

    monkeypatch.chdir(elsewhere)
    again = cli(*shlex.split(command)[1:], "--out", "again", "--json")

    assert f"run {work / 'recording.tum'} --plan {work / 'first'}" in command
    assert again.status == 0, again.message
    assert np.array_equal(setpoints(work / "first"), setpoints(Path("again")))
    # A replayed plan is not solved again: it has neither the time of a step, nor a note on a slow
    # one.
    again = RunDirectory.open(Path("again")).settings().solver
    again.host_step_time_s = settings.solver.host_step_time_s
    again.notes = settings.solver.notes
    assert again == settings.solver


def test_the_command_repeats_script_servo_and_feedforward(
    cli: Any, small: dict[str, Path], tmp_path: Path, monkeypatch: Any, without_pages: None
) -> None:
    monkeypatch.chdir(tmp_path)
    # Of the same name as a built-in one.
    Path("step.py").write_text(small["circle"].read_text())
    Path("plant.toml").write_text("[servoj]\ngain = 1000.0\nlookahead_s = 0.05\nphase_s = 0.0005\n")
    flags = (
        "--speed-scale",
        "2",
        "--feedforward",
        "on",
        "--corner-tolerance",
        "0.3",
        "--plant",
        "plant.toml",
        "--servo-gain",
        "1500",
    )
    first = cli("run", "./step.py", "--robot", "ur10", *flags, "--out", "first", "--json")
    assert first.status == 0
    settings = RunDirectory.open(Path("first")).settings()
    command = repeat_command(settings, Path("first"))
    assert command is not None

    again = cli(*shlex.split(command)[1:], "--out", "again", "--json")

    assert command.startswith(f"simbridge run {tmp_path / 'step.py'} --plan")
    assert again.status == 0, again.message
    repeated = RunDirectory.open(Path("again")).settings()
    assert repeated.backend.plant_file == str(tmp_path / "plant.toml")
    settings.backend.plant_file = repeated.backend.plant_file
    assert repeated.backend == settings.backend
    assert repeated.scenario.feedforward == settings.scenario.feedforward
    tolerance = settings.scenario.corner_tolerance
    assert repeated.scenario.corner_tolerance == pytest.approx(tolerance)


@pytest.mark.parametrize("changes", [{"scenario": "my_own"}, {"source": ""}])
def test_what_is_in_no_file_has_no_command(original: Run, changes: dict[str, Any]) -> None:
    settings = original.evaluation().settings
    settings.scenario.name = changes.get("scenario", settings.scenario.name)
    settings.robot.source = changes.get("source", settings.robot.source)

    assert repeat_command(settings, Path("runs/1")) is None


def test_the_command_names_the_controller(original: Run) -> None:
    settings = changed(
        original.evaluation().settings,
        backend={"name": "ursim", "simulated_time": False},
        controller={"host": "127.0.0.9"},
    )

    command = repeat_command(settings, Path("runs/1"))

    assert command is not None
    assert "--backend ursim --host 127.0.0.9" in command
