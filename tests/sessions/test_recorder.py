"""A recorder writes the fate of inputs; if it cannot keep up, it counts what it loses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simbridge.recording.run_directory import RunDirectory
from simbridge.sessions.channel import Period
from simbridge.sessions.inputs import Fate
from simbridge.sessions.phases import LivePhase, Order
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


def test_a_refused_input_leaves_the_one_before_it_open(
    recorder: LiveRecorder, directory: RunDirectory
) -> None:
    recorder.add_input(InputRecord("twist", 0.0, [0.0] * 6, 1))
    recorder.add_input(InputRecord("twist", 0.001, None, fate="rejected", received=0.001))
    recorder.take([], [])

    recorder.take([taking_period(1)], [])
    recorder.close()

    assert [record.fate for record in read_inputs(directory.path)] == ["accepted", "rejected"]


def taking_period(number: int) -> Period:
    """Return a period in which the loop takes an input."""
    return Period(
        index=0,
        now=0.002,
        rate=1.0,
        engagement=1,
        order=Order.NONE,
        number=number,
        fate=Fate.ACCEPTED,
        phase=LivePhase.IDLE,
        speed=1.0,
        solver=0.0,
        causes=(),
        target=np.zeros(7),
        solution=np.zeros(2),
        setpoint=np.zeros(2),
    )
