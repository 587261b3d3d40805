"""Events are found in a log: lost rows, jumps of the commands, slower speed, and stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simbridge.judging.log import Clock, Commands, ControllerLog, Signal
from simbridge.judging.motions import Motion
from simbridge.robot.pose import Array
from simbridge.ur.tables import RuntimeState, SafetyMode, mode_label

# A span between rows above this many usual ones has lost rows in it.
GAP_RATIO = 1.5
# A span between rows stamped by another clock is late above this many usual ones.
LATE_RATIO = 2.0
# Smallest jump of a command that is reported, rad.
MIN_JUMP = 0.005
# A jump is a step this many times as long as the usual one of a moving arm ...
JUMP_RATIO = 5.0
# ... and as the steps beside it.
NEIGHBOUR_RATIO = 3.0
# Smallest step of a command that belongs to a motion, rad.
MIN_STEP = 1e-6
# Speed scaling below which the controller moves more slowly than planned.
FULL_SPEED = 0.999
# Time around the end of a motion within which a change of mode or program ended it, s.
STOP_WINDOW_S = 0.15
# Safety modes in which the arm may move.
MOVING_MODES = (
    SafetyMode.NORMAL,
    SafetyMode.REDUCED,
    SafetyMode.RECOVERY,
    SafetyMode.VALIDATE_JOINT_ID,
    SafetyMode.UNDEFINED,
)
# Program states in which the program moves the arm.
MOVING_STATES = (RuntimeState.PLAYING, RuntimeState.RESUMING)
# Program states of a program that may go on.
PAUSE_STATES = (RuntimeState.PAUSING, RuntimeState.PAUSED)


@dataclass(frozen=True)
class Gap:
    """A span without rows.

    Attributes:
        at_s: Time of the last row before it, s from the log's beginning.
        duration_s: Time to the next row, s.
        lost: Number of rows that are missing; 0 for rows that were only late.
    """

    at_s: float
    duration_s: float
    lost: int


@dataclass(frozen=True)
class Jump:
    """A step of the commands that is much longer than those around it.

    Attributes:
        at_s: Time of the command after the jump, s from the log's beginning; None if the commands
            have no times.
        index: Number of that command, from 0.
        joint: Name of the joint that jumps farthest.
        size_rad: Size of its step, rad.
    """

    at_s: float | None
    index: int
    joint: str
    size_rad: float


@dataclass(frozen=True)
class Slowdown:
    """A span in which the controller moved at less than full speed.

    Attributes:
        begin_s: Time of its first row, s from the log's beginning.
        end_s: Time of its last row, s.
        least: Smallest speed scaling in it, 0 to 1.
    """

    begin_s: float
    end_s: float
    least: float


@dataclass(frozen=True)
class MotionStop:
    """The end of a motion by something other than the motion itself.

    Attributes:
        at_s: Time of the change that shows the cause, s from the log's beginning.
        cause: The cause, as a noun phrase: "protective stop", "end of the program".
        evidence: What shows it, as a clause.
    """

    at_s: float
    cause: str
    evidence: str


class Change(NamedTuple):
    """A change of a signal.

    Attributes:
        at_s: Time of the change, s from the log's beginning.
        value: The value from then on.
    """

    at_s: float
    value: int


def find_gaps(log: ControllerLog) -> tuple[Gap, ...]:
    """Return the spans of a log without rows that were expected.

    A row in which only some values are missing was recorded, so it is not one of these.
    """
    times = log.times
    if log.incomplete_times is not None:
        times = np.union1d(times, log.incomplete_times)
    spans = np.diff(times)
    usual = float(np.median(spans))
    by_controller = log.clock is Clock.CONTROLLER
    ratio = GAP_RATIO if by_controller else LATE_RATIO

    gaps = []
    for row in np.flatnonzero(spans > ratio * usual):
        missing = round(float(spans[row]) / usual) - 1 if by_controller else 0
        gaps.append(Gap(float(times[row]), float(spans[row]), missing))
    return tuple(gaps)


def find_jumps(commands: Commands, joint_names: Sequence[str]) -> tuple[Jump, ...]:
    """Return the jumps of joint commands.

    Args:
        commands: The commands.
        joint_names: Names of their joints.
    """
    steps = np.abs(np.diff(commands.values, axis=0))
    length = steps.max(axis=1)
    moving = length[length > MIN_STEP]
    if not len(moving):
        return ()

    neighbours = np.maximum(
        np.concatenate([[0.0], length[:-1]]), np.concatenate([length[1:], [0.0]])
    )
    limit = max(MIN_JUMP, JUMP_RATIO * float(np.median(moving)))
    is_jump = (length > limit) & (length > NEIGHBOUR_RATIO * neighbours)

    jumps = []
    for step in np.flatnonzero(is_jump):
        index = int(step) + 1
        at_s = None if commands.times is None else float(commands.times[index])
        joint = joint_names[int(np.argmax(steps[step]))]
        jumps.append(Jump(at_s, index, joint, float(length[step])))
    return tuple(jumps)


def find_slowdowns(log: ControllerLog, motion: Motion) -> tuple[Slowdown, ...]:
    """Return the spans of a motion in which the controller moved at less than full speed.

    The first and last rows do not count: the arm rests there, perhaps without a program.
    """
    scaling = log.speed_scaling
    if scaling is None or not len(scaling.times):
        return ()
    values = _values_at(scaling, log.times[motion.rows])
    is_slow = values < FULL_SPEED
    is_slow[[0, -1]] = False
    slow = np.flatnonzero(is_slow)
    if not len(slow):
        return ()

    # Spans of successive rows.
    slowdowns = []
    for rows in np.split(slow, np.flatnonzero(np.diff(slow) > 1) + 1):
        times = log.times[motion.first + rows]
        least = float(values[rows].min())
        slowdowns.append(Slowdown(float(times[0]), float(times[-1]), least))
    return tuple(slowdowns)


def find_stop(log: ControllerLog, motion: Motion) -> MotionStop | None:
    """Return what ended a motion; None if the log shows nothing but its end."""
    if log.safety_mode is not None:
        change = _change_near(log.safety_mode, motion.end_s, MOVING_MODES)
        if change is not None:
            name = mode_label(change.value, SafetyMode)
            return MotionStop(change.at_s, name.split(" (")[0], f"the safety mode became {name}")

    if log.program_state is not None:
        change = _change_near(log.program_state, motion.end_s, MOVING_STATES)
        if change is not None:
            is_pause = change.value in PAUSE_STATES
            cause = "pause of the program" if is_pause else "end of the program"
            name = mode_label(change.value, RuntimeState)
            return MotionStop(change.at_s, cause, f"the program's state became {name}")
    return None


def _values_at(signal: Signal, instants: Array) -> Array:
    """Return the values (T,) of a signal at instants (T,): the newest of each."""
    index = np.searchsorted(signal.times, instants, side="right") - 1
    return np.asarray(signal.values[np.maximum(index, 0)], dtype=float)


def _change_near(signal: Signal, instant: float, usual: tuple[int, ...]) -> Change | None:
    """Return the change of a signal away from its usual values that is close to an instant.

    Args:
        signal: The signal.
        instant: The instant, s from the log's beginning.
        usual: Its usual values.
    """
    # The values near the instant, and the one before them.
    near = (instant - STOP_WINDOW_S, instant + STOP_WINDOW_S)
    begin, end = np.searchsorted(signal.times, near)
    rows = slice(max(begin - 1, 0), end)
    times = signal.times[rows]
    values = signal.values[rows]

    is_usual = np.isin(values, usual)
    for index in np.flatnonzero(is_usual[:-1] & ~is_usual[1:]) + 1:
        at_s = float(times[index])
        if abs(at_s - instant) < STOP_WINDOW_S:
            return Change(at_s, int(values[index]))
    return None
