"""`simbridge view`: the page of a run, without typing the path of its file."""

from __future__ import annotations

import sys
import webbrowser


def test_a_screen_gets_the_page(cli, here, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    for name in ("WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", "")
    monkeypatch.setattr(sys, "platform", "linux")

    assert cli("view", "runs/hand").status == 0
    assert opened == []

    monkeypatch.setenv("DISPLAY", ":0")
    cli("view", "runs/hand", "--no-browser")

    assert opened == []

    cli("view", "runs/hand")
    assert opened == [(here / "runs/hand/report.html").as_uri()]


def test_a_missing_page_names_its_command(cli, here):
    (here / "runs/hand/report.html").unlink()
    answer = cli("view", "runs/hand")

    assert answer.status == 2
    assert answer.message == "runs/hand has no page: `simbridge report runs/hand` writes it."
    assert "it is not the directory of a run or a sweep" in cli("view", "runs/compare_line").message
