"""`--repeat N` from the command line: the runs, their common summary, and what is left when they
end early.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from contextlib import redirect_stderr
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from rich.console import Console

from simbridge.backends.pybullet import PyBulletBackend
from simbridge.cli.command_line import main
from simbridge.cli.run_tables import show_iso
from simbridge.evaluation.evaluation import Evaluation
from simbridge.planning.options import Options
from simbridge.planning.plan import Plan
from simbridge.recording.run_directory import RunDirectory
from simbridge.resources import SCENARIOS
from simbridge.running import run_ending
from simbridge.running.repeating import repeat
from simbridge.running.run_setup import prepare
from simbridge.trajectory import write_tum
from tests.backends.trial import write_line
from tests.controllers import REALTIME_FLAGS, realtime_options
from tests.program import answer_to

pytestmark = pytest.mark.shares_setup


def runs_in(directory):
    return [RunDirectory.open(path) for path in sorted(directory.iterdir()) if path.is_dir()]


def three_of(line, out):
    """The arguments for three runs of the line, as text."""
    return ["run", str(line), "--repeat", "3", "--out", str(out), "--tolerance", "50", "5"]


@pytest.fixture(scope="module")
def repeated(tmp_path_factory, line, write_short_page):
    """Three runs of the line in simulation, made by the command line; their own pages are one word
    long, and what it printed is in the file printed.json beside them.
    """
    out = tmp_path_factory.mktemp("repeats") / "line"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_ending, "write_report", write_short_page)
        answer = answer_to(*three_of(line, out), "--json")
    assert answer.status == 0
    out.with_name("printed.json").write_text(answer.out)
    return out


def test_all_runs_have_one_plan(repeated):
    assert sorted(path.name for path in repeated.iterdir()) == [
        "01",
        "02",
        "03",
        "report.html",
        "summary.json",
    ]

    runs = runs_in(repeated)
    plan = runs[0].plan(Plan.from_arrays)

    for run in runs:
        assert run.summary()["outcome"] == "completed"
        assert run.report_file.is_file()
        assert np.array_equal(run.plan(Plan.from_arrays).setpoints, plan.setpoints)
        assert len(run.log().stamp) == plan.samples


def test_each_run_begins_at_the_start(repeated):
    for run in runs_in(repeated):
        log = run.log()
        assert np.abs(log.position[0] - log.setpoint[0]).max() < 1e-3
        # The line ends elsewhere.
        assert np.abs(log.position[-1] - log.setpoint[0]).max() > 1e-2


def test_the_summary_has_runs_and_figures(repeated):
    summary = RunDirectory(repeated).summary()

    assert (summary["outcome"], summary["repeats"], summary["completed"], summary["passed"]) == (
        "completed",
        3,
        3,
        True,
    )
    assert [run["run"] for run in summary["runs"]] == ["01", "02", "03"]

    for listed, run in zip(summary["runs"], runs_in(repeated), strict=True):
        assert listed["tracking_error"] == run.summary()["tracking_error"]

    iso = summary["iso_9283_style"]

    assert iso["witness"] == "self-reported"

    figures = {figure["symbol"]: figure for figure in iso["figures"]}

    assert set(figures) >= {"AT", "RT"}
    assert "AP" not in figures
    assert (figures["AT"]["cycles"], figures["AT"]["asked"]) == (3, 10)
    assert iso["stops_m"] == []
    assert "the target never rests for 0.2 s" in iso["missing"][0]


def test_the_cubes_poses_have_figures(cli, tmp_path, capsys, without_pages):
    # An eighth of the size takes a third of the time.
    script = tmp_path / "small_cube.py"
    text = (SCENARIOS / "iso_cube.py").read_text(encoding="utf-8")
    script.write_text(text.replace("0.4 * size.scale", "0.05 * size.scale"), encoding="utf-8")
    out = tmp_path / "cube"
    flags = ("--speed-scale", 2, "--period", 0.016)
    answer = cli("run", script, "--repeat", 2, *flags, "--out", out, "--json")
    iso = json.loads(answer.out)["iso_9283_style"]

    assert len(iso["stops_m"]) == 5

    at_rest = [figure for figure in iso["figures"] if figure["stop"] is not None]

    assert [(figure["stop"], figure["symbol"]) for figure in at_rest] == [
        (number, symbol)
        for number in range(1, 6)
        for symbol in ("AP", "RP", "stabilisation time", "OV")
    ]
    # Two laps in each of two runs.
    assert {figure["cycles"] for figure in at_rest} == {4}
    # Where the target is at rest, the delay of the arm does not affect its pose.
    assert max(figure["value"] for figure in at_rest if figure["symbol"] == "AP") < 1e-5

    page = (out / "report.html").read_text()

    for word in (
        "At rest",
        "pose accuracy",
        "Along the path",
        "path repeatability",
        "self-reported",
        "01/report.html",
    ):
        assert word in page

    # Thirty for AP and RP, three for stabilisation time and OV.
    assert ">30 / 3</td>" in page

    show_iso(Console(), iso)

    assert (
        "The standard requires 30 cycles for AP and RP, 3 for stabilisation time and OV."
        in capsys.readouterr().out
    )


def test_the_json_output_is_the_common_summary(repeated):
    printed = json.loads(repeated.with_name("printed.json").read_text())

    assert printed.pop("run") == str(repeated)
    assert printed == json.loads((repeated / "summary.json").read_text())


def test_report_rewrites_the_pages_of_all_runs(cli, repeated, tmp_path, short_pages):
    out = Path(shutil.copytree(repeated, tmp_path / "out"))
    before = (out / "report.html").read_text()
    for page in (".", "01", "02", "03"):
        (out / page / "report.html").unlink()

    answer = cli("report", out, "--json")

    assert answer.status == 0

    printed = json.loads(answer.out)

    assert (out / "report.html").read_text() == before
    assert printed["report"] == str(out / "report.html")
    assert [
        Path(run[page]).is_file() for run in printed["runs"] for page in ("report", "replay")
    ] == [True] * 6
    assert all(run["tracking_error"]["position_m"]["rms"] > 0.0 for run in printed["runs"])


def killed_in_the_second(repeated, out):
    """Three repeats as left by kill -9 during the second."""
    shutil.copytree(repeated, out)
    shutil.rmtree(out / "03")
    for page in (
        out / "report.html",
        out / "summary.json",
        out / "02/report.html",
        out / "02/summary.json",
    ):
        page.unlink()
    log = (out / "02/log.mcap").read_bytes()
    (out / "02/log.mcap").write_bytes(log[: len(log) * 2 // 3])
    return out


def test_killed_repeats_have_pages_and_summary(cli, repeated, tmp_path, short_pages):
    out = killed_in_the_second(repeated, tmp_path / "out")
    answer = cli("report", out)

    assert answer.status == 2
    assert answer.message.startswith("Run 02 did not complete: the log was not closed")
    assert answer.out.splitlines()[0] == str(out / "report.html")
    assert all(
        (out / page).is_file()
        for page in ("report.html", "01/report.html", "02/report.html", "02/replay.html")
    )

    summary, whole = (json.loads((path / "summary.json").read_text()) for path in (out, repeated))

    assert (summary["repeats"], summary["completed"], summary["passed"]) == (3, 1, False)
    assert summary["runs"][0] == whole["runs"][0]
    assert 0 < summary["runs"][1]["samples"] < whole["runs"][1]["samples"]
    assert (
        "The last run did not complete: the log was not closed" in (out / "report.html").read_text()
    )

    # While repeats continue, a summary written in between soon becomes outdated.
    (out / "02/log.mcap").write_bytes((repeated / "02/log.mcap").read_bytes())
    answer = cli("report", out)

    assert answer.status == 2
    assert answer.message.startswith("2 of 3 runs completed: no further run was started")
    assert (
        "The repeats did not complete: no further run was started"
        in (out / "report.html").read_text()
    )


def test_a_run_that_never_moved_has_no_page(cli, repeated, tmp_path, short_pages):
    out = killed_in_the_second(repeated, tmp_path / "out")
    (out / "02/log.mcap").unlink()

    answer = cli("report", out, "--json")

    assert answer.status == 2
    assert "Run 02 has no samples, and therefore no page" in answer.message

    first, second = json.loads(answer.out)["runs"]

    assert Path(first["report"]).is_file()
    assert second["samples"] is None
    assert "02/report.html" not in (out / "report.html").read_text()


def test_killed_repeats_can_be_evaluated(cli, repeated, tmp_path):
    out = killed_in_the_second(repeated, tmp_path / "out")
    run = Evaluation.of(RunDirectory.open(out / "01"))
    write_tum(tmp_path / "seen.tum", run.log.stamp, run.attained)

    answer = cli("evaluate", out, "--attained", tmp_path / "seen.tum", "--json")

    assert answer.status == 0
    assert [one["run"] for one in json.loads(answer.out)["runs"]] == ["01"]

    shutil.rmtree(out / "01")
    answer = cli("evaluate", out, "--attained", tmp_path / "seen.tum")

    assert answer.status == 2
    assert "a run that completed: none of 1 run did" in answer.message


def test_repeats_are_told_from_runs(cli, repeated, tmp_path):
    answer = cli("export", repeated, "--to", "csv")

    assert answer.status == 2
    assert "it is a directory of repeats; name one of its runs" in answer.message
    assert "01" in answer.message

    shutil.copytree(repeated / "01", tmp_path / "runs" / "2025-01-01_line")
    answer = cli("report", tmp_path / "runs")

    assert answer.status == 2
    assert "settings.toml is missing" in answer.message

    (tmp_path / "sweep.toml").touch()
    answer = cli("report", tmp_path)

    assert answer.status == 2
    assert f"it is a sweep; name one of its runs, in {tmp_path / 'runs'}" in answer.message
    assert not (tmp_path / "runs" / "report.html").exists()


def test_a_tolerance_may_fail_all_runs(
    cli, line, tmp_path, monkeypatch, without_pages, without_common_page
):
    monkeypatch.setenv("COLUMNS", "80")
    answer = cli("run", line, "--repeat", 2, "--out", tmp_path / "out", "--tolerance", "0", "0")

    assert answer.status == 1
    assert "2 of 2 runs of line completed" in answer.out
    assert "Tolerance exceeded" in answer.out
    assert "ISO 9283-style figures, self-reported" in answer.out
    assert "required" in answer.out

    where = str(tmp_path)

    assert max(len(row) for row in answer.out.splitlines() if where not in row) <= 80


class Interrupted(NamedTuple):
    """Three repeats that Ctrl-C ended in the second.

    Attributes:
        status: The exit status.
        message: What was printed to stderr, as one line.
        out: The directory.
    """

    status: int
    message: str
    out: Path


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory, line, write_short_page):
    """See `Interrupted`."""
    whole = PyBulletBackend.stream
    streamed = []

    def interrupted_in_the_second(self, setpoints):
        streamed.append(0)
        for state in whole(self, setpoints):
            yield state
            streamed[-1] += 1
            if len(streamed) == 2 and streamed[-1] == 20:
                raise KeyboardInterrupt

    out = tmp_path_factory.mktemp("interrupted") / "out"
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(said):
        patch.setattr(run_ending, "write_report", write_short_page)
        patch.setattr(PyBulletBackend, "stream", interrupted_in_the_second)
        status = main([*three_of(line, out), "--label", "warm"])
    return Interrupted(status, " ".join(said.getvalue().split()), out)


def test_interrupted_repeats_are_kept(interrupted):
    status, message, out = interrupted

    assert status == 130
    assert str(out) in message

    first, second = runs_in(out)

    assert (first.summary()["outcome"], second.summary()["outcome"]) == ("completed", "interrupted")
    assert len(second.log().stamp) == 20

    summary = RunDirectory(out).summary()

    assert (summary["outcome"], summary["repeats"], summary["completed"]) == ("interrupted", 3, 1)
    assert summary["passed"] is False
    assert {figure["cycles"] for figure in summary["iso_9283_style"]["figures"]} == {1}


def test_interrupted_repeats_go_on_in_the_same_directory(
    cli, line, interrupted, tmp_path, without_pages, without_common_page
):
    said = f"The same command with `--out {interrupted.out}` continues the repeats."

    assert said in interrupted.message

    out = Path(shutil.copytree(interrupted.out, tmp_path / "out"))
    first = (out / "01" / "log.mcap").read_bytes()
    flags = three_of(line, out)

    assert cli(*flags).status == 0

    summary = RunDirectory(out).summary()

    assert (summary["outcome"], summary["completed"], summary["passed"]) == ("completed", 3, True)
    assert [run["run"] for run in summary["runs"]] == ["01", "02", "03"]
    assert (out / "01" / "log.mcap").read_bytes() == first
    # The label may be left out.
    assert summary["label"] == "warm"
    assert runs_in(out)[-1].settings().label == "warm"
    # What ended early is kept, and no longer counts.
    assert RunDirectory(out / "02.ended").summary()["outcome"] == "interrupted"

    before = [run.log_file.stat().st_mtime_ns for run in runs_in(out)]

    assert cli(*flags).status == 0
    assert [run.log_file.stat().st_mtime_ns for run in runs_in(out)] == before


def test_other_settings_do_not_continue_repeats(cli, line, interrupted):
    out = interrupted.out
    flags = ("run", line, "--repeat", 3, "--out", out)

    refused = cli(*flags, "--servo-gain", 500)

    assert refused.status == 2
    assert "backend.servo_gain (there 2000, now 500)" in refused.message
    assert "tolerance.position_m (there 0.05, now none)" in refused.message
    assert "--out" in refused.message

    before = line.read_text()
    slower = re.sub(r"(?m)^0\.4\S*", "0.5", before)

    assert slower != before

    try:
        line.write_text(slower)
        refused = cli(*flags, "--tolerance", "50", "5")
    finally:
        line.write_text(before)

    assert refused.status == 2
    assert "differ in their plan" in refused.message
    assert len(runs_in(out)) == 2


def test_an_interrupted_report_can_be_finished(cli, repeated, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("simbridge.cli.report_command.write_repeats_page", interrupt)
    answer = cli("report", repeated)

    assert answer.status == 130
    assert (
        answer.message == f"The report was interrupted; `simbridge report {repeated}` completes it."
    )


@pytest.mark.parametrize("count", [0, -2])
def test_no_repeats_are_refused_before_anything_is_written(cli, line, tmp_path, count):
    answer = cli("run", line, "--repeat", count, "--out", tmp_path / "out")

    assert answer.status == 2
    assert "at least 1" in answer.message
    assert not (tmp_path / "out").exists()


def test_a_resting_motion_has_no_figures(cli, tmp_path, tum, through, without_pages):
    points = [[0.7, 0.164, 0.3]] * 3
    still = tum(tmp_path / "still.tum", through(points, [0.0, 0.1, 0.2]))
    answer = cli("run", still, "--repeat", 2, "--out", tmp_path / "out", "--json")
    summary = json.loads(answer.out)
    iso = summary["iso_9283_style"]
    figures = {figure["symbol"] for figure in iso["figures"]}

    assert answer.status == 0
    # Without a tolerance nothing is judged.
    assert summary["passed"] is None
    assert figures == set()
    assert any("its length is zero" in sentence for sentence in iso["missing"])


# On a real arm they do, too: test_the_operator_confirms_once.
@pytest.mark.soak
def test_controllers_return_to_the_start(cli, e_series, tmp_path, without_pages):
    out = tmp_path / "out"
    flags = ("--backend", "ursim", "--robot", "ur10e", "--host", e_series.host, *REALTIME_FLAGS)

    answer = cli("run", write_line(tmp_path, 0.5), "--repeat", 2, "--out", out, *flags, "--json")

    assert answer.status == 0, answer.err

    for run in runs_in(out):
        log = run.log()
        summary = run.summary()
        assert summary["outcome"] == "completed"
        assert summary["loop"]["period_mean_s"] > 0.0
        assert np.abs(log.position[0] - log.setpoint[0]).max() < 0.02

    assert RunDirectory(out).summary()["completed"] == 2


@pytest.mark.soak
def test_the_operator_confirms_once(calibrated, tmp_path, without_pages):
    confirmed = []

    def operator(shown, question):
        confirmed.append(dict(shown))
        return True

    options = Options(host=calibrated.host, **realtime_options())
    # A long approach needs another confirmation.
    prepared = prepare(write_line(tmp_path, 0.5), robot="ur10e", options=options, backend="real")
    finished = repeat(prepared, 2, out=tmp_path / "out", ask=operator)

    assert finished.summary["completed"] == 2

    (shown,) = confirmed

    assert shown["runs"] == "2"
    assert shown["between them"].startswith("straight back to the start, once")
