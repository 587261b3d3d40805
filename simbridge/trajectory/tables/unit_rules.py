"""The units of positions and times where neither a name nor `--columns` states them.

The numbers decide, and what they leave open is refused:

- **Length**: metres if no position is farther than 5 from the origin, millimetres if one is at
  least 50 away.
- **Time**: seconds if the median step is below 1. Else the unit in which samples are 0.1 ms to 60 s
  apart and the tool moves at 2 mm/s to 10 m/s, or turns at 2 to 1000 degrees/s (95th percentile);
  of several the one in which the first stamp, counted from 1970, is a date from 1990 to 2100. Fewer
  than five samples are in seconds, unless it is a date.

Formats that define seconds and metres are read in these; a note says what the rules make of them.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simbridge.errors import InputFileError
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.text import plain, significant
from simbridge.trajectory.tables.unit_comments import CommentedUnit, commented_unit
from simbridge.trajectory.tables.units import ROLE_UNITS, UNITS

# Positions up to here are in metres, and from there on in millimetres.
MAX_METRES = 5.0
MIN_MILLIMETRES = 50.0
# Samples at least for which the unit of the time is judged.
MIN_SAMPLES = 5
TIME_UNITS = ROLE_UNITS["t"]


class Bounds(NamedTuple):
    """The smallest and the largest plausible value."""

    low: float
    high: float

    def contain(self, value: float) -> bool:
        """Return whether a value is plausible."""
        return self.low <= value <= self.high


# 1990 and 2100, s since 1970.
DATES = Bounds(631_152_000.0, 4_102_444_800.0)
# Plausible times between two samples, s.
PERIODS = Bounds(1e-4, 60.0)
# Possible times between two samples with stamps whose unit is stated, s.
POSSIBLE_PERIODS = Bounds(1e-6, 1e6)
# Plausible speeds of the tool, m/s and rad/s.
SPEEDS = Bounds(2e-3, 10.0)
TURN_RATES = Bounds(math.radians(2.0), math.radians(1000.0))


def length_unit(
    path: str | Path, positions: Array, metres_by: str, stated: CommentedUnit | None = None
) -> str:
    """Return the unit of positions (T, 3) that nothing states.

    Args:
        path: The file, for messages.
        positions: The positions as they are in the file.
        metres_by: Name of the format that defines metres; "" if none does.
        stated: What comments state; None if they state nothing.

    Raises:
        InputFileError: The positions may be in metres or in millimetres.
    """
    farthest = float(np.abs(positions).max(initial=0.0))
    commented = commented_unit(path, stated, "x", implausible=_implausible_lengths(farthest))
    if commented and commented != "m" and metres_by:
        reason = (
            f"the comment states {commented}, but {metres_by} is in metres. State which is right: "
            f"--columns x[{commented}] or --columns x[m]"
        )
        raise InputFileError(path, reason, field="position")
    if commented and not metres_by:
        return commented
    if metres_by:
        if farthest >= MIN_MILLIMETRES:
            warnings.warn(
                f"{path}: read in metres, as {metres_by} says: a position is "
                f"{significant(farthest)} m from the origin. If it is {significant(farthest)} mm, "
                "add --columns x[mm].",
                stacklevel=2,
            )
        return "m"
    if farthest <= MAX_METRES:
        return "m"
    if farthest >= MIN_MILLIMETRES:
        return "mm"
    reason = (
        f"metres or millimetres? The farthest position is {plain(farthest)} from the origin, "
        f"which may be {significant(farthest)} m or {significant(farthest)} mm. State which: "
        "--columns x[m] or --columns x[mm]"
    )
    raise InputFileError(path, reason, field="position")


def _implausible_lengths(farthest: float) -> list[str]:
    """Return the units that positions are hardly in, by the farthest one."""
    if farthest <= MAX_METRES:
        return ["cm", "mm"]
    return ["m"] if farthest >= MIN_MILLIMETRES else []


def time_unit(path: str | Path, stamps: Array, poses: Array, seconds_by: str) -> str:
    """Return the unit of stamps that nothing states.

    Args:
        path: The file, for messages.
        stamps: The stamps (T,), as they are in the file.
        poses: Poses of the samples (T, 7), m and quaternions.
        seconds_by: Name of the format that defines seconds; "" if none does.

    Raises:
        InputFileError: The stamps may be in several units.
    """
    dated_unit = None if seconds_by else _unit_of_date(stamps)
    if len(stamps) < MIN_SAMPLES:
        return dated_unit or "s"
    period = float(np.median(np.diff(stamps)))
    if not period >= 1.0:
        return "s"

    candidates = _plausible_units(stamps, poses, period)
    if dated_unit in candidates:
        return dated_unit
    if seconds_by:
        if candidates and "s" not in candidates:
            _warn_of_seconds(path, seconds_by, period, candidates[0])
        return "s"
    if len(candidates) <= 1:
        return candidates[0] if candidates else "s"

    readings = [f"{significant(period / UNITS[unit], 3)} s ({unit})" for unit in candidates]
    flags = [f"--columns t[{unit}]" for unit in candidates]
    reason = (
        f"the unit of its times is not stated: the sample period may be {' or '.join(readings)}. "
        f"State which: {' or '.join(flags)}"
    )
    raise InputFileError(path, reason, field="time")


def implausible_times(stamps: Array) -> list[str]:
    """Return the units that stamps (T,) are hardly in: less than 1 apart they are in seconds."""
    if len(stamps) < MIN_SAMPLES:
        return []
    period = float(np.median(np.diff(stamps)))
    if period < 1.0:
        return [unit for unit in TIME_UNITS if unit != "s"]
    return [unit for unit in TIME_UNITS if not PERIODS.contain(period / UNITS[unit])]


def check_stated_unit(path: str | Path, stamps: Array, unit: str) -> None:
    """Refuse stamps that are impossible in their stated unit.

    Some files state ns above a column of seconds.

    Args:
        path: The file, for messages.
        stamps: The stamps (T,), in the unit of the file.
        unit: The unit that the file states.

    Raises:
        InputFileError: Samples would be less than 1 us or more than ten days apart, and another
            unit is plausible.
    """
    if len(stamps) < MIN_SAMPLES:
        return
    period = float(np.median(np.diff(stamps)))
    plausible_units = [
        candidate
        for candidate in TIME_UNITS
        if candidate != unit and PERIODS.contain(period / UNITS[candidate])
    ]
    if POSSIBLE_PERIODS.contain(period / UNITS[unit]) or not plausible_units:
        return
    flags = [f"--columns t[{plausible_unit}]" for plausible_unit in plausible_units]
    reason = (
        f"in the stated unit, {unit}, the sample period would be {plain(period / UNITS[unit])} s. "
        f"State which unit is right: {' or '.join(flags)}"
    )
    raise InputFileError(path, reason, field="time")


def _unit_of_date(stamps: Array) -> str | None:
    """Return the unit in which the first stamp is a date; None if there is none."""
    if not len(stamps):
        return None
    return next((unit for unit in TIME_UNITS if DATES.contain(stamps[0] / UNITS[unit])), None)


def _plausible_units(stamps: Array, poses: Array, period: float) -> list[str]:
    """Return the units in which samples and motion are plausible, or at least the samples."""
    possible = [unit for unit in TIME_UNITS if PERIODS.contain(period / UNITS[unit])]
    motion = _motion(stamps, poses)
    moving = [
        unit
        for unit in possible
        if any(bounds.contain(value * UNITS[unit]) for value, bounds in motion)
    ]
    return moving or possible


def _motion(stamps: Array, poses: Array) -> list[tuple[float, Bounds]]:
    """Return 95th percentiles of speed and turn rate, each per unit of time, with their bounds."""
    steps = np.diff(stamps)
    is_forward = steps > 0.0
    if not is_forward.any():
        return []

    # A quaternion of length zero is refused later, by its line.
    quaternions = poses[:, 3:]
    is_zero = ~quaternions.any(axis=1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        unit_quaternions = pose.normalize(np.where(is_zero, pose.IDENTITY[3:], quaternions))
        unit_poses = np.column_stack([poses[:, :3], unit_quaternions])
        translations, turns = pose.error(unit_poses[1:], unit_poses[:-1])
        speeds = np.linalg.norm(translations, axis=1)[is_forward] / steps[is_forward]
        turn_rates = np.linalg.norm(turns, axis=1)[is_forward] / steps[is_forward]
        return [
            (float(np.percentile(speeds, 95)), SPEEDS),
            (float(np.percentile(turn_rates, 95)), TURN_RATES),
        ]


def _warn_of_seconds(path: str | Path, seconds_by: str, period: float, unit: str) -> None:
    """Warn that stamps are read in seconds, but are plausible in another unit."""
    other = f"{significant(period / UNITS[unit] * 1e3)} ms in {unit}"
    warnings.warn(
        f"{path}: read in seconds and metres, as {seconds_by} says: the sample period is "
        f"{plain(period)} s. It could also be {other}; in that case, add --columns t[{unit}].",
        stacklevel=2,
    )
