"""The settings on the page, and the command that repeats the run."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simbridge.planning.options import Options
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.settings_list import important_settings, repeat_command
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
    )
    return run("step", out=out, options=options)


def test_the_command_on_the_page_sends_the_same_setpoints_and_is_tracked_the_same(
    original: Run, cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_pages: None
) -> None:
    page = (original.directory / "report.html").read_text(encoding="utf-8")
    command = repeat_command(original.evaluation().settings, original.directory)
    assert command is not None and command.replace("'", "&#39;") in page
    again = original.directory.with_name("again")
    # From another directory.
    monkeypatch.chdir(tmp_path)
    assert cli(*shlex.split(command)[1:], "--out", again).status == 0
    plans = [
        np.load(directory / "plan.npz")["setpoints"] for directory in (original.directory, again)
    ]
    assert np.array_equal(*plans)
    repeated = Run(again, {}).evaluation()
    assert np.array_equal(repeated.log.position, original.evaluation().log.position)


def test_the_command_reads_the_file_as_the_run_did(original: Run) -> None:
    settings = original.evaluation().settings
    chosen = {
        "frames": ["map", "tool"],
        "columns": "x[mm]",
        "rate": 50.0,
        "gaps": "hold",
        "column": "actual_q",
    }
    command = repeat_command(changed(settings, scenario=chosen), original.directory) or ""
    for flag in (
        "--frames map tool",
        "--columns 'x[mm]'",
        "--rate 50.0",
        "--gaps hold",
        "--from actual_q",
    ):
        assert flag in command
    assert "--frame " not in command and "--topic" not in command


def test_own_files_are_named_by_absolute_paths(
    cli: Any, line: Path, tmp_path: Path, monkeypatch: Any, without_pages: None
) -> None:
    """A file of samples, a robot file and a solver in the working directory; the solver is gone when it is repeated."""
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    for directory in (work, elsewhere):
        directory.mkdir()
    monkeypatch.chdir(work)
    shutil.copy(line, "recording.tum")
    shutil.copy(ROBOTS / "ur10.toml", "my.toml")
    own = "import simbridge\nstep = simbridge.ClosedForm(simbridge.load_robot('ur10')).branches\n"
    Path("my_ik_for_tests.py").write_text(
        own + "def nearest(q, target):\n    return step(target, near=q)[0]\n"
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
    assert (
        command is not None and f"run {work / 'recording.tum'} --plan {work / 'first'}" in command
    )
    monkeypatch.chdir(elsewhere)
    again = cli(*shlex.split(command)[1:], "--out", "again", "--json")
    assert again.status == 0, again.message
    plans = [
        np.load(directory / "plan.npz")["setpoints"]
        for directory in (work / "first", Path("again"))
    ]
    assert np.array_equal(*plans)
    assert RunDirectory.open(Path("again")).settings().solver == settings.solver


def test_a_custom_script_is_named_by_its_absolute_path(
    cli: Any, short: dict[str, Path], tmp_path: Path, monkeypatch: Any, without_pages: None
) -> None:
    # Of the same name as a built-in one.
    monkeypatch.chdir(tmp_path)
    Path("step.py").write_text(short["square_tracking"].read_text())
    assert cli("run", "./step.py", "--out", "first", "--json").status == 0
    command = repeat_command(RunDirectory.open(Path("first")).settings(), Path("first"))
    assert command is not None and command.startswith(
        f"simbridge run {tmp_path / 'step.py'} --plan"
    )


def test_the_command_repeats_the_servo_and_its_feedforward(
    cli: Any, tmp_path: Path, monkeypatch: Any, without_pages: None
) -> None:
    monkeypatch.chdir(tmp_path)
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
    assert cli("run", "circle", "--robot", "ur10", *flags, "--out", "first", "--json").status == 0
    settings = RunDirectory.open(Path("first")).settings()
    command = repeat_command(settings, Path("first"))
    assert command is not None
    again = cli(*shlex.split(command)[1:], "--out", "again", "--json")
    assert again.status == 0, again.message
    repeated = RunDirectory.open(Path("again")).settings()
    assert repeated.backend.plant_file == str(tmp_path / "plant.toml")
    settings.backend.plant_file = repeated.backend.plant_file
    assert repeated.backend == settings.backend
    assert repeated.scenario.feedforward == settings.scenario.feedforward
    tolerance = settings.scenario.corner_tolerance
    assert repeated.scenario.corner_tolerance == pytest.approx(tolerance)


@pytest.mark.parametrize("changes", [{"scenario": "my_own"}, {"source": ""}])
def test_a_scenario_or_robot_that_is_in_no_file_has_no_command(
    original: Run, changes: dict[str, Any]
) -> None:
    settings = original.evaluation().settings
    settings.scenario.name = changes.get("scenario", settings.scenario.name)
    settings.robot.source = changes.get("source", settings.robot.source)
    assert repeat_command(settings, Path("runs/1")) is None


def test_the_settings_and_the_command_of_a_run_on_a_controller_name_it(original: Run) -> None:
    backend = {
        "name": "ursim",
        "simulated_time": False,
        "on_scaling": "follow",
        "servo_gain": 2000.0,
        "servo_lookahead": 0.03,
    }
    controller = {
        "host": "127.0.0.9",
        "model": "UR10",
        "serial_number": "1",
        "polyscope": "3.15.8",
        "ursim": True,
    }
    settings = changed(original.evaluation().settings, backend=backend, controller=controller)
    command = repeat_command(settings, Path("runs/1"))
    assert command is not None and "--backend ursim --host 127.0.0.9" in command
    shown = dict(important_settings(settings, 1))
    assert shown["Controller"] == "UR10, URSim, PolyScope 3.15.8, 127.0.0.9"
    assert shown["Servo"].startswith("servoj, gain 2000, lookahead 30")
