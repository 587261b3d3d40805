"""Recordings of a controller as text: every layout that recorders write, and refusals in one
sentence.
"""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from simbridge.errors import InputFileError
from simbridge.planning.scenario import load_scenario
from simbridge.robot.kinematics import tool_path
from simbridge.robot.load import load_robot
from simbridge.trajectory import line_blocks
from simbridge.trajectory.read_options import ReadOptions
from simbridge.trajectory.rtde_recording import is_rtde_recording, read_joint_positions, read_rtde
from simbridge.trajectory.rtde_table import RtdeTable
from tests.memory import takes_at_most

TIMES = np.array([10.0, 10.008, 10.016, 10.024])
Q = np.arange(24.0).reshape(4, 6) / 10.0


def table(names: list[str], rows: np.ndarray, separator: str = " ", end: str = "\n") -> str:
    return (
        end.join(
            [separator.join(names), *(separator.join(map(repr, row)) for row in rows.tolist())]
        )
        + end
    )


def joint_names(form: str = "target_q_{}", first: int = 0) -> list[str]:
    return [form.format(i + first) for i in range(6)]


ROWS = np.column_stack([TIMES, Q])


@pytest.mark.slow
@pytest.mark.parametrize("separator", [" ", ",", ";", "\t", ", "])
@pytest.mark.parametrize(
    ("form", "first"),
    [("target_q_{}", 0), ("target_q[{}]", 0), ("target_q_{}", 1), ("target_q{}", 0)],
)
def test_separators_and_indices_of_all_recorders_are_read(tmp_path, separator, form, first):
    file = tmp_path / "recording.csv"
    file.write_text(table(["timestamp", *joint_names(form, first)], ROWS, separator))

    assert is_rtde_recording(file)

    recording = read_rtde(file)

    assert np.array_equal(recording.times, TIMES)
    assert np.array_equal(recording.columns["target_q"], Q)
    assert recording.notes == ()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_gzip_and_all_line_ends_are_read(tmp_path, end):
    file = tmp_path / "recording.csv.gz"
    file.write_bytes(gzip.compress(table(["timestamp", *joint_names()], ROWS, end=end).encode()))

    assert is_rtde_recording(file)
    assert np.array_equal(read_rtde(file).columns["target_q"], Q)


def test_decimal_commas_between_semicolons_are_read(tmp_path):
    file = tmp_path / "recording.csv"
    text = table(["timestamp", *joint_names()], ROWS, ";").replace(".", ",")
    file.write_text(text)

    assert np.array_equal(read_rtde(file).columns["target_q"], Q)


def test_commas_beside_decimal_points_are_refused(tmp_path):
    file = tmp_path / "recording.csv"
    file.write_text(table(["timestamp", *joint_names()], ROWS, ";").replace("1.3", "1,3"))

    with pytest.raises(InputFileError, match="'1,3' is not a number"):
        read_rtde(file)


def test_dates_are_not_taken_for_seconds(tmp_path):
    file = tmp_path / "recording.csv"
    text = table(["timestamp", *joint_names()], ROWS, ",")
    header, _, rows = text.partition("\n")
    file.write_text(header + "\n2025-10-09 09:10:00.002," + rows.split(",", 1)[1])

    with pytest.raises(InputFileError, match="write times in seconds"):
        read_rtde(file)


def test_other_columns_may_be_words_or_empty(tmp_path):
    file = tmp_path / "recording.csv"
    names = ["time", "_id", "timestamp", *joint_names(), "payload"]
    lines = [",".join(names)]
    lines += [
        ",".join(["", "2021:10:05", repr(row[0]), *map(repr, row[1:]), ""]) for row in ROWS.tolist()
    ]
    file.write_text("\n".join(lines) + "\n")

    recording = read_rtde(file)

    assert np.array_equal(recording.times, TIMES)
    assert np.array_equal(recording.columns["target_q"], Q)


def test_doubled_and_broken_rows_are_dropped(tmp_path):
    file = tmp_path / "recording.csv"
    text = table(["timestamp", *joint_names()], ROWS[[0, 1, 1, 2, 3, 3]], ",").replace("1.3", "")
    file.write_text(text)

    recording = read_rtde(file)

    assert np.array_equal(recording.times, TIMES[[0, 1, 3]])
    assert recording.notes == (
        "1 lost sample left out (line 5)",
        "2 rows with the timestamp of the previous row left out (lines 4 and 7)",
    )


def test_a_cut_file_keeps_its_whole_rows(tmp_path):
    text = table(["timestamp", *joint_names()], ROWS)
    plain = tmp_path / "cut.csv"
    compressed = tmp_path / "cut.csv.gz"
    plain.write_text(text[:-12])

    whole = read_rtde(plain)

    assert np.array_equal(whole.times, TIMES[:3])
    assert "truncated in line 5" in whole.notes[0]

    noise = np.random.default_rng(0).normal(size=(400, 6))
    rows = np.column_stack([np.arange(400) * 0.008, noise])
    data = gzip.compress(table(["timestamp", *joint_names()], rows).encode())
    compressed.write_bytes(data[: len(data) // 2])

    half = read_rtde(compressed)

    assert 100 < len(half.times) < 300
    assert np.array_equal(half.columns["target_q"], noise[: len(half.times)])
    assert "truncated or damaged" in half.notes[0]


def test_a_last_number_may_be_cut(tmp_path):
    """Cut to "2." the last joint would be 2.0, not 2.3."""
    file = tmp_path / "cut.csv"
    text = table(["timestamp", *joint_names()], ROWS)
    for cut in (text[:-2], text[:-1]):
        file.write_text(cut)

        recording = read_rtde(file)

        assert np.array_equal(recording.columns["target_q"], Q[:3])
        assert recording.notes == (
            "the file may be truncated in line 5, which has no line end: only the rows before it "
            "are used",
        )

        commands, notes = read_joint_positions(file)

        assert np.array_equal(commands, Q[:3])
        assert notes == recording.notes


@pytest.mark.parametrize("word", ["nan", "NaN", "", "inf"])
def test_missing_values_are_called_so(tmp_path, word):
    file = tmp_path / "recording.csv"
    file.write_text(table(["timestamp", *joint_names()], ROWS, ",").replace("1.3", word))

    assert read_rtde(file).notes == ("1 lost sample left out (line 4)",)


def test_lost_fields_that_are_not_needed_lose_nothing(tmp_path):
    file = tmp_path / "recording.csv"
    names = ["timestamp", *joint_names(), *(f"actual_q_{k}" for k in range(6))]
    rows = np.column_stack([ROWS, ROWS[:, 1:]])
    rows[2, 9] = np.nan
    file.write_text(table(names, rows, ","))

    assert read_rtde(file).notes == ("1 lost sample left out (line 4)",)
    assert read_rtde(file, ["target_q"]).notes == ()


def test_a_vector_without_a_whole_row_is_left_out(tmp_path):
    file = tmp_path / "recording.csv"
    names = ["timestamp", *joint_names(), *(f"actual_q_{k}" for k in range(6))]
    rows = np.column_stack([ROWS, ROWS[:, 1:]])
    rows[:, 9] = np.nan
    file.write_text(table(names, rows, ","))

    recording = read_rtde(file)

    assert list(recording.columns) == ["target_q"]
    assert recording.notes == ("actual_q not read: no row has all elements",)


def test_lost_commands_are_counted(tmp_path):
    file = tmp_path / "joints.csv"
    file.write_text(table(["timestamp", *joint_names()], ROWS, ",").replace("1.3", ""))

    commands, notes = read_joint_positions(file)

    assert len(commands) == len(ROWS) - 1
    assert notes == ("1 lost sample left out (line 4)",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        (
            "1.0 2.0 3.0\n1.1 2.0 3.0\n",
            "line 1: it has no header: the first line must name the columns",
        ),
        ("timestamp a b\n1 2 3\n", "it has no columns target_q_0 to target_q_5"),
        (" ".join(joint_names()) + "\n1 2 3 4 5 6\n", "it has no column timestamp"),
        (
            table(["timestamp", *joint_names()], ROWS[:1]),
            "it has 1 sample; at least two are needed",
        ),
        (
            table(["timestamp", *joint_names()], ROWS[[0, 2, 1]]),
            "line 4, timestamp: the clock jumps back here",
        ),
        (
            table(["timestamp", *joint_names()], ROWS).replace("1.3", "x"),
            "line 4: 'x' is not a number",
        ),
        ("timestamp target_q_0\n1 2\n1\n2 3\n", "no columns target_q_0 to target_q_5"),
        (
            table(["timestamp", *joint_names()], ROWS).replace(" 1.3", ""),
            "line 4: 6 columns, but the header names 7",
        ),
    ],
)
def test_another_file_is_refused_in_a_sentence(tmp_path, text, reason):
    file = tmp_path / "recording.csv"
    file.write_text(text)

    with pytest.raises(InputFileError) as refused:
        read_rtde(file)

    assert reason in str(refused.value)


@pytest.mark.parametrize("form", ["target_q_{}", "q_{}", "q{}", "command[{}]", "actual_q_{}"])
def test_commands_need_no_times(tmp_path, form):
    file = tmp_path / "commands.csv"
    file.write_text(table(joint_names(form), Q, ","))

    assert np.array_equal(read_joint_positions(file)[0], Q)


def test_poses_and_joints_of_a_recording_are_trajectories(tmp_path):
    """A controller's poses are in the pendant's base, half a turn from base_link."""
    robot = load_robot("ur5e")
    joints = robot.home + np.linspace(0.0, 0.2, 20)[:, None]
    poses = tool_path(robot, joints)
    half_turn = np.array([-1.0, -1.0, 1.0])
    vectors = np.zeros((20, 3))
    names = [*joint_names("actual_q_{}"), *joint_names("actual_TCP_pose_{}")]
    rows = np.column_stack([np.arange(20) * 0.008, joints, poses[:, :3] * half_turn, vectors])
    file = tmp_path / "moves.csv.gz"
    file.write_bytes(gzip.compress(table(["timestamp", *names], rows).encode()))

    from_joints = load_scenario(file, robot, ReadOptions(column="actual_q"))

    assert from_joints.name == "moves"
    assert np.abs(from_joints.trajectory.poses - poses).max() < 1e-12

    from_poses = load_scenario(file, robot).trajectory

    assert np.abs(from_poses.poses[:, :3] - poses[:, :3]).max() < 1e-12
    assert np.array_equal(np.abs(from_poses.poses[0, 3:]).round(12), [0.0, 0.0, 1.0, 0.0])

    with pytest.raises(InputFileError, match="no columns target_q_0 to target_q_5"):
        load_scenario(file, robot, ReadOptions(column="target_q"))

    file.write_bytes(gzip.compress(table(["timestamp", *names[:6]], rows[:, :7]).encode()))

    only_joints = load_scenario(file, robot).trajectory

    assert np.abs(only_joints.joints - joints).max() < 1e-12

    names = [*joint_names("actual_q_{}"), *joint_names("target_q_{}")]
    rows = np.column_stack([rows[:, 0], joints, joints])
    file.write_bytes(gzip.compress(table(["timestamp", *names], rows).encode()))

    with pytest.raises(InputFileError, match="actual_q and target_q: choose one with --from"):
        load_scenario(file, robot)


def test_columns_of_another_kind_of_file_are_refused(tmp_path):
    file = tmp_path / "poses.csv"
    file.write_text("t,x,y,z,qx,qy,qz,qw\n0,0,0,0,0,0,0,1\n1,0,0,0,0,0,0,1\n")

    with pytest.raises(InputFileError, match="not a controller's recording"):
        load_scenario(file, load_robot("ur5e"), ReadOptions(column="actual_q"))


def test_a_compressed_recording_cannot_fill_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("simbridge.trajectory.rtde_table.MAX_SAMPLES_TEXT", 1 << 20)
    header = b"timestamp target_q_0 target_q_1 target_q_2 target_q_3 target_q_4 target_q_5\n"
    text = header + b"0.5 0.5 0 0 0 0 0\n" * 200_000
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(text) * 100)
    with takes_at_most(20):
        assert is_rtde_recording(tmp_path / "bomb.csv.gz")

        with pytest.raises(InputFileError, match="larger than 1 MiB when it is decompressed"):
            read_rtde(tmp_path / "bomb.csv.gz")


def test_several_compressed_parts_are_read(tmp_path):
    text = table(["timestamp", *joint_names()], ROWS).encode()
    (tmp_path / "parts.csv.gz").write_bytes(gzip.compress(text[:100]) + gzip.compress(text[100:]))

    assert np.array_equal(read_rtde(tmp_path / "parts.csv.gz").columns["target_q"], Q)


def test_a_fifo_is_no_recording(tmp_path):
    os.mkfifo(tmp_path / "fifo")

    assert not is_rtde_recording(tmp_path / "fifo")


def test_a_needed_field_without_numbers_is_refused(tmp_path):
    file = tmp_path / "empty.csv"
    names = ["timestamp", *joint_names(), *joint_names("actual_TCP_pose_{}")]
    file.write_text(table(names, np.column_stack([ROWS, np.full((4, 6), np.nan)])))

    with pytest.raises(
        InputFileError, match=("contain no numbers; it has target_q: choose one with")
    ):
        read_rtde(file, ["actual_TCP_pose"])


def test_many_blocks_are_read_as_one(tmp_path, monkeypatch):
    rows = [f"{0.002 * k:.3f},{k},," for k in range(40)]
    rows[7] = "0.014,,,"
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["timestamp,speed_scaling,target_q_0,word", *rows]) + "\n")
    monkeypatch.setattr(line_blocks, "BLOCK_BYTES", 50)

    table = RtdeTable(path, ())
    values, lines = table.rows([0, 1])

    np.testing.assert_array_equal(lines, np.arange(2, 42))
    np.testing.assert_allclose(values[:, 0], 0.002 * np.arange(40))
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(values[:, 1])), [7])
