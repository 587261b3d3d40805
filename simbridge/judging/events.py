"""Finds the events of a log: lost rows, jumps of the commands, slower speed, and stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simbridge.judging.log import Clock, Commands, ControllerLog, Signal
from simbridge.judging.logged_motions import Motion
from simbridge.robot.pose import Array
from simbridge.ur.tables import RuntimeState, SafetyMode, mode_label

# Smallest ratio of the time between two rows to the median time that shows lost rows.
GAP_RATIO = 1.5
# The same ratio, above which a row that the recording computer stamped came late.
LATE_RATIO = 2.0
# Smallest jump of a command that is reported, rad.
MIN_JUMP = 0.005
# Smallest ratio of a jump to the median step of a moving arm.
JUMP_RATIO = 5.0
# Smallest ratio of a jump to the steps before and after it.
NEIGHBOUR_RATIO = 3.0
# Smallest step of a command that belongs to a motion, rad.
MIN_STEP = 1e-6
# Smallest speed scaling that counts as full speed; it is 1, up to rounding.
FULL_SPEED = 0.999
# Longest time from the end of a motion to the change of mode or program that ended it, s.
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
# Program states of a paused program, which may be resumed.
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
    """Return the spans of a log in which rows are missing, or came late."""
    # A row in which only some values are missing was recorded, too.
    times = log.times
    if log.incomplete_times is not None:
        times = np.union1d(times, log.incomplete_times)

    spans = np.diff(times)
    median_span = float(np.median(spans))
    # Only the controller's own stamps tell lost rows from late ones.
    is_exact = log.clock is Clock.CONTROLLER
    ratio = GAP_RATIO if is_exact else LATE_RATIO

    gaps = []
    for row in np.flatnonzero(spans > ratio * median_span):
        lost = round(float(spans[row]) / median_span) - 1 if is_exact else 0
        gaps.append(Gap(at_s=float(times[row]), duration_s=float(spans[row]), lost=lost))
    return tuple(gaps)


def find_jumps(commands: Commands, joint_names: Sequence[str]) -> tuple[Jump, ...]:
    """Return the jumps of joint commands: steps much longer than the usual ones and those beside.

    Args:
        commands: The commands.
        joint_names: Names of the joints, from the base.
    """
    # Size of each step: that of the joint that moves farthest, rad.
    joint_steps = np.abs(np.diff(commands.values, axis=0))
    sizes = joint_steps.max(axis=1)
    moving_sizes = sizes[sizes > MIN_STEP]
    if not len(moving_sizes):
        return ()

    # The larger one of the steps before and after each step.
    before = np.concatenate([[0.0], sizes[:-1]])
    after = np.concatenate([sizes[1:], [0.0]])
    neighbours = np.maximum(before, after)
    threshold = max(MIN_JUMP, JUMP_RATIO * float(np.median(moving_sizes)))
    is_jump = (sizes > threshold) & (sizes > NEIGHBOUR_RATIO * neighbours)

    jumps = []
    for step in np.flatnonzero(is_jump):
        index = int(step) + 1
        at_s = None if commands.times is None else float(commands.times[index])
        joint = joint_names[int(np.argmax(joint_steps[step]))]
        jumps.append(Jump(at_s=at_s, index=index, joint=joint, size_rad=float(sizes[step])))
    return tuple(jumps)


def find_slowdowns(log: ControllerLog, motion: Motion) -> tuple[Slowdown, ...]:
    """Return the spans of a motion in which the controller moved at less than full speed.

    The first and last rows do not count: the arm rests there, perhaps without a program.
    """
    scaling = log.speed_scaling
    if scaling is None or not len(scaling.times):
        return ()
    factors = _values_at(scaling, log.times[motion.rows])
    is_slow = factors < FULL_SPEED
    is_slow[[0, -1]] = False
    slow_rows = np.flatnonzero(is_slow)
    if not len(slow_rows):
        return ()

    # Cut the slow rows where they are not successive.
    cuts = np.flatnonzero(np.diff(slow_rows) > 1) + 1
    slowdowns = []
    for rows in np.split(slow_rows, cuts):
        times = log.times[motion.first + rows]
        least = float(factors[rows].min())
        slowdowns.append(Slowdown(begin_s=float(times[0]), end_s=float(times[-1]), least=least))
    return tuple(slowdowns)


def find_stop(log: ControllerLog, motion: Motion) -> MotionStop | None:
    """Return the stop that ended a motion; None if the log shows none."""
    if log.safety_mode is not None:
        change = _find_change_near(log.safety_mode, motion.end_s, MOVING_MODES)
        if change is not None:
            # The label has the number of the mode in parentheses.
            name = mode_label(change.value, SafetyMode)
            cause = name.split(" (")[0]
            return MotionStop(change.at_s, cause, f"the safety mode became {name}")

    if log.program_state is not None:
        change = _find_change_near(log.program_state, motion.end_s, MOVING_STATES)
        if change is not None:
            is_pause = change.value in PAUSE_STATES
            cause = "pause of the program" if is_pause else "end of the program"
            name = mode_label(change.value, RuntimeState)
            return MotionStop(change.at_s, cause, f"the program's state became {name}")
    return None


def _values_at(signal: Signal, instants: Array) -> Array:
    """Return the newest value of a signal at each instant (T,); the first one before that."""
    newest = np.searchsorted(signal.times, instants, side="right") - 1
    return np.asarray(signal.values[np.maximum(newest, 0)], dtype=float)


def _find_change_near(signal: Signal, instant: float, usual: tuple[int, ...]) -> Change | None:
    """Return the change of a signal away from its usual values that is close to an instant.

    Args:
        signal: The signal.
        instant: The instant, s from the log's beginning.
        usual: Usual values of the signal.
    """
    # The values within the window around the instant, and the one before them.
    window = (instant - STOP_WINDOW_S, instant + STOP_WINDOW_S)
    begin, end = np.searchsorted(signal.times, window)
    rows = slice(max(begin - 1, 0), end)
    times = signal.times[rows]
    values = signal.values[rows]

    is_usual = np.isin(values, usual)
    for index in np.flatnonzero(is_usual[:-1] & ~is_usual[1:]) + 1:
        at_s = float(times[index])
        if abs(at_s - instant) < STOP_WINDOW_S:
            return Change(at_s, int(values[index]))
    return None
