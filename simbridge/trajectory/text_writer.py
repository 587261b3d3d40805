"""Writes trajectories as text, TUM and CSV."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import ArrayLike

from simbridge.errors import InvalidTrajectory
from simbridge.robot.files import replacing, write_file
from simbridge.robot.pose import Array

# Rows that are text at one time.
BLOCK = 10_000


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


def write_table(path: Path, columns: Mapping[str, Array]) -> None:
    """Write columns (T,) by name as CSV: a header, and a line a row; each number reads back bit for bit.

    Raises:
        OutputError: The file cannot be written.
    """
    count = len(next(iter(columns.values())))
    with replacing(path) as new, new.open("wb") as file:
        file.write((",".join(columns) + "\n").encode())
        for k in range(0, count, BLOCK):
            rows = np.column_stack([column[k : k + BLOCK] for column in columns.values()]).astype(float, copy=False)
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
