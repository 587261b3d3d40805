"""Trajectories and tables written as text: TUM and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import ArrayLike

from simbridge.errors import InvalidTrajectory
from simbridge.files.writing import replacing, write_file
from simbridge.robot.pose import Array


def write_tum(
    path: str | Path, times: ArrayLike, poses: ArrayLike, *, follow_links: bool = True
) -> None:
    """Write a TUM file: one line `t x y z qx qy qz qw` a sample.

    `read_trajectory` and evo read it back bit for bit.

    Args:
        path: The file; an existing one is replaced.
        times: Stamps (T,), s.
        poses: Positions, m, and unit quaternions (T, 7).
        follow_links: Whether a link at the path is followed, or replaced (see `replacing`).

    Raises:
        InvalidTrajectory: The shapes do not fit.
        OutputError: The file cannot be written.
    """
    text = _lines(path, times, poses, separator=" ")
    write_file(path, text.encode(), follow_links=follow_links)


def write_csv(path: str | Path, times: ArrayLike, poses: ArrayLike) -> None:
    """Write CSV with a header that names columns and units; otherwise as `write_tum`."""
    header = "t [s],x [m],y [m],z [m],qx,qy,qz,qw\n"
    text = header + _lines(path, times, poses, separator=",")
    write_file(path, text.encode())


def write_table(
    path: Path, blocks: Iterable[Mapping[str, Array]], *, follow_links: bool = True
) -> None:
    """Write a table as CSV: a header, and a line a row; each number reads back bit for bit.

    Args:
        path: The file; an existing one is replaced.
        blocks: Columns (K,) by name, block by block of the rows: all have the same columns.
        follow_links: Whether a link at the path is followed, or replaced (see `replacing`).

    Raises:
        OutputError: The file cannot be written.
    """
    with replacing(path, follow_links=follow_links) as new, new.open("wb") as file:
        for number, columns in enumerate(blocks):
            if number == 0:
                file.write((",".join(columns) + "\n").encode())
            rows = np.column_stack([*columns.values()]).astype(float, copy=False)
            if len(rows):
                file.write(_rows_as_text(rows))
                file.write(b"\n")


def _rows_as_text(rows: Array) -> bytes:
    """Return a line of numbers for each row (K, m), without the last line end."""
    # As JSON, [[1.0,2.0],[3.0,4.0]]: twenty times as fast as `repr`, and as exact.
    text = orjson.dumps(rows, option=orjson.OPT_SERIALIZE_NUMPY)
    text = text.removeprefix(b"[[").removesuffix(b"]]").replace(b"],[", b"\n")
    if not np.isfinite(rows).all():
        # What JSON has no number for is null.
        text = text.replace(b"null", b"nan")
    return text


def _lines(path: str | Path, times: ArrayLike, poses: ArrayLike, separator: str) -> str:
    """Return a line `t x y z qx qy qz qw` for each sample.

    Args:
        path: Names the samples in a refusal.
        times: Stamps (T,), s.
        poses: Poses (T, 7).
        separator: Stands between two numbers.
    """
    stamps = np.asarray(times, dtype=float)
    values = np.asarray(poses, dtype=float)
    if stamps.ndim != 1 or values.shape != (len(stamps), 7):
        raise InvalidTrajectory(
            "times of shape (T,) and poses of shape (T, 7) are needed; got "
            f"{stamps.shape} and {values.shape}",
            source=str(path),
        )

    rows = np.column_stack([stamps, values]).tolist()
    return "".join(separator.join(map(repr, row)) + "\n" for row in rows)
