"""The commands that a controller took, matched to the setpoints of its cycles.

A link's delay varies, but commands arrive in order: the index of the command that a call takes
never goes back. Among all sequences that obey this, dynamic programming finds the one that fits
best.
"""

from __future__ import annotations

import numpy as np

from simbridge.kernels.compile import kernel_of
from simbridge.robot.pose import Array, Counts

# By how many commands the next call advances, usually; after a stall it is any number.
MAX_JUMP = 3
# Cost of a command that is held or skipped, in units of the logarithm of squared residuals.
IRREGULARITY_COST = 3.0
# Residuals below this are rounding, rad.
ROUNDING = 1e-9
# Residual that is assumed for a command that was not recorded, rad.
UNKNOWN_RESIDUAL = 1e-4


def match_commands(
    sent: Array, setpoints: Array, number: Counts, *, weight: float, window: tuple[int, int]
) -> tuple[Counts, float]:
    """Return the commands that explain setpoints best.

    Args:
        sent: The command of each cycle (C, n), rad; NaN where none was recorded.
        setpoints: The point between two commands (K, n) that each row's cycle reveals, rad.
        number: The increasing numbers (K,) of the rows' cycles, counted as in `sent`.
        weight: Weight of a call's command in a setpoint; the rest is the weight of the command
            before. It is 1 where calls begin on the cycle's edge.
        window: How many commands before, and after, that of its own cycle a row may have taken.

    Returns:
        Indices (2, K) of the commands of the call before, and of the call at the end of each row's
        cycle; and the cost of this sequence: logarithms of the rows' squared residuals, and more
        where commands were held or skipped.
    """
    matched = np.zeros((2, len(setpoints)), dtype=np.int64)
    search = kernel_of(search_sequence, "check of the servo law")
    cost = search(sent, np.ascontiguousarray(setpoints), number, weight, *window, matched)
    return matched, cost


# complexipy: ignore (a function for each row takes a tenth longer)
def search_sequence(
    sent: Array,
    setpoints: Array,
    number: Counts,
    weight: float,
    oldest: int,
    newest: int,
    matched: Counts,
) -> float:
    """Find the cheapest sequence of commands, and return its cost; compiled.

    Column j of row k stands for the command `number[k] - oldest + j`.

    Args:
        sent: The command of each cycle (C, n), rad; NaN where none was recorded.
        setpoints: The point between two commands (K, n) that each row's cycle reveals, rad.
        number: The increasing numbers (K,) of the rows' cycles, counted as in `sent`.
        weight: Weight of a call's command in a setpoint; the rest is the weight of the command
            before.
        oldest: How many commands before its own cycle's a row may have taken.
        newest: How many commands after its own cycle's a row may have taken.
        matched: Result: indices (2, K) of the commands of the call before, and of the call at the
            end of each row's cycle.
    """
    rows = len(setpoints)
    last = len(sent) - 1
    width = oldest + newest + 1
    unknown_cost = np.log(1.0 + (UNKNOWN_RESIDUAL / ROUNDING) ** 2)
    irregularity_cost = IRREGULARITY_COST * np.log(1.0 + np.arange(len(sent) + 1.0))

    # Cost of the best sequence that ends with each column of the row before, and of this row.
    cost = np.zeros(width)
    row_cost = np.zeros(width)
    # The cheapest column of the row before, up to and including each one.
    cheapest = np.zeros(width, dtype=np.int64)
    # The command of the call before, and the column of the row before, in each best sequence.
    before = np.zeros((rows, width), dtype=np.int64)
    origin = np.full((rows, width), -1, dtype=np.int64)

    for k in range(rows):
        shift = number[k] - number[k - 1] if k > 0 else width
        follows_gap = shift > 1

        for j in range(width):
            row_cost[j] = np.inf
            command = _clip_index(number[k] - oldest + j, last)
            residual_cost = -1.0

            # The last choice: from the cheapest command so far, however old.
            for jump in range(MAX_JUMP + 2):
                is_long_jump = jump > MAX_JUMP
                column = j + shift - (0 if is_long_jump else jump)
                if column < 0 or (is_long_jump and follows_gap):
                    break
                if is_long_jump or follows_gap:
                    column = cheapest[min(column, width - 1)]
                elif column >= width:
                    continue

                previous = number[k - 1] - oldest + column if is_long_jump else command - jump
                previous = _clip_index(previous, last)
                total = cost[column] + irregularity_cost[abs(command - previous - 1)]
                if total >= row_cost[j]:
                    continue

                # Where calls begin on the cycle's edge, the command before does not matter.
                if weight < 1.0 or residual_cost < 0.0:
                    square = _squared_residual(sent, setpoints, k, previous, command, weight)
                    is_known = square == square
                    residual_cost = np.log(1.0 + square / ROUNDING**2) if is_known else unknown_cost

                total += residual_cost
                if total < row_cost[j]:
                    row_cost[j] = total
                    before[k, j] = previous
                    origin[k, j] = column

        for j in range(width):
            cost[j] = row_cost[j]
            is_cheapest = j == 0 or cost[j] < cost[cheapest[j - 1]]
            cheapest[j] = j if is_cheapest else cheapest[j - 1]

    # Back along the cheapest sequence.
    column = cheapest[width - 1]
    total = cost[column]
    for k in range(rows - 1, -1, -1):
        matched[0, k] = before[k, column]
        matched[1, k] = _clip_index(number[k] - oldest + column, last)
        column = origin[k, column]
    return total


def _clip_index(index: int, last: int) -> int:
    """Return the index of a command: before the first one, and after the last, that one holds."""
    return min(max(index, 0), last)


def _squared_residual(
    sent: Array, setpoints: Array, row: int, previous: int, command: int, weight: float
) -> float:
    """Return a row's squared distance from a point between commands, rad^2; NaN if unknown."""
    square = 0.0
    for i in range(setpoints.shape[1]):
        expected = sent[command, i]
        if weight < 1.0:
            expected = (1.0 - weight) * sent[previous, i] + weight * expected
        square += (setpoints[row, i] - expected) ** 2
    return square
