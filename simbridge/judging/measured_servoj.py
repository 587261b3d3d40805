"""Finds the tuning of servoj from the measured joints, in a log without joint targets.

The setpoints pass through servoj's law, and reach the measured joints some time later: network and
joints delay them, and a driver that waits between its calls falls behind. Gain, lookahead, delay
and the growth of the delay are fitted together, so that the joint motion that the law makes of the
setpoints comes closest to the measured one.

In steady motion a delay and a lookahead look alike; how the arm responds to acceleration tells them
apart. Some joints lag in proportion to acceleration themselves
(`simbridge.servo.acceleration_lag`), which such a log cannot tell from servoj. So the tuning is
also fitted with joints of that kind, and is at least as uncertain as the two fits differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.identification.robust import jackknife_variance
from simbridge.judging.interpolation import interpolate_rows
from simbridge.judging.servoj_evidence import ServojEvidence
from simbridge.robot.pose import Array
from simbridge.servo.integration import compiled_integrate
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE, JointMotion
from simbridge.servo.plant import ACCELERATION_LAG_CB3

# Gains of servoj from which a fit may start, 1/s^2.
START_GAINS = (100.0, 300.0, 1000.0, 2000.0)
# Lookaheads of servoj from which a fit may start, s.
START_LOOKAHEADS = (0.03, 0.1, 0.2)
# Delays from which a fit may start, s.
START_DELAYS = (0.0, 0.01, 0.03, 0.1, 0.2)

# The arrays of four below have the unknowns of the fit in this order: 1 / gain, s^2, lookahead, s,
# delay, s, and growth of the delay, s/s.
#
# Smallest values of the unknowns. Gain and lookahead may go beyond the ranges that servoj accepts
# by a factor of 2, since they are uncertain.
SMALLEST_UNKNOWNS = np.array([0.5 / GAIN_RANGE[1], 0.5 * LOOKAHEAD_RANGE[0], -0.05, -0.1])
# Largest values of the unknowns.
LARGEST_UNKNOWNS = np.array([2.0 / GAIN_RANGE[0], 2.0 * LOOKAHEAD_RANGE[1], 0.3, 0.1])
# Steps of the numerical derivatives with respect to the unknowns.
DERIVATIVE_STEPS = np.array([1e-6, 1e-4, 1e-4, 1e-4])

# Largest number of Gauss-Newton steps.
MAX_STEPS = 20
# Change of the unknowns below which the Gauss-Newton steps end, in units of DERIVATIVE_STEPS.
CONVERGED_STEPS = 0.01
# Step between the mere delays with which the law is compared, s.
DELAY_STEP_S = 0.002
# Longest mere delay with which the law is compared, s.
MAX_DELAY_S = 0.6
# Number of blocks of rows that are left out in turn, for the uncertainty.
BLOCKS = 10
# Largest fraction of the tracking error that the law may leave unexplained.
MAX_PART_OF_ERROR = 0.03
# Largest ratio of what the law leaves unexplained to what a mere delay leaves.
MAX_PART_OF_DELAYED = 0.2
# Largest relative standard deviations of gain and lookahead that are reported.
MAX_DEVIATIONS = np.array([0.4, 0.2])
# Number of standard deviations by which a tuning may lie outside the ranges that servoj accepts.
RANGE_DEVIATIONS = 2.0


@dataclass(frozen=True, eq=False)
class MeasuredMotion:
    """A motion from rest whose setpoints and measured joints are known, but not the joint targets.

    Attributes:
        instants: Instants (N,), s, one for each cycle of the controller, from the rest before the
            motion to its end.
        setpoints: Joint positions that were sent (N, n), rad.
        times: Instants of the measured rows (T,), s.
        measured: Measured joint positions (T, n), rad.
    """

    instants: Array
    setpoints: Array
    times: Array
    measured: Array

    @property
    def cycle(self) -> float:
        """The controller's cycle, s."""
        return float(self.instants[1] - self.instants[0])


@dataclass(frozen=True, eq=False)
class DelayedServoj:
    """Servoj's law and a delay, as fitted to a measured motion.

    Attributes:
        gain: Gain of servoj, 1/s^2.
        lookahead: Lookahead of servoj, s.
        delay: Delay of network and joints together in the middle of the motion, s.
        deviation: One standard deviation of gain, 1/s^2, and lookahead, s (2,).
        residuals: Predicted minus measured joints (T, n), rad.
    """

    gain: float
    lookahead: float
    delay: float
    deviation: Array
    residuals: Array


@dataclass(frozen=True, eq=False)
class UnknownsFit:
    """The result of fitting the unknowns to a measured motion.

    Attributes:
        unknowns: 1 / gain, s^2, lookahead, s, delay at the motion's beginning, s, and growth of the
            delay, s/s (4,).
        deviation: One standard deviation of each unknown (4,).
        residuals: Predicted minus measured joints (T, n), rad.
    """

    unknowns: Array
    deviation: Array
    residuals: Array

    @property
    def tuning(self) -> Array:
        """Gain, 1/s^2, and lookahead, s (2,)."""
        return np.array([1.0 / self.unknowns[0], self.unknowns[1]])

    @property
    def tuning_deviation(self) -> Array:
        """One standard deviation of gain, 1/s^2, and lookahead, s (2,).

        To first order, d(1/x) = dx / x^2 makes the deviation of the gain from that of its inverse.
        """
        return np.array([self.deviation[0] / self.unknowns[0] ** 2, self.deviation[1]])


def measured_evidence(fit: DelayedServoj) -> ServojEvidence:
    """Return a fit as evidence of servoj."""
    return ServojEvidence(
        gain=fit.gain,
        gain_uncertainty=float(fit.deviation[0]),
        lookahead_s=fit.lookahead,
        lookahead_uncertainty_s=float(fit.deviation[1]),
        call_s=None,
        phase_s=None,
        delay_s=fit.delay,
        held_calls=None,
        residual_rad=float(np.median(np.linalg.norm(fit.residuals, axis=1))),
        has_commands=True,
        is_measured=True,
    )


def fit_measured_servoj(motion: MeasuredMotion) -> tuple[DelayedServoj | None, str]:
    """Fit servoj's law and a delay to measured joints.

    Args:
        motion: The motion.

    Returns:
        The fit and ""; or None and why the motion does not show the tuning, as a clause.
    """
    plain = _fit_unknowns(motion, _list_starts(motion.cycle), acceleration_lag=0.0)
    if not _explains(motion, plain.residuals):
        return None, "servoj's law with a delay does not explain the measured joints"

    # The same with joints that lag in proportion to acceleration, which adds to the uncertainty.
    lagging = _fit_unknowns(motion, [plain.unknowns], acceleration_lag=ACCELERATION_LAG_CB3)
    tuning = plain.tuning
    deviation = np.hypot(plain.tuning_deviation, tuning - lagging.tuning)
    if (deviation > MAX_DEVIATIONS * tuning).any():
        gain_percent, lookahead_percent = 100.0 * deviation / tuning
        return None, (
            "servoj's law with a delay explains the measured joints, but they determine its gain "
            f"and lookahead only to within {gain_percent:.0f} % and {lookahead_percent:.0f} %"
        )

    # Refuse a tuning that servoj itself would refuse.
    low, high = np.transpose([GAIN_RANGE, LOOKAHEAD_RANGE])
    margin = RANGE_DEVIATIONS * deviation
    if (tuning < low - margin).any() or (tuning > high + margin).any():
        return None, (
            f"the measured joints follow a law with a gain of {tuning[0]:.3g} and a lookahead of "
            f"{tuning[1]:.2g} s, which servoj does not accept"
        )
    _, _, first_delay, growth = plain.unknowns
    half_duration = 0.5 * (motion.times[-1] - motion.times[0])
    fit = DelayedServoj(
        gain=float(tuning[0]),
        lookahead=float(tuning[1]),
        delay=float(first_delay + growth * half_duration),
        deviation=deviation,
        residuals=plain.residuals,
    )
    return fit, ""


def _fit_unknowns(
    motion: MeasuredMotion, starts: Sequence[Array], *, acceleration_lag: float
) -> UnknownsFit:
    """Fit the unknowns by Gauss-Newton steps.

    Args:
        motion: The motion.
        starts: Unknowns (4,) from which the fit may start; it starts from the best of them.
        acceleration_lag: How far the joints trail for each rad/s^2 of their targets, s^2.
    """

    def residuals(unknowns: Array) -> Array:
        """Return predicted minus measured joints, the T rows of n joints as one vector, rad."""
        return np.ravel(_predict_joints(motion, unknowns, acceleration_lag) - motion.measured)

    unknowns = min(starts, key=lambda start: float(np.linalg.norm(residuals(start))))
    for _ in range(MAX_STEPS):
        residual = residuals(unknowns)
        slopes = _differentiate_residuals(residuals, unknowns)
        change = np.linalg.lstsq(slopes, -residual, rcond=None)[0]
        improved = np.clip(unknowns + change, SMALLEST_UNKNOWNS, LARGEST_UNKNOWNS)
        if not _is_stable(motion.cycle, improved):
            break
        steps = np.abs(improved - unknowns) / DERIVATIVE_STEPS
        unknowns = improved
        if steps.max() < CONVERGED_STEPS:
            break

    residual = residuals(unknowns)
    slopes = _differentiate_residuals(residuals, unknowns)
    return UnknownsFit(
        unknowns=unknowns,
        deviation=_estimate_deviation(slopes, residual),
        residuals=residual.reshape(motion.measured.shape),
    )


def _list_starts(cycle: float) -> list[Array]:
    """Return the unknowns (4,) that a fit may start from, at a controller's cycle, s."""
    starts = [
        np.array([1.0 / gain, lookahead, delay, 0.0])
        for gain in START_GAINS
        for lookahead in START_LOOKAHEADS
        for delay in START_DELAYS
    ]
    return [start for start in starts if _is_stable(cycle, start)]


def _is_stable(cycle: float, unknowns: Array) -> bool:
    """Return whether the law's steps are stable with a tuning at a controller's cycle, s.

    By Jury's criterion 2 cycle lookahead + cycle^2 must be below 4 / gain: see
    `simbridge.servo.law`.
    """
    inverse_gain, lookahead, _, _ = unknowns
    return bool(2.0 * cycle * lookahead + cycle**2 < 4.0 * inverse_gain)


def _predict_joints(motion: MeasuredMotion, unknowns: Array, acceleration_lag: float) -> Array:
    """Return where servoj's law and a delay bring the joints (T, n), rad.

    Args:
        motion: The motion.
        unknowns: 1 / gain, s^2, lookahead, s, delay, s, and growth of the delay, s/s (4,).
        acceleration_lag: How far the joints trail for each rad/s^2 of their targets, s^2.
    """
    inverse_gain, lookahead, delay, growth = unknowns
    setpoints = np.ascontiguousarray(motion.setpoints)
    targets = JointMotion.zeros(len(setpoints), setpoints.shape[1])
    compiled_integrate()(
        setpoints,
        setpoints[0],
        # Calls of one cycle each, from the beginning of the first cycle.
        motion.cycle * np.arange(1.0, len(setpoints) + 1.0),
        0.0,
        motion.cycle,
        1.0 / inverse_gain,
        lookahead,
        np.stack([setpoints[0], np.zeros_like(setpoints[0])]),
        *targets,
    )

    joints = targets.q - acceleration_lag * targets.qdd
    # The law yields the targets at the end of each cycle, which the joints attain later.
    cycle_ends = motion.instants + motion.cycle
    delays = delay + growth * (cycle_ends - motion.times[0])
    return interpolate_rows(cycle_ends + delays, joints, motion.times)


def _differentiate_residuals(residuals: Callable[[Array], Array], unknowns: Array) -> Array:
    """Return the derivatives (R, 4) of residuals (R,) with respect to the unknowns.

    They are central differences.
    """
    columns = [
        (residuals(unknowns + step) - residuals(unknowns - step)) / (2.0 * step[index])
        for index, step in enumerate(np.diag(DERIVATIVE_STEPS))
    ]
    return np.stack(columns, axis=1)


def _estimate_deviation(slopes: Array, residual: Array) -> Array:
    """Return the standard deviation of each unknown (4,), by the jackknife.

    One linear fit after another leaves out a block of rows; the spread of the fits is the
    uncertainty.

    Args:
        slopes: Derivatives of the residuals (R, 4).
        residual: Residuals (R,), rad, row by row.
    """
    rows = np.arange(len(residual))
    changes = []
    for block in np.array_split(rows, BLOCKS):
        kept = np.setdiff1d(rows, block)
        changes.append(np.linalg.lstsq(slopes[kept], -residual[kept], rcond=None)[0])
    return np.asarray(np.sqrt(jackknife_variance(changes)))


def _explains(motion: MeasuredMotion, residuals: Array) -> bool:
    """Return whether the law explains a motion, and does so far better than a mere delay.

    Args:
        motion: The motion.
        residuals: Predicted minus measured joints (T, n), rad.
    """

    def distance(delay: float) -> float:
        """Return how far the setpoints, delayed by s, are from the measured joints, rad."""
        delayed = interpolate_rows(motion.instants + delay, motion.setpoints, motion.times)
        return float(np.linalg.norm(delayed - motion.measured))

    unexplained = float(np.linalg.norm(residuals))
    tracking_error = distance(0.0)
    with_best_delay = min(distance(delay) for delay in np.arange(0.0, MAX_DELAY_S, DELAY_STEP_S))
    return (
        unexplained < MAX_PART_OF_ERROR * tracking_error
        and unexplained < MAX_PART_OF_DELAYED * with_best_delay
    )
