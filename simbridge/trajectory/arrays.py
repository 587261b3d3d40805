"""Tables of poses as arrays: Parquet, and NumPy's npz."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InputFileError, MissingPackage
from simbridge.robot.files import open_file
from simbridge.trajectory.columns import (
    FIRST_ROWS,
    LONG,
    MATRIX,
    POSITION,
    QUATERNION,
    Choice,
    Columns,
    Table,
    known_columns,
)
from simbridge.trajectory.compressed import expansion

# Ten million poses: some 640 MB.
_MAX_VALUES = 100_000_000
Arrays = Mapping[str, "NDArray[np.generic]"]


def read_arrays(path: Path, choice: Choice, rate: float | None = None) -> Table:
    """Read a table whose columns are arrays: of numbers (T,), or of several a row (T, k), numbered from 0.

    An array (T, 4, 4) or (T, 3, 4) in npz is a matrix of the pose a row. Parquet needs pyarrow (MissingPackage).
    """
    open_file(path).close()
    found = _parquet(path) if path.suffix.lower() == ".parquet" else _npz(path)
    matrices = [name for name, array in found.items() if array.shape[1:] in ((4, 4), (3, 4))]
    # Of several numbers a row as name[0], name[1], ...
    flat = {name: array for name, array in found.items() if array.ndim == 1}
    for name, array in found.items():
        if array.ndim == 2 and array.shape[1] <= 16:
            flat |= {f"{name}[{i}]": array[:, i] for i in range(array.shape[1])}
    count = max((len(array) for array in flat.values()), default=0)
    flat = {name: array for name, array in flat.items() if len(array) == count and array.dtype.kind in "fiuM"}
    arrays = list(flat.values())
    if matrices and not choice.columns:
        columns = _of_matrices(path, matrices[0], flat, choice, rate)
        values = np.asarray(found[matrices[0]][:, :3], dtype=float).reshape(-1, 12)[:, FIRST_ROWS]
    else:
        columns = known_columns(path, list(flat), choice, where="table", rate=rate)
        values = np.column_stack([arrays[i].astype(float) for i in columns.indices])
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = bad[0]
        reason = f"row {row + 1}: {values[row, column]} is not a finite number"
        raise InputFileError(path, reason, field=[*columns.names, ""][min(column, len(columns.names))])
    stamps = [arrays[i] for i in columns.time_indices]
    if len(stamps) == 1 and stamps[0].dtype.kind == "M":
        return Table(columns, stamps[0].astype("datetime64[ns]"), values, ())
    if len(stamps) == 2 or (stamps and stamps[0].dtype.kind in "iu" and np.abs(stamps[0]).max(initial=0) >= LONG):
        words = [tuple(map(str, row)) for row in zip(*(each.tolist() for each in stamps), strict=True)]
        return Table(columns, words, values, ())
    return Table(columns, stamps[0].astype(float) if stamps else np.zeros(0), values, ())


def _of_matrices(path: Path, name: str, flat: Arrays, choice: Choice, rate: float | None) -> Columns:
    """The columns of an array of matrices, whose first three rows follow each other, with the times beside it."""
    names = [*POSITION, *QUATERNION, *flat]
    timed = known_columns(path, names, choice, where=f"table with the matrices {name}", rate=rate)
    return replace(
        timed,
        roles=POSITION + MATRIX,
        names=POSITION + MATRIX,
        indices=tuple(range(12)),
        units=(*timed.units[:3], *[""] * 9),
        time_indices=tuple(i - 7 for i in timed.time_indices),
        understood=f"matrices {name}",
        frame_index=None,
    )


def _parquet(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        from pyarrow import parquet, types  # an extra
    except ImportError:
        raise MissingPackage("pyarrow", "Reading Parquet", extra="parquet") from None
    kinds = (types.is_floating, types.is_integer, types.is_timestamp, types.is_list, types.is_fixed_size_list)
    try:
        file = parquet.ParquetFile(path)
        names = [own.name for own in file.schema_arrow if any(is_kind(own.type) for is_kind in kinds)]
        size = sum(file.metadata.row_group(k).total_byte_size for k in range(file.metadata.num_row_groups))
        if size > expansion(path.stat().st_size) or file.metadata.num_rows * len(names) > _MAX_VALUES:
            raise InputFileError(path, f"it holds more than {_MAX_VALUES:,} values, or 50 times its size")
        table = file.read(columns=names)
    except InputFileError:
        raise
    except Exception as problem:
        # A broken file can fail anywhere in pyarrow.
        raise InputFileError(path, f"cannot be read as Parquet: {str(problem).rstrip('.')}") from problem
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
            raise InputFileError(path, "it holds more than 50 times its size when it is decompressed")
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files if arrays[name].ndim}
    except InputFileError:
        raise
    except Exception as problem:
        # A broken archive can fail anywhere in zipfile and numpy; arrays of objects are not unpickled.
        raise InputFileError(path, f"cannot be read as npz: {str(problem).rstrip('.')}") from problem
