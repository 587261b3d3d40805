"""Recordings of RTDE outputs as logs: joints, states, commands and the clock."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.judging.judgement import judge
from simbridge.judging.log import Clock
from simbridge.judging.read_log import LogOptions, read_log
from simbridge.ur.tables import RuntimeState, SafetyMode

TIMES = np.array([10.0, 10.008, 10.016, 10.024])
Q = np.arange(24.0).reshape(4, 6) / 10.0


def write_recording(path, columns, separator=","):
    """A recording with vectors of six columns, and states of one."""
    names = []
    for name, values in columns.items():
        is_vector = np.ndim(values) == 2
        names += [f"{name}_{i}" for i in range(6)] if is_vector else [name]
    rows = np.column_stack(list(columns.values()))
    lines = [separator.join(names)]
    lines += [separator.join("" if np.isnan(x) else repr(x) for x in row) for row in rows.tolist()]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_times_start_at_zero(tmp_path):
    path = write_recording(tmp_path / "a.csv", {"timestamp": TIMES, "actual_q": Q})

    log = read_log(path)

    assert log.start == 10.0
    assert log.times == pytest.approx([0.0, 0.008, 0.016, 0.024])
    assert np.array_equal(log.q, Q)


@pytest.mark.parametrize(
    ("name", "first", "clock"),
    [
        ("timestamp", 10.0, Clock.CONTROLLER),
        ("stamp", 10.0, Clock.HOST),
        ("timestamp", 1.7e9, Clock.HOST),
    ],
)
def test_the_clock_is_told_by_name_and_epoch(tmp_path, name, first, clock):
    path = write_recording(tmp_path / "a.csv", {name: TIMES + first, "actual_q": Q})

    assert read_log(path).clock is clock


def test_states_of_the_controller_are_kept(tmp_path):
    columns = {
        "timestamp": TIMES,
        "actual_q": Q,
        "speed_scaling": np.array([1.0, 0.5, 0.5, 1.0]),
        "target_speed_fraction": np.full(4, 0.8),
        "safety_mode": np.array([1.0, 1.0, 3.0, 3.0]),
        "runtime_state": np.array([2.0, 2.0, 2.0, 1.0]),
    }

    log = read_log(write_recording(tmp_path / "a.csv", columns))

    assert log.speed_scaling.values == pytest.approx([0.8, 0.4, 0.4, 0.8])
    assert log.safety_mode.values[-1] == SafetyMode.PROTECTIVE_STOP
    assert log.program_state.values[-1] == RuntimeState.STOPPED


def test_commands_may_be_empty_in_some_rows(tmp_path):
    commands = Q.copy()
    commands[1] = np.nan
    columns = {"timestamp": TIMES, "actual_q": Q, "command_qd": commands}

    log = read_log(write_recording(tmp_path / "a.csv", columns))

    assert len(log.times) == 4
    assert np.array_equal(log.speed_commands.values, Q[[0, 2, 3]])
    assert log.speed_commands.times == pytest.approx([0.0, 0.016, 0.024])


def test_missing_quantities_are_named(tmp_path):
    path = write_recording(tmp_path / "a.csv", {"timestamp": TIMES, "actual_q": Q})

    missing = {entry.quantity for entry in read_log(path).missing}

    assert {"target_q", "commands", "safety mode"} <= missing
    assert "actual_q" not in missing


def test_named_columns_replace_a_header(tmp_path):
    names = ("stamp", *(f"actual_q_{i}" for i in range(6)))
    path = tmp_path / "a.csv"
    np.savetxt(path, np.column_stack([TIMES, Q]), delimiter=",")

    log = read_log(path, LogOptions(columns=names))

    assert np.allclose(log.q, Q)


def write_with_gaps(path, name, rows):
    """Write a recording of a motion in which some rows have no value of a column.

    Args:
        path: The file.
        name: The column.
        rows: Indices of the rows without it.
    """
    times = 0.008 * np.arange(300)
    q = np.sin(times)[:, None] * np.ones(6)
    qd = np.cos(times)[:, None] * np.ones(6)
    columns = {"target_q": q, "target_qd": qd, "actual_q": q, "actual_current": q + 1.0}
    names = ["timestamp", *(f"{column}_{j}" for column in columns for j in range(6))]
    values = np.column_stack([times, *columns.values()])
    values[rows, names.index(name)] = np.nan
    np.savetxt(path, values, delimiter=",", header=",".join(names), comments="")


def test_a_missing_joint_value_is_no_hole(tmp_path):
    write_with_gaps(tmp_path / "log.csv", "actual_q_2", range(100, 111))

    judgement = judge(read_log(tmp_path / "log.csv"), [])

    assert judgement.gaps == ()
    assert judgement.samples == 289
    assert "11 rows without all values of actual_q left out" in judgement.notes


def test_a_missing_current_loses_no_row(tmp_path):
    write_with_gaps(tmp_path / "log.csv", "actual_current_2", range(100, 111))

    judgement = judge(read_log(tmp_path / "log.csv"), [])

    assert judgement.samples == 300
    assert judgement.notes == ()


def test_a_field_of_every_tenth_row_loses_no_row(tmp_path):
    missing = [row for row in range(300) if row % 10]
    write_with_gaps(tmp_path / "log.csv", "actual_q_2", missing)

    judgement = judge(read_log(tmp_path / "log.csv"), [])

    assert judgement.samples == 300
    assert judgement.signals == ("target",)
    assert "actual_q not used: missing in more than half of the rows" in judgement.notes
