"""A recording: poses and instants from the numbers of a table, in units that it states or by rules; gaps and jumps.

Where neither a name nor `--columns` states a unit, the numbers decide, and what they leave open is refused:

- **Length**: metres if no position is farther than 5 from the origin, millimetres if one is at least 50 away.
- **Time**: seconds if the median step is below 1. Else the unit in which samples are 0.1 ms to 60 s apart and the tool
  moves at 2 mm/s to 10 m/s, or turns at 2 to 1000 degrees/s (95th percentile); of several the one in which the first
  stamp, counted from 1970, is a date from 1990 to 2100. Fewer than five samples are in seconds, unless it is a date.

A file that ends in .tum is in seconds and metres: that is what the format is; a note says what the rules make of it.

A gap is a step of more than GAP median steps. Up to LARGEST median steps it is interpolated; a larger one is refused,
unless a treatment is chosen (docs/trajectories.md). Below 1 s of data or five samples no gap is judged. A jump is a
step of more than 20 mm or 10 degrees, without a gap, that is also ten times the 95th percentile of all steps.
"""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import InputFileError, InvalidTrajectory
from simbridge.quoting import quoted
from simbridge.robot import pose
from simbridge.robot.pose import Array, Counts
from simbridge.text import counted, displayed, plain, significant
from simbridge.trajectory.columns import (
    OF_DAY,
    QUATERNION,
    ROTATION_VECTOR,
    UNITS,
    WALL_CLOCK,
    Table,
)
from simbridge.trajectory.trajectory import Trajectory, describe_reading

Gaps = Literal["refuse", "hold", "interpolate", "split"]

GAP, LARGEST = 1.5, 10.0
_SHORTEST = 1.0
_JUMPS = (0.02, math.radians(10.0))
NS = 1_000_000_000
_METRES, _MILLIMETRES = 5.0, 50.0
# 1990 and 2100, in s since 1970.
_DATES = (631_152_000.0, 4_102_444_800.0)
_STEPS = (1e-4, 60.0)
_SPEEDS = (2e-3, 10.0)
_TURNS = (math.radians(2.0), math.radians(1000.0))
# Samples: with fewer neither a unit nor a gap is judged.
_FEWEST = 5
_OFFSET = re.compile(r" ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)$")
_WORDS = {"m": "metres", "cm": "centimetres", "mm": "millimetres"}


class Recording(NamedTuple):
    """A file as read: its motion, and the name of the poses' frame ("" if it has none)."""

    trajectory: Trajectory
    frame: str


def recording_of(path: str | Path, table: Table, rate: float | None = None) -> Recording:
    """The motion in a table; `rate` is that given for a table without time.

    Raises:
        InputFileError: It is none, or it may be in two units; with the line where there is one.
    """
    columns = table.columns
    for part in (slice(3), slice(3, None)):
        if any(units := columns.units[part]) and not all(units) and len(units) == 3:
            raise InputFileError(
                path, f"some of these have a unit, others none: {', '.join(columns.names[part])}"
            )
    if rate not in (None, columns.rate):
        raise InputFileError(path, f"it has times ({', '.join(columns.times)}); omit --rate")
    exact = Path(path).suffix.lower() == ".tum"
    units = columns.units[:3]
    if not any(units):
        units = (_length_unit(path, table.values[:, :3], exact),) * 3
    positions = table.values[:, :3] / np.array([UNITS[unit] for unit in units])
    length = ", ".join(dict.fromkeys(_WORDS[unit] for unit in units))
    rotations, turn = _quaternions(path, table)
    times, epoch_ns, clock = _times(path, table, positions, rotations, exact)
    notes = [f"{counted(table.left_out, 'row')} without a pose left out"] if table.left_out else []
    poses, lines = np.column_stack([positions, rotations]), np.asarray(table.lines)
    again = np.flatnonzero(np.diff(times) == 0.0) + 1
    again = again[(poses[again] == poses[again - 1]).all(axis=1)]
    if len(again):
        notes.append(f"{counted(len(again), 'repeated row')} left out")
        times, poses = np.delete(times, again), np.delete(poses, again, axis=0)
        lines = np.delete(lines, again) if len(lines) else lines
    if notes:
        warnings.warn(f"{path}: {', '.join(notes)}.", stacklevel=2)
    try:
        trajectory = Trajectory(times, poses, source=str(path), epoch_ns=epoch_ns)
    except InvalidTrajectory as fault:
        line, reason = None, fault.reason
        if fault.sample is not None and len(lines):
            line = int(lines[fault.sample])
        elif fault.sample is not None:
            reason += f" (row {fault.sample + 1})"
        if fault.field == "time" and (more := int((np.diff(times) <= 0.0).sum())):
            reason += f" ({counted(more, 'row')} in all; sort the file by time, or leave them out)"
        raise InputFileError(path, reason, line=line, field=fault.field) from fault
    understood = ", ".join((columns.understood, length, turn, clock))
    return Recording(describe_reading(trajectory, understood, table.frame), table.frame)


def _length_unit(path: str | Path, positions: Array, exact: bool) -> str:
    """The unit of positions (T, 3) that nothing states, by the rules in the module's text."""
    farthest = float(np.abs(positions).max(initial=0.0))
    if exact and farthest >= _MILLIMETRES:
        warnings.warn(
            f"{path}: read in metres, as .tum says: a position is {significant(farthest)} m from the origin. If it is "
            f"{significant(farthest)} mm, add --columns x[mm].",
            stacklevel=2,
        )
    if exact or farthest <= _METRES:
        return "m"
    if farthest >= _MILLIMETRES:
        return "mm"
    raise InputFileError(
        path,
        f"metres or millimetres? The farthest position is {plain(farthest)} from the origin, which may be "
        f"{significant(farthest)} m or {significant(farthest)} mm. Say which: --columns x[m] or --columns x[mm]",
        field="position",
    )


def _quaternions(path: str | Path, table: Table) -> tuple[Array, str]:
    """Rotations as quaternions (T, 4), and what they were."""
    rotations, columns = table.values[:, 3:], table.columns
    if columns.roles[3:] == QUATERNION:
        in_file = sorted(zip(columns.indices[3:], QUATERNION, strict=True))
        return rotations, "".join(role[1] for _, role in in_file)
    if columns.roles[3:] != ROTATION_VECTOR:
        return _of_matrices(path, table)
    units = [unit or "rad" for unit in columns.units[3:]]
    vectors = rotations / np.array([UNITS[unit] for unit in units])
    angles = np.linalg.norm(vectors, axis=1)
    bad = np.flatnonzero(angles > 2.0 * math.pi + 1e-3)
    if len(bad):
        # They are most likely in degrees.
        reason = (
            f"a rotation of {angles[bad[0]]:.6g} rad is more than a full turn; rx ry rz are in rad, not in degrees, "
            "unless --columns rx[deg] or their names say so"
        )
        raise InputFileError(path, reason, line=table.line(bad[0]), field="rotation vector")
    return pose.quaternions(vectors), f"rotation vector in {', '.join(dict.fromkeys(units))}"


def _of_matrices(path: str | Path, table: Table) -> tuple[Array, str]:
    """The rotations of rows of matrices, m00 m01 ... m22."""
    matrices = table.values[:, 3:].reshape(-1, 3, 3)
    off = np.abs(matrices @ matrices.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2), initial=0.0)
    bad = np.flatnonzero((off > 1e-2) | (np.linalg.det(matrices) < 0.0))
    if len(bad):
        line = table.line(bad[0])
        raise InputFileError(
            path, "its 12 numbers are not a rotation matrix and a translation", line=line
        )
    turns = [pin.Quaternion(matrix).normalized().coeffs() for matrix in matrices]
    return np.array(turns).reshape(-1, 4), "rotation matrices"


def _times(
    path: str | Path, table: Table, positions: Array, rotations: Array, exact: bool
) -> tuple[Array, int, str]:
    """Stamps (T,) in s, their zero in ns, and the clock in words."""
    columns, stamps = table.columns, table.stamps
    if columns.rate is not None and not columns.time_indices:
        return np.arange(len(positions)) / columns.rate, 0, f"at {plain(columns.rate)} Hz"
    if isinstance(stamps, np.ndarray) and stamps.dtype.kind == "f":
        own: Array = stamps.astype(float)
        if columns.rate is not None:
            return own / columns.rate, 0, f"frames at {plain(columns.rate)} Hz"
        unit = columns.time_unit or _time_unit(path, own, positions, rotations, exact)
        return own / UNITS[unit], 0, f"time in {unit}"
    unit = columns.time_unit
    if (
        not unit
        and isinstance(stamps, list)
        and stamps
        and len(stamps[0]) == 1
        and stamps[0][0].isdecimal()
    ):
        numbers = np.array(
            [float(words[0]) if words[0].isdecimal() else np.nan for words in stamps]
        )
        unit = _time_unit(path, numbers, positions, rotations, exact)
    whole, clock = _nanoseconds(path, table, unit)
    first = int(whole[0]) if len(whole) else 0
    return (whole - first) / NS, first, clock


def _nanoseconds(path: str | Path, table: Table, unit: str) -> tuple[Counts, str]:
    """Stamps (T,) in whole ns since 1970, or since the clock's zero, and the clock in words."""
    stamps = table.stamps
    if isinstance(stamps, np.ndarray):
        if np.isnat(stamps).any():
            raise InputFileError(path, f"row {int(np.argmax(np.isnat(stamps))) + 1} has no time")
        return stamps.astype(np.int64), "wall clock" if stamps.dtype.kind == "M" else "durations"
    found, clock = [], ""
    for row, words in enumerate(stamps):
        try:
            if len(words) == 2 and not table.columns.date_and_time:
                found.append(int(words[0]) * NS + int(words[1]))
                clock = clock or "ROS stamps"
            elif len(words) == 1 and words[0].isdecimal():
                found.append(int(words[0]) * round(NS / UNITS[unit]))
                clock = clock or f"time in {unit}"
            else:
                found.append(_of_day(" ".join(words)))
                clock = clock or "wall clock"
        except (ValueError, KeyError, OverflowError):
            other = f" as in the first row, {quoted(' '.join(stamps[0]))}" if row else f"; {OF_DAY}"
            last = table.columns.times[-1]
            other += (
                f"; if {last} counts seconds: --columns t={last}"
                if table.columns.date_and_time
                else ""
            )
            reason = f"{quoted(' '.join(words))} is not a time{other}"
            raise InputFileError(
                path, reason, line=table.line(row), field=table.columns.times[0]
            ) from None
    try:
        return np.array(found, dtype=np.int64), clock
    except OverflowError:
        raise InputFileError(
            path, "its stamps are later than 2262; state their unit: --columns t[ns]"
        ) from None


def _of_day(word: str) -> int:
    """Return a time in the form of ISO 8601 as ns since 1970; in UTC unless it says otherwise."""
    if not WALL_CLOCK.match(word):
        raise ValueError(word)
    offset = _OFFSET.search(word)
    text, minutes = (word[: offset.start()], 0) if offset else (word, 0)
    if offset and offset[1][0] in "+-":
        digits = offset[1].replace(":", "")
        minutes = (int(digits[1:3]) * 60 + int(digits[3:5] or 0)) * (-1 if digits[0] == "-" else 1)
    if abs(minutes) > 14 * 60:
        raise ValueError(word)
    # What follows the seconds is no zone that numpy would warn of.
    text = text.strip().replace(" ", "T", 1).replace("/", "-").replace(",", ".")
    if not re.fullmatch(r"[-\dT:.]+", text):
        raise ValueError(word)
    return int(np.datetime64(text, "ns").astype(np.int64)) - minutes * 60 * NS


def _time_unit(
    path: str | Path, stamps: Array, positions: Array, rotations: Array, exact: bool
) -> str:
    """The unit of stamps (T,) that nothing states, by the rules in the module's text."""
    units, dated = ("s", "ms", "us", "ns"), None
    if len(stamps) and not exact:
        # In which the first stamp is a date.
        dated = next(
            (unit for unit in units if _DATES[0] <= stamps[0] / UNITS[unit] <= _DATES[1]), None
        )
    if len(stamps) < _FEWEST:
        return dated or "s"
    step = float(np.median(np.diff(stamps)))
    if not step >= 1.0:
        return "s"
    motion = _moves(stamps, positions, rotations)
    possible = [unit for unit in units if _STEPS[0] <= step / UNITS[unit] <= _STEPS[1]]
    moving = [
        unit
        for unit in possible
        if any(low <= value * UNITS[unit] <= high for value, (low, high) in motion)
    ]
    found = moving or possible
    if dated in found:
        return dated
    if exact:
        if found and "s" not in found:
            other = f"{significant(step / UNITS[found[0]] * 1e3)} ms in {found[0]}"
            warnings.warn(
                f"{path}: read in seconds and metres, as .tum says: samples are {plain(step)} s apart. They would be "
                f"{other}; then add --columns t[{found[0]}].",
                stacklevel=2,
            )
        return "s"
    if len(found) <= 1:
        return found[0] if found else "s"
    readings = " or ".join(f"{significant(step / UNITS[unit], 3)} s ({unit})" for unit in found)
    flags = " or ".join(f"--columns t[{unit}]" for unit in found)
    reason = (
        f"the unit of its times is not stated: samples may be {readings} apart. Say which: {flags}"
    )
    raise InputFileError(path, reason, field="time")


def _moves(
    stamps: Array, positions: Array, rotations: Array
) -> list[tuple[float, tuple[float, float]]]:
    """95th percentiles of speed and turn rate per unit of time, each with its plausible range in s."""
    steps = np.diff(stamps)
    forward = steps > 0.0
    if not forward.any():
        return []
    steps = steps[forward]
    # A quaternion of length zero is refused later, by its line.
    zero = ~rotations.any(axis=1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        poses = np.column_stack(
            [positions, pose.normalize(np.where(zero, pose.IDENTITY[3:], rotations))]
        )
        ways, turns = (
            np.linalg.norm(each, axis=1)[forward] / steps
            for each in pose.error(poses[1:], poses[:-1])
        )
        return [
            (float(np.percentile(each, 95)), bounds)
            for each, bounds in ((ways, _SPEEDS), (turns, _TURNS))
        ]


@dataclass(frozen=True)
class Fault:
    """A gap or a jump: the sample before it, its instant, s since the start, and its size in "s", "m" or "rad"."""

    sample: int
    at: float
    size: float
    unit: str

    def __str__(self) -> str:
        number, unit = (
            (significant(self.size, 3), "s")
            if self.unit == "s"
            else displayed(self.size, self.unit)
        )
        return f"{number} {unit}".replace(" °", "°") + f" after {significant(self.at, 4)} s"


def gaps(trajectory: Trajectory, periods: float = GAP) -> list[Fault]:
    """The steps of more than so many median steps; none where there is too little to judge by."""
    steps = np.diff(trajectory.elapsed)
    if trajectory.duration < _SHORTEST or len(trajectory.times) < _FEWEST:
        return []
    return _faults(
        trajectory, steps, np.flatnonzero(steps > periods * np.median(steps) * (1.0 + 1e-9)), "s"
    )


def jumps(trajectory: Trajectory) -> list[Fault]:
    """The steps of position and rotation, without a gap, that are far larger than the others."""
    if len(trajectory.times) < _FEWEST:
        return []
    steps = np.diff(trajectory.elapsed)
    even = steps <= GAP * np.median(steps)
    found = []
    differences = pose.error(trajectory.poses[1:], trajectory.poses[:-1])
    for difference, least, unit in zip(differences, _JUMPS, ("m", "rad"), strict=True):
        size = np.linalg.norm(difference, axis=1)
        large = even & (size > max(least, 10.0 * float(np.percentile(size, 95))))
        found += _faults(trajectory, size, np.flatnonzero(large), unit)
    return sorted(found, key=lambda fault: fault.sample)


def _faults(trajectory: Trajectory, sizes: Array, at: NDArray[np.intp], unit: str) -> list[Fault]:
    return [Fault(int(k), float(trajectory.elapsed[k]), float(sizes[k]), unit) for k in at]


def without_gaps(trajectory: Trajectory, treatment: Gaps | None) -> Trajectory:
    """The trajectory with its large gaps treated, or refused if none is chosen; a warning names gaps and jumps."""
    if found := jumps(trajectory):
        warnings.warn(f"{trajectory.source}: {named(found, 'jump')}.", stacklevel=2)
    large = gaps(trajectory, LARGEST)
    small = [gap for gap in gaps(trajectory) if gap not in large]
    period = float(np.median(np.diff(trajectory.elapsed))) if len(trajectory.times) > 1 else 0.0
    if large and treatment in (None, "refuse"):
        raise InputFileError(
            trajectory.source,
            f"{named(large, 'gap')}, of more than 10 sample periods of {significant(period * 1e3)} ms: how the tool "
            "moved there is not known. Choose what the target does: --gaps interpolate (move on evenly), hold (wait, "
            "then step), or split (only the longest piece without such a gap)",
            field="time",
        )
    if small:
        warnings.warn(f"{trajectory.source}: {named(small, 'gap')}, interpolated.", stacklevel=2)
    if not large:
        return trajectory
    treated, done = trajectory, "interpolated"
    if treatment == "hold":
        # The pose before each gap repeated one sample period before the pose after it.
        after = np.array([gap.sample for gap in large]) + 1
        times = np.insert(trajectory.times, after, trajectory.times[after] - period)
        poses = np.insert(trajectory.poses, after, trajectory.poses[after - 1], axis=0)
        treated, done = replace(trajectory, times=times, poses=poses), "held"
    elif treatment == "split":
        bounds = [0, *(gap.sample + 1 for gap in large), len(trajectory.times)]
        begin, end = max(
            itertools.pairwise(bounds), key=lambda piece: np.ptp(trajectory.elapsed[slice(*piece)])
        )
        treated = replace(
            trajectory, times=trajectory.times[begin:end], poses=trajectory.poses[begin:end]
        )
        start = float(treated.times[0] - trajectory.times[0])
        done = f"the longest piece is used, {significant(treated.duration, 4)} s from {significant(start, 4)} s on"
    warnings.warn(f"{trajectory.source}: {named(large, 'gap')}, {done}.", stacklevel=2)
    return treated


def named(faults: Sequence[Fault], noun: str) -> str:
    """The number of faults, and the largest three with place and size."""
    shown = sorted(sorted(faults, key=lambda fault: -fault.size)[:3], key=lambda fault: fault.at)
    more = "; the largest: " if len(faults) > 3 else ": "
    return f"{counted(len(faults), noun)}{more}{', '.join(map(str, shown))}"
