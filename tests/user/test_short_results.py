"""Results in the terminal: about a dozen lines of one width, and the rest with --verbose."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("without_pages")

DOZEN = 12


def lines_of(answer):
    """Return the printed lines of a command that succeeded, without those that are paths."""
    assert answer.status == 0, answer.err
    return [line for line in answer.out.splitlines() if not line.startswith(("Report:", "Page:"))]


def test_a_run_is_a_dozen_lines(cli, line, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    short = cli("run", line, "--out", tmp_path / "short")
    long = cli("run", line, "--out", tmp_path / "long", "--verbose")

    assert len(short.out.splitlines()) <= DOZEN
    for words in ("The arm lagged the reference by", "SPARC of the tool", "Contour error:"):
        assert words not in short.out
        assert words in long.out


def test_a_check_is_a_dozen_lines(cli, line, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    short = cli("check", line)
    long = cli("check", line, "--verbose")

    assert len(short.out.splitlines()) <= DOZEN
    assert "Predicted lag of the solver" in long.out


@pytest.mark.usefixtures("short_comparisons")
@pytest.mark.parametrize(
    ("columns", "width"),
    [(60, 60), pytest.param(80, 80, marks=pytest.mark.soak), (300, 100)],
)
def test_everything_has_one_width(cli, line, line_run, tmp_path, monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", f"{columns}")

    answers = [
        cli("run", line, "--out", tmp_path / "run", "--verbose"),
        cli("check", line, "--verbose"),
        cli("compare", line_run, tmp_path / "run", "--out", tmp_path, "--verbose"),
    ]

    for answer in answers:
        assert max(map(len, lines_of(answer))) <= width


def test_a_pipe_gets_whole_sentences(cli, line, tmp_path):
    answer = cli("run", line, "--out", tmp_path / "run")

    assert answer.out.splitlines()[0].endswith("on line; rotation below 0.01°.")


def test_notes_need_no_flag(cli, line, tmp_path):
    answer = cli(
        "run", line, "--speed-scale", 20, "--on-limits", "limit", "--out", tmp_path / "run"
    )

    assert "The limiter changed " in answer.out
