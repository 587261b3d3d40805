"""A long reading is shown in one line of the terminal."""

from __future__ import annotations

import io

from simbridge.cli import reading_line
from simbridge.cli.reading_line import ReadingLine


def test_a_long_reading_is_one_erased_line(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr(reading_line.sys, "stderr", shown)
    monkeypatch.setattr(reading_line, "QUIET_S", 0.0)
    line = ReadingLine()
    line.show("poses.csv", 0.0)
    line.show("poses.csv", 0.42)

    line.show("poses.csv", 1.0)

    assert "Reading poses.csv: 42 %" in shown.getvalue()
    assert shown.getvalue().endswith(reading_line.ERASE_LINE)
    assert "\n" not in shown.getvalue()


def test_where_there_is_no_terminal_nothing_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(reading_line, "QUIET_S", 0.0)
    line = ReadingLine()
    line.show("poses.csv", 0.5)

    line.show("poses.csv", 1.0)

    assert capsys.readouterr().err == ""


def test_a_pipe_has_a_line_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(reading_line, "LINE_INTERVAL_S", 0.0)
    line = ReadingLine()

    line.show("log.csv", 0.5, "Judging")
    line.show("log.csv", 1.0, "Judging")

    assert capsys.readouterr().err == "Judging log.csv: 50 %\n"
