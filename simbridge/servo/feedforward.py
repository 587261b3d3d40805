"""Feedforward: commands that bring the arm where its setpoints are, in spite of servoj's lag.

The servo law is known and linear, so it can be inverted: the commands are computed for the motion
that the arm is to make. That motion is the setpoints, taken ahead by the lag of the joints, and
smoothed around the samples where the arm would otherwise accelerate too fast or the commands would
lead too far. This module makes the motion; `ServojLaw.commands_for` makes its commands.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simbridge.robot.pose import Array
from simbridge.servo.law import ServojLaw

# Limit of the arm's predicted acceleration, rad/s^2.
MAX_ACCELERATION = 40.0
# Limit of the distance between a command and the arm's predicted position, rad.
MAX_LEAD = 0.1
# How fast the rate at which a plan is replayed follows the controller's speed slider, 1/s: it adds
# this much times a joint's velocity to its acceleration, for which plans leave room.
SCALING_RAMP = 4.0
# Deceleration of a stop, rad/s^2: some room to the limit is left for a command that comes a cycle
# late.
BRAKING = 30.0

# Half of the longest window over which a corner is averaged, s.
LONGEST_HALF_WINDOW_S = 0.1
# By how much half a window grows at a time, in samples: the outermost samples count in part.
HALF_WINDOW_GROWTH = 0.25
# Fraction of a limit that smoothing aims for.
LIMIT_FRACTION = 1.0 - 1e-3

SmoothedQuantity = Literal["acceleration", "command lead"]


class Excess(NamedTuple):
    """A limit that smoothing could not keep.

    Attributes:
        quantity: What exceeds its limit.
        sample: Index of the sample of the motion.
        joint: Index of the joint; None for the tool's path.
        value: Largest value: rad/s^2 (with what a changing speed slider adds), rad, or m.
        limit: The limit, in the same unit.
    """

    quantity: Literal["acceleration", "command lead", "rounding"]
    sample: int
    joint: int | None
    value: float
    limit: float


class LimitedQuantity(NamedTuple):
    """A quantity of a motion that smoothing keeps within its limit.

    Attributes:
        quantity: Name of the quantity.
        values: Absolute value of the quantity at each sample and joint (T, n).
        limit: The largest allowed value.
    """

    quantity: SmoothedQuantity
    values: Array
    limit: float


def advance_setpoints(setpoints: Array, cycle: float, lag: float) -> Array:
    """Return setpoints as they will be some time later; the last one holds.

    Args:
        setpoints: Joint positions (T, n), rad, one a cycle.
        cycle: Cycle of the controller, s.
        lag: Time by which they are taken ahead, s.
    """
    times = np.arange(len(setpoints)) * cycle
    columns = [np.interp(times + lag, times, joint) for joint in setpoints.T]
    return np.stack(columns, axis=1)


def smooth_motion(law: ServojLaw, q: Array, delay: float = 0.0) -> tuple[Array, Excess | None]:
    """Smooth a motion until it keeps the limits of acceleration and command lead.

    Around the samples that exceed a limit, it is replaced by centred averages. Their windows grow
    until the limits hold.

    Args:
        law: Servo law of the controller.
        q: Joint positions (T, n), rad, one a cycle, at rest at both ends.
        delay: Delay of the joint targets beyond that of this law, s: the commands lead by
            that much more.

    Returns:
        The motion (T, n), rad, equal to q where nothing had to be smoothed; and the worst excess
        that remains where the longest windows do not suffice.
    """
    longest = LONGEST_HALF_WINDOW_S / law.cycle
    # Half of the window that each sample needs (T,), in samples.
    needed = np.zeros(len(q))

    smooth = q
    while True:
        quantities = _limited_quantities(law, smooth, delay)
        exceeds = _exceeding_samples(quantities)
        if not exceeds.any():
            return smooth, None
        if needed[exceeds].max() >= longest:
            return smooth, _worst_excess(quantities)

        needed[exceeds] += HALF_WINDOW_GROWTH
        smooth = _average(q, _half_windows(needed))


def can_keep_limits(law: ServojLaw, q: Array) -> bool:
    """Return whether a motion keeps its limits if it is smoothed as much as possible.

    Where not even the longest window around every sample suffices, as for a steady motion whose
    commands lead too far, `smooth_motion` would only try all the shorter ones in vain.

    Args:
        law: Servo law of the controller.
        q: Joint positions (T, n), rad, one a cycle, at rest at both ends.
    """
    longest = np.full(len(q), LONGEST_HALF_WINDOW_S / law.cycle)
    smoothest = _average(q, _half_windows(longest))
    return not _exceeding_samples(_limited_quantities(law, smoothest, delay=0.0)).any()


def _limited_quantities(law: ServojLaw, q: Array, delay: float) -> list[LimitedQuantity]:
    """Return acceleration and command lead of a motion q (T, n), rad."""
    velocity = np.diff(q, axis=0, prepend=q[:1]) / law.cycle
    velocity_before = np.concatenate([0.0 * q[:1], velocity[:-1]])
    from_slider = SCALING_RAMP * np.maximum(np.abs(velocity), np.abs(velocity_before))
    acceleration = np.abs(velocity - velocity_before) / law.cycle + from_slider

    lead = np.abs(law.commands_for(q) - q) + delay * np.abs(velocity)

    return [
        LimitedQuantity("acceleration", acceleration, MAX_ACCELERATION),
        LimitedQuantity("command lead", lead, MAX_LEAD),
    ]


def _exceeding_samples(quantities: list[LimitedQuantity]) -> NDArray[np.bool_]:
    """Return which samples (T,) exceed a limit with any joint."""
    masks = [(item.values > item.limit * LIMIT_FRACTION).any(axis=1) for item in quantities]
    exceeds: NDArray[np.bool_] = np.any(masks, axis=0)
    return exceeds


def _worst_excess(quantities: list[LimitedQuantity]) -> Excess:
    """Return the largest value in proportion to its limit."""
    worst = max(quantities, key=lambda item: float(item.values.max()) / item.limit)
    sample, joint = np.unravel_index(int(np.argmax(worst.values)), worst.values.shape)
    value = float(worst.values[sample, joint])
    return Excess(worst.quantity, int(sample), int(joint), value, worst.limit)


def _half_windows(needed: Array) -> Array:
    """Return how far each sample's window reaches to both sides of it (T,), in samples.

    A window that a sample needs is used for all samples in it. From there on the half window
    shrinks by one from sample to sample, so that the smoothed motion has no step.

    Args:
        needed: The half window that each sample needs (T,), in samples; 0 for none.
    """
    half_window = np.zeros_like(needed)
    # Take neighbours that need the same window together.
    begins = np.flatnonzero(np.diff(needed, prepend=-1.0))
    ends = np.append(begins[1:], len(needed))
    for begin, end in zip(begins, ends, strict=True):
        reach = int(np.ceil(needed[begin]))
        reached = slice(max(begin - reach, 0), end + reach)
        half_window[reached] = np.maximum(half_window[reached], needed[begin])

    # Shrink by one a sample after each window: the running maximum of half window plus index, less
    # the index. Before each window, the same from the other end.
    index = np.arange(len(half_window), dtype=float)
    index_from_end = index[::-1]
    forward = np.maximum.accumulate(half_window + index) - index
    reversed_maximum = np.maximum.accumulate((half_window + index_from_end)[::-1])
    backward = reversed_maximum[::-1] - index_from_end

    # Keep the window centred and within the motion.
    room = np.minimum(index, index_from_end)
    return np.minimum(np.maximum(forward, backward), room)


def _average(q: Array, half_window: Array) -> Array:
    """Return means of a motion over windows of different lengths.

    The motion is taken to be constant for one sample around each sample: a window that reaches h
    samples to both sides is 2 h + 1 samples wide.

    Args:
        q: Joint positions (T, n), rad.
        half_window: How far each sample's window reaches to both sides of it (T,), in samples.
    """
    # The integral of the motion, relative to its start, up to the edge before each sample and up
    # to the end.
    integral = np.concatenate([np.zeros((1, q.shape[1])), np.cumsum(q - q[0], axis=0)])

    # The mean over a window is the difference of the integral at its ends, divided by its width. A
    # sample without a window stays as it is, bit for bit.
    averaged = np.flatnonzero(half_window)
    reach = half_window[averaged]
    sums = _between_edges(integral, averaged + 1.0 + reach)
    sums -= _between_edges(integral, averaged - reach)

    means = q.copy()
    means[averaged] = q[0] + sums / (2.0 * reach + 1.0)[:, np.newaxis]
    return means


def _between_edges(integral: Array, edges: Array) -> Array:
    """Return an integral (K, n) between the samples' edges: linear between two of them.

    Args:
        integral: Values of the integral at the edges 0 to N (N + 1, n).
        edges: The edges (K,), from 0 to N, with fractions.
    """
    before = np.minimum(edges.astype(np.int64), len(integral) - 2)
    fraction = (edges - before)[:, np.newaxis]
    values: Array = (1.0 - fraction) * integral[before] + fraction * integral[before + 1]
    return values
