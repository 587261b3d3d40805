"""Recognizes the moves of movej in a recording, by the law of `simbridge.servo.movej`.

A recording of joint moves does not show the tuning of servoj. That it was movej is the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simbridge.identification.held import MAX_CYCLE_DIFFERENCE
from simbridge.identification.robust import resolution
from simbridge.identification.target_motion import TargetMotion
from simbridge.servo.movej import MovejLaw
from simbridge.text import counted, significant

# Smallest number of cycles of a move that shows a trapezoid.
MIN_CYCLES = 20
# Largest difference from the predicted positions, in units of the resolution of the digits.
MAX_DIGITS = 5.0
# The same as a fraction of the move's length; the larger one counts.
MAX_DEVIATION = 1e-6


class Move(NamedTuple):
    """A move of movej.

    Attributes:
        acceleration: Acceleration of the joint that turns farthest, rad/s^2.
        speed: Largest speed of that joint, rad/s.
        residual: Largest difference of a joint from the law, rad.
    """

    acceleration: float
    speed: float
    residual: float


def find_moves(motion: TargetMotion) -> list[Move]:
    """Return the moves of a recording that movej made.

    Only moves from rest to rest of which every cycle was recorded are recognized.
    """
    is_moving = (motion.qd != 0.0).any(axis=1) | (motion.qdd != 0.0).any(axis=1)
    edges = np.flatnonzero(np.diff(is_moving.astype(int)))
    # The last row at rest before each move; the last row of each move.
    firsts = edges[~is_moving[edges]]
    lasts = edges[is_moving[edges]]
    if len(firsts) and len(lasts) and lasts[0] < firsts[0]:
        lasts = lasts[1:]

    moves = [
        _fit_move(motion[first : last + 1]) for first, last in zip(firsts, lasts, strict=False)
    ]
    return [move for move in moves if move is not None]


def describe_moves(moves: Sequence[Move]) -> str:
    """Return a sentence on moves: "movej made 2 moves: 1.40 rad/s^2, 1.05 rad/s"."""
    accelerations = _describe_range([move.acceleration for move in moves])
    speeds = _describe_range([move.speed for move in moves])
    return (
        f"movej made {counted(len(moves), 'move')}: {accelerations} rad/s^2, {speeds} rad/s; the "
        "tuning of servoj does not show in them"
    )


def _describe_range(values: Sequence[float]) -> str:
    """Return "1.40" where values are equal to three digits, else "1.40 to 25.0"."""
    least = significant(min(values))
    most = significant(max(values))
    return least if least == most else f"{least} to {most}"


def _fit_move(motion: TargetMotion) -> Move | None:
    """Return the move of rows from the last one at rest to the first one at the goal, if it is one.

    None means that the law of movej does not make this motion.
    """
    spans = np.diff(motion.times)
    is_whole = np.abs(spans - motion.cycle) < MAX_CYCLE_DIFFERENCE * motion.cycle
    travel = np.abs(motion.q[-1] - motion.q[0])
    farthest = int(np.argmax(travel))
    if len(spans) < MIN_CYCLES or not is_whole.all() or not travel[farthest] > 0.0:
        return None

    acceleration = float(np.abs(motion.qdd[:, farthest]).max())
    fastest_row = float(np.abs(motion.qd[:, farthest]).max())
    if not (acceleration > 0.0 and fastest_row > 0.0):
        return None

    # The largest speed is that of a row, or the peak of a triangle between two rows.
    length = float(travel[farthest])
    peak = float(np.sqrt(acceleration * length))
    fits = [_compare(motion, acceleration, speed) for speed in (fastest_row, peak)]
    best = min(fits, key=lambda move: move.residual)
    bound = max(MAX_DIGITS * resolution(motion.q), MAX_DEVIATION * length)
    return best if best.residual < bound else None


def _compare(motion: TargetMotion, acceleration: float, speed: float) -> Move:
    """Return a move with how well it explains a motion; its residual is infinite if not at all."""
    law = MovejLaw(motion.cycle, acceleration, speed)
    predicted = law.follow(motion.q[0], motion.q[-1]).q
    if len(predicted) != len(motion) - 1:
        return Move(acceleration, speed, np.inf)
    return Move(acceleration, speed, float(np.abs(predicted - motion.q[1:]).max()))
