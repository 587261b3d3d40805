"""The arrays in a file: npz and Parquet."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InputFileError, optional_package
from simbridge.files.decompression import expansion
from simbridge.files.reading import open_file

ARRAY_SUFFIXES = (".parquet", ".npz")
# Values of a Parquet file at most; ten million poses: some 640 MB.
MAX_VALUES = 100_000_000

NamedArrays = Mapping[str, "NDArray[np.generic]"]


def read_arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """Read the arrays of a file by their names.

    Parquet needs pyarrow. Arrays of objects are not read.

    Raises:
        InputFileError: The file cannot be read, or is too large.
    """
    open_file(path).close()
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path)
    return _read_npz(path)


def _read_npz(path: Path) -> dict[str, NDArray[np.generic]]:
    """Read an npz file; arrays of objects are not unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(item.file_size for item in archive.infolist())
        if size > expansion(path.stat().st_size):
            reason = "it decompresses to more than 50 times its size"
            raise InputFileError(path, reason)
        with np.load(path, allow_pickle=False) as arrays:
            read = {name: arrays[name] for name in arrays.files}
        # A single number is not a column.
        return {name: array for name, array in read.items() if array.ndim}
    except InputFileError:
        raise
    except Exception as problem:
        # A broken archive can fail anywhere in zipfile and numpy.
        reason = f"cannot be read as npz: {str(problem).rstrip('.')}"
        raise InputFileError(path, reason) from problem


def _read_parquet(path: Path) -> dict[str, NDArray[np.generic]]:
    """Read the columns of a Parquet file that are numbers, times, or lists of numbers."""
    purpose = "Reading Parquet"
    arrow = optional_package("pyarrow", "pyarrow", purpose=purpose, extra="parquet")
    parquet = optional_package("pyarrow.parquet", "pyarrow", purpose=purpose, extra="parquet")
    try:
        file = parquet.ParquetFile(path)
        names = [column.name for column in file.schema_arrow if _is_read(arrow, column.type)]
        _check_parquet_size(path, file, len(names))
        table = file.read(columns=names)
    except InputFileError:
        raise
    except Exception as problem:
        # A broken file can fail anywhere in pyarrow.
        reason = f"cannot be read as Parquet: {str(problem).rstrip('.')}"
        raise InputFileError(path, reason) from problem

    arrays = {}
    for name in table.column_names:
        array = _as_array(table.column(name).to_numpy())
        if array is not None:
            arrays[name] = array
    return arrays


def _is_read(arrow: Any, column_type: Any) -> bool:
    """Return whether a column of Parquet is of a type that is read."""
    types = arrow.types
    kinds = (
        types.is_floating,
        types.is_integer,
        types.is_timestamp,
        types.is_duration,
        types.is_list,
        types.is_fixed_size_list,
    )
    return any(is_kind(column_type) for is_kind in kinds)


def _check_parquet_size(path: Path, file: Any, column_count: int) -> None:
    """Refuse a Parquet file that is too large when it is decompressed."""
    metadata = file.metadata
    groups = range(metadata.num_row_groups)
    size = sum(metadata.row_group(group).total_byte_size for group in groups)
    value_count = metadata.num_rows * column_count
    if size > expansion(path.stat().st_size) or value_count > MAX_VALUES:
        reason = f"it holds more than {MAX_VALUES:,} values, or more than 50 times its size"
        raise InputFileError(path, reason)


def _as_array(column: NDArray[Any]) -> NDArray[np.generic] | None:
    """Return a column as an array; None for lists of different lengths, which are not a pose."""
    if column.dtype != object:
        return column
    lengths = {-1 if row is None else len(row) for row in column}
    if len(lengths) != 1 or -1 in lengths:
        return None
    return np.stack(list(column))
