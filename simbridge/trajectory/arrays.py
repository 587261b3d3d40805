"""Tables of poses as arrays: Parquet, and NumPy's npz."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InputFileError, MissingPackage
from simbridge.robot.files import expansion, open_file
from simbridge.trajectory.columns import LONG, MATRIX, POSITION, QUATERNION, Choice, Columns, Table, known_columns

# Ten million poses: some 640 MB.
_MAX_VALUES = 100_000_000
Arrays = Mapping[str, "NDArray[np.generic]"]


def read_arrays(path: Path, choice: Choice, rate: float | None = None) -> Table:
    """Read a table whose columns are arrays: of numbers (T,), or of several a row (T, k), numbered from 0.

    An array (T, 4, 4) or (T, 3, 4) in npz is a matrix of the pose a row.

    Raises:
        InputFileError: It cannot be read, or is no table of poses.
        MissingPackage: pyarrow is not installed, and the file is Parquet.
    """
    open_file(path).close()
    found = _parquet(path) if path.suffix.lower() == ".parquet" else _npz(path)
    matrices = [name for name, array in found.items() if array.shape[1:] in ((4, 4), (3, 4))]
    flat = _flat(found)
    count = max((len(array) for array in flat.values()), default=0)
    flat = {name: array for name, array in flat.items() if len(array) == count and array.dtype.kind in "fiuM"}
    if matrices and not choice.columns:
        return _of_matrices(path, found[matrices[0]], matrices[0], flat, choice, rate)
    columns = known_columns(path, list(flat), choice, where="table", rate=rate)
    arrays = list(flat.values())
    values = np.column_stack([arrays[i].astype(float) for i in columns.indices])
    return _table(path, columns, arrays, values)


def _table(path: Path, columns: Columns, arrays: list[NDArray[np.generic]], values: NDArray[np.float64]) -> Table:
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


def _of_matrices(
    path: Path, matrices: NDArray[np.generic], name: str, flat: Arrays, choice: Choice, rate: float | None
) -> Table:
    """Poses of one array of matrices (T, 4, 4) or (T, 3, 4), and the times beside it."""
    entries = np.asarray(matrices[:, :3], dtype=float).reshape(-1, 12)
    order = (3, 7, 11, 0, 1, 2, 4, 5, 6, 8, 9, 10)
    timed = known_columns(
        path, [*POSITION, *QUATERNION, *flat], choice, where=f"table with the matrices {name}", rate=rate
    )
    known = Columns(
        roles=POSITION + MATRIX,
        names=POSITION + MATRIX,
        indices=tuple(range(12)),
        units=(*timed.units[:3], *[""] * 9),
        times=timed.times,
        time_indices=tuple(i - 7 for i in timed.time_indices),
        time_unit=timed.time_unit,
        width=None,
        origin="",
        understood=f"matrices {name}",
        rate=timed.rate,
    )
    return _table(path, known, list(flat.values()), entries[:, order])


def _flat(found: Arrays) -> dict[str, NDArray[np.generic]]:
    """Arrays of one number a row; of several as name[0], name[1], ..."""
    flat: dict[str, NDArray[np.generic]] = {}
    for name, array in found.items():
        if array.ndim == 1:
            flat[name] = array
        elif array.ndim == 2 and array.shape[1] <= 16:
            flat |= {f"{name}[{i}]": array[:, i] for i in range(array.shape[1])}
    return flat


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
