"""`simbridge evaluate`: an external recording with known clock, frame and error compared with self-reports."""

from __future__ import annotations

import json
import re
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import pose
from simbridge.trajectory import Trajectory, write_bag, write_tum
from tests.trajectory.test_bags import made, poses

Array = NDArray[Any]

FRAME = np.array([0.5, -1.0, 2.0, *pose.quaternions([0.3, -0.4, 0.9])])
MOUNT = np.array([0.0, 0.0, 0.0, *pose.quaternions([0.1, 0.7, -0.2])])
OFFSET = 1000.25


def outside(positions: Array, rotations: Array) -> Array:
    """Poses in base_link as a tracker in FRAME records a body that is mounted on the tool with a rotation MOUNT."""
    back = pose.conjugate(FRAME[3:])
    seen = pose.rotate(back, positions - FRAME[:3])
    return np.hstack([seen, pose.multiply(pose.multiply(back, rotations), MOUNT[3:])])


@pytest.fixture
def run(square_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(square_run, tmp_path / "run"))


@pytest.fixture
def tracker(run: Path, tmp_path: Path) -> Path:
    """The true motion: the arm bends in a wave of 0.3 mm along z that its joints do not show."""
    evaluation = Evaluation.of(RunDirectory.open(run))
    t, attained = evaluation.log.stamp, evaluation.attained
    bent = attained[:, :3] + np.stack([0.0 * t, 0.0 * t, 3e-4 * np.sin(9.0 * t)], axis=1)
    write_tum(tmp_path / "tracker.tum", t + OFFSET, outside(bent, attained[:, 3:]))
    return tmp_path / "tracker.tum"


def test_the_external_measurement_shows_what_the_arm_does_not_report(
    cli: Any, run: Path, tracker: Path
) -> None:
    answer = cli("evaluate", run, "--attained", tracker, "--json")
    assert answer.status == 0
    result = json.loads(answer.out)
    assert result["time_offset_s"] == pytest.approx(OFFSET, abs=1e-4)
    np.testing.assert_allclose(result["transform"][:3], FRAME[:3], atol=1e-4)
    error = result["tracking_error"]
    summary = json.loads((run / "summary.json").read_text())
    assert error["self_reported"]["position_m"]["rms"] == pytest.approx(
        summary["tracking_error"]["position_m"]["rms"], rel=1e-2
    )
    wave = 3e-4 / np.sqrt(2.0)
    assert result["witness_minus_self"]["position_m"]["rms"] == pytest.approx(wave, rel=0.02)
    together = np.hypot(error["self_reported"]["position_m"]["rms"], wave)
    assert error["witness"]["position_m"]["rms"] == pytest.approx(together, rel=0.05)
    contour = result["contour_error"]
    assert contour["witness"]["position_m"]["rms"] > contour["self_reported"]["position_m"]["rms"]
    # The body's mounting on the tool is removed.
    assert error["witness"]["rotation_rad"]["rms"] < 1e-3


def test_position_and_rotation_errors_are_each_given_without_their_own_delay(
    cli: Any, tmp_path: Path
) -> None:
    # The solver turns the tool 9 ms later than it moves it.
    t = np.arange(101) * 0.02
    positions = np.column_stack(
        [0.75 + 0.03 * np.sin(2.0 * t), 0.164 + 0.03 * np.sin(3.0 * t), 0.3 + 0.0 * t]
    )
    turns = pose.quaternions(np.outer(np.sin(2.5 * t), [0.0, 0.0, 0.3]))
    down = np.array([np.sqrt(0.5), -np.sqrt(0.5), 0.0, 0.0])
    write_tum(tmp_path / "weave.tum", t, np.hstack([positions, pose.multiply(turns, down)]))
    run = tmp_path / "run"
    printed = cli("run", tmp_path / "weave.tum", "--out", run).out
    assert re.search(
        r"The arm lagged the reference by .*\. The rotation lagged the reference by .*\.\n", printed
    )
    evaluation = Evaluation.of(RunDirectory.open(run))
    write_tum(
        tmp_path / "seen.tum",
        evaluation.log.stamp,
        outside(evaluation.attained[:, :3], evaluation.attained[:, 3:]),
    )
    result = json.loads(cli("evaluate", run, "--attained", tmp_path / "seen.tum", "--json").out)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["rotation_delay_s"] > summary["delay_s"] + 5e-3
    assert [result[key] for key in ("delay_of", "delay_s", "rotation_delay_s")] == [
        summary[key] for key in ("delay_of", "delay_s", "rotation_delay_s")
    ]
    for name in ("self_reported", "witness"):
        for part in ("position_m", "rotation_rad"):
            left, error = (
                result[key][name][part]["rms"] for key in ("delay_compensated", "tracking_error")
            )
            assert left == pytest.approx(
                summary["delay_compensated"][part]["rms"], rel=0.05, abs=1e-7
            )
            assert left <= error
        assert left < 0.1 * error


def test_the_offset_of_a_bag_is_that_of_its_own_clock_to_the_microsecond(
    cli: Any, run: Path, tmp_path: Path
) -> None:
    evaluation = Evaluation.of(RunDirectory.open(run))
    ahead, attained = 1_700_000_000_500_000_000, evaluation.attained
    seen = Trajectory(
        evaluation.log.stamp, outside(attained[:, :3], attained[:, 3:]), epoch_ns=ahead
    )
    write_bag(tmp_path / "seen.mcap", seen)
    out = cli("evaluate", run, "--attained", tmp_path / "seen.mcap").out
    result = json.loads((run / "evaluation.json").read_text())
    assert abs(result["time_offset_ns"] - ahead) < 20_000
    assert result["time_offset_s"] == result["time_offset_ns"] / 1e9
    first = " ".join(out.split()).partition(": ")
    assert first[0].startswith(
        "Measured externally for a UR10 with servoj at gain 2000, lookahead 0.03 s"
    )
    assert re.match(
        r"\S+ mm RMS tracking error \(max \S+ mm\) on square_tracking; rotation below 0\.01°\.",
        first[2],
    )
    shown = re.search(r"ahead by (\d+\.\d{6}) s", out)
    assert shown is not None and abs(Decimal(shown[1]) * 10**9 - result["time_offset_ns"]) <= 500


def test_the_first_line_says_that_the_run_ended_early(cli: Any, run: Path, tracker: Path) -> None:
    summary = run / "summary.json"
    summary.write_text(summary.read_text().replace('"completed"', '"interrupted"'))
    first = " ".join(cli("evaluate", run, "--attained", tracker).out.split())
    assert " on square_tracking until the run ended early; rotation " in first


def test_the_result_is_written_into_the_run_and_the_summary_does_not_change(
    cli: Any, run: Path, tracker: Path
) -> None:
    before = (run / "summary.json").read_bytes()
    printed = json.loads(cli("evaluate", run, "--attained", tracker, "--json").out)
    assert json.loads((run / "evaluation.json").read_text()) == printed
    assert (run / "summary.json").read_bytes() == before


def test_the_table_fits_80_columns_and_shows_what_was_estimated(
    cli: Any, run: Path, tracker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = cli("evaluate", run, "--attained", tracker).out
    table = [line for line in out.splitlines() if "self-reported" in line or ", external" in line]
    assert len(table) == 7
    assert max(map(len, table)) <= 80
    for word in ("clock", "1000.25", "frame", "removed", "evaluation.json"):
        assert word in out


def test_without_recorded_orientations_only_positions_are_evaluated(
    cli: Any, run: Path, tmp_path: Path
) -> None:
    evaluation = Evaluation.of(RunDirectory.open(run))
    attained = evaluation.attained
    poses = outside(attained[:, :3], attained[:, 3:])
    poses[:, 3:] = [0.0, 0.0, 0.0, 1.0]
    write_tum(tmp_path / "laser.tum", evaluation.log.stamp, poses)
    result = json.loads(cli("evaluate", run, "--attained", tmp_path / "laser.tum", "--json").out)
    assert result["mean_rotation"] is None
    assert result["tracking_error"]["witness"]["rotation_rad"] is None
    assert result["tracking_error"]["self_reported"]["rotation_rad"] is not None
    assert result["witness_minus_self"]["position_m"]["rms"] < 1e-6
    assert "–" in cli("evaluate", run, "--attained", tmp_path / "laser.tum", "--marker").out


def test_a_recording_of_something_at_rest_is_refused(cli: Any, run: Path, tmp_path: Path) -> None:
    write_tum(tmp_path / "still.tum", np.arange(50.0), np.tile(FRAME, (50, 1)))
    answer = cli("evaluate", run, "--attained", tmp_path / "still.tum")
    assert answer.status == 2
    assert "is at rest" in answer.message
    assert not (run / "evaluation.json").exists()


def test_a_run_or_a_file_that_is_missing_is_named(
    cli: Any, run: Path, tracker: Path, tmp_path: Path
) -> None:
    answer = cli("evaluate", tmp_path / "none", "--attained", tracker)
    assert (answer.status, "none" in answer.message) == (2, True)
    answer = cli("evaluate", run, "--attained", tmp_path / "nothing.tum")
    assert (answer.status, "nothing.tum" in answer.message) == (2, True)


def test_a_bag_with_several_topics_needs_a_topic(cli: Any, run: Path, tmp_path: Path) -> None:
    bag = made(tmp_path / "bag", poses("/a") + poses("/b"))
    refused = cli("evaluate", run, "--attained", bag)
    assert refused.status == 2 and "--topic" in refused.message and "/a" in refused.message
    # It is read, but too short to be compared.
    chosen = cli("evaluate", run, "--attained", bag, "--topic", "/b")
    assert chosen.status == 2 and "--topic" not in chosen.message and "samples" in chosen.message
