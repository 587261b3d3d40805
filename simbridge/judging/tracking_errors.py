"""Measures the tracking error of a motion, in the joints and at the tool, split by source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from simbridge.identification.joint_lag import fit_common_lag
from simbridge.identification.robust import spread_rows
from simbridge.identification.target_motion import NotIdentified
from simbridge.judging.delays import Lag, fit_lag
from simbridge.judging.signal_chain import Signals, sources_between
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array, Flags
from simbridge.robot.robot import Robot
from simbridge.text import join_words

# Smallest number of rows that show how long the joints trail their targets.
MIN_LAG_ROWS = 10
# Largest number of rows from which that lag is computed: more rows would not change it.
MAX_LAG_ROWS = 20_000


@dataclass(frozen=True)
class DifferenceSize:
    """The size of a difference of two joint motions.

    Attributes:
        rms_rad: RMS over all rows and joints, rad.
        max_rad: Largest difference of a joint, rad.
        max_joint: Name of the joint with the largest difference.
        max_at_s: Time of the largest difference, s from the log's beginning.
        tool_rms_m: RMS distance of the tool, m; None if the arm is not known.
        tool_max_m: Largest distance of the tool, m; None if the arm is not known.
    """

    rms_rad: float
    max_rad: float
    max_joint: str
    max_at_s: float
    tool_rms_m: float | None
    tool_max_m: float | None


@dataclass(frozen=True)
class SignalDifference:
    """A part of the tracking error: the difference of two signals.

    Attributes:
        leading: Name of the signal that leads.
        trailing: Name of the signal that follows it.
        source: What makes the difference: a source's name, or several joined by "and" if the
            signals between them were not recorded.
        size: Size of the difference.
        lag: How long the one signal trails the other; None if the motion does not show it.
    """

    leading: str
    trailing: str
    source: str
    size: DifferenceSize
    lag: Lag | None


@dataclass(frozen=True)
class TrackingErrors:
    """The tracking error of a motion.

    Attributes:
        whole: Difference of the last known signal from the first.
        parts: Differences of successive known signals, in the order of the chain. They add up to
            the whole; their sizes do not.
    """

    whole: SignalDifference
    parts: tuple[SignalDifference, ...]

    @property
    def largest(self) -> SignalDifference:
        """The largest part."""
        return max(self.parts, key=lambda part: part.size.rms_rad)


def split_error(
    signals: Signals,
    target_velocity: Array | None,
    robot: Robot | None,
    *,
    lookahead_uncertainty: float = 0.0,
) -> TrackingErrors | None:
    """Split the tracking error of a motion; None if fewer than two signals are known.

    Args:
        signals: The signals of the motion.
        target_velocity: Velocities of the joint targets (T, n), rad/s, which show a lag that is
            shorter than the time between rows; None if they were not recorded.
        robot: The arm, for the errors at the tool; None if it is not known.
        lookahead_uncertainty: One standard deviation of the lookahead with which the setpoints are
            computed from the targets, s; the setpoints are early or late by that time.
    """
    if len(signals.positions) < 2:
        return None

    # Positions of the tool by signal; rows without a value, here zeros, are not compared.
    tools: dict[str, Array] = {}
    if robot is not None and robot.n == len(signals.joint_names):
        for name, positions in signals.positions.items():
            tools[name] = tool_path(robot, np.nan_to_num(positions))[:, :3]

    def measure(leading: str, trailing: str) -> SignalDifference | None:
        """Return the part of the error between two signals; None without a common row."""
        lag = _measure_lag(signals, leading, trailing, target_velocity)
        if lag is not None and leading == "setpoint":
            # Independent uncertainties add as the squares do.
            uncertainty = float(np.hypot(lag.uncertainty_s, lookahead_uncertainty))
            lag = replace(lag, uncertainty_s=uncertainty)
        return _measure_difference(signals, tools, leading=leading, trailing=trailing, lag=lag)

    parts = [measure(leading, trailing) for leading, trailing in signals.pairs()]
    # Two signals have only one difference, which is the whole error.
    whole = parts[0] if len(parts) == 1 else measure(signals.first, signals.last)
    known_parts = tuple(part for part in parts if part is not None)
    if whole is None or not known_parts:
        return None
    return TrackingErrors(whole, known_parts)


def _measure_difference(
    signals: Signals,
    tools: Mapping[str, Array],
    *,
    leading: str,
    trailing: str,
    lag: Lag | None,
) -> SignalDifference | None:
    """Return the part of the error between two signals; None without a common row.

    Args:
        signals: The signals of the motion.
        tools: Positions of the tool (T, 3), m, by the names of the signals; empty if the arm is
            not known.
        leading: Name of the signal that leads.
        trailing: Name of the signal that follows it.
        lag: How long the one signal trails the other; None if the motion does not show it.
    """
    difference = signals.positions[leading] - signals.positions[trailing]
    known: Flags = np.asarray(np.isfinite(difference).all(axis=1))
    if not known.any():
        return None
    distance = None
    if tools:
        distance = np.linalg.norm(tools[leading] - tools[trailing], axis=1)[known]
    return SignalDifference(
        leading=leading,
        trailing=trailing,
        source=join_words(sources_between(leading, trailing)),
        size=_measure_size(signals, known, difference[known], distance),
        lag=lag,
    )


def _measure_size(
    signals: Signals, known: Flags, difference: Array, distance: Array | None
) -> DifferenceSize:
    """Return the size of the difference of two signals.

    Args:
        signals: The signals of the motion.
        known: Rows in which both signals are known (T,).
        difference: Difference of the signals in the K known rows (K, n), rad.
        distance: Distance between the tool positions of both signals in these rows (K,), m; None
            if the arm is not known.
    """
    size = np.abs(difference)
    row, joint = np.unravel_index(int(np.argmax(size)), size.shape)
    return DifferenceSize(
        rms_rad=float(np.sqrt(np.mean(size**2))),
        max_rad=float(size[row, joint]),
        max_joint=signals.joint_names[joint],
        max_at_s=float(signals.times[known][row]),
        tool_rms_m=None if distance is None else float(np.sqrt(np.mean(distance**2))),
        tool_max_m=None if distance is None else float(distance.max()),
    )


def _measure_lag(
    signals: Signals, leading: str, trailing: str, target_velocity: Array | None
) -> Lag | None:
    """Return how long a signal trails another; None if the motion does not show it.

    Args:
        signals: The signals of the motion.
        leading: Name of the signal that leads.
        trailing: Name of the signal that follows it.
        target_velocity: Velocities of the joint targets (T, n), rad/s; None if they were not
            recorded.
    """
    leading_q = signals.positions[leading]
    trailing_q = signals.positions[trailing]

    # The joints trail their targets by less than the time between rows: such a lag shows in the
    # error in proportion to the velocity.
    if (leading, trailing) == ("target", "actual") and target_velocity is not None:
        return _fit_joint_lag(leading_q, target_velocity, trailing_q)

    if np.array_equal(leading_q, trailing_q):
        return Lag(lag_s=0.0, uncertainty_s=0.0, remaining_rms_rad=0.0)
    known = np.isfinite(leading_q).all(axis=1) & np.isfinite(trailing_q).all(axis=1)
    times = signals.times[known]
    return fit_lag(times, leading_q[known], times, trailing_q[known])


def _fit_joint_lag(target_q: Array, target_qd: Array, actual_q: Array) -> Lag | None:
    """Return how long the joints trail their targets; None if the motion does not show it.

    Args:
        target_q: Joint targets (T, n), rad.
        target_qd: Velocities of the joint targets (T, n), rad/s.
        actual_q: Measured joint positions (T, n), rad.
    """
    if len(target_q) < MIN_LAG_ROWS:
        return None
    rows = spread_rows(len(target_q), MAX_LAG_ROWS)
    try:
        common = fit_common_lag(target_q[rows], target_qd[rows], actual_q[rows])
    except NotIdentified:
        return None
    return Lag(
        lag_s=common.lag,
        uncertainty_s=common.deviation,
        remaining_rms_rad=common.residual_rms,
    )
