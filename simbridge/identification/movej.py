"""Recognizes motions of movej: a straight line in joint space with a trapezoid of speed.

With s the distance covered from the start, L the length and a the acceleration, all of the joint
that turns farthest, the speed of a trapezoid is

    v^2 = 2 a s            while it accelerates,
    v^2 = 2 a (L - s)      while it brakes,
    v = the largest speed  in between.

That is the law of `simbridge.servo.movej`, and it holds in every row, however far apart the rows
are, so no instants are needed. A program that has just been started moves more slowly at first,
while the controller raises its speed scaling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.identification.robust import resolution
from simbridge.identification.target_motion import TargetMotion
from simbridge.robot.pose import Array, Flags
from simbridge.text import counted, significant

# Smallest number of moving rows that show a trapezoid.
MIN_ROWS = 8
# Smallest number of rows in which the speed changes: a constant speed alone shows nothing.
MIN_RAMP_ROWS = 4
# Shortest length of a motion that shows a trapezoid, rad.
MIN_LENGTH = 0.01
# Largest distance from the straight line and from the trapezoid, as a fraction of the length.
MAX_DEVIATION = 2e-5
# The same limit in units of the resolution of the recorded positions; the larger one counts.
MAX_RESOLUTIONS = 5.0
# Fraction of the rows that must be on the trapezoid: rows in which the speed bends may miss it.
MIN_ON_TRAPEZOID = 0.97
# Fraction of the largest speed from which on a row may be at that speed.
CRUISING = 1.0 - 1e-5
# Time within which the controller raises the speed scaling of a program that was started, s.
STARTING_S = 0.25
# Fraction of the longest ramp below which rounding decides the acceleration of a row.
MIN_RAMP_FRACTION = 0.1


@dataclass(frozen=True)
class MovejEvidence:
    """The trapezoid of speed of a motion.

    Attributes:
        speed_rad_s: Largest speed of the joint that turns farthest, rad/s.
        acceleration_rad_s2: Acceleration of that joint, rad/s^2.
        residual_rad: Largest distance of a row from the straight line and from the trapezoid, rad,
            without the few rows in which the speed bends.
    """

    speed_rad_s: float
    acceleration_rad_s2: float
    residual_rad: float


@dataclass(frozen=True, eq=False)
class LinePath:
    """A motion along a straight line in joint space, of the joint that turns farthest.

    Attributes:
        times: Instants (T,), s.
        distance: Distance covered from the first row (T,), rad.
        speed: Speed (T,), rad/s.
        tolerance: Largest distance from the line and from a trapezoid, rad.
        deviation: Largest distance of a joint from the line, rad.
    """

    times: Array
    distance: Array
    speed: Array
    tolerance: float
    deviation: float


def find_moves(motion: TargetMotion) -> list[MovejEvidence]:
    """Return the motions from rest to rest of a recording that movej made."""
    is_moving = (motion.qd != 0.0).any(axis=1) | (motion.qdd != 0.0).any(axis=1)
    edges = np.flatnonzero(np.diff(is_moving.astype(int)))
    # The last row at rest before each motion, and its own last row, which is at the goal.
    firsts = edges[~is_moving[edges]]
    lasts = edges[is_moving[edges]]
    if len(firsts) and len(lasts) and lasts[0] < firsts[0]:
        lasts = lasts[1:]

    moves = []
    for first, last in zip(firsts, lasts, strict=False):
        rows = motion[first : last + 1]
        moves.append(
            find_movej(rows.times, rows.q, rows.qd, starts_at_rest=True, ends_at_rest=True)
        )
    return [move for move in moves if move is not None]


def describe_moves(moves: Sequence[MovejEvidence]) -> str:
    """Return a sentence on moves: "movej made 2 moves: 1.40 rad/s^2, 1.05 rad/s"."""
    accelerations = _describe_range([move.acceleration_rad_s2 for move in moves])
    speeds = _describe_range([move.speed_rad_s for move in moves])
    return (
        f"movej made {counted(len(moves), 'move')}: {accelerations} rad/s^2, {speeds} rad/s; the "
        "tuning of servoj does not show in them"
    )


def _describe_range(values: Sequence[float]) -> str:
    """Return "1.40" where values are equal to three digits, else "1.40 to 25.0"."""
    least = significant(min(values))
    most = significant(max(values))
    return least if least == most else f"{least} to {most}"


def find_movej(
    times: Array, q: Array, qd: Array, *, starts_at_rest: bool, ends_at_rest: bool
) -> MovejEvidence | None:
    """Return the trapezoid of a motion; None if the motion has none.

    Args:
        times: Instants of the rows (T,), s.
        q: Joint targets (T, n), rad, from the last row at rest to the first one at rest.
        qd: Velocities of the joint targets (T, n), rad/s.
        starts_at_rest: Whether the first row is at rest.
        ends_at_rest: Whether the last row is at rest.
    """
    path = _find_line(times, q, qd)
    if path is None:
        return None

    # The rows at the largest speed, and those of the ramps before and after them.
    is_cruising = path.speed >= CRUISING * path.speed.max()
    top = np.flatnonzero(is_cruising)
    rows = np.arange(len(path.speed))
    is_before = rows < top[0]
    is_after = rows > top[-1]
    is_ramp = is_before | is_after
    if not is_cruising[top[0] : top[-1] + 1].all() or is_ramp.sum() < MIN_RAMP_ROWS:
        return None

    acceleration = _acceleration(path, is_before & starts_at_rest, is_after & ends_at_rest)
    if not acceleration > 0.0:
        return None
    ramp = _distance_to_end(path, is_before, is_after, acceleration=acceleration)

    # How far each row is behind the one that the trapezoid has at its speed.
    behind = np.where(is_ramp, ramp - 0.5 * path.speed**2 / acceleration, 0.0)
    is_on_trapezoid = np.abs(behind) <= path.tolerance
    is_starting = is_before & (behind > 0.0) & (path.times - path.times[0] < STARTING_S)
    if np.mean(is_on_trapezoid[~is_starting]) < MIN_ON_TRAPEZOID:
        return None
    if is_on_trapezoid[is_ramp].sum() < MIN_RAMP_ROWS:
        return None
    return MovejEvidence(
        speed_rad_s=float(path.speed.max()),
        acceleration_rad_s2=acceleration,
        residual_rad=max(path.deviation, float(np.abs(behind[is_on_trapezoid]).max())),
    )


def _find_line(times: Array, q: Array, qd: Array) -> LinePath | None:
    """Return the straight line that a motion follows; None if it is too short, or not straight."""
    travel = q[-1] - q[0]
    farthest = int(np.argmax(np.abs(travel)))
    length = float(np.abs(travel[farthest]))
    if len(q) < MIN_ROWS or length < MIN_LENGTH:
        return None

    # All joints move in proportion to the one that turns farthest.
    sign = float(np.sign(travel[farthest]))
    distance = sign * (q[:, farthest] - q[0, farthest])
    line = q[0] + np.outer(distance, travel / length)
    deviation = float(np.abs(q - line).max())

    # Long motions may deviate by a fraction of their length, short ones by the recorded digits.
    tolerance = max(MAX_DEVIATION * length, MAX_RESOLUTIONS * resolution(q))
    if deviation > tolerance:
        return None
    return LinePath(times, distance, sign * qd[:, farthest], tolerance, deviation)


def _acceleration(path: LinePath, is_start: Flags, is_stop: Flags) -> float:
    """Return the acceleration of a motion, rad/s^2: the median over the rows of a ramp.

    A ramp under a rising speed scaling is slower than the other one, so the larger value counts. If
    the log contains neither end of the motion, the slope of the ramps shows the acceleration.

    Args:
        path: The motion.
        is_start: Rows of a ramp that begins at rest in the first row (T,).
        is_stop: Rows of a ramp that ends at rest in the last row (T,).

    Returns:
        The acceleration; 0 without a ramp.
    """
    half_square = 0.5 * path.speed**2
    if not is_start.any() and not is_stop.any():
        is_ramp = path.speed < CRUISING * path.speed.max()
        covered = np.diff(path.distance)
        is_step = is_ramp[1:] & is_ramp[:-1] & (covered > 0.0)
        slopes = np.abs(np.diff(half_square)[is_step] / covered[is_step])
        return float(np.median(slopes)) if len(slopes) else 0.0

    to_end = path.distance[-1] - path.distance

    accelerations = [0.0]
    for is_ramp, distance in ((is_start, path.distance), (is_stop, to_end)):
        if is_ramp.any():
            is_counted = is_ramp & (distance > MIN_RAMP_FRACTION * distance[is_ramp].max())
            if is_counted.any():
                ratios = half_square[is_counted] / distance[is_counted]
                accelerations.append(float(np.median(ratios)))
    return max(accelerations)


def _distance_to_end(
    path: LinePath, is_before: Flags, is_after: Flags, *, acceleration: float
) -> Array:
    """Return the distance of each row from the end of the motion on its side of the top (T,), rad.

    Where the log does not contain an end, the rows of the ramp show where it would have been.

    Args:
        path: The motion.
        is_before: Rows before the largest speed (T,).
        is_after: Rows after the largest speed (T,).
        acceleration: Acceleration of both ramps, rad/s^2.
    """
    braking_distance = 0.5 * path.speed**2 / acceleration
    start = path.distance[0]
    end = path.distance[-1]
    if is_before.any() and path.speed[0] > 0.0:
        start = float(np.median((path.distance - braking_distance)[is_before]))
    if is_after.any() and path.speed[-1] > 0.0:
        end = float(np.median((path.distance + braking_distance)[is_after]))
    return np.where(is_after, end - path.distance, path.distance - start)
