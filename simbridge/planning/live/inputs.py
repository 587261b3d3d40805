"""The values of a live session's inputs, checked when they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from simbridge.errors import InvalidParameter, UnknownName
from simbridge.ik.targets import as_joints, as_pose
from simbridge.planning.live.messages import FRAMES, LONGEST_CHUNK, Kind
from simbridge.robot.pose import Array

# A chunk ends at most so long after it is given, s: what gives it may hang, and the arm must not go on for long.
LONGEST_AHEAD = 5.0


def twist_values(twist: Any, frame: str) -> Array:
    """A twist (6,): m/s and rad/s of the TCP, in the axes of a frame.

    Raises:
        InvalidParameter: It is not six finite numbers.
        UnknownName: There is no such frame.
    """
    if frame not in FRAMES:
        raise UnknownName("frame of a twist", str(frame), FRAMES)
    return _finite("twist", twist, 6)


def jog_values(velocity: Any, n: int) -> Array:
    """Joint velocities (n,), rad/s.

    Raises:
        InvalidParameter: They are not n finite numbers.
    """
    return _finite("array of joint velocities", velocity, n)


def chunk_kind(targets: Any, n: int) -> Kind:
    """Whether the targets of a chunk are poses or rows of n joint positions.

    With seven joints a row of seven numbers is joint positions; poses are then given as pinocchio.SE3.
    """
    try:
        return "follow_joints" if np.shape(targets[0]) == (n,) else "follow"
    except (TypeError, ValueError, IndexError, KeyError):
        return "follow"


def chunk_values(times: Any, targets: Any, n: int, max_jump: tuple[float, float] = (np.inf, np.inf)) -> Array:
    """A chunk (K, 1 + 7) or (K, 1 + n): a time in s after the input, and a pose or joint positions (`chunk_kind`).

    Raises:
        InvalidParameter: Times do not increase from 0 or later, or end too late; a row is neither a pose nor n joint
            positions, or further than `max_jump`, m and rad, from the one before.
    """
    try:
        stamps = np.array(times, dtype=float)
    except (TypeError, ValueError):
        stamps = np.empty((0, 0))
    count = len(targets) if hasattr(targets, "__len__") else -1
    increasing = stamps.ndim == 1 and bool(((stamps >= 0.0) & (stamps <= LONGEST_AHEAD)).all())
    increasing = increasing and bool((np.diff(stamps) > 0.0).all())
    if not increasing or not 0 < len(stamps) <= LONGEST_CHUNK or len(stamps) != count:
        needed = (
            f"1 to {LONGEST_CHUNK} increasing times in s from now, at most {LONGEST_AHEAD:g} s, one for each pose "
            "or row of joint positions"
        )
        # They may be hundreds.
        given = (
            f"{len(stamps)} times, {stamps.min():g} to {stamps.max():g} s, and {count} rows" if stamps.size else times
        )
        raise InvalidParameter("chunk", given, needed)
    in_joints = chunk_kind(targets, n) == "follow_joints"
    rows = [as_joints(target, n) if in_joints else as_pose(target) for target in targets]
    values = np.array(rows)
    _check_steps(values, in_joints, max_jump)
    return np.column_stack([stamps, values])


def _check_steps(rows: Array, joints: bool, max_jump: tuple[float, float]) -> None:
    """Refuse rows (K, n) or (K, 7) of which one is too far from the one before; the loop checks the first."""
    distance, angle = np.zeros(len(rows) - 1), np.abs(np.diff(rows, axis=0)).max(axis=1, initial=0.0)
    if not joints:
        distance = np.linalg.norm(np.diff(rows[:, :3], axis=0), axis=1)
        angle = 2.0 * np.arccos(np.clip(np.abs((rows[1:, 3:] * rows[:-1, 3:]).sum(axis=1)), 0.0, 1.0))
    far = np.flatnonzero((distance > max_jump[0]) | (angle > max_jump[1]))
    if len(far):
        k = int(far[0])
        found = f"{1e3 * distance[k]:.0f} mm and {angle[k]:.2f} rad from row {k} to row {k + 1}"
        needed = f"steps of at most {1e3 * max_jump[0]:g} mm and {max_jump[1]:g} rad (max_jump)"
        raise InvalidParameter("chunk", found, needed)


def _finite(name: str, given: Any, count: int) -> Array:
    try:
        values = np.array(given, dtype=float)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.shape != (count,) or not np.isfinite(values).all():
        raise InvalidParameter(name, given, f"{count} finite numbers")
    return values
