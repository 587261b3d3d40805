"""`simbridge evaluate`: external recordings with known clock, frame, bias and spread."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simbridge.cli import evaluate_command
from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import pose
from simbridge.trajectory import Trajectory, read_trajectory, write_bag, write_tum
from tests.trajectory.ros_bags import pose_messages, write_rosbag

pytestmark = pytest.mark.shares_setup

Array = NDArray[Any]

# The tracker's frame in base_link, and the rotation with which its body is mounted on the tool.
FRAME = np.array([0.5, -1.0, 2.0, *pose.quaternions([0.3, -0.4, 0.9])])
MOUNT = np.array([0.0, 0.0, 0.0, *pose.quaternions([0.1, 0.7, -0.2])])
# By how much the tracker's clock is ahead of the run's, s.
OFFSET = 1000.25
# Amplitude of a wave that the joints do not show, m.
WAVE = 3e-4

# Repeated runs, and the height of each above what its joints show, m.
RUNS = ("01", "02", "03")
RAISED = (-3e-4, 0.0, 3e-4)


def read_run(directory: Path) -> Evaluation:
    """Read a run back from its directory."""
    return Evaluation.of(RunDirectory.open(directory))


def outside(positions: Array, rotations: Array) -> Array:
    """Poses in base_link, as a tracker in FRAME records a body that is mounted with MOUNT."""
    back = pose.conjugate(FRAME[3:])
    recorded_positions = pose.rotate(back, positions - FRAME[:3])
    recorded_rotations = pose.multiply(pose.multiply(back, rotations), MOUNT[3:])
    return np.hstack([recorded_positions, recorded_rotations])


@pytest.fixture
def run(square_lap: Path, tmp_path: Path) -> Path:
    """A copy of the run of a square."""
    return Path(shutil.copytree(square_lap, tmp_path / "run"))


@pytest.fixture
def tracker(run: Path, tmp_path: Path) -> Path:
    """The true motion: the arm bends in a wave along z that its joints do not show."""
    evaluation = read_run(run)
    t = evaluation.log.stamp
    attained = evaluation.attained
    bent = attained[:, :3].copy()
    # Eleven times in the lap.
    bent[:, 2] += WAVE * np.sin(6.875 * np.pi * t)
    write_tum(tmp_path / "tracker.tum", t + OFFSET, outside(bent, attained[:, 3:]))
    return tmp_path / "tracker.tum"


@pytest.fixture
def without_common_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluated repeats without their common page."""
    monkeypatch.setattr(evaluate_command, "write_repeats_page", lambda *_: None)


@pytest.fixture(scope="module")
def three_runs(
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
def repeated(three_runs: Path, tmp_path: Path) -> Path:
    """A copy of the three runs."""
    return Path(shutil.copytree(three_runs, tmp_path / "out"))


def recorded_run(repeated: Path, name: str, raised: float) -> tuple[Array, Array]:
    """Stamps of a run, and poses (T, 7) as a tracker in FRAME records it, without orientation."""
    evaluation = read_run(repeated / name)
    positions = evaluation.attained[:, :3] + [0.0, 0.0, raised] - FRAME[:3]
    recorded = np.zeros((len(positions), 7))
    recorded[:, :3] = pose.rotate(pose.conjugate(FRAME[3:]), positions)
    recorded[:, 6] = 1.0
    return evaluation.log.stamp, recorded


def record_in_one_file(repeated: Path, file: Path, names: tuple[str, ...] = RUNS) -> Path:
    """Write a continuous recording of all runs, with the ways back, on the tracker's clock."""
    times = []
    recorded_poses = []
    start = OFFSET
    for name, raised in zip(names, RAISED, strict=False):
        stamps, recorded = recorded_run(repeated, name, raised)
        end = start + stamps[-1]
        # The tool rests for a second and returns within another.
        times += [start + stamps, end + np.array([1.0, 2.0])]
        recorded_poses += [recorded, recorded[[-1, 0]]]
        start = end + 3.0
    write_tum(file, np.concatenate(times), np.concatenate(recorded_poses))
    return file


def figures(iso: dict[str, Any]) -> dict[str, float]:
    """The values of figures by their symbols."""
    return {figure["symbol"]: figure["value"] for figure in iso["figures"]}


def test_it_shows_what_the_arm_does_not_report(cli: Any, run: Path, tracker: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())

    answer = cli("evaluate", run, "--attained", tracker, "--json")

    assert answer.status == 0
    result = json.loads(answer.out)
    assert result["time_offset_s"] == pytest.approx(OFFSET, abs=1e-4)
    np.testing.assert_allclose(result["transform"][:3], FRAME[:3], atol=1e-4)

    self_reported = result["tracking_error"]["self_reported"]
    witness = result["tracking_error"]["witness"]
    own_rms = self_reported["position_m"]["rms"]
    wave_rms = WAVE / np.sqrt(2.0)
    assert own_rms == pytest.approx(summary["tracking_error"]["position_m"]["rms"], rel=1e-2)
    assert result["witness_minus_self"]["position_m"]["rms"] == pytest.approx(wave_rms, rel=0.02)
    together = np.hypot(own_rms, wave_rms)
    assert witness["position_m"]["rms"] == pytest.approx(together, rel=0.05)
    # The body's mounting on the tool is removed.
    assert witness["rotation_rad"]["rms"] < 1e-3

    contour = result["contour_error"]
    assert contour["witness"]["position_m"]["rms"] > contour["self_reported"]["position_m"]["rms"]


def test_position_and_rotation_lose_their_own_delays(
    cli: Any, tmp_path: Path, without_pages: None
) -> None:
    # The solver turns the tool 9 ms later than it moves it.
    t = np.arange(101) * 0.02
    x = 0.75 + 0.03 * np.sin(2.0 * t)
    y = 0.164 + 0.03 * np.sin(3.0 * t)
    positions = np.column_stack([x, y, 0.3 + 0.0 * t])
    turns = pose.quaternions(np.outer(np.sin(2.5 * t), [0.0, 0.0, 0.3]))
    down = np.array([np.sqrt(0.5), -np.sqrt(0.5), 0.0, 0.0])
    write_tum(tmp_path / "weave.tum", t, np.hstack([positions, pose.multiply(turns, down)]))
    run = tmp_path / "run"
    run_output = cli("run", tmp_path / "weave.tum", "--out", run, "--verbose").out
    evaluation = read_run(run)
    attained = evaluation.attained
    recorded = outside(attained[:, :3], attained[:, 3:])
    write_tum(tmp_path / "seen.tum", evaluation.log.stamp, recorded)

    result = json.loads(cli("evaluate", run, "--attained", tmp_path / "seen.tum", "--json").out)

    assert re.search(
        r"The arm lagged the reference by .*\. The rotation lagged the reference by .*\.\n",
        run_output,
    )
    summary = json.loads((run / "summary.json").read_text())
    assert summary["rotation_delay_s"] > summary["delay_s"] + 5e-3
    for key in ("delay_of", "delay_s", "rotation_delay_s"):
        assert result[key] == summary[key]
    for name in ("self_reported", "witness"):
        for part in ("position_m", "rotation_rad"):
            compensated = result["delay_compensated"][name][part]["rms"]
            error = result["tracking_error"][name][part]["rms"]
            own_compensated = summary["delay_compensated"][part]["rms"]
            assert compensated == pytest.approx(own_compensated, rel=0.05, abs=1e-7)
            assert compensated <= error
        # Of the rotation almost nothing remains.
        assert compensated < 0.1 * error


def test_a_bags_offset_is_exact_to_the_microsecond(cli: Any, run: Path, tmp_path: Path) -> None:
    evaluation = read_run(run)
    attained = evaluation.attained
    ahead_ns = 1_700_000_000_500_000_000
    recorded = outside(attained[:, :3], attained[:, 3:])
    write_bag(
        tmp_path / "seen.mcap",
        Trajectory(evaluation.log.stamp, recorded, epoch_ns=ahead_ns),
    )

    out = cli("evaluate", run, "--attained", tmp_path / "seen.mcap").out

    result = json.loads((run / "evaluation.json").read_text())
    assert abs(result["time_offset_ns"] - ahead_ns) < 20_000
    assert result["time_offset_s"] == result["time_offset_ns"] / 1e9
    subject, _, numbers = " ".join(out.split()).partition(": ")
    assert subject.startswith(
        "Measured externally for a UR10 with servoj at gain 2000, lookahead 0.03 s"
    )
    assert re.match(
        r"\S+ mm RMS tracking error \(max \S+ mm\) on square; rotation below "
        r"0\.01°\.",
        numbers,
    )
    shown = re.search(r"ahead by (\d+\.\d{6}) s", out)
    assert shown is not None
    assert abs(Decimal(shown[1]) * 10**9 - result["time_offset_ns"]) <= 500


def test_an_early_end_is_named_first(cli: Any, run: Path, tracker: Path) -> None:
    summary = run / "summary.json"
    summary.write_text(summary.read_text().replace('"completed"', '"interrupted"'))

    text = " ".join(cli("evaluate", run, "--attained", tracker).out.split())

    assert " on square until the run ended early; rotation " in text


# The same for repeats in test_repeats_have_figures_that_joints_do_not_show.
@pytest.mark.soak
def test_the_result_is_written_beside_the_summary(cli: Any, run: Path, tracker: Path) -> None:
    before = (run / "summary.json").read_bytes()

    answer = cli("evaluate", run, "--attained", tracker, "--json")

    assert json.loads((run / "evaluation.json").read_text()) == json.loads(answer.out)
    assert (run / "summary.json").read_bytes() == before


def test_the_table_shows_what_was_estimated(
    cli: Any, run: Path, tracker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    out = cli("evaluate", run, "--attained", tracker).out

    table = [line for line in out.splitlines() if "self-reported" in line or ", external" in line]
    assert len(table) == 7
    assert max(map(len, table)) <= 80
    for word in ("clock", "1000.25", "frame", "removed", "evaluation.json"):
        assert word in out


def test_without_orientations_only_positions_count(cli: Any, run: Path, tmp_path: Path) -> None:
    evaluation = read_run(run)
    attained = evaluation.attained
    recorded = outside(attained[:, :3], attained[:, 3:])
    recorded[:, 3:] = [0.0, 0.0, 0.0, 1.0]
    file = tmp_path / "laser.tum"
    write_tum(file, evaluation.log.stamp, recorded)

    result = json.loads(cli("evaluate", run, "--attained", file, "--json").out)
    out = cli("evaluate", run, "--attained", file, "--marker").out

    assert result["mean_rotation"] is None
    assert result["tracking_error"]["witness"]["rotation_rad"] is None
    assert result["tracking_error"]["self_reported"]["rotation_rad"] is not None
    assert result["witness_minus_self"]["position_m"]["rms"] < 1e-6
    assert "–" in out


def test_a_recording_at_rest_is_refused(cli: Any, run: Path, tmp_path: Path) -> None:
    write_tum(tmp_path / "still.tum", np.arange(50.0), np.tile(FRAME, (50, 1)))

    answer = cli("evaluate", run, "--attained", tmp_path / "still.tum")

    assert answer.status == 2
    assert "is at rest" in answer.message
    assert not (run / "evaluation.json").exists()


def test_a_missing_run_or_file_is_named(cli: Any, run: Path, tracker: Path, tmp_path: Path) -> None:
    no_run = cli("evaluate", tmp_path / "none", "--attained", tracker)
    no_file = cli("evaluate", run, "--attained", tmp_path / "nothing.tum")

    assert no_run.status == 2
    assert "none" in no_run.message
    assert no_file.status == 2
    assert "nothing.tum" in no_file.message


def test_a_bag_with_several_topics_needs_a_topic(cli: Any, run: Path, tmp_path: Path) -> None:
    bag = write_rosbag(tmp_path / "bag", pose_messages("/a") + pose_messages("/b"))

    refused = cli("evaluate", run, "--attained", bag)
    chosen = cli("evaluate", run, "--attained", bag, "--topic", "/b")

    assert refused.status == 2
    assert "--topic" in refused.message
    assert "/a" in refused.message
    # It is read, but too short to be compared.
    assert chosen.status == 2
    assert "--topic" not in chosen.message
    assert "samples" in chosen.message


@pytest.mark.parametrize("files", [1, 3])
def test_repeats_have_figures_that_joints_do_not_show(
    cli: Any, repeated: Path, tmp_path: Path, files: int
) -> None:
    before = (repeated / "summary.json").read_bytes()
    recordings = [record_in_one_file(repeated, tmp_path / "all.tum")]
    if files == 3:
        recordings = [tmp_path / f"{name}.tum" for name in RUNS]
        for recording, name, raised in zip(recordings, RUNS, RAISED, strict=True):
            write_tum(recording, *recorded_run(repeated, name, raised))
    arguments = []
    for recording in recordings:
        arguments += ["--attained", recording]

    answer = cli("evaluate", repeated, *arguments, "--json")

    assert answer.status == 0, answer.err
    result = json.loads(answer.out)
    assert result == json.loads((repeated / "evaluation.json").read_text())
    assert (repeated / "summary.json").read_bytes() == before
    assert result["attained"] == [str(recording) for recording in recordings]
    np.testing.assert_allclose(result["transform"][:3], FRAME[:3], atol=1e-5)

    # One frame for all runs: their differences remain.
    external = result["iso_9283_style"]
    self_reported = json.loads(before)["iso_9283_style"]
    distances = np.abs(RAISED)
    spread = distances.mean() + 3.0 * distances.std(ddof=1)
    assert external["witness"] == "external"
    assert self_reported["witness"] == "self-reported"
    assert figures(external)["RP"] == pytest.approx(spread, abs=2e-6)
    assert figures(external)["RT"] == pytest.approx(spread, abs=2e-5)
    assert figures(self_reported)["RP"] == pytest.approx(0.0, abs=1e-6)

    page = (repeated / "report.html").read_text()
    assert "External: from an external recording" in page
    assert "Self-reported: these positions" in page


@pytest.mark.usefixtures("without_common_page")
def test_tables_of_repeats_name_their_source(
    cli: Any, repeated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    file = record_in_one_file(repeated, tmp_path / "all.tum")

    out = cli("evaluate", repeated, "--attained", file).out

    for text in (
        "3 runs",
        "1000.25",
        "ISO 9283-style figures, external",
        "RP mm",
        "stabilisation ms",
        "removed",
    ):
        assert text in out
    assert max(len(line) for line in out.splitlines() if "evaluation.json" not in line) <= 80


@pytest.mark.usefixtures("without_common_page")
def test_offsets_are_those_of_a_bags_clock(cli: Any, repeated: Path, tmp_path: Path) -> None:
    ahead_ns = 1_700_000_000_000_000_000
    all_runs = read_trajectory(record_in_one_file(repeated, tmp_path / "all.tum"))
    write_bag(tmp_path / "all.bag", replace(all_runs, epoch_ns=ahead_ns))

    answer = cli("evaluate", repeated, "--attained", tmp_path / "all.bag", "--json")

    first, second, _ = (run["time_offset_ns"] for run in json.loads(answer.out)["runs"])
    stamps, _ = recorded_run(repeated, "01", 0.0)
    assert abs(first - (ahead_ns + 1_000_250_000_000)) < 100_000
    assert abs(second - first - round((stamps[-1] + 3.0) * 1e9)) < 100_000


def test_an_incomplete_recording_is_refused(cli: Any, repeated: Path, tmp_path: Path) -> None:
    two_runs = record_in_one_file(repeated, tmp_path / "two.tum", RUNS[:2])
    stamps, recorded = recorded_run(repeated, "02", 0.0)
    outside_gap = (stamps < 0.7) | (stamps > 0.8)
    write_tum(tmp_path / "holed.tum", stamps[outside_gap], recorded[outside_gap])
    write_tum(tmp_path / "whole.tum", stamps, recorded)
    whole = ("--attained", tmp_path / "whole.tum")
    holed = ("--attained", tmp_path / "holed.tum")

    too_few = cli("evaluate", repeated, "--attained", two_runs)
    with_gap = cli("evaluate", repeated, *whole, *holed, *whole)

    assert too_few.status == 2
    assert "it contains the runs' motion 2 times, but 3 runs completed" in too_few.message
    assert with_gap.status == 2
    assert "recording of run 02" in with_gap.message
    assert "no sample from 0." in with_gap.message
    assert not (repeated / "evaluation.json").exists()


def test_two_recordings_fit_neither_three_runs_nor_one(
    cli: Any, repeated: Path, tmp_path: Path
) -> None:
    twice = ("--attained", record_in_one_file(repeated, tmp_path / "all.tum")) * 2

    of_three = cli("evaluate", repeated, *twice)
    of_one = cli("evaluate", repeated / "01", *twice)

    assert of_three.status == 2
    assert "1, of all runs, or 3, one per run" in of_three.message
    assert of_one.status == 2
    assert "must be 1" in of_one.message
