"""Matches the commands that a controller took to the setpoints that its cycles reveal.

A link's delay varies, but commands arrive in order: the index of the command that a call takes
never decreases. Among all such sequences of commands, dynamic programming finds the one that fits
the setpoints best.
"""

from __future__ import annotations

import numpy as np

from simbridge.kernels.compile import kernel_of
from simbridge.robot.pose import Array, Counts

# Largest usual number of commands by which the next call advances; after a stall it may be any
# number.
MAX_JUMP = 3
# Factor of the logarithm of the irregularity in the cost of a sequence, relative to the logarithms
# of squared residuals. The irregularity is the number of commands that were held or skipped.
IRREGULARITY_COST = 3.0
# Residual below which a setpoint is explained to rounding, rad.
ROUNDING = 1e-9
# Residual that is assumed for a command that was not recorded, rad.
UNKNOWN_RESIDUAL = 1e-4


def match_commands(
    sent: Array, setpoints: Array, number: Counts, *, weight: float, window: tuple[int, int]
) -> tuple[Counts, float]:
    """Return the commands that explain setpoints best, and their cost.

    Args:
        sent: Command of each cycle (C, n), rad; NaN where none was recorded.
        setpoints: Setpoint that each of K rows reveals (K, n), rad: a point between the previous
            call's command and the current call's.
        number: Number of each row's cycle (K,), increasing, an index into `sent`.
        weight: Weight of the current call's command in a setpoint, the previous call's being
            1 - weight. It is 1 if calls begin with the cycle.
        window: Oldest and newest command that a row may have taken: the row of cycle k may have
            taken the commands k - window[0] to k + window[1].

    Returns:
        Indices (2, K) of the previous call's and of the current call's command at the end of each
        row's cycle; and the cost of this sequence: the sum of the logarithms of the rows' squared
        residuals, and of the commands that were held or skipped.
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
        sent: Command of each cycle (C, n), rad; NaN where none was recorded.
        setpoints: Setpoint that each of K rows reveals (K, n), rad.
        number: Number of each row's cycle (K,), increasing, an index into `sent`.
        weight: Weight of the current call's command in a setpoint, the previous call's being
            1 - weight.
        oldest: The row of cycle k may have taken command k - oldest at the earliest.
        newest: The row of cycle k may have taken command k + newest at the latest.
        matched: Result: indices (2, K) of the previous call's and of the current call's command at
            the end of each row's cycle.
    """
    rows = len(setpoints)
    last = len(sent) - 1
    width = oldest + newest + 1
    unknown_cost = np.log(1.0 + (UNKNOWN_RESIDUAL / ROUNDING) ** 2)
    irregularity_cost = IRREGULARITY_COST * np.log(1.0 + np.arange(len(sent) + 1.0))

    # Cost of the cheapest sequence that ends with each column of the previous row.
    cost = np.zeros(width)
    # Cost of the cheapest sequence that ends with each column of the current row.
    row_cost = np.zeros(width)
    # The cheapest column of the previous row among columns 0 to j, for each j.
    cheapest = np.zeros(width, dtype=np.int64)
    # The previous call's command, and the previous row's column, in the cheapest sequence to each
    # column.
    before = np.zeros((rows, width), dtype=np.int64)
    origin = np.full((rows, width), -1, dtype=np.int64)

    for k in range(rows):
        shift = number[k] - number[k - 1] if k > 0 else width
        follows_gap = shift > 1

        for j in range(width):
            row_cost[j] = np.inf
            command = _clip_index(number[k] - oldest + j, last)
            residual_cost = -1.0

            # Usual jumps, and one more choice: from the cheapest column however far back.
            for jump in range(MAX_JUMP + 2):
                is_long_jump = jump > MAX_JUMP

                # Column of the previous row that stands for the command `command - jump`. After a
                # gap, the cheapest column up to it.
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

                # If calls begin with the cycle, the previous command does not matter: one residual
                # serves all jumps.
                if weight < 1.0 or residual_cost < 0.0:
                    square = _squared_residual(sent, setpoints, k, previous, command, weight)
                    # NaN: the command was not recorded.
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

    # Trace the cheapest sequence back from the last row.
    column = cheapest[width - 1]
    total = cost[column]
    for k in range(rows - 1, -1, -1):
        matched[0, k] = before[k, column]
        matched[1, k] = _clip_index(number[k] - oldest + column, last)
        column = origin[k, column]
    return total


def _clip_index(index: int, last: int) -> int:
    """Return an index clipped to the commands: beyond the first or last one, that one was held."""
    return min(max(index, 0), last)


def _squared_residual(
    sent: Array, setpoints: Array, row: int, previous: int, command: int, weight: float
) -> float:
    """Return the squared distance of a row's setpoint from where two commands put it, rad^2.

    It is NaN if a command was not recorded.
    """
    square = 0.0
    for i in range(setpoints.shape[1]):
        expected = sent[command, i]
        if weight < 1.0:
            expected = (1.0 - weight) * sent[previous, i] + weight * expected
        square += (setpoints[row, i] - expected) ** 2
    return square
