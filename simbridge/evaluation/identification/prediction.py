"""How well the servo law predicts a whole recording from its first row and the commands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.evaluation.identification.calls import Calls
from simbridge.evaluation.identification.servoj import NotIdentified, TargetMotion
from simbridge.robot.pose import Array
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE, ServojLaw

# The prediction begins again after a hole of more cycles than this: which commands it hid cannot be known.
MAX_HOLE = 8


@dataclass(frozen=True, eq=False)
class Prediction:
    """Joint targets predicted minus recorded.

    Attributes:
        errors: Per row and joint (T, n), rad.
        restarts: How often the prediction began again from a row.
    """

    errors: Array
    restarts: int


def predict(motion: TargetMotion, calls: Calls, commands: Array) -> Prediction:
    """Predict every row's joint targets.

    Args:
        motion: Of the controller.
        calls: The command of each call, and the law.
        commands: (K, n), rad.

    Raises:
        NotIdentified: The law is unstable at this cycle.
    """
    try:
        # Rounding may exceed what servoj accepts.
        gain, lookahead = np.clip(calls.law.gain, *GAIN_RANGE), np.clip(calls.law.lookahead, *LOOKAHEAD_RANGE)
        law = ServojLaw(motion.cycle, float(gain), float(lookahead))
    except InvalidParameter as error:
        raise NotIdentified(f"the law found cannot be simulated: {error}".rstrip(".")) from None
    cycles = motion.cycles
    span = np.diff(cycles)
    starts = np.concatenate([[0], np.flatnonzero((span > MAX_HOLE) & (span > 1.5 * np.median(span))) + 1])
    errors = np.zeros_like(motion.q)
    for first, end in zip(starts, [*starts[1:], len(motion)], strict=True):
        count = int(cycles[end - 1] - cycles[first])
        if not count:
            continue
        call = int(calls.call[first])
        begin = calls.law.begin + call * calls.law.duration - (motion.times[first] - motion.times[0])
        taken = commands[calls.command[call + 1 : int(calls.call[end - 1]) + 2]]
        followed = law.follow(
            taken,
            call=calls.law.duration,
            begin=begin,
            previous=_previous(calls, commands, first),
            q=motion.q[first],
            qd=motion.qd[first],
            cycles=count,
        )
        rows = slice(first + 1, end)
        errors[rows] = followed.q[cycles[rows] - cycles[first] - 1] - motion.q[rows]
    return Prediction(errors, len(starts) - 1)


def _previous(calls: Calls, commands: Array, row: int) -> Array:
    """The command before that of a row's call (n,), rad.

    The first call of a recording may come from a command that is not in the file: then the line through what the row
    measured and this call's command.
    """
    call, share = calls.call[row], calls.share[row]
    previous, current = commands[calls.command[call]], commands[calls.command[call + 1]]
    expected = (1.0 - share) * previous + share * current
    if share > 0.9 or np.linalg.norm(calls.seen[row] - expected) < 1e-5:
        return previous
    return np.asarray((calls.seen[row] - share * current) / (1.0 - share))
