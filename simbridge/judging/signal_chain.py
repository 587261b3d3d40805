"""The chain of signals from where the joints should be to where they are.

A log has some of these signals. Each signal follows the one above it, and their difference is the
part of the tracking error that comes from one source, which is named after the arrow:

    reference                           what was planned
    command sent     <- sending         what was sent to the controller, and when
    command taken    <- network         the newest command that a call of servoj has taken
    setpoint         <- interpolation   what the servo law moves towards, on the way from one
                                        call's command to the next
    target           <- servo law       target_q
    actual           <- arm             actual_q
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from simbridge.robot.pose import Array

# The signals from first to last, by the names that output uses.
SIGNALS = ("reference", "command sent", "command taken", "setpoint", "target", "actual")
# The source of the difference of each signal from the one before it.
SOURCES = ("sending", "network", "interpolation", "servo law", "arm")


@dataclass(frozen=True, eq=False)
class Signals:
    """The signals of a motion at its rows.

    Attributes:
        joint_names: Names of the n joints, from the base.
        times: Instants of the rows (T,), s from the log's beginning.
        positions: Joint positions (T, n), rad, of the known signals by name, in the order of
            SIGNALS.
    """

    joint_names: tuple[str, ...]
    times: Array
    positions: dict[str, Array]

    @property
    def first(self) -> str:
        """Name of the first known signal."""
        return next(iter(self.positions))

    @property
    def last(self) -> str:
        """Name of the last known signal."""
        return list(self.positions)[-1]

    def pairs(self) -> list[tuple[str, str]]:
        """Return the names of successive known signals."""
        names = list(self.positions)
        return list(itertools.pairwise(names))


def sources_between(before: str, after: str) -> tuple[str, ...]:
    """Return the sources of the difference of two signals, by their names."""
    return SOURCES[SIGNALS.index(before) : SIGNALS.index(after)]


def at_instants(times: Array, values: Array, instants: Array) -> Array:
    """Return positions (T, n), rad, at instants: linear between recorded ones, else NaN.

    Args:
        times: Instants of the recorded positions (K,), s, not decreasing.
        values: The recorded positions (K, n), rad.
        instants: The instants (T,), s.
    """
    columns = [np.interp(instants, times, joint, np.nan, np.nan) for joint in values.T]
    return np.stack(columns, axis=1)
