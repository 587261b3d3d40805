"""The commands on the directory of a live session: each works, or refuses with one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def session(live_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(live_run, tmp_path / "hand"))


@pytest.fixture
def never(never_engaged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(never_engaged, tmp_path / "never"))


@pytest.mark.usefixtures("without_drawings")
def test_report_writes_the_pages_again(cli: Any, session: Path) -> None:
    (session / "report.html").unlink()
    answer = cli("report", session, "--json")

    assert answer.status == 0
    assert (session / "report.html").is_file()
    assert (session / "replay.html").is_file()
    assert (
        json.loads(answer.out)["inputs"]
        == json.loads((session / "summary.json").read_text())["inputs"]
    )


def test_export_writes_samples(cli: Any, session: Path) -> None:
    for kind, name in (("csv", "samples.csv"), ("mcap", "samples.mcap")):
        assert cli("export", session, "--to", kind).status == 0
        assert (session / name).is_file()


def test_evaluate_compares_with_an_external_recording(
    cli: Any, session: Path, tmp_path: Path
) -> None:
    assert cli("export", session, "--to", "tum").status == 0

    rows = np.loadtxt(session / "attained.tum")
    rows[:, 0] += 100.0
    np.savetxt(tmp_path / "tracker.tum", rows)

    answer = cli("evaluate", session, "--attained", tmp_path / "tracker.tum", "--json")

    assert answer.status == 0, answer.err
    assert json.loads(answer.out)["witness_minus_self"]["position_m"]["rms"] < 1e-3


def test_identify_finds_the_servo_law(cli: Any, session: Path) -> None:
    answer = cli("identify", session, "--json")

    assert answer.status == 0, answer.err
    assert json.loads(answer.out)["servoj"]["gain"] == pytest.approx(2000.0, rel=0.02)


@pytest.mark.soak
def test_run_solves_a_sessions_inputs_again(cli: Any, session: Path, tmp_path: Path) -> None:
    assert cli("run", session, "--out", tmp_path / "again").status == 0

    answer = cli("compare", session, tmp_path / "again", "--out", tmp_path / "page", "--json")
    assert answer.status == 0, answer.err

    second = json.loads(answer.out)["runs"][1]
    # Between two engagements the arm had time to settle.
    assert second["from_the_first"]["position_m"]["rms"] < 1e-3


@pytest.mark.usefixtures("short_pages")
def test_a_sessions_plan_is_run(cli: Any, session: Path, tmp_path: Path) -> None:
    answer = cli("run", session, "--plan", session, "--out", tmp_path / "replay")

    assert " on live" in answer.out
    assert (tmp_path / "replay" / "report.html").is_file()


# test_another_solver_is_given_the_same_inputs of test_recorded_session shows the plan.
@pytest.mark.soak
def test_a_session_is_checked_with_another_solver(cli: Any, session: Path) -> None:
    assert cli("check", session, "--solver", "pseudoinverse").status == 0


def test_a_session_keeps_the_urdfs_links(cli: Any, session: Path) -> None:
    for command in ("run", "check"):
        answer = cli(command, session, "--tip", "hand")
        assert answer.status == 2
        assert "a URDF or xacro file with --tip hand (got ur10e)" in answer.message


@pytest.mark.parametrize(
    "command",
    [
        ("export", "--to", "csv"),
        ("compare", "{other}"),
        ("evaluate", "--attained", "{file}"),
        ("run",),
        ("run", "--plan"),
    ],
)
def test_a_session_never_engaged_is_refused(
    cli: Any, never: Path, session: Path, line: Path, command: tuple[str, ...]
) -> None:
    name, *rest = (word.format(other=session, file=line) for word in command)
    arguments = [never, *rest, *([never] if rest == ["--plan"] else [])]

    answer = cli(name, *arguments)

    assert answer.status == 2
    assert answer.message == f"{never} contains no samples: the session was never engaged."


def test_identify_refuses_a_session_that_was_never_engaged(cli: Any, never: Path) -> None:
    answer = cli("identify", never)

    assert answer.status == 2
    assert "contains fewer than two samples" in answer.message


def test_inputs_of_a_session_never_engaged_are_shown(cli: Any, never: Path) -> None:
    (never / "report.html").unlink()
    answer = cli("report", never)

    assert answer.status == 0
    assert answer.out.strip() == str(never / "report.html")


def test_a_directory_without_its_inputs_is_refused(cli: Any, session: Path) -> None:
    (session / "inputs.jsonl").unlink()
    answer = cli("report", session)

    assert answer.status == 2
    assert answer.message == f"{session} is not a run directory (inputs.jsonl is missing)."
