"""`simbridge runs`, and `last` in place of the newest run."""

from __future__ import annotations

import json
import os
import shutil

import pytest


def listed(cli, *flags):
    answer = cli("runs", *flags, "--json")
    assert answer.status == 0, answer.err
    return {run["run"].removeprefix("runs/"): run for run in json.loads(answer.out)}


def test_the_newest_of_every_kind_comes_first(cli, here, line_run):
    entries = listed(cli)

    assert list(entries) == ["swept", "hand", "many", "2026-01-02_03-04-05_line"]
    assert [run["kind"] for run in entries.values()] == ["sweep", "session", "repeats", "run"]

    run_entry = entries["2026-01-02_03-04-05_line"]
    summary = json.loads((line_run / "summary.json").read_text())

    assert run_entry["error_m"] == summary["tracking_error"]["position_m"]["rms"]

    names = ("scenario", "robot", "solver", "outcome")
    assert [run_entry[name] for name in names] == ["line", "ur10", "forward-dynamics", "completed"]
    assert (entries["swept"]["error_m"], entries["swept"]["outcome"]) == (0.002, "1 of 2 points")
    # Killed before their common summary was written.
    assert (entries["many"]["scenario"], entries["many"]["outcome"]) == ("line", "no summary")


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_list_fits_the_terminal(cli, here, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", f"{width}")
    lines = cli("runs").out.splitlines()

    assert max(map(len, lines)) <= width

    titles = " ".join(lines[:2])
    assert all(title in titles for title in ("run", "RMS", "mm", "outcome", "age"))
    assert any("Not shown" in line for line in lines) == (width < 160)


def test_a_list_is_filtered_sorted_and_cut(cli, here):
    lines = listed(cli, "--filter", "robot=ur10", "--filter", "scenario=line")

    assert (
        set(lines)
        == {"many", "2026-01-02_03-04-05_line"}
        == set(listed(cli, "--filter", "scenario=lin*"))
    )

    errors = [run["error_m"] for run in listed(cli, "--sort", "error").values()]
    known = [error for error in errors if error is not None]

    assert known == sorted(known)
    assert errors[: len(known)] == known
    assert list(listed(cli, "--limit", 1)) == ["swept"]
    assert cli("runs", "--filter", "robot=none").out == "No runs in runs.\n"

    for flags, reason in (
        (("--filter", "robot"), "COLUMN=VALUE"),
        (("--sort", "size"), "'size'"),
        (("--limit", -1), "-1"),
    ):
        refused = cli("runs", *flags)
        assert refused.status == 2
        assert reason in refused.message
    assert "there is no such directory" in cli("runs", "elsewhere").message


def test_broken_entries_are_listed_too(cli, here):
    (here / "runs/swept/results.csv").write_text("half of a")
    (here / "runs/hand/summary.json").write_text("{")
    (here / "runs/many/summary.json").write_text('{"runs": 3, "scenario": "another program\'s"}')

    entries = listed(cli)

    assert entries["many"]["outcome"] == "not readable"
    assert (entries["swept"]["outcome"], entries["swept"]["scenario"]) == (
        "0 of 0 points",
        "circle",
    )
    assert (entries["hand"]["outcome"], entries["hand"]["robot"]) == ("no summary", "ur10e")


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


def test_every_command_takes_last(cli, here, tmp_path):
    answer = cli("export", "last", "--to", "tum")

    assert answer.status == 0
    assert answer.err == "last: runs/hand\n"
    assert (here / "runs/hand/attained.tum").is_file()

    os.utime(here / "runs/2026-01-02_03-04-05_line/settings.toml")
    run = "runs/2026-01-02_03-04-05_line"

    assert cli("view", "last", "--no-browser").out == f"{run}/report.html\n"
    assert json.loads(cli("compare", "last", "runs/many/01", "--json").out)["runs"][0]["run"] == run
    assert json.loads(cli("identify", "last", "--json").out)["recording"] == run
    assert cli("evaluate", "last", "--attained", "none.tum").err.startswith(f"last: {run}\n")
    assert cli("run", "line.tum", "--plan", "last").err.startswith(f"last: {run}\n")

    # A directory of that name is meant itself.
    shutil.copytree(here / "runs/hand", here / "last")
    assert cli("view", "last").out == "last/report.html\n"


def test_before_the_first_run_the_list_is_empty(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = cli("runs")

    assert (answer.status, answer.out) == (0, "No runs in runs.\n")


def test_last_without_runs_names_the_folders(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = cli("report", "last")

    assert answer.status == 2
    assert "there is no run under runs/ or in this directory" in answer.message


def test_a_run_is_no_scenario(cli, here):
    refused = cli("check", "runs/2026-01-02_03-04-05_line")

    assert refused.status == 2
    assert "--plan runs/2026-01-02_03-04-05_line" in refused.message
