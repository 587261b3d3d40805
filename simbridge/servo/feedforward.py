"""Feedforward: commands that bring the arm where its setpoints are, in spite of servoj's lag.

The servo law is known and linear, so it can be inverted: the commands are computed for the motion that the arm is to
make. That motion is the setpoints, taken ahead by the lag of the joints, and smoothed around the samples where the arm
would otherwise accelerate too fast or the commands would lead too far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simbridge.robot.pose import Array

if TYPE_CHECKING:  # the caller makes the law
    from simbridge.servo.law import ServojLaw

# Limits of the arm's predicted acceleration, and of the commands' distance from it.
MAX_ACCELERATION = 40.0  # rad/s^2
MAX_LEAD = 0.1  # rad
# How fast the rate at which a plan is replayed follows the controller's speed slider, 1/s: it adds this much times a
# joint's velocity to its acceleration, for which plans leave room.
SCALING_RAMP = 4.0
# Deceleration of a stop: some room to the limit is left for a command that comes a cycle late.
BRAKING = 30.0  # rad/s^2
# Half of the longest window over which a corner is averaged, s.
_LONGEST = 0.1
# By how much half a window grows at a time, in samples: the outermost samples count in part.
_GROWTH = 0.25
_INSIDE = 1.0 - 1e-3


class Excess(NamedTuple):
    """A limit that smoothing could not keep: at a sample of the motion and a joint (None for the tool's path).

    value, limit: rad/s^2 (with what a changing speed slider adds), rad, or m.
    """

    quantity: Literal["acceleration", "command lead", "rounding"]
    sample: int
    joint: int | None
    value: float
    limit: float


def taken_ahead(setpoints: Array, cycle: float, lag: float) -> Array:
    """Setpoints (T, n), rad, one a cycle (s), as they will be `lag` s later; the last one holds."""
    times = np.arange(len(setpoints)) * cycle
    return np.stack([np.interp(times + lag, times, joint) for joint in setpoints.T], axis=1)


def smoothed(law: ServojLaw, q: Array, delay: float = 0.0) -> tuple[Array, Excess | None]:
    """A motion within the limits of acceleration and lead: centred averages around the samples that exceed one.

    Args:
        law: Of the controller.
        q: Joint positions (T, n), rad, one a cycle, at rest at both ends.
        delay: How much later than by this law the joint targets follow, s: the commands lead by that much more.

    Returns:
        The motion (T, n), rad, equal to q where nothing had to be smoothed; and the worst excess that is left, if any.
    """
    longest = _LONGEST / law.cycle
    needed = np.zeros(len(q))
    path = q
    while (beyond := _beyond(found := _excess(law, path, delay))).any():
        if needed[beyond].max() >= longest:
            return path, _worst(found)
        needed[beyond] += _GROWTH
        path = _averaged(q, _half_windows(needed))
    return path, None


# What is limited: its name, how much of it there is at each sample and joint (T, n), and its limit.
_Limited = tuple[tuple[Literal["acceleration", "command lead"], Array, float], ...]


def _excess(law: ServojLaw, q: Array, delay: float) -> _Limited:
    velocity = np.diff(q, axis=0, prepend=q[:1]) / law.cycle
    before = np.concatenate([0.0 * q[:1], velocity[:-1]])
    room = SCALING_RAMP * np.maximum(np.abs(velocity), np.abs(before))
    acceleration = np.abs(velocity - before) / law.cycle + room
    lead = np.abs(law.commands_for(q) - q) + delay * np.abs(velocity)
    return ("acceleration", acceleration, MAX_ACCELERATION), ("command lead", lead, MAX_LEAD)


def _beyond(limited: _Limited) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.any([(values > limit * _INSIDE).any(1) for _, values, limit in limited], axis=0)
    return found


def _worst(limited: _Limited) -> Excess:
    quantity, values, limit = max(limited, key=lambda each: float(each[1].max()) / each[2])
    sample, joint = np.unravel_index(int(np.argmax(values)), values.shape)
    return Excess(quantity, int(sample), int(joint), float(values[sample, joint]), limit)


def _half_windows(needed: Array) -> Array:
    """Half of each sample's window (T,): what is needed, as far around as that reaches, then one less a sample."""
    half = np.zeros_like(needed)
    for sample in np.flatnonzero(needed):
        reach = int(np.ceil(needed[sample]))
        near = slice(max(sample - reach, 0), sample + reach + 1)
        half[near] = np.maximum(half[near], needed[sample])
    places = np.arange(len(half), dtype=float)
    forward = np.maximum.accumulate(half + places) - places
    backward = np.maximum.accumulate((half + places[::-1])[::-1])[::-1] - places[::-1]
    # The window stays within the motion, and centred.
    return np.minimum(np.maximum(forward, backward), np.minimum(places, places[::-1]))


def _averaged(q: Array, half: Array) -> Array:
    """Means over windows that reach `half` (T,) samples to both sides, of q (T, n) as steps one sample wide."""
    edges = np.arange(len(q) + 1, dtype=float)
    places = edges[:-1]
    total = np.concatenate([np.zeros((1, q.shape[1])), np.cumsum(q - q[0], axis=0)])
    area = np.stack(
        [np.interp(places + 1.0 + half, edges, joint) - np.interp(places - half, edges, joint) for joint in total.T],
        axis=1,
    )
    return np.where((half > 0.0)[:, np.newaxis], q[0] + area / (2.0 * half + 1.0)[:, np.newaxis], q)


class InverseServoj:
    """The commands for a wanted motion, one cycle at a time, from rest at q (n,), rad."""

    def __init__(self, law: ServojLaw, q: Array) -> None:
        self.law = law
        self.reset(q)

    def reset(self, q: Array, qd: Array | None = None) -> None:
        """Continue from q (n,), rad, and qd (n,), rad/s; at rest by default."""
        self._q = np.array(q, dtype=float)
        self._qd = np.zeros_like(self._q) if qd is None else np.array(qd, dtype=float)

    def command(self, wanted: Array) -> Array:
        """The command (n,), rad, that brings the joint targets to `wanted` (n,), rad, within a cycle."""
        velocity = (wanted - self._q) / self.law.cycle
        command = self.law.setpoint(self._q, self._qd, (velocity - self._qd) / self.law.cycle)
        self._q, self._qd = np.array(wanted, dtype=float), velocity
        return command

    def braking(self, deceleration: float) -> Array:
        """The wanted motion (N, n), rad, from here to rest, joints in proportion, at `deceleration` rad/s^2.

        Its last command is where the arm then rests, and may be held.
        """
        largest = float(np.abs(self._qd).max(initial=0.0))
        count = int(np.ceil(largest / (deceleration * self.law.cycle)))
        shares = np.append(np.arange(count - 1, -1, -1) / max(count, 1), 0.0)
        return self._q + self.law.cycle * np.cumsum(shares[:, np.newaxis] * self._qd, axis=0)
