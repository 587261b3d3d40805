"""Writes trajectories as text, TUM and CSV."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidTrajectory
from simbridge.robot.output_file import write_file


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


def _write(path: str | Path, times: ArrayLike, poses: ArrayLike, header: str, separator: str) -> None:
    t, p = np.asarray(times, dtype=float), np.asarray(poses, dtype=float)
    if t.ndim != 1 or p.shape != (len(t), 7):
        reason = f"times of shape (T,) and poses of shape (T, 7) are needed; got {t.shape} and {p.shape}"
        raise InvalidTrajectory(reason, source=str(path))
    rows = np.column_stack([t, p]).tolist()
    write_file(path, (header + "".join(separator.join(map(repr, row)) + "\n" for row in rows)).encode())
