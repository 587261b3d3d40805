"""Predicts a recording by the servo law, from its first row and the commands of its calls."""

from __future__ import annotations

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.identification.calls import Calls
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.robot.pose import Array
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE, ServojLaw

# The prediction restarts after a gap of more cycles than this: which commands it hid cannot be
# known.
MAX_GAP_CYCLES = 8
# It restarts only after a gap longer than this many usual spans.
MAX_GAP_SPANS = 1.5
# A row that is explained to this by the recorded commands shows the one before, rad.
MAX_RESIDUAL = 1e-5
# With more weight than this, the current command hides the one before.
MAX_WEIGHT = 0.9


def predict(motion: TargetMotion, calls: Calls, commands: Array) -> tuple[Array, int]:
    """Predict a recording from its first row.

    Args:
        motion: The recording, T rows.
        calls: Its calls.
        commands: Commands (K, n), rad.

    Returns:
        Joint targets predicted minus recorded (T, n), rad; and how often the prediction restarted
        from a row.

    Raises:
        NotIdentified: The law is unstable at this cycle.
    """
    law = _servo_law(motion, calls)
    cycles = motion.cycles
    starts = _starts(motion)
    ends = [*starts[1:], len(motion)]

    errors = np.zeros_like(motion.q)
    for first, end in zip(starts, ends, strict=True):
        count = int(cycles[end - 1] - cycles[first])
        if not count:
            continue

        # The calls from the first row on, and when the first of them began.
        call = int(calls.call[first])
        since_start = motion.times[first] - motion.times[0]
        begin = calls.law.begin + call * calls.law.duration - since_start
        matched = calls.command[call + 1 : int(calls.call[end - 1]) + 2]
        predicted = law.follow(
            commands[matched],
            call=calls.law.duration,
            begin=begin,
            previous=_previous_command(calls, commands, first),
            q=motion.q[first],
            qd=motion.qd[first],
            cycles=count,
        )

        rows = slice(first + 1, end)
        errors[rows] = predicted.q[cycles[rows] - cycles[first] - 1] - motion.q[rows]
    return errors, len(starts) - 1


def _servo_law(motion: TargetMotion, calls: Calls) -> ServojLaw:
    """Return the law that a prediction follows.

    Raises:
        NotIdentified: It is unstable at this cycle.
    """
    # Rounding may exceed what servoj accepts.
    gain = float(np.clip(calls.law.gain, *GAIN_RANGE))
    lookahead = float(np.clip(calls.law.lookahead, *LOOKAHEAD_RANGE))
    try:
        return ServojLaw(motion.cycle, gain, lookahead)
    except InvalidParameter as error:
        raise NotIdentified(
            f"the identified servo law cannot be simulated: {error}".rstrip(".")
        ) from None


def _starts(motion: TargetMotion) -> Array:
    """Return the rows from which the prediction starts: the first one, and those after gaps."""
    span = np.diff(motion.cycles)
    is_gap = (span > MAX_GAP_CYCLES) & (span > MAX_GAP_SPANS * np.median(span))
    return np.concatenate([[0], np.flatnonzero(is_gap) + 1])


def _previous_command(calls: Calls, commands: Array, row: int) -> Array:
    """Return the command before that of a row's call (n,), rad.

    The first call of a recording may come from a command that is not in the file: then the line
    through what the row revealed and this call's command.
    """
    call = calls.call[row]
    weight = calls.weight[row]
    previous = commands[calls.command[call]]
    current = commands[calls.command[call + 1]]
    expected = (1.0 - weight) * previous + weight * current

    is_hidden = weight > MAX_WEIGHT
    if is_hidden or np.linalg.norm(calls.setpoints[row] - expected) < MAX_RESIDUAL:
        return previous
    return np.asarray((calls.setpoints[row] - weight * current) / (1.0 - weight))
