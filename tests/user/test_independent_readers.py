"""Files of every family, made at random, read the same by an independent reader: evo, pandas, numpy
and rosbags.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pinocchio as pin
import pytest
from evo.tools import file_interface
from hypothesis import settings
from rosbags.highlevel import AnyReader

from simbridge.robot import pose
from simbridge.trajectory import Trajectory, read_trajectory, write_bag

pytestmark = pytest.mark.quick

# make soak reads more files, as it tries more examples of a property.
FILES = 20 if settings().max_examples == 50 else 800
EPOCH = 1_764_097_182_000_000_000
# What files may call the time, x, y, z, qx, qy, qz and qw.
NAMES = (
    ("t", "time", "timestamp", "stamp"),
    *((axis, f"p{axis}", f"t{axis}", f"position.{axis}", f"pos_{axis}") for axis in "xyz"),
    *((f"q{axis}", f"orientation.{axis}", f"quat_{axis}") for axis in "xyzw"),
)


def random_motion(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Times since the first sample, ns, and poses of a smooth motion of 5 to 30 samples."""
    count = int(generator.integers(5, 31))
    steps = generator.integers(5_000_000, 100_000_000, count - 1)
    times = np.concatenate([[0], np.cumsum(steps)])
    seconds = times[:, None] / 1e9

    positions = generator.uniform(-1.0, 1.0, 3) + generator.uniform(-0.3, 0.3, 3) * seconds
    turns = generator.uniform(-2.0, 2.0, 3) + generator.uniform(-0.5, 0.5, 3) * seconds
    return times, np.column_stack([positions, pose.quaternions(turns)])


@pytest.fixture(params=range(4))
def motions(request):
    """A quarter of the random motions, each with its generator."""
    generators = [np.random.default_rng([request.param, k]) for k in range(FILES // 4)]
    return [(generator, *random_motion(generator)) for generator in generators]


def lines_of(rows: np.ndarray, separator: str) -> str:
    return "".join(separator.join(map(repr, row)) + "\n" for row in rows.tolist())


def assert_same(read: Trajectory, positions, wxyz, seconds) -> None:
    """What was read has these positions (T, 3), quaternions (T, 4) and times (T,)."""
    np.testing.assert_allclose(read.poses[:, :3], positions, rtol=0.0, atol=1e-12)
    same = np.abs((read.poses[:, [6, 3, 4, 5]] * wxyz).sum(axis=1))
    np.testing.assert_allclose(same, 1.0, rtol=0.0, atol=1e-9)
    elapsed = np.asarray(seconds) - seconds[0]
    np.testing.assert_allclose(read.elapsed, elapsed, rtol=0.0, atol=1e-6)


def test_evo_reads_the_same_of_tum(tmp_path: Path, motions) -> None:
    for k, (_, times, poses) in enumerate(motions):
        path = tmp_path / f"{k}.txt"
        path.write_text("# made at random\n" + lines_of(np.column_stack([times / 1e9, poses]), " "))

        other = file_interface.read_tum_trajectory_file(path)

        assert_same(
            read_trajectory(path),
            other.positions_xyz,
            other.orientations_quat_wxyz,
            other.timestamps,
        )


def test_evo_reads_the_same_of_kitti(tmp_path: Path, motions) -> None:
    for k, (_, _, poses) in enumerate(motions):
        path = tmp_path / f"{k}.txt"
        rows = np.array([pin.XYZQUATToSE3(row).homogeneous[:3].ravel() for row in poses])
        path.write_text(lines_of(rows, " "))

        other = file_interface.read_kitti_poses_file(path)

        assert_same(
            read_trajectory(path, rate=10.0),
            other.positions_xyz,
            other.orientations_quat_wxyz,
            np.arange(len(poses)) / 10.0,
        )


@pytest.mark.slow
@pytest.mark.parametrize("more", [0, 9])
def test_evo_reads_the_same_of_euroc(tmp_path: Path, motions, more: int) -> None:
    header = "#timestamp, " + ", ".join(
        [f"p_RS_R_{axis} [m]" for axis in "xyz"]
        + [f"q_RS_{axis} []" for axis in "wxyz"]
        + [f"b_{k}_RS_S_{axis} [m s^-1]" for k in "vwa" for axis in "xyz"][:more]
    )
    for k, (generator, times, poses) in enumerate(motions):
        path = tmp_path / f"{k}.csv"
        rows = np.column_stack(
            [poses[:, [0, 1, 2, 6, 3, 4, 5]], generator.normal(size=(len(poses), more))]
        )
        stamps = (EPOCH + times).tolist()
        lines = lines_of(rows, ",").splitlines()
        table = [f"{stamp},{line}" for stamp, line in zip(stamps, lines, strict=True)]
        path.write_text("\n".join([header, *table]) + "\n")

        other = file_interface.read_euroc_csv_trajectory(path)
        read = read_trajectory(path)

        assert read.epoch_ns == EPOCH
        assert_same(read, other.positions_xyz, other.orientations_quat_wxyz, other.timestamps)


def random_names(generator: np.random.Generator) -> list[str]:
    """A name for each role; those of a vector's components are alike."""
    position = int(generator.integers(5))
    quaternion = int(generator.integers(3))
    return [
        str(generator.choice(NAMES[0])),
        *(names[position] for names in NAMES[1:4]),
        *(names[quaternion] for names in NAMES[4:]),
    ]


def random_frame(
    generator: np.random.Generator, times: np.ndarray, poses: np.ndarray
) -> tuple[pd.DataFrame, list[str]]:
    """A table in any order of columns, some of others among them, and the names by role."""
    names = random_names(generator)
    frame = pd.DataFrame(np.column_stack([times / 1e9, poses]), columns=names)
    for other in ("vx", "torque_1", "label"):
        if generator.random() < 0.5:
            frame[other] = generator.normal(size=len(frame))
    order = generator.permutation(frame.columns)
    return frame[order], names


def assert_same_as_frame(read: Trajectory, frame: pd.DataFrame, names: list[str]) -> None:
    values = frame[names].to_numpy()
    assert_same(read, values[:, 1:4], values[:, [7, 4, 5, 6]], values[:, 0])


def write_csv(frame: pd.DataFrame, path: Path, generator: np.random.Generator) -> None:
    separator = str(generator.choice([",", ";", "\t", " "]))
    frame.to_csv(
        path,
        sep=separator,
        # Between blanks the empty name of the index would be lost.
        index=bool(separator != " " and generator.random() < 0.3),
        lineterminator=str(generator.choice(["\n", "\r\n"])),
        encoding=str(generator.choice(["utf-8", "utf-8-sig"])),
        quoting=int(generator.choice([0, 1])),
    )


def write_parquet(frame: pd.DataFrame, path: Path, generator: np.random.Generator) -> None:
    frame.to_parquet(path, compression=str(generator.choice(["snappy", "zstd"])))


def write_npz(frame: pd.DataFrame, path: Path, generator: np.random.Generator) -> None:
    save = np.savez if generator.random() < 0.5 else np.savez_compressed
    save(path, **{name: frame[name].to_numpy() for name in frame.columns})


def read_csv(path: Path) -> pd.DataFrame:
    header = path.read_text(encoding="utf-8-sig").partition("\n")[0]
    separator = next((separator for separator in ",;\t" if separator in header), " ")
    return pd.read_csv(path, sep=separator)


def read_npz(path: Path) -> pd.DataFrame:
    with np.load(path) as arrays:
        return pd.DataFrame({name: arrays[name] for name in arrays.files})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "write", "read_again"),
    [
        (".csv", write_csv, read_csv),
        (".parquet", write_parquet, pd.read_parquet),
        (".npz", write_npz, read_npz),
    ],
)
def test_pandas_reads_the_same_by_names(
    tmp_path: Path,
    motions,
    suffix: str,
    write: Callable[..., None],
    read_again: Callable[[Path], pd.DataFrame],
) -> None:
    for k, (generator, times, poses) in enumerate(motions):
        path = tmp_path / f"{k}{suffix}"
        frame, names = random_frame(generator, times, poses)
        write(frame, path, generator)

        read = read_trajectory(path)

        assert_same_as_frame(read, read_again(path), names)


@pytest.mark.slow
def test_rosbags_reads_the_same_of_bags(tmp_path: Path, motions) -> None:
    # A bag takes ten times as long as any other file.
    for k, (generator, times, poses) in enumerate(motions[::3]):
        path = tmp_path / f"{k}{generator.choice(['.bag', '.mcap'])}"
        write_bag(path, Trajectory(times / 1e9, poses, epoch_ns=EPOCH), topic="/tool")

        stamps, values = messages_of(path)
        read = read_trajectory(path)

        assert read.epoch_ns == EPOCH
        assert_same(read, values[:, :3], values[:, [6, 3, 4, 5]], (stamps - EPOCH) / 1e9)


def messages_of(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The stamps, ns, and poses of the messages in a bag."""
    stamps = []
    poses = []
    with AnyReader([path]) as bag:
        for connection, _, data in bag.messages():
            message = bag.deserialize(data, connection.msgtype)
            stamp = message.header.stamp
            stamps.append(stamp.sec * 10**9 + stamp.nanosec)
            position = message.pose.position
            turn = message.pose.orientation
            poses.append([position.x, position.y, position.z, turn.x, turn.y, turn.z, turn.w])
    return np.array(stamps), np.array(poses)
