"""A live session's figures count its inputs, its latency and what slowed the arm down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import summarize
from simbridge.recording.run_directory import RunDirectory
from simbridge.sessions.figures import SessionFigures
from simbridge.sessions.record import read_inputs
from tests.stepped_sessions import stepped


def read(directory: Path) -> SessionFigures:
    """Return the figures of a session."""
    session = Evaluation.of(RunDirectory.open(directory)).session
    assert session is not None
    return session


def summary_of(directory: Path) -> dict[str, Any]:
    """Return the contents of summary.json."""
    content: dict[str, Any] = json.loads((directory / "summary.json").read_text())
    return content


def test_every_input_is_accepted_rejected_or_superseded(live_run: Path) -> None:
    inputs = summary_of(live_run)["inputs"]

    assert inputs["received"] == inputs["accepted"] + inputs["rejected"] + inputs["superseded"]
    # Eight were replaced at once; a jump, a malformed one, and one while the arm was not engaged
    # were refused.
    assert inputs["superseded"] == 8
    assert inputs["rejected"] == 3
    assert inputs["late"] == 2
    assert inputs["lost_in_log"] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("short_pages")
def test_the_age_counts_the_input_in_force(tmp_path: Path) -> None:
    with stepped(tmp_path / "hand") as session:
        session.engage()
        for _ in range(5):
            session.twist([0.0, 0.0, 0.05, 0.0, 0.0, 0.0])
            session.wait(0.1)
        session.wait(0.3)
    age = summary_of(tmp_path / "hand")["inputs"]["age_s"]

    # The fifth one is in force for 0.2 s, the others for 0.1 s.
    assert age["median"] == pytest.approx(0.06, abs=0.003)
    assert age["max"] == pytest.approx(0.2, abs=0.003)


def test_the_latency_sums_loop_and_servo(live_run: Path) -> None:
    latency = summary_of(live_run)["latency"]

    # On a clock of its own an input is used in the next period; servoj trails by its lookahead,
    # the joints by 0.5 ms.
    assert latency["input_to_command_s"]["median"] == pytest.approx(0.002)

    arm = latency["command_to_arm_s"]

    assert arm["servo_law"] == pytest.approx(0.0305)
    assert arm["correlation"] == pytest.approx(0.0305, abs=0.002)
    assert latency["sum_s"]["median"] == pytest.approx(0.002 + arm["correlation"])


def test_a_replay_has_neither_inputs_nor_a_latency(line_run: Path) -> None:
    summary = summary_of(line_run)

    assert summary["inputs"] is None
    assert summary["latency"] is None


def test_a_session_never_engaged_counts_inputs(never_engaged: Path) -> None:
    summary = summary_of(never_engaged)

    assert summary["samples"] == 0
    assert summary["inputs"]["received"] == 1
    assert summary["inputs"]["rejected"] == 1
    assert summary["inputs"]["age_s"] is None
    assert summary["latency"]["input_to_command_s"] is None
    assert summary["latency"]["sum_s"] is None


def test_a_killed_session_hides_its_lost_inputs(killed_session: Path) -> None:
    summary = summarize(Evaluation.of(RunDirectory.open(killed_session)), "killed")

    assert summary["inputs"] is not None
    assert summary["inputs"]["lost_in_log"] is None
    assert summary["inputs"]["received"] > 10


def test_a_malformed_input_is_read_back_with_its_reason(live_run: Path) -> None:
    refused = [record for record in read_inputs(live_run) if not record.number]

    assert [record.fate for record in refused] == ["rejected"]
    assert refused[0].values == [None] * 7
    assert "seven finite numbers" in refused[0].why


def test_each_cause_has_its_worst_number_and_its_spans(live_run: Path) -> None:
    session = read(live_run)
    causes = {hindrance.worst.text.rsplit(" ", 2)[0]: hindrance for hindrance in session.hindrances}
    swing = next(
        hindrance for hindrance in session.hindrances if hindrance.worst.kind == "joint_velocity"
    )

    assert swing.worst.subject == "wrist_3_joint"
    assert 0.8 < swing.worst.value <= 1.0

    stale = next(hindrance for hindrance in session.hindrances if hindrance.worst.kind == "stale")

    assert 0.2 < stale.worst.value < 0.6
    assert len(stale.spans) >= 1
    assert stale.duration == pytest.approx(float(np.diff(stale.spans).sum()))
    assert {hindrance.worst.kind for hindrance in session.hindrances} >= {
        "max_jump",
        "halted",
        "disengaged",
        "stale",
    }
    assert len(causes) == len(session.hindrances)


def test_states_follow_without_a_gap(live_run: Path) -> None:
    phases = read(live_run).phases

    assert [name for _, _, name in phases][:2] == ["engaged", "tracking"]
    assert "idle" in {name for _, _, name in phases}

    ends = np.array([end for _, end, _ in phases])

    assert np.allclose(ends[:-1], [begin for begin, _, _ in phases][1:], atol=1e-9)


def test_inputs_and_events_have_the_logs_clock(live_run: Path) -> None:
    session = read(live_run)
    used = [record for record in session.inputs if record.index is not None]
    stamps = session.stamps([record.received or 0.0 for record in used])

    assert np.allclose(stamps, session.log.stamp[[record.index or 0 for record in used]], atol=1e-6)


def test_no_period_of_a_whole_log_is_missing(live_run: Path) -> None:
    assert read(live_run).missing_periods == 0
