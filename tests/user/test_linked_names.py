"""A directory may come from anywhere.

A link in it under a name that simbridge writes is replaced, never followed.
"""

from __future__ import annotations

import os
import shutil

import pytest

import simbridge
from simbridge.cli.command_line import main
from simbridge.cli.compare_command import compare
from simbridge.cli.flags import CompareFlags
from simbridge.errors import OutputError
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import summarize
from simbridge.files.writing import open_to_append, write_file
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.figure_files import write_figures
from simbridge.sessions.record import JsonLines
from simbridge.sweeps.sweep_page import write_page
from tests.user.test_output_files import WRITERS as ALL_WRITERS

# What compare.html shows does not matter here.
pytestmark = pytest.mark.usefixtures("short_comparisons")
SOAK = pytest.mark.soak

# Those of paths that the user gives: a link there is followed.
USER_PATHS = {
    "path.tum",
    "path.csv",
    "plant.toml",
    "calibration.toml",
    "path.png",
    "path.svg",
    "path.pdf",
}
WRITERS = {name: write for name, write in ALL_WRITERS.items() if name not in USER_PATHS}
NOTES = b"the user's notes"


def write_log(folder, _):
    LogWriter(RunDirectory(folder).new_log_file(), joint_names=["joint"], period=0.008).close()


def write_json_lines(folder, _):
    JsonLines(folder / "inputs.jsonl").close()


def write_run_figures(folder, run):
    evaluation = Evaluation.read(run)
    write_figures(evaluation, summarize(evaluation, "completed"), folder, "svg")


def write_comparison(folder, run):
    other = shutil.copytree(run, folder / "another run")
    compare(CompareFlags((str(run), str(other)), out=str(folder), as_json=True))


WRITERS |= {
    "log.mcap": write_log,
    "inputs.jsonl": write_json_lines,
    "errors.svg": write_run_figures,
    "compare.html": write_comparison,
}
# The two that take longest are tried behind one kind of link.
SOME = [
    pytest.param(name, marks=[SOAK] * (name in ("errors.svg", "compare.html"))) for name in WRITERS
]


@pytest.fixture
def notes(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_bytes(NOTES)
    return file


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    return path


@pytest.mark.parametrize("name", WRITERS)
def test_a_link_is_replaced(name, folder, notes, line_run):
    (folder / name).symlink_to(notes)

    WRITERS[name](folder, line_run)

    assert notes.read_bytes() == NOTES
    assert (folder / name).exists() and not (folder / name).is_symlink()


@pytest.mark.parametrize("name", SOME)
def test_a_link_that_leads_nowhere_is_replaced(name, folder, tmp_path, line_run):
    (folder / name).symlink_to(tmp_path / "nowhere")

    WRITERS[name](folder, line_run)

    assert not (tmp_path / "nowhere").exists()
    assert (folder / name).exists() and not (folder / name).is_symlink()


@pytest.mark.parametrize("name", [name for name in SOME if name.values != ("rosbag2",)])
def test_a_hard_link_is_replaced(name, folder, notes, line_run):
    os.link(notes, folder / name)

    WRITERS[name](folder, line_run)

    assert notes.read_bytes() == NOTES
    assert not notes.samefile(folder / name)


@pytest.mark.parametrize("name", SOME)
def test_a_fifo_is_refused_by_name(name, folder, line_run):
    os.mkfifo(folder / name)

    with pytest.raises(OutputError) as caught:
        WRITERS[name](folder, line_run)

    assert caught.value.path == folder / name
    assert (folder / name).is_fifo()


def test_a_linked_bag_directory_keeps_what_it_points_to(folder, tmp_path, line_run):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "one.png").write_bytes(NOTES)
    (folder / "rosbag2").symlink_to(pictures)

    WRITERS["rosbag2"](folder, line_run)

    assert [file.name for file in pictures.iterdir()] == ["one.png"]


@pytest.mark.parametrize("name", SOME)
def test_a_linked_directory_is_written_into(name, folder, tmp_path, line_run):
    (tmp_path / "link").symlink_to(folder)

    WRITERS[name](tmp_path / "link", line_run)

    assert (tmp_path / "link").is_symlink()
    assert (folder / name).exists()


def test_report_leaves_the_file_behind_a_link(tmp_path, notes, line_run, short_pages):
    run = shutil.copytree(line_run, tmp_path / "run")
    for name in ("report.html", "replay.html"):
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(notes)

    assert main(["report", str(run)]) == 0

    assert notes.read_bytes() == NOTES
    assert (run / "report.html").read_text() == "page"


@pytest.mark.usefixtures("at_once")
def test_a_sweep_continues_through_links_without_following_them(tmp_path, line):
    out = tmp_path / "sweep"
    simbridge.sweep(line, grid={"solver.kp": [10]}, keep="none", plan_only=True, out=out)
    names = ("results.csv", "sweep.toml", "sweep.html")
    originals = {}
    for name in names:
        originals[name] = tmp_path / f"original-{name}"
        (out / name).rename(originals[name])
        (out / name).symlink_to(originals[name])
    before = {name: file.read_bytes() for name, file in originals.items()}

    simbridge.sweep(line, grid={"solver.kp": [10, 20]}, keep="none", plan_only=True, out=out)

    assert {name: file.read_bytes() for name, file in originals.items()} == before
    assert len((out / "results.csv").read_text().splitlines()) == 3


@pytest.mark.usefixtures("at_once")
def test_the_page_of_a_sweep_replaces_a_link(tmp_path, line, notes):
    out = tmp_path / "sweep"
    simbridge.sweep(line, grid={"solver.kp": [10]}, keep="none", plan_only=True, out=out)
    (out / "sweep.html").unlink()
    (out / "sweep.html").symlink_to(notes)

    write_page(out)

    assert notes.read_bytes() == NOTES


def test_appending_refuses_a_link(folder, notes):
    (folder / "results.csv").symlink_to(notes)

    with pytest.raises(OutputError, match="symbolic links"):
        open_to_append(folder / "results.csv")

    assert notes.read_bytes() == NOTES


def test_a_path_that_the_user_gives_follows_a_link(folder, notes):
    (folder / "mine.csv").symlink_to(notes)

    write_file(folder / "mine.csv", b"new")

    assert notes.read_bytes() == b"new"


def test_report_refuses_a_fifo_with_status_2(tmp_path, line_run, short_pages, capsys):
    run = shutil.copytree(line_run, tmp_path / "run")
    (run / "report.html").unlink(missing_ok=True)
    os.mkfifo(run / "report.html")

    assert main(["report", str(run)]) == 2

    assert "report.html" in capsys.readouterr().err


@pytest.mark.usefixtures("at_once", "without_pages")
def test_a_kept_run_of_a_sweep_replaces_a_link(tmp_path, line):
    out = tmp_path / "sweep"
    grid = {"solver.kp": [10]}
    simbridge.sweep(line, grid=grid, keep="all", out=out)
    (run,) = (out / "runs").iterdir()
    elsewhere = tmp_path / "elsewhere"
    run.rename(elsewhere)
    (elsewhere / "summary.json").unlink()
    before = sorted(elsewhere.iterdir())
    run.symlink_to(elsewhere)

    simbridge.sweep(line, grid=grid, keep="all", out=out)

    assert not run.is_symlink() and (run / "summary.json").is_file()
    assert sorted(elsewhere.iterdir()) == before
