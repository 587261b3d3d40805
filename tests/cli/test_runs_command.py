"""`simbridge runs`, and `last` in place of the newest run."""

from __future__ import annotations

import json
import os
import shutil

import pytest

pytestmark = [pytest.mark.usefixtures("short_comparisons"), pytest.mark.shares_setup]


def listed(cli, *flags):
    answer = cli("runs", *flags, "--json")
    assert answer.status == 0, answer.err
    return {run["run"].removeprefix("runs/"): run for run in json.loads(answer.out)["runs"]}


@pytest.mark.slow
def test_the_newest_of_every_kind_comes_first(cli, here, line_run):
    entries = listed(cli)

    assert list(entries) == ["swept", "hand", "many", "2026-01-02_03-04-05_line"]
    assert [run["kind"] for run in entries.values()] == ["sweep", "session", "repeats", "run"]

    run_entry = entries["2026-01-02_03-04-05_line"]
    summary = json.loads((line_run / "summary.json").read_text())

    assert run_entry["error_m"] == summary["tracking_error"]["position_m"]["rms"]

    names = ("scenario", "robot", "solver", "outcome")
    assert [run_entry[name] for name in names] == ["line", "ur10", "forward-dynamics", "completed"]
    assert entries["swept"]["error_m"] == 0.002
    assert entries["swept"]["outcome"] == "1 of 2 points"
    # Killed before their common summary was written.
    assert entries["many"]["scenario"] == "line"
    assert entries["many"]["outcome"] == "no summary"


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_list_fits_the_terminal(cli, here, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", f"{width}")
    lines = cli("runs").out.splitlines()

    assert max(map(len, lines)) <= width

    titles = " ".join(lines[:2])
    assert all(title in titles for title in ("run", "RMS", "mm", "outcome", "age"))
    assert any("Not shown" in line for line in lines) == (width < 160)


@pytest.mark.parametrize("flags", [("robot=ur10", "--filter", "scenario=line"), ("scenario=lin*",)])
def test_a_list_is_filtered(cli, here, flags):
    entries = listed(cli, "--filter", *flags)

    assert set(entries) == {"many", "2026-01-02_03-04-05_line"}


def test_a_list_is_sorted_by_a_column(cli, here):
    entries = listed(cli, "--sort", "error")

    errors = [run["error_m"] for run in entries.values()]
    known = [error for error in errors if error is not None]
    assert known == sorted(known)
    # What has no error comes last.
    assert errors[: len(known)] == known


def test_a_list_is_limited(cli, here):
    assert list(listed(cli, "--limit", 1)) == ["swept"]


def test_nothing_that_matches_is_a_sentence(cli, here):
    answer = cli("runs", "--filter", "robot=none")

    assert answer.out == f"No runs in {here / 'runs'} with robot=none.\n"


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--filter", "robot"), "COLUMN=VALUE"),
        (("--sort", "size"), "'size'"),
        (("--limit", -1), "-1"),
        (("elsewhere",), "directory not found"),
    ],
)
def test_flags_that_make_no_sense_are_refused(cli, here, flags, reason):
    refused = cli("runs", *flags)

    assert refused.status == 2
    assert reason in refused.message


def test_broken_entries_are_listed_too(cli, here):
    (here / "runs/swept/results.csv").write_text("half of a")
    (here / "runs/hand/summary.json").write_text("{")
    (here / "runs/many/summary.json").write_text('{"runs": 3, "scenario": "another program\'s"}')

    entries = listed(cli)

    assert entries["many"]["outcome"] == "not readable"
    assert entries["swept"]["outcome"] == "0 of 0 points"
    assert entries["swept"]["scenario"] == "circle"
    assert entries["hand"]["outcome"] == "no summary"
    assert entries["hand"]["robot"] == "ur10e"


@pytest.mark.parametrize(
    "summary",
    [
        {"scenario": 5},
        {"scenario": "s", "label": ["a"]},
        {"scenario": "s", "tracking_error": {"position_m": {"rms": "x"}}},
        {"scenario": "s", "tracking_error": {"position_m": {"rms": {}}}},
    ],
)
def test_a_summary_of_wrong_types_is_not_readable(cli, here, summary):
    (here / "runs/hand/summary.json").write_text(json.dumps(summary))

    assert listed(cli)["hand"]["outcome"] == "not readable"
    assert "not readable" in cli("runs").out


@pytest.mark.parametrize("name", ["hand/summary.json", "swept/results.csv"])
def test_a_fifo_is_not_waited_for(cli, here, name):
    file = here / "runs" / name
    file.unlink(missing_ok=True)
    os.mkfifo(file)

    assert file.parent.name in listed(cli)


def test_last_is_the_run_that_began_last(cli, here):
    answer = cli("export", "last", "--to", "tum")

    assert answer.status == 0
    assert answer.err == "last: runs/hand\n"
    assert (here / "runs/hand/attained.tum").is_file()


@pytest.mark.slow
def test_every_command_takes_last(cli, here):
    run = "runs/2026-01-02_03-04-05_line"
    os.utime(here / run / "settings.toml")

    compared = json.loads(cli("compare", "last", "runs/many/01", "--json").out)
    identified = json.loads(cli("identify", "last", "--json").out)

    assert compared["runs"][0]["run"] == run
    assert identified["recording"] == run
    assert cli("view", "last", "--no-browser").out == f"{run}/report.html\n"
    assert cli("evaluate", "last", "--attained", "none.tum").err.startswith(f"last: {run}\n")
    assert cli("run", "line.tum", "--plan", "last").err.startswith(f"last: {run}\n")


def test_a_directory_may_be_named_last(cli, here):
    shutil.copytree(here / "runs/hand", here / "last")

    assert cli("view", "last").out == "last/report.html\n"


def test_before_the_first_run_the_list_is_empty(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = cli("runs")

    sentence = (
        f"No runs in {tmp_path / 'runs'}. Name another directory of runs: simbridge runs DIR."
    )
    assert (answer.status, answer.out) == (0, f"{sentence}\n")


def test_last_without_runs_names_the_folders(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = cli("report", "last")

    assert answer.status == 2
    assert "no run found under runs/ or in this directory" in answer.message


def test_a_run_is_no_scenario(cli, here):
    refused = cli("check", "runs/2026-01-02_03-04-05_line")

    assert refused.status == 2
    assert "--plan runs/2026-01-02_03-04-05_line" in refused.message
