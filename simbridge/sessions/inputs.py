"""What a live motion is given, inputs and orders, and what it reports: phases, fates of inputs, and causes.

The values of an input are checked when it is given. The phases refine the states `ready`, `moving` and `paused` of a
session with a controller (backends/servo_channel.py); drawn in docs/live.md. A cause says why a live arm is slower than
asked, or stands: a name, of what, and a number; none is guessed.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from simbridge.errors import InvalidParameter, UnknownName
from simbridge.ik.targets import as_joints, as_pose
from simbridge.quoting import as_text
from simbridge.robot.conversion import floats, vector
from simbridge.robot.pose import Array, error

Kind = Literal["pose", "twist", "jog", "joints", "follow", "follow_joints"]
TwistFrame = Literal["base_link", "base", "tool"]
KINDS: tuple[Kind, ...] = get_args(Kind)
FRAMES: tuple[TwistFrame, ...] = get_args(TwistFrame)
# A chunk holds at most this many stamps.
LONGEST_CHUNK = 512
# It ends at most so long after it is given, s: what gives it may hang, and the arm must not go on for long.
LONGEST_AHEAD = 5.0
MAX_INPUT = 1e6
"""The largest number of an input: m, m/s and rad/s; for joint positions `MAX_JOINT` is the same, rad."""
# Numbers of a row before its values: see `Input.row`.
_HEAD = 7


class Input(NamedTuple):
    """One input.

    Attributes:
        values: A pose (7,), a twist (6,) in m/s and rad/s, joint velocities or positions (n,), or the rows of a chunk
            of poses (K, 1 + 7) or joint positions (K, 1 + n): a time in s after the input, and what is due then.
    """

    kind: Kind  # what the values are
    values: Array
    number: int  # counts the inputs of a session, from 1
    engagement: int  # the engagement to which it belongs
    frame: TwistFrame = "base_link"  # the axes of a twist
    relative: bool = False  # whether a pose is relative to that at the engagement
    sent: float = 0.0  # when it was given, s of the host's monotonic clock

    @property
    def is_chunk(self) -> bool:
        """Whether its values are rows with stamps ahead."""
        return self.kind in ("follow", "follow_joints")

    def row(self) -> Array:
        """The input as numbers, for the mailbox."""
        rows = len(self.values) if self.is_chunk else 0
        head = (
            KINDS.index(self.kind), FRAMES.index(self.frame), self.relative, self.number, self.engagement, self.sent,
            rows,
        )  # fmt: skip
        return np.concatenate([np.array(head, dtype=float), self.values.ravel()])

    @staticmethod
    def of(row: Array) -> Input:
        """The input of such numbers."""
        kind, frame, relative, number, engagement, sent, rows = row[:_HEAD].tolist()
        values = row[_HEAD:].reshape(int(rows), -1) if rows else row[_HEAD:]
        at = KINDS[int(kind)], values, int(number), int(engagement), FRAMES[int(frame)]
        return Input(*at, bool(relative), sent)


def longest_row(n: int) -> int:
    """How many numbers the row of an input has at most, for n joints."""
    return _HEAD + LONGEST_CHUNK * (1 + max(n, 7))


def pose_values(target: Any) -> Array:
    """A target as a pose (7,).

    Raises:
        InvalidParameter: It is no pose, or farther away than `MAX_INPUT`.
    """
    pose = as_pose(target)
    if not np.abs(pose[:3]).max() <= MAX_INPUT:
        raise InvalidParameter(
            "target", pose.tolist(), f"at most {MAX_INPUT:g} m away along each axis"
        )
    return pose


def twist_values(twist: Any, frame: str) -> Array:
    """A twist (6,): m/s and rad/s of the TCP, in the axes of a frame.

    Raises:
        InvalidParameter: It is not six finite numbers, or one is beyond `MAX_INPUT`.
        UnknownName: There is no such frame.
    """
    if not isinstance(frame, str) or frame not in FRAMES:
        raise UnknownName("frame of a twist", as_text(frame), FRAMES)
    return _velocities("twist", twist, 6)


def jog_values(velocity: Any, n: int) -> Array:
    """Joint velocities (n,), rad/s.

    Raises:
        InvalidParameter: They are not n finite numbers, or one is beyond `MAX_INPUT`.
    """
    return _velocities("array of joint velocities", velocity, n)


def _velocities(name: str, values: Any, length: int) -> Array:
    velocities = vector(name, values, length)
    if not np.abs(velocities).max() <= MAX_INPUT:
        raise InvalidParameter(
            name, velocities.tolist(), f"{length} finite numbers, none beyond {MAX_INPUT:g}"
        )
    return velocities


def chunk_kind(targets: Any, n: int) -> Kind:
    """Whether the targets of a chunk are poses or rows of n joint positions.

    With seven joints a row of seven numbers is joint positions; poses are then given as pinocchio.SE3.
    """
    # What was given may be anything, and fail in any way.
    try:
        shape = np.shape(targets[0])
    except Exception:
        return "follow"
    return "follow_joints" if shape == (n,) else "follow"


def chunk_values(
    times: Any, targets: Any, n: int, max_jump: tuple[float, float] = (np.inf, np.inf)
) -> Array:
    """A chunk (K, 1 + 7) or (K, 1 + n): a time in s after the input, and a pose or joint positions (`chunk_kind`).

    Raises:
        InvalidParameter: Times do not increase from 0 or later, or end too late; a row is neither a pose nor n joint
            positions, or further than `max_jump`, m and rad, from the one before.
    """
    try:
        stamps, count = floats(times), len(targets)
    except (TypeError, ValueError):
        stamps, count = np.empty((0, 0)), -1
    in_order = stamps.ndim == 1 and bool((np.diff(stamps) > 0.0).all())
    in_time = bool(((stamps >= 0.0) & (stamps <= LONGEST_AHEAD)).all())
    if not in_order or not in_time or not 0 < len(stamps) <= LONGEST_CHUNK or len(stamps) != count:
        needed = (
            f"1 to {LONGEST_CHUNK} increasing times in s from now, at most {LONGEST_AHEAD:g} s, one for each pose "
            "or row of joint positions"
        )
        # They may be hundreds.
        shown = as_text(times)
        if stamps.ndim == 1 and len(stamps):
            shown = f"{len(stamps)} times, {stamps.min():g} to {stamps.max():g} s, and {count} rows"
        raise InvalidParameter("chunk", shown, needed)
    in_joints = chunk_kind(targets, n) == "follow_joints"
    rows = [as_joints(target, n) if in_joints else pose_values(target) for target in targets]
    values = np.array(rows)
    _check_steps(values, in_joints, max_jump)
    return np.column_stack([stamps, values])


def _check_steps(rows: Array, joints: bool, max_jump: tuple[float, float]) -> None:
    """Refuse rows (K, n) or (K, 7) of which one is too far from the one before; the loop checks the first."""
    if joints:
        distance, angle = (
            np.zeros(len(rows) - 1),
            np.abs(np.diff(rows, axis=0)).max(axis=1, initial=0.0),
        )
    else:
        distance, angle = (np.linalg.norm(part, axis=1) for part in error(rows[1:], rows[:-1]))
    far = np.flatnonzero((distance > max_jump[0]) | (angle > max_jump[1]))
    if len(far):
        k = int(far[0])
        found = f"{1e3 * distance[k]:.0f} mm and {angle[k]:.2f} rad from row {k} to row {k + 1}"
        needed = f"steps of at most {1e3 * max_jump[0]:g} mm and {max_jump[1]:g} rad (max_jump)"
        raise InvalidParameter("chunk", found, needed)


class Phase(IntEnum):
    """Of a live session. Idle and engaged are at rest; tracking, braking and holding are what moving means."""

    IDLE = 0
    ENGAGED = 1
    TRACKING = 2
    BRAKING = 3
    HOLDING = 4
    PAUSED = 5
    DISENGAGING = 6

    @property
    def shown(self) -> str:
        """Its name, as in `session.status.state`."""
        return "braking" if self is Phase.DISENGAGING else self.name.lower()

    @property
    def takes_inputs(self) -> bool:
        """Whether an input of the present engagement moves the arm."""
        return self in (Phase.ENGAGED, Phase.TRACKING, Phase.BRAKING, Phase.HOLDING)


class Order(IntEnum):
    """What is asked of a motion besides inputs."""

    NONE = 0
    ENGAGE = 1
    HALT = 2
    DISENGAGE = 3
    PAUSE = 4
    RESUME = 5
    TOO_SLOW = 6
    SPEED = 7


class Fate(IntEnum):
    """What became of an input."""

    NONE = 0
    ACCEPTED = 1
    LATE = 2
    NOT_ENGAGED = 3
    TOO_FAR = 4


# What changes the phase.
Happening = Enum("Happening", "ENGAGE INPUT STOP RESTS DISENGAGE PAUSE RESUME RESET")

_NEXT: dict[Happening, dict[Phase, Phase]] = {
    Happening.ENGAGE: {
        Phase.IDLE: Phase.ENGAGED,
        Phase.HOLDING: Phase.ENGAGED,
        Phase.TRACKING: Phase.BRAKING,
        Phase.DISENGAGING: Phase.BRAKING,
    },
    Happening.INPUT: dict.fromkeys((Phase.ENGAGED, Phase.BRAKING, Phase.HOLDING), Phase.TRACKING),
    Happening.STOP: {Phase.TRACKING: Phase.BRAKING},
    Happening.RESTS: {Phase.BRAKING: Phase.HOLDING, Phase.DISENGAGING: Phase.IDLE},
    Happening.DISENGAGE: {
        Phase.ENGAGED: Phase.IDLE,
        Phase.HOLDING: Phase.IDLE,
        Phase.TRACKING: Phase.DISENGAGING,
        Phase.BRAKING: Phase.DISENGAGING,
    },
    Happening.PAUSE: dict.fromkeys(Phase, Phase.PAUSED),
    Happening.RESUME: {Phase.PAUSED: Phase.IDLE},
    Happening.RESET: dict.fromkeys(set(Phase) - {Phase.PAUSED}, Phase.IDLE),
}


def next_phase(phase: Phase, happening: Happening) -> Phase:
    """The phase after something happened; what has no meaning in a phase does not change it."""
    return _NEXT[happening].get(phase, phase)


# Name of a cause -> how its number is shown: factor and format.
_SHOWN = {
    "joint_velocity": (1.0, "{:.2f}"),  # share of the joint's limit
    "joint_limit": (1.0, "{:.3f} rad"),  # room that is left
    "tool_speed": (1.0, "{:.2f} m/s"),
    "singularity": (1.0, "sigma {:.3f}"),
    "obstacle": (1e3, "{:.0f} mm"),
    "reach": (1e3, "{:.0f} mm"),  # of the target that is left
    "stale": (1.0, "{:.2f} s"),
    "max_jump": (1e3, "{:.0f} mm"),
    "max_turn": (1.0, "{:.2f} rad"),
    "solver": (1e3, "{:.1f} ms"),
    "speed_slider": (1.0, "{:.2f}"),
    "late_commands": (1.0, "{:.2f}"),
    "payload": (1.0, "{:.2f} kg"),  # that the controller has, another than at the begin
    "not_engaged": (1.0, ""),
    "halted": (1.0, ""),
    "disengaged": (1.0, ""),
    "paused": (1.0, ""),
    "loop": (1.0, "{:.2f} s"),  # since the loop began its last period
}
NAMES = tuple(_SHOWN)
STOPS = ("solver", "loop", "stale", "halted", "disengaged", "paused")
"""Causes for which the arm brakes or stands; the others slow it down, or refuse an input."""


STANDSTILL = 0.1
"""A loop that has begun no period for this long, s, stands still: on a controller the script's watchdog ends."""


class Cause(NamedTuple):
    """Why a live arm is slower than asked, or stands."""

    name: str  # one of `NAMES`
    subject: str = ""  # the joint, bodies or obstacle; "" for none
    value: float = 0.0  # in SI units

    @property
    def text(self) -> str:
        """As in `joint_velocity wrist_3 0.93` or `reach 38 mm`."""
        factor, form = _SHOWN[self.name]
        words = (self.name, self.subject.removesuffix("_joint"), form.format(factor * self.value))
        return " ".join(word for word in words if word)


def cause_row(cause: Cause, subjects: dict[str, int]) -> tuple[float, float, float]:
    """A cause as numbers; subjects: the index of each name that subjects may have."""
    return float(NAMES.index(cause.name)), float(subjects.get(cause.subject, -1)), cause.value


def cause_of_row(row: tuple[float, float, float], subjects: tuple[str, ...]) -> Cause | None:
    """The cause of such numbers; None where the name is negative."""
    name, subject, value = row
    if not name >= 0.0:
        return None
    return Cause(NAMES[int(name)], subjects[int(subject)] if subject >= 0.0 else "", value)
