"""A directory of runs that the commands on runs share."""

from __future__ import annotations

import os
import shutil

import pytest

from simbridge.running import run_ending
from tests.stepped_sessions import stepped


@pytest.fixture(scope="session")
def hand(tmp_path_factory, write_short_page):
    """The directory of a live session with one input, for lists of runs; its page is one word."""
    out = tmp_path_factory.mktemp("session") / "hand"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_ending, "write_report", write_short_page)
        with stepped(out) as session:
            session.engage()
            session.wait(0.02)
            session.jog([0.1] * 6)
            session.wait(0.1)
            session.disengage()
            session.wait(0.02)
    return out


@pytest.fixture
def here(tmp_path, monkeypatch, line_run, hand):
    """A directory with a run, repeats, a session and a sweep under runs/, the oldest first.

    Two entries are none of them.
    """
    monkeypatch.chdir(tmp_path)
    runs = tmp_path / "runs"
    sources = {
        "2026-01-02_03-04-05_line": line_run,
        "many/01": line_run,
        "many/02": line_run,
        "hand": hand,
    }
    # A run began when its settings were written.
    for number, (name, source) in enumerate(sources.items()):
        shutil.copytree(source, runs / name)
        os.utime(runs / name / "settings.toml", (1e9 + number, 1e9 + number))

    (runs / "swept").mkdir()
    (runs / "swept" / "sweep.toml").write_text('scenarios = ["circle"]\n')
    columns = (
        "identity,scenario,outcome,reason,tracking_error.position_m.rms,made_by,wall_s,host_name,"
        "host_attempts"
    )
    rows = ("a,circle,completed,,0.002,x,1,h,1,", "b,circle,refused,too far,,x,1,h,1,")
    (runs / "swept" / "results.csv").write_text("\n".join((f"{columns},directory", *rows, "")))
    os.utime(runs / "swept" / "sweep.toml", (2e9, 2e9))

    (runs / "compare_line").mkdir()
    (runs / "notes.txt").write_text("mine")
    return tmp_path
