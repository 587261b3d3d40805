"""`simbridge evaluate` for repeated runs: ISO 9283-style figures from a recording of known bias and spread."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import pose
from simbridge.trajectory import read_trajectory, write_bag, write_tum

pytestmark = pytest.mark.shares_setup

Array = NDArray[Any]

FRAME = np.array([0.5, -1.0, 2.0, *pose.quaternions([0.3, -0.4, 0.9])])
RAISED = (-3e-4, 0.0, 3e-4)
"""Height, m, of each run above what its joints show."""
RUNS = ("01", "02", "03")


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory, tum: Any, through: Any, run_without_page: Any
) -> Path:
    """Three runs with a corner, a rest and a turn in space."""
    directory = tmp_path_factory.mktemp("repeats")
    points = [
        [0.7, 0.164, 0.3],
        [0.75, 0.164, 0.3],
        [0.75, 0.214, 0.3],
        [0.75, 0.214, 0.35],
        [0.75, 0.214, 0.35],
    ]
    file = tum(directory / "bent.tum", through(points, [0.0, 0.5, 1.0, 1.5, 2.0]))
    assert run_without_page(file, "--repeat", 3, "--out", directory / "out") == 0
    return directory / "out"


@pytest.fixture
def repeated(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "out"))


def seen(repeated: Path, name: str, raised: float) -> tuple[Array, Array]:
    """Stamps of a run, and poses (T, 7) as a tracker in FRAME sees its tool, without orientation."""
    run = Evaluation.of(RunDirectory.open(repeated / name))
    positions = run.attained[:, :3] + [0.0, 0.0, raised] - FRAME[:3]
    recorded = np.zeros((len(positions), 7))
    recorded[:, :3], recorded[:, 6] = pose.rotate(pose.conjugate(FRAME[3:]), positions), 1.0
    return run.log.stamp, recorded


def in_one_file(repeated: Path, file: Path, names: tuple[str, ...] = RUNS) -> Path:
    """A continuous recording of all runs with the way back and rests in between, on the tracker's clock."""
    times, poses, start = [], [], 1000.25
    for name, raised in zip(names, RAISED, strict=False):
        stamp, recorded = seen(repeated, name, raised)
        # The tool rests for a second and returns within another.
        times += [start + stamp, start + stamp[-1] + np.array([1.0, 2.0])]
        poses += [recorded, recorded[[-1, 0]]]
        start += stamp[-1] + 3.0
    write_tum(file, np.concatenate(times), np.concatenate(poses))
    return file


def figures(iso: dict[str, Any]) -> dict[str, float]:
    return {figure["symbol"]: figure["value"] for figure in iso["figures"]}


@pytest.mark.parametrize("files", [1, 3])
def test_an_external_recording_yields_external_figures_that_the_joints_do_not_show(
    cli: Any, repeated: Path, tmp_path: Path, files: int
) -> None:
    before = (repeated / "summary.json").read_bytes()
    recordings = [in_one_file(repeated, tmp_path / "all.tum")]
    if files == 3:
        recordings = [tmp_path / f"{name}.tum" for name in RUNS]
        for recording, name, raised in zip(recordings, RUNS, RAISED, strict=True):
            write_tum(recording, *seen(repeated, name, raised))
    given = [word for recording in recordings for word in ("--attained", recording)]
    answer = cli("evaluate", repeated, *given, "--json")
    assert answer.status == 0, answer.err
    result = json.loads(answer.out)
    assert result == json.loads((repeated / "evaluation.json").read_text())
    assert result["attained"] == [str(recording) for recording in recordings]
    np.testing.assert_allclose(result["transform"][:3], FRAME[:3], atol=1e-5)
    iso, own = result["iso_9283_style"], json.loads(before)["iso_9283_style"]
    assert (iso["witness"], own["witness"]) == ("external", "self-reported")
    lengths = np.abs(RAISED)
    spread = lengths.mean() + 3.0 * lengths.std(ddof=1)
    # One frame for all runs: their differences remain.
    assert figures(iso)["RP"] == pytest.approx(spread, abs=2e-6)
    assert figures(iso)["RT"] == pytest.approx(spread, abs=2e-5)
    assert figures(own)["RP"] == pytest.approx(0.0, abs=1e-6)
    assert (repeated / "summary.json").read_bytes() == before
    page = (repeated / "report.html").read_text()
    assert (
        "External: from an external recording" in page and "Self-reported: these positions" in page
    )


def test_the_tables_fit_80_columns_and_name_their_source(
    cli: Any, repeated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = cli("evaluate", repeated, "--attained", in_one_file(repeated, tmp_path / "all.tum")).out
    for word in (
        "3 runs",
        "1000.25",
        "ISO 9283-style figures, external",
        "RP mm",
        "stabilisation ms",
        "removed",
    ):
        assert word in out
    assert max(len(line) for line in out.splitlines() if "evaluation.json" not in line) <= 80


def test_the_offsets_in_a_bag_of_all_runs_are_those_of_its_own_clock(
    cli: Any, repeated: Path, tmp_path: Path
) -> None:
    ahead = 1_700_000_000_000_000_000
    together = read_trajectory(in_one_file(repeated, tmp_path / "all.tum"))
    write_bag(tmp_path / "all.bag", replace(together, epoch_ns=ahead))
    result = json.loads(cli("evaluate", repeated, "--attained", tmp_path / "all.bag", "--json").out)
    first, second, _ = (run["time_offset_ns"] for run in result["runs"])
    stamp = seen(repeated, "01", 0.0)[0]
    assert abs(first - (ahead + 1_000_250_000_000)) < 100_000
    assert abs(second - first - round((stamp[-1] + 3.0) * 1e9)) < 100_000


def test_a_recording_of_fewer_runs_or_with_a_gap_is_refused_with_the_run_named(
    cli: Any, repeated: Path, tmp_path: Path
) -> None:
    two = in_one_file(repeated, tmp_path / "two.tum", RUNS[:2])
    answer = cli("evaluate", repeated, "--attained", two)
    assert answer.status == 2
    assert "it contains the runs' motion 2 times, but 3 runs completed" in answer.message
    holed = tmp_path / "holed.tum"
    stamp, recorded = seen(repeated, "02", 0.0)
    kept = (stamp < 0.7) | (stamp > 0.8)
    write_tum(holed, stamp[kept], recorded[kept])
    write_tum(tmp_path / "whole.tum", stamp, recorded)
    whole = ("--attained", tmp_path / "whole.tum")
    answer = cli("evaluate", repeated, *whole, "--attained", holed, *whole)
    assert answer.status == 2
    assert "recording of run 02" in answer.message and "no sample from 0." in answer.message
    assert not (repeated / "evaluation.json").exists()


def test_two_recordings_of_three_runs_or_of_one_run_are_refused(
    cli: Any, repeated: Path, tmp_path: Path
) -> None:
    twice = ("--attained", in_one_file(repeated, tmp_path / "all.tum")) * 2
    answer = cli("evaluate", repeated, *twice)
    assert answer.status == 2 and "1, of all runs, or 3, one per run" in answer.message
    answer = cli("evaluate", repeated / "01", *twice)
    assert answer.status == 2 and "it must be 1" in answer.message
