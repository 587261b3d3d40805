"""Files of what was sent to an arm, beside its log."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import InputFileError
from simbridge.judging.read_log import LogOptions, read_log

TIMES = 100.0 + 0.008 * np.arange(5)
Q = np.arange(30.0).reshape(5, 6) / 10.0
JOINTS = [f"q_{i}" for i in range(6)]


def write_table(path, names, rows):
    lines = [",".join(names), *(",".join(map(repr, row)) for row in np.array(rows).tolist())]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def log(tmp_path):
    """The path of a recording from 100.000 to 100.032 s."""
    names = ["timestamp", *(f"actual_{name}" for name in JOINTS)]
    return write_table(tmp_path / "log.csv", names, np.column_stack([TIMES, Q]))


def test_commands_with_times_are_placed_by_the_logs_clock(tmp_path, log):
    sent = write_table(tmp_path / "sent.csv", ["t", *JOINTS], np.column_stack([TIMES - 0.004, Q]))

    commands = read_log(log, LogOptions(goals=sent)).position_commands

    assert np.array_equal(commands.values, Q)
    assert commands.times == pytest.approx(TIMES - 100.004)


def test_commands_without_times_keep_their_order(tmp_path, log):
    sent = write_table(tmp_path / "sent.csv", JOINTS, Q)

    commands = read_log(log, LogOptions(goals=sent)).position_commands

    assert commands.times is None
    assert np.array_equal(commands.values, Q)


def test_times_of_an_earlier_recording_leave_only_the_order(tmp_path, log):
    sent = write_table(tmp_path / "sent.csv", ["t", *JOINTS], np.column_stack([TIMES - 50.0, Q]))

    judged = read_log(log, LogOptions(goals=sent))

    assert judged.position_commands.times is None
    assert any("only the order" in note for note in judged.notes)


def test_velocities_are_commands_to_speedj(tmp_path, log):
    names = ["t", *(f"command_qd_{i}" for i in range(6))]
    sent = write_table(tmp_path / "sent.csv", names, np.column_stack([TIMES, Q]))

    judged = read_log(log, LogOptions(goals=sent))

    assert judged.position_commands is None
    assert np.array_equal(judged.speed_commands.values, Q)


def test_points_with_time_from_start_are_goals(tmp_path, log):
    names = ["goal", "received", "time_from_start", *JOINTS]
    points = [
        [0, 100.0, 0.0, *Q[0]],
        [0, 100.0, 0.5, *Q[1]],
        [1, 100.02, 0.0, *Q[2]],
        [1, 100.02, 0.4, *Q[3]],
        [1, 100.02, 0.9, *Q[4]],
    ]
    sent = write_table(tmp_path / "goals.csv", names, points)

    first, second = read_log(log, LogOptions(goals=sent)).goals

    assert first.received == 0.0
    assert second.received == pytest.approx(0.02)
    assert np.array_equal(second.times, [0.0, 0.4, 0.9])
    assert np.array_equal(second.q, Q[2:])
    assert second.qd is None


def test_goals_without_the_time_of_receipt_are_refused(tmp_path, log):
    sent = write_table(
        tmp_path / "goals.csv", ["time_from_start", *JOINTS], np.column_stack([TIMES, Q])
    )

    with pytest.raises(InputFileError) as refusal:
        read_log(log, LogOptions(goals=sent))
    assert refusal.value.field == "received"


def test_goals_by_another_clock_are_refused(tmp_path, log):
    names = ["received", "time_from_start", *JOINTS]
    rows = np.column_stack([np.full(5, 9000.0), np.arange(5.0), Q])
    sent = write_table(tmp_path / "goals.csv", names, rows)

    with pytest.raises(InputFileError, match="same clock"):
        read_log(log, LogOptions(goals=sent))


def test_a_file_without_joints_is_refused(tmp_path, log):
    sent = write_table(tmp_path / "sent.csv", ["t", "x", "y"], np.zeros((3, 3)))

    with pytest.raises(InputFileError, match="six columns of joint positions"):
        read_log(log, LogOptions(goals=sent))


def test_times_that_go_back_are_refused(tmp_path, log):
    rows = np.column_stack([TIMES[::-1], Q])
    sent = write_table(tmp_path / "sent.csv", ["t", *JOINTS], rows)

    with pytest.raises(InputFileError, match="command 2 was sent before"):
        read_log(log, LogOptions(goals=sent))
