"""What a reader leaves out of a file is said by every command: how many rows, where, and why."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from tests.trajectory.tables.test_motive import motive

COUNT = 100
TIMES = 0.02 * np.arange(COUNT)
PROGRESS = np.linspace(0.0, 1.0, COUNT) ** 3 * (
    10.0 - 15.0 * np.linspace(0.0, 1.0, COUNT) + 6.0 * np.linspace(0.0, 1.0, COUNT) ** 2
)
TOOL_DOWN = (1.0, 0.0, 0.0, 0.0)
COMMANDS = ("inspect", "check")


def poses() -> list[list[float]]:
    """Time, position and quaternion: 0.1 m along x, from rest to rest."""
    return [
        [time, 0.65 + 0.1 * progress, 0.15, 0.35, *TOOL_DOWN]
        for time, progress in zip(TIMES.tolist(), PROGRESS.tolist(), strict=True)
    ]


def write(path, rows, *header):
    path.write_text("\n".join([*header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def with_lost(rows, lost, value):
    """The rows, with the pose of some replaced by a value."""
    return [[row[0], *[value] * 7] if index in lost else row for index, row in enumerate(rows)]


@pytest.fixture
def answers(cli, tmp_path, without_pages):
    """What commands print about a file, each as one line."""

    def answers(path, *options, commands=COMMANDS):
        printed = []
        for command in commands:
            out = ("--out", tmp_path / "runs") if command == "run" else ()
            answer = cli(command, path, *options, *out)
            assert answer.status == 0, answer.message
            printed.append(answer.message)
        return printed

    return answers


@pytest.mark.parametrize("value", ["nan", pytest.param("", marks=pytest.mark.soak)])
def test_lost_samples_are_said(answers, tmp_path, value) -> None:
    rows = with_lost(poses(), {50, 51, 52}, value)
    path = write(tmp_path / "lost.csv", rows, "t,x,y,z,qx,qy,qz,qw")

    for message in answers(path, commands=("inspect", "check", "run")):
        assert "3 lost samples left out (lines 52 to 54)" in message


def test_repeated_rows_are_said(answers, tmp_path) -> None:
    rows = poses()
    rows.insert(50, rows[49])

    for message in answers(write(tmp_path / "repeated.csv", rows, "t,x,y,z,qx,qy,qz,qw")):
        assert "1 repeated row left out (line 52)" in message


def test_lost_frames_of_motion_capture_are_said(answers, tmp_path) -> None:
    rows = [
        [k, time, *quaternion, x, y, z, 1, 2, 3]
        for k, (time, x, y, z, *quaternion) in enumerate(poses())
    ]
    for row in rows[50:53]:
        row[2:] = [""] * 10
    path = write(tmp_path / "motive.csv", rows, *motive(unit="Meters"))

    for message in answers(path, "--transform", "0", "0", "0", "0", "0", "0", "1"):
        assert "3 lost samples left out (lines 58 to 60)" in message


@pytest.fixture
def cut_recording(tmp_path):
    """A controller's recording that is cut off inside its gzip stream."""
    noise = np.random.default_rng(1).normal(0.0, 1e-9, (COUNT, 3))
    names = [f"actual_TCP_pose_{k}" for k in range(6)] + [f"target_q_{k}" for k in range(6)]
    lines = [",".join(["timestamp", *names])]
    for row, (dx, dy, dz) in zip(poses(), noise.tolist(), strict=True):
        pose = [-row[1] + dx, -row[2] + dy, row[3] + dz, 0.0, np.pi, 0.0]
        lines.append(",".join(map(repr, [row[0], *pose, *[0.1] * 6])))
    data = gzip.compress("\n".join(lines).encode())
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(data[: len(data) // 2])
    return path


def test_a_cut_recording_is_no_silent_half(answers, cli, cut_recording) -> None:
    for message in answers(cut_recording):
        assert "the compressed file is truncated or damaged: only the rows before" in message

    answer = cli("identify", cut_recording, "--robot", "ur10")

    assert "truncated or damaged" in " ".join((answer.out + answer.err).split())


@pytest.fixture
def unstamped(tmp_path):
    """A controller's recording without a timestamp, at 50 Hz."""
    rows = [[-row[1], -row[2], row[3], 0.0, np.pi, 0.0] for row in poses()]
    names = ",".join(f"actual_TCP_pose_{k}" for k in range(6))
    return write(tmp_path / "unstamped.csv", rows, names)


def test_a_recording_without_stamps_takes_a_rate(cli, unstamped) -> None:
    assert "if its rate is known, add --rate HZ" in cli("inspect", unstamped).message

    answer = cli("inspect", unstamped, "--rate", "50")

    assert "100 poses, 50 Hz, a controller's actual_TCP_pose, placed from base" in " ".join(
        answer.out.split()
    )


def test_chosen_poses_stay_in_the_pendants_base(cli, unstamped) -> None:
    roles = ("x", "y", "z", "rx", "ry", "rz")
    columns = ",".join(f"{role}=actual_TCP_pose_{k}" for k, role in enumerate(roles))

    chosen = cli("inspect", unstamped, "--rate", "50", "--columns", columns)

    assert "placed from base" in " ".join(chosen.out.split())
    extent = "x 0.6500 to 0.7500, y 0.1500 to 0.1500"
    assert extent in " ".join(chosen.out.split())
    assert extent in " ".join(cli("inspect", unstamped, "--rate", "50").out.split())


@pytest.mark.parametrize("unit", ["x[m]", "rx[rad]"])
def test_the_units_of_a_recording_may_be_stated(cli, unstamped, unit: str) -> None:
    answer = cli("inspect", unstamped, "--rate", "50", "--columns", unit)

    assert "placed from base" in " ".join(answer.out.split())


def test_other_units_of_a_recording_are_refused(cli, unstamped) -> None:
    answer = cli("inspect", unstamped, "--rate", "50", "--columns", "x[mm]")

    assert answer.status == 2
    assert "a controller's recording is in s, m and rad" in answer.message


def test_identification_advises_no_rate(cli, unstamped) -> None:
    answer = cli("identify", unstamped)

    assert answer.status == 2
    assert "no column timestamp" in answer.message
    assert "--rate" not in answer.message


@pytest.fixture
def long_loss(tmp_path):
    """A table that has lost 30 samples, 0.6 s."""
    rows = with_lost(poses(), set(range(50, 80)), "nan")
    return write(tmp_path / "long.csv", rows, "t,x,y,z,qx,qy,qz,qw")


def test_many_lost_samples_are_a_gap(cli, long_loss) -> None:
    answer = cli("check", long_loss)

    assert answer.status != 0
    assert "1 gap: 0.620 s after 0.9800 s" in answer.message


@pytest.mark.parametrize("treatment", ["interpolate", "hold", "split"])
def test_every_treatment_takes_lost_samples(cli, long_loss, treatment: str) -> None:
    answer = cli("check", long_loss, "--gaps", treatment, "--on-limits", "limit")

    assert "30 lost samples left out (lines 52 to 81)" in answer.message
    assert "1 gap: 0.620 s after 0.9800 s" in answer.message
    assert answer.status == 0
