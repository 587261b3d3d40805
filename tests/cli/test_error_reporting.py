"""A bug in simbridge is one paragraph; its traceback is saved for those who fix it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simbridge.backends.backend import Ending
from simbridge.backends.error_events import reconstruct_error
from simbridge.backends.pybullet import PyBulletBackend
from simbridge.cli import error_reporting, resources_commands
from simbridge.errors import InternalError

CHECKOUT = Path(__file__).parents[2]


def broken(*_, **__):
    raise ZeroDivisionError("by nobody")


def test_a_terminal_without_a_size_gets_the_message(monkeypatch, capsys):
    monkeypatch.setattr(error_reporting.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(error_reporting.os, "get_terminal_size", lambda _: os.terminal_size((0, 0)))
    error_reporting.print_message("one paragraph")

    assert capsys.readouterr().err == "one paragraph\n"


def test_a_missing_library_is_to_be_installed(cli, monkeypatch):
    def import_pinocchio(*_):
        raise ImportError("libgomp.so.1: cannot open shared object file: No such file")

    monkeypatch.setattr(resources_commands, "robots", import_pinocchio)

    answer = cli("robots")

    assert answer.status == 2
    assert "sudo apt install libgomp1" in answer.message


@pytest.mark.parametrize(
    "flag",
    [
        "--columns t=1,x=2,y=3,z=4,qw=5,qx=6,qy=7,qz=8",
        "--columns 'x=left hand,y=right hand'",
        "--transform 1.2 0 -0.4 0 0 .7071068 0.7071068",
        "--reference-offset -2.5",
        "--solver.kp 5",
    ],
)
def test_a_flag_stays_with_its_value(capsys, flag: str) -> None:
    """Wherever in a line it begins."""
    for length in range(60, 100):
        error_reporting.print_message(f"{'x' * length} {flag} is what to add to the command")

    assert capsys.readouterr().err.count(flag) == 40


def test_a_bug_is_one_paragraph_and_a_file(cli, monkeypatch, tmp_path):
    monkeypatch.setattr(error_reporting.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(resources_commands, "robots", broken)

    answer = cli("robots")

    assert answer.status == 1
    assert answer.out == ""
    assert "bug in simbridge: ZeroDivisionError: by nobody." in answer.message
    assert "Traceback" not in answer.err
    assert "arm" not in answer.err

    (file,) = tmp_path.iterdir()
    assert str(file) in answer.message.replace(" ", "") or str(file) in answer.err
    assert file.read_text().startswith("Traceback")
    assert "in broken" in file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("where", ["stream", "read"])
def test_a_bug_during_a_run_leaves_its_traceback_there(where, cli, line, monkeypatch, tmp_path):
    from simbridge.running import runner

    target = PyBulletBackend if where == "stream" else runner
    monkeypatch.setattr(target, "stream" if where == "stream" else "finalize", broken)
    out = tmp_path / "out"

    answer = cli("run", line, "--out", out)

    assert answer.status == 1
    assert "by nobody. The arm is at rest." in answer.message
    assert "Traceback" not in answer.err
    assert "ZeroDivisionError" in (out / "traceback.txt").read_text()


@pytest.mark.slow
def test_a_bug_leaves_it_open_whether_the_arm_rests(cli, line, monkeypatch, tmp_path):
    monkeypatch.setattr(PyBulletBackend, "stream", broken)
    monkeypatch.setattr(PyBulletBackend, "ending", Ending())

    answer = cli("run", line, "--out", tmp_path / "unseen")

    assert "by nobody. It could not be determined whether the arm is at rest." in answer.message


def test_a_traceback_without_a_file_is_printed(cli, monkeypatch, tmp_path):
    monkeypatch.setattr(error_reporting.tempfile, "tempdir", str(tmp_path / "nowhere"))
    monkeypatch.setattr(resources_commands, "robots", broken)

    answer = cli("robots")

    assert answer.status == 1
    assert "Traceback" in answer.err
    assert "The traceback is above" in answer.message


def test_a_servo_processs_bug_has_its_traceback(capsys, tmp_path):
    trace = "Traceback (most recent call last):\n  somewhere\nIndexError: 7\n"
    error = reconstruct_error(
        {"event": "error", "error": "IndexError", "message": "7", "fields": {}, "trace": trace}
    )

    assert type(error) is InternalError

    error.run_directory = tmp_path
    assert error_reporting.print_error(error) == 1
    assert "IndexError: 7" in capsys.readouterr().err
    assert (tmp_path / "traceback.txt").read_text() == trace


def test_ctrl_c_during_imports_shows_no_traceback(tmp_path):
    # An import that takes so long that Ctrl-C surely comes during it.
    (tmp_path / "tyro.py").write_text(
        "import time\nprint('importing', flush=True)\ntime.sleep(60.0)\n"
    )
    program = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(CHECKOUT)!r}]\n"
    program += "from simbridge.__main__ import main\nsys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate()

    # Python itself may end a process by the signal after it was handled; a shell shows 130 for
    # both.
    assert process.returncode in (130, -signal.SIGINT)
    assert re.fullmatch("Interrupted; nothing is moving.\n", printed)
