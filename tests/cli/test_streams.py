"""Closed streams, other encodings, narrow terminals and readers that go away.

A command behaves as with /dev/null.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from simbridge.cli.streams import MAX_COLUMNS, MIN_COLUMNS, nearest_text, prepare_streams
from tests.patience import PATIENCE
from tests.program import WITHOUT_PAGES
from tests.properties import variants

pytestmark = pytest.mark.slow

PROGRAM = f"{sys.executable} -m simbridge"


def shell(command, **environment):
    """Run a shell command; a command that does not end fails the test."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return subprocess.run(
        ["bash", "-c", command],
        env={**kept, **environment},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


# A run, below, with all of them closed.
@pytest.mark.parametrize(
    "redirection",
    variants(["<&-", ">&-", "2>&-", "1</dev/null", "0>/dev/null"], "1</dev/null"),
)
def test_a_closed_stream_is_like_dev_null(redirection):
    answer = shell(f"{PROGRAM} robots {redirection}")

    assert answer.returncode == 0
    assert answer.stderr == b""


def test_a_run_with_closed_streams_is_complete(tmp_path, line):
    program = tmp_path / "without_page.py"
    program.write_text(WITHOUT_PAGES)

    answer = shell(f"{sys.executable} {program} run {line} --out {tmp_path}/run <&- >&- 2>&-")

    assert answer.returncode == 0
    assert (tmp_path / "run" / "summary.json").is_file()


def test_an_error_with_closed_streams_has_its_status():
    assert shell(f"{PROGRAM} robots --nonsense <&- >&- 2>&-").returncode == 2


def test_messages_never_go_to_standard_output():
    answer = shell(f"{PROGRAM} runs nowhere 2>&-")

    assert answer.returncode == 2
    assert answer.stdout == b""


@pytest.fixture
def folder(tmp_path):
    """A directory whose list has a letter and a dash that ASCII lacks."""
    (tmp_path / "swept").mkdir()
    (tmp_path / "swept" / "sweep.toml").write_text('scenarios = ["café"]\n', encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "encoding",
    variants(
        ["latin-1", "ascii", "ascii:strict", "cp437", "utf-16"],
        "ascii:strict",
        "utf-16",
    ),
)
def test_a_terminal_of_another_encoding_gets_its_output(encoding, folder):
    answer = shell(f"{PROGRAM} runs {folder}", PYTHONIOENCODING=encoding)

    assert answer.returncode == 0
    assert "swept  caf" in answer.stdout.decode(encoding.partition(":")[0])


def test_a_locale_without_utf_8_is_enough(folder):
    answer = shell(f"{PROGRAM} runs {folder}", LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")

    assert answer.returncode == 0
    assert b"swept  cafe" in answer.stdout


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\u22125.3 mm", b"-5.3 mm"),
        ("µm", b"um"),
        ("5°", b"5deg"),
        ("é", b"e"),
        ("机", b"?"),
        ("\udce9", b"\xe9"),
    ],
)
def test_a_character_that_is_missing_becomes_the_nearest(text, plain):
    prepare_streams()

    assert text.encode("ascii", "simbridge.nearest") == plain


def test_the_handler_is_for_encoding_only():
    with pytest.raises(UnicodeDecodeError):
        nearest_text(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"))


# How other widths are read is tested below.
@pytest.mark.parametrize("columns", variants(["1", "wide", "1" * 30], "1"))
def test_help_ends_at_any_width(cli, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    prepare_streams()

    answer = cli("run", "--help")

    assert answer.status == 0
    assert "--robot" in answer.out


@pytest.mark.parametrize("columns", variants(["1", "²"], "²"))
def test_a_wrong_flag_is_reported_at_any_width(cli, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", columns)
    prepare_streams()

    assert cli("run", "circle", "--nonsense").status == 2


@pytest.mark.parametrize(
    ("columns", "corrected"),
    [
        ("1", f"{MIN_COLUMNS}"),
        ("80", "80"),
        ("1" * 30, f"{MAX_COLUMNS}"),
        ("0", None),
        ("-1", None),
        ("²", None),
        ("x", None),
        ("", None),
    ],
)
def test_the_width_is_corrected(monkeypatch, columns, corrected):
    monkeypatch.setenv("COLUMNS", columns)

    prepare_streams()

    assert os.environ.get("COLUMNS") == corrected


@pytest.fixture
def closed_pipe():
    """The writing end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


# The help of run exceeds the buffer of a stream: its pipe breaks while it is printed.
@pytest.mark.parametrize("command", [["robots"], ["--version"], ["run", "--help"]])
def test_a_reader_that_left_ends_the_command(command, closed_pipe):
    answer = subprocess.run(
        [sys.executable, "-m", "simbridge", *command],
        stdout=closed_pipe,
        stderr=subprocess.PIPE,
        check=False,
    )

    assert answer.returncode == 141
    assert answer.stderr == b""


def test_an_error_that_nobody_reads_ends_the_command(closed_pipe):
    answer = subprocess.run(
        [sys.executable, "-m", "simbridge", "runs", "nowhere"], stderr=closed_pipe, check=False
    )

    assert answer.returncode == 141
