"""A recorder that cannot keep up loses inputs and notes, and counts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from simbridge.recording.run_directory import RunDirectory
from simbridge.sessions.record import InputRecord, read_events, read_inputs
from simbridge.sessions.recorder import LiveRecorder

MAX_WAITING = 2


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    """Return a new run directory."""
    return RunDirectory.create(tmp_path / "hand", "live")


@pytest.fixture
def recorder(directory: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> LiveRecorder:
    """Return a recorder in which only few inputs and notes may wait."""
    monkeypatch.setattr("simbridge.sessions.recorder.MAX_WAITING", MAX_WAITING)
    return LiveRecorder(directory, ("joint_1", "joint_2"), 0.002, {})


def test_inputs_beyond_the_bound_are_counted(
    recorder: LiveRecorder, directory: RunDirectory
) -> None:
    for number in (1, 2, 3):
        recorder.add_input(InputRecord("twist", 0.0, [0.0] * 6, number))
    recorder.close()

    assert recorder.lost == 1
    assert [record.number for record in read_inputs(directory.path)] == [1, 2]


def test_notes_beyond_the_bound_are_counted(
    recorder: LiveRecorder, directory: RunDirectory
) -> None:
    for name in ("first", "second", "third", "fourth"):
        recorder.note(0.0, name, {})
    recorder.close()

    assert recorder.lost == 2
    assert [event["note"] for event in read_events(directory.path)] == ["first", "second"]


def test_periods_count_with_inputs_and_notes(recorder: LiveRecorder) -> None:
    recorder.note(0.0, "first", {})
    recorder.count_lost(5)
    recorder.close()

    assert recorder.lost == 5
