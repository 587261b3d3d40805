"""Labels of runs: where they are shown, and which are refused."""

from __future__ import annotations

import json

import pytest


# Where Chromium is installed, test_hostile_texts shows it, too.
@pytest.mark.soak
def test_a_label_is_shown_on_a_page_of_comparison(cli, line, line_run, tmp_path, without_pages):
    assert cli("run", line, "--label", "stiff [gripper]", "--out", tmp_path / "out").status == 0

    assert cli("compare", tmp_path / "out", line_run, "--out", tmp_path / "page").status == 0
    assert "</span>stiff [gripper]</th>" in (tmp_path / "page" / "compare.html").read_text()


@pytest.mark.usefixtures("short_comparisons")
def test_a_label_is_in_files_and_tables(cli, line, line_run, tmp_path):
    out = tmp_path / "out"

    assert cli("run", line, "--label", "stiff [gripper]", "--out", out).status == 0
    assert 'label = "stiff [gripper]"' in (out / "settings.toml").read_text()
    assert json.loads((out / "summary.json").read_text())["label"] == "stiff [gripper]"
    assert json.loads(cli("runs", tmp_path, "--json").out)["runs"][0]["label"] == "stiff [gripper]"
    assert "stiff [gripper]" in cli("runs", tmp_path).out
    assert "simbridge: tracking report: stiff [gripper]" in (out / "report.html").read_text()
    compared = cli("compare", out, line_run, "--out", tmp_path / "page", "--verbose").out
    assert "\nstiff [gripper]  " in compared
    assert "stiff [gripper], in out: ur10, " in " ".join(compared.split())


def test_a_label_of_several_lines_is_refused(cli, line):
    answer = cli("run", line, "--label", "one\ntwo")

    assert answer.status == 2
    assert "must be one line of text" in answer.message
