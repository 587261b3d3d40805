"""The inputs of a live session: their kinds, the check of their values, their numbers."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from simbridge.errors import InvalidChoice, InvalidParameter
from simbridge.ik.targets import as_joints, as_pose
from simbridge.quoting import as_text
from simbridge.robot import pose
from simbridge.robot.conversion import floats, vector
from simbridge.robot.pose import Array

InputKind = Literal["pose", "twist", "jog", "joints", "follow", "follow_joints"]
TwistFrame = Literal["base_link", "base", "tool"]
KINDS: tuple[InputKind, ...] = get_args(InputKind)
FRAMES: tuple[TwistFrame, ...] = get_args(TwistFrame)

# The most stamps of a chunk.
MAX_STAMPS = 512
# The latest stamp of a chunk, s after it arrives: its source may hang, and the arm must not go on
# for long.
MAX_AHEAD_S = 5.0
# The largest number of an input, m, m/s or rad/s. Joint positions have the limit `MAX_JOINT`, rad.
MAX_INPUT = 1e6
# Numbers of a row before its values: see `Input.row`.
HEAD_NUMBERS = 7


class Fate(IntEnum):
    """The fate of an input in the period that took it; NONE in a period that took none."""

    NONE = 0
    ACCEPTED = 1
    LATE = 2
    NOT_ENGAGED = 3
    TOO_FAR = 4


class Input(NamedTuple):
    """One input.

    Attributes:
        kind: What the values are.
        values: A pose (7,), a twist (6,) in m/s and rad/s, joint velocities or positions (n,), or
            the rows of a chunk of poses (K, 1 + 7) or joint positions (K, 1 + n): a time in s after
            the input, and what is due then.
        number: Number of the input: inputs of a session are counted from 1.
        engagement: Number of the engagement to which it belongs.
        frame: The frame in whose axes a twist is given.
        relative: Whether a pose is relative to that at the engagement.
        sent: When the caller sent the input, s of the host's monotonic clock.
    """

    kind: InputKind
    values: Array
    number: int
    engagement: int
    frame: TwistFrame = "base_link"
    relative: bool = False
    sent: float = 0.0

    @property
    def is_chunk(self) -> bool:
        """True if the values are rows with stamps ahead."""
        return self.kind in ("follow", "follow_joints")

    @property
    def is_velocity(self) -> bool:
        """True if the values are velocities."""
        return self.kind in ("twist", "jog")

    @property
    def in_joints(self) -> bool:
        """True if the values concern the joints, not the TCP."""
        return self.kind in ("jog", "joints", "follow_joints")

    def row(self) -> Array:
        """Return the input as numbers, for the mailbox: a head, and the values row by row."""
        head = [
            KINDS.index(self.kind),
            FRAMES.index(self.frame),
            self.relative,
            self.number,
            self.engagement,
            self.sent,
            len(self.values) if self.is_chunk else 0,
        ]
        return np.concatenate([np.array(head, dtype=float), self.values.ravel()])

    @staticmethod
    def of(row: Array) -> Input:
        """Return the input of a row, as `row` makes it."""
        # The numbers at the head of a row, in the order of `row`.
        head = row[:HEAD_NUMBERS].tolist()
        kind, frame, relative, number, engagement, sent, row_count = head

        # The values follow. Only those of a chunk have rows of their own.
        values = row[HEAD_NUMBERS:]
        if row_count:
            values = values.reshape(int(row_count), -1)

        return Input(
            kind=KINDS[int(kind)],
            values=values,
            number=int(number),
            engagement=int(engagement),
            frame=FRAMES[int(frame)],
            relative=bool(relative),
            sent=sent,
        )


def longest_row(n: int) -> int:
    """Return how many numbers the longest row of an input has, for n joints.

    It is that of a chunk, of poses or of joint positions.
    """
    return HEAD_NUMBERS + MAX_STAMPS * (1 + max(n, 7))


def pose_values(target: Any) -> Array:
    """Return a target as a pose (7,).

    Raises:
        InvalidParameter: It is not a pose, or farther away than `MAX_INPUT`.
    """
    values = as_pose(target)
    if not np.abs(values[:3]).max() <= MAX_INPUT:
        raise InvalidParameter(
            "target", values.tolist(), f"at most {MAX_INPUT:g} m away along each axis"
        )
    return values


def twist_values(twist: Any, frame: str) -> Array:
    """Return a twist (6,): m/s and rad/s of the TCP, in the axes of a frame.

    Raises:
        InvalidParameter: It is not six finite numbers, or one is beyond `MAX_INPUT`.
        InvalidChoice: The frame is not one of `FRAMES`.
    """
    if not isinstance(frame, str) or frame not in FRAMES:
        raise InvalidChoice("frame of a twist", as_text(frame), FRAMES)
    return _velocities("twist", twist, 6)


def jog_values(velocity: Any, n: int) -> Array:
    """Return joint velocities (n,), rad/s.

    Raises:
        InvalidParameter: They are not n finite numbers, or one is beyond `MAX_INPUT`.
    """
    return _velocities("array of joint velocities", velocity, n)


def _velocities(name: str, values: Any, length: int) -> Array:
    """Return velocities, m/s or rad/s, as an array.

    Args:
        name: Name of the velocities, for the message.
        values: The velocities as the caller passed them.
        length: How many there must be.

    Raises:
        InvalidParameter: They are not that many finite numbers, or one is beyond `MAX_INPUT`.
    """
    velocities = vector(name, values, length)
    if not np.abs(velocities).max() <= MAX_INPUT:
        raise InvalidParameter(
            name, velocities.tolist(), f"{length} finite numbers, none larger than {MAX_INPUT:g}"
        )
    return velocities


def chunk_kind(targets: Any, n: int) -> InputKind:
    """Return whether the targets of a chunk are poses or rows of n joint positions.

    With seven joints a row of seven numbers is joint positions; poses are then pinocchio.SE3.
    """
    # The targets may be anything, and fail in any way.
    try:
        shape = np.shape(targets[0])
    except Exception:
        return "follow"
    return "follow_joints" if shape == (n,) else "follow"


def chunk_values(
    times: Any, targets: Any, n: int, max_jump: tuple[float, float] = (np.inf, np.inf)
) -> Array:
    """Return a chunk as rows: a time in s after the input, and a pose or joint positions.

    Args:
        times: Stamps (K,), s after the input.
        targets: K poses, or K rows of joint positions: see `chunk_kind`.
        n: Number of joints.
        max_jump: How far a row may be from the one before, m and rad.

    Returns:
        The rows (K, 1 + 7) or (K, 1 + n).

    Raises:
        InvalidParameter: Times do not increase from 0 or later, or end too late; a row is neither a
            pose nor n joint positions, or further than `max_jump` from the one before.
    """
    # Arguments that are not lists at all are refused below with those that do not fit.
    try:
        stamps = floats(times)
        row_count = len(targets)
    except (TypeError, ValueError):
        stamps = np.empty((0, 0))
        row_count = -1

    # Check the stamps.
    in_order = stamps.ndim == 1 and bool((np.diff(stamps) > 0.0).all())
    in_time = bool(((stamps >= 0.0) & (stamps <= MAX_AHEAD_S)).all())
    fits = 0 < stamps.size <= MAX_STAMPS and stamps.size == row_count
    if not (in_order and in_time and fits):
        raise _chunk_error(times, stamps, row_count)

    # Convert the targets, and check how far each is from the one before.
    in_joints = chunk_kind(targets, n) == "follow_joints"
    rows = [as_joints(target, n) if in_joints else pose_values(target) for target in targets]
    values = np.array(rows)
    _check_steps(values, in_joints, max_jump)
    return np.column_stack([stamps, values])


def _chunk_error(times: Any, stamps: Array, row_count: int) -> InvalidParameter:
    """Return the error for the stamps of a chunk, or for another number of rows."""
    needed = (
        f"1 to {MAX_STAMPS} increasing times in s from now, at most {MAX_AHEAD_S:g} s, one for "
        "each pose or row of joint positions"
    )
    # There may be hundreds of stamps: sum them up.
    shown = as_text(times)
    if stamps.ndim == 1 and len(stamps):
        shown = f"{len(stamps)} times, {stamps.min():g} to {stamps.max():g} s, and {row_count} rows"
    return InvalidParameter("chunk", shown, needed)


def _check_steps(rows: Array, joints: bool, max_jump: tuple[float, float]) -> None:
    """Refuse a chunk with a row that is too far from the row before.

    The first row has none: the control loop compares it with the input before, or with the arm.

    Args:
        rows: Joint positions (K, n), rad, or poses (K, 7).
        joints: Whether they are joint positions.
        max_jump: How far a row may be from the one before, m and rad.

    Raises:
        InvalidParameter: A row is too far away; the message names the first.
    """
    if joints:
        distance = np.zeros(len(rows) - 1)
        angle = np.abs(np.diff(rows, axis=0)).max(axis=1, initial=0.0)
    else:
        translation, turn = pose.error(rows[1:], rows[:-1])
        distance = np.linalg.norm(translation, axis=1)
        angle = np.linalg.norm(turn, axis=1)

    max_distance, max_angle = max_jump
    too_far = np.flatnonzero((distance > max_distance) | (angle > max_angle))
    if len(too_far):
        k = int(too_far[0])
        step = f"{1e3 * distance[k]:.0f} mm and {angle[k]:.2f} rad from row {k} to row {k + 1}"
        needed = f"steps of at most {1e3 * max_distance:g} mm and {max_angle:g} rad (max_jump)"
        raise InvalidParameter("chunk", step, needed)
