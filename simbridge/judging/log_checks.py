"""Refuses logs whose times or positions are in other units, or that are of another arm."""

from __future__ import annotations

import numpy as np

from simbridge.errors import InputFileError
from simbridge.judging.log import ControllerLog
from simbridge.robot.robot import Robot
from simbridge.text import counted, significant

# Shortest median time between samples, s; a shorter one is in another unit.
MIN_SPAN_S = 1e-4
# Longest median time between samples, s; a longer one is in another unit.
MAX_SPAN_S = 2.0
# Length in s of the other units in which times are recorded.
TIME_UNITS = {"milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
# Largest position of a joint, rad: UR's joints turn by up to one turn to either side, which is
# allowed with some margin.
MAX_POSITION = 2.0 * np.pi + 0.2


def check_log(log: ControllerLog, robot: Robot | None) -> None:
    """Refuse a log with times or positions in other units, or with the joints of another arm.

    Args:
        log: The log.
        robot: The arm that the user named; None to let the log's joints decide.

    Raises:
        InputFileError: The log is of another arm, or its times or positions are in other units.
    """
    joint_count = len(log.joint_names)
    if robot is not None and joint_count != robot.n:
        reason = (
            f"it is of an arm with {counted(joint_count, 'joint')}, but the "
            f"{robot.title or robot.name} has {robot.n}; name the right robot"
        )
        raise InputFileError(log.name, reason, field="joints")
    _check_times(log)
    _check_positions(log)


def _check_times(log: ControllerLog) -> None:
    """Refuse times that are not in s."""
    span = float(np.median(np.diff(log.times)))
    if MIN_SPAN_S <= span <= MAX_SPAN_S:
        return
    reason = f"its samples are {span:.4g} apart, which would be seconds: convert the times to s"
    fitting = [
        unit for unit, factor in TIME_UNITS.items() if MIN_SPAN_S <= span * factor <= MAX_SPAN_S
    ]
    if fitting:
        reason += f" (they seem to be {fitting[0]})"
    raise InputFileError(log.name, reason, field="time")


def _check_positions(log: ControllerLog) -> None:
    """Refuse joint positions in degrees, in any of the signals.

    The last joint does not count, since it turns without limit in some arms.
    """
    signals = {"actual_q": log.actual_q, "target_q": log.target_q}
    if log.reference is not None:
        signals[log.reference.name] = log.reference.q
    if log.position_commands is not None:
        signals["commands"] = log.position_commands.values
    for name, positions in signals.items():
        if positions is None or positions.shape[1] == 1:
            continue
        largest = float(np.nanmax(np.abs(positions[:, :-1]), initial=0.0))
        if largest > MAX_POSITION:
            reason = (
                f"joint positions reach {significant(largest, 4)}, which would be more than a "
                "full turn in radians; they seem to be in degrees: convert them to radians"
            )
            raise InputFileError(log.name, reason, field=name)
