"""Finds the command that each call of servoj took, by dynamic programming (Viterbi) over the calls.

A late sender holds a command or skips some. The search finds the sequence of commands that fits the
recorded setpoints best with few commands held or skipped.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simbridge.identification.calls import Calls, TimedLaw, reveal_calls
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.kernels.compile import kernel_of
from simbridge.robot.pose import Array, Counts

# Largest number of commands by which a call may advance.
MAX_CALL_JUMP = 40
# Factor of the logarithm of the irregularity in the cost of a sequence, relative to the logarithms
# of squared residuals. The irregularity is the number of commands that were held or skipped.
CALL_IRREGULARITY_COST = 1.0
# Residual below which a setpoint is explained to rounding, rad: commands are in single precision.
SINGLE_ROUNDING = 1e-6

# Number of commands before and after the nearest ones that are considered for each call.
CANDIDATE_MARGIN = 3
# Largest number of commands that are considered for a call.
MAX_CANDIDATES = 1000
# Number of rows whose median smooths the position along the commands.
MEDIAN_ROWS = 5


def match_calls(motion: TargetMotion, law: TimedLaw, commands: Array, index: Array) -> Calls:
    """Return the calls under a law, with the command that each one took.

    Args:
        motion: The recorded joint targets, T rows.
        law: The servo law and the timing of its calls.
        commands: Commands (K, n), rad, in the order in which they were sent.
        index: Rough position of each row along the commands (T,), as a fractional index.

    Raises:
        NotIdentified: The setpoints advance too irregularly.
    """
    calls = reveal_calls(motion, law)
    low, high = _candidate_ranges(calls.call, index, len(commands) - 1)
    width = int((high - low).max()) + 1
    if width > MAX_CANDIDATES:
        raise NotIdentified("the setpoints do not follow the commands steadily")

    # Sort the rows by their calls.
    order = np.argsort(calls.call, kind="stable")
    first = np.searchsorted(calls.call[order], np.arange(len(low)))
    setpoints = np.ascontiguousarray(calls.setpoints[order])
    weight = calls.weight[order]

    command = np.zeros(len(low), dtype=np.int64)
    search = kernel_of(search_calls, "search for commands")
    search(commands, setpoints, weight, first, low, high, width, command)
    return replace(calls, command=command)


def _candidate_ranges(call: Counts, index: Array, last: int) -> tuple[Counts, Counts]:
    """Return the lowest and highest index of a command that each of M calls may have taken (M,).

    The first of them is the call before the first recorded one.

    Args:
        call: The call of each row (T,).
        index: Rough position of each row along the commands (T,), as a fractional index.
        last: Index of the last command.
    """
    # If the path of the commands returns to a point, the position of single rows may jump.
    padded = np.pad(index, MEDIAN_ROWS // 2, mode="edge")
    neighbours = np.lib.stride_tricks.sliding_window_view(padded, MEDIAN_ROWS)
    smooth_index = np.median(neighbours, axis=1)

    # The setpoint of a row lies between the commands of two calls.
    calls = int(call[-1]) + 2
    low = np.full(calls, np.inf)
    high = np.full(calls, -np.inf)
    for number in (call, call + 1):
        np.minimum.at(low, number, np.floor(smooth_index))
        np.maximum.at(high, number, np.ceil(smooth_index))

    # The commands of calls without rows lie between those of the nearest calls that have some.
    known = np.flatnonzero(np.isfinite(low))
    missing = np.flatnonzero(~np.isfinite(low))
    after = np.searchsorted(known, missing)
    low[missing] = low[known[after - 1]]
    high[missing] = high[known[after]]

    lowest = np.minimum(low, high) - CANDIDATE_MARGIN
    highest = np.maximum(low, high) + CANDIDATE_MARGIN
    return np.clip(lowest, 0, last).astype(np.int64), np.clip(highest, 0, last).astype(np.int64)


def search_calls(  # noqa: PLR0913 (compiled: plain arrays and numbers)
    commands: Array,
    setpoints: Array,
    weight: Array,
    first: Counts,
    low: Counts,
    high: Counts,
    width: int,
    command: Counts,
) -> None:
    """Find the cheapest sequence of commands; compiled.

    Candidate j of call m is the command `low[m] + j`.

    Args:
        commands: Commands (K, n), rad.
        setpoints: Setpoints of the rows (T, n), rad, in the order of their calls.
        weight: Weight of the current call's command in each setpoint (T,), in the same order, the
            previous call's being 1 - weight.
        first: Index of the first row of each call (M,).
        low: Lowest command that is considered for each call (M,).
        high: Highest command that is considered for each call (M,).
        width: Largest number of commands that are considered for a call.
        command: Result: index of the command of each call (M,).
    """
    calls = len(low)
    cost = np.full((calls, width), np.inf)
    origin = np.zeros((calls, width), dtype=np.int64)
    for j in range(high[0] - low[0] + 1):
        cost[0, j] = 0.0

    for m in range(1, calls):
        _extend_sequences(commands, setpoints, weight, first, low, high, m, cost, origin)

    # Trace the cheapest sequence back from the last call.
    best = 0
    for j in range(width):
        if cost[calls - 1, j] < cost[calls - 1, best]:
            best = j
    for m in range(calls - 1, -1, -1):
        command[m] = low[m] + best
        best = origin[m, best]


def _extend_sequences(  # noqa: PLR0913 (compiled: plain arrays and numbers)
    commands: Array,
    setpoints: Array,
    weight: Array,
    first: Counts,
    low: Counts,
    high: Counts,
    m: int,
    cost: Array,
    origin: Counts,
) -> None:
    """Extend the cheapest sequences of commands by one call.

    Args:
        commands: Commands (K, n), rad.
        setpoints: Setpoints of the rows (T, n), rad, in the order of their calls.
        weight: Weight of the current call's command in each setpoint (T,), the previous call's
            being 1 - weight.
        first: Index of the first row of each call (M,).
        low: Lowest command that is considered for each call (M,).
        high: Highest command that is considered for each call (M,).
        m: Index of the call, at least 1.
        cost: Cost of the cheapest sequence that ends with each candidate of each call (M, J). Row m
            is infinite at first, and is filled in.
        origin: Result: the previous call's candidate in each of these sequences (M, J); row m is
            filled in.
    """
    for j in range(high[m] - low[m] + 1):
        current = low[m] + j
        shortest_jump = max(0, current - high[m - 1])
        longest_jump = min(MAX_CALL_JUMP, current - low[m - 1])

        for jump in range(shortest_jump, longest_jump + 1):
            previous = current - jump
            candidate = previous - low[m - 1]
            # A regular sender advances by one command a call.
            irregularity = np.log(1.0 + abs(jump - 1.0))
            total = cost[m - 1, candidate] + CALL_IRREGULARITY_COST * irregularity

            # The setpoints of the rows between the two calls lie between their two commands.
            for row in range(first[m - 1], first[m]):
                square = 0.0
                for i in range(commands.shape[1]):
                    step = commands[current, i] - commands[previous, i]
                    expected = commands[previous, i] + weight[row] * step
                    square += (setpoints[row, i] - expected) ** 2
                total += np.log(1.0 + square / SINGLE_ROUNDING**2)

            if total < cost[m, j]:
                cost[m, j] = total
                origin[m, j] = candidate
