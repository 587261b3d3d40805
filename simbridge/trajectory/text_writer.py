"""Writes trajectories as text, TUM and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import ArrayLike

from simbridge.errors import InvalidTrajectory
from simbridge.robot.files import replacing, write_file
from simbridge.robot.pose import Array


def write_tum(path: str | Path, times: ArrayLike, poses: ArrayLike) -> None:
    """Write a TUM file: one line `t x y z qx qy qz qw` a sample; read_trajectory and evo read it back bit for bit.

    Args:
        path: The file; an existing one is replaced.
        times: Stamps (T,) in s.
        poses: Poses (T, 7) in m and unit quaternions.

    Raises:
        InvalidTrajectory: The shapes do not fit.
        OutputError: The file cannot be written.
    """
    _write(path, times, poses, header="", separator=" ")


def write_csv(path: str | Path, times: ArrayLike, poses: ArrayLike) -> None:
    """As `write_tum`, but CSV with a header that names columns and units."""
    _write(path, times, poses, header="t [s],x [m],y [m],z [m],qx,qy,qz,qw\n", separator=",")


def write_table(path: Path, blocks: Iterable[Mapping[str, Array]]) -> None:
    """Write a table as CSV: a header, and a line a row; each number reads back bit for bit.

    Args:
        path: The file; an existing one is replaced.
        blocks: Columns (K,) by name, block by block of the rows: of each the same columns.

    Raises:
        OutputError: The file cannot be written.
    """
    with replacing(path) as new, new.open("wb") as file:
        for number, columns in enumerate(blocks):
            if number == 0:
                file.write((",".join(columns) + "\n").encode())
            rows = np.column_stack([*columns.values()]).astype(float, copy=False)
            # Twenty times as fast as `repr`, and as exact; what JSON has no number for is null.
            text = orjson.dumps(rows, option=orjson.OPT_SERIALIZE_NUMPY)[2:-2].replace(b"],[", b"\n")
            file.write(text if np.isfinite(rows).all() else text.replace(b"null", b"nan"))
            file.write(b"\n")


def _write(path: str | Path, times: ArrayLike, poses: ArrayLike, header: str, separator: str) -> None:
    t, p = np.asarray(times, dtype=float), np.asarray(poses, dtype=float)
    if t.ndim != 1 or p.shape != (len(t), 7):
        reason = f"times of shape (T,) and poses of shape (T, 7) are needed; got {t.shape} and {p.shape}"
        raise InvalidTrajectory(reason, source=str(path))
    rows = np.column_stack([t, p]).tolist()
    write_file(path, (header + "".join(separator.join(map(repr, row)) + "\n" for row in rows)).encode())
