"""A table of poses in the arrays of an npz or a Parquet file, by their names.

An array (T,) is a column; one (T, k) is k columns, numbered from 0: "p[0]". In npz, an array
(T, 4, 4) or (T, 3, 4) holds the matrices of the poses, and one (T, 3, 3) those of the rotations if
its name says so. The fields of a structured array are columns where no other array is of a pose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InputFileError
from simbridge.quoting import quoted, shell_quoted
from simbridge.robot.pose import Array, Flags
from simbridge.text import counted
from simbridge.trajectory.dropped_rows import lost_samples
from simbridge.trajectory.tables.aliases import MATRIX_ENDS, ROTATION_NAMES
from simbridge.trajectory.tables.array_files import NamedArrays, read_arrays
from simbridge.trajectory.tables.choice import Choice
from simbridge.trajectory.tables.column_roles import find_roles
from simbridge.trajectory.tables.header import Header
from simbridge.trajectory.tables.joint_columns import ArmJoints
from simbridge.trajectory.tables.named_columns import pose_columns_of
from simbridge.trajectory.tables.named_joints import are_joints, columns_of
from simbridge.trajectory.tables.pose_advice import (
    MAX_FLAGS,
    KnownColumns,
    PartialReading,
    complete_readings,
    join_readings,
)
from simbridge.trajectory.tables.roles import (
    MATRIX,
    POSITION,
    QUATERNION,
    QUATERNION_W_FIRST,
    ROTATION_VECTOR,
    joint_roles,
)
from simbridge.trajectory.tables.table import LONG_STAMP, Columns, Table, check_column_count

# Columns of an array that is taken apart into columns, at most.
MAX_ARRAY_WIDTH = 16
# The shapes of a pose's matrix.
POSE_MATRICES = ((4, 4), (3, 4))
# Where pandas writes an index that has no name, and what it is called here.
UNNAMED_INDEX = "__index_level_0__"
INDEX_TIME = "index time"
# What an array of whole poses may have in a row, by how many numbers that is.
WHOLE_POSES = {
    6: ((*POSITION, *ROTATION_VECTOR),),
    7: ((*POSITION, *QUATERNION), (*POSITION, *QUATERNION_W_FIRST)),
    8: (("t", *POSITION, *QUATERNION), ("t", *POSITION, *QUATERNION_W_FIRST)),
}

# Arrays of 7 numbers a row that are joint positions, not poses.
_JOINTS = re.compile(r"(?:.*[._])?q[a-z]{0,3}(?:[._].*)?|.*joint.*", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class ArrayColumns:
    """The arrays of a file as columns.

    Attributes:
        path: The file.
        arrays: The arrays as they are in the file.
        columns: The columns by name, each (T,), all of one length.
    """

    path: Path
    arrays: NamedArrays
    columns: Mapping[str, NDArray[np.generic]]

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def named_roles(self, choice: Choice) -> set[str]:
        """Return the roles that the names or the choice give to columns."""
        return find_roles(list(self.columns)).named | choice.columns.keys()


def read_array_table(
    path: Path, choice: Choice, rate: float | None = None, *, matrices_name: str | None = None
) -> Table:
    """Read a table of poses from arrays.

    Args:
        path: An npz or Parquet file.
        choice: Which columns are used.
        rate: Samples per s, if the table has no time.
        matrices_name: The array of pose matrices that is read; None for the only one.

    Raises:
        InputFileError: It cannot be read, or is not a table of poses; with the row and column.
    """
    arrays = read_arrays(path)
    check_column_count(path, len(arrays))
    table = _as_columns(path, arrays, choice, rate)

    header = Header(path, list(table.columns), "table")
    if _reads_joints(table, choice):
        columns = columns_of(header, choice, rate)
        return _table(table, columns, _pick(table, columns.indices))

    matrices = _choose_matrices(path, _pose_matrices(arrays), matrices_name)
    if matrices is not None and not choice.columns.keys() - {"t"}:
        return _table_of_matrices(_with_positions_of(table, matrices), matrices, choice, rate)

    rotations = _rotation_matrices(table)
    has_rotation = bool(table.named_roles(choice) & {*QUATERNION, *ROTATION_VECTOR})
    if len(rotations) == 1 and not has_rotation:
        return _table_of_matrices(table, rotations[0], choice, rate)

    _refuse_whole_poses(table, choice, rate)
    columns = pose_columns_of(header, choice, rate)
    return _table(table, columns, _pick(table, columns.indices))


def _reads_joints(table: ArrayColumns, choice: Choice) -> bool:
    """Return whether joint positions are read: where they are chosen, or there are no poses."""
    is_chosen = choice.asks_for_joints or choice.names_joints
    has_matrices = bool(_pose_matrices(table.arrays) or _rotation_matrices(table))
    return are_joints(list(table.columns), choice) and (is_chosen or not has_matrices)


def _as_columns(
    path: Path, arrays: NamedArrays, choice: Choice, rate: float | None
) -> ArrayColumns:
    """Return the arrays as columns of the length of the longest."""
    columns = _number_columns(arrays)
    check_column_count(path, len(columns))
    if not _pose_matrices(arrays) and not find_roles(list(columns)).named:
        arrays = {**arrays, **_structured_fields(arrays)}
        columns = _number_columns(arrays)

    # Durations, and an index of times without a name, are the time only where no clear name of one
    # is, or if they are asked for.
    has_clear_time = "t" in find_roles(list(columns), has_rate=True).named
    if "t" in choice.columns or (rate is None and not has_clear_time):
        columns.update(_further_times(arrays, columns))

    row_count = max(map(len, columns.values()), default=0)
    whole = {name: array for name, array in columns.items() if len(array) == row_count}
    return ArrayColumns(path, arrays, whole)


def _number_columns(arrays: NamedArrays) -> dict[str, NDArray[np.generic]]:
    """Return the columns of numbers and dates: the plain ones, then those of wider arrays."""
    numbers = {name: array for name, array in arrays.items() if array.dtype.kind in "fiuM"}
    columns = {name: array for name, array in numbers.items() if array.ndim == 1}
    for name, array in numbers.items():
        if array.ndim == 2 and array.shape[1] <= MAX_ARRAY_WIDTH:
            for i in range(array.shape[1]):
                columns[f"{name}[{i}]"] = array[:, i]
    return columns


def _structured_fields(arrays: NamedArrays) -> dict[str, NDArray[np.generic]]:
    """Return the fields of structured arrays; those of the only one of its length by themselves."""
    structured: dict[str, Any] = {
        name: array for name, array in arrays.items() if array.dtype.names
    }
    fields = {}
    for name, array in structured.items():
        same_length = [other for other in arrays.values() if len(other) == len(array)]
        is_alone = len(structured) == 1 and len(same_length) == 1
        for field in array.dtype.names:
            fields[field if is_alone else f"{name}.{field}"] = array[field]
    return fields


def _further_times(
    arrays: NamedArrays, columns: Mapping[str, NDArray[np.generic]]
) -> dict[str, NDArray[np.generic]]:
    """Return columns of dates or durations that are not yet columns, and are named as times."""
    times = {}
    for name, array in arrays.items():
        column_name = INDEX_TIME if name == UNNAMED_INDEX else name
        is_time = array.ndim == 1 and array.dtype.kind in "Mm"
        if is_time and column_name not in columns and find_roles([column_name]).named == {"t"}:
            times[column_name] = array
    return times


def _pose_matrices(arrays: NamedArrays) -> list[str]:
    """Return the names of arrays that hold the matrices of poses."""
    return [name for name, array in arrays.items() if array.shape[1:] in POSE_MATRICES]


def _choose_matrices(path: Path, names: Sequence[str], chosen: str | None) -> str | None:
    """Return the array of pose matrices that is read; None if there is none.

    Args:
        path: The file, for messages.
        names: The arrays of pose matrices.
        chosen: The name of the chosen one; None for the only one.
    """
    if chosen is None and len(names) <= 1:
        return names[0] if names else None
    if chosen in names:
        return chosen
    if not names:
        reason = f"a table without arrays of pose matrices has no topic {quoted(chosen)}"
        raise InputFileError(path, f"{reason}; omit --topic", field="topic")
    fault = f"it has {len(names)} arrays of pose matrices"
    if chosen is not None:
        fault = f"there is no array of pose matrices {quoted(chosen)}"
    flags = " or ".join(f"--topic {shell_quoted(name)}" for name in names[:MAX_FLAGS])
    more = f" ({len(names) - MAX_FLAGS} more)" if len(names) > MAX_FLAGS else ""
    raise InputFileError(path, f"{fault}. Choose one: {flags}{more}", field="topic")


def _rotation_matrices(table: ArrayColumns) -> list[str]:
    """Return the names of arrays that hold the rotation matrices of the rows."""
    shape = (table.row_count, 3, 3)
    return [
        name
        for name, array in table.arrays.items()
        if array.shape == shape and _names_rotations(name)
    ]


def _names_rotations(name: str) -> bool:
    """Return whether a name is that of rotation matrices: R, rotmat, tool.rotation_matrices."""
    words = [word for word in re.split(r"[._]", name.lower()) if word]
    ends = {"".join(words[-count:]) for count in (1, 2)}
    known = {start + end for start in ROTATION_NAMES for end in ("", *MATRIX_ENDS)}
    return bool(ends & known)


def _with_positions_of(table: ArrayColumns, name: str) -> ArrayColumns:
    """Return the columns with those of the positions in an array of pose matrices."""
    matrices = table.arrays[name]
    columns = {
        column: array for column, array in table.columns.items() if len(array) == len(matrices)
    }
    for row, axis in enumerate(POSITION):
        columns[f"{name}.p{axis}"] = matrices[:, row, 3]
    return replace(table, columns=columns)


def _table_of_matrices(table: ArrayColumns, name: str, choice: Choice, rate: float | None) -> Table:
    """Return the table whose rotations are an array of matrices."""
    # The roles of a quaternion stand for the matrices.
    header = Header(table.path, [*table.columns, *QUATERNION], f"table with the matrices {name}")
    columns = pose_columns_of(header, choice, rate)
    positions = columns.indices[:3]
    columns = replace(
        columns,
        roles=POSITION + MATRIX,
        names=columns.names[:3] + MATRIX,
        indices=positions + tuple(range(len(MATRIX))),
        units=columns.units[:3] + ("",) * len(MATRIX),
        understood=f"matrices {name}",
    )
    rotations = table.arrays[name][:, :3, :3].reshape(-1, len(MATRIX))
    return _table(table, columns, [*_pick(table, positions), rotations])


def _pick(table: ArrayColumns, indices: tuple[int, ...]) -> list[NDArray[np.generic]]:
    """Return the columns at these places."""
    arrays = list(table.columns.values())
    return [arrays[index] for index in indices]


def _table(table: ArrayColumns, columns: Columns, parts: list[NDArray[np.generic]]) -> Table:
    """Return the table of these columns, without lost samples."""
    values: Array = np.column_stack(parts).astype(float)
    times = _pick(table, columns.time_indices)
    is_lost: Flags = np.asarray(np.isnan(values).any(axis=1))
    for stamps in times:
        if stamps.dtype.kind in "fmM":
            is_lost |= np.isnan(stamps)
    if is_lost.all() and len(is_lost):
        count = counted(len(is_lost), "sample")
        raise InputFileError(table.path, f"all of its {count} are lost (nan or empty)")

    rows = np.flatnonzero(~is_lost)
    not_finite = np.argwhere(~np.isfinite(values[rows]))
    if len(not_finite):
        index, column = not_finite[0]
        _refuse_value(table.path, columns, values, row=int(rows[index]), column=int(column))

    stamp_columns = [array[rows] for array in times]
    lost_rows = (np.flatnonzero(is_lost) + 1).tolist()
    dropped = lost_samples(lost_rows, unit="row")
    return Table(columns, _stamps(stamp_columns), values[rows], rows, dropped=tuple(dropped))


def _refuse_value(
    path: Path, columns: Columns, values: Array, *, row: int, column: int
) -> NoReturn:
    """Refuse a number that is not finite."""
    field = columns.names[column] if column < len(columns.names) else ""
    reason = f"row {row + 1}: {values[row, column]} is not a finite number"
    raise InputFileError(path, reason, field=field)


def _stamps(
    arrays: list[NDArray[np.generic]],
) -> Array | NDArray[np.datetime64] | list[tuple[str, ...]]:
    """Return the stamps of a table's rows: see `Table`."""
    if not arrays:
        return np.zeros(0)
    first = arrays[0]
    if len(arrays) == 1 and first.dtype.kind in "Mm":
        return first.astype(f"{first.dtype.kind}8[ns]")

    is_long = first.dtype.kind in "iu" and np.abs(first).max(initial=0) >= LONG_STAMP
    if len(arrays) == 2 or is_long:
        rows = zip(*(array.tolist() for array in arrays), strict=True)
        return [tuple(map(str, row)) for row in rows]
    return first.astype(float)


def _refuse_whole_poses(table: ArrayColumns, choice: Choice, rate: float | None) -> None:
    """Refuse an array of whole poses, where nothing else is a pose: it has several readings."""
    names = list(table.columns)
    roles = find_roles(names, has_rate=rate is not None).columns
    if choice.columns or roles.keys() - {"t"}:
        return

    widths = Counter(name.rpartition("[")[0] for name in names)
    known = KnownColumns.of_time(roles.get("t", []), rate)
    for name, width in widths.items():
        if width in WHOLE_POSES and not _JOINTS.fullmatch(name):
            _refuse_whole_pose(table, name, known, choice.arm)


def _refuse_whole_pose(
    table: ArrayColumns, name: str, known: KnownColumns, arm: ArmJoints | None
) -> NoReturn:
    """Refuse an array of whole poses, with the flags of all readings."""
    header = Header(table.path, list(table.columns), "table")
    indices = [i for i, column in enumerate(header.names) if column.rpartition("[")[0] == name]
    layouts = list(WHOLE_POSES[len(indices)])
    if arm is not None and len(arm.names) == len(indices):
        layouts.append(joint_roles(len(indices)))

    parts = [
        PartialReading(" ".join(roles), dict(zip(roles, indices, strict=True))) for roles in layouts
    ]
    readings = complete_readings(header, known, parts)
    lead = "Choose one:" if len(readings) > 1 else f"If they are {parts[0].label}, add"
    header.refuse(
        f"{name} has {len(indices)} numbers per row, but does not state what they are. {lead} "
        f"{join_readings(readings)}"
    )
