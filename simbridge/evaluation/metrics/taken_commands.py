"""Which command each cycle of a controller took, in order, from the points that its joint targets reveal."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from simbridge.ik.kernels.compile import kernel
from simbridge.ik.kernels.module import module_text
from simbridge.robot.pose import Array, Counts

# By how many commands the next call advances, usually; after a stall by any number.
_JUMP = 3
# Cost of a command that is held or skipped, in units of the logarithm of squared residuals.
_IRREGULAR = 3.0
# Residuals below the first are rounding, rad; the second is that of a command that was not recorded.
_SCALE, _UNKNOWN = 1e-9, 1e-4


def find_taken(sent: Array, seen: Array, number: Counts, share: float, window: tuple[int, int]) -> tuple[Counts, float]:
    """The commands that fit best, by dynamic programming: the index of the command taken never goes back.

    Args:
        sent: Command of each cycle (C, n), rad; NaN where none was recorded.
        seen: Points (K, n), rad: `share` of a call's command, and the rest of that of the call before.
        number: Of each row's cycle (K,), increasing.
        share: See above; 1 where calls begin on the cycle's edge.
        window: How many commands before and after a row's own it may have taken.

    Returns:
        Commands (2, K) of the call before and of the call, and the mean cost of a row: the logarithm of its squared
        residual, and more where commands were held or skipped.
    """
    taken = np.zeros((2, len(seen)), dtype=np.int64)
    cost = _compiled()(sent, np.ascontiguousarray(seen), number, share, *window, taken)
    return taken, cost / len(seen)


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., float]:
    return kernel(module_text(_take), "_take", "check of the servo law")


def _take(sent: Array, seen: Array, number: Counts, share: float, oldest: int, newest: int, taken: Counts) -> float:
    """Viterbi over the rows, compiled; `taken` (2, K) is the result. Returns its cost."""
    rows, joints = seen.shape
    width = oldest + newest + 1
    unknown = np.log(1.0 + (_UNKNOWN / _SCALE) ** 2)
    irregular = _IRREGULAR * np.log(1.0 + np.arange(len(sent) + 1.0))
    cost = np.zeros(width)
    # Where the least of these costs up to a command is.
    where = np.zeros(width, dtype=np.int64)
    before = np.zeros((rows, width), dtype=np.int64)
    origin = np.full((rows, width), -1, dtype=np.int64)
    now = np.zeros(width)
    for k in range(rows):
        shift = number[k] - number[k - 1] if k > 0 else width
        for j in range(width):
            now[j] = np.inf
            # Before the first command, and after the last, it holds.
            command = min(max(number[k] - oldest + j, 0), len(sent) - 1)
            residual = -1.0
            # The last choice: from the best command so far, however old.
            for jump in range(_JUMP + 2):
                further = jump > _JUMP
                at = j + shift - (0 if further else jump)
                if at < 0 or (further and shift > 1):
                    break
                if further or shift > 1:
                    at = where[min(at, width - 1)]
                elif at >= width:
                    continue
                previous = number[k - 1] - oldest + at if further else command - jump
                previous = min(max(previous, 0), len(sent) - 1)
                total = cost[at] + irregular[abs(command - previous - 1)]
                if total >= now[j]:
                    continue
                # Where calls begin on the cycle's edge, it does not depend on the command before.
                if share < 1.0 or residual < 0.0:
                    square = 0.0
                    for i in range(joints):
                        expected = sent[command, i]
                        if share < 1.0:
                            expected = (1.0 - share) * sent[previous, i] + share * expected
                        square += (seen[k, i] - expected) ** 2
                    residual = np.log(1.0 + square / _SCALE**2) if square == square else unknown
                total += residual
                if total < now[j]:
                    now[j], before[k, j], origin[k, j] = total, previous, at
        for j in range(width):
            cost[j] = now[j]
            where[j] = j if j == 0 or cost[j] < cost[where[j - 1]] else where[j - 1]
    j = where[width - 1]
    total = cost[j]
    for k in range(rows - 1, -1, -1):
        taken[0, k] = before[k, j]
        taken[1, k] = min(max(number[k] - oldest + j, 0), len(sent) - 1)
        j = origin[k, j]
    return total
