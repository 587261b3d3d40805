"""Long recordings in few points: curves that keep their peaks, and stretches of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simbridge.robot.pose import Array


def thinned(values: Array, columns: int) -> NDArray[np.intp]:
    """Which samples of a curve to draw so that it looks the same: the lowest and the highest of every column.

    Args:
        values: The curve (T,); what is not a number is a gap, and stays one.
        columns: How many columns of pixels it will cover.

    Returns:
        Increasing indices, at most 3 columns + 2 of them; all when there are no more than that.
    """
    count = len(values)
    if count <= 3 * columns + 2:
        return np.arange(count)
    size = -(-count // columns)
    padded = np.concatenate([values, np.full(-count % size, values[-1])]).reshape(-1, size)
    gaps = np.isnan(padded)
    first = np.arange(len(padded)) * size
    chosen = [
        first + np.where(gaps, np.inf, padded).argmin(axis=1),
        first + np.where(gaps, -np.inf, padded).argmax(axis=1),
        (first + gaps.argmax(axis=1))[gaps.any(axis=1)],
        np.array([0, count - 1]),
    ]
    return np.unique(np.minimum(np.concatenate(chosen), count - 1))


def thinned_path(points: Array, pieces: int) -> NDArray[np.intp]:
    """Which points (T, 2) of a path to draw so that it looks the same: the outermost of every piece.

    Args:
        points: The path, in the plane in which it is drawn.
        pieces: Into how many pieces of equal time a long path is cut.

    Returns:
        Increasing indices, at most 6 pieces + 2 of them; all when there are no more than half of that.
    """
    return np.union1d(thinned(points[:, 0], pieces), thinned(points[:, 1], pieces))


def stretches(marked: NDArray[np.bool_], stamps: Array, gap: float = 0.0) -> list[tuple[float, float]]:
    """From when to when samples are marked.

    Args:
        marked: Which samples (T,).
        stamps: Their instants (T,), s.
        gap: Stretches less than so many seconds apart count as one.

    Returns:
        The instants of the first and last sample of each stretch, s.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    merged: list[tuple[float, float]] = []
    for begin, end in zip(stamps[edges[::2]].tolist(), stamps[edges[1::2] - 1].tolist(), strict=True):
        if merged and begin - merged[-1][1] < gap:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged
