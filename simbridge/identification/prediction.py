"""Predicts a recording by the servo law, from its first row and the commands of its calls."""

from __future__ import annotations

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.identification.calls import Calls
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.robot.pose import Array
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE, ServojLaw

# Largest number of cycles between rows that does not count as a gap. The commands taken within a
# gap cannot be known, so the prediction restarts after it.
MAX_GAP_CYCLES = 8
# The same limit as a multiple of the usual span between rows; a gap exceeds both.
MAX_GAP_SPANS = 1.5
# Largest residual of a row whose call has the recorded previous command, rad.
MAX_RESIDUAL = 1e-5
# Weight of the current command above which a setpoint does not show the previous one.
MAX_WEIGHT = 0.9


def predict(motion: TargetMotion, calls: Calls, commands: Array) -> tuple[Array, int]:
    """Predict the joint targets of a recording from its first row and the commands of its calls.

    Args:
        motion: Recorded joint targets in T rows.
        calls: The calls of the recording, with the identified servo law.
        commands: Commands (K, n), rad.

    Returns:
        Predicted minus recorded joint targets (T, n), rad; and how often the prediction restarted
        from a recorded row.

    Raises:
        NotIdentified: The identified law is unstable at the controller's cycle.
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

        # The calls from the first row on: when the first of them began, and the commands of all.
        # `calls.command` starts with the call before call 0, so call m took `calls.command[m + 1]`.
        first_call = int(calls.call[first])
        last_call = int(calls.call[end - 1])
        since_start = motion.times[first] - motion.times[0]
        begin = calls.law.begin + first_call * calls.law.duration - since_start
        matched = calls.command[first_call + 1 : last_call + 2]
        predicted = law.follow(
            commands[matched],
            call=calls.law.duration,
            begin=begin,
            previous=_previous_command(calls, commands, first),
            q=motion.q[first],
            qd=motion.qd[first],
            cycles=count,
        )

        # The prediction's first row is one cycle after the row that it starts from.
        rows = slice(first + 1, end)
        predicted_rows = cycles[rows] - cycles[first] - 1
        errors[rows] = predicted.q[predicted_rows] - motion.q[rows]
    return errors, len(starts) - 1


def _servo_law(motion: TargetMotion, calls: Calls) -> ServojLaw:
    """Return the identified servo law, for simulation.

    Raises:
        NotIdentified: The law is unstable at the controller's cycle.
    """
    # By rounding, an identified value may lie just beyond the range that servoj accepts.
    gain = float(np.clip(calls.law.gain, *GAIN_RANGE))
    lookahead = float(np.clip(calls.law.lookahead, *LOOKAHEAD_RANGE))
    try:
        return ServojLaw(motion.cycle, gain, lookahead)
    except InvalidParameter as error:
        raise NotIdentified(
            f"the identified servo law cannot be simulated: {error}".rstrip(".")
        ) from None


def _starts(motion: TargetMotion) -> Array:
    """Return the indices of the rows that a prediction starts from: the first, and after gaps."""
    span = np.diff(motion.cycles)
    is_gap = (span > MAX_GAP_CYCLES) & (span > MAX_GAP_SPANS * np.median(span))
    return np.concatenate([[0], np.flatnonzero(is_gap) + 1])


def _previous_command(calls: Calls, commands: Array, row: int) -> Array:
    """Return the previous command at a row's call (n,), rad.

    Before the first row, that command may not be in the file. Then it is extrapolated from the
    current command through the setpoint that the row reveals.
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
