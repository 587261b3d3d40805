"""A disk that is full or read-only, and a run directory that is deleted.

The cause is a sentence, and every file is whole.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import simbridge
from simbridge.backends.pybullet import PyBulletBackend
from simbridge.cli import report_command
from simbridge.errors import LogWriteError, OutputError
from simbridge.planning.options import Options
from simbridge.recording.log_reader import read_log
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.run_directory import RunDirectory
from simbridge.running import repeating, run_ending, runner
from simbridge.running.run_setup import prepare
from tests.controllers import REALTIME_FLAGS, realtime_options
from tests.optional_packages import LINK_FLAGS
from tests.patience import PATIENCE


def mount(*arguments):
    return subprocess.run(
        ["mount", *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.fixture
def disk(tmp_path):
    """Mounts a file system of so many bytes, and returns its directory."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def make(size):
        mounted = mount("-t", "tmpfs", "-o", f"size={size}", "none", folder)
        if mounted.returncode:
            pytest.skip(
                "a small file system cannot be mounted: "
                f"{mounted.stderr.strip() or 'only root can'}"
            )
        return folder

    yield make
    # The error of a full disk keeps files open, such as a bag's database, until it is collected.
    gc.collect()
    if os.path.ismount(folder):
        subprocess.run(["umount", folder], check=True)


def assert_whole(run):
    """Every file but the log is as it would be with space, and none is temporary."""
    for path in run.iterdir():
        assert not path.name.startswith(".") and path.stat().st_size > 0, path
    directory = RunDirectory.open(run)
    directory.settings()
    if directory.summary_file.exists():
        directory.summary()
    if directory.report_file.exists():
        assert directory.report_file.read_text().rstrip().endswith("</html>")


def sizes(run):
    return {path.name: path.stat().st_size for path in run.iterdir()}


def test_a_disk_filled_by_the_log_leaves_it_readable(cli, disk, line, run_without_page, tmp_path):
    # Slow enough for several parts of the log.
    slow = ("--speed-scale", "0.25", "--out", tmp_path / "whole")
    assert run_without_page(line, *slow) == 0
    bytes_of = sizes(tmp_path / "whole")
    most_of_the_log = bytes_of["log.mcap"] * 3 // 4
    folder = disk(bytes_of["settings.toml"] + bytes_of["plan.npz"] + most_of_the_log)

    answer = cli("run", line, "--plan", tmp_path / "whole", "--out", folder / "out")

    assert (answer.status, answer.out) == (2, "")

    log = folder / "out" / "log.mcap"
    assert answer.message.startswith(
        f"The log {log} cannot be written: No space left on device (ENOSPC); "
    )
    assert f"the {log.stat().st_size} bytes written before can be read" in answer.message
    assert sorted(sizes(folder / "out")) == ["log.mcap", "plan.npz", "settings.toml"]
    assert_whole(folder / "out")

    kept = read_log(log)
    whole = read_log(tmp_path / "whole" / "log.mcap")
    assert len(kept.stamp) > 100
    assert np.array_equal(kept.position, whole.position[: len(kept.stamp)])


def write_long_page(run, *_, **__):
    """Write a report of 80 kB, in place of `write_report`."""
    run.directory.write_report("page" * 20_000)


def test_a_disk_full_after_the_log_names_the_file(cli, disk, line, line_run, monkeypatch):
    for module in (run_ending, report_command):
        monkeypatch.setattr(module, "write_report", write_long_page)
    bytes_of = sizes(line_run)
    pages = sum(
        -(-bytes_of[name] // 4096) * 4096
        for name in ("settings.toml", "plan.npz", "log.mcap", "summary.json")
    )
    folder = disk(pages + 8 * 4096)

    answer = cli("run", line, "--out", folder / "out")

    assert answer.status == 2

    page = folder / "out" / "report.html"
    assert answer.message.startswith(f"{page} cannot be written: No space left on device; ")
    assert (
        "bytes were not written. The arm is at rest. What was recorded up to then is in"
        in answer.message
    )
    assert sorted(sizes(folder / "out")) == [
        "log.mcap",
        "plan.npz",
        "settings.toml",
        "summary.json",
    ]
    assert_whole(folder / "out")
    assert RunDirectory(folder / "out").summary()["outcome"] == "completed"
    # With space again, nothing of the run is lost.
    assert mount("-o", "remount,size=50m", folder).returncode == 0
    assert cli("report", folder / "out").status == 0


@pytest.mark.parametrize(
    "reason",
    [
        "No space left on device",
        pytest.param("Read-only file system", marks=pytest.mark.soak),
    ],
)
def test_unwritable_pages_leave_the_earlier_ones(
    cli, disk, line_run, reason, short_pages, short_comparisons
):
    full = reason.startswith("No")
    folder = disk("20m")
    run = folder / "run"
    shutil.copytree(line_run, run)
    for name in ("replay.html", "samples.csv", "compare.html"):
        (run / name).write_text("earlier")
    if full:
        with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
    else:
        assert mount("-o", "remount,ro", folder).returncode == 0
    before = sizes(run)
    for command, name in (
        (("report", run), "replay.html"),
        (("export", run, "--to", "csv"), "samples.csv"),
        (("export", run, "--to", "mcap"), "samples.mcap"),
        (("export", run, "--to", "bag"), "rosbag2"),
        (("compare", run, line_run, "--out", run), "compare.html"),
    ):
        answer = cli(*command)
        assert answer.status == 2, (command, answer.out)
        assert f"{run / name} cannot be written: " in answer.message
        # sqlite has words of its own.
        assert reason in answer.message or (
            full and name == "rosbag2" and "disk is full" in answer.message
        )
        assert sizes(run) == before


@pytest.fixture
def prepared(line):
    return prepare(line)


def test_a_run_whose_directory_is_deleted_says_so(cli, line, tmp_path, monkeypatch):
    stream = PyBulletBackend.stream

    def deleting(self, commands):
        for k, state in enumerate(stream(self, commands)):
            if k == 10:
                shutil.rmtree(tmp_path / "out")
            yield state

    monkeypatch.setattr(PyBulletBackend, "stream", deleting)
    answer = cli("run", line, "--out", tmp_path / "out")

    assert answer.status == 2

    where = f"{tmp_path / 'out'} cannot be written: it was deleted or moved during the run"
    assert answer.message == f"{where}. The arm is at rest."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_a_deleted_directory_gets_no_record(cli, line, tmp_path, monkeypatch, error):
    def ending(self, commands):
        shutil.rmtree(tmp_path / "out")
        raise error
        yield

    monkeypatch.setattr(PyBulletBackend, "stream", ending)
    answer = cli("run", line, "--out", tmp_path / "out")

    assert f"{tmp_path / 'out'} was deleted or moved in the meantime" in answer.message
    assert "up to then is in" not in answer.message


def test_a_directory_deleted_during_the_question_is_named(cli, line, tmp_path, monkeypatch):
    moved = []
    monkeypatch.setattr(
        PyBulletBackend, "__enter__", lambda self: (shutil.rmtree(tmp_path / "out"), self)[1]
    )
    monkeypatch.setattr(PyBulletBackend, "__exit__", lambda *_: None)
    monkeypatch.setattr(PyBulletBackend, "move_to", lambda *_: moved.append(True))

    answer = cli("run", line, "--out", tmp_path / "out")

    assert (answer.status, moved) == (2, [])
    assert f"{tmp_path / 'out'} was deleted or moved in the meantime" in answer.message


@pytest.mark.parametrize("when", ["in a run", "between two runs"])
def test_repeats_make_no_deleted_directory_again(
    prepared, tmp_path, monkeypatch, without_pages, when
):
    if when == "between two runs":
        finish = repeating.finish

        def deleting(*arguments):
            run = finish(*arguments)
            shutil.rmtree(tmp_path / "out")
            return run

        monkeypatch.setattr(repeating, "finish", deleting)
    progress = (
        (lambda _: shutil.rmtree(tmp_path / "out", ignore_errors=True))
        if when == "in a run"
        else None
    )

    with pytest.raises(OutputError, match="deleted or moved during the run"):
        repeating.repeat(prepared, 3, out=tmp_path / "out", progress=progress)
    assert list(tmp_path.iterdir()) == []


def test_output_that_does_not_fit_is_no_bug(tmp_path):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "simbridge", "robots", "--json"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert ended.returncode == 2
    assert " ".join(ended.stderr.split()) == (
        "Standard output or a temporary file cannot be written: No space left on device."
    )


# Below with a deleted directory, and with a full disk in a live session.
@pytest.mark.soak
def test_a_full_disk_leaves_a_controller_at_rest(cli, disk, line, e_series):
    arm = ("--backend", "ursim", "--robot", "ur10e", "--host", e_series.host, *LINK_FLAGS)
    # Settings and plan of this slow line take 68 kB, its log 190 kB.
    folder = disk("172k")

    flags = ("--out", folder / "out", "--speed-scale", "0.4", *REALTIME_FLAGS)
    answer = cli("run", line, *arm, *flags)

    assert answer.status == 2

    log = folder / "out" / "log.mcap"
    assert answer.message.startswith(
        f"The log {log} cannot be written: No space left on device (ENOSPC)"
    )

    state = e_series.state()
    assert not state["moving"]
    assert state["runtime_state"] == "STOPPED"
    assert len(read_log(log).stamp) > 0
    assert_whole(folder / "out")


def test_a_deleted_directory_leaves_a_controller_at_rest(line, e_series, tmp_path):
    prepared = prepare(
        line,
        robot="ur10e",
        options=Options(host=e_series.host, **realtime_options()),
        backend="ursim",
    )
    out = tmp_path / "out"

    with pytest.raises(OutputError, match="deleted or moved during the run") as caught:
        runner.execute(prepared, out=out, progress=lambda _: shutil.rmtree(out, ignore_errors=True))
    assert caught.value.aftermath == "The arm is at rest."

    state = e_series.state()
    assert not state["moving"]
    assert state["runtime_state"] == "STOPPED"


def test_a_full_disk_brakes_a_live_session(disk):
    folder = disk("160k")
    session = simbridge.live("pybullet", robot="ur10e", out=folder / "run", timeout=10.0)
    error = None
    refusal = None

    with pytest.raises((LogWriteError, OutputError), match="No space left"), session:
        session.engage()
        session.jog([0.1] * 6)
        end = time.monotonic() + PATIENCE
        while session.status.error is None and time.monotonic() < end:
            time.sleep(0.01)
        error = session.status.error
        try:
            session.engage()
        except (LogWriteError, OutputError) as raised:
            refusal = raised

    # An assertion within the session would be lost: its end raises the expected error.
    assert isinstance(error, (LogWriteError, OutputError))
    assert refusal is not None


def test_a_disk_that_fails_in_motion_is_an_unknown_cause(line, tmp_path, monkeypatch):
    def fail(log, _sample):
        raise LogWriteError(tmp_path / "log.mcap", 0, errno.EIO)

    monkeypatch.setattr(LogWriter, "write", fail)

    with pytest.raises(LogWriteError):
        simbridge.run(line, out=tmp_path / "run")

    ended_by = RunDirectory.open(tmp_path / "run").summary()["ended_by"]
    assert ended_by["cause"] == "unknown"
    assert ended_by["evidence"][0].startswith("LogWriteError: The log")
    assert "EIO" in ended_by["evidence"][0]
