"""Trajectory files of every kind: text, motion capture, Parquet, npz, and ROS bags (ROS 1, ROS 2, MCAP)."""

from __future__ import annotations

import math
import re
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import InputFileError, InvalidParameter, UnknownName, optional_package
from simbridge.files.decompression import expansion
from simbridge.files.reading import MAX_SAMPLES_TEXT, open_file, read_text
from simbridge.quoting import quoted
from simbridge.trajectory.bag_reader import open_bag
from simbridge.trajectory.bags import bag_recording, candidate_topics
from simbridge.trajectory.columns import (
    LONG,
    MATRIX,
    POSITION,
    QUATERNION,
    ROTATION_VECTOR,
    Choice,
    Table,
    check_column_count,
    columns_flag,
    known_columns,
    roles_named,
)
from simbridge.trajectory.samples import Gaps, Recording, recording_of
from simbridge.trajectory.text import parse_text
from simbridge.trajectory.trajectory import Trajectory

Frame = Literal["base_link", "base"]
Anchor = Literal["start"]
Column = Literal["actual_TCP_pose", "target_TCP_pose", "actual_q", "target_q"]

# What rosbags reads; a directory is a ROS 2 bag.
BAGS = (".bag", ".db3", ".mcap")
ARRAYS = (".parquet", ".npz")
# Files that are met here, and what to do instead.
_INSTEAD = {
    **dict.fromkeys(
        (".urdf", ".xacro", ".toml"), "it describes an arm or a cell: --robot FILE or --cell FILE"
    ),
    **dict.fromkeys(
        (".npy", ".mat", ".xlsx", ".json", ".h5", ".pkl"), "unsupported: save CSV, Parquet or npz"
    ),
    **dict.fromkeys(
        (".gz", ".zip", ".bz2", ".xz", ".zst"), "it is compressed: decompress it first"
    ),
}
# Of arrays; ten million poses: some 640 MB.
_MAX_VALUES = 100_000_000
_Arrays = Mapping[str, "NDArray[np.generic]"]
# Names of arrays: of rotation matrices, and of joints.
_ROTATIONS = re.compile(
    r"(?:.*[._])?(?:r|(?:rot|rotation|orientation)s?)(?:_?mat(?:rix|rices|s)?)?", re.IGNORECASE
)
_JOINTS = re.compile(r"(?:.*[._])?q[a-z]{0,3}(?:[._].*)?|.*joint.*", re.IGNORECASE)
# Where pandas writes an index that has no name.
_INDEX = "__index_level_0__"


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read and how its poses are placed.

    Attributes:
        frame: The frame of its poses: base_link, or the pendant's "base", half a turn about z from it.
        transform: From the file's frame to base_link: x y z (m) qx qy qz qw, premultiplied; none by default.
        anchor: "start" moves the whole motion so that its first pose is a given one, such as the arm's home.
        topic: Which topic of a bag; `/tf:child` names the moving frame of a tf topic, `/poses:2` one of a PoseArray.
            Of motion capture the rigid body.
        frames: Parent and child in a bag's tf: the child's poses in the parent, transforms between them chained.
        column: What of a controller's recording (see `rtde_recording.py`); actual_TCP_pose by default.
        columns: Which columns of a table are used and their units: "t[ns]=stamp,x=px" (see `columns.Choice`).
        rate: Samples per s of a file without times.
        gaps: What is done about gaps of more than 10 sample periods (see `samples.py`); None refuses them.

    Raises:
        UnknownName, InvalidParameter: One of them is not valid, or they contradict each other.
    """

    frame: Frame = "base_link"
    transform: tuple[float, ...] = ()
    anchor: Anchor | None = None
    topic: str | None = None
    column: Column | None = None
    columns: str | None = None
    rate: float | None = None
    frames: tuple[str, ...] = ()
    gaps: Gaps | None = None

    def __post_init__(self) -> None:
        _ = Choice.of(self.columns)
        if self.rate is not None and not 0.0 < self.rate < math.inf:
            raise InvalidParameter("rate", self.rate, "a positive number of samples per second")
        if self.frames and (len(self.frames) != 2 or self.topic is not None):
            raise InvalidParameter(
                "choice of frames", list(self.frames), "PARENT and CHILD of tf, without --topic"
            )
        for name, value, known in (
            ("treatment of gaps", self.gaps, Gaps),
            ("column", self.column, Column),
            ("frame", self.frame, Frame),
            ("anchor", self.anchor, Anchor),
        ):
            if value is not None and value not in get_args(known):
                raise UnknownName(name, str(value), get_args(known))
        if self.transform:
            values = np.asarray(self.transform, dtype=float)
            if (
                values.shape != (7,)
                or not np.isfinite(values).all()
                or abs(np.linalg.norm(values[3:]) - 1.0) > 1e-3
            ):
                needed = "seven finite numbers x y z qx qy qz qw, the quaternion of unit length"
                raise InvalidParameter("transform", list(self.transform), needed)
            if self.frame == "base" or self.anchor is not None:
                other = "--frame base" if self.frame == "base" else "--anchor"
                needed = f"left out with {other}, which also places the poses"
                raise InvalidParameter("transform", list(self.transform), needed)

    @property
    def plain(self) -> bool:
        """Whether no option is set that applies to files only."""
        return self == ReadOptions(self.frame)

    def place(self, recorded: Trajectory, start: ArrayLike = ()) -> Trajectory:
        """The motion in base_link; `start` is the pose (7,) to which `anchor="start"` moves the first one."""
        if self.anchor == "start":
            return recorded.anchor_at(start)
        if self.transform:
            return recorded.transform(self.transform)
        return recorded.from_pendant_base() if self.frame == "base" else recorded


def is_bag(path: str | Path) -> bool:
    """Whether a path names a ROS bag, by its suffix or as a directory."""
    file = Path(path)
    return file.suffix.lower() in BAGS or file.is_dir()


def read_recording(path: str | Path, reading: ReadOptions | None = None) -> Recording:
    """Read a file of any format, with its poses in the file's own frame; gaps are left as they are.

    Raises:
        InputFileError: As `read_trajectory`.
    """
    file, reading = Path(path), reading or ReadOptions()
    topic, frames, rate, choice = (
        reading.topic,
        reading.frames,
        reading.rate,
        Choice.of(reading.columns),
    )
    if is_bag(file):
        if reading.columns is not None:
            raise InputFileError(file, "a bag has no columns; omit --columns")
        return Recording(*read_bag(file, topic, frames=frames, rate=rate))
    if file.suffix.lower() in ARRAYS:
        if topic is not None or frames:
            raise InputFileError(file, "a table has no topics; omit --topic and --frames")
        return recording_of(file, _read_arrays(file, choice, rate), rate)
    if frames:
        raise InputFileError(file, "a text file has no tf; omit --frames")
    instead = _INSTEAD.get(file.suffix.lower())
    try:
        table = parse_text(file, read_text(file, MAX_SAMPLES_TEXT), choice, rate, topic)
    except InputFileError as error:
        # A table may have any name: then its fault is in a later line.
        if instead is None or not file.is_file() or (error.line or 1) > 1:
            raise
        raise InputFileError(file, instead) from None
    return recording_of(file, table, rate)


def read_bag(
    path: str | Path,
    topic: str | None = None,
    *,
    frames: Sequence[str] = (),
    rate: float | None = None,
) -> tuple[Trajectory, str]:
    """Read messages of Pose, PoseWithCovariance or Transform, stamped or not, of Odometry, Path, PoseArray or tf.

    Stamps are the messages' own; where they have none, or all are zero, the times of recording. They are kept in whole
    nanoseconds: the trajectory's `epoch_ns` is the first, and its times are the s since then, each the double nearest
    to its nanoseconds (seconds since 1970 as doubles would be rounded to 0.24 us). Messages out of order are sorted and
    repetitions dropped, with a warning that counts them. Poses are taken as they are. Of a Path the last message is the
    motion, as it grows while it is published; a PoseArray is a motion if it is the only message of its topic, and needs
    the rate.

    Args:
        path: A .bag, .db3 or .mcap file, or the directory of a ROS 2 bag.
        topic: The topic; `/tf:child` (or `/tf:parent>child`) for one transform of a tf topic, `/poses:2` for one pose
            of each PoseArray. None: the only one.
        frames: Parent and child instead of a topic: the transforms of tf between them are chained (see `bags.chain`).
        rate: Samples per s of poses that have no stamps of their own.

    Returns:
        The trajectory, and the frame (`frame_id`) of its poses; "" if the messages leave it empty.

    Raises:
        InputFileError: The bag cannot be read, the topic is missing or ambiguous (the candidates are named), or a
            message, counted from 1, has a value that is not finite, another frame, or a second pose for its instant.
    """
    with open_bag(Path(path)) as bag:
        return bag_recording(bag, topic, frames, rate)


def pose_topics(path: str | Path) -> list[str]:
    """The possible values of `topic` for this bag, most messages first."""
    with open_bag(Path(path)) as bag:
        return candidate_topics(bag)[0]


def read_trajectory(
    path: str | Path,
    frame: Frame = "base_link",
    topic: str | None = None,
    *,
    columns: str | None = None,
    rate: float | None = None,
) -> Trajectory:
    """Read a file of poses: TUM, CSV, motion capture, Parquet, npz, or a ROS bag (docs/trajectories.md).

    In a text file each line is a sample: `t x y z qx qy qz qw` or `t x y z rx ry rz`, in s, m and unit quaternions or
    rotation vectors in rad. `#` begins a comment. A header, or a comment of just these names, may name the columns, in
    any order and among others, and units (`x [mm]`, `t_ns`, `rx (deg)`). For bags see `read_bag`. Gaps are left.

    The path is that of a file (text in UTF-8), or of the directory of a ROS 2 bag; the options are those of
    `ReadOptions`. The trajectory is in base_link.

    Raises:
        InputFileError: The file cannot be read or is no trajectory; with line and column, or topic and message.
        UnknownName: The frame is neither.
    """
    reading = ReadOptions(frame, topic=topic, columns=columns, rate=rate)
    return reading.place(read_recording(path, reading).trajectory)


def check_frame(path: str | Path, frame: str, reading: ReadOptions) -> None:
    """Refuse poses in a frame whose placement relative to base_link is unknown."""
    if reading.transform or reading.anchor is not None or frame.lstrip("/") in ("", reading.frame):
        return
    known = "--frame base, if that is the pendant's; else " if frame.lstrip("/") == "base" else ""
    raise InputFileError(
        path,
        f"its poses are in the frame {quoted(frame)}, not in {reading.frame}. Place it with {known}--transform "
        "x y z qx qy qz qw (0 0 0 0 0 0 1 if it is base_link by another name), or move the motion to the arm with "
        "--anchor start.",
        field="frame_id",
    )


def _read_arrays(path: Path, choice: Choice, rate: float | None = None) -> Table:
    """A Parquet or npz table: its columns are arrays of numbers (T,), or of several a row (T, k), numbered from 0.

    An array (T, 4, 4) or (T, 3, 4) in npz is a matrix of the pose a row, and (T, 3, 3) one of the rotation if its name
    says so and there is no other. Structured arrays are read where no array is of a pose. Parquet needs pyarrow.
    """
    open_file(path).close()
    found = _parquet(path) if path.suffix.lower() == ".parquet" else _npz(path)
    check_column_count(path, len(found))
    matrices = [name for name, array in found.items() if array.shape[1:] in ((4, 4), (3, 4))]
    flat = _flat(found)
    check_column_count(path, len(flat))
    if not (matrices or roles_named(list(flat))):
        tables: dict[str, Any] = {name: array for name, array in found.items() if array.dtype.names}
        for name, array in tables.items():
            alone = (
                len(tables) == 1 and sum(len(other) == len(array) for other in found.values()) == 1
            )
            found |= {
                field if alone else f"{name}.{field}": array[field] for field in array.dtype.names
            }
        flat = _flat(found)
    # Durations, and an index of times without a name, are the time only beside no plain name of one, or if asked for.
    if "t" in choice.columns or (rate is None and "t" not in roles_named(list(flat), rate=1.0)):
        later = {
            "index time" if name == _INDEX else name: array
            for name, array in found.items()
            if array.ndim == 1
        }
        later = {
            name: array
            for name, array in later.items()
            if array.dtype.kind in "Mm" and name not in flat
        }
        flat |= {name: array for name, array in later.items() if roles_named([name]) == {"t"}}
    count = max(map(len, flat.values()), default=0)
    flat = {name: array for name, array in flat.items() if len(array) == count}
    named = roles_named(list(flat)) | choice.columns.keys()
    turns = [
        name
        for name, array in found.items()
        if array.shape == (count, 3, 3) and _ROTATIONS.fullmatch(name)
    ]
    if matrices and not choice.columns:
        turns = matrices[:1]
        flat |= {
            f"{turns[0]}.p{axis}": found[turns[0]][:, row, 3] for row, axis in enumerate("xyz")
        }
    elif len(turns) > 1 or named & {*QUATERNION, *ROTATION_VECTOR}:
        turns = []
    arrays = list(flat.values())
    if turns:
        where = f"table with the matrices {turns[0]}"
        columns = known_columns(path, [*flat, *QUATERNION], choice, where=where, rate=rate)
        columns = replace(
            columns,
            roles=POSITION + MATRIX,
            names=columns.names[:3] + MATRIX,
            indices=columns.indices[:3] + tuple(range(9)),
            units=columns.units[:3] + ("",) * 9,
            understood=f"matrices {turns[0]}",
        )
        parts = [
            *(arrays[i] for i in columns.indices[:3]),
            found[turns[0]][:, :3, :3].reshape(-1, 9),
        ]
    else:
        _refuse_whole_poses(path, list(flat), choice, rate)
        columns = known_columns(path, list(flat), choice, where="table", rate=rate)
        parts = [arrays[i] for i in columns.indices]
    values = np.column_stack(parts).astype(float)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = bad[0]
        reason = f"row {row + 1}: {values[row, column]} is not a finite number"
        raise InputFileError(
            path, reason, field=[*columns.names, ""][min(column, len(columns.names))]
        )
    stamps = [arrays[i] for i in columns.time_indices]
    if len(stamps) == 1 and stamps[0].dtype.kind in "Mm":
        return Table(columns, stamps[0].astype(f"{stamps[0].dtype.kind}8[ns]"), values, ())
    if len(stamps) == 2 or (
        stamps and stamps[0].dtype.kind in "iu" and np.abs(stamps[0]).max(initial=0) >= LONG
    ):
        words = [
            tuple(map(str, row)) for row in zip(*(each.tolist() for each in stamps), strict=True)
        ]
        return Table(columns, words, values, ())
    return Table(columns, stamps[0].astype(float) if stamps else np.zeros(0), values, ())


def _flat(found: _Arrays) -> dict[str, NDArray[np.generic]]:
    """The columns of numbers and dates; of several numbers a row name[0], name[1], ..."""
    numbers = {name: array for name, array in found.items() if array.dtype.kind in "fiuM"}
    flat = {name: array for name, array in numbers.items() if array.ndim == 1}
    for name, array in numbers.items():
        if array.ndim == 2 and array.shape[1] <= 16:
            flat |= {f"{name}[{i}]": array[:, i] for i in range(array.shape[1])}
    return flat


def _parquet(path: Path) -> dict[str, NDArray[np.generic]]:
    arrow, parquet = (
        optional_package(module, "pyarrow", "Reading Parquet", "parquet")
        for module in ("pyarrow", "pyarrow.parquet")
    )
    types = arrow.types
    times = (types.is_timestamp, types.is_duration)
    kinds = (types.is_floating, types.is_integer, *times, types.is_list, types.is_fixed_size_list)
    try:
        file = parquet.ParquetFile(path)
        names = [
            own.name for own in file.schema_arrow if any(is_kind(own.type) for is_kind in kinds)
        ]
        size = sum(
            file.metadata.row_group(k).total_byte_size for k in range(file.metadata.num_row_groups)
        )
        if (
            size > expansion(path.stat().st_size)
            or file.metadata.num_rows * len(names) > _MAX_VALUES
        ):
            raise InputFileError(
                path, f"it holds more than {_MAX_VALUES:,} values, or 50 times its size"
            )
        table = file.read(columns=names)
    except InputFileError:
        raise
    except Exception as problem:
        # A broken file can fail anywhere in pyarrow.
        raise InputFileError(
            path, f"cannot be read as Parquet: {str(problem).rstrip('.')}"
        ) from problem
    found = {}
    for name in table.column_names:
        column = table.column(name).to_numpy()
        if column.dtype == object:
            # Lists of one length are a table; others are no pose.
            lengths = {-1 if row is None else len(row) for row in column}
            if len(lengths) != 1 or -1 in lengths:
                continue
            column = np.stack(list(column))
        found[name] = column
    return found


def _npz(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(item.file_size for item in archive.infolist())
        if size > expansion(path.stat().st_size):
            raise InputFileError(
                path, "it holds more than 50 times its size when it is decompressed"
            )
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files if arrays[name].ndim}
    except InputFileError:
        raise
    except Exception as problem:
        # A broken archive can fail anywhere in zipfile and numpy; arrays of objects are not unpickled.
        raise InputFileError(
            path, f"cannot be read as npz: {str(problem).rstrip('.')}"
        ) from problem


def _refuse_whole_poses(
    path: Path, names: Sequence[str], choice: Choice, rate: float | None
) -> None:
    """Refuse an array of 7 numbers a row, or of 8 with the time, where nothing else is a pose: it has two readings."""
    named = roles_named(names)
    sizes = Counter(name.rpartition("[")[0] for name in names)
    for array in (
        name[:-3] for name in names if name.endswith("[6]") and not _JOINTS.fullmatch(name[:-3])
    ):
        size = sizes[array]
        if size not in (7, 8) or choice.columns or named - {"t"}:
            continue
        columns = [str(names.index(f"{array}[{i}]") + 1) for i in range(size)]
        orders = ([*["t"][: size - 7], *POSITION, *QUATERNION[k:], *QUATERNION[:k]] for k in (0, 3))
        xyzw, wxyz = (
            columns_flag(order, [f"{array}[{i}]" for i in range(size)], columns) for order in orders
        )
        more = (
            "" if size == 8 or "t" in named or rate else "; without a time it needs --rate HZ, too"
        )
        reason = (
            f"{array} has {size} numbers a row, and which of them is w is not stated. If they end in qx qy qz qw, add "
            f"{xyzw}; if in qw qx qy qz, {wxyz}{more}"
        )
        raise InputFileError(path, reason)
